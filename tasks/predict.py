"""Ask a registered model, as anyone with MLflow would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tasks.lineage import find
from tasks.tracking import connect


def predict(model: str, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Label, score and probabilities of each text.

    Args:
        model: ``NAME@alias`` or ``NAME/VERSION``.
        texts: Raw texts.

    Raises:
        RecipeError: If there is no such model, alias or version.
    """
    import mlflow.pyfunc

    tracking = connect()
    version = find(tracking, model)
    with tracking.as_default():
        loaded = mlflow.pyfunc.load_model(f"models:/{version.name}/{version.number}")
    return [dict(answer) for answer in loaded.predict(list(texts))]
