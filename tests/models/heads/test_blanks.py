"""Texts written by a network that fills in blanks: rows by hand, the loss, what is learnt."""

import json
from dataclasses import replace

import keras
import numpy as np
import pytest

from fourstage.errors import RecipeError
from models import features as keys
from models.evaluation.predict import RowPredictor
from models.families.unilm import Unilm
from models.heads.sequence_to_sequence import SequenceToSequence
from models.inputs.batches import batches
from models.modes import Mode
from models.training.optimizer import make_optimizer
from models.training.stage_model import StageModel
from tests.models.heads.test_sequence_to_sequence import CONTEXT, RNG, ROWS
from tests.models.memory_corpus import MemoryRows
from tests.models.scripted_chance import ScriptedChance
from tests.models.training.memory import RULE

MASK = 4
UNILM = replace(CONTEXT, network=Unilm.provides)


def head(context=UNILM, **settings) -> SequenceToSequence:
    return SequenceToSequence(context, **{"target_length": 5, **settings})


def network(seed: int = 0) -> Unilm:
    keras.utils.set_random_seed(seed)
    return Unilm(
        vocabulary_size=50,
        num_layers=2,
        hidden_dim=32,
        num_heads=2,
        intermediate_dim=64,
        max_sequence_length=12,
        dropout=0.0,
    )


def clean(made: SequenceToSequence) -> dict[str, np.ndarray]:
    return made.segments(ROWS, made.index(ROWS, RNG).entries, RNG)


def noised(made: SequenceToSequence) -> dict[str, np.ndarray]:
    """Targets 20 21 22 [SEP]; 23 [SEP]; [SEP], of a row without an answer."""
    order = [[0.9, 0.1, 0.5, 0.2, 0.0], [0.9, 0.1, 0.0, 0.0, 0.0], [0.3, 0.0, 0.0, 0.0, 0.0]]
    dice = [[0.0, 0.85, 0.95, 0.5, 0.0], [0.0] * 5, [0.0] * 5]
    drawn = [[0, 34, 0, 0, 0], [0] * 5, [0] * 5]  # ordinary ids start at 5: 39
    return made.examples(clean(made), ScriptedChance(order, dice, drawn))


def test_blanks_by_hand():
    batch = noised(head())
    # 70 % of 4, 2 and 1 tokens are 3, 1 and 1: the last three, the last, the only one. Of the first
    # row's, 21 becomes a random token, 22 stays, [SEP] is hidden.
    assert batch[keys.TARGET_IDS].tolist() == [
        [20, 39, 22, MASK, 0],
        [23, MASK, 0, 0, 0],
        [MASK, 0, 0, 0, 0],
    ]
    assert batch[keys.TARGET_WEIGHTS].tolist() == [
        [0, 1, 1, 1, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 0, 0, 0],
    ]
    assert (batch[keys.TARGET_LABELS] == clean(head())[keys.TARGET_LABELS]).all()
    assert (batch[keys.TOKEN_IDS] == clean(head())[keys.TOKEN_IDS]).all()


def test_text_and_target_are_two_texts_of_one_row():
    made = head()
    joined = made.attach(network()).prepare(noised(made), False)
    ids, mask, segments = (
        np.asarray(joined[key]) for key in (keys.TOKEN_IDS, keys.PADDING_MASK, keys.SEGMENT_IDS)
    )
    real = mask[0] == 1
    assert ids[0][real].tolist() == [2, 10, 11, 3, 20, 39, 22, MASK]
    assert segments[0][real].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert np.asarray(joined[keys.MODES]).tolist() == [Mode.SEQUENCE_TO_SEQUENCE] * 3


