"""Numbers by a network and by n-grams: what a stage begins with, and the blend that it keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from scipy.stats import pearsonr

from models.blend import fitted
from models.evaluation.predict import RowPredictor, predict
from models.heads.sequence_regression import SequenceRegression
from models.layers.wide import WidePart
from models.protocols import Context
from models.training.gradient import train
from models.training.stage import Budget
from models.training.trained_stage import load_stage
from tests.models.memory_corpus import MemoryRows
from tests.models.training.memory import finetuning, tokenizer

HEAD = "heads/sequence_regression.safetensors"
SETTINGS = {"wide": True, "shared_tokens": True, "symmetric": True}


def pairs(number: int, seed: int) -> MemoryRows:
    """Two texts of six tokens; the number is how many they share."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(number):
        first = rng.choice(np.arange(20, 60), 6, replace=False).tolist()
        second = rng.choice(np.arange(60, 100), 6, replace=False).tolist()
        shared = int(rng.integers(0, 7))
        second[:shared] = first[:shared]
        made.append((first, second, str(shared)))
    return MemoryRows(made)


TRAIN, DEV = pairs(80, 1), pairs(40, 2)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numbers") / "stage"
    job = finetuning(
        head="sequence_regression",
        head_settings=SETTINGS,
        rows={"train": TRAIN, "dev": DEV},
        select={"metric": "pearson", "split": "dev"},
    )
    train(job, folder)
    return folder


def test_before_the_first_update_it_answers_as_counting_alone(trained: Path) -> None:
    head = SequenceRegression(Context(tokenizer(), 32, (), TRAIN), wide=True)
    part = WidePart(1)
    part.build()
    part.learn(head.wide.machine)
    alone = np.asarray(part(head.wide.of_rows(DEV, range(len(DEV)))))[:, 0]
    expected = pearsonr(alone, [float(answer) for answer in DEV.answers]).statistic
    evaluations = json.loads((trained / "metrics.json").read_text())["selection"]["evaluations"]
    assert [each["step"] for each in evaluations][:2] == [0, 20]
    assert evaluations[0]["pearson"] == pytest.approx(expected, abs=1e-5)
    assert expected > 0.9


def test_beside_a_network_in_bfloat16_nothing_of_it_is_rounded(trained: Path, tmp_path: Path):
    job = finetuning(
        head="sequence_regression",
        head_settings=SETTINGS,
        rows={"train": TRAIN, "dev": DEV},
        select={"metric": "pearson", "split": "dev"},
        precision="bfloat16",
        budget=Budget("steps", 2),
    )
    train(job, tmp_path / "stage")
    first, rounded = (
        json.loads((folder / "metrics.json").read_text())["selection"]["evaluations"][0]
        for folder in (trained, tmp_path / "stage")
    )
    assert rounded["pearson"] == pytest.approx(first["pearson"], abs=1e-6)
    predict(tmp_path / "stage", tokenizer(), DEV)


def test_answers_are_by_the_blend_of_both_over_both_orders(trained: Path) -> None:
    loaded = load_stage(trained, tokenizer())
    head = loaded.objective("sequence_regression")
    scorer = loaded.scorer("sequence_regression", head)
    kept = load_file(trained / HEAD)["wide/blend"]
    mean, deviation = (float(getattr(scorer, name)) for name in ("mean", "deviation"))
    found: list[Any] = []
    for factors in ((1.0, 0.0), (0.0, 1.0)):
        scorer.wide.blend.assign(factors)
        outputs = RowPredictor(loaded.network, head, scorer, DEV, loaded.context).outputs()
        found.append([np.mean([entry["numbers"] for entry in own]) for own in outputs])
    network, counted = ((np.array(each) - mean) / deviation for each in found)
    numbers = (np.array([float(answer) for answer in DEV.answers]) - mean) / deviation
    step = json.loads((trained / "metrics.json").read_text())["selection"]["step"]
    best = fitted(network[:, None], counted[:, None], numbers) if step else [0, 1]
    assert kept == pytest.approx(np.array(best), abs=1e-3)
    blended = (kept[0] * network + kept[1] * counted) * deviation + mean
    said = [float(answer.text) for answer in predict(trained, tokenizer(), DEV)]
    assert said == pytest.approx(blended, abs=1e-3)
