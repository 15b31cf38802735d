"""Questions about pictures: which rows are any, what they cost, and what a stage keeps of them."""

from __future__ import annotations

import json
from dataclasses import replace
from math import erf
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from fourstage.errors import ContractViolation, RecipeError
from models import catalogue
from models.evaluation.heldout import HeldOut
from models.inputs.batches import Batches, batches
from models.inputs.captions import Captions, asked_answers
from models.inputs.display import shown
from models.objectives.image_question_answering import ImageQuestionAnswering
from models.objectives.image_text_match import ImageTextMatch
from models.objectives.masked_lm import MaskedLM
from models.objectives.next_sentence import NextSentence
from models.protocols import Capability, Context
from models.training.stage import Budget, Phase
from models.training.stage_model import StageModel
from models.training.trained_stage import load_before, load_stage
from models.training.trainer import train
from tests.models.memory_corpus import (
    MemoryCaptions,
    MemoryRows,
    PlainTokenizer,
    random_captions,
    random_corpus,
)
from tests.models.training.memory import pretraining, tokenizer

SEES = frozenset({Capability.REGIONS, Capability.BIDIRECTIONAL, Capability.POOLED_OUTPUT})
CONTEXT = Context(
    PlainTokenizer(100), sequence_length=12, network=SEES, answers=("blue", "red", "two")
)
LABELS, WEIGHTS = "image_question_answering_labels", "image_question_answering_weights"
NAME = "image_question_answering"
RNG = np.random.default_rng(5)


def value(tensor: Any) -> np.ndarray:
    return keras.ops.convert_to_numpy(tensor)


def made(answers: list[str], seed: int = 1) -> MemoryCaptions:
    """Captions with these answers."""
    drawn = random_captions(len(answers), 100, 26, seed=seed)
    texts = [drawn.document(i)[0].tolist() for i in range(len(answers))]
    return MemoryCaptions(texts, [drawn.regions(i) for i in range(len(answers))], answers)


def entries_of(fed: Batches, k: int) -> np.ndarray:
    """The index entry of each row of batch `k`, of one corpus."""
    return fed.feeds[0].entries(np.array([example for _, example in fed.members(k)]))


def test_the_commonest_answers_are_learned_in_the_order_of_their_names():
    first = made(["red"] * 3 + ["blue"] * 2 + ["two", ""])
    second = made(["blue"] * 2 + ["a dog"] * 2 + ["", ""])
    corpora = [first, second, random_corpus(3, 100)]

    def asked(**settings: int) -> tuple[str, ...]:
        return asked_answers({"masked_lm": {}, NAME: settings}, corpora)

    assert asked() == ("a dog", "blue", "red", "two")
    assert asked(answers=3) == ("a dog", "blue", "red")
    assert asked(answers=2) == ("blue", "red")  # 4, 3, 2, 1 times
    numbers = [made(["10", "9", "2", "2"])]  # of several as common the first, by value
    assert asked_answers({NAME: {"answers": 2}}, numbers) == ("2", "9")
    assert asked_answers({"masked_lm": {}, "image_text_match": {}}, corpora) == ()


def test_a_dataset_with_one_label_has_captions_and_no_questions():
    rows = MemoryRows([([10, 11], None, answer) for answer in ("yes", "no", "", "maybe")])
    assert Captions(rows, CONTEXT.tokenizer, ["no", "yes"]).answers == ["yes", "no", "", ""]
    assert Captions(rows, CONTEXT.tokenizer, ["yes"]).answers == [""] * 4


def test_rows_with_another_picture_no_answer_or_an_unknown_one_weigh_nothing():
    answers = [("red", "blue", "", "never learned")[i % 4] for i in range(40)]
    data = made(answers)
    objectives = [MaskedLM(CONTEXT), ImageTextMatch(CONTEXT), ImageQuestionAnswering(CONTEXT)]
    fed = batches({"captions": (data, 1.0)}, objectives, CONTEXT, 16, seed=1)
    kinds = set()
    for k in range(5):
        batch = fed.batch(k)
        assert batch[LABELS].dtype == np.int32
        for row, entry in enumerate(entries_of(fed, k)):
            answer, own = answers[entry["document"]], entry["picture"] == entry["document"]
            known = answer in ("red", "blue")
            assert batch["image_text_match_labels"][row] == own
            assert batch[WEIGHTS][row] == (known and own)
            if known and own:
                assert CONTEXT.answers[batch[LABELS][row]] == answer
            kinds.add((known, own))
    assert len(kinds) == 4
    row = int(np.argmax(batch[WEIGHTS]))
    words = {
        LABELS: ImageQuestionAnswering(CONTEXT).decode(
            {"image_question_answering_logits": np.eye(3)[batch[LABELS]]}
        )
    }
    told = shown(batch, batch, row, CONTEXT.tokenizer, words)
    assert f"{LABELS}: {batch[LABELS][row]} = {words[LABELS][row]}" in told
    assert LABELS not in shown(batch, batch, int(np.argmin(batch[WEIGHTS])), CONTEXT.tokenizer)


