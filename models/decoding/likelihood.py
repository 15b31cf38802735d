"""Log probabilities of answers to prompts, each prompt read once.

prompts (B, T) ──read──▶ keys, values ──▶ first token of every answer
                              └──▶ + answers (B', N) ──▶ their other tokens
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np

from models import features as keys
from models.decoding.filters import log_softmax
from models.decoding.reader import Output, Reading
from models.keras_ops import ops
from models.layers.cache import unstacked

MOST = 1 << 26  # floats of the largest tensor
TOGETHER = 64  # most prompts that are read at a time


class Likelihood:
    """Log probabilities under a network with ``go_on`` (`models.layers.causal`).

    Prompts of like length are read together, and each once, however many answers it has. What is
    found for one depends on no other, but for rounding.

    Args:
        network: The network.
        output: What predicts tokens from its last states.
        pad_id: Id of padding.
    """

    def __init__(self, network: Any, output: Output, pad_id: int):
        self._network, self._pad_id = network, pad_id
        self._logits = output.logits
        reading = Reading(network, output)
        self._start, self._others = reading.start, self._of_others
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            signatures = reading.signatures()
            ids, mask = signatures["start"]
            rows, _, cache = signatures["moved"]
            for name, signature in (
                ("_start", [ids, mask]),
                ("_others", [rows, ids, mask, ids, cache]),
            ):
                traced = tf.function(
                    getattr(self, name), input_signature=signature, autograph=False
                )
                setattr(self, name, traced.get_concrete_function())

    def __call__(
        self, contexts: Sequence[Sequence[int]], answers: Sequence[Sequence[Sequence[int]]]
    ) -> list[list[np.ndarray]]:
        """The log probability of every token of every answer.

        Args:
            contexts: Ids of each prompt, one or more.
            answers: Ids of each of its answers, one or more.

        Returns:
            For each prompt, for each answer, (tokens,) float64 nats.
        """
        found: list[list[np.ndarray]] = [[] for _ in contexts]
        for part in self._parts([len(context) for context in contexts]):
            ids, mask = _padded([contexts[n] for n in part], self._pad_id, left=True)
            last, cache = self._start(ids, mask)
            log_p = log_softmax(np.asarray(last)).astype(np.float64)  # (B, V)
            flat = [(row, answer) for row, n in enumerate(part) for answer in answers[n]]
            others = self._later(flat, mask, cache)
            for (row, answer), rest in zip(flat, others, strict=True):
                found[part[row]].append(np.concatenate([[log_p[row, answer[0]]], rest]))
        return found

    def _parts(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Numbers of the prompts that are read together, the shortest first."""
        order = sorted(range(len(lengths)), key=lambda n: lengths[n])
        while order:
            size = 1
            while size < min(TOGETHER, len(order)):
                # The weights of a layer's attention are the largest of its tensors.
                if (size + 1) * self._network.num_heads * lengths[order[size]] ** 2 > MOST:
                    break
                size += 1
            yield order[:size]
            order = order[size:]

    def _later(
        self, flat: Sequence[tuple[int, Sequence[int]]], mask: np.ndarray, cache: Any
    ) -> list[np.ndarray]:
        """Log probabilities of all tokens after the first, (tokens - 1,), of each answer."""
        found = [np.zeros(0)] * len(flat)
        longer = sorted(
            (n for n, (_, answer) in enumerate(flat) if len(answer) > 1),
            key=lambda n: len(flat[n][1]),
        )
        if not longer:
            return found
        widest = len(flat[longer[-1]][1]) - 1
        network = self._network
        copied = 2 * mask.shape[1] * network.hidden_dim * network.num_layers
        at_once = max(1, MOST // max(copied, widest * network.vocabulary_size))
        for first in range(0, len(longer), at_once):
            part = longer[first : first + at_once]
            rows = np.array([flat[n][0] for n in part], np.int32)
            read, new = _padded([flat[n][1][:-1] for n in part], self._pad_id, left=False)
            targets, _ = _padded([flat[n][1][1:] for n in part], self._pad_id, left=False)
            whole = np.concatenate([mask[rows], new], axis=1)
            log_p = np.asarray(self._others(rows, read, whole, targets, cache), np.float64)
            for n, row in zip(part, log_p, strict=True):
                found[n] = row[: len(flat[n][1]) - 1]
        return found

    def _of_others(
        self, rows: Any, token_ids: Any, padding_mask: Any, targets: Any, cache: Any
    ) -> Any:
        """Log probabilities (B', N) of tokens that follow others after the prompts `rows`."""
        taken = ops.take(cache, ops.convert_to_tensor(rows), axis=1)
        batch = {
            keys.TOKEN_IDS: ops.convert_to_tensor(token_ids),
            keys.PADDING_MASK: ops.convert_to_tensor(padding_mask),
        }
        hidden, _ = self._network.go_on(batch, unstacked(taken, self._network.num_layers))
        log_p = ops.log_softmax(ops.cast(self._logits(hidden), "float32"), axis=-1)  # (B', N, V)
        targets = ops.convert_to_tensor(targets)[..., None]
        return ops.take_along_axis(log_p, targets, axis=-1)[..., 0]


def _padded(
    texts: Sequence[Sequence[int]], pad_id: int, left: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Ids and mask (B, T) int32 of texts of different lengths."""
    width = max(map(len, texts))
    ids = np.full((len(texts), width), pad_id, np.int32)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        place = slice(width - len(text), width) if left else slice(0, len(text))
        ids[row, place], mask[row, place] = text, 1
    return ids, mask
