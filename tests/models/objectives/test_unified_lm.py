"""Unified language modelling: rows by hand in each mode, the mixture, and what the loss adds up."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fourstage.errors import ContractViolation, RecipeError
from models.families.unilm import Unilm
from models.modes import Mode
from models.objectives.unified_lm import UnifiedLM
from models.protocols import Context
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer, random_corpus
from tests.models.scripted_chance import ScriptedChance

CLS, SEP, MASK = 2, 3, 4
CONTEXT = Context(PlainTokenizer(100), sequence_length=12)
# Two documents of 11 tokens in three sentences each.
CORPUS = MemoryCorpus(
    [
        [[10, 11, 12], [13, 14, 15, 16], [17, 18, 19, 20]],
        [[30, 31, 32, 33], [34, 35, 36], [37, 38, 39, 40]],
    ]
)
ONE_MODE = {mode.name.lower(): 0 for mode in Mode}
RNG = np.random.default_rng(0)


def only(mode: Mode, **more) -> UnifiedLM:
    return UnifiedLM(CONTEXT, **{**ONE_MODE, mode.name.lower(): 1, **more})


# Numbers for one pair of each document: not short, A is the first sentence, B is what follows.
PAIRS = [[0.5, 0.0, 0.9] * 2 + [0.5] * ((1 << 14) - 6)]


@pytest.mark.parametrize(
    ("mode", "rows", "segments"),
    [
        (
            # Room for 9 of 11 tokens: the second text loses two, one in front and one behind.
            Mode.SEQUENCE_TO_SEQUENCE,
            [CLS, 10, 11, 12, SEP, 14, 15, 16, 17, 18, 19, SEP],
            [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1],
        ),
        # One segment has room for 10 tokens, without a gap.
        (Mode.LEFT_TO_RIGHT, [CLS, *range(10, 20), SEP], [0] * 12),
        (Mode.RIGHT_TO_LEFT, [CLS, *range(10, 20), SEP], [0] * 12),
    ],
)
def test_rows_of_twelve_tokens_by_hand(mode, rows, segments):
    made = only(mode)
    index = made.index(CORPUS, _Scripted(PAIRS, cuts=([0, 0], [1, 1])))
    batch = made.segments(CORPUS, index.entries[:1], RNG)
    assert batch["token_ids"].tolist() == [rows]
    assert batch["segment_ids"].tolist() == [segments]
    assert batch["modes"].tolist() == [mode]
    assert index.lengths[0] == 12
    assert "next_sentence_labels" not in batch


class _Scripted(ScriptedChance):
    """Chance by hand for the pairs; the order of modes is as they come."""

    def __init__(self, numbers: list[list[float]], cuts: tuple[list[int], list[int]]):
        super().__init__(*numbers, *cuts)

    def permutation(self, x, axis=0):
        return np.arange(x)


def test_half_of_the_bidirectional_rows_have_a_second_text_from_elsewhere():
    corpus = random_corpus(60, 100, seed=2, sentences=(3, 9), words=(2, 6))
    made = only(Mode.BIDIRECTIONAL)
    index = made.index(corpus, np.random.default_rng(1))
    batch = made.segments(corpus, index.entries, RNG)
    labels = batch["next_sentence_labels"]
    first, second = index.entries["first"], index.entries["second"]
    assert ((first["document"] != second["document"]) == (labels == 1)).all()
    assert (batch["next_sentence_weights"] == 1).all()
    # Four standard deviations of a fair coin.
    assert abs(labels.mean() - 0.5) < 2 / np.sqrt(len(labels))


def test_tokens_and_runs_by_hand():
    # Candidates are places 1-3 and 5-10; 30 % of nine is 2.7, so the budget is 3.
    batch = {
        "token_ids": np.array([[CLS, 10, 11, 12, SEP, 13, 14, 15, 16, 17, 18, SEP]], np.int32),
        "segment_ids": np.array([[0] * 5 + [1] * 7], np.int32),
        "padding_mask": np.ones((1, 12), np.int32),
        "modes": np.array([Mode.SEQUENCE_TO_SEQUENCE], np.int32),
    }
    # The order of the draws: place 8, then place 2; a pair of tokens (0.85 is in [0.8, 0.9)), then
    # a single one: both texts are masked.
    order = [[0, 0.5, 0.2, 0.6, 0, 0.6, 0.7, 0.8, 0.1, 0.9, 0.9, 0]]
    lengths = [[0.85, 0.1, *[0.0] * 10]]
    dice = [[0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.85, 0.95, 0.0, 0.0]]
    drawn = [[0] * 8 + [72] + [0] * 3]  # ordinary ids start at 5: 77
    noised = UnifiedLM(CONTEXT, rate=0.3).examples(
        batch, ScriptedChance(order, lengths, dice, drawn)
    )
    expected = [[CLS, 10, MASK, 12, SEP, 13, 14, 15, 77, 17, 18, SEP]]
    assert noised["token_ids"].tolist() == expected
    assert noised["mask_positions"].tolist() == [[2, 8, 9, 0]]
    assert noised["mask_labels"].tolist() == [[11, 16, 17, 0]]
    assert noised["mask_weights"].tolist() == [[1, 1, 1, 0]]


numbers = st.tuples(*[st.sampled_from([0.0, 1.0, 2.0, 5.0])] * 4).filter(any)


@given(numbers, st.integers(0, 10**6), st.booleans())
@settings(max_examples=40)
def test_the_mixture_has_the_shares_that_were_asked_for(relative, seed, next_sentence):
    corpus = random_corpus(30, 100, seed=seed % 7, sentences=(2, 9), words=(2, 9))
    told = dict(zip(ONE_MODE, relative, strict=True))
    made = UnifiedLM(CONTEXT, **told, next_sentence=next_sentence)
    index = made.index(corpus, np.random.default_rng(seed))
    again = made.index(corpus, np.random.default_rng(seed))
    assert (index.entries == again.entries).all()
    counts = np.bincount(index.entries["mode"], minlength=4)
    wanted = np.array(relative) / sum(relative) * len(index)
    is_random = index.entries["relation"] == 1
    assert (index.entries["mode"][is_random] == Mode.BIDIRECTIONAL).all()
    if is_random.sum() <= wanted[Mode.BIDIRECTIONAL]:
        assert np.abs(counts - wanted).max() <= 1
    batch = made.segments(corpus, index.entries, RNG)
    assert (batch["padding_mask"].sum(axis=1) == index.lengths).all()
    assert index.lengths.max() <= 12
    ends = (batch["token_ids"] == SEP).sum(axis=1)
    one_way = np.isin(batch["modes"], (Mode.LEFT_TO_RIGHT, Mode.RIGHT_TO_LEFT))
    assert (ends == np.where(one_way, 1, 2)).all()


def test_by_default_a_third_a_third_a_sixth_and_a_sixth():
    corpus = random_corpus(200, 100, seed=1, sentences=(2, 9), words=(2, 9))
    made = UnifiedLM(CONTEXT)
    details = made.index(corpus, np.random.default_rng(0)).details
    shares = [details[f"{mode.name.lower()}_rows"] for mode in Mode]
    np.testing.assert_allclose(shares, [1 / 3, 1 / 6, 1 / 6, 1 / 3], atol=0.005)


def test_one_draw_in_five_is_a_run_of_two_or_three():
    context = Context(PlainTokenizer(2000), 128)
    ids = np.random.default_rng(0).integers(5, 2000, (2000, 128)).astype(np.int32)
    batch = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    made = UnifiedLM(context, rate=0.01, mask_share=1.0, random_share=0.0)
    chosen = made.examples(batch, np.random.default_rng(1))["token_ids"] == MASK
    assert (chosen.sum(axis=1) == 1).all()  # the budget of one cuts every run
    chosen = UnifiedLM(context, rate=0.025).examples(batch, np.random.default_rng(1))
    places = chosen["mask_positions"][:, :3]  # a budget of three: whole, whatever is drawn first
    together = (np.diff(places, axis=1) == 1).all(axis=1)
    # Three in a row: a trigram drawn first (0.1), or by chance from two draws (a per cent or so).
    assert abs(together.mean() - 0.1) < 0.03


def network() -> Unilm:
    keras.utils.set_random_seed(1)
    size = {"num_layers": 1, "hidden_dim": 16, "num_heads": 2, "intermediate_dim": 32}
    return Unilm(**size, vocabulary_size=100, max_sequence_length=12, dropout=0.0)


def test_the_loss_is_the_mean_over_tokens_and_that_over_bidirectional_rows():
    corpus = random_corpus(30, 100, seed=4, sentences=(2, 9), words=(2, 9))
    made, read = UnifiedLM(CONTEXT), network()
    scorer = made.attach(read)
    entries = made.index(corpus, np.random.default_rng(2)).entries[:24]
    batch = made.examples(made.segments(corpus, entries, RNG), np.random.default_rng(3))
    weights = np.r_[np.ones(20), np.zeros(4)].astype(np.float32)  # the last four only fill up
    scores, predicted = scorer(batch | {"row_weights": weights}, read(batch))
    logits = np.asarray(predicted["token_logits"], np.float64)
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    nats = -np.take_along_axis(log_p, batch["mask_labels"][..., None], axis=-1)[..., 0]
    used = batch["mask_weights"] * weights[:, None]
    tokens = (nats * used).sum() / used.sum()
    logits = np.asarray(predicted["next_sentence_logits"], np.float64)
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    asked = (batch["modes"] == Mode.BIDIRECTIONAL) & (weights > 0)
    right = log_p[np.arange(24), batch["next_sentence_labels"]]
    pairs = -right[asked].mean()
    means = {name: float(total) / float(weight) for name, (total, weight) in scores.items()}
    assert means["loss"] == pytest.approx(tokens + pairs, rel=1e-5)
    assert means["token_loss"] == pytest.approx(tokens, rel=1e-5)
    assert means["next_sentence_loss"] == pytest.approx(pairs, rel=1e-5)
    assert float(scores["next_sentence_loss"][1]) == asked.sum()


def test_without_bidirectional_rows_no_pairs_are_classified():
    made = only(Mode.SEQUENCE_TO_SEQUENCE)
    scorer = made.attach(network())
    assert all("pairs" not in weight.path for weight in scorer.weights)
    alone = MemoryCorpus([[[10, 11, 12], [13, 14]]])
    assert len(made.index(alone, RNG)) == 1  # nor is a second document needed
    with pytest.raises(ContractViolation, match="two documents or more"):
        UnifiedLM(CONTEXT).index(alone, RNG)
    with pytest.raises(ContractViolation, match="documents of two sentences"):
        made.index(MemoryCorpus([[[10, 11, 12]]]), RNG)


@pytest.mark.parametrize(
    "setting",
    [{"rate": 0.0}, {"mask_share": 0.95}, {"ngram_share": 1.5}, {"left_to_right": -1}, ONE_MODE],
)
def test_numbers_out_of_range_are_refused(setting):
    with pytest.raises(RecipeError, match="unified_lm"):
        UnifiedLM(CONTEXT, **setting)
