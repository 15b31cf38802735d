"""Ask a registered model, as anyone with MLflow would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fourstage.errors import EnvironmentFault, located
from tasks.lineage import find
from tasks.logged_files import FilesLost, verified
from tasks.tracking import connect


def predict(model: str, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Label, score and probabilities of each text.

    Args:
        model: ``NAME@alias`` or ``NAME/VERSION``.
        texts: Raw texts.

    Raises:
        RecipeError: If there is no such model, alias or version.
        EnvironmentFault: If its files are not where they were registered.
        ContractViolation: If they are not those that were registered.
    """
    import mlflow.pyfunc

    tracking = connect()
    version = find(tracking, model)
    with located(f"{version.name} version {version.number}"):
        try:
            with verified(tracking, version.model_id) as folder:
                loaded = mlflow.pyfunc.load_model(str(folder))
                return [dict(answer) for answer in loaded.predict(list(texts))]
        except FilesLost as error:
            raise EnvironmentFault(
                f"{error}. Files are looked for where they were when the version was registered;"
                " put them back there (a backup of the home's mlflow/), or run its recipe again."
            ) from error
