"""A network as a reader: keys and values of what it has read are kept, not made again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import keras

from models import features as keys
from models.decoding.cached import CachedReader
from models.keras_ops import ops
from models.layers.attention import Past
from models.layers.cache import moved, stacked, unstacked, written
from models.training.traced_model import forgetting_gradients


def cached_reader(reading: Reading, beams: int | None = None) -> CachedReader:
    """A reader by the four functions of `reading`, which are compiled once for all shapes.

    Args:
        reading: The functions.
        beams: Most texts that go on from a prompt at a time; None for any number, which is slower.
    """
    functions: list[Any] = [reading.start, reading.kernel, reading.step, reading.moved]
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with forgetting_gradients():
            functions = [
                tf.function(
                    getattr(reading, name), input_signature=given, autograph=False
                ).get_concrete_function()
                for name, given in reading.signatures(beams).items()
            ]
    return CachedReader(reading.longest, *functions, begin=reading.begin, beams=beams)


class Output(Protocol):
    """What predicts tokens from a network's last states (`models.layers.token_prediction`)."""

    def logits(self, hidden: Any, kernel: Any = None) -> Any:
        """(…, D) → (…, V), with `kernel` where it is at hand."""
        ...

    def kernel(self) -> Any:
        """The output matrix as the kernel of a dense layer."""
        ...


class Reading:
    """What a `CachedReader` of a causal network is made of, one with ``go_on``.

    Keys and values are one tensor (`models.layers.cache`).

    Args:
        network: The network.
        output: What predicts tokens from its last states.
        blank: Id of [MASK], for a network that fills in a blank after what it has read
            (`models.families.unilm`); None for one that predicts from the last token.

    Attributes:
        longest: Tokens that the network can read, a blank not counted.
    """

    begin: tuple[int, ...] = ()

    def __init__(self, network: Any, output: Output, blank: int | None = None):
        self._network, self._output = network, output
        self._more = {} if blank is None else {"blank": blank}
        self.longest: int = network.max_sequence_length - len(self._more)

    def start(self, token_ids: Any, padding_mask: Any) -> list[Any]:
        """Read prompts, (P, T)."""
        ids, mask = (ops.convert_to_tensor(x, "int32") for x in (token_ids, padding_mask))
        return [*self._read(ids, mask, [])]

    def kernel(self) -> Any:
        """The output matrix as `step` multiplies with it: once laid out, many times read."""
        return self._output.kernel()

    def step(self, token_ids: Any, seen: Any, at: Any, kernel: Any, cache: Any) -> list[Any]:
        """Read one more token of each text, (P, N); `seen` is (P, N, C)."""
        ids, mask = _by_text(token_ids, seen)
        past = unstacked(cache, self._network.num_layers)
        logits, new = self._read(ids, mask, past, ops.shape(seen)[1], kernel)
        return [logits, written(cache, new, at, after=logits)]

    def moved(self, prompts: Any, places: Any, cache: Any) -> list[Any]:
        """What is kept for some prompts, (P',), at places (P', C')."""
        return [moved(cache, prompts, places)]

    def _read(
        self, token_ids: Any, mask: Any, past: Sequence[Past], texts: Any = 1, kernel: Any = None
    ) -> tuple[Any, Any]:
        """Logits after the last token, and keys and values of the tokens."""
        batch = {keys.TOKEN_IDS: token_ids, keys.PADDING_MASK: mask}
        hidden, new = self._network.go_on(batch, past, texts, **self._more)
        return self._logits(hidden, kernel), stacked(new)

    def _logits(self, hidden: Any, kernel: Any) -> Any:
        """Logits after the last token, (B, V)."""
        return self._output.logits(hidden[:, -1], kernel)

    def signatures(self, beams: int | None = None) -> dict[str, list[Any]]:
        """TensorFlow's signatures of the four, for all shapes, or for a number of texts."""
        cache = _cache_spec(self._network, self._network.num_layers)
        return signatures_of(self._kernel_spec(), [cache], beams)

    def _kernel_spec(self) -> Any:
        """What TensorFlow is told of the output matrix."""
        import tensorflow as tf

        return tf.TensorSpec((None, None), self._network.compute_dtype)


