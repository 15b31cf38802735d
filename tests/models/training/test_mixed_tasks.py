"""Tasks that are learnt together: each is answered behind its own prefix, and a resume is exact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fourstage.errors import RecipeError
from models.evaluation.predict import RowPredictor
from models.tokenizers.wordpiece import SPECIAL_TOKENS
from models.training.gradient import train
from models.training.stage import Budget, Phase
from models.training.trained_stage import load_stage
from tests.models.memory_corpus import MemoryRows
from tests.models.training.memory import cut_off_after, finetuning, tokenizer
from tests.models.training.test_gradient import weights

# Both read the same texts; only the prefix says which words are asked for.
WORDS = {"own": {"high": "wba", "low": "wbb"}, "other": {"high": "wbc", "low": "wbd"}}
PREFIXES = {"own": "waa wab", "other": "wac"}
NETWORK = {
    "num_layers": 1,
    "num_decoder_layers": 1,
    "hidden_dim": 32,
    "num_heads": 2,
    "intermediate_dim": 64,
    "dropout": 0.0,
    "max_sequence_length": 20,
}


def rows(task: str, number: int, seed: int, kind: str = "text") -> MemoryRows:
    """Rows of ten words of one kind or of the other, none in a prefix or an answer."""
    rng = np.random.default_rng(seed)
    made = []
    for half in rng.choice(["high", "low"], number).tolist():
        start = {"low": len(SPECIAL_TOKENS) + 60, "high": len(SPECIAL_TOKENS) + 130}[half]
        word = WORDS[task][half]
        text = rng.integers(start, start + 10, rng.integers(3, 8)).tolist()
        made.append((text, word if kind == "label" else json.dumps([word])))
    return MemoryRows(made)


def mixing(**changes: Any):
    settings = {
        "family": "t5",
        "network": NETWORK,
        "phases": [Phase(20)],
        "head": "sequence_to_sequence",
        "head_settings": {"target_length": 4, "prefix": PREFIXES["own"]},
        "rows": {"train": rows("own", 200, 1), "dev": rows("own", 40, 2)},
        "beside": {"other": rows("other", 100, 3, "label")},
        "mixture": {
            "beside": {"other": {"prefix": PREFIXES["other"], "answers": "label"}},
            "limit": 50,
            "temperature": 1.0,
        },
        "optimizer": {"adamw": {"peak_learning_rate": 1e-2, "warmup": 0.1}},
        "budget": Budget("steps", 150),
        "select": None,
    }
    return finetuning(**(settings | changes))


def answers(folder: Path, task: str, asked: MemoryRows) -> list[str]:
    """What a trained stage writes behind the prefix of a task."""
    stage = load_stage(folder, tokenizer())
    head = stage.objective()
    scorer = stage.scorer("sequence_to_sequence", head)
    made = type(head)(stage.context, target_length=4, prefix=PREFIXES[task])
    found = RowPredictor(stage.network, made, scorer, asked, stage.context).answers()
    return [answer.text for answer in found]


def test_each_task_is_answered_behind_its_prefix(tmp_path: Path) -> None:
    outcome = train(mixing(), tmp_path / "stage")
    # At the limit of 50 rows both are read as often: 600 examples of 200 rows and of 100.
    assert outcome.passes == {"rows": pytest.approx(3.0), "other": pytest.approx(6.0)}
    for task in WORDS:
        dev = rows(task, 40, 2)
        found = answers(tmp_path / "stage", task, dev)
        assert set(found) == set(dev.answers), "the words of the other task answer nothing here"
        right = sum(a == b for a, b in zip(found, dev.answers, strict=True))
        assert right >= 36, task  # by chance 20
    config = json.loads((tmp_path / "stage" / "config.json").read_text("utf-8"))
    assert config["head"]["sequence_to_sequence"]["prefix"] == PREFIXES["own"]


@pytest.mark.usefixtures("untraced")
def test_cut_off_and_resumed_a_mixture_ends_with_the_same_bits(tmp_path: Path) -> None:
    job = mixing(micro_batches=2, budget=Budget("steps", 6), checkpoint_every=2)
    train(job, tmp_path / "whole")
    cut_off_after(4, tmp_path / "whole", tmp_path / "parts")
    train(job, tmp_path / "parts")
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")


def test_a_prefix_that_leaves_no_room_is_refused_where_it_stands(tmp_path: Path) -> None:
    long = {"other": {"prefix": "waa " * 13, "answers": "label"}}
    job = mixing(mixture={"beside": long, "limit": None, "temperature": 1.0})
    with pytest.raises(RecipeError, match=r"mixture\.beside\.other: 13 tokens leave no room"):
        train(job, tmp_path)
