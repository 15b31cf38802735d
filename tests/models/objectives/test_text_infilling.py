"""Text infilling: rows by hand, what is scored, and the loss by its equation."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from scipy.special import log_softmax

from fourstage.errors import RecipeError, UnknownNameError
from models import catalogue
from models.inputs.batches import batches
from models.inputs.display import shown
from models.objectives.text_infilling import TextInfilling
from models.protocols import Context
from models.training.stage_model import StageModel
from tests.conformance.parts import network
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer, random_corpus
from tests.models.scripted_chance import ScriptedChance

CLS, SEP, MASK = 2, 3, 4
CONTEXT = Context(PlainTokenizer(120), 12)
# A document of twelve tokens in three sentences, and a short one.
CORPUS = MemoryCorpus([[[10, 11, 12], [13, 14, 15, 16], [17, 18, 19, 20, 21]], [[30]]])


def examples(objective: TextInfilling, chance: np.random.Generator) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    batch = objective.segments(CORPUS, objective.index(CORPUS, rng).entries, rng)
    return objective.examples(batch, chance)


def read(batch: dict[str, np.ndarray], row: int) -> list[int]:
    return batch["token_ids"][row][batch["padding_mask"][row] > 0].tolist()


def test_windows_know_their_sentences():
    objective, rng = TextInfilling(CONTEXT), np.random.default_rng(0)
    index = objective.index(CORPUS, rng)
    batch = objective.segments(CORPUS, index.entries, rng)
    assert [np.flatnonzero(row).tolist() for row in batch["sentence_starts"]] == [
        [1, 4, 8],  # 10 …, 13 …, 17 18 19
        [2, 6],  # 12 | 13 …, 17 …
        [1],
    ]
    # Text between [CLS] and [SEP], and once more between the begin and [SEP].
    assert index.lengths.tolist() == [23, 23, 5]


def test_a_row_by_hand():
    chance = ScriptedChance(
        [2, 0, 1],  # 17 18 19 | 10 11 12 | 13 14 15 16
        [2, 0, 1],  # spans of 2, 0 and 1 of three tokens to hide
        [1, 9, 5, 0, 2, 3, 4, 6, 7, 8],  # the items 1, 5, 9
        [0, 1, 2],
        0.5,  # not rotated
        *([0, 1, 2], [4, 0, 0], [*range(8)], [0], 0.5),  # one span, cut to 3, at the beginning
        *([0], [1], [0], [0], 0.5),
    )
    batch = examples(TextInfilling(CONTEXT), chance)
    assert read(batch, 0) == [CLS, 17, MASK, 10, 11, 12, MASK, 13, 14, 15, MASK, SEP]
    whole = [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
    assert batch["target_ids"][0].tolist() == [SEP, *whole]
    assert batch["target_labels"][0].tolist() == [*whole, SEP]
    assert batch["target_weights"][0].tolist() == [1.0] * 11
    assert batch["target_mask"].sum(axis=1).tolist() == [11, 11, 2]
    assert read(batch, 1) == [CLS, MASK, *range(15, 22), SEP]
    assert read(batch, 2) == [CLS, MASK, SEP]
    assert batch["target_labels"][2, :2].tolist() == [30, SEP]


def test_of_the_measured_loss_the_hidden_tokens_count_alone():
    measured = TextInfilling(
        CONTEXT, **catalogue.literals("objectives", "text_infilling")["MEASURED"]
    )
    batch = examples(measured, np.random.default_rng(5))
    for row in range(3):
        counted = batch["target_labels"][row][batch["target_weights"][row] > 0]
        seen = set(read(batch, row))
        assert len(counted) == [3, 3, 1][row]
        assert not seen & set(counted)
        whole = batch["target_labels"][row][batch["target_mask"][row] > 0]
        # Everything else is there, in its order.
        left = [token for token in whole.tolist() if token not in counted]
        assert [token for token in read(batch, row) if token not in (CLS, MASK)] == left


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"mask_rate": 0.5}, lambda found: found.count(MASK) == 5 and len(found) == 12),
        ({"delete_rate": 0.5}, lambda found: MASK not in found and len(found) == 7),
        ({"rotate_rate": 1.0}, lambda found: sorted(found[1:-1]) == list(range(10, 20))),
        ({"permute_rate": 1.0}, lambda found: sorted(found[1:-1]) == list(range(10, 20))),
        ({}, lambda found: found == [CLS, *range(10, 20), SEP]),
    ],
)
def test_each_kind_of_noise_can_be_had_alone(settings, expected):
    nothing = {"permute_rate": 0.0, "infill_rate": 0.0}
    objective = TextInfilling(CONTEXT, **{**nothing, **settings})
    batches_of = [examples(objective, np.random.default_rng(seed)) for seed in range(6)]
    assert all(expected(read(batch, 0)) for batch in batches_of)
    if settings:
        assert len({tuple(read(batch, 0)) for batch in batches_of}) > 2


def test_the_loss_is_the_cross_entropy_of_the_whole_text():
    objective = TextInfilling(CONTEXT)
    made = network("bart", dropout=0.0)
    batch = batches(
        {"a": (random_corpus(9, 120, seed=1), 1.0)}, [objective], CONTEXT, 4, seed=2
    ).batch(0)
    model = StageModel(made, {"text_infilling": objective.attach(made)})
    scores, _ = model.outputs(batch)
    nats = count = 0.0
    for row in range(4):
        real = int(batch["target_mask"][row].sum())
        one = {
            "token_ids": batch["token_ids"][row : row + 1, : batch["padding_mask"][row].sum()],
            # The decoder begins with [SEP] [CLS], as BART's does.
            "target_ids": np.array([[SEP, CLS, *batch["target_ids"][row, 1:real]]], np.int32),
        }
        hidden = np.asarray(made(one)["sequence_output"][0, 1:], np.float64)
        table = keras.ops.convert_to_numpy(made.token_embedding.embeddings)
        log_p = log_softmax(hidden @ table.T, axis=-1)
        nats -= log_p[np.arange(real), batch["target_labels"][row, :real]].sum()
        count += real
    total, weight = scores["text_infilling"]["loss"]
    assert float(weight) == count
    assert float(total) == pytest.approx(nats, rel=1e-5)


def test_source_and_target_are_shown():
    rng = np.random.default_rng(0)
    objective = TextInfilling(CONTEXT, scored="hidden", permute_rate=0.0)
    clean = objective.segments(CORPUS, objective.index(CORPUS, rng).entries[:1], rng)
    batch = objective.examples(
        clean, ScriptedChance([3, 0, 0], [4, *range(4), *range(5, 8)], [0], 0.5)
    )
    assert shown(clean, batch, 0, CONTEXT.tokenizer).split("\n") == [
        "clean    2 10 11 12 13 14 15 16 17 18 19 3",
        "units      w  w  w  w  w  w  w  w  w  w",
        "segment  0 0  0  0  0  0  0  0  0  0  0  0",
        "",
        "seen  2 10 11 12 13 4 17 18 19 3",
        "",
        "reads   3  10 11 12 13 14 15 16 17 18 19",
        "writes  10 11 12 13 14 15 16 17 18 19 3",
        "scored              x  x  x",
    ]


def test_a_setting_out_of_range_is_told_with_the_number():
    for name in ("permute_rate", "delete_rate", "mask_rate", "infill_rate", "rotate_rate"):
        with pytest.raises(RecipeError, match=rf"{name}: expected a share of 0 to 1, got 1\.5"):
            TextInfilling(CONTEXT, **{name: 1.5})
    with pytest.raises(RecipeError, match=r"delete_rate: expected .* got 1\.0"):
        TextInfilling(CONTEXT, delete_rate=1.0)
    with pytest.raises(RecipeError, match=r"span_mean: expected 0\.1 tokens or more, got 0\.0"):
        TextInfilling(CONTEXT, span_mean=0.0)
    with pytest.raises(RecipeError, match="nothing is hidden; raise one"):
        TextInfilling(CONTEXT, scored="hidden", infill_rate=0.0)
    with pytest.raises(UnknownNameError, match="hidden"):
        TextInfilling(CONTEXT, scored="hiden")


def test_it_shares_its_rows_with_no_other_objective():
    with pytest.raises(RecipeError, match=r"'text_infilling' shares its rows with no other.*turns"):
        catalogue.check_compatible("bart", ("masked_lm", "text_infilling"))
    catalogue.check_turns("bart", ("masked_lm", "text_infilling"))
    catalogue.check_compatible("bart", ("text_infilling",), "sequence_classification")
