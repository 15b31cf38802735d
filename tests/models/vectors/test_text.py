"""Which words are read, in which order, and what stands in their windows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from fourstage.errors import ContractViolation, RecipeError
from models.vectors import text
from models.vectors.context_windows import STRETCH, STRETCHES, blocks, num_blocks
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer

WORDS = PlainTokenizer(40)


def corpus(*documents: list[int]) -> MemoryCorpus:
    return MemoryCorpus([[document] for document in documents])


def test_frequencies_are_of_known_words_and_weighted_by_share() -> None:
    given = {
        "a": (corpus([5, 5, 6, WORDS.unknown_id]), 0.75),
        "b": (corpus([6] * 100), 0.25),
    }
    found = text.frequencies(given, WORDS)
    assert found[5] == pytest.approx(0.5)
    assert found[6] == pytest.approx(0.5)
    assert found.sum() == pytest.approx(1.0)


def test_a_text_without_a_known_word_is_refused() -> None:
    with pytest.raises(ContractViolation, match="no word of the text"):
        text.frequencies({"a": (corpus([WORDS.unknown_id]), 1.0)}, WORDS)


def test_a_window_wider_than_every_document_is_refused() -> None:
    given = {"a": (corpus([5, 6, 7]), 1.0)}
    text.check_window(given, 2, "objectives.cbow")
    with pytest.raises(RecipeError, match=r"objectives\.cbow\.window: 3 words.*has 3.*2 or less"):
        text.check_window(given, 3, "objectives.cbow")


def test_frequent_words_are_thinned_out_as_in_the_code() -> None:
    frequencies = np.array([0.0, 0.25, 0.01, 0.0001])
    kept = text.kept_shares(frequencies, 1e-3)
    assert kept[1] == pytest.approx((np.sqrt(0.25 / 1e-3) + 1) * 1e-3 / 0.25)
    assert kept[2] == pytest.approx((np.sqrt(0.01 / 1e-3) + 1) * 1e-3 / 0.01)
    assert kept[3] == 1.0
    assert kept[0] == 0.0
    assert text.kept_shares(frequencies, 0.0).tolist() == [0.0, 1.0, 1.0, 1.0]


def test_corpora_take_turns_by_share_and_each_pass_reads_all(monkeypatch) -> None:
    monkeypatch.setattr(text, "PORTION", 10)
    given = {
        "a": (corpus(*[[5] * 4 for _ in range(20)]), 0.75),
        "b": (corpus(*[[6] * 7 for _ in range(9)]), 0.25),
    }
    read = list(text.portions(given, 240, seed=3))
    assert read == list(text.portions(given, 240, seed=3))
    assert sum(portion.most for portion in read) == 240
    shares = {s: sum(p.most for p in read if p.source == s) for s in given}
    assert abs(shares["a"] - 180) <= 14
    documents = [d for p in read if p.source == "a" for d in range(p.first, p.end)]
    assert sorted(documents[:20]) == list(range(20))


def test_windows_reach_across_words_that_are_thinned_out() -> None:
    frequent, rare = 5, list(range(6, 16))
    read = np.full(40, frequent)
    read[::4] = rare  # three frequent words after each rare one
    given = {"a": (corpus(read.tolist()), 1.0)}
    (portion,) = text.portions(given, 40, seed=0)

    def pairs(kept: np.ndarray) -> set[tuple[int, int]]:
        """Words with those in their windows, which have one word to each side."""
        words = text.kept_words(portion, given, kept, np.random.default_rng(0))
        (block,) = blocks(*words, 1, np.random.default_rng(0))
        places = np.argwhere(block.pairs)
        return {(int(block.words[c, t]), int(block.around[c, j])) for c, t, j in places}

    kept = np.ones(40, np.float32)
    whole = pairs(kept)
    kept[frequent] = 0.0
    # Four words apart in the text. Had windows come first, there would be no pair at all.
    assert pairs(kept) == {pair for a, b in pairwise(rare) for pair in ((a, b), (b, a))}
    assert (frequent, 6) in whole
    assert not whole & pairs(kept)


@pytest.mark.parametrize("window", [2, 40])
def test_windows_hold_the_nearest_words_of_the_same_document(window) -> None:
    rng = np.random.default_rng(1)
    number = STRETCH * STRETCHES + 70
    ids = np.arange(5, 5 + number, dtype=np.int32)  # each word once: an id is a place
    documents = np.sort(rng.integers(0, 12, number)).astype(np.int32)
    reach = np.random.default_rng(7).integers(1, window + 1, number)
    seen = {}
    for block in blocks(ids, documents, window, np.random.default_rng(7)):
        for c, t, j in np.argwhere(block.pairs):
            word, other = block.words[c, t] - 5, block.around[c, j] - 5
            seen.setdefault(int(word), []).append(int(other))
    for i in range(number):
        near = [j for j in range(i - reach[i], i + reach[i] + 1) if j != i and 0 <= j < number]
        assert seen.get(i, []) == [j for j in near if documents[j] == documents[i]]


def test_a_portion_without_a_known_word_has_no_windows() -> None:
    given = {"a": (corpus([5, 6, 7] * 3, [WORDS.unknown_id] * 4), 1.0)}
    kept = text.kept_shares(text.frequencies(given, WORDS), 0.0)
    portion = text.Portion("a", 0, 1, 2, 4)
    words = text.kept_words(portion, given, kept, np.random.default_rng(0))
    assert list(blocks(*words, 2, np.random.default_rng(0))) == []


@pytest.mark.parametrize("words", [0, 1, 511, 512, 513, 1536])
def test_the_number_of_blocks_is_known_before_they_are_made(words: int) -> None:
    ids, documents = np.full(words, 7, np.int32), np.zeros(words, np.int32)
    made = list(blocks(ids, documents, 2, np.random.default_rng(0)))
    assert num_blocks(words) == len(made) == -(-words // (STRETCH * STRETCHES))