def test_alone_every_caption_has_its_own_picture_and_text_is_asked_nothing():
    data = made([("red", "", "two")[i % 3] for i in range(30)])
    text = random_corpus(10, 100, seed=2)
    alone = [ImageQuestionAnswering(CONTEXT)]
    fed = batches({"read": (text, 1.0), "seen": (data, 1.0)}, alone, CONTEXT, 16, seed=1)
    names = [fed.feeds[feed].name for feed, _ in fed.members(0)]
    assert set(names) == {"read", "seen"}
    for row, (feed, example) in enumerate(fed.members(0)):
        (entry,) = fed.feeds[feed].entries(np.array([example]))
        answer = data.answers[entry["document"]] if names[row] == "seen" else ""
        assert fed.batch(0)[WEIGHTS][row] == bool(answer)
        assert not answer or CONTEXT.answers[fed.batch(0)[LABELS][row]] == answer


def test_a_stage_that_does_not_ask_reads_no_answers():
    context = replace(CONTEXT, answers=())
    fed = batches(
        {"captions": (made(["red", "blue"] * 10), 1.0)},
        [MaskedLM(context), ImageTextMatch(context)],
        context,
        8,
        seed=1,
    )
    assert not {LABELS, WEIGHTS} & set(fed.batch(0))


def test_the_objective_takes_turns_and_leads_one():
    groups = catalogue.turns(["masked_lm", "image_text_match", "word_region_alignment", NAME])
    assert groups[NAME] == (NAME,)
    assert NAME not in groups["image_text_match"]


def test_loss_and_accuracy_are_numpys():
    tiny = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 8}
    seeing = catalogue.find("families", "uniter")(vocabulary_size=100, region_dim=6, **tiny)
    objective = ImageQuestionAnswering(CONTEXT)
    scorer = objective.attach(seeing)
    for variable in scorer.trainable_variables:
        variable.assign(RNG.normal(0, 0.7, variable.shape))
    labels = np.array([0, 2, -1, 1, 2, 1], np.int32)
    rows = np.array([1, 1, 1, 1, 1, 0], np.float32)  # the last one only fills the batch
    batch = objective.examples({LABELS: labels}, RNG) | {"row_weights": rows}
    pooled = RNG.normal(size=(6, 8)).astype(np.float32)
    scores, own = scorer(batch, {"pooled_output": pooled})

    named = {variable.path.split("/", 1)[1]: value(variable) for variable in scorer.variables}
    inner = pooled @ named["transform/kernel"] + named["transform/bias"]
    assert inner.shape == (6, 16)
    inner = inner * 0.5 * (1 + np.vectorize(erf)(inner / np.sqrt(2)))
    inner = inner - inner.mean(axis=1, keepdims=True)
    inner /= np.sqrt((inner**2).mean(axis=1, keepdims=True) + seeing.layer_norm_epsilon)
    logits = (inner * named["norm/gamma"] + named["norm/beta"]) @ named["output/kernel"]
    logits += named["output/bias"]
    assert np.abs(value(own["image_question_answering_logits"]) - logits).max() < 1e-5
    asked = [row for row in range(6) if labels[row] >= 0 and rows[row]]
    nats = [np.log(np.exp(logits[row]).sum()) - logits[row, labels[row]] for row in asked]
    hits = [logits[row].argmax() == labels[row] for row in asked]
    assert float(scores["loss"][0]) == pytest.approx(sum(nats), rel=1e-5)
    assert float(scores["accuracy"][0]) == sum(hits)
    assert float(scores["loss"][1]) == float(scores["accuracy"][1]) == len(asked) == 4
    assert [float(each) for each in scores["asked"]] == [4, 5]
    best = [CONTEXT.answers[i] for i in logits.argmax(axis=1)]
    assert objective.decode({name: value(each) for name, each in own.items()}) == best

    # Of a batch without a question there is no loss, and no division by nothing.
    silent = objective.examples({LABELS: np.full(6, -1, np.int32)}, RNG) | {"row_weights": rows}
    scores, _ = scorer(silent, {"pooled_output": pooled})
    model = StageModel(seeing, {NAME: scorer})
    assert float(model.compute_loss(y_pred={NAME: scores})) == 0.0


