"""A network that remembers the batch before: what it remembers, and that a killed run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fourstage.errors import RecipeError
from models.catalogue import find
from models.evaluation.heldout import heldout_losses
from models.training.gradient import train
from models.training.stage import Budget, Phase
from models.training.stage_model import StageModel
from tests.models.training.memory import Corpus, pretraining, tokenizer
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


def test_parts_of_a_batch_are_refused(folders, tmp_path):
    with pytest.raises(RecipeError, match="micro_batches 1"):
        train(job(folders, micro_batches=2), tmp_path / "stage")