class ReadingApart(Reading):
    """What a `CachedReader` of an encoder–decoder is made of (`models.layers.encoder_decoder`).

    Beside the targets' keys and values it keeps those of the prompts, and the prompts' mask.

    Args:
        network: The network.
        output: What predicts tokens from its last states.
        begin: Ids with which a text begins.
    """

    def __init__(self, network: Any, output: Output, begin: tuple[int, ...]):
        super().__init__(network, output)
        self.begin = begin

    def start(self, token_ids: Any, padding_mask: Any) -> list[Any]:
        """Read prompts, (P, T), and the tokens with which each text begins."""
        ids, mask = (ops.convert_to_tensor(x, "int32") for x in (token_ids, padding_mask))
        of_prompt = self._network.memorised({keys.TOKEN_IDS: ids, keys.PADDING_MASK: mask})
        begun = self._begun(ids)
        logits, new = self._write(begun, ops.ones_like(begun), [], of_prompt, mask)
        return [logits, new, stacked(of_prompt), mask]

    def step(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        token_ids: Any,
        seen: Any,
        at: Any,
        kernel: Any,
        cache: Any,
        of_prompt: Any,
        prompt_mask: Any,
    ) -> list[Any]:
        """Read one more token of each text, (P, N); `seen` is (P, N, C)."""
        ids, mask = _by_text(token_ids, seen)
        past, memorised = (unstacked(x, self._num_layers) for x in (cache, of_prompt))
        texts = ops.shape(seen)[1]
        logits, new = self._write(ids, mask, past, memorised, prompt_mask, texts, kernel)
        return [logits, written(cache, new, at, after=logits), of_prompt, prompt_mask]

    def moved(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, prompts: Any, places: Any, cache: Any, of_prompt: Any, prompt_mask: Any
    ) -> list[Any]:
        """What is kept for some prompts, (P',), with their targets' at places (P', C')."""
        prompts = ops.convert_to_tensor(prompts)
        of_some = ops.take(of_prompt, prompts, axis=1), ops.take(prompt_mask, prompts, axis=0)
        return [moved(cache, prompts, places), *of_some]

    def _begun(self, prompts: Any) -> Any:
        """The tokens with which each text begins, (P, n)."""
        first = ops.zeros_like(prompts[:, :1])
        return ops.concatenate([first + each for each in self.begin], axis=1)

    def _write(
        self,
        target_ids: Any,
        target_mask: Any,
        past: Sequence[Past],
        memorised: Sequence[Past],
        prompt_mask: Any,
        texts: Any = 1,
        kernel: Any = None,
    ) -> tuple[Any, Any]:
        """Logits after the last token, and keys and values of the tokens."""
        batch = {
            keys.TARGET_IDS: target_ids,
            keys.TARGET_MASK: target_mask,
            keys.PADDING_MASK: prompt_mask,
            **self._places(target_mask, prompt_mask),
        }
        hidden, new = self._network.go_on(batch, past, memorised, texts)
        return self._logits(hidden, kernel), stacked(new)

    def _places(self, target_mask: Any, prompt_mask: Any) -> dict[str, Any]:
        """Where the tokens of each text stand, where not one after another from the first on."""
        return {}

    @property
    def _num_layers(self) -> int:
        return self._network.num_decoder_layers

    def signatures(self, beams: int | None = None) -> dict[str, list[Any]]:
        """TensorFlow's signatures of the four, for all shapes, or for a number of texts."""
        import tensorflow as tf

        cache = _cache_spec(self._network, self._num_layers)
        kept = [cache, cache, tf.TensorSpec((None, None), tf.int32)]
        return signatures_of(self._kernel_spec(), kept, beams)


def _by_text(token_ids: Any, seen: Any) -> tuple[Any, Any]:
    """Ids (P · N, 1) of one more token a text, and the mask (P · N, C + 1) of what it sees."""
    ids = ops.reshape(ops.convert_to_tensor(token_ids, "int32"), (-1, 1))
    before = ops.reshape(ops.cast(seen, "int32"), (-1, ops.shape(seen)[2]))
    return ids, ops.concatenate([before, ops.ones_like(ids)], axis=1)


def _cache_spec(network: Any, layers: int) -> Any:
    """What TensorFlow is told of a cache."""
    import tensorflow as tf

    size = (2 * layers, None, network.num_heads, None, network.key_dim)
    return tf.TensorSpec(size, network.compute_dtype)


def signatures_of(kernel: Any, kept: list[Any], beams: int | None) -> dict[str, list[Any]]:
    """TensorFlow's signatures of the four, by those of the output matrix and of what is kept."""
    import tensorflow as tf

    some, each = tf.TensorSpec((None,), tf.int32), tf.TensorSpec((None, None), tf.int32)
    seen, at = tf.TensorSpec((None, beams, None), tf.bool), tf.TensorSpec((), tf.int32)
    return {
        "start": [each, each],
        "kernel": [],
        "step": [tf.TensorSpec((None, beams), tf.int32), seen, at, kernel, *kept],
        "moved": [some, each, *kept],
    }
