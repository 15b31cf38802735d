"""A Keras model whose compiled steps depend on the declared batch shapes only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np

from models import features as keys
from models.compilation import jit_compile


@contextmanager
def forgetting_gradients() -> Iterator[None]:
    """Unregister the custom gradients that a trace registers; the finished graph has them built in.

    TensorFlow keeps each custom gradient in a global registry for good. The entry holds on to the
    graph, its functions and their weights, so a process that trains many stages would leak all of
    them (Keras's optimizer has custom gradients, too). There is no public way to unregister one.
    """
    from tensorflow.python.framework import ops

    registry = ops.gradient_registry._registry  # pyright: ignore[reportPrivateUsage]
    before = set(registry)
    try:
        yield
    finally:
        for name in registry.keys() - before:
            del registry[name]


class TracedModel(keras.Model):
    """A Keras model for ``*_on_batch`` calls, compiled on TensorFlow for shapes set by `trace_for`.

    Keras itself compiles the exact shape of the first batch and relaxes it at the second. A stage
    resumed in between would run another graph, with other bits. (JAX compiles every shape anyway.)
    """

    _specs: Any = None

    def build(self, input_shape: Any = None) -> None:
        """Nothing to do: what it is made of is already built."""
        self.built = True

    def trace_for(self, batch: Mapping[str, np.ndarray], *, lengths_vary: bool) -> None:
        """Set the shapes of the following batches; to be called again when they change.

        Args:
            batch: An example batch.
            lengths_vary: Whether the dimensions after the first differ between batches, except
                those of regions.
        """
        self.train_function = self.test_function = self.predict_function = None
        if keras.backend.backend() != "tensorflow":
            return
        import tensorflow as tf

        self._specs = {
            key: tf.TensorSpec(
                (*value.shape[:1], *[None] * (value.ndim - 1))
                if lengths_vary and key.removeprefix(keys.COPY) not in keys.FIXED_SHAPES
                else value.shape,
                value.dtype,
                name=key,
            )
            for key, value in batch.items()
        }

    def ready(self) -> None:
        """Compile for evaluation only: without an optimizer and its variables."""
        self.compile(optimizer=None, jit_compile=jit_compile())  # pyright: ignore[reportArgumentType]

    def make_train_function(self, force: bool = False) -> Any:
        """As in Keras, with the shapes of `trace_for`."""
        if self._specs is None:
            return super().make_train_function(force)
        if self.train_function is None or force:
            self.train_function = self._compiled(self.train_step)
        return self.train_function

    def make_test_function(self, force: bool = False) -> Any:
        """As in Keras, with the shapes of `trace_for`."""
        if self._specs is None:
            return super().make_test_function(force)
        if self.test_function is None or force:
            self.test_function = self._compiled(self.test_step)
        return self.test_function

    def make_predict_function(self, force: bool = False) -> Any:
        """As in Keras, with the shapes of `trace_for`."""
        if self._specs is None:
            return super().make_predict_function(force)
        if self.predict_function is None or force:
            self.predict_function = self._compiled(self.predict_step)
        return self.predict_function

    def _compiled(self, step: Any) -> Any:
        import tensorflow as tf

        def traced(batch: Any) -> Any:
            with forgetting_gradients():
                return step((batch,))

        names = tuple(self._specs)
        compiled = tf.function(
            traced,
            input_signature=[dict(self._specs)],
            jit_compile=bool(self.jit_compile),
            autograph=False,  # nothing branches on tensors, and translating the code takes time
        )

        def function(iterator: Any) -> Any:
            batch = next(iter(iterator))[0]
            return compiled({name: tf.convert_to_tensor(batch[name]) for name in names})

        return function
