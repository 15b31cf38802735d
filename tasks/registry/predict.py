"""Ask a registered model, as anyone with MLflow would."""

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
# Keras, which tensorflow-text imports, takes them along where they are there: a quarter of the time
# in which one text is answered, and nothing here draws or fits.
UNUSED = ("matplotlib", "sklearn", "huggingface_hub")


@contextmanager
def asking(
    model: str,
) -> Iterator[tuple[Version, Callable[[Sequence[str]], list[dict[str, Any]]]]]:
    """A version, loaded, and what asks it: of each text label, score and probabilities.

    A text of nothing but blanks is not asked about; it has no label, and ``error`` says why.

    Args:
        model: ``NAME@alias`` or ``NAME/VERSION``.

    Raises:
        RecipeError: If there is no such model, alias or version.
        EnvironmentFault: If its files are not where they were registered.
        ContractViolation: If they are not those that were registered.
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
                    f"{error}. Files are looked for where they were when the version was"
                    " registered; put them back there (a backup of the home's mlflow/), or run its"
                    " recipe again."
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