def log_probabilities(read: Unilm, scorer, text: list[int], target: list[int]) -> np.ndarray:
    """(S, V) of the target's tokens at their own positions, of a row without padding."""
    ids = np.array([[*text, *target]], np.int32)
    segments = np.array([[0] * len(text) + [1] * len(target)], np.int32)
    modes = np.array([Mode.SEQUENCE_TO_SEQUENCE], np.int32)
    outputs = read({"token_ids": ids, "segment_ids": segments, "modes": modes})
    logits = np.asarray(scorer.logits(outputs["sequence_output"])[0, len(text) :], np.float64)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def test_the_loss_is_that_of_the_hidden_tokens_of_each_row_alone():
    made, read = head(), network()
    scorer = made.attach(read)
    batch = noised(made) | {keys.ROW_WEIGHTS: np.ones(3, np.float32)}
    scores, _ = StageModel(read, {"s2s": scorer}).outputs(batch, training=True)
    first = log_probabilities(read, scorer, [2, 10, 11, 3], [20, 39, 22, MASK])
    second = log_probabilities(read, scorer, [2, 12, 13, 14, 15, 16, 3], [23, MASK])
    nats = -(first[1, 21] + first[2, 22] + first[3, 3] + second[1, 3])
    total, weight = scores["s2s"]["loss"]
    assert float(weight) == 4
    assert float(total) == pytest.approx(nats, rel=1e-5)


def test_the_likelihood_of_a_target_is_of_one_hidden_token_at_a_time():
    made, read = head(), network()
    scorer = made.attach(read)
    found = RowPredictor(read, made, scorer, ROWS, UNILM, ["perplexity"]).answers()
    texts = ([2, 10, 11, 3], [20, 21, 22, 3]), ([2, 12, 13, 14, 15, 16, 3], [23, 3])
    for (text, target), each in zip(texts, found, strict=False):
        nats = 0.0
        for place, token in enumerate(target):
            nats -= log_probabilities(read, scorer, text, [*target[:place], MASK])[-1, token]
        told = {"nats": pytest.approx(nats, rel=1e-5), "tokens": len(target)}
        assert json.loads(each.text) == {**told, "words": len(target) - 1}
    assert json.loads(found[2].text) == {"nats": 0, "tokens": 0, "words": 0}  # it has no answer


def test_what_is_learnt_by_heart_is_written():
    rng = np.random.default_rng(1)
    pairs = [rng.integers(5, 50, (2, 3)).tolist() for _ in range(12)]
    rows = MemoryRows([(text, json.dumps([" ".join(map(str, said))])) for text, said in pairs])
    context = replace(UNILM, rows=rows)
    made, read = head(context), network()
    scorer = made.attach(read)
    model = StageModel(read, {"s2s": scorer})
    fed = batches({"rows": (rows, 1.0)}, [made], context, 12, 0)
    rule = {**RULE, "peak_learning_rate": 1e-2, "warmup": 0, "decay": "linear"}
    model.compile(optimizer=make_optimizer(rule, total_steps=250), jit_compile=False)
    model.optimizer.build(model.trainable_variables)  # else the step is traced twice
    for batch in fed.iterate(0, 250):
        model.train_on_batch(batch)
    blind = MemoryRows([(text, "") for text, _ in pairs])
    found = RowPredictor(read, made, scorer, blind, context).answers()
    assert [each.text for each in found] == rows.answers
    for (text, said), each in zip(pairs, found, strict=True):
        whole = 0.0
        for place, token in enumerate([*said, 3]):
            log_p = log_probabilities(read, scorer, [2, *text, 3], [*said[:place], MASK])
            whole += log_p[-1, token]
        assert each.probability == pytest.approx(np.exp(whole), rel=1e-4)


def test_the_share_of_blanks_is_a_setting_of_networks_that_fill_them_in():
    assert head().mask_rate == 0.7
    with pytest.raises(RecipeError, match=r"mask_rate: expected a number in \(0, 1\], got 0"):
        head(mask_rate=0.0)
    with pytest.raises(RecipeError, match="mask_rate: only a network with modes"):
        head(CONTEXT, mask_rate=0.7)
