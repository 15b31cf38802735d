"""Replaced token detection: replacements by hand in two languages, both losses in NumPy."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fourstage.errors import RecipeError, UnknownNameError
from models import catalogue
from models.objectives.replaced_token_detection import ReplacedTokenDetection, _sample
from models.protocols import Context
from models.training.stage_model import StageModel
from models.weights import load_weights, named_weights
from tests.models.memory_corpus import PlainTokenizer
from tests.models.objectives.twelve_tokens import CONTEXT, VOCABULARY, ids, row, words
from tests.models.scripted_chance import ScriptedChance

SIZE = {"num_layers": 1, "hidden_dim": 16, "num_heads": 2, "intermediate_dim": 32, "dropout": 0.0}
ENGLISH = "[CLS] un ##believ ##able news from new york city to ##day [SEP]".split()
CHINESE = ["[CLS]", *"我爱北京天安门和长城", "[SEP]"]


def attached(**given: Any) -> tuple[Any, ReplacedTokenDetection, Any]:
    keras.utils.set_random_seed(0)
    network = catalogue.find("families", "bert")(vocabulary_size=len(VOCABULARY), **SIZE)
    objective = ReplacedTokenDetection(CONTEXT, **given)
    return network, objective, objective.attach(network)


def always(scorer: Any, *tokens: str) -> None:
    """Make the generator give each of the tokens the same probability, and others none."""
    weights = {name: np.zeros(v.shape, "f4") for name, v in named_weights(scorer).items()}
    bias = weights["generator_head/output_bias"]
    bias[:] = -100.0
    bias[ids(list(tokens))] = 0.0
    load_weights(scorer, weights)


def chosen(tokens: list[str], places: list[int], draws: list[float], masked: list[int]) -> dict:
    """The examples of a row whose places are chosen, in their order."""
    order, dice = np.full((1, 12), 0.9), np.full((1, 12), 0.9)
    order[0, places], dice[0, masked] = 0.1, 0.0
    slots = np.zeros((1, 4))
    slots[0, : len(draws)] = draws
    chance = ScriptedChance(order, dice, slots)
    return ReplacedTokenDetection(CONTEXT, rate=0.3).examples(row(tokens), chance)


def numbers(value: Any) -> np.ndarray:
    return keras.ops.convert_to_numpy(value)


def test_english_by_hand():
    _, _, scorer = attached(rate=0.3)
    always(scorer, "news", "city")
    # Three of ten tokens; "news" is one of them and not hidden. Draws below one half give "news".
    batch = chosen(ENGLISH, [4, 6, 10], [0.2, 0.7, 0.1], masked=[6, 10])
    seen = "[CLS] un ##believ ##able news from [MASK] york city to [MASK] [SEP]"
    assert words(batch["generator_token_ids"][0]) == seen
    assert words(batch["token_ids"][0]) == " ".join(ENGLISH), "clean until the generator has run"
    assert batch["chosen_positions"].tolist() == [[4, 6, 10, 0]]
    after = numbers(scorer.prepare(batch, False)["token_ids"])
    assert words(after[0]) == "[CLS] un ##believ ##able news from city york city to news [SEP]"


def test_chinese_by_hand_where_a_sample_that_is_right_is_no_replacement():
    network, _, scorer = attached(rate=0.3)
    always(scorer, "北", "长")
    batch = chosen(CHINESE, [3, 4, 9], [0.3, 0.2, 0.4], masked=[3, 4, 9])
    prepared = scorer.prepare(batch, False)
    after = numbers(prepared["token_ids"])
    assert words(after[0]).split() == ["[CLS]", *"我爱北北天安门和北城", "[SEP]"]
    scores, predicted = scorer(prepared, network(prepared))
    # All weights are 0, so every token's odds are even: ln 2 each, labels [0, …, 京, …, 长, …].
    assert numbers(predicted["replaced_scores"]).tolist() == [[0.0] * 12]
    assert float(scores["network_loss"][0]) == pytest.approx(12 * math.log(2), rel=1e-6)
    assert float(scores["network_loss"][1]) == 12.0, "over all real tokens"
    assert float(scores["accuracy"][0]) == 10.0, "even odds say real: two of twelve are not"
    # The generator: 北 and 长 have ln 2 each, 京 has 100 more.
    assert float(scores["generator_loss"][0]) == pytest.approx(100 + 3 * math.log(2), rel=1e-6)
    total = float(scores["loss"][0]) / float(scores["loss"][1])
    assert total == pytest.approx(50 * math.log(2) + (100 + 3 * math.log(2)) / 3, rel=1e-6)


def test_both_losses_are_their_equations():
    network, _, scorer = attached(rate=0.3, generator_share=0.5)
    rng = np.random.default_rng(0)
    for layer in (network, scorer):
        random = {
            n: rng.normal(0, 0.3, v.shape).astype("f4") for n, v in named_weights(layer).items()
        }
        load_weights(layer, random)
    batch = chosen(ENGLISH, [1, 4, 6], [0.9, 0.5, 0.1], masked=[1, 4])
    batch["padding_mask"][0, 11] = 0  # the last token does not count
    prepared = scorer.prepare(batch, False)
    outputs = network(prepared)
    scores, predicted = scorer(prepared, outputs)
    odds = numbers(predicted["replaced_scores"]).astype("f8")[0]
    replaced = numbers(prepared["token_ids"])[0] != batch["token_ids"][0]
    nats = np.where(replaced, np.log1p(np.exp(-odds)), np.log1p(np.exp(odds)))[:11]
    assert float(scores["network_loss"][0]) == pytest.approx(nats.sum(), rel=1e-5)
    logits = numbers(prepared["generator_logits"])[0, :3].astype("f8")
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    labels = batch["chosen_labels"][0, :3]
    mlm = -np.log(p[np.arange(3), labels])
    assert float(scores["generator_loss"][0]) == pytest.approx(mlm.sum(), rel=1e-5)
    assert float(scores["loss"][0]) / 11 == pytest.approx(50 * nats.mean() + mlm.mean(), rel=1e-5)
    # The samples are where the draws fall in the running sums.
    expected = (p.cumsum(-1) <= np.array([0.9, 0.5, 0.1])[:, None]).sum(-1)
    assert numbers(prepared["token_ids"])[0, [1, 4, 6]].tolist() == expected.tolist()
    weights = named_weights(scorer)
    h = numbers(outputs["sequence_output"])[0].astype("f8") @ numbers(weights["transform/kernel"])
    h = h + numbers(weights["transform/bias"])
    h = 0.5 * h * (1 + np.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))
    by_hand = h @ numbers(weights["score/kernel"])[:, 0] + numbers(weights["score/bias"])[0]
    assert np.abs(odds - by_hand).max() < 1e-4


def test_draws_sample_the_generators_distribution():
    p = np.array([0.5, 0.0, 0.3, 0.2])
    logits = np.tile(np.log(p + 1e-30), (1, 40_000, 1)).astype("f4")
    draws = np.random.default_rng(0).random((1, 40_000)).astype("f4")
    shares = np.bincount(numbers(_sample(logits, draws))[0], minlength=4) / 40_000
    assert np.abs(shares - p).max() < 0.01
    edge = numbers(_sample(logits[:, :2], np.array([[0.0, np.nextafter(np.float32(1), 0)]], "f4")))
    assert edge.tolist() == [[0, 3]]


def test_no_gradient_goes_through_the_samples():
    import tensorflow as tf

    network, _, scorer = attached(rate=0.3)
    batch = chosen(ENGLISH, [1, 4, 6], [0.9, 0.5, 0.1], masked=[1, 4])
    generator = [*scorer.generator.trainable_variables, *scorer.generator_head.trainable_variables]
    with tf.GradientTape(persistent=True) as tape:
        prepared = scorer.prepare(batch, True)
        scores, _ = scorer(prepared, network(prepared, training=True), training=True)
    values = [variable.value for variable in generator]
    assert all(g is None for g in tape.gradient(scores["network_loss"][0], values))
    assert any(g is not None for g in tape.gradient(scores["generator_loss"][0], values))


@pytest.mark.parametrize(("share", "shared"), [(0.25, False), (1.0, True)])
def test_tables_are_shared_where_their_widths_agree(share, shared):
    network, _, scorer = attached(generator_share=share)
    assert scorer.generator.hidden_dim == 16 * share
    assert scorer.generator.num_layers == network.num_layers
    assert (scorer.generator.embeddings is network.embeddings) is shared
    names = named_weights(scorer)
    assert any(name.startswith("generator/embeddings/") for name in names) is not shared
    assert not {id(v) for v in names.values()} & {id(v) for v in network.weights}
    model = StageModel(network, {"replaced_token_detection": scorer})
    assert len({id(v) for v in model.weights}) == len(model.weights)


@pytest.mark.parametrize("predict", ["replacement", "token"])
@pytest.mark.parametrize("loss_on", ["all", "chosen"])
def test_the_papers_four_systems(predict, loss_on):
    network, _, scorer = attached(rate=0.3, predict=predict, loss_on=loss_on, network_weight=1.0)
    batch = chosen(ENGLISH, [1, 4, 6], [0.9, 0.5, 0.1], masked=[1, 4])
    prepared = scorer.prepare(batch, False)
    scores, predicted = scorer(prepared, network(prepared))
    counted = 12.0 if loss_on == "all" else 3.0
    assert float(scores["network_loss"][1]) == counted
    assert set(predicted) == {"replaced_scores" if predict == "replacement" else "new_token_logits"}
    first = float(scores["network_loss"][0]) / counted
    chance = math.log(2) if predict == "replacement" else math.log(len(VOCABULARY))
    if (predict, loss_on) == ("token", "all"):
        # Copying has even odds at first: ln 2 where a token is shown as it was, more where not.
        chance = (9 * math.log(2) + 3 * math.log(2 * len(VOCABULARY))) / 12
    assert first == pytest.approx(chance, rel=0.1)
    assert np.isfinite(float(scores["generator_loss"][0]))
    assert float(scores["generator_loss"][0]) / 3 == pytest.approx(
        math.log(len(VOCABULARY)), rel=0.1
    )


@given(st.integers(0, 2**31), st.integers(4, 40), st.sampled_from([0.05, 0.15, 0.5]))
@settings(max_examples=60)
def test_what_holds_for_every_row(seed, length, rate):
    rng = np.random.default_rng(seed)
    mask = (np.arange(length) < rng.integers(1, length + 1, 5)[:, None]).astype(np.int32)
    tokens = np.where(mask, rng.integers(1, 60, (5, length)), 0).astype(np.int32)
    clean = {"token_ids": tokens, "padding_mask": mask}
    objective = ReplacedTokenDetection(Context(PlainTokenizer(60), length), rate=rate)
    result = objective.examples(clean, np.random.default_rng(seed))
    again = objective.examples(clean, np.random.default_rng(seed))
    assert all((result[key] == again[key]).all() for key in result)
    assert (result["token_ids"] == tokens).all()
    at, slot = np.nonzero(result["chosen_weights"])
    place = result["chosen_positions"][at, slot]
    assert len(set(zip(at, place, strict=True))) == len(at), "no position twice"
    assert (tokens[at, place] > 4).all(), "special tokens are safe"
    assert (result["chosen_labels"][at, slot] == tokens[at, place]).all()
    hidden = result["generator_token_ids"] != tokens
    may = np.zeros_like(hidden)
    may[at, place] = True
    assert not (hidden & ~may).any()
    assert (result["generator_token_ids"][hidden] == 4).all(), "[MASK], never a random word"
    assert ((result["draws"] >= 0) & (result["draws"] < 1)).all()


def test_eighty_five_in_a_hundred_are_hidden():
    tokens = np.random.default_rng(0).integers(5, 2000, (1000, 128)).astype(np.int32)
    clean = {"token_ids": tokens, "padding_mask": np.ones_like(tokens)}
    objective = ReplacedTokenDetection(Context(PlainTokenizer(2000), 128))
    result = objective.examples(clean, np.random.default_rng(1))
    total = result["chosen_weights"].sum()
    assert total == 1000 * 19
    # Four standard deviations of a binomial with 19,000 draws.
    hidden = (result["generator_token_ids"] != tokens).sum() / total
    assert abs(hidden - 0.85) < 4 * math.sqrt(0.85 * 0.15 / total)


def test_settings_out_of_range_are_refused():
    with pytest.raises(RecipeError, match="generator_share"):
        ReplacedTokenDetection(CONTEXT, generator_share=0.0)
    with pytest.raises(UnknownNameError, match="did you mean 'token'"):
        ReplacedTokenDetection(CONTEXT, predict="tokens")
