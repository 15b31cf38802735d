"""Package a fine-tuned stage for serving: raw text in, probabilities out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from corpora.pieces import as_read
from tasks.steps.durable import durable
from tasks.steps.tokens import linked_entities, load_tokenizer
from tasks.store.artifacts import Findings
from tasks.store.steps import Bound


@durable()
def package_model(step: Bound, folder: Path) -> Findings:
    """Export a SavedModel with tokenizer, network and head."""
    from models.interchange.saved_model import export_text_model

    stage, settings = step.inputs["stage"], step.step.settings
    export_text_model(
        stage.folder,
        step.inputs["tokenizer"].folder,
        folder,
        pairs=settings["pairs"],
        most_regions=settings.get("most_regions", 0),
        entities=_meanings(step) if "entities" in settings else None,
        folders=step.step.given["folders"],
    )
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Findings({"size_mb": size / 1e6})


def _meanings(step: Bound) -> Mapping[str, int]:
    """What each name means, as the text that the stage has read was linked."""
    from corpora.linking import Entities

    tokenizer = load_tokenizer(step.inputs["tokenizer"])
    names, numbers = zip(*linked_entities(step), strict=True)
    return Entities(as_read(tokenizer, names), numbers).numbers
