"""The CRF against the enumeration of all tag sequences."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from models.layers.crf import LinearChainCRF
from models.served.tags import allowed, best_tags, tag_names

TAGS = tag_names(("X",), "bioes")  # 5
WORDS = 4


@pytest.fixture
def crf() -> LinearChainCRF:
    rng = np.random.default_rng(0)
    made = LinearChainCRF(*allowed(TAGS, "bioes"))
    for weight in made.weights:
        weight.assign(rng.normal(size=weight.shape))
    return made


def enumerated(crf: LinearChainCRF, emissions: np.ndarray) -> dict[tuple[int, ...], float]:
    """The score of every tag sequence of a row."""
    pairs, first, last = (np.asarray(part, np.float64) for part in crf.scores())
    return {
        tags: first[tags[0]]
        + last[tags[-1]]
        + sum(emissions[word, tag] for word, tag in enumerate(tags))
        + sum(pairs[a, b] for a, b in pairwise(tags))
        for tags in product(range(len(TAGS)), repeat=len(emissions))
    }


def likelihood(crf: LinearChainCRF, emissions: np.ndarray, tags: tuple[int, ...]) -> float:
    scores = enumerated(crf, emissions)
    return scores[tags] - np.logaddexp.reduce(list(scores.values()))


EMISSIONS = np.random.default_rng(1).normal(size=(3, WORDS, len(TAGS))).astype(np.float32)
RIGHT = np.array([[0, 1, 2, 3], [4, 0, 4, 0], [0, 0, 0, 0]], np.int32)  # all of them legal


def test_the_likelihood_is_that_of_the_enumeration(crf):
    found = crf.log_likelihood(EMISSIONS, RIGHT, np.ones((3, WORDS), np.int32))
    expected = [likelihood(crf, EMISSIONS[row], tuple(RIGHT[row].tolist())) for row in range(3)]
    assert np.allclose(found, expected, atol=1e-4)


def test_words_without_tokens_and_padding_are_skipped(crf):
    mask = np.array([[1, 1, 1, 0], [0, 1, 0, 1], [0, 0, 0, 0]], np.int32)
    tags = np.where(mask, [[1, 2, 3, 2], [2, 1, 2, 3], [2, 2, 2, 2]], 2).astype(np.int32)
    found = np.asarray(crf.log_likelihood(EMISSIONS, tags, mask))
    assert found[0] == pytest.approx(likelihood(crf, EMISSIONS[0, :3], (1, 2, 3)), abs=1e-4)
    assert found[1] == pytest.approx(likelihood(crf, EMISSIONS[1, [1, 3]], (1, 3)), abs=1e-4)
    assert found[2] == 0


def test_the_best_sequence_is_the_best_of_the_enumeration_and_legal(crf):
    scores = [np.asarray(part) for part in crf.scores()]
    follows, starts, ends = allowed(TAGS, "bioes")
    for row in EMISSIONS:
        tags, log_probability = best_tags(row, *scores)
        every = enumerated(crf, row)
        assert tuple(tags.tolist()) == max(every, key=every.__getitem__)
        assert log_probability == pytest.approx(
            likelihood(crf, row, tuple(tags.tolist())), abs=1e-4
        )
        assert starts[tags[0]]
        assert ends[tags[-1]]
        assert follows[tags[:-1], tags[1:]].all()


def test_its_gradient_is_that_of_the_enumeration_compiled_too(crf):
    import tensorflow as tf

    mask = np.ones((3, WORDS), np.int32)

    @tf.function(input_signature=[tf.TensorSpec([None, None, len(TAGS)])], jit_compile=True)
    def gradient(emissions):
        with tf.GradientTape() as tape:
            tape.watch(emissions)
            total = tf.reduce_sum(crf.log_likelihood(emissions, RIGHT, mask))
        return tape.gradient(total, emissions)

    found = gradient(EMISSIONS).numpy()
    for row, word, tag in product(range(3), range(WORDS), range(len(TAGS))):
        every = enumerated(crf, EMISSIONS[row])
        whole = np.logaddexp.reduce(list(every.values()))
        share = sum(np.exp(score - whole) for tags, score in every.items() if tags[word] == tag)
        assert found[row, word, tag] == pytest.approx((RIGHT[row, word] == tag) - share, abs=1e-4)
