"""Package a fine-tuned stage for serving: raw text in, probabilities out."""

from __future__ import annotations

from pathlib import Path

from tasks.steps.durable import durable
from tasks.store.artifacts import Findings
from tasks.store.steps import Bound


@durable()
def package_model(step: Bound, folder: Path) -> Findings:
    """Export a SavedModel with tokenizer, network and head."""
    from models.interchange.saved_model import export_text_model

    stage = step.inputs["stage"]
    export_text_model(
        stage.folder,
        step.inputs["tokenizer"].folder,
        folder,
        pairs=step.step.settings["pairs"],
        most_regions=step.step.settings.get("most_regions", 0),
        folders=step.step.given["folders"],
    )
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Findings({"size_mb": size / 1e6})
