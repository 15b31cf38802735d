"""The threshold of a head's decision, chosen on the dev rows once the weights are final."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fourstage.errors import RecipeError
from models.catalogue import answers_of, literals
from models.evaluation.predict import RowPredictor
from models.evaluation.resampling import scores
from models.metrics import best
from models.protocols import Context
from models.training.job import TrainingJob

DEV = "dev"


@dataclass(frozen=True)
class DevThreshold:
    """A threshold to choose.

    Attributes:
        setting: The head's setting.
        metric: The metric that chooses.
        choose: Returns the best threshold and its score; of equal ones the median.
    """

    setting: str
    metric: str
    choose: Callable[[], tuple[float, float]]


def dev_threshold(
    job: TrainingJob,
    network: Any,
    objectives: Mapping[str, Any],
    scorers: Mapping[str, Any],
    context: Context,
) -> DevThreshold | None:
    """The threshold that a stage chooses on its dev rows; None if its recipe gives a number.

    The metric is that of ``select``, else the one that selects weights by default.

    Args:
        job: The job.
        network: The built network, trained by the time of the choice.
        objectives: {name: objective}.
        scorers: {name: its scorer}.
        context: Context of the phase with the longest sequences.

    Raises:
        RecipeError: There are no dev rows.
    """
    head = job.stage.head
    setting = head and literals("heads", head, job.folders).get("THRESHOLD")
    if not head or not setting or job.stage.head_settings.get(setting) != DEV:
        return None
    if not len(job.rows.get(DEV, ())):
        raise RecipeError(
            f"{job.stage.kind}: head.{head}.{setting}: 'dev' needs dev rows, and the dataset has"
            " none; give a number, or a `split` with dev rows"
        )
    rows, answers = job.rows[DEV], answers_of(head, job.folders)
    metric = (job.stage.select or {}).get("metric") or answers.usual[-1]
    predictor = RowPredictor(network, objectives[head], scorers[head], rows, context)

    def choose() -> tuple[float, float]:
        found = [
            (scores(answers, rows.answers, said, [metric])[metric], threshold)
            for threshold, said in objectives[head].thresholds(rows, predictor.outputs())
        ]
        score = found[best(metric, [score for score, _ in found])][0]
        equal = sorted(threshold for its, threshold in found if its == score)
        return equal[(len(equal) - 1) // 2], score

    return DevThreshold(setting, metric, choose)
