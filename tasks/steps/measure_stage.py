"""Measure a network after a stage: held-out loss and task metric."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.steps.durable import durable
from tasks.steps.heldout_losses import a_character, a_word
from tasks.steps.tokens import HELDOUT, ROWS, documents, load_tokenizer
from tasks.store.artifacts import Findings, Input
from tasks.store.predictions import WORD_REGIONS
from tasks.store.step_names import LABELLED
from tasks.store.steps import Bound

if TYPE_CHECKING:
    from models.protocols import Tokenizer


@durable()
def measure_stage(step: Bound, folder: Path) -> Findings:
    """Measure held-out loss on the texts among the inputs, and the task metric on dev rows, if any.

    Before the finetune stage, the task metric is that of a linear probe on frozen features; after
    it, that of the fine-tuned model.
    """
    from corpora.shards import TokenisedRows
    from models.catalogue import answers_of
    from models.evaluation.heldout import has_objective, heldout_losses
    from models.evaluation.predict import predict
    from models.evaluation.probe import probe
    from models.evaluation.resampling import scores
    from models.training.trained_stage import config_of

    settings, folders = step.step.settings, step.step.given["folders"]
    stage, tokenizer = step.inputs["stage"], load_tokenizer(step.inputs["tokenizer"])
    tokens = {
        role.removeprefix("tokens "): artifact
        for role, artifact in step.inputs.items()
        if role.startswith("tokens ")
    }
    objective = settings["objective"]
    measurable = bool(objective) and has_objective(stage.folder, objective, folders)
    family = config_of(stage.folder)["family"]
    # Of a dataset with pictures all dev rows, though their texts may be those of training rows.
    heldout = {
        name: texts
        for name, artifact in tokens.items()
        if measurable
        and (texts := documents(artifact, tokenizer, family, folders, HELDOUT)).num_tokens
    }
    losses: Mapping[str, Mapping[str, float]] = {}
    left_out: dict[str, str] = {}
    if heldout:
        losses = heldout_losses(
            stage.folder,
            tokenizer,
            heldout,
            objective=objective,
            sequence_length=settings["sequence_length"],
            folders=folders,
            counted={
                name: documents(tokens[name], tokenizer, family, folders)
                for name in settings.get("counted", ())
            },
            left_out=left_out,
        )
    rows = step.inputs.get(LABELLED)
    labelled = [*(tokens[name] for name in sorted(tokens)), *([rows] if rows else [])]
    _show_regions(stage.folder, tokenizer, labelled, folder, folders)
    loss = {name: scores["loss"] for name, scores in losses.items()}
    found: dict[str, Any] = {
        "heldout_loss": loss,
        "heldout_error": {n: scores["error"] for n, scores in losses.items() if "error" in scores},
        "heldout_loss_a_character": a_character(loss, step.inputs, objective, folders),
        "heldout_loss_a_word": a_word(loss, step.inputs, objective, folders),
        "heldout_accuracy": {
            name: scores["accuracy"] for name, scores in losses.items() if "accuracy" in scores
        },
        **({"not_measured": left_out} if left_out else {}),
    }
    if rows is not None and len(dev := TokenisedRows(rows.path(ROWS), "dev")):
        metric, answers = settings["metric"], answers_of(settings["head"], folders)
        if settings["stage"] == "finetune":
            found_answers = predict(stage.folder, tokenizer, dev, metrics=[metric], folders=folders)
            said = [answer.text for answer in found_answers]
        elif not answers.is_class:
            said = None
        else:
            train = TokenisedRows(rows.path(ROWS), "train")
            said = probe(
                stage.folder,
                tokenizer,
                train,
                dev,
                markings=rows.facts["markings"],
                folders=folders,
            )
        if said is not None:
            value = scores(answers, dev.answers, said, [metric])[metric]
            found["task_metric"] = {"name": metric, "value": value}
    (folder / "measured.json").write_text(json.dumps(found, indent=1, sort_keys=True))
    return Findings(found)


def _show_regions(
    stage: Path,
    tokenizer: Tokenizer,
    sources: Sequence[Input],
    to: Path,
    folders: Sequence[Path],
) -> None:
    """Write what words of a few dev rows look at, if the network sees and a source has pictures."""
    from corpora.shards import TokenisedRows
    from models.catalogue import provided
    from models.evaluation.word_regions import word_regions
    from models.training.trained_stage import config_of

    if "regions" not in provided(config_of(stage)["family"], folders):
        return
    for artifact in sources:
        if "labels" in artifact.facts:
            rows = TokenisedRows(artifact.path(ROWS), "dev")
            if rows.most_regions and len(rows):
                if found := word_regions(stage, tokenizer, rows, folders):
                    said = json.dumps(found, ensure_ascii=False)
                    (to / WORD_REGIONS).write_text(said, encoding="utf-8")
                return
