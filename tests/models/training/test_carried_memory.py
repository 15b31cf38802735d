"""A network that remembers the batch before: what it remembers, and that a killed run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fourstage.errors import RecipeError
from models.catalogue import find
from models.evaluation.heldout import HeldOut, heldout_losses
from models.inputs.batches import batches
from models.inputs.stream import Stream
from models.protocols import Context
from models.training.gradient import train
from models.training.stage import Budget, Phase
from models.training.stage_model import StageModel
from models.training.trained_stage import load_stage
from tests.models.training.memory import Corpus, Rows, finetuning, pretraining, tokenizer
from tests.models.training.test_gradient import Killed, KillingAt, weights

FAMILY = '''
"""A token's vector and a mean of those of the batch before."""

import keras

from models.protocols import Capability

PROVIDES = ("bidirectional",)
SIZES = {"tiny": {"hidden_dim": 16}}
ops = keras.ops


class Remembering(keras.Model):
    provides = frozenset(Capability(name) for name in PROVIDES)
    row_summary = "mean"
    activation, layer_norm_epsilon = "gelu", 1e-12

    def __init__(self, *, vocabulary_size: int, hidden_dim: int, dtype: str = "float32"):
        super().__init__(name="remembering", dtype=dtype, autocast=False)
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.memory = {"remembered": (hidden_dim,)}
        self.token_embedding = keras.layers.Embedding(vocabulary_size, hidden_dim, name="token")
        self.mixing = keras.layers.Dense(hidden_dim, name="mixing")
        self.token_embedding.build((None, None))
        self.mixing.build((None, None, hidden_dim))
        self.built = True

    def call(self, features, training=None):
        x = self.token_embedding(features["token_ids"])
        outputs = {"sequence_output": self.mixing(x), "remembered": ops.mean(x, axis=1)}
        if "remembered" in features:
            outputs["sequence_output"] += features["remembered"][:, None]
        return outputs

    def get_config(self):
        return {"vocabulary_size": self.vocabulary_size, "hidden_dim": self.hidden_dim}
