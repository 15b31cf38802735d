"""A causal network as a reader: keys and values of what it has read are kept, not made again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from models import features as keys

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops


class CausalReader:
    """Reads prompts, then token by token (`models.decoding.generate.Reader`).

    Args:
        network: A network with ``go_on`` (`models.layers.causal`).
        logits: (…, D) last hidden states → (…, V) logits.

    Attributes:
        longest: Tokens that the network can read.
    """

    def __init__(self, network: Any, logits: Callable[[Any], Any]):
        self.longest = network.max_sequence_length
        self._network, self._logits = network, logits
        self._past: Any = ()
        self._mask = np.zeros((0, 0), np.int32)
        self._first, self._next = self._read, self._read
        if keras.backend.backend() == "tensorflow":
            self._first, self._next = self._traced()

    def start(self, token_ids: np.ndarray, padding_mask: np.ndarray) -> np.ndarray:
        """Read prompts, (B, T) each; logits of the next token, (B, V)."""
        self._mask = np.asarray(padding_mask, np.int32)
        return self._answer(self._first, token_ids, ())

    def step(self, rows: np.ndarray, token_ids: np.ndarray) -> np.ndarray:
        """Read one more token, (B',), of the texts `rows`; logits of the one after it, (B', V)."""
        past = self._past
        if not np.array_equal(rows, np.arange(len(self._mask))):
            past = [tuple(ops.take(each, rows, axis=0) for each in layer) for layer in past]
        new = np.ones((len(rows), 1), np.int32)
        self._mask = np.concatenate([self._mask[rows], new], axis=1)
        return self._answer(self._next, token_ids[:, None], past)

    def _answer(self, read: Callable[..., Any], token_ids: np.ndarray, past: Any) -> np.ndarray:
        ids = ops.convert_to_tensor(token_ids, "int32")
        mask = ops.convert_to_tensor(self._mask, "int32")
        logits, self._past = read(ids, mask, past)
        return ops.convert_to_numpy(logits)

    def _read(self, token_ids: Any, padding_mask: Any, past: Any) -> tuple[Any, Any]:
        batch = {keys.TOKEN_IDS: token_ids, keys.PADDING_MASK: padding_mask}
        hidden, past = self._network.go_on(batch, past)
        return self._logits(hidden[:, -1]), past

    def _traced(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Reading of a prompt and of one more token as graphs, once for all shapes."""
        import tensorflow as tf

        network = self._network
        heads, width = network.num_heads, network.hidden_dim // network.num_heads
        several = tf.TensorSpec((None, None), tf.int32)
        layer = (
            tf.TensorSpec((None, heads, width, None), network.compute_dtype),
            tf.TensorSpec((None, heads, None, width), network.compute_dtype),
        )
        one = tf.TensorSpec((None, 1), tf.int32)
        first = tf.function(self._read, input_signature=[several, several, ()])
        past = [layer] * network.num_layers
        return first, tf.function(self._read, input_signature=[one, several, past])
