"""Mixtures of tasks: rates against NumPy, their composition counted, rows by hand."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fourstage.errors import RecipeError
from models import features as keys
from models.heads.sequence_to_sequence import SequenceToSequence
from models.inputs.batches import Batches, batches
from models.inputs.mixture import PrefixedRows, known_prefixes, mixed, rates, tasks_beside, written
from models.inputs.rows import GROUPED
from models.protocols import Context
from tests.models.memory_corpus import MemoryRows, PlainTokenizer

CONTEXT = Context(PlainTokenizer(100), sequence_length=32)
BATCH = 8
SIZES = {"big": 500, "middle": 60, "small": 20}
PREFIXES = {"middle": "90", "small": "91 92"}


def rows(name: str, kind: str = "text") -> MemoryRows:
    """Rows of 1 to 20 tokens, the first of which says which row it is."""
    rng = np.random.default_rng(SIZES[name])
    answer = "40 41" if kind == "label" else '["40 41"]'
    return MemoryRows(
        [([5 + i % 80, *rng.integers(5, 90, i % 20)], answer) for i in range(SIZES[name])]
    )


def mixture(limit: int | None = 100, temperature: float = 1.0) -> Batches:
    settings: dict[str, Any] = {
        "beside": {n: {"prefix": p, "answers": "label"} for n, p in PREFIXES.items()},
        "limit": limit,
        "temperature": temperature,
    }
    others = {name: rows(name, "label") for name in PREFIXES}
    beside = tasks_beside(settings, others, CONTEXT.tokenizer)
    head = SequenceToSequence(CONTEXT, target_length=4, prefix="93")
    data = mixed("big", rows("big"), beside, settings)
    return batches(data, [head], CONTEXT, BATCH, seed=3)


def names(made: Batches, start: int, stop: int) -> list[list[str]]:
    """The dataset of each row of batches."""
    return [[made.feeds[feed].name for feed, _ in made.members(k)] for k in range(start, stop)]


@given(
    st.lists(st.integers(1, 10**7), min_size=1, max_size=6),
    st.none() | st.integers(1, 10**7),
    st.floats(1, 1e6),
)
def test_the_rates_are_the_papers(sizes, limit, temperature):
    found = rates({str(i): size for i, size in enumerate(sizes)}, limit, temperature)
    expected = np.minimum(np.array(sizes, float), limit or np.inf)
    expected /= expected.sum()  # r_m = min(e_m, K) / Σ min(e_n, K)
    expected **= 1 / temperature
    np.testing.assert_allclose([*found.values()], expected / expected.sum(), rtol=1e-9)


def test_a_limit_of_one_and_a_great_temperature_mix_equally():
    for settings in ({"limit": 1}, {"temperature": 1e6}):
        assert [*rates(SIZES, **settings).values()] == pytest.approx([1 / 3] * 3, rel=1e-5)


def test_answers_become_texts():
    assert written("label", "not_equivalent") == '["not_equivalent"]'
    assert written("text", '["ein Mann", "ein Herr"]') == '["ein Mann", "ein Herr"]'
    scores = {"2.57": "2.6", "5": "5.0", "0.0": "0.0", "-0.05": "0.0", "3.33": "3.4", "1.0": "1.0"}
    assert {score: written("number", score) for score in scores} == {
        score: f'["{text}"]' for score, text in scores.items()
    }
    assert written("label", "") == written("number", "") == ""  # a row without an answer


@pytest.mark.parametrize(("limit", "temperature"), [(None, 1.0), (100, 1.0), (100, 2.0), (1, 1.0)])
def test_a_mixture_is_composed_as_its_rates_say(limit: int | None, temperature: float):
    made = mixture(limit, temperature)
    shares = rates(SIZES, limit, temperature)
    for group in range(3):  # of batches, each with the whole mixture
        found = Counter(itertools.chain(*names(made, group * GROUPED, (group + 1) * GROUPED)))
        for name, share in shares.items():
            assert abs(found[name] - share * GROUPED * BATCH) <= 2, (group, name)
    read = made.passes(3 * GROUPED)
    for name, share in shares.items():
        assert read[name] == pytest.approx(3 * GROUPED * BATCH * share / SIZES[name])
    slowest = max(SIZES[name] / share for name, share in shares.items())
    assert made.batches_in_pass() == pytest.approx(slowest / BATCH)


def test_every_row_comes_once_a_pass_of_its_dataset():
    made = mixture(limit=1)
    seen: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for k in range(4 * GROUPED):
        for feed, example in made.members(k):
            seen[feed].append(example)
    for number, feed in enumerate(made.feeds):
        assert len(set(seen[number])) == len(seen[number]), "numbered through all passes"
        in_pass = Counter(example // len(feed.index) for example in seen[number])
        whole = len(seen[number]) // len(feed.index)
        assert [in_pass[p] for p in range(whole)] == [len(feed.index)] * whole
    assert len(seen[2]) > 10 * SIZES["small"]


def test_a_batch_is_a_function_of_its_number_and_holds_rows_of_several_tasks():
    made, again = mixture(), mixture()
    later = list(again.iterate(40, 43))
    for k, batch in zip(range(40, 43), later, strict=True):
        for key, value in made.batch(k).items():
            np.testing.assert_array_equal(value, batch[key])
    assert max(len(set(each)) for each in names(made, 0, GROUPED)) == 3
    assert names(made, 0, 8) != names(made, GROUPED, GROUPED + 8)


def test_rows_stand_behind_the_prefix_of_their_task():
    made = mixture()
    begins = {"big": [93], "middle": [90], "small": [91, 92]}
    for k in range(GROUPED):
        batch = made.batch(k)
        lengths = batch[keys.PADDING_MASK].sum(axis=1)
        assert (batch[keys.TOKEN_IDS][batch[keys.PADDING_MASK] == 0] == 0).all()
        assert batch[keys.TOKEN_IDS].shape[1] - lengths.max() < 8, "no wider than it needs"
        for row, (feed, example) in enumerate(made.members(k)):
            each = made.feeds[feed]
            (text,) = each.data.texts(example % len(each.index))
            whole = [2, *begins[each.name], *text.tolist(), 3]
            assert batch[keys.TOKEN_IDS][row, : lengths[row]].tolist() == whole
        assert batch[keys.TARGET_LABELS][:, :3].tolist() == [[40, 41, 3]] * BATCH
        assert batch[keys.TARGET_WEIGHTS].sum() == 3 * BATCH


def test_parts_of_a_batch_are_padded_to_the_widest():
    tokenizer = PlainTokenizer(100, pad_id=7)
    context = Context(tokenizer, sequence_length=32)
    head = SequenceToSequence(context, target_length=12, prefix="93")
    short = MemoryRows([([10], '["20"]')] * BATCH)
    task = PrefixedRows(
        MemoryRows([([11] * 15, "21 " * 10)] * BATCH), "label", "", np.array([90], np.int32)
    )
    data = {"own": (short, 0.5), "other": (task, 0.5)}
    batch = batches(data, [head], context, 2 * BATCH, seed=0, once=True).batch(0)
    assert batch[keys.TOKEN_IDS].shape == (2 * BATCH, 20)
    fed = batch[keys.TOKEN_IDS][batch[keys.PADDING_MASK] == 0]
    assert len(fed) == BATCH * (20 - 18) + BATCH * (20 - 4)
    assert set(fed.tolist()) == {7}
    for key in (keys.TARGET_IDS, keys.TARGET_LABELS):
        assert set(batch[key][batch[keys.TARGET_MASK] == 0].tolist()) == {7}
    assert batch[keys.TARGET_WEIGHTS][batch[keys.TARGET_MASK] == 0].sum() == 0


def test_the_rows_of_other_splits_do_not_change_what_is_learnt():
    """Targets are kept by dataset: dev rows are asked between batches that a thread makes ahead."""
    head = SequenceToSequence(CONTEXT, target_length=4, prefix="93")
    train, dev = MemoryRows([([10], '["20"]')]), MemoryRows([([10], '["30"]')])
    every = np.array([0])
    found = [
        head.segments(each, every, np.random.default_rng(0))[keys.TARGET_LABELS][0, 0]
        for each in (train, dev, train, dev)
    ]
    assert found == [20, 30, 20, 30]


def test_a_prefix_that_leaves_no_room_is_told_with_its_place():
    head = SequenceToSequence(CONTEXT, target_length=4, prefix="93")
    task = PrefixedRows(rows("small"), "text", "mixture.beside.small", np.full(24, 90, np.int32))
    with pytest.raises(RecipeError, match=r"mixture\.beside\.small: 24 tokens leave no room .* 28"):
        head.index(task, np.random.default_rng(0))


def test_the_prefixes_of_all_tasks_are_known_the_own_first():
    head = {"sequence_to_sequence": {"beams": 2, "prefix": "93"}}
    beside = {name: {"prefix": p, "answers": "label"} for name, p in PREFIXES.items()}
    config: dict[str, Any] = {"head": head, "mixture": {"beside": beside, "limit": None}}
    assert known_prefixes(config) == ["93", "90", "91 92"]
    assert known_prefixes({"head": head}) == ["93"]
    assert known_prefixes({"head": {"sequence_to_sequence": {"prefix": ""}}}) == []
    assert known_prefixes({"head": None}) == []
