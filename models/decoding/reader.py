"""A network as a reader: keys and values of what it has read are kept, not made again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from models import features as keys
from models.decoding.cached import CachedReader

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops


def reader_of(network: Any, logits: Callable[[Any], Any], begin: tuple[int, ...]) -> CachedReader:
    """A reader of a network that generates.

    Args:
        network: The network.
        logits: (…, D) last hidden states → (…, V) logits.
        begin: Ids with which an encoder–decoder begins a text; empty for a causal network.
    """
    return _compiled(reading_of(network, logits, begin))


def causal_reader(network: Any, logits: Callable[[Any], Any]) -> CachedReader:
    """A reader of a network with ``go_on`` (`models.layers.causal`).

    Args:
        network: The network.
        logits: (…, D) last hidden states → (…, V) logits.
    """
    return _compiled(Reading(network, logits))


def reading_of(network: Any, logits: Callable[[Any], Any], begin: tuple[int, ...]) -> Reading:
    """What `reader_of` is made of."""
    return ReadingApart(network, logits, begin) if begin else Reading(network, logits)


def _compiled(reading: Reading) -> CachedReader:
    functions = [reading.start, reading.step, reading.chosen]
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        functions = [
            tf.function(getattr(reading, name), input_signature=signature).get_concrete_function()
            for name, signature in reading.signatures().items()
        ]
    return CachedReader(reading.longest, *functions, begin=reading.begin)


class Reading:
    """What a `CachedReader` of a causal network is made of; keys and values follow layer by layer.

    Args:
        network: The network.
        logits: (…, D) last hidden states → (…, V) logits.
    """

    begin: tuple[int, ...] = ()

    def __init__(self, network: Any, logits: Callable[[Any], Any]):
        self._network, self._logits = network, logits
        self.longest: int = network.max_sequence_length

    def start(self, token_ids: Any, padding_mask: Any) -> list[Any]:
        """Read prompts, (B, T)."""
        return self._read(token_ids, padding_mask, [])

    def step(self, token_ids: Any, padding_mask: Any, *kept: Any) -> list[Any]:
        """Read one more token, (B, 1), of each text."""
        return self._read(token_ids, padding_mask, _by_layer(kept))

    def chosen(self, rows: Any, token_ids: Any, padding_mask: Any, *kept: Any) -> list[Any]:
        """Read one more token, (B', 1), of the texts `rows`, (B',)."""
        taken = [ops.take(each, ops.convert_to_tensor(rows), axis=0) for each in kept]
        return self.step(token_ids, padding_mask, *taken)

    def _read(self, token_ids: Any, padding_mask: Any, layers: list[Any]) -> list[Any]:
        batch = {
            keys.TOKEN_IDS: ops.convert_to_tensor(token_ids, "int32"),
            keys.PADDING_MASK: ops.convert_to_tensor(padding_mask, "int32"),
        }
        hidden, layers = self._network.go_on(batch, layers)
        return [self._logits(hidden[:, -1]), *_flat(layers)]

    @property
    def num_kept(self) -> int:
        """Pairs of keys and values that are kept."""
        return self._network.num_layers

    def signatures(self) -> dict[str, list[Any]]:
        """TensorFlow's signatures of the three, for all shapes."""
        import tensorflow as tf

        network = self._network
        heads, width = network.num_heads, network.key_dim
        kept = [
            tf.TensorSpec((None, heads, width, None), network.compute_dtype),
            tf.TensorSpec((None, heads, None, width), network.compute_dtype),
        ] * self.num_kept
        ids = tf.TensorSpec((None, None), tf.int32)
        one, rows = tf.TensorSpec((None, 1), tf.int32), tf.TensorSpec((None,), tf.int32)
        return {
            "start": [ids, ids],
            "step": [one, ids, *kept],
            "chosen": [rows, one, ids, *kept],
        }


class ReadingApart(Reading):
    """What a `CachedReader` of an encoder–decoder is made of (`models.layers.encoder_decoder`).

    The mask is the prompt's and does not grow. First the target's keys and values are kept, then
    the prompt's.

    Args:
        network: The network.
        logits: (…, D) last hidden states → (…, V) logits.
        begin: Ids with which a text begins.
    """

    def __init__(self, network: Any, logits: Callable[[Any], Any], begin: tuple[int, ...]):
        super().__init__(network, logits)
        self.begin = begin

    def start(self, token_ids: Any, padding_mask: Any) -> list[Any]:
        """Read prompts, (B, T), and the tokens with which each text begins."""
        token_ids, mask = (ops.convert_to_tensor(x, "int32") for x in (token_ids, padding_mask))
        of_text = self._network.memorised({keys.TOKEN_IDS: token_ids, keys.PADDING_MASK: mask})
        first = ops.zeros_like(token_ids[:, :1])
        begun = ops.concatenate([first + each for each in self.begin], axis=1)
        return self._write(begun, mask, [], of_text)

    def step(self, token_ids: Any, padding_mask: Any, *kept: Any) -> list[Any]:
        """Read one more token, (B, 1), of each text."""
        layers = _by_layer(kept)
        middle = len(layers) // 2
        return self._write(token_ids, padding_mask, layers[:middle], layers[middle:])

    def _write(
        self, token_ids: Any, padding_mask: Any, layers: list[Any], of_text: list[Any]
    ) -> list[Any]:
        batch = {
            keys.TARGET_IDS: ops.convert_to_tensor(token_ids, "int32"),
            keys.PADDING_MASK: ops.convert_to_tensor(padding_mask, "int32"),
        }
        hidden, layers = self._network.go_on(batch, layers, of_text)
        return [self._logits(hidden[:, -1]), *_flat(layers), *_flat(of_text)]

    @property
    def num_kept(self) -> int:
        """Pairs of keys and values that are kept."""
        return 2 * self._network.num_decoder_layers


def _by_layer(kept: Any) -> list[Any]:
    return list(zip(kept[::2], kept[1::2], strict=True))


def _flat(layers: list[Any]) -> list[Any]:
    return [each for layer in layers for each in layer]
