"""A recurrent network as a reader: of each token that it has read, its state is kept."""

from __future__ import annotations

from typing import Any

from models import features as keys
from models.decoding.reader import Output, ReadingApart, signatures_of
from models.keras_ops import ops
from models.layers.cache import moved, written
from models.layers.recurrent_decoder import Memory


def reading_apart(network: Any, output: Output, begin: tuple[int, ...]) -> ReadingApart:
    """How an encoder–decoder reads what it writes, by what it keeps.

    Args:
        network: The network; a recurrent one has ``num_states``.
        output: What predicts tokens from its last states.
        begin: Ids with which a text begins.
    """
    kind = RecurrentReading if hasattr(network, "num_states") else ReadingApart
    return kind(network, output, begin)


class RecurrentReading(ReadingApart):
    """What a `CachedReader` of a recurrent encoder–decoder is made of.

    In place of keys and values, a place has the network's state after its token: S vectors, as one
    head of a cache (S, P, 1, C, D). A text goes on with the state at the last place that it sees.
    Beside them it keeps what the decoder attends to of the prompts, and the prompts' mask.

    Args:
        network: The network (`models.families.seq2seq`).
        output: What predicts tokens from its last states.
        begin: Ids with which a text begins.
    """

    def start(self, token_ids: Any, padding_mask: Any) -> list[Any]:
        """Read prompts, (P, T), and the tokens with which each text begins."""
        ids, mask = (ops.convert_to_tensor(x, "int32") for x in (token_ids, padding_mask))
        memory = self._network.memorised({keys.TOKEN_IDS: ids, keys.PADDING_MASK: mask})
        logits, new = self._go_on(self._begun(ids), ops.stack(memory.states), memory, mask)
        return [logits, new, memory.keys, memory.values, mask]

    def step(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        token_ids: Any,
        seen: Any,
        at: Any,
        kernel: Any,
        cache: Any,
        of: Any,
        values: Any,
        mask: Any,
    ) -> list[Any]:
        """Read one more token of each text, (P, N); `seen` is (P, N, C)."""
        ids = ops.reshape(ops.convert_to_tensor(token_ids, "int32"), (-1, 1))
        prompts, places = ops.shape(seen)[0], ops.shape(seen)[2]
        last = ops.max(ops.cast(seen, "int32") * ops.arange(places, dtype="int32"), axis=-1)
        rows = ops.arange(prompts, dtype="int32")[:, None] * places + last  # (P, N)
        by_row = ops.reshape(cache, (self._network.num_states, -1, self._network.hidden_dim))
        states = ops.take(by_row, ops.reshape(rows, (-1,)), axis=1)  # (S, P · N, D)
        logits, new = self._go_on(ids, states, Memory(of, values, ()), mask, kernel)
        new = ops.reshape(new, (*new.shape[:1], prompts, 1, -1, new.shape[-1]))  # (S, P, 1, N, D)
        return [logits, written(cache, new, at, after=logits), of, values, mask]

    def moved(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, prompts: Any, places: Any, cache: Any, of: Any, values: Any, mask: Any
    ) -> list[Any]:
        """What is kept for some prompts, (P',), with the states at places (P', C')."""
        prompts = ops.convert_to_tensor(prompts)
        of_some = (ops.take(each, prompts, axis=0) for each in (of, values, mask))
        return [moved(cache, prompts, places), *of_some]

    def _go_on(
        self, target_ids: Any, states: Any, memory: Memory, prompt_mask: Any, kernel: Any = None
    ) -> tuple[Any, Any]:
        """Logits after the last token, and the states after each, (S, B, 1, N, D)."""
        batch = {keys.TARGET_IDS: target_ids, keys.PADDING_MASK: prompt_mask}
        hidden, new = self._network.go_on(batch, states, memory)
        return self._logits(hidden, kernel), new[:, :, None]

    def signatures(self, beams: int | None = None) -> dict[str, list[Any]]:
        """TensorFlow's signatures of the four, for all shapes, or for a number of texts."""
        import tensorflow as tf

        network = self._network
        of = [tf.TensorSpec((None, None, w)) for w in (network.key_dim, network.memory_dim)]
        states = tf.TensorSpec((network.num_states, None, 1, None, network.hidden_dim))
        kept = [states, *of, tf.TensorSpec((None, None), tf.int32)]
        return signatures_of(self._kernel_spec(), kept, beams)
