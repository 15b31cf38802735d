"""Permutation LM: rows and places by hand, the chain rule over all orders, and what it equals."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import keras
import numpy as np
import pytest
from scipy.special import log_softmax

from fourstage.errors import ContractViolation, RecipeError
from models.families.transformer_xl import TransformerXL
from models.families.xlnet import XLNet
from models.inputs.display import shown
from models.inputs.noise import choose_spaced_spans
from models.layers.attention import causal_bias
from models.objectives.permutation_lm import PermutationLM, factorisation
from models.protocols import Context
from models.weights import load_weights, named_weights
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer, random_corpus

ops: Any = keras.ops
CLS, SEP = 2, 3
SIZE = {"num_layers": 3, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 12, "dropout": 0.0}


def made(vocabulary_size: int = 30, **settings: Any) -> Any:
    """A network with random weights of unit size."""
    network = XLNet(vocabulary_size=vocabulary_size, **(SIZE | settings))
    rng = np.random.default_rng(0)
    named = named_weights(network)
    load_weights(
        network, {n: rng.normal(0, 0.4, v.shape).astype("float32") for n, v in named.items()}
    )
    return network


def log_p(network: Any, batch: dict[str, np.ndarray]) -> np.ndarray:
    """Log probability of the token at each query position, (B, M)."""
    scorer = PermutationLM(Context(PlainTokenizer(30), 12)).attach(network)
    _, predicted = scorer(batch, network(batch))
    logits = ops.convert_to_numpy(predicted["token_logits"]).astype(np.float64)
    labels = np.take_along_axis(batch["token_ids"], batch["query_positions"], 1)
    return np.take_along_axis(log_softmax(logits, -1), labels[:, :, None], 2)[:, :, 0]


def asked(ids: np.ndarray, places: np.ndarray, at: np.ndarray | None = None) -> dict:
    """A batch in which the tokens `at` some positions, by default all, are predicted."""
    everywhere = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
    at = everywhere if at is None else at
    arrays = {"token_ids": ids, "factorisation": places, "query_positions": at}
    return {key: np.ascontiguousarray(value, np.int32) for key, value in arrays.items()}


def rows_of(objective: PermutationLM, corpus: Any, seed: int = 0) -> tuple[Any, dict, dict]:
    rng = np.random.default_rng(seed)
    index = objective.index(corpus, rng)
    clean = objective.segments(corpus, index.entries, rng)
    np.testing.assert_array_equal(clean["padding_mask"].sum(axis=1), index.lengths)
    return index, clean, objective.examples(clean, rng)


# The factorisation


def test_for_every_order_of_four_tokens_the_two_streams_give_one_distribution():
    """Σ over all texts of Π p = 1 for each order: no token sees itself or a later one."""
    network = made(vocabulary_size=3)
    texts = np.array(list(product(range(3), repeat=4)), np.int32)
    orders = np.array(list(permutations(range(1, 5))), np.int32)
    ids = np.tile(texts, (len(orders), 1))
    places = np.repeat(orders, len(texts), axis=0)
    total = np.exp(log_p(network, asked(ids, places)).sum(axis=1)).reshape(len(orders), -1)
    np.testing.assert_allclose(total.sum(axis=1), 1.0, atol=1e-5)
    # The orders are different models of one text: their probabilities are not all the same.
    assert np.ptp(total[:, 5]) > 1e-4


def test_for_every_order_of_four_tokens_one_pass_is_the_chain_rule():
    """Each factor equals that of a pass of its own, in which what comes later is other tokens."""
    network = made()
    orders = np.array(list(permutations(range(1, 5))), np.int32)
    ids = np.tile(np.array([[7, 11, 13, 17]], np.int32), (len(orders), 1))
    together = log_p(network, asked(ids, orders))
    other = np.random.default_rng(5)
    for place in range(1, 5):
        noise = other.integers(18, 30, ids.shape)
        known = np.where(orders < place, ids, noise)
        at = np.argmax(orders == place, axis=1)[:, None]
        known[np.arange(len(ids)), at[:, 0]] = ids[np.arange(len(ids)), at[:, 0]]
        alone = log_p(network, asked(known, orders, at))[:, 0]
        expected = np.take_along_axis(together, at, 1)[:, 0]
        np.testing.assert_allclose(alone, expected, atol=1e-5)


def test_the_query_stream_does_not_see_its_own_token_and_the_content_stream_does():
    network = made()
    ids = np.random.default_rng(1).integers(5, 30, (1, 6)).astype(np.int32)
    places = np.array([[0, 2, 0, 1, 0, 3]], np.int32)
    changed = ids.copy()
    changed[0, 1] = 5 + (ids[0, 1] - 4) % 20
    one, two = (network(asked(each, places)) for each in (ids, changed))
    content, query = (
        np.abs(ops.convert_to_numpy(one[key] - two[key])).max(axis=-1)[0] > 1e-7
        for key in ("sequence_output", "query_output")
    )
    assert content.tolist() == [False, True, False, False, False, True]
    assert query.tolist() == [False, False, False, False, False, True]


@pytest.mark.filterwarnings("ignore:You are using a softmax")  # over a row of one token
def test_with_the_identity_as_order_it_is_a_causal_model_that_reads_a_row_cut_at_each_border():
    network = made()
    ids = np.random.default_rng(2).integers(5, 30, (3, 7)).astype(np.int32)
    identity = np.tile(np.arange(7), (3, 1))
    bias = network.seen(asked(ids, identity), None)["bias"]
    np.testing.assert_array_equal(
        ops.convert_to_numpy(bias)[0], ops.convert_to_numpy(causal_bias(7))[0]
    )
    together = log_p(network, asked(ids, identity))
    for border in range(7):
        cut, at = ids[:, : border + 1], np.full((3, 1), border)
        alone = log_p(network, asked(cut, identity[:, : border + 1], at))
        np.testing.assert_allclose(alone[:, 0], together[:, border], atol=1e-5)
    causal = TransformerXL(
        vocabulary_size=30,
        **SIZE,
        activation="gelu_tanh",
        layer_norm_epsilon=1e-12,
        tied_biases=False,
        same_length="never",
        clamp_length=0,
    )
    weights = {name: np.asarray(value) for name, value in named_weights(network).items()}
    weights = {name: weights[name] for name in named_weights(causal)}
    weights["embeddings/token/embeddings"] = weights["embeddings/token/embeddings"] / 8**0.5
    load_weights(causal, weights)
    content = network(asked(ids, identity))["sequence_output"]
    expected = causal({"token_ids": ids})["sequence_output"]
    np.testing.assert_allclose(content, expected, atol=1e-5)


def test_a_later_half_is_unseen_by_the_first_whose_states_alone_are_remembered():
    context = Context(PlainTokenizer(100), 16, remembers=True)
    network = made(vocabulary_size=100, memory_length=10)
    _, _, batch = rows_of(PermutationLM(context), random_corpus(20, 100, seed=2))
    batch = {key: value[:4] for key, value in batch.items() if key != "unit_starts"}
    assert batch["remembered"].tolist() == [8] * 4
    memory = {key: np.zeros((4, *s), np.float32) for key, s in network.memory.items()}
    changed = batch["token_ids"].copy()
    changed[:, 8:] = 5 + (changed[:, 8:] + 7) % 90
    one, two = (
        network(batch | memory | {"token_ids": ids}) for ids in (batch["token_ids"], changed)
    )
    state = ops.convert_to_numpy(one["sequence_output"])
    first = state[:, :8] == ops.convert_to_numpy(two["sequence_output"])[:, :8]
    assert first.all()
    assert (ops.convert_to_numpy(one["memory_mask"]).sum(axis=1) == 8).all()
    embedded = ops.convert_to_numpy(network.embed(batch))
    np.testing.assert_array_equal(one["memory"][:, 0, 2:], embedded[:, :8])


# The rows and what is predicted


def test_rows_go_on_from_half_to_half_and_a_follows_the_running_text():
    context = Context(PlainTokenizer(100), 16, remembers=True)
    objective = PermutationLM(context, random_share=0.0)
    corpus = MemoryCorpus([[list(range(10, 60))]])
    index, clean, _ = rows_of(objective, corpus)
    stream = [CLS, *range(10, 60), SEP]
    assert index.entries["start"].tolist() == [0, 8, 16, 24, 32]
    for row, (start, cut, _) in enumerate(index.entries.tolist()):
        border = start + 8 + cut
        expected = [*stream[start : start + 8], CLS, *stream[start + 8 : border], SEP]
        expected += [*stream[border : start + 13], SEP]
        assert clean["token_ids"][row].tolist() == expected
        assert clean["segment_ids"][row].tolist() == [0] * (10 + cut) + [1] * (6 - cut)


def test_without_memory_a_row_is_a_pair_and_a_second_part_may_come_from_elsewhere():
    objective = PermutationLM(Context(PlainTokenizer(100), 16), random_share=1.0)
    corpus = random_corpus(30, 100, seed=3)
    index, clean, batch = rows_of(objective, corpus)
    assert "remembered" not in clean
    assert index.details["random"] == 1.0
    assert (clean["token_ids"][:, 0] == CLS).all()
    assert (clean["token_ids"][:, -1] == SEP).all()
    assert batch["query_positions"].shape == (len(index), 3)  # 16 / 6, rounded up


def test_a_second_part_may_be_the_last_tokens_of_the_corpus_and_is_as_long_there():
    objective = PermutationLM(Context(PlainTokenizer(100), 16), random_share=1.0)
    corpus = MemoryCorpus([[list(range(10, 25))]])  # with [CLS] and [SEP] 17 tokens
    ends = set()
    for seed in range(200):
        index, _, _ = rows_of(objective, corpus, seed)  # no row is shorter than it says
        ends |= {int(entry["other"] + objective.room - entry["cut"]) for entry in index.entries}
    assert max(ends) == 17


def test_special_tokens_and_padding_are_never_predicted_and_always_seen_in_their_half():
    context = Context(PlainTokenizer(100), 24, remembers=True)
    corpus = random_corpus(30, 100, seed=4, sentences=(1, 3), words=(2, 5))
    _, clean, batch = rows_of(PermutationLM(context), corpus)
    special = np.isin(clean["token_ids"], (0, CLS, SEP))
    places = batch["factorisation"]
    assert special[:, 1:-1].any()
    assert (places[:, :12][special[:, :12]] == 0).all()
    assert (places[:, 12:][special[:, 12:]] == 25).all()
    used = batch["query_weights"] > 0
    assert (np.take_along_axis(special, batch["query_positions"], 1) & used).sum() == 0
    np.testing.assert_array_equal(batch["token_ids"], clean["token_ids"])  # no [MASK]
    expected = np.take_along_axis(clean["token_ids"], batch["query_positions"], 1)
    np.testing.assert_array_equal(batch["query_labels"][used], expected[used])


def test_places_are_an_order_of_the_chosen_and_every_order_comes():
    chosen = np.zeros((600, 5), bool)
    chosen[:, [0, 2, 4]] = True
    places = factorisation(chosen, np.random.default_rng(0))
    assert not places[:, [1, 3]].any()
    orders = {tuple(row) for row in places[:, [0, 2, 4]].tolist()}
    assert orders == set(permutations((1, 2, 3)))


def test_spans_have_six_times_their_length_of_context_and_short_ones_are_likelier():
    rng = np.random.default_rng(0)
    may_choose = np.ones((400, 700), bool)
    chosen = choose_spaced_spans(may_choose, np.full(400, 1000), rng)
    # A budget that no row exhausts, filled up at random: look at what the spans alone give.
    assert (chosen.sum(axis=1) == 700).all()
    chosen = choose_spaced_spans(may_choose, np.full(400, 60), rng)
    assert (chosen.sum(axis=1) == 60).all()
    edges = np.diff(np.pad(chosen, ((0, 0), (1, 1))).astype(int), axis=1)
    first = np.nonzero(edges == 1)
    lengths = np.nonzero(edges == -1)[1] - first[1]
    # Before the budget ends, a span may touch the next one: look at each row's first alone.
    heads = [lengths[first[0] == row][0] for row in range(400)]
    share = np.bincount(heads, minlength=6)[1:6] / 400
    expected = 1 / np.arange(1, 6) / (1 / np.arange(1, 6)).sum()
    assert (np.abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / 400)).all()
    begins = np.array([first[1][first[0] == row][0] for row in range(400)])
    assert all(begin < 6 * size for begin, size in zip(begins, heads, strict=True))


def test_a_shown_row_has_its_places_its_targets_and_what_they_see():
    context = Context(PlainTokenizer(), 12)
    batch = {
        "token_ids": np.array([[CLS, 10, 11, 12, SEP]], np.int32),
        "segment_ids": np.zeros((1, 5), np.int32),
        "padding_mask": np.ones((1, 5), np.int32),
        "factorisation": np.array([[0, 2, 0, 1, 0]], np.int32),
        "query_positions": np.array([[1, 3, 0]], np.int32),
        "query_labels": np.array([[10, 12, 0]], np.int32),
        "query_weights": np.array([[1, 1, 0]], np.float32),
    }
    lines = {
        line.split("  ")[0]: line.split()
        for line in shown(batch, batch, 0, context.tokenizer).splitlines()
    }
    assert lines["place"][1:] == ["0", "2", "0", "1", "0"]
    assert lines["query"][1:] == ["10", "12"]
    assert lines["sees 1"][2:] == ["·", "·", "?", "·"]
    assert lines["sees 2"][2:] == ["·", "?", "·", "·", "·"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"longest_span": 0}, "longest_span: expected a whole number from 1, got 0"),
        ({"spacing": 0}, "spacing: expected a whole number from 1, got 0"),
        ({"random_share": 1.5}, "random_share: expected a share from 0 to 1, got 1.5"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, said):
    with pytest.raises(RecipeError, match=said):
        PermutationLM(Context(PlainTokenizer(), 16), **settings)


def test_too_little_text_is_refused_with_the_numbers():
    objective = PermutationLM(Context(PlainTokenizer(), 16, remembers=True))
    with pytest.raises(ContractViolation, match=r"expected 10 tokens of text or more.* got 6"):
        objective.index(MemoryCorpus([[[5, 6, 7, 8]]]), np.random.default_rng(0))
