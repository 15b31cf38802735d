"""Linear probe: how much a network knows about a task before fine-tuning.

A logistic regression on the mean of a row's token vectors, fitted on training rows and scored on
others. It gives pre-training stages a task metric within seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fourstage.errors import ContractViolation
from models import features as keys
from models.evaluation.row_sample import drawn
from models.inputs.rows import framed_rows, mark_ids
from models.keras_ops import ops
from models.protocols import Context, TokenisedRows, Tokenizer
from models.training.traced_model import TracedModel
from models.training.trained_stage import load_stage

BATCH_SIZE = 64
TRAIN_ROWS = 4000  # with more, the regression is slow and the metric hardly changes


class RowVectors(TracedModel):
    """The mean of a row's token vectors, without padding, (B, D) float32."""

    def __init__(self, network: Any):
        super().__init__(name="row_vectors", dtype="float32", autocast=False)
        self.network = network

    def call(self, features: dict, training: bool = False) -> Any:
        """Mean over the tokens that are not padding."""
        sequence = ops.cast(
            self.network(features, training=training)[keys.SEQUENCE_OUTPUT], "float32"
        )
        mask = ops.cast(features[keys.PADDING_MASK], "float32")[:, :, None]  # (B, T, 1)
        return ops.sum(sequence * mask, axis=1) / ops.maximum(ops.sum(mask, axis=1), 1.0)


def features_of(
    model: RowVectors, rows: TokenisedRows, numbers: np.ndarray, context: Context
) -> np.ndarray:
    """(rows, D) float32 features of the rows with the given numbers, in that order."""
    order = numbers[np.argsort([len(rows.texts(int(i))[0]) for i in numbers], kind="stable")]
    place = {int(row): i for i, row in enumerate(numbers)}
    found: np.ndarray | None = None
    for start in range(0, len(order), BATCH_SIZE):
        part = order[start : start + BATCH_SIZE]
        full = np.resize(part, BATCH_SIZE)  # fill the last batch with repeated rows: one shape
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
    """(rows to predict,) labels from a linear probe on a finished stage.

    Args:
        folder: The stage's folder.
        tokenizer: The recipe's tokenizer.
        train: Labelled rows; a random sample of at most `TRAIN_ROWS` is used.
        asked: Rows to predict.
        sequence_length: Tokens per row; None for the stage's sequence length.
        markings: Marker strings in the rows' texts.
        seed: Seed of the sample.
        folders: Project folders, searched first.

    Raises:
        ContractViolation: There are no rows.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    stage = load_stage(folder, tokenizer, precision="float32", folders=folders)
    context = Context(
        tokenizer,
        sequence_length or stage.config["sequence_length"],
        marks=mark_ids(tokenizer, markings),
        network=stage.network.provides,
    )
    model = RowVectors(stage.network)
    model.ready()
    labels = np.asarray(train.answers)
    numbers = np.flatnonzero(labels != "")
    if len(numbers) > TRAIN_ROWS:
        rng = np.random.default_rng([seed, len(numbers)])
        numbers = numbers[drawn(labels[numbers], TRAIN_ROWS, rng)]
    regression = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500))
    known = features_of(model, train, numbers, context)
    others = features_of(model, asked, np.arange(len(asked)), context)
    # The products are too small for several threads, which on a busy machine wait for each other:
    # 11 s, where a single one takes 1.5 s.
    with threadpool_limits(limits=1):
        return np.asarray(regression.fit(known, labels[numbers]).predict(others))
