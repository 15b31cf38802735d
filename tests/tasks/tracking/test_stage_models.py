"""Models that are half uploaded leave no files."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlflow.entities import LoggedModel

from tasks.tracking.connection import Tracking
from tasks.tracking.runs import ensure_experiment, start_lifecycle
from tasks.tracking.stage_models import upload
from tasks.tracking.tags import HOME, KEY

TAGS = {KEY: "ab" * 32}


def uploaded(tracking: Tracking, whole: bool) -> LoggedModel:
    """A model of one file, beside one that can't be read if it is not whole."""

    def fill(model: LoggedModel, place: Path) -> None:
        (place / "weights").write_bytes(b"w")
        if not whole:
            (place / "later").mkdir()
            (place / "later" / "gone").symlink_to("nowhere")

    run = start_lifecycle(tracking, "demo")
    experiment = ensure_experiment(tracking, "demo")
    return upload(tracking, experiment, run, fill, name="general", tags=TAGS)


def weights(home: Path) -> list[Path]:
    return list((home / "mlflow").rglob("weights"))


def test_an_upload_that_fails_takes_no_disk(tracking: Tracking, home: Path):
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            uploaded(tracking, whole=False)
        assert weights(home) == []
    uploaded(tracking, whole=True)
    assert len(weights(home)) == 1


def test_what_a_killed_upload_left_goes_with_the_next(
    tracking: Tracking, home: Path, tmp_path: Path
):
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "weights").write_bytes(b"w")
    left = []
    for of in (tracking.home, "another"):
        model = tracking.client.create_logged_model(
            ensure_experiment(tracking, "demo"), tags={**TAGS, HOME: of}
        )
        tracking.client.log_model_artifacts(model.model_id, str(tmp_path / "half"))
        left.append(model.model_id)
    model = uploaded(tracking, whole=True)
    there = {path.parents[1].name for path in weights(home)}
    assert there == {model.model_id, left[1]}, "another home may be uploading its own"
