"""Numbers from n-grams: scikit-learn's ridge on features by hand, of one text and of pairs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from models import features as keys
from models.heads.sequence_regression import SequenceRegression
from models.inputs.hashed_ngrams import BITS, BUCKETS, KINDS, SECOND
from models.layers.likeness import ALIKE
from models.layers.wide import WidePart, compared
from models.protocols import Context
from tests.models.memory_corpus import MemoryRows, PlainTokenizer

TOKENIZER, RNG = PlainTokenizer(40), np.random.default_rng(0)


def texts(pairs: bool, number: int = 60, seed: int = 0) -> list[tuple]:
    """Texts of ten tokens; the number is that of shared tokens, or of one token, and some noise."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(number):
        first, second = rng.integers(5, 40, (2, 10)).tolist()
        second[: rng.integers(0, 10)] = first[: rng.integers(0, 10)]
        noise = 0.1 * rng.normal()
        found = len(set(first) & set(second)) if pairs else first.count(7) + 2 * first.count(9)
        made.append((first, second if pairs else None, repr(float(found + noise))))
    return made


def rows(pairs: bool, seed: int = 0) -> MemoryRows:
    return MemoryRows(texts(pairs, seed=seed))


def learned(given: MemoryRows) -> tuple[SequenceRegression, WidePart]:
    head = SequenceRegression(Context(TOKENIZER, 32, (), given), wide=True)
    part = WidePart(1)
    part.build()
    part.learn(head.wide.machine)
    return head, part


def by_hand(batch: dict[str, np.ndarray], idf: np.ndarray) -> np.ndarray:
    """How alike two texts are, one row at a time, from {bucket: count} of each."""
    found = []
    for ids, counts in zip(batch[keys.NGRAM_IDS], batch[keys.NGRAM_COUNTS], strict=True):
        texts = [{int(i): int(c) for i, c in zip(ids, own, strict=True) if c} for own in counts.T]
        row = []
        for kind in range(KINDS):
            of = [{i: c for i, c in text.items() if i >> BITS == kind} for text in texts]
            weight = {
                i: np.mean([idf[own] or idf.max() for own in (i, i ^ SECOND)])
                for text in of
                for i in text
            }
            vectors = [{i: (1 + np.log(c)) * weight[i] for i, c in text.items()} for text in of]
            norms = [np.sqrt(sum(value**2 for value in vector.values())) for vector in vectors]
            shared = vectors[0].keys() & vectors[1].keys()
            dot = sum(vectors[0][i] * vectors[1][i] for i in shared)
            row.append(dot / (norms[0] * norms[1]) if min(norms) else 0.0)
            row.append(len(shared) / max(min(map(len, of)), 1))
        lengths = [np.log1p(sum(text.values())) for text in texts]
        row.append(abs(lengths[0] - lengths[1]))
        found.append(row)
    alike = np.array(found)
    return np.concatenate([alike, alike**2], axis=1)


def test_how_alike_two_texts_are_is_as_told_also_of_empty_ones() -> None:
    odd = [([], [7, 8], "1"), ([], [], "2"), ([9, 9], [9, 9], "3")]
    given = MemoryRows([*odd, *texts(pairs=True)[3:]])
    head, _ = learned(given)
    batch, idf = head.wide.of_rows(given, range(60)), head.wide.machine.idf
    found = np.asarray(compared(batch, idf))
    assert found.shape == (60, ALIKE)
    assert found == pytest.approx(by_hand(batch, idf), abs=1e-5)
    assert found[2, :4] == pytest.approx(np.ones(4))


@pytest.mark.parametrize("pairs", [False, True])
def test_the_number_is_that_of_a_ridge_regression(pairs) -> None:
    given, asked = rows(pairs), rows(pairs, seed=1)
    head, part = learned(given)
    numbers = np.array([float(answer) for answer in given.answers])
    numbers = (numbers - numbers.mean()) / numbers.std()
    machine = head.wide.machine

    def features(of: MemoryRows) -> np.ndarray:
        batch = head.wide.of_rows(of, range(len(of)))
        if pairs:
            return by_hand(batch, machine.idf)
        values = np.zeros((len(of), BUCKETS))
        for row, (ids, counts) in enumerate(
            zip(batch[keys.NGRAM_IDS], batch[keys.NGRAM_COUNTS], strict=True)
        ):
            there = counts > 0
            values[row, ids[there]] = (1 + np.log(counts[there])) * machine.idf[ids[there]]
        kinds = np.split(values, KINDS, axis=1)
        return np.concatenate([k / np.linalg.norm(k, axis=1, keepdims=True) for k in kinds], axis=1)

    said = np.asarray(part(head.wide.of_rows(asked, range(60))))[:, 0]
    expected = [
        Ridge(alpha=penalty).fit(features(given), numbers).predict(features(asked))
        for penalty in (0.1, 1.0, 10.0)
    ]
    assert min(np.abs(said - each).max() for each in expected) < 1e-3


def test_training_rows_have_what_was_foretold_of_them() -> None:
    given = rows(pairs=True)
    head, _ = learned(given)
    batch = head.segments(given, head.index(given, RNG).entries[:5], RNG)
    assert np.array_equal(batch[keys.NGRAM_LOGITS], head.wide.machine.unseen[:5])
