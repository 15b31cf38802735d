"""What a network knows of a task before it is fine-tuned: a linear model on its frozen features.

The mean of a row's token vectors goes into a logistic regression that is fitted on training rows
and scored on others. It gives the pre-training stages a task metric of their own, in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from fourstage.errors import ContractViolation
from models import features as keys
from models.evaluation.linear import fit_and_predict
from models.inputs.rows import framed_rows, mark_ids
from models.protocols import Context, TokenisedRows, Tokenizer
from models.training.traced_model import TracedModel
from models.training.trained_stage import load_stage

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops

BATCH_SIZE = 64
TRAIN_ROWS = 4000  # more make the regression slow and move the metric little


class RowVectors(TracedModel):
    """A network's token vectors averaged over a row's real tokens, (B, D) float32."""

    def __init__(self, network: Any):
        super().__init__(name="row_vectors", dtype="float32", autocast=False)
        self.network = network

    def build(self, input_shape: Any = None) -> None:
        """The network comes built."""
        self.built = True

    def call(self, features: dict, training: bool = False) -> Any:
        """Average what is not padding."""
        sequence = ops.cast(
            self.network(features, training=training)[keys.SEQUENCE_OUTPUT], "float32"
        )
        mask = ops.cast(features[keys.PADDING_MASK], "float32")[:, :, None]  # (B, T, 1)
        return ops.sum(sequence * mask, axis=1) / ops.maximum(ops.sum(mask, axis=1), 1.0)


def features_of(
    model: RowVectors, rows: TokenisedRows, numbers: np.ndarray, context: Context
) -> np.ndarray:
    """(rows, D) float32 of the rows with the given numbers, in their order."""
    order = numbers[np.argsort([len(rows.texts(int(i))[0]) for i in numbers], kind="stable")]
    place = {int(row): i for i, row in enumerate(numbers)}
    found: np.ndarray | None = None
    for start in range(0, len(order), BATCH_SIZE):
        part = order[start : start + BATCH_SIZE]
        full = np.resize(part, BATCH_SIZE)  # the last batch repeats rows: one shape for all
        batch = framed_rows(rows, full, context)
        if model.predict_function is None:
            model.trace_for(batch, lengths_vary=True)
        vectors = np.asarray(model.predict_on_batch(batch))[: len(part)]
        if found is None:
            found = np.zeros((len(numbers), vectors.shape[1]), np.float32)
        found[[place[int(row)] for row in part]] = vectors
    if found is None:
        raise ContractViolation("the dataset has no rows in this split")
    return found


def probe(
    folder: Path,
    tokenizer: Tokenizer,
    train: TokenisedRows,
    asked: TokenisedRows,
    *,
    sequence_length: int | None = None,
    markings: Sequence[str] = (),
    seed: int = 0,
    folders: Sequence[Path] = (),
) -> np.ndarray:
    """(asked rows,) labels by a linear probe on a finished stage.

    Args:
        folder: Of the stage.
        tokenizer: The recipe's.
        train: Labelled rows to fit on, `TRAIN_ROWS` of them drawn at most.
        asked: Rows to label.
        sequence_length: Tokens a row; the stage's own where None.
        markings: Strings that mark something in the rows' texts.
        seed: Of the draw.
        folders: Project folders, searched first.

    Raises:
        ContractViolation: If there are no rows.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    stage = load_stage(folder, tokenizer, precision="float32", folders=folders)
    context = Context(
        tokenizer,
        sequence_length or stage.config["sequence_length"],
        marks=mark_ids(tokenizer, markings),
    )
    model = RowVectors(stage.network)
    model.ready()
    labels = np.asarray(train.answers)
    numbers = np.flatnonzero(labels != "")
    if len(numbers) > TRAIN_ROWS:
        drawn = np.random.default_rng([seed, len(numbers)]).permutation(len(numbers))
        numbers = np.sort(numbers[drawn[:TRAIN_ROWS]])
    regression = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500))
    return fit_and_predict(
        regression,
        features_of(model, train, numbers, context),
        labels[numbers],
        features_of(model, asked, np.arange(len(asked)), context),
    )
