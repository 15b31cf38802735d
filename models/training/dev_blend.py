"""The blend of a network and counted n-grams, fitted to the rows that select its weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from models.blend import fitted
from models.evaluation.predict import Predicting, RowPredictor
from models.inputs.wide_choices import LEFT_OUT
from models.protocols import Answer, Context, TokenisedRows
from models.training.job import TrainingJob

NETWORK, COUNTED = "network", "counted"


class _BothScores(Predicting):
    """Network and head as one model: features → the scores of the network and of the n-grams."""

    def call(self, features: dict, training: bool = False) -> dict:
        """{network, counted: (B, N)}."""
        features, outputs = self.read(features, training)
        return {
            NETWORK: self.scorer.own_scores(features, outputs, training),
            COUNTED: self.scorer.counted(features),
        }


class DevBlend:
    """Fits a head's blend to rows, again each time that the network has been trained further.

    Attributes:
        step: Number of updates of the network's weights; at 0 the n-grams answer alone.

    Args:
        network: What the head reads, which may be trained further between two fits.
        head: A head with a wide part, which is learned before the first fit.
        scorer: Its scorer, which is given the blend.
        rows: Tokenised rows.
        context: Tokenizer, sequence length, label names.
    """

    def __init__(self, network: Any, head: Any, scorer: Any, rows: TokenisedRows, context: Context):
        self._head, self._scorer, self._rows = head, scorer, rows
        self._predictor = RowPredictor(network, head, scorer, rows, context, model=_BothScores)
        self._labels = head.known_labels(rows)
        self.step = 0

    def fit(self) -> dict[str, float]:
        """Fit; returns the factors {network, counted}."""
        factors, _ = self._blended()
        return dict(zip((NETWORK, COUNTED), factors.tolist(), strict=True))

    def answers(self, go_on: Callable[[], None]) -> list[Answer]:
        """Fit; returns an answer for each row, in the rows' order.

        Args:
            go_on: Called after each batch; may raise to stop.
        """
        said = self._scorer.said(self._blended(go_on)[1])
        return [
            self._head.answer(self._rows, row, [{name: of[row] for name, of in said.items()}])
            for row in range(len(self._rows))
        ]

    def _blended(self, go_on: Callable[[], None] = lambda: None) -> tuple[np.ndarray, np.ndarray]:
        """The factors that fit best, and the (rows, N) float32 scores under them."""
        self._head.wide.count_once(self._scorer.wide, self._rows)
        outputs = self._predictor.outputs(go_on)
        # The mean over the orders in which a row was read.
        network, counted = (
            _stacked([np.mean([entry[of] for entry in own], axis=0) for own in outputs])
            for of in (NETWORK, COUNTED)
        )
        factors = np.array([0, 1], np.float32)
        if self.step:
            factors = fitted(network, counted, self._labels)
        self._scorer.wide.blend.assign(factors)
        return factors, factors[0] * network + factors[1] * counted


def _stacked(scores: Sequence[np.ndarray]) -> np.ndarray:
    """(rows, N); a row that has fewer choices than others has `LEFT_OUT` for the rest."""
    longest = max(map(len, scores))
    return np.stack(
        [np.pad(own, (0, longest - len(own)), constant_values=LEFT_OUT) for own in scores]
    )


def dev_blend(
    job: TrainingJob,
    network: Any,
    objectives: Mapping[str, Any],
    scorers: Mapping[str, Any],
    context: Context,
) -> DevBlend | None:
    """What fits the blend of a stage; None without a network beside n-grams, or without rows.

    Args:
        job: The job; its rows are those of ``select.split``, else the dev rows.
        network: What the head reads.
        objectives: {name: objective}.
        scorers: {name: its scorer}.
        context: Context of the phase with the longest sequences.
    """
    name = str(job.stage.head)
    scorer = scorers.get(name)
    rows = job.rows.get((job.stage.select or {}).get("split", "dev"))
    if not getattr(scorer, "blends", False) or rows is None or not len(rows):
        return None
    return DevBlend(network, objectives[name], scorer, rows, context)
