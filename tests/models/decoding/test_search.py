"""Searches against enumeration, and filters by hand."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest

from models.decoding.filters import NEVER, drawn_from, likeliest, log_softmax, repeats
from models.decoding.generate import generate
from models.decoding.search import Beams
from models.decoding.settings import Generation

STOP, SIZE = 0, 4


class Table:
    """A reader whose next token depends on the last two, by a table of logits."""

    longest = 40
    begin = ()

    def __init__(self, seed: int = 0):
        self.table = np.random.default_rng(seed).normal(0, 1.5, (SIZE + 1, SIZE + 1, SIZE))
        self.texts: list[list[int]] = []

    def logits(self, text: list[int]) -> np.ndarray:
        before, last = ([SIZE, SIZE, *text])[-2:]
        return self.table[before, last]

    def start(self, token_ids, padding_mask):
        self.texts = [
            ids[mask > 0].tolist() for ids, mask in zip(token_ids, padding_mask, strict=True)
        ]
        return np.stack([self.logits(text) for text in self.texts])

    def step(self, rows, token_ids):
        self.texts = [
            [*self.texts[row], int(token)] for row, token in zip(rows, token_ids, strict=True)
        ]
        return np.stack([self.logits(text) for text in self.texts])

    def log_probability(self, prompt: list[int], new: tuple[int, ...]) -> float:
        total, text = 0.0, list(prompt)
        for token in new:
            total += float(log_softmax(self.logits(text))[token])
            text.append(token)
        return total


def found(reader: Table, prompts: list[list[int]], **settings):
    return generate(reader, prompts, Generation(**settings), stops={STOP}, pad_id=0)


def every_ending(most: int):
    """All texts of up to `most` tokens that stop, and those of `most` that don't."""
    for length in range(most):
        for body in product(range(1, SIZE), repeat=length):
            yield (*body, STOP)
    yield from product(range(1, SIZE), repeat=most)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("penalty", "offset"), [(0.0, 0), (0.6, 0), (1.0, 0), (1.0, 5)])
def test_with_a_beam_for_every_text_the_best_of_all_is_found(seed, penalty, offset):
    reader, prompt, most = Table(seed), [1, 2], 4
    scores = {
        new: reader.log_probability(prompt, new) / (len(new) + offset) ** penalty
        for new in every_ending(most)
    }
    best = max(scores, key=scores.__getitem__)
    # A beam wide enough never drops a text, and no text may be judged before the others end.
    settings = {"length_penalty": penalty, "length_offset": offset, "max_new_tokens": most}
    (said,) = found(reader, [prompt], beams=300, **settings)
    assert said.tokens == tuple(token for token in best if token != STOP)
    assert said.stopped == (best[-1] == STOP)
    assert said.log_probability == pytest.approx(reader.log_probability(prompt, best))


def two_beams(*steps: list[list[float]], **settings) -> Beams:
    """Two beams after steps with these probabilities of the next token."""
    beams = Beams([1], {STOP}, Generation(beams=2, **settings))
    for p in steps:
        assert not beams.done
        beams.step(np.log(p))
    return beams


def test_an_end_that_is_not_among_the_likeliest_is_not_finished():
    beams = two_beams(
        [[0.15, 0.5, 0.3, 0.05]],  # its end is the third of four
        [[0.22, 0.25, 0.28, 0.25]] * 2,
        max_new_tokens=2,
        length_penalty=0.0,
    )
    assert beams.best.tokens == (1, 2)
    assert beams.best.log_probability == pytest.approx(np.log(0.5 * 0.28))


@pytest.mark.parametrize(("p", "done"), [(0.6, False), (0.4, True)])
def test_two_are_finished_and_one_that_is_better_at_its_length_goes_on(p, done):
    beams = two_beams(
        [[0.4, 0.35, 0.2, 0.05]],  # finished: nothing, ln .4
        # Finished: 2, ln (.2 · .75) / 2 = -.949; going on: 1 1, ln (.35 · .6) / 2 = -.780, or
        # ln (.35 · .4) / 2 = -.983, which at the longest length would be better.
        [[0.3, p, 0.5 - p / 2 - 0.15, 0.5 - p / 2 - 0.15], [0.75, 0.15, 0.05, 0.05]],
        max_new_tokens=9,
    )
    assert beams.done == done
    if not done:
        beams.step(np.log([[0.97, 0.01, 0.01, 0.01]] * 2))
    assert beams.best.tokens == (() if done else (1, 1))


