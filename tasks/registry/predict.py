"""Predict with a registered model, loaded as any MLflow user would load it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from fourstage.errors import EnvironmentFault, located
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
) -> Iterator[tuple[Version, Callable[[Sequence[str]], list[dict[str, Any]]]]]:
    """Load a version. Yields it and a function that predicts.

    A prediction has a label, its score and all probabilities; or spans, the answer and its score.

    Blank texts are not passed to the model: they get no label, and ``error`` gives the reason.

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

        def ask(texts: Sequence[str]) -> list[dict[str, Any]]:
            said = iter(loaded.predict([text for text in texts if text.strip()]))
            return [dict(next(said)) if text.strip() else dict(NOTHING) for text in texts]

        yield version, ask


def _import_graph_operations() -> None:
    hidden = [name for name in UNUSED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  None: as if not installed
    try:
        import tensorflow_text  # noqa: F401  registers the tokenizer's operations
    finally:
        for name in hidden:
            del sys.modules[name]
