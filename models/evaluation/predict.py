"""Labels for rows, from a finetune stage's folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models import features as keys
from models.protocols import Context, TokenisedRows, Tokenizer
from models.reading import where_read
from models.training.traced_model import TracedModel
from models.training.trained_stage import load_stage

BATCH_SIZE = 64


@dataclass(frozen=True)
class Predictions:
    """What a model says of rows, in their order.

    Attributes:
        label_ids: (rows,) int32.
        probabilities: (rows, N) float32, each row summing to 1.
        label_names: N names in the order of their ids.
    """

    label_ids: np.ndarray
    probabilities: np.ndarray
    label_names: tuple[str, ...]


class Classifier(TracedModel):
    """Network and head as one model: features in, logits (B, N) out.

    Args:
        network: Built, with its weights.
        scorer: Of a classification head.
    """

    def __init__(self, network: Any, scorer: Any):
        super().__init__(name="classifier", dtype="float32", autocast=False)
        self.network = network
        self.scorer = scorer

    def build(self, input_shape: Any = None) -> None:
        """Network and scorer come built."""
        self.built = True

    def call(self, features: dict, training: bool = False) -> Any:
        """Logits, float32."""
        features = where_read(self.network, [self.scorer], features)
        outputs = dict(self.network(features, training=training))
        return self.scorer(features, outputs, training=training)[1][keys.LOGITS]


class RowClassifier:
    """Rows of one dataset split, ready to be classified again and again.

    Args:
        network: It may go on learning in between.
        head: The objective that made the scorer.
        scorer: Its scoring half.
        rows: Tokenised rows.
        context: Tokenizer, sequence length, labels.
    """

    def __init__(self, network: Any, head: Any, scorer: Any, rows: TokenisedRows, context: Context):
        from models.inputs.batches import batches

        self._rows = rows
        self._context = context
        self._feed = batches({"rows": (rows, 1.0)}, [head], context, BATCH_SIZE, 0, once=True)
        self._model = Classifier(network, scorer)
        self._model.ready()
        self._traced = False

    def predictions(self, go_on: Callable[[], None] = lambda: None) -> Predictions:
        """Labels and probabilities of every row.

        Args:
            go_on: Called after each batch; it may raise.
        """
        names = self._context.label_names
        logits = np.zeros((len(self._rows), len(names)), np.float32)
        for k, batch in enumerate(self._feed.iterate()):
            batch.pop(keys.LABELS)
            if not self._traced:
                self._model.trace_for(batch, lengths_vary=True)
                self._traced = True
            found = self._model.predict_on_batch(batch)
            for place, (_, row) in enumerate(self._feed.members(k)):
                if row >= 0:
                    logits[row] = found[place]
            go_on()
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return Predictions(logits.argmax(axis=1).astype(np.int32), shares, names)


def predict(
    folder: Path,
    tokenizer: Tokenizer,
    rows: TokenisedRows,
    *,
    folders: Sequence[Path] = (),
) -> Predictions:
    """Classify rows with a finished finetune stage, in float32.

    Args:
        folder: Of the stage.
        tokenizer: The recipe's.
        rows: Tokenised rows; their labels are not looked at.
        folders: Project folders, searched first.
    """
    stage = load_stage(folder, tokenizer, precision="float32", folders=folders)
    (name,) = stage.config["head"]
    head = stage.objective(name, folders)
    scorer = stage.scorer(name, head)
    return RowClassifier(stage.network, head, scorer, rows, stage.context).predictions()
