"""N-grams: every probability by brute force, sums of 1, counts that add up in any division."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fourstage.errors import ContractViolation, Interrupted, RecipeError
from models.counting import ngrams, sums
from models.counting.smoothing import modified_discounts
from models.families.ngram import SMOOTHINGS, NGram
from models.stage_format import METRICS, NETWORK
from models.training.stage import Phase
from models.training.trained_stage import config_of
from models.training.trainer import train
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer
from tests.models.training.memory import pretraining

TOKENIZER: Any = PlainTokenizer(vocabulary_size=10)
BEGIN, END, UNKNOWN = TOKENIZER.cls_id, TOKENIZER.sep_id, TOKENIZER.unknown_id
WORDS = (5, 6, 7, 8, 9)
EVENTS = (*WORDS, UNKNOWN, END)
ORDERS = (1, 2, 3, 4)


def corpus(documents: int = 12, seed: int = 0, words: tuple[int, ...] = WORDS[:-1]) -> MemoryCorpus:
    """Text in which the last word never is, and others are of unequal frequency."""
    rng = np.random.default_rng(seed)
    shares = 0.5 ** np.arange(1 + len(words))
    return MemoryCorpus(
        [
            [rng.choice((*words, UNKNOWN), rng.integers(1, 12), p=shares / shares.sum()).tolist()]
            for _ in range(documents)
        ]
    )


def stage(folder: Path, text: MemoryCorpus, before: Path | None = None, **network: Any) -> Path:
    job = pretraining(
        family="ngram",
        network=network,
        tokenizer=TOKENIZER,
        objectives={"causal_lm": {}},
        phases=[Phase(16)],
        corpora={"one": (text, 1.0)},
        initial=before,
    )
    train(job, folder)
    return folder


def probabilities(folder: Path, text: list[tuple[int, ...]]) -> np.ndarray:
    """Of the last token of each n-gram after the others."""
    config = config_of(folder)
    family = NGram(vocabulary_size=config["vocabulary_size"], **config["network"])
    keys = [family.packing.ngrams(np.array(ngram)) for ngram in text]
    return family._model(folder, TOKENIZER).probabilities(np.concatenate(keys))


class Naive:
    """The equations, word by word, over the list of all n-grams of the text."""

    def __init__(self, text: MemoryCorpus, order: int, smoothing: str, settings: dict[str, Any]):
        self.order, self.smoothing, self.settings = order, smoothing, settings
        whole: list[tuple[int, ...]] = []
        for i in range(len(text)):
            ids = [BEGIN] * (order - 1) + [*text.document(i)[0].tolist(), END]
            whole += [tuple(ids[t - order + 1 : t + 1]) for t in range(order - 1, len(ids))]
        self.counts: dict[int, Counter] = {order: Counter(whole)}
        for k in range(order - 1, 0, -1):
            if "kneser_ney" in smoothing:  # after how many different tokens
                self.counts[k] = Counter(longer[1:] for longer in self.counts[k + 1])
            else:
                self.counts[k] = Counter(ngram[order - k :] for ngram in whole)
        self.discounts = {k: self._discounts(Counter(c.values())) for k, c in self.counts.items()}
        self.following: dict[tuple[int, ...], dict[int, int]] = defaultdict(dict)
        for counts in self.counts.values():
            for ngram, count in counts.items():
                self.following[(len(ngram), *ngram[:-1])][ngram[-1]] = count

    def _discounts(self, n: Counter) -> tuple[float, ...]:
        if "discounts" in self.settings:
            given = self.settings["discounts"]
            return tuple(given * 3 if len(given) == 1 else given)
        if self.smoothing == "interpolated_kneser_ney":
            return (n[1] / (n[1] + 2 * n[2]),) * 3 if n[1] and n[2] else (0.75,) * 3
        if not (n[1] and n[2] and n[3]):
            return (0.5, 1.0, 1.5)
        y = n[1] / (n[1] + 2 * n[2])
        found = 1 - 2 * y * n[2] / n[1], 2 - 3 * y * n[3] / n[2], 3 - 4 * y * n[4] / n[3]
        return (
            found
            if all(0 <= d <= i for i, d in zip((1, 2, 3), found, strict=True))
            else (0.5, 1.0, 1.5)
        )

    def of(self, ngram: tuple[int, ...]) -> float:
        k, after = len(ngram), self.following.get((len(ngram), *ngram[:-1]), {})
        if self.smoothing == "add_k":
            added = self.settings["k"]
            return (after.get(ngram[-1], 0) + added) / (sum(after.values()) + added * len(EVENTS))
        shorter = self.of(ngram[1:]) if k > 1 else 1 / len(EVENTS)
        if not after:
            return shorter
        count, total = after.get(ngram[-1], 0), sum(after.values())
        if self.smoothing == "maximum_likelihood":
            return count / total
        if self.smoothing == "interpolated":
            share = self.settings["longer_share"]
            return share * count / total + (1 - share) * shorter
        of_order = self.discounts[k]
        kept = max(count - of_order[min(count, 3) - 1], 0) if count else 0
        freed = sum(of_order[min(c, 3) - 1] for c in after.values())
        return kept / total + freed / total * shorter


SETTINGS: dict[str, dict[str, Any]] = {
    "maximum_likelihood": {},
    "add_k": {"k": 0.3},
    "interpolated": {"longer_share": 0.7},
    "interpolated_kneser_ney": {},
    "modified_kneser_ney": {},
}


@cache
def histories(order: int) -> list[tuple[int, ...]]:
    """All there are: of words, those of a beginning, and some that no text has."""
    return list(product((BEGIN, *EVENTS), repeat=order - 1))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_every_probability_is_that_of_the_equations_and_they_sum_to_one(
    smoothing: str, order: int, tmp_path: Path
) -> None:
    text, settings = corpus(60), SETTINGS[smoothing]
    stage(tmp_path / "s", text, order=order, smoothing=smoothing, **settings)
    naive = Naive(text, order, smoothing, settings)
    asked = [(*history, event) for history in histories(order) for event in EVENTS]
    found = probabilities(tmp_path / "s", asked)
    expected = np.array([naive.of(ngram) for ngram in asked])
    assert np.abs(found - expected).max() < 1e-14
    assert np.abs(found.reshape(-1, len(EVENTS)).sum(axis=1) - 1).max() < 1e-14
    assert (found >= 0).all()
    if smoothing != "maximum_likelihood":
        assert (found > 0).all()


@pytest.mark.parametrize("discounts", [None, [0.1, 1.2, 2.0]])
def test_discounts_are_estimated_where_counts_allow_it(
    discounts: list[float] | None, tmp_path: Path
) -> None:
    given: dict[str, Any] = {} if discounts is None else {"discounts": discounts}
    text, asked = corpus(200), [(5, 6, event) for event in EVENTS]
    stage(tmp_path / "s", text, order=3, **given)
    naive = Naive(text, 3, "modified_kneser_ney", given)
    expected = [naive.of(ngram) for ngram in asked]
    assert probabilities(tmp_path / "s", asked) == pytest.approx(expected, rel=1e-12)


def test_discounts_by_hand() -> None:
    # Y = 8 / (8 + 2 · 4) = 1/2; D1 = 1 - 2·½·4/8; D2 = 2 - 3·½·2/4; D3 = 3 - 4·½·1/2.
    assert modified_discounts(np.array([8, 4, 2, 1])) == (0.5, 1.25, 2.0)
    assert modified_discounts(np.array([8, 4, 0, 1])) is None
    assert modified_discounts(np.array([8, 1, 9, 1])) is None  # D2 would be negative


def test_orders_without_estimated_discounts_are_named(tmp_path: Path) -> None:
    # Both words follow both of them or a beginning, so no word follows just one token.
    text = MemoryCorpus([[[5, 5, 6, 6, 5]], [[6, 5]]])
    stage(tmp_path / "s", text, order=2, smoothing="interpolated_kneser_ney")
    metrics = json.loads((tmp_path / "s" / METRICS).read_text("utf-8"))
    assert metrics["orders_without_estimated_discounts"] == [1]
    assert metrics["discounts"][0] == [0.75] * 3


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_chunks_on_disk_give_the_same_file_as_memory(
    smoothing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = stage(tmp_path / "one", corpus(40), smoothing=smoothing) / NETWORK
    again = stage(tmp_path / "again", corpus(40), smoothing=smoothing) / NETWORK
    assert one.read_bytes() == again.read_bytes()
    for function in (sums.summed, ngrams.orders):
        monkeypatch.setitem(function.__kwdefaults__, "most", 5)  # type: ignore[arg-type]
    monkeypatch.setattr(ngrams, "STREAM", 7)
    monkeypatch.setattr(ngrams.texts, "__defaults__", (7,))
    monkeypatch.setattr(sums.KeyedSums.blocks, "__defaults__", (3,))
    many = stage(tmp_path / "many", corpus(40), smoothing=smoothing)
    assert (many / NETWORK).read_bytes() == one.read_bytes()
    assert sorted(path.name for path in many.iterdir()) == sorted(
        path.name for path in one.parent.iterdir()
    ), "nothing is left of the counting"


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_stage_after_stage_counts_as_both_at_once(smoothing: str, tmp_path: Path) -> None:
    first, second = corpus(20, 1), corpus(9, 2, WORDS)
    stage(tmp_path / "first", first, smoothing=smoothing)
    stage(tmp_path / "second", second, tmp_path / "first", smoothing=smoothing)
    both = MemoryCorpus(
        [[text.document(i)[0].tolist()] for text in (first, second) for i in range(len(text))]
    )
    stage(tmp_path / "both", both, smoothing=smoothing)
    assert (tmp_path / "second" / NETWORK).read_bytes() == (
        tmp_path / "both" / NETWORK
    ).read_bytes()


def test_keys_of_bytes_give_the_probabilities_of_keys_of_numbers(tmp_path: Path) -> None:
    text = corpus(30)
    numbers = stage(tmp_path / "numbers", text, order=4)
    asked = [(*history, event) for history in histories(3) for event in EVENTS]
    asked = [(BEGIN, *ngram) for ngram in asked]
    expected = probabilities(numbers, asked)
    wide = NGram(vocabulary_size=2**20, order=4)
    assert not wide.packing.in_numbers
    keys = np.concatenate([t.ngrams(wide.packing) for t in ngrams.texts(text, 4, BEGIN, END)])
    longest = sums.summed([(keys, np.ones((len(keys), 1), np.int64))], tmp_path)
    tables = ngrams.orders(longest, wide.packing, tmp_path, continuations=True)
    model = NGram(vocabulary_size=10, order=4)._model(numbers, TOKENIZER)
    found = type(model)(tables, wide.packing, model.smoothing, model.num_events).probabilities(
        np.concatenate([wide.packing.ngrams(np.array(ngram)) for ngram in asked])
    )
    assert np.array_equal(found, expected)


def test_held_out_loss_is_the_mean_over_tokens_and_ends_of_documents(tmp_path: Path) -> None:
    text, held_out = corpus(40), corpus(15, 3, WORDS)
    stage(tmp_path / "s", text, order=3)
    naive = Naive(text, 3, "modified_kneser_ney", {})
    nats: list[list[float]] = []
    for i in range(len(held_out)):
        ids = [BEGIN, BEGIN, *held_out.document(i)[0].tolist(), END]
        nats.append([-math.log(naive.of(tuple(ids[t - 2 : t + 1]))) for t in range(2, len(ids))])
    (found,) = NGram.heldout_losses(tmp_path / "s", TOKENIZER, {"text": held_out}).values()
    assert found["loss"] == pytest.approx(np.mean(np.concatenate(nats)), rel=1e-12)
    mean = np.mean(np.concatenate(nats))
    left = [sum(each) - mean * len(each) for each in nats]
    error = math.sqrt(15 / 14 * np.square(left).sum()) / sum(map(len, nats))
    assert found["error"] == pytest.approx(error, rel=1e-9)


def test_a_text_that_maximum_likelihood_calls_impossible_is_left_out_with_the_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage(tmp_path / "s", corpus(20), smoothing="maximum_likelihood")
    unseen = MemoryCorpus([[[5, 9]], [[5]]])
    asked = {"seen": corpus(20), "unseen": unseen}
    assert list(NGram.heldout_losses(tmp_path / "s", TOKENIZER, asked)) == ["seen"]
    told = " ".join("".join(capsys.readouterr()).split())
    assert "no probability: its loss is infinite and left out" in told
    assert "of 5 held-out tokens of unseen" in told


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ({"order": 0}, "size.order: expected 1 or more, got 0"),
        ({"smoothing": "witten_bell"}, "size.smoothing: expected one of maximum_likelihood"),
        ({"smoothing": "add_k", "k": 0.0}, "size.k: expected a number above 0"),
        ({"longer_share": 1.5}, "size.longer_share: expected a share"),
        ({"discounts": [0.5]}, "size.discounts: expected three numbers"),
        ({"discounts": [0.5, 1.0, 3.5]}, "the i-th from 0 to i"),
        ({"smoothing": "interpolated_kneser_ney", "discounts": [2.0]}, "a number from 0 to 1"),
    ],
)
def test_a_setting_out_of_range_is_refused_with_what_is_expected(
    network: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(RecipeError, match=said):
        stage(tmp_path / "s", corpus(), **network)


def test_an_order_longer_than_every_document_and_no_text_are_refused(tmp_path: Path) -> None:
    short = MemoryCorpus([[[5, 6]], [[7]]])
    with pytest.raises(ContractViolation, match="the longest has 3 tokens with its end"):
        stage(tmp_path / "s", short, order=4)
    stage(tmp_path / "s", short, order=3)
    with pytest.raises(ContractViolation, match="no tokens to count"):
        stage(tmp_path / "t", MemoryCorpus([[[]]]))


def test_counts_of_another_order_cannot_be_added_to(tmp_path: Path) -> None:
    stage(tmp_path / "s", corpus(), order=2)
    with pytest.raises(RecipeError, match="expected a stage before of order 3, got 2"):
        stage(tmp_path / "t", corpus(), tmp_path / "s", order=3)


def test_a_deadline_stops_it_and_the_next_run_counts_all(tmp_path: Path) -> None:
    job = pretraining(
        family="ngram",
        network={},
        tokenizer=TOKENIZER,
        objectives={"causal_lm": {}},
        corpora={"one": (corpus(), 1.0)},
        deadline_seconds=0.0,
    )
    with pytest.raises(Interrupted, match="stopped by the deadline"):
        train(job, tmp_path / "s")
    whole = stage(tmp_path / "whole", corpus()) / NETWORK
    assert (stage(tmp_path / "s", corpus()) / NETWORK).read_bytes() == whole.read_bytes()
