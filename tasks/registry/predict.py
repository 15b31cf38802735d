"""Predict with a registered model, loaded as any MLflow user would load it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from fourstage.errors import EnvironmentFault, RecipeError, located
from tasks.registry.lineage import find
from tasks.store.registry_memory import Version
from tasks.tracking.connection import connect
from tasks.tracking.logged_files import FilesLost, verified

NOTHING = {"label": None, "score": None, "error": "empty text"}
# Optional imports of Keras, which tensorflow-text imports. Nothing here plots or fits, and they
# take a quarter of the time that one prediction needs.
UNUSED = ("matplotlib", "sklearn", "huggingface_hub")


@contextmanager
def asking(
    model: str,
) -> Iterator[tuple[Version, Callable[[Sequence[Sequence[str]]], list[dict[str, Any]]]]]:
    """Load a version. Yields it and a function that predicts rows of one text, or of two.

    A prediction has a label, its score and all probabilities; or another answer as JSON.

    Blank texts are not passed to the model: they get no label, and ``error`` gives the reason. A
    single text for a model of pairs is both, separated by a tab.

    Args:
        model: ``NAME@alias`` or ``NAME/VERSION``.

    Raises:
        RecipeError: There is no such model, alias or version.
        EnvironmentFault: Its files are missing from where they were registered.
        ContractViolation: Its files were altered after registration.
    """
    import mlflow.pyfunc

    tracking = connect()
    version = find(tracking, model)
    _import_graph_operations()
    with ExitStack() as files:
        with located(f"{version.name} version {version.number}"):
            try:
                folder = files.enter_context(verified(tracking, version.model_id))
                loaded = mlflow.pyfunc.load_model(str(folder))
            except FilesLost as error:
                raise EnvironmentFault(
                    f"{error}. Files must be where they were when the version was"
                    " registered: restore them there (from a backup of the home's mlflow/), or run"
                    " its recipe again."
                ) from error

        wanted = 2 if "text_pair" in str(loaded.metadata.get_input_schema()) else 1

        def ask(rows: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
            asked = [_texts(row, wanted, f"{version.name}/{version.number}") for row in rows]
            whole = [row if wanted == 2 else row[0] for row in asked if all(map(str.strip, row))]
            pairs = [{"text": row[0], "text_pair": row[1]} for row in whole if wanted == 2]
            said = iter(loaded.predict(pairs or whole))
            return [
                dict(next(said)) if all(map(str.strip, row)) else dict(NOTHING) for row in asked
            ]

        yield version, ask


def _texts(row: Sequence[str], wanted: int, model: str) -> Sequence[str]:
    """The texts of a row, as many as the model takes.

    Raises:
        RecipeError: There are more or fewer.
    """
    if len(row) == 1 and wanted == 2 and (row[0].count("\t") == 1 or not row[0].strip()):
        row = row[0].split("\t") if row[0].strip() else ("", "")
    if len(row) != wanted:
        how = (
            "two texts a row: two --column, or one tab between them"
            if wanted == 2
            else "one text a row: one --column"
        )
        raise RecipeError(f"{model}: expected {how}, got {len(row)}")
    return row


def _import_graph_operations() -> None:
    hidden = [name for name in UNUSED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  None: as if not installed
    try:
        import tensorflow_text  # noqa: F401  registers the tokenizer's operations
    finally:
        for name in hidden:
            del sys.modules[name]
