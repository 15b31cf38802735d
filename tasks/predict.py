"""Ask a registered model, as anyone with MLflow would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fourstage.errors import EnvironmentFault
from tasks.lineage import find
from tasks.tracking import connect


def predict(model: str, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Label, score and probabilities of each text.

    Args:
        model: ``NAME@alias`` or ``NAME/VERSION``.
        texts: Raw texts.

    Raises:
        RecipeError: If there is no such model, alias or version.
        EnvironmentFault: If its files are not where they were registered.
    """
    import mlflow.pyfunc
    from mlflow.exceptions import MlflowException

    tracking = connect()
    version = find(tracking, model)
    with tracking.as_default():
        try:
            loaded = mlflow.pyfunc.load_model(f"models:/{version.name}/{version.number}")
        except (MlflowException, OSError) as error:
            reason = str(error).split("\n", 1)[0][:200]
            raise EnvironmentFault(
                f"{version.name} version {version.number}: its files cannot be loaded: {reason}."
                " They are looked for where they were when it was registered; put them back there"
                " (a backup of the home's mlflow/), or run its recipe again."
            ) from error
    return [dict(answer) for answer in loaded.predict(list(texts))]