@pytest.mark.parametrize("settings", [{}, {"beams": 3}, {"sample": True}])
def test_where_no_token_may_follow_a_text_ends_and_a_prompt_is_refused(settings):
    reader = Table(3)
    asked = {"no_repeat_ngram": 1, "min_new_tokens": 9, "max_new_tokens": 9, **settings}
    (said,) = found(reader, [[3]], **asked)  # of 0 to 3 there are 1 and 2 left
    assert sorted(said.tokens) == [1, 2]
    assert not said.stopped
    assert said.log_probability == pytest.approx(reader.log_probability([3], said.tokens))
    with pytest.raises(ValueError, match="prompt 1: no token may follow its 3 tokens: with no_rep"):
        found(reader, [[3], [2, 1, 3]], **asked)


def test_greedy_takes_the_likeliest_each_time_and_stops():
    for seed in range(8):
        reader, text = Table(seed), [3]
        (said,) = found(reader, [text], max_new_tokens=12)
        expected = []
        for _ in range(12):
            token = int(reader.logits([*text, *expected]).argmax())
            if token == STOP:
                break
            expected.append(token)
        assert said.tokens == tuple(expected)
        assert said.stopped == (len(expected) < 12)


@pytest.mark.parametrize("settings", [{}, {"beams": 3}, {"sample": True, "seed": 7}])
def test_what_follows_a_prompt_depends_on_no_other(settings):
    reader = Table(2)
    prompts = [[1], [2, 3, 1], [3, 3], [1, 1, 1, 2, 3], [2]]
    together = found(reader, prompts, max_new_tokens=9, **settings)
    alone = [found(reader, [prompt], max_new_tokens=9, **settings)[0] for prompt in prompts]
    assert together == alone
    few = generate(
        reader,
        prompts,
        Generation(max_new_tokens=9, **settings),
        stops={STOP},
        pad_id=0,
        batch_size=2,
    )
    assert together == few


def test_draws_have_the_probabilities_of_the_table():
    reader, count = Table(4), 2000
    said = [
        found(reader, [[1, 2]], sample=True, max_new_tokens=1, seed=seed)[0]
        for seed in range(count)
    ]
    drawn = np.bincount([s.tokens[0] if s.tokens else STOP for s in said], minlength=SIZE) / count
    expected = np.exp(log_softmax(reader.logits([1, 2])))
    error = np.sqrt(expected * (1 - expected) / count)
    assert (np.abs(drawn - expected) < 4 * error).all()


def test_filters_by_hand():
    p = np.log([0.5, 0.3, 0.15, 0.05])
    keep = lambda **s: drawn_from(p, Generation(sample=True, **s)).round(6).tolist()  # noqa: E731
    assert keep() == [0.5, 0.3, 0.15, 0.05]
    assert keep(top_k=2) == [0.625, 0.375, 0.0, 0.0]
    assert keep(top_p=0.8) == [0.625, 0.375, 0.0, 0.0]
    assert keep(top_p=0.81) == [0.526316, 0.315789, 0.157895, 0.0]
    assert keep(top_p=0.01) == [1.0, 0.0, 0.0, 0.0]
    cold = np.array([0.5, 0.3, 0.15, 0.05]) ** 2
    assert keep(temperature=0.5) == (cold / cold.sum()).round(6).tolist()
    assert drawn_from(np.where([1, 0, 1, 0], p, NEVER), Generation(sample=True))[1] == 0.0


