"""Word structure prediction: shuffled triples by hand in two languages, and their laws."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fourstage.errors import RecipeError
from models import catalogue
from models.layers.loss import cross_entropy
from models.objectives.masked_lm import MaskedLM
from models.objectives.word_structure import WordStructure
from models.protocols import Context
from tests.models.memory_corpus import PlainTokenizer
from tests.models.objectives.twelve_tokens import CONTEXT, VOCABULARY, row, words
from tests.models.scripted_chance import ScriptedChance


def masked(tokens: list[str], places: list[int]) -> dict[str, np.ndarray]:
    """A row in which masked_lm has hidden some places; rate .15 of 12 gives two slots."""
    batch = row(tokens)
    labels = [int(batch["token_ids"][0, place]) for place in places]
    batch["token_ids"][0, places] = VOCABULARY.index("[MASK]")
    fill = [0] * (2 - len(places))
    return batch | {
        "mask_positions": np.array([places + fill], np.int32),
        "mask_labels": np.array([labels + fill], np.int32),
        "mask_weights": np.array([[1.0] * len(places) + [0.0] * len(fill)], np.float32),
    }


def test_english_by_hand():
    tokens = "[CLS] un ##believ ##able news from new york city to ##day [SEP]".split()
    batch = masked(tokens, [4])  # "news" is hidden: triples begin at 1, 5, 6, 7 or 8
    order = [[0, 0.9, 0, 0, 0, 0.5, 0.1, 0.2, 0.3, 0, 0, 0]]  # 6 first; 5, 7, 8 overlap it; then 1
    chance = ScriptedChance(order, [[2, 1]])  # in the order of places: 1 gets order 2, 6 order 1
    result = WordStructure(CONTEXT, rate=0.15).examples(batch, chance)
    # ⌈.15 · 12⌉ = 2 triples of room, .15 of five possible ones rounds to one.
    assert words(result["token_ids"][0]) == (
        "[CLS] un ##believ ##able [MASK] from york city new to ##day [SEP]"
    )
    assert result["mask_positions"].tolist() == [[4, 0, 6, 7, 8, 0, 0, 0]]
    assert result["mask_weights"].tolist() == [[1.0, 0.0, 0, 0, 0, 0, 0, 0]], "masked_lm's own"
    assert words(result["shuffled_labels"][0, :3]) == "new york city"
    assert result["shuffled_weights"].tolist() == [[1.0, 1.0, 1.0, 0.0, 0.0, 0.0]]
    assert words(result["mask_labels"][0, :1]) == "news"


def test_chinese_by_hand():
    batch = masked(["[CLS]", *"我爱北京天安门和长城", "[SEP]"], [3, 4])
    # Triples begin at 5, 6, 7 or 8; half of them: two, that do not overlap.
    order = [[0, 0, 0, 0, 0, 0.1, 0.2, 0.3, 0.4, 0, 0, 0]]
    chance = ScriptedChance(order, [[4, 0, 0, 0, 0, 0]])
    result = WordStructure(CONTEXT, rate=0.5).examples(batch, chance)
    assert words(result["token_ids"][0]) == "[CLS] 我 爱 [MASK] [MASK] 门 安 天 和 城 长 [SEP]"
    assert words(result["shuffled_labels"][0, :6]) == "天 安 门 和 长 城"


def test_a_triple_always_looks_different():
    batch = masked(["[CLS]", *"北北京", "[SEP]"] + ["[SEP]"] * 7, [])
    for drawn in range(5):
        chance = ScriptedChance([[0, 0.1, *[0.9] * 10]], [[drawn, 0]])
        seen = WordStructure(CONTEXT, rate=0.15).examples(batch, chance)["token_ids"]
        assert (seen != batch["token_ids"]).any(), drawn


def test_three_equal_tokens_are_left_alone():
    batch = masked(["[CLS]", *"北北北", "[SEP]"] + ["[SEP]"] * 7, [])
    result = WordStructure(CONTEXT).examples(batch, np.random.default_rng(0))
    assert not result["shuffled_weights"].any()


@given(st.integers(0, 2**31), st.integers(6, 60), st.sampled_from([0.05, 0.3]))
@settings(max_examples=60)
def test_what_holds_for_every_row(seed, length, rate):
    rng = np.random.default_rng(seed)
    mask = (np.arange(length) < rng.integers(3, length + 1, 5)[:, None]).astype(np.int32)
    ids = np.where(mask, rng.integers(1, 12, (5, length)), 0).astype(np.int32)
    context = Context(PlainTokenizer(12), length)
    clean = {"token_ids": ids, "padding_mask": mask}
    hidden = MaskedLM(context).examples(clean, np.random.default_rng(seed))
    objective = WordStructure(context, rate=rate)
    result = objective.examples(hidden, np.random.default_rng(seed))
    again = objective.examples(hidden, np.random.default_rng(seed))
    assert all((result[key] == again[key]).all() for key in result)
    # Every target, masked or shuffled, is the token of the clean text.
    slots = hidden["mask_positions"].shape[1]
    positions = result["mask_positions"]
    at, slot = np.nonzero(result["shuffled_weights"])
    place = positions[at, slots + slot]
    assert (result["shuffled_labels"][at, slot] == ids[at, place]).all()
    assert (hidden["token_ids"][at, place] == ids[at, place]).all()
    assert (ids[at, place] > 4).all()
    assert len(set(zip(at, place, strict=True))) == len(at), "triples do not overlap"
    at_masked, slot = np.nonzero(hidden["mask_weights"])
    taken = set(zip(at_masked, positions[at_masked, slot], strict=True))
    assert not taken & set(zip(at, place, strict=True)), "what is masked is not shuffled"
    changed = result["token_ids"] != hidden["token_ids"]
    shuffled = np.zeros_like(changed)
    shuffled[at, place] = True
    assert not (changed & ~shuffled).any()
    assert (np.sort(result["token_ids"], axis=1) == np.sort(hidden["token_ids"], axis=1)).all()


def test_five_in_a_hundred_triples():
    ids = np.random.default_rng(0).integers(5, 2000, (500, 128)).astype(np.int32)
    clean = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    context = Context(PlainTokenizer(2000), 128)
    hidden = MaskedLM(context).examples(clean, np.random.default_rng(1))
    result = WordStructure(context).examples(hidden, np.random.default_rng(2))
    chosen = np.zeros(ids.shape, bool)
    at, slot = np.nonzero(hidden["mask_weights"])
    chosen[at, hidden["mask_positions"][at, slot]] = True
    free = ~chosen
    places = (free[:, :-2] & free[:, 1:-1] & free[:, 2:]).sum(axis=1)  # about 78 a row
    assert (result["shuffled_weights"].sum(axis=1) / 3 == np.rint(0.05 * places)).all()


def test_the_head_is_masked_lms_and_the_loss_is_that_of_its_own_slots():
    size = catalogue.literals("families", "bert")["SIZES"]["tiny"]
    network = catalogue.find("families", "bert")(vocabulary_size=len(VOCABULARY), **size)
    masked_lm, shuffled = MaskedLM(CONTEXT), WordStructure(CONTEXT)
    batch = row("[CLS] un ##believ ##able news from new york city to ##day [SEP]".split())
    rng = np.random.default_rng(0)
    hidden = masked_lm.examples(batch, rng)
    result = shuffled.examples(hidden, rng)
    scorers = masked_lm.attach(network), shuffled.attach(network)
    assert not scorers[1].weights
    outputs = network(result)
    first, predicted = scorers[0](result, outputs)
    second, own = scorers[1](result, dict(outputs) | predicted)
    assert not own
    logits = keras.ops.convert_to_numpy(predicted["token_logits"])
    slots = hidden["mask_positions"].shape[1]
    for scores, part, labels, weights in (
        (first, logits[:, :slots], hidden["mask_labels"], hidden["mask_weights"]),
        (second, logits[:, slots:], result["shuffled_labels"], result["shuffled_weights"]),
    ):
        expected = cross_entropy(part, labels, weights)
        for name, pair in scores.items():
            assert np.allclose(pair, expected[name], rtol=1e-5)


def test_rows_may_be_shorter_than_those_of_the_longest_phase():
    # A stage has one scorer, made at its longest sequence length; BERT's first phase is shorter.
    size = catalogue.literals("families", "bert")["SIZES"]["tiny"]
    network = catalogue.find("families", "bert")(vocabulary_size=len(VOCABULARY), **size)
    longer = Context(CONTEXT.tokenizer, 48)
    scorers = [each(longer).attach(network) for each in (MaskedLM, WordStructure)]
    rng = np.random.default_rng(0)
    batch = row("[CLS] un ##believ ##able news from new york city to ##day [SEP]".split())
    for objective in (MaskedLM(CONTEXT), WordStructure(CONTEXT)):
        batch = objective.examples(batch, rng)
    outputs = dict(network(batch))
    _, predicted = scorers[0](batch, outputs)
    scores, _ = scorers[1](batch, outputs | predicted)
    first = batch["mask_positions"].shape[1] - batch["shuffled_labels"].shape[1]
    own = keras.ops.convert_to_numpy(predicted["token_logits"])[:, first:]
    expected = cross_entropy(own, batch["shuffled_labels"], batch["shuffled_weights"])
    assert np.allclose(scores["loss"], expected["loss"], rtol=1e-5)


def test_slots_that_another_objective_appends_are_not_its_own():
    size = catalogue.literals("families", "bert")["SIZES"]["tiny"]
    network = catalogue.find("families", "bert")(vocabulary_size=len(VOCABULARY), **size)
    objectives = MaskedLM(CONTEXT), WordStructure(CONTEXT)
    rng = np.random.default_rng(0)
    batch = row("[CLS] un ##believ ##able news from new york city to ##day [SEP]".split())
    for objective in objectives:
        batch = objective.examples(batch, rng)
    # As distillation does: a slot for each token, of weight 0.
    more = dict(batch)
    for key in ("mask_positions", "mask_labels", "mask_weights"):
        added = np.arange(12)[None] if key == "mask_positions" else np.zeros((1, 12))
        more[key] = np.concatenate([batch[key], added.astype(batch[key].dtype)], axis=1)
    scorers = [objective.attach(network) for objective in objectives]
    losses = []
    for each in (batch, more):
        outputs = dict(network(each))
        _, predicted = scorers[0](each, outputs)
        losses.append(scorers[1](each, outputs | predicted)[0]["loss"])
    assert np.allclose(*losses, rtol=1e-5)


def test_without_masked_lm_before_it_there_is_nothing_to_shuffle():
    with pytest.raises(RecipeError, match="name masked_lm before it"):
        WordStructure(CONTEXT).examples(row(["[CLS]", *"我爱北京"]), np.random.default_rng(0))