def test_what_it_cannot_learn_from_is_refused():
    with pytest.raises(RecipeError, match=r"image_question_answering.answers: .* got 1"):
        ImageQuestionAnswering(CONTEXT, answers=1)
    for few in ((), ("yes",)):
        with pytest.raises(ContractViolation, match=f"two or more answers .* got {len(few)}"):
            ImageQuestionAnswering(replace(CONTEXT, answers=few))
    objectives = [NextSentence(CONTEXT), ImageQuestionAnswering(CONTEXT)]
    fed = batches({"text": (random_corpus(9, 100), 1.0)}, objectives, CONTEXT, 4, seed=1)
    with pytest.raises(ContractViolation, match="its rows are not those of captions"):
        fed.batch(0)


@pytest.mark.usefixtures("untraced")
def test_a_stage_keeps_its_answers_and_so_do_those_after_it(tmp_path: Path):
    words = tokenizer()
    captions = random_captions(24, words.vocabulary_size, 39, seed=4)
    held_out = random_captions(10, words.vocabulary_size, 39, seed=5)
    held_out.answers[0] = "never seen"
    settings = {
        "family": "lxmert",
        "network": catalogue.literals("families", "lxmert")["SIZES"]["tiny"],
        "phases": [Phase(16)],
        "budget": Budget("steps", 2),
        "corpora": {"captions": (captions, 1.0)},
        "heldout": {"captions": held_out},
        "alternate": True,
    }
    asking = {"image_text_match": {}, NAME: {"answers": 2}}
    first = pretraining(**settings, objectives=asking)
    outcome = train(first, tmp_path / "first")
    assert outcome.turns[0] == {"image_text_match": 1, NAME: 1}
    history = json.loads((tmp_path / "first" / "history.json").read_text())
    (asked,) = (row[f"{NAME}/asked"] for row in history if f"{NAME}/asked" in row)
    assert asked in np.arange(1, 8) / 8  # the share of rows with one of the two answers
    after = pretraining(**settings, objectives={"image_text_match": {}}, initial=tmp_path / "first")
    train(after, tmp_path / "after")

    # Six of each of three answers: the two that come first.
    for folder in ("first", "after"):
        stage = load_stage(tmp_path / folder, words)
        assert stage.context.answers == ("blue", "red")
        objective = stage.objective(NAME)
        scorer = stage.scorer(NAME, objective)
    before = value(scorer.output_projection.kernel)
    for answers, kept in ((captions.answers, True), (["north", "south"] * 12, False)):
        captions.answers = answers
        later = pretraining(**settings, objectives=asking, initial=tmp_path / "first")
        scorer.output_projection.kernel.assign(before + 1)
        load_before(later, stage.network, {NAME: scorer})
        assert np.array_equal(scorer.output_projection.kernel, before if kept else before + 1)
    measured = HeldOut(
        stage.network,
        NAME,
        scorer,
        {"captions": held_out, "text": random_corpus(4, words.vocabulary_size)},
        words,
        16,
        answers=stage.context.answers,
    )
    found = measured.losses()
    assert set(found) == {"captions"}  # text is asked nothing
    feed = measured.feeds["captions"]
    assert feed.num_batches == 1
    batch, real = feed.batch(0), [example for _, example in feed.members(0) if example >= 0]
    read = feed.feeds[0].entries(np.array(real))["document"]  # the other rows fill the batch
    known = [held_out.answers[document] in ("blue", "red") for document in read]
    assert batch[WEIGHTS][: len(real)].tolist() == known
    _, own = scorer({}, stage.network(batch))
    logits = value(own["image_question_answering_logits"]).astype(np.float64)
    right = logits[np.arange(len(logits)), batch[LABELS]]
    nats = np.log(np.exp(logits).sum(axis=1)) - right
    weights = batch[WEIGHTS] * batch["row_weights"]
    assert found["captions"]["loss"] == pytest.approx(
        (weights * nats).sum() / weights.sum(), rel=1e-4
    )
    hits = weights * (right == logits.max(axis=1))
    assert found["captions"]["accuracy"] == pytest.approx(hits.sum() / weights.sum())
    assert found["captions"]["asked"] == pytest.approx(weights.sum() / batch["row_weights"].sum())