@pytest.mark.parametrize("size", [1, 5, 31, 64, 1000, 4099])
def test_the_likeliest_are_those_that_come_first_when_all_are_sorted(size):
    rng = np.random.default_rng(size)
    for values in (rng.normal(size=size), rng.integers(0, 4, size) * 1.0, np.full(size, NEVER)):
        values = np.where(rng.random(size) < 0.2, NEVER, values)
        for count in {1, 2, 8, size // 40, size // 2, size} - {0}:
            expected = np.argsort(-values, kind="stable")[:count]
            np.testing.assert_array_equal(likeliest(values, count), expected)


def test_no_ngram_comes_twice():
    assert repeats([1, 2, 3, 1, 2], 3) == [3]
    assert repeats([1, 2, 3, 1, 2], 2) == [3]
    assert repeats([1, 1, 2, 1], 2) == [1, 2]
    assert repeats([1, 2, 1], 1) == [1, 2, 1]
    assert repeats([1, 2], 3) == []
    for beams in (1, 3):
        (said,) = found(
            Table(1),
            [[1, 2, 1]],
            beams=beams,
            no_repeat_ngram=2,
            min_new_tokens=8,
            max_new_tokens=8,
        )
        text = [1, 2, 1, *said.tokens]
        pairs = list(pairwise(text))
        assert len(pairs) == len(set(pairs))


@pytest.mark.parametrize("settings", [{}, {"beams": 3}, {"sample": True}])
def test_a_text_is_no_shorter_than_wanted(settings):
    for seed in range(6):
        (said,) = found(Table(seed), [[2]], min_new_tokens=5, max_new_tokens=9, **settings)
        assert len(said.tokens) >= 5


def test_without_a_finished_hypothesis_the_best_unfinished_one_is_given():
    (said,) = found(Table(), [[1]], beams=2, min_new_tokens=3, max_new_tokens=3)
    assert not said.stopped
    assert len(said.tokens) == 3


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens: expected a whole number from 1, got 0"),
        ({"beams": 1.5}, "beams: expected a whole number from 1, got 1.5"),
        ({"min_new_tokens": 9, "max_new_tokens": 4}, "expected at most max_new_tokens, 4, got 9"),
        ({"temperature": 0.0, "sample": True}, "temperature: expected a number above 0"),
        ({"temperature": math.inf, "sample": True}, "temperature: expected a number above 0, got"),
        ({"length_penalty": math.nan, "beams": 2}, "length_penalty: expected a number, got nan"),
        ({"top_p": 0.0, "sample": True}, r"top_p: expected a number in \(0, 1\]"),
        ({"top_k": 5}, "set sample"),
        ({"sample": True, "beams": 2}, "expected 1 where tokens are sampled, got 2"),
        ({"too_long": "shorten"}, "expected one of error, cut_left, got 'shorten'"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        Generation(**settings)


def test_prompts_that_do_not_fit_are_refused_before_any_work_or_cut_on_request():
    reader = Table()
    with pytest.raises(ValueError, match="prompt 1: it is empty"):
        found(reader, [[1], []], max_new_tokens=5)
    with pytest.raises(ValueError, match="prompt 0: 38 tokens, and 5 new ones are"):
        found(reader, [[1] * 38], max_new_tokens=5)
    with pytest.raises(ValueError, match="leave no room for a prompt"):
        found(reader, [[1]], max_new_tokens=41)
    assert not reader.texts
    found(reader, [[1] * 36], max_new_tokens=5)
    prompt = [1, 2, 3] * 20
    (cut,) = found(reader, [prompt], max_new_tokens=5, too_long="cut_left")
    assert cut == found(reader, [prompt[-36:]], max_new_tokens=5)[0]
    settings = Generation(max_new_tokens=5, too_long="cut_left")
    generate(reader, [[4, 0, *prompt]], settings, stops=(), pad_id=0, kept=2)
    assert reader.texts[0][:36] == [4, 0, *prompt[-34:]]


def test_a_prompt_read_apart_has_no_more_tokens_than_were_read_in_training():
    class Apart(Table):
        begin = (1,)

    reader, settings = Apart(), {"stops": {STOP}, "pad_id": 0, "longest_prompt": 30}
    with pytest.raises(ValueError, match=r"prompt 0: 31 tokens; the network reads 30 tokens\."):
        generate(reader, [[1] * 31], Generation(max_new_tokens=5), **settings)
    assert not reader.texts
    generate(reader, [[1] * 30], Generation(max_new_tokens=5), **settings)
    cut = Generation(max_new_tokens=1, too_long="cut_left")
    generate(reader, [[2, *[1] * 31]], cut, kept=1, **settings)
    assert reader.texts[0] == [2, *[1] * 29]