'''


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, ...]:
    (tmp_path / "families").mkdir()
    (tmp_path / "families" / "remembering.py").write_text(FAMILY, encoding="utf-8")
    return (tmp_path,)


def job(folders: tuple[Path, ...], **changes: Any) -> Any:
    given = {
        "family": "remembering",
        "network": {"hidden_dim": 16},
        "objectives": {"masked_lm": {}},
        "phases": [Phase(16)],
        "budget": Budget("steps", 12),
        "corpora": {"one": (Corpus(40), 1.0)},
        "checkpoint_every": 3,
        "folders": folders,
    }
    return pretraining(**(given | changes))


def test_each_row_gets_what_was_remembered_of_it_and_nothing_after_forgetting(folders):
    network = find("families", "remembering", folders)(vocabulary_size=50, hidden_dim=4)
    model = StageModel(network, {})
    model.carry_memory(2)
    batches = [{"token_ids": np.array([[a, 6], [8, a]], np.int32)} for a in (5, 9)]
    table = np.asarray(network.token_embedding.embeddings)
    seen = []
    for batch in batches:
        seen.append(np.asarray(model.memory["remembered"]))
        model(batch)
    assert not seen[0].any()
    np.testing.assert_allclose(seen[1], table[[[5, 6], [8, 5]]].mean(1), rtol=1e-6)
    assert not any(v is model.memory["remembered"] for v in model.trainable_variables)
    model.forget()
    assert not np.asarray(model.memory["remembered"]).any()


def test_killed_in_between_it_ends_with_the_same_bits(folders, tmp_path):
    whole = train(job(folders), tmp_path / "whole")
    with pytest.raises(Killed):
        train(job(folders), tmp_path / "killed", KillingAt(8))
    again = train(job(folders), tmp_path / "killed")
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    assert again.metrics["last"]["loss"] == whole.metrics["last"]["loss"]


def test_held_out_text_is_read_in_order_from_an_empty_memory(folders, tmp_path):
    train(job(folders), tmp_path / "stage")
    found = [
        heldout_losses(
            tmp_path / "stage",
            tokenizer(),
            {name: Corpus(20, 3) for name in names},
            objective="masked_lm",
            folders=folders,
        )["b"]
        for names in ("ab", "b")
    ]
    assert found[0] == found[1]


def test_with_a_memory_the_same_windows_of_a_long_text_are_measured_as_without(folders):
    network = find("families", "remembering", folders)(vocabulary_size=50, hidden_dim=4)
    context = Context(tokenizer(), 16, remembers=True)
    objective, corpus = find("objectives", "masked_lm")(context), Corpus(40)
    windows = objective.index(corpus, np.random.default_rng(0)).entries
    assert len(windows) > 2 * 32
    given = {"one": corpus}
    held = HeldOut(network, "masked_lm", None, given, tokenizer(), 16, rows=32, folders=folders)
    feed = held.feeds["one"]
    read = [example for k in range(len(feed)) for _, example in feed.members(k)]
    assert sorted(read) == [*range(32)]  # in 16 lanes of two
    np.testing.assert_array_equal(feed.feeds[0].index.entries, windows[:32])
    assert len([*held.batches("one")]) == 2


def test_parts_of_a_batch_are_refused(folders, tmp_path):
    with pytest.raises(RecipeError, match="micro_batches 1"):
        train(job(folders, micro_batches=2), tmp_path / "stage")


def test_rows_that_begin_a_text_get_an_empty_memory(folders):
    network = find("families", "remembering", folders)(vocabulary_size=50, hidden_dim=4)
    model = StageModel(network, {})
    model.carry_memory(2)
    ids = np.array([[5, 6], [8, 5]], np.int32)
    model({"token_ids": ids, "begins": np.array([1, 1], np.int32)})
    batch = {"token_ids": ids, "begins": np.array([0, 1], np.int32)}
    alone = np.asarray(network({"token_ids": ids})["sequence_output"])
    moved = np.asarray(model.outputs(batch)[1]["sequence_output"]) != alone
    assert moved.any(axis=(1, 2)).tolist() == [True, False]


def test_the_first_row_of_each_lane_begins_a_text_in_every_pass():
    context = Context(tokenizer(), 16, remembers=True)
    objective = find("objectives", "masked_lm")(context)
    fed = batches({"one": (Corpus(12), 1.0)}, [objective], context, 4, seed=1, in_lanes=True)
    in_pass = len(fed.feeds[0].index)
    lanes = -(-in_pass // 4)
    for k in range(2 * lanes):
        begins = fed.batch(k)["begins"].tolist()
        there = [member != (-1, -1) for member in fed.members(k)]
        assert begins == [k % lanes == 0 or not each for each in there]


@pytest.mark.parametrize("across", [True, False])
def test_windows_read_no_token_twice_where_the_rows_before_are_remembered(across):
    context = Context(tokenizer(), 16, remembers=True)
    objective = find("objectives", "masked_lm")(context, across_documents=across)
    corpus, rng = Corpus(12), np.random.default_rng(0)
    index = objective.index(corpus, rng)
    rows = objective.segments(corpus, index.entries, rng)
    assert (rows["token_ids"] >= 5).sum() == corpus.num_tokens
    np.testing.assert_array_equal(rows["padding_mask"].sum(axis=1), index.lengths)


XL = {"num_layers": 1, "hidden_dim": 32, "num_heads": 2, "intermediate_dim": 64}
FAMILIES = {
    "transformer_xl": (XL | {"memory_length": 16, "evaluation_memory_length": 32}, "causal_lm"),
    "xlnet": (XL | {"memory_length": 16}, "permutation_lm"),
}


def remembering(family: str, **changes: Any) -> Any:
    network, objective = FAMILIES[family]
    given = {"family": family, "network": network, "objectives": {objective: {}}}
    return job((), **(given | changes))


@pytest.mark.parametrize(
    "family", ["transformer_xl", pytest.param("xlnet", marks=pytest.mark.slow)]
)
def test_a_family_trains_with_its_memory_and_killed_ends_with_the_same_bits(family, tmp_path):
    whole = train(remembering(family), tmp_path / "whole")
    with pytest.raises(Killed):
        train(remembering(family), tmp_path / "killed", KillingAt(8))
    again = train(remembering(family), tmp_path / "killed")
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    assert again.metrics["last"]["loss"] == whole.metrics["last"]["loss"]


@pytest.mark.usefixtures("untraced")
def test_held_out_loss_is_that_of_one_token_after_another(tmp_path):
    """Of a text in lanes that fit the memory: equals a reading of each lane as one long row."""
    changes = {"network": FAMILIES["transformer_xl"][0] | {"evaluation_memory_length": 200}}
    train(remembering("transformer_xl", budget=Budget("steps", 2), **changes), tmp_path / "stage")
    corpus = Corpus(20, 3)
    found = heldout_losses(tmp_path / "stage", tokenizer(), {"a": corpus}, objective="causal_lm")[
        "a"
    ]
    stage = load_stage(tmp_path / "stage", tokenizer(), precision="float32")
    objective = stage.objective("causal_lm")
    scorer = stage.scorer("causal_lm", objective)
    stream = Stream(corpus, tokenizer().cls_id, tokenizer().sep_id)
    rows = -(-(len(stream) - 1) // 16)
    lane, nats, total = -(-rows // 16) * 16, 0.0, 0.0
    for start in range(0, len(stream) - 1, lane):
        ids = stream.read(start, lane + 1)[0][None]
        weight = (ids[:, 1:] != tokenizer().cls_id).astype(np.float32)
        batch = {"token_ids": ids[:, :-1], "next_labels": ids[:, 1:], "next_weights": weight}
        loss, count = scorer(batch, stage.network(batch))[0]["loss"]
        nats, total = nats + float(loss), total + float(count)
    assert found["loss"] == pytest.approx(nats / total, rel=1e-5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"micro_batches": 2}, "got batch_size 8, micro_batches 2, alternate false"),
        ({"phases": [Phase(16, 0.5), Phase(32, 0.5, 4)]}, "got batch_size 4, 8, micro_batches 1"),
    ],
)
def test_what_does_not_go_with_memory_is_refused_with_the_numbers(changes, said, tmp_path):
    with pytest.raises(RecipeError, match=said):
        train(remembering("transformer_xl", **changes), tmp_path / "stage")


def test_rows_of_single_documents_are_refused_for_a_network_that_remembers():
    with pytest.raises(RecipeError, match="across_documents: expected true for a network that"):
        find("objectives", "causal_lm")(
            Context(tokenizer(), 16, remembers=True), across_documents=False
        )


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("xlnet", {"micro_batches": 2}),
        ("transformer_xl", {"feature_based": {"hidden_dim": 8, "num_layers": 1, "dropout": 0.0}}),
    ],
    ids=["xlnet", "transformer_xl"],
)
@pytest.mark.usefixtures("untraced")
def test_a_head_reads_its_rows_without_memory(family, changes, tmp_path):
    made = finetuning(
        family=family,
        network=FAMILIES[family][0],
        budget=Budget("steps", 2),
        rows={"train": Rows(24, 1), "dev": Rows(16, 2)},
        **changes,
    )
    outcome = train(made, tmp_path / "stage")
    assert np.isfinite(outcome.metrics["last"]["loss"])
