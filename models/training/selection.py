"""Selection of weights and early stopping, by one metric that is measured at intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fourstage.errors import ContractViolation, RecipeError
from models.catalogue import answers_of, measured_by
from models.evaluation.heldout import HeldOut
from models.evaluation.predict import RowPredictor
from models.evaluation.resampling import scores
from models.metrics import HELDOUT_LOSS, is_better
from models.protocols import Context
from models.training.dev_blend import DevBlend
from models.training.job import TrainingJob


@dataclass(frozen=True)
class Selection:
    """The selection metric and its measurement.

    Attributes:
        metric: The metric's name.
        measure: Returns the metric's current value. Calls its argument after each batch; the
            argument may raise to stop.
    """

    metric: str
    measure: Callable[[Callable[[], None]], float]

    def better(self, value: float, best: float) -> bool:
        """Whether a value is better than the best so far."""
        return is_better(self.metric, value, best)


def make_selection(
    job: TrainingJob,
    network: Any,
    objectives: Mapping[str, Any],
    scorers: Mapping[str, Any],
    context: Context,
    tasks: Mapping[str, int],
    blend: DevBlend | None = None,
) -> Selection | None:
    """The selection of a stage; None where it has neither selection nor early stopping.

    Args:
        job: The job; its stage's ``select`` and ``stop`` apply.
        network: The built network, which is trained further between measurements.
        objectives: {name: objective}.
        scorers: {name: its scorer}.
        context: Context of the phase with the longest sequences.
        tasks: {task: its number}.
        blend: What fits a head's blend to the rows before they are judged.

    Raises:
        RecipeError: The metric does not exist, or there are no data to measure it on.
    """
    if not job.stage.select and not job.stage.stop:
        return None
    metric = (job.stage.select or {}).get("metric") or (job.stage.stop or {}).get("metric")
    if job.stage.head is None:
        if metric not in (None, "loss", HELDOUT_LOSS):
            raise RecipeError(
                f"{job.stage.kind}: select.metric: a stage without a head is selected by its"
                f" held-out loss ({HELDOUT_LOSS}), got {metric!r}"
            )
        return Selection(HELDOUT_LOSS, _by_loss(job, network, scorers, context, tasks))
    answers = answers_of(job.stage.head, job.folders)
    metric = metric or answers.usual[-1]
    if metric not in answers.metrics:
        raise RecipeError(
            f"{job.stage.kind}: select.metric: expected one of {', '.join(answers.metrics)}, got"
            f" {metric!r}"
        )
    split = (job.stage.select or {}).get("split", "dev")
    if split not in job.rows or not len(job.rows[split]):
        raise RecipeError(
            f"{job.stage.kind}: select.split: the dataset has no {split} rows; name a split that"
            " has some"
        )
    head = job.stage.head
    rows = job.rows[split]
    predictor = blend or RowPredictor(
        network, objectives[head], scorers[head], rows, context, [metric]
    )

    def measure(go_on: Callable[[], None]) -> float:
        predicted = [answer.text for answer in predictor.answers(go_on)]
        return scores(answers, rows.answers, predicted, [metric])[metric]

    return Selection(metric, measure)


def _by_loss(
    job: TrainingJob,
    network: Any,
    scorers: Mapping[str, Any],
    context: Context,
    tasks: Mapping[str, int],
) -> Callable[[Callable[[], None]], float]:
    """Measure the mean held-out loss over the corpora, under one of the stage's objectives."""
    corpora = {source: corpus for source, corpus in job.heldout.items() if corpus.num_tokens}
    if not corpora:
        raise RecipeError(f"{job.stage.kind}: stop and select need held-out text; there is none")
    name = measured_by(scorers, job.folders) or next(iter(scorers))
    heldout = HeldOut(
        network,
        name,
        scorers[name],
        corpora,
        job.tokenizer,
        context.sequence_length,
        rows=job.heldout_rows,
        folders=job.folders,
        task=tasks.get(name, 0),
        answers=context.answers,
    )

    if not heldout.feeds:
        raise ContractViolation("; ".join(heldout.left_out.values()))

    def measure(go_on: Callable[[], None]) -> float:
        losses = [found["loss"] for found in heldout.losses(go_on).values()]
        if not losses:
            raise RecipeError(
                f"{job.stage.kind}: stop and select need held-out text of which {name} predicts"
                " something; there is none"
            )
        return sum(losses) / len(losses)

    return measure
