"""A threshold chosen on dev: the best of all, written where predictions and served models look."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fourstage.errors import RecipeError
from models.answers.label_set import LabelSet
from models.evaluation.predict import predict
from models.evaluation.resampling import scores
from models.stage_format import CONFIG, METRICS
from models.training.gradient import train
from tests.models.training.memory import Recorder, Rows, finetuning, tokenizer


class Sets(Rows):
    """A set of labels per row: its own, and one that a few rows have."""

    def __init__(self, rows: int, seed: int = 0):
        super().__init__(rows, seed)
        self.answers = [
            json.dumps(sorted([label, *(["rare"] if i % 9 == 0 else [])]))
            for i, label in enumerate(self.answers)
        ]


def job(threshold: Any, **changes: Any) -> Any:
    settings: dict[str, Any] = {
        "head": "multi_label_classification",
        "head_settings": {"threshold": threshold},
        "rows": {"train": Sets(48, 1), "dev": Sets(40, 2)},
        "select": None,
    }
    return finetuning(**{**settings, **changes})


HEADS = {
    "tuned": {},
    "frozen": {"feature_based": {"hidden_dim": 12, "num_layers": 1, "dropout": 0.1}},
    # A blend of a network and n-grams, which is fitted before the threshold is chosen.
    "blended": {"head_settings": {"threshold": "dev", "wide": True}},
}


@pytest.mark.parametrize("kind", HEADS)
def test_the_best_threshold_on_dev_is_the_trained_heads_own(tmp_path, kind):
    dev, config = Sets(40, 2), tmp_path / CONFIG

    def micro_f1() -> float:
        said = [answer.text for answer in predict(tmp_path, tokenizer(), dev)]
        return scores(LabelSet(), dev.answers, said, ["micro_f1"])["micro_f1"]

    train(job("dev", **HEADS[kind]), tmp_path, Recorder())
    head = json.loads(config.read_text("utf-8"))["head"]["multi_label_classification"]
    metrics = json.loads((tmp_path / METRICS).read_text("utf-8"))["threshold"]
    best = micro_f1()
    assert metrics == {"value": head["threshold"], "metric": "micro_f1", "score": best}
    others = []
    for threshold in (0.5, 0.05, 0.95):
        text = config.read_text("utf-8").replace(str(head["threshold"]), str(threshold))
        config.write_text(text, "utf-8")
        head["threshold"] = threshold
        others.append(micro_f1())
    assert best >= max(others)
    assert best > min(others)


def test_without_dev_rows_it_is_refused_before_training(tmp_path):
    with pytest.raises(RecipeError, match="threshold: 'dev' needs dev rows"):
        train(job("dev", rows={"train": Sets(48, 1)}), tmp_path, Recorder())
