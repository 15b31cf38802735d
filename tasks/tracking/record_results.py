"""Record a finished run in MLflow: parameters, metrics and pictures."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.store.ancestry import gather, join
from tasks.store.artifacts import Artifact, store
from tasks.store.attention_file import ATTENTION
from tasks.store.model_facts import ModelFacts, facts_of
from tasks.store.predictions import PREDICTIONS
from tasks.store.steps import BEFORE_LABELS
from tasks.tracking.connection import Tracking, answered
from tasks.tracking.dataset_inputs import dataset_input
from tasks.tracking.run_descriptions import lifecycle_note
from tasks.tracking.run_metrics import Figure, figures, log_figures
from tasks.tracking.run_parameters import log_parameters, parameters
from tasks.tracking.runs import set_tags
from tasks.tracking.stage_models import stages_of
from tasks.tracking.tags import NOTE

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedRecipe

PLACE = "evaluation"  # folder of the run's artifacts


@answered
def record_results(
    tracking: Tracking,
    run_id: str,
    recipe: ResolvedRecipe,
    made: Mapping[str, Artifact],
    model_id: str | None = None,
) -> ModelFacts | None:
    """Log parameters, metrics and pictures to a lifecycle run and its registered model.

    Args:
        tracking: The MLflow connection.
        run_id: The lifecycle run.
        recipe: The resolved recipe.
        made: Artifacts by step name, possibly of an incomplete run.
        model_id: The logged model of the registered version.

    Returns:
        Facts of the last stage; None if nothing was measured.
    """
    from mlflow.entities import LoggedModelOutput

    client = tracking.client
    run = client.get_run(run_id)
    stages = stages_of(run.data.tags)
    runs = {name: client.get_run(stage.run_id) for name, stage in stages.items()}
    set_tags(tracking, run_id, {NOTE: lifecycle_note(run.data.tags, runs)})
    log_parameters(tracking, run_id, parameters(recipe), model_id)
    made_here = {output.model_id for output in run.outputs.model_outputs} if run.outputs else set()
    if model_id and model_id not in made_here:
        # The same package is the same model, so link an existing model from this run too.
        client.log_outputs(run_id, [LoggedModelOutput(model_id, 0)])
    facts = _known(made)
    if facts is None:
        return None
    found = list(figures(facts))
    if facts.dataset is not None:
        client.log_inputs(run_id, datasets=[dataset_input(facts.dataset, "evaluation")])
        if facts.scores["baseline"] and facts.scores["answers"] == "label":
            error = _log_pictures(tracking, run_id, made["evaluation"])
            found.append(Figure("calibration_error", error, text=facts.dataset))
    log_figures(
        tracking,
        run_id,
        found,
        model_id=model_id,
        stage_models={stage.key: stage.model_id for stage in stages.values()},
        timestamp=run.info.start_time,
    )
    _log_curves(tracking, run_id, facts)
    _log_word_regions(tracking, run_id, made)
    if "attention" in made and ATTENTION in made["attention"].outputs:
        _log_attention(tracking, run_id, made["attention"])
    return facts


def _known(made: Mapping[str, Artifact]) -> ModelFacts | None:
    """Facts of the last measured stage, with its evaluation if there is one."""
    measured = [artifact for artifact in made.values() if artifact.kind == "measurement"]
    before = [artifact for artifact in made.values() if artifact.kind in BEFORE_LABELS]
    last = [made["evaluation"]] if "evaluation" in made else measured[-1:]
    if not last:
        return None
    whole = gather(store().root, last[0])
    for artifact in [*measured, *before]:
        whole = join(whole, gather(store().root, artifact))
    return facts_of(whole)


def _log_curves(tracking: Tracking, run_id: str, facts: ModelFacts) -> None:
    """What the pre-trained network knows, a picture for each test that has one."""
    from tasks.reports.few_shot_table import few_shot_plot
    from tasks.reports.polysemy import senses_plot
    from tasks.reports.word_in_context import layers_plot
    from tasks.reports.word_map import map_plot

    of_kind = facts.ancestry.of_kind
    drawn = [(asked.name, few_shot_plot(asked.facts)) for asked in of_kind("few_shot")]
    drawn += [(test.name, layers_plot(test.facts)) for test in of_kind("word_in_context")]
    for test in of_kind("polysemy"):
        words = test.facts["words"].items()
        drawn += [(f"polysemy {number}", senses_plot(*w)) for number, w in enumerate(words, 1)]
    drawn += [(test.name, map_plot(test.facts)) for test in of_kind("word_map")]
    _log_drawn(tracking, run_id, drawn)


def _log_word_regions(tracking: Tracking, run_id: str, made: Mapping[str, Artifact]) -> None:
    """What words look at in their pictures after each stage."""
    from tasks.reports.word_region_plot import word_regions_of

    plots = {f"word_regions_{name}": word_regions_of(each) for name, each in made.items()}
    _log_drawn(tracking, run_id, [(name, plot) for name, plot in plots.items() if plot])


def _log_attention(tracking: Tracking, run_id: str, attention: Artifact) -> None:
    """What tokens attend to: a picture of each text and kind, and the numbers."""
    from tasks.reports.attention_plot import attention_pictures

    pictures = attention_pictures(attention)
    _log_drawn(tracking, run_id, [(f"attention_{name}", picture) for name, picture in pictures])
    tracking.client.log_artifact(run_id, str(attention.path(ATTENTION)), PLACE)


def _log_drawn(tracking: Tracking, run_id: str, drawn: Sequence[tuple[str, bytes]]) -> None:
    """Log pictures under their names."""
    with tempfile.TemporaryDirectory() as temporary:
        for name, picture in drawn:
            (Path(temporary) / f"{name.replace(' ', '_')}.png").write_bytes(picture)
        if drawn:
            tracking.client.log_artifacts(run_id, temporary, PLACE)


def _log_pictures(tracking: Tracking, run_id: str, evaluation: Artifact) -> float:
    """Pictures and table of a classifier's errors; returns its calibration error."""
    import pandas

    from tasks.reports.score_plots import (
        answers_of,
        calibration_of,
        confusion_plot,
        label_scores,
        label_table,
        precision_recall_plot,
        reliability_plot,
    )

    answers = answers_of(pandas.read_parquet(evaluation.path(PREDICTIONS)))
    scores = label_scores(answers)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "labels.csv").write_text(label_table(scores), encoding="utf-8")
        (folder / "confusion.png").write_bytes(confusion_plot(answers, scores))
        (folder / "precision_recall.png").write_bytes(precision_recall_plot(answers, scores))
        (folder / "reliability.png").write_bytes(reliability_plot(answers))
        tracking.client.log_artifacts(run_id, temporary, PLACE)
    return calibration_of(answers).error
