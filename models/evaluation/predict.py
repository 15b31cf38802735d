"""Predictions for rows with a finetune stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from models import features as keys
from models.keras_ops import ops
from models.metrics import of_answers, of_likelihood
from models.protocols import Answer, Batch, Context, Head, TokenisedRows, Tokenizer
from models.scored_positions import where_read
from models.training.traced_model import TracedModel
from models.training.trained_stage import load_stage

BATCH_SIZE = 64


class Predicting(TracedModel):
    """Network and head as one model: features → {name: prediction}.

    Args:
        network: A built network.
        scorer: The scorer of a head.
    """

    def __init__(self, network: Any, scorer: Any):
        super().__init__(name="predicting", dtype="float32", autocast=False)
        self.network = network
        self.scorer = scorer
        self.ready()
        self._traced = False

    def call(self, features: dict, training: bool = False) -> dict:
        """The scorer's predictions, {name: (B, …)}."""
        features, outputs = self.read(features, training)
        return self.scorer(features, outputs, training=training)[1]

    def read(self, features: dict, training: bool) -> tuple[dict, dict]:
        """The batch as the network reads it, and what it puts out."""
        features = self.scorer.prepare(features, training)
        features = where_read(self.network, [self.scorer], features)
        return features, dict(self.network(features, training=training))

    def predictions(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """As `call`, compiled for batches like the first one."""
        if not self._traced:
            self.trace_for(batch, lengths_vary=True)
            self._traced = True
        return self.predict_on_batch(batch)


class TargetLikelihood(Predicting):
    """Network and head as one model that reads what is right: batch → nats of each row's target."""

    def call(self, features: dict, training: bool = False) -> dict:
        """{target_nats, target_tokens: (B,)}, of the tokens that have a weight."""
        features, outputs = self.read(features, training)
        return {
            keys.TARGET_NATS: self.scorer.nats(features, outputs),
            keys.TARGET_TOKENS: ops.sum(features[keys.TARGET_WEIGHTS], axis=-1),
        }


class RowPredictor:
    """Rows of one dataset split, for repeated predictions.

    Args:
        network: The network, which may be trained further between predictions.
        head: The head.
        scorer: The head's scorer.
        rows: Tokenised rows.
        context: Tokenizer, sequence length, label names.
        metrics: What the predictions are for; none for answers alone. For a perplexity the network
            reads the correct answers; if nothing else is asked, it gives none of its own.
        model: What predicts, unless the head says it.
    """

    def __init__(
        self,
        network: Any,
        head: Head,
        scorer: Any,
        rows: TokenisedRows,
        context: Context,
        metrics: Sequence[str] = (),
        *,
        model: type[Predicting] = Predicting,
    ):
        from models.inputs.batches import batches

        self._rows = rows
        self._head = head
        self._feed = batches({"rows": (rows, 1.0)}, [head], context, BATCH_SIZE, 0, once=True)
        self._predict = self._likelihood = None
        if not metrics or of_answers(metrics):
            own = getattr(head, "predicting", None)
            self._predict = own(network, scorer) if own else model(network, scorer).predictions
        if of_likelihood(metrics):
            reads: Any = head  # one with `READS_TARGETS`
            self._readings = reads.readings
            self._likelihood = TargetLikelihood(network, scorer)

    def answers(self, go_on: Callable[[], None] = lambda: None) -> list[Answer]:
        """One answer per row, in the rows' order.

        Args:
            go_on: Called after each batch; may raise to stop.
        """
        outputs = self.outputs(go_on)
        return [self._head.answer(self._rows, row, own) for row, own in enumerate(outputs)]

    def outputs(
        self, go_on: Callable[[], None] = lambda: None
    ) -> list[list[Mapping[str, np.ndarray]]]:
        """The scorer's predictions for each entry of each row, from which the head answers.

        Args:
            go_on: Called after each batch; may raise to stop.
        """
        found: dict[int, Mapping[str, np.ndarray]] = {}
        for k, batch in enumerate(self._feed.iterate()):
            predicted = self._likelihoods(batch)
            for name in self._head.targets:
                batch.pop(name, None)
            if self._predict is not None:
                predicted |= self._predict(batch)
            for place, (_, example) in enumerate(self._feed.members(k)):
                if example >= 0:
                    found[example] = {name: value[place] for name, value in predicted.items()}
            go_on()
        outputs: list[list[Mapping[str, np.ndarray]]] = [[] for _ in range(len(self._rows))]
        for example, row in enumerate(rows_of(self._feed.feeds[0].index.entries)):
            outputs[row].append(found[example])
        return outputs

    def _likelihoods(self, batch: Batch) -> dict[str, np.ndarray]:
        """Nats and number of the tokens of each row's target; nothing where it isn't asked."""
        if self._likelihood is None:
            return {}
        parts = [self._likelihood.predictions(part) for part in self._readings(batch)]
        return {name: np.sum([part[name] for part in parts], axis=0) for name in parts[0]}


def rows_of(entries: np.ndarray) -> list[int]:
    """The row of each entry of a head's index."""
    return (entries["row"] if entries.dtype.names else entries).tolist()


def predict(
    folder: Path,
    tokenizer: Tokenizer,
    rows: TokenisedRows,
    *,
    metrics: Sequence[str] = (),
    folders: Sequence[Path] = (),
) -> list[Answer]:
    """Predict rows with a finished finetune stage, in float32.

    Args:
        folder: The stage's folder.
        tokenizer: The recipe's tokenizer.
        rows: Tokenised rows; their correct answers are not used, but for a perplexity.
        metrics: As in `RowPredictor`.
        folders: Project folders, searched first.
    """
    stage = load_stage(folder, tokenizer, precision="float32", folders=folders)
    (name,) = stage.config["head"]
    head = stage.objective(name, folders)
    scorer = stage.scorer(name, head)
    predictor = RowPredictor(stage.under_head, head, scorer, rows, stage.context, metrics)
    return predictor.answers()
