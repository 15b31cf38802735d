"""A real comparison, as one types it: two recipes, two seeds, what they share made once."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fourstage.digests import digest

RECIPE = """
name: {name}
family: bert
size: {{num_layers: 1, hidden_dim: 32, num_heads: 2, intermediate_dim: 64}}
tokenizer: {{vocabulary_size: 500, learn_from: [python_scientific]}}
seeds: {{values: [1, 2], from: finetune}}
stages:
{stages}  - stage: finetune
    dataset: python_libraries
    head: {{sequence_classification: {{}}}}
    sequence_length: 32
    budget: {{steps: 12}}
    optimizer: {{adamw: {{peak_learning_rate: 1.0e-3}}}}
evaluate:
  metrics: [macro_f1, accuracy]
  probes: {{smoke_labels: accuracy, python_libraries: macro_f1}}
"""
STAGE = """  - stage: {stage}
    corpora: {{python_scientific: 1.0}}
    objectives: {{masked_lm: {{}}}}
    sequence_length: 32
    batch_size: 8
    budget: {{steps: {steps}}}
"""


def _compare(home: Path, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "fourstage.command", "compare", *words, "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, "FOURSTAGE_HOME": str(home)},
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def _recipe(folder: Path, name: str, **steps: int) -> str:
    stages = "".join(STAGE.format(stage=stage, steps=count) for stage, count in steps.items())
    path = folder / f"{name}.yaml"
    path.write_text(RECIPE.format(name=name, stages=stages))
    return str(path)


@pytest.mark.slow
def test_two_recipes_over_two_seeds_share_what_is_the_same_and_go_on_where_they_were(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    short = _recipe(tmp_path, "short", general=10)
    long = _recipe(tmp_path, "long", general=10, domain=20)
    table = _compare(home, short, long)

    stages = list((home / "store" / "stage").glob("*/manifest.json"))
    names = sorted(map(_named, stages))
    assert names == [
        "stage domain",
        *["stage finetune"] * 4,
        "stage general",
    ]
    assert [recipe["name"] for recipe in table["recipes"]] == ["short", "long"]
    for recipe in table["recipes"]:
        assert recipe["seeds"] == [1, 2]
        assert len(recipe["metrics"]["macro_f1"]["values"]) == 2
        assert recipe["heldout_loss"]["python_scientific"] > 0
        parts = [recipe[of]["tokens"] for of in ("teachers", "pretraining", "finetuning")]
        assert parts[0] == 0
        assert recipe["tokens"] == sum(parts)
        assert 4 < recipe["unigram_loss"]["python_scientific"] < math.log(500)
        # Both fine-tunings share one pre-training, and so its probes.
        probed = recipe["metrics"]["probe_mean"]
        assert len(probed["values"]) == 1
        assert probed["mean"] == pytest.approx(sum(probed["parts"].values()) / 2)
    assert len(list((home / "store" / "probe").glob("*/manifest.json"))) == 4
    assert table["metrics"] == ["probe_mean", "macro_f1", "accuracy"]
    assert list(table["probes"]) == ["smoke_labels", "python_libraries"]
    assert sum("too short" in note for note in table["notes"]) == 2
    judged = [(d["candidate"], d["reference"]) for d in table["differences"]["macro_f1"]]
    cheap = "TF-IDF + linear SVM"
    assert judged == [("long", "short"), ("short", cheap), ("long", cheap)]
    verdicts = {d["verdict"] for of in table["differences"].values() for d in of}
    assert verdicts <= {"better", "worse", "not distinguishable"}
    assert [rival["name"] for rival in table["baselines"]] == [
        "TF-IDF + linear SVM",
        "majority class",
    ]
    kept = Path(table["folder"])
    assert sorted(path.name for path in kept.iterdir()) == ["plot.png", "table.json", "table.md"]
    assert json.loads((kept / "table.json").read_text()) == table

    before = {path: path.stat().st_mtime_ns for path in (home / "store").glob("*/*/manifest.json")}
    assert _compare(home, short, long)["digest"] == table["digest"]
    after = {path: path.stat().st_mtime_ns for path in (home / "store").glob("*/*/manifest.json")}
    assert after == before

    equal = _compare(home, short, long, "--equal", "tokens")
    one, other = (recipe["pretraining"]["tokens"] for recipe in equal["recipes"])
    assert other == pytest.approx(one, rel=0.15)
    assert equal["digest"] != table["digest"]

    # Made by other code, a stage that is accepted is not trained again; all else is.
    (general,) = (path for path in stages if _named(path) == "stage general")
    _leave_as_made_by_other_code(general)
    accepted = _compare(home, short, "--seeds", "1", "--accept-code-change", "general")
    (after_it,), first = accepted["recipes"], table["recipes"][0]
    for metric, score in after_it["metrics"].items():
        assert score["values"] == first["metrics"][metric]["values"][:1]
    told = "short: accepted as made by other code, where there is one: general"
    assert told in accepted["notes"]
    names = sorted(map(_named, (home / "store" / "stage").glob("*/manifest.json")))
    assert names == ["stage finetune", "stage general"]


def _named(path: Path) -> str:
    return json.loads(path.read_text())["name"]


def _leave_as_made_by_other_code(kept: Path) -> None:
    """Remove all that was trained and measured but one stage, whose code becomes another."""
    for path in kept.parents[2].glob("*/*/manifest.json"):
        manifest = json.loads(path.read_text())
        if path == kept:
            manifest["preimage"]["code"] = "0" * 64
            manifest["key"] = digest(manifest["preimage"])
            path.write_text(json.dumps(manifest))
            path.parent.rename(path.parent.with_name(manifest["key"]))
        elif manifest["kind"] in ("stage", "probe", "measurement", "evaluation", "package"):
            shutil.rmtree(path.parent)
