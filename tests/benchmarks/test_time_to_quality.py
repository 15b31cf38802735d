"""Time to quality: means over seeds, when a curve is at a loss, and what is not trained again."""

from __future__ import annotations

import json
import math
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.time_to_quality import Bench, curves, minutes_to


def run(arm: str, minutes: float, seed: int, nats: float, seconds: float) -> dict[str, Any]:
    found = {"nats": nats, "dev": 1 - nats / 4, "tokens": 1000 * seconds, "seconds": seconds}
    return {"arm": arm, "minutes": minutes, "seed": seed, **found}


def curve(points: dict[float, float]) -> dict[float, dict[str, float]]:
    """A curve through {minutes: loss}."""
    return {
        minutes: {"nats": loss, "seconds": 60 * minutes} for minutes, loss in sorted(points.items())
    }


def test_a_curve_has_the_means_of_its_seeds() -> None:
    found = curves(
        [
            run("ours", 5.0, 1, 2.0, 290.0),
            run("theirs", 5.0, 1, 3.0, 300.0),
            run("ours", 5.0, 2, 1.0, 310.0),
            run("ours", 10.0, 1, 0.5, 600.0),
        ]
    )
    assert {arm: list(of) for arm, of in found.items()} == {"ours": [5.0, 10.0], "theirs": [5.0]}
    assert found["ours"][5.0] == {"nats": 1.5, "dev": 0.625, "tokens": 300_000.0, "seconds": 300.0}
    assert found["theirs"][5.0]["nats"] == 3.0


def test_a_loss_is_reached_between_points_on_a_logarithmic_scale() -> None:
    points = curve({5.0: 2.0, 20.0: 1.0, 80.0: 0.5})
    for minutes, of in points.items():
        assert minutes_to(points, of["nats"]) == pytest.approx(minutes)
    assert minutes_to(points, 1.5) == pytest.approx(10.0)
    assert minutes_to(points, 0.75) == pytest.approx(40.0)


def test_a_loss_counts_from_when_it_was_first_reached() -> None:
    points = curve({5.0: 2.0, 10.0: 1.0, 20.0: 1.2, 40.0: 0.5})  # worse once, by chance
    assert minutes_to(points, 2.5) == pytest.approx(5.0), "at its first point already"
    assert minutes_to(points, 1.5) == pytest.approx(math.sqrt(50))
    assert 20.0 < minutes_to(points, 0.9) < 40.0
    assert minutes_to(points, 0.4) == math.inf


def test_what_is_finished_is_not_trained_again(tmp_path: Path) -> None:
    options = Namespace(out=tmp_path, text="text", rows="rows")
    (tmp_path / "sources.json").write_text(json.dumps(["text", "rows"]), "utf-8")
    trained: list[tuple[float, int]] = []

    def train(minutes: float, seed: int) -> dict[str, float]:
        trained.append((minutes, seed))
        return {"nats": 1.0 / len(trained)}

    for _ in range(2):  # the second one was stopped, and reads the log
        bench = Bench(options)
        assert [bench.once("ours", 5.0, seed, train)["nats"] for seed in (1, 2, 1)] == [
            1.0,
            0.5,
            1.0,
        ]
    assert trained == [(5.0, 1), (5.0, 2)]
    with pytest.raises(SystemExit, match="made with other sources"):
        Bench(Namespace(out=tmp_path, text="text", rows="others"))
