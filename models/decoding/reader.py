"""A causal network as a reader: keys and values of what it has read are kept, not made again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from models import features as keys
from models.decoding.cached import CachedReader
from models.layers.cache import moved, stacked, unstacked, written

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops


def causal_reader(network: Any, logits: Callable[[Any], Any]) -> CachedReader:
    """A reader of a network with ``go_on`` (`models.layers.causal`).

    Args:
        network: The network.
        logits: (…, D) last hidden states → (…, V) logits.
    """
    reading = Reading(network, logits)
    functions = [reading.start, reading.step, reading.moved]
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        functions = [
            tf.function(getattr(reading, name), input_signature=signature).get_concrete_function()
            for name, signature in reading.signatures().items()
        ]
    return CachedReader(network.max_sequence_length, *functions)


class Reading:
    """What a `CachedReader` is made of; keys and values are one tensor (`models.layers.cache`).

    Args:
        network: The network.
        logits: (…, D) last hidden states → (…, V) logits.
    """

    def __init__(self, network: Any, logits: Callable[[Any], Any]):
        self._network, self._logits = network, logits

    def start(self, token_ids: Any, padding_mask: Any) -> list[Any]:
        """Read prompts, (P, T)."""
        logits, new = self._read(token_ids, ops.convert_to_tensor(padding_mask, "int32"), [])
        return [logits, new]

    def step(self, token_ids: Any, seen: Any, at: Any, cache: Any) -> list[Any]:
        """Read one more token of each text, (P, N); `seen` is (P, N, C)."""
        ids = ops.reshape(token_ids, (-1, 1))
        before = ops.reshape(ops.cast(seen, "int32"), (-1, ops.shape(seen)[2]))
        mask = ops.concatenate([before, ops.ones_like(ids)], axis=1)
        logits, new = self._read(ids, mask, unstacked(cache, self._network.num_layers))
        return [logits, written(cache, new, at, after=logits)]

    def moved(self, prompts: Any, places: Any, cache: Any) -> list[Any]:
        """What is kept for some prompts, (P',), at places (P', C')."""
        return [moved(cache, prompts, places)]

    def _read(self, token_ids: Any, mask: Any, past: list[Any]) -> tuple[Any, Any]:
        """Logits after the last token, and keys and values of the tokens."""
        batch = {
            keys.TOKEN_IDS: ops.convert_to_tensor(token_ids, "int32"),
            keys.PADDING_MASK: mask,
        }
        hidden, new = self._network.go_on(batch, past)
        return self._logits(hidden[:, -1]), stacked(new)

    def signatures(self) -> dict[str, list[Any]]:
        """TensorFlow's signatures of the three, for all shapes."""
        import tensorflow as tf

        network = self._network
        heads, width = network.num_heads, network.hidden_dim // network.num_heads
        size = (2 * network.num_layers, None, heads, None, width)
        cache = tf.TensorSpec(size, network.compute_dtype)
        some, each = tf.TensorSpec((None,), tf.int32), tf.TensorSpec((None, None), tf.int32)
        seen, at = tf.TensorSpec((None, None, None), tf.bool), tf.TensorSpec((), tf.int32)
        return {
            "start": [each, each],
            "step": [each, seen, at, cache],
            "moved": [some, each, cache],
        }
