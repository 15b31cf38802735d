"""A family that is not trained by gradient: counted unigrams, in a project's folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fourstage.errors import RecipeError
from models.catalogue import check_compatible
from models.evaluation.heldout import has_objective, heldout_losses
from models.training.stage import Phase
from models.training.trainer import train
from tests.models.training.memory import Corpus, pretraining, tokenizer

FAMILY = '''
"""How often each token is there."""

import numpy as np
from safetensors.numpy import load_file, save_file

from models.stage_format import NETWORK
from models.training.job import Outcome
from models.training.trained_stage import write_settings

PROVIDES = ("bidirectional",)
TRAINS = True
SIZES = {"tiny": {"added": 1.0}}


class Counted:
    def __init__(self, *, vocabulary_size: int, added: float = 1.0): ...

    @classmethod
    def train(cls, job, folder, listener=None):
        counts = np.full(job.tokenizer.vocabulary_size, job.stage.network["added"])
        if job.initial:
            counts += load_file(job.initial / NETWORK)["counts"]
        for corpus, _ in job.corpora.values():
            for i in range(len(corpus)):
                np.add.at(counts, corpus.document(i)[0], 1)
        folder.mkdir()
        save_file({"counts": counts}, folder / NETWORK)
        write_settings(job, folder, precision="float32", tasks={}, history=[], metrics={})
        return Outcome(1, int(counts.sum()), 0.0, 0.0, {}, dict.fromkeys(job.corpora, 1.0))

    @classmethod
    def heldout_losses(cls, folder, tokenizer, corpora):
        counts = load_file(folder / NETWORK)["counts"]
        nats = -np.log(counts / counts.sum())
        found = {}
        for name, text in corpora.items():
            losses = [nats[text.document(i)[0]] for i in range(len(text))]
            found[name] = {"loss": float(np.concatenate(losses).mean()), "accuracy": 0.0}
        return found
'''


def ids_of(text: Corpus) -> np.ndarray:
    return np.concatenate([text.document(i)[0] for i in range(len(text))])


def test_it_is_trained_measured_and_gone_on_with_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "families").mkdir()
    (tmp_path / "families" / "counted.py").write_text(FAMILY, encoding="utf-8")
    given = {
        "family": "counted",
        "network": {"added": 1.0},
        "objectives": {"masked_lm": {}},
        "phases": [Phase(16)],
        "folders": (tmp_path,),
    }
    texts = {"first": Corpus(40), "second": Corpus(9, 1)}
    before: Path | None = None
    asked = ids_of(texts["first"])
    counts = np.zeros(tokenizer().vocabulary_size)
    for name, text in texts.items():
        train(pretraining(**given, corpora={"one": (text, 1.0)}, initial=before), tmp_path / name)
        before = tmp_path / name
        assert has_objective(before, "masked_lm", (tmp_path,))
        (found,) = heldout_losses(
            before,
            tokenizer(),
            {"one": texts["first"]},
            objective="masked_lm",
            folders=(tmp_path,),
        ).values()
        counts += np.bincount(ids_of(text), minlength=len(counts)) + 1.0
        assert found["loss"] == pytest.approx(-np.log(counts / counts.sum())[asked].mean())
    with pytest.raises(RecipeError, match="trains itself and has no vectors"):
        check_compatible("counted", (), "sequence_classification", (tmp_path,))
