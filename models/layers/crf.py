"""Linear-chain conditional random field: scores of tag sequences and their likelihood.

A sequence y of tags scores Σ_t e_t(y_t) + Σ_t A(y_t-1, y_t) + a(y_1) + z(y_n), where e are the
network's scores of each word's tags. Tags that may not follow one another score −10⁴.

Reference:
    Lafferty et al. 2001, "Conditional Random Fields"; on top of a network: Lample et al. 2016,
    arXiv 1603.01360, section 2.2, equations for s(X, y) and log p(y|X).
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from models.keras_ops import ops

FORBIDDEN = -1e4


class LinearChainCRF(keras.layers.Layer):
    """Transition scores between the tags of neighbouring words.

    Args:
        follows: (G, G) bool: whether tag j may follow tag i.
        starts: (G,) bool: whether a sequence may start with a tag.
        ends: (G,) bool: whether it may end with one.
    """

    def __init__(self, follows: np.ndarray, starts: np.ndarray, ends: np.ndarray, **kwargs: Any):
        super().__init__(dtype="float32", **kwargs)
        self.limits = [
            np.where(may, 0.0, FORBIDDEN).astype(np.float32) for may in (follows, starts, ends)
        ]
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Create the scores, all 0."""
        size = len(self.limits[1])
        self.transitions = self.add_weight(
            shape=(size, size), initializer="zeros", name="pairs", autocast=False
        )
        self.first = self.add_weight(
            shape=(size,), initializer="zeros", name="first", autocast=False
        )
        self.last = self.add_weight(shape=(size,), initializer="zeros", name="last", autocast=False)
        self.built = True

    def scores(self) -> tuple[Any, Any, Any]:
        """Transition (G, G), start (G,) and end (G,) scores, with what is forbidden."""
        learned = (self.transitions, self.first, self.last)
        pairs, first, last = (
            ops.convert_to_tensor(scores) + limit
            for scores, limit in zip(learned, self.limits, strict=True)
        )
        return pairs, first, last

    def log_likelihood(self, emissions: Any, tags: Any, mask: Any) -> Any:
        """Log-probability of a tag sequence, (B,) float32; 0 for a row without words.

        Args:
            emissions: (B, W, G) float32.
            tags: (B, W) int32 in [0, G).
            mask: (B, W), 1 = word; words without a 1 are skipped wherever they stand.
        """
        mask = ops.cast(mask, "float32")
        pairs, first, last = self.scores()
        size = ops.shape(emissions)[-1]
        hot = ops.one_hot(tags, size, dtype="float32")  # (B, W, G)

        def step(carry: Any, word: tuple[Any, Any, Any]) -> Any:
            total, before, seen, score = carry
            scores, own, here = word[0], word[1], word[2][:, None]
            paths = ops.logsumexp(total[:, :, None] + pairs[None], axis=1)
            paths = ops.where(seen > 0, paths, first[None]) + scores
            into = ops.where(seen > 0, ops.matmul(before, pairs), first[None])
            gained = ops.sum(own * (into + scores), axis=-1, keepdims=True)
            return (
                ops.where(here > 0, paths, total),
                ops.where(here > 0, own, before),
                ops.maximum(seen, here),
                score + here * gained,
            )

        empty = ops.zeros_like(emissions[:, 0])  # (B, G)
        none = empty[:, :1]
        words = (ops.swapaxes(emissions, 0, 1), ops.swapaxes(hot, 0, 1), ops.transpose(mask))
        total, final, seen, score = _fold(step, (empty, empty, none, none), words)
        score = score[:, 0] + ops.sum(final * last[None], axis=-1)
        everything = ops.logsumexp(total + last[None], axis=-1)
        return ops.where(seen[:, 0] > 0, score - everything, 0.0)


def _fold(step: Any, carry: Any, words: tuple[Any, ...]) -> Any:
    """`step` over the words of a batch, first to last, (W, B, …) each."""
    if keras.backend.backend() == "jax":  # whose while loop has no gradient
        return ops.scan(lambda state, word: (step(state, word), None), carry, words)[0]
    count = ops.shape(words[0])[0]

    def body(place: Any, state: Any) -> Any:
        return place + 1, step(state, tuple(ops.take(part, place, axis=0) for part in words))

    # XLA wants to know how often a loop with a gradient runs at most.
    return ops.while_loop(
        lambda place, _: place < count, body, (0, carry), maximum_iterations=count
    )[1]
