"""Masked language modelling: a row worked out by hand, and what holds for every row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fourstage.errors import RecipeError, UnknownNameError
from models.objectives.masked_lm import MaskedLM
from models.protocols import Context
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer, random_corpus
from tests.models.scripted_chance import ScriptedChance

CLS, SEP, MASK = 2, 3, 4
CONTEXT = Context(PlainTokenizer(100), sequence_length=12)

#       [CLS]              [SEP]               [SEP]
ROW = [[CLS, 10, 11, 12, 13, SEP, 20, 21, 22, 23, 24, SEP]]
#            10 | 11 12 | 13      20 21 22 | 23 | 24
STARTS = [[0, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0]]


def clean() -> dict[str, np.ndarray]:
    return {
        "token_ids": np.array(ROW, np.int32),
        "padding_mask": np.ones((1, 12), np.int32),
        "unit_starts": np.array(STARTS, bool),
    }


def test_tokens_by_hand():
    # 9 candidates · 0.3 = 2.7 → 3 chosen, in ⌈3.6⌉ = 4 slots.
    order = [[0.0, 0.9, 0.1, 0.9, 0.9, 0.0, 0.2, 0.9, 0.9, 0.9, 0.3, 0.0]]  # positions 2, 6, 10
    dice = [[0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.85, 0.0, 0.0, 0.0, 0.95, 0.0]]  # mask, random, keep
    drawn = [[0] * 6 + [72] + [0] * 5]  # the 73rd ordinary id: 5 + 72
    chance = ScriptedChance(order, dice, drawn)
    result = MaskedLM(CONTEXT, rate=0.3).examples(clean(), chance)
    assert result["token_ids"].tolist() == [[CLS, 10, MASK, 12, 13, SEP, 77, 21, 22, 23, 24, SEP]]
    assert result["mask_positions"].tolist() == [[2, 6, 10, 0]]
    assert result["mask_labels"].tolist() == [[11, 20, 24, 0]]
    assert result["mask_weights"].tolist() == [[1.0, 1.0, 1.0, 0.0]]


def test_a_random_token_may_be_one_of_the_text():
    order = [[0.0, 0.9, 0.1, 0.9, 0.9, 0.0, 0.2, 0.9, 0.9, 0.9, 0.3, 0.0]]
    dice = [[0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.85, 0.0, 0.0, 0.0, 0.95, 0.0]]
    drawn = [[0] * 6 + [8] + [0] * 5]  # the last of the nine that are not special: 24
    chance = ScriptedChance(order, dice, drawn)
    result = MaskedLM(CONTEXT, rate=0.3, random_from="text").examples(clean(), chance)
    assert result["token_ids"].tolist() == [[CLS, 10, MASK, 12, 13, SEP, 24, 21, 22, 23, 24, SEP]]


def test_words_by_hand():
    # Units: 0 = 10, 1 = 11 12, 2 = 13, 3 = 20 21 22, 4 = 23, 5 = 24. Budget 3.
    # In the drawn order: unit 1 (2 tokens) fits, unit 3 (3 tokens) no longer does, unit 5 does.
    order = [[0.5, 0.1, 0.6, 0.2, 0.7, 0.3, 0, 0, 0, 0, 0, 0]]
    dice = [[0.0] * 12]
    drawn = [[0] * 12]
    chance = ScriptedChance(order, dice, drawn)
    result = MaskedLM(CONTEXT, rate=0.3, unit="word").examples(clean(), chance)
    expected = [[CLS, 10, MASK, MASK, 13, SEP, 20, 21, 22, 23, MASK, SEP]]
    assert result["token_ids"].tolist() == expected
    assert result["mask_positions"].tolist() == [[2, 3, 10, 0]]
    assert result["mask_labels"].tolist() == [[11, 12, 24, 0]]
    assert result["mask_weights"].tolist() == [[1.0, 1.0, 1.0, 0.0]]


def test_a_row_with_nothing_to_choose_has_no_targets():
    batch = clean()
    batch["token_ids"][:] = SEP
    result = MaskedLM(CONTEXT).examples(batch, np.random.default_rng(0))
    assert (result["token_ids"] == SEP).all()
    assert not result["mask_weights"].any()


rows = st.integers(1, 6).flatmap(
    lambda batch: st.tuples(
        st.just(batch),
        st.integers(4, 40),
        st.integers(0, 2**31),
        st.sampled_from([0.05, 0.15, 0.5]),
    )
)


@given(rows, st.sampled_from(["token", "word"]))
@settings(max_examples=60)
def test_what_holds_for_every_row(case, unit):
    num_rows, length, seed, rate = case
    rng = np.random.default_rng(seed)
    mask = (np.arange(length) < rng.integers(1, length + 1, num_rows)[:, None]).astype(np.int32)
    ids = np.where(mask, rng.integers(1, 60, (num_rows, length)), 0).astype(np.int32)
    starts = rng.random((num_rows, length)) < 0.6
    batch = {"token_ids": ids, "padding_mask": mask, "unit_starts": starts}
    objective = MaskedLM(Context(PlainTokenizer(60), length), rate=rate, unit=unit)

    result = objective.examples(batch, np.random.default_rng(seed))
    again = objective.examples(batch, np.random.default_rng(seed))
    assert all((result[key] == again[key]).all() for key in result), "the seed decides everything"
    assert (batch["token_ids"] == ids).all(), "the clean batch is left alone"

    # Inputs and targets rebuild the text.
    rebuilt = result["token_ids"].copy()
    used = result["mask_weights"] > 0
    row, slot = np.nonzero(used)
    rebuilt[row, result["mask_positions"][row, slot]] = result["mask_labels"][row, slot]
    assert (rebuilt == ids).all()
    # Special tokens are never chosen and never drawn.
    candidates = (mask == 1) & (ids > 4)
    chosen = np.zeros_like(candidates)
    chosen[row, result["mask_positions"][row, slot]] = True
    assert not (chosen & ~candidates).any()
    changed = result["token_ids"] != ids
    assert not (changed & ~chosen).any()
    assert set(np.unique(result["token_ids"][changed])) <= {4, *range(5, 60)}
    # The budget is met exactly, or not exceeded where words are chosen whole.
    wanted = np.clip(np.rint(candidates.sum(1) * rate), 1, objective.num_slots)
    wanted = np.minimum(wanted, candidates.sum(1))
    if unit == "token":
        assert (chosen.sum(1) == wanted).all()
    else:
        assert (chosen.sum(1) <= wanted).all()
        inner = candidates & ~starts  # a token that goes on what stands before it …
        inner[:, 0] = False
        before = np.zeros_like(candidates)
        before[:, 1:] = candidates[:, :-1]
        together = inner & before
        left = np.roll(chosen, 1, axis=1)
        assert (chosen == left)[together].all(), "… is chosen exactly when that is"
    assert (np.diff(np.where(used, result["mask_positions"], length), axis=1) >= 0).all()
    assert result["mask_positions"].shape == (num_rows, objective.num_slots)


def test_shares_are_eight_one_one():
    context = Context(PlainTokenizer(2000), 128)
    ids = np.random.default_rng(0).integers(5, 2000, (2000, 128)).astype(np.int32)
    batch = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    result = MaskedLM(context).examples(batch, np.random.default_rng(1))
    positions = result["mask_positions"]
    seen = np.take_along_axis(result["token_ids"], positions, axis=1)
    used = result["mask_weights"] > 0
    total = used.sum()
    assert total == 2000 * 19  # ⌈0.15 · 128⌉ = 20 slots, 19.2 → 19 used
    masked = (used & (seen == MASK)).sum() / total
    kept = (used & (seen == result["mask_labels"])).sum() / total
    # Four standard deviations of a binomial with 38,000 draws.
    assert abs(masked - 0.8) < 0.009
    assert abs(kept - 0.1) < 0.007


def test_windows_may_end_where_their_document_does():
    corpus = MemoryCorpus([[[10, 11, 12], [13]], [list(range(20, 37))], [], [list(range(40, 50))]])
    objective = MaskedLM(CONTEXT, across_documents=False)
    index = objective.index(corpus, np.random.default_rng(0))
    rows = objective.segments(corpus, index.entries, np.random.default_rng(0))
    assert rows["token_ids"].tolist() == [
        [CLS, 10, 11, 12, 13, SEP, *[0] * 6],
        [CLS, *range(20, 30), SEP],
        [CLS, *range(27, 37), SEP],
        [CLS, *range(40, 50), SEP],
    ]
    assert index.lengths.tolist() == rows["padding_mask"].sum(axis=1).tolist() == [6, 12, 12, 12]


def test_alone_it_packs_full_windows_that_cover_every_token():
    corpus = MemoryCorpus([[[10, 11, 12], [13]], [[20] * 7], [[30, 31]]])
    objective = MaskedLM(Context(PlainTokenizer(100), 8))
    index = objective.index(corpus, np.random.default_rng(0))
    rows = objective.segments(corpus, index.entries, np.random.default_rng(0))
    # The stream: 10 11 12 13 [SEP] 20 20 20 20 20 20 20 [SEP] 30 31, six tokens a window.
    assert rows["token_ids"].tolist() == [
        [CLS, 10, 11, 12, 13, SEP, 20, SEP],
        [CLS, 20, 20, 20, 20, 20, 20, SEP],
        [CLS, 20, 20, 20, SEP, 30, 31, SEP],  # the last one reaches back
    ]
    assert rows["padding_mask"].all()
    assert index.lengths.tolist() == [8, 8, 8]


@given(st.integers(0, 10**6), st.integers(3, 70))
@settings(max_examples=40)
def test_windows_are_full_and_lose_nothing(seed, length):
    corpus = random_corpus(7, 100, seed)
    objective = MaskedLM(Context(PlainTokenizer(100), length))
    index = objective.index(corpus, np.random.default_rng(0))
    rows = objective.segments(corpus, index.entries, np.random.default_rng(0))
    stream: list[int] = []
    for i in range(len(corpus)):
        stream += [*corpus.document(i)[0].tolist(), SEP]
    stream.pop()
    assert (rows["padding_mask"].sum(1) == index.lengths).all()
    body = [
        row[1 : size - 1].tolist()
        for row, size in zip(rows["token_ids"], index.lengths, strict=True)
    ]
    rebuilt = [token for window in body[:-1] for token in window]
    assert stream[: len(rebuilt)] == rebuilt
    assert stream[len(stream) - len(body[-1]) :] == body[-1]
    assert len(rebuilt) + len(body[-1]) >= len(stream)
    if len(stream) >= length - 2:
        assert rows["padding_mask"].all()


@pytest.mark.parametrize("setting", [{"rate": 0.0}, {"rate": 1.5}, {"mask_share": 0.95}])
def test_shares_out_of_range_are_refused(setting):
    with pytest.raises(RecipeError, match="masked_lm"):
        MaskedLM(CONTEXT, **setting)


def test_an_unknown_unit_names_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'word'"):
        MaskedLM(CONTEXT, unit="words")
