"""Predict with a registered model, loaded as any MLflow user would load it."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from corpora.cleaning import clean, places_before
from corpora.limits import MAX_PICTURE_BYTES
from fourstage.errors import EnvironmentFault, RecipeError, located
from tasks.registry.lineage import find
from tasks.store.registry_memory import Version
from tasks.tracking.connection import connect
from tasks.tracking.logged_files import FilesLost, verified

NOTHING = {"label": None, "score": None}
WITH_PLACES = ("spans", "extract")  # answers with offsets in the text as it was given
CHOICES = ()  # number of texts: a text and as many choices as a row has
PICTURED = 16  # rows with pictures that are asked at a time, so that few are in memory
# Optional imports of Keras and TensorFlow, which tensorflow-text imports. Nothing here plots or
# fits, and they take a quarter of the time that one prediction needs.
UNUSED = ("matplotlib", "sklearn", "huggingface_hub", "jax")


@contextmanager
def asking(
    model: str, for_vectors: bool = False, pictures: Path | None = None
) -> Iterator[tuple[Version, Callable[[Sequence[Sequence[str]]], list[dict[str, Any]]]]]:
    """Load a version. Yields it and a function that predicts rows of one text, two, or more.

    A prediction has a label, its score and all probabilities; another answer as JSON; or the vector
    of a single text.

    Texts of blanks and invisible characters alone, and fewer than two choices, are not passed to
    the model: their rows get no label, and ``error`` gives the reason. A single text with tabs is
    several texts for a model that takes them; blank choices at the end of a row are none.

    Texts are cleaned as those of training were. Where an answer says places, they are those in the
    text as it was given; a text in which they can't be told is read as it is.

    For a model that sees, the last text of a row is the path of its picture. The file is read here,
    and only its contents are passed to the model.

    Args:
        model: ``NAME@alias`` or ``NAME/VERSION``.
        for_vectors: Whether vectors are wanted.
        pictures: The folder of the pictures, from which no path leads out; None for the current
            one.

    Raises:
        RecipeError: There is no such model, alias or version, it has no vectors, or it sees no
            pictures though their folder is given.
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

        if for_vectors and "vector" not in str(loaded.metadata.get_output_schema()):
            raise RecipeError(
                f"{version.name}/{version.number}: expected a model with vectors, got one without;"
                " the head sentence_embedding trains one"
            )
        schema = str(loaded.metadata.get_input_schema())
        if pictures and "picture" not in schema:
            raise RecipeError(
                f"{version.name}/{version.number}: expected a model that sees pictures, got one"
                " that reads texts alone; leave --pictures out"
            )
        takes: tuple[int, ...] = (2,) if "text_pair: string (required)" in schema else (1,)
        if "text_pair: string (optional)" in schema:
            takes = (1, 2)
        if "choices" in schema:
            takes = CHOICES
        named = f"{version.name}/{version.number}"
        head = getattr(loaded.unwrap_python_model(), "head", {})  # none of the model for labels
        places = head.get("answers") in WITH_PLACES

        if "picture" in schema:
            seeing = Seeing(loaded.predict, 1 + bool(head["pairs"]), pictures or Path(), named)
            yield version, seeing.ask
        else:
            yield version, Questioning(loaded.predict, takes, named, places).ask


class Questioning:
    """Asks a model about rows of texts, cleaned as those of training were.

    Args:
        predict: The model.
        takes: How many texts a row may have; `CHOICES` for a text and its choices.
        model: Its name, for messages.
        places: Whether its answers have places in the last text.
    """

    def __init__(
        self,
        predict: Callable[[list[Any]], list[dict[str, Any]]],
        takes: tuple[int, ...],
        model: str,
        places: bool,
    ):
        self._predict = predict
        self._takes = takes
        self._model = model
        self._places = places

    def ask(self, rows: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """The answer to each row, or why there is none."""
        asked = [_texts(row, self._takes, self._model) for row in rows]
        faults = [_fault(row, self._takes) for row in asked]
        whole = [row for row, fault in zip(asked, faults, strict=True) if not fault]
        said = iter(self._answers(whole))
        return [NOTHING | {"error": fault} if fault else dict(next(said)) for fault in faults]

    def _answers(self, rows: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        read = [[clean(text).text for text in row] for row in rows]
        said = self._said(read)
        if not self._places:
            return said
        found = list(map(_as_given, said, (row[-1] for row in rows), (row[-1] for row in read)))
        lost = [
            [*of[:-1], row[-1]]
            for answer, row, of in zip(found, rows, read, strict=True)
            if answer is None
        ]
        again = iter(self._said(lost) if lost else ())
        return [next(again) if answer is None else answer for answer in found]

    def _said(self, rows: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        return self._predict([_question(row, self._takes) for row in rows])


class Seeing:
    """Asks a model about rows of texts and the path of a picture.

    Args:
        predict: The model.
        num_texts: Texts of a row, 1 or 2.
        pictures: The folder of the pictures.
        model: Its name, for messages.
    """

    def __init__(
        self,
        predict: Callable[[list[dict[str, str]]], list[dict[str, Any]]],
        num_texts: int,
        pictures: Path,
        model: str,
    ):
        self._predict = predict
        self._keys = ("text", "text_pair")[:num_texts]
        self._pictures = pictures.resolve()
        self._model = model

    def ask(self, rows: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """The answer to each row, or why there is none."""
        answers: list[dict[str, Any]] = []
        for start in range(0, len(rows), PICTURED):
            asked = [self._question(row) for row in rows[start : start + PICTURED]]
            said = iter(self._predict([each for each in asked if not isinstance(each, str)]))
            answers += [
                NOTHING | {"error": each} if isinstance(each, str) else dict(next(said))
                for each in asked
            ]
        return answers

    def _question(self, row: Sequence[str]) -> dict[str, str] | str:
        """A row as the model takes it, or why it can't be asked.

        Raises:
            RecipeError: It has more or fewer parts.
        """
        cells = row[0].split("\t") if len(row) == 1 else list(row)
        if not any(cell.strip() for cell in cells):
            return "empty text"
        if len(cells) != len(self._keys) + 1:
            how = {1: "a text", 2: "two texts"}[len(self._keys)]
            raise RecipeError(
                f"{self._model}: expected {how} and the path of a picture in each row: a --column"
                f" for each, or tabs between them; got {len(cells)} parts"
            )
        *texts, name = cells
        if fault := _fault(texts, (len(texts),)):
            return fault
        try:
            read = dict(zip(self._keys, (clean(text).text for text in texts), strict=True))
            return {**read, "picture": self._encoded(name)}
        except ValueError as error:
            return str(error)

    def _encoded(self, name: str) -> str:
        """The file of a picture as base64.

        Raises:
            ValueError: It can't be read, lies outside of the folder, or is too large; with the
                reason.
        """
        if not name.strip():
            raise ValueError("a picture that is missing")
        try:
            file = (self._pictures / name).resolve()
            if not file.is_relative_to(self._pictures):
                raise ValueError("a picture outside of the folder of the pictures")
            if not file.is_file():
                raise ValueError("a picture that is missing")
            with file.open("rb") as stream:
                data = stream.read(MAX_PICTURE_BYTES + 1)
        except OSError as error:
            raise ValueError(f"a picture that can't be read: {error.strerror}") from None
        if len(data) > MAX_PICTURE_BYTES:
            raise ValueError(f"a picture of more than {MAX_PICTURE_BYTES:,} bytes")
        if not data:
            raise ValueError("an empty file in place of a picture")
        return base64.b64encode(data).decode()


def _as_given(answer: Mapping[str, Any], given: str, read: str) -> dict[str, Any] | None:
    """An answer with its places in the text as it was given; None if they can't be told.

    Args:
        answer: Spans, or a part of the text.
        given: The text.
        read: The same, cleaned, which the model read.
    """
    whole = dict(answer)
    parts = whole.get("spans", [whole] if whole.get("start") is not None else [])
    found = places_before(given, read, [(part["start"], part["end"]) for part in parts])
    if found is None:
        return None
    moved = [
        {**part, "start": start, "end": end, "text": given[start:end]}
        for part, (start, end) in zip(parts, found, strict=True)
    ]
    if "spans" in whole:
        said = [[part["start"], part["end"], part["type"]] for part in moved]
        return whole | {"spans": moved, "answer": json.dumps(said, ensure_ascii=False)}
    for part in moved:
        whole |= part | {"answer": json.dumps([[part["start"], part["text"]]], ensure_ascii=False)}
    return whole


def _question(texts: Sequence[str], takes: tuple[int, ...]) -> str | dict[str, str | list[str]]:
    """A row as the model takes it."""
    if takes == CHOICES:
        return {"text": texts[0], "choices": list(texts[1:])}
    return texts[0] if takes == (1,) else dict(zip(("text", "text_pair"), texts, strict=False))


def _fault(texts: Sequence[str], takes: tuple[int, ...]) -> str | None:
    """Why a row can't be asked; None if it can."""
    blank = [not clean(text).text for text in texts]  # as rows without text are in training
    if takes != CHOICES or blank[0]:
        return "empty text" if any(blank) else None
    if len(texts) < 3:
        return "fewer than two choices"
    return "empty choice" if any(blank) else None


def _texts(row: Sequence[str], takes: tuple[int, ...], model: str) -> Sequence[str]:
    """The texts of a row, as many as the model takes.

    Raises:
        RecipeError: There are more or fewer.
    """
    if takes == CHOICES:
        texts = row[0].split("\t") if len(row) == 1 else list(row) or [""]
        while len(texts) > 1 and not texts[-1].strip():
            texts.pop()
        return texts
    if len(row) == 1 and not row[0].strip():
        return ("",) * takes[-1]
    if len(row) == 1 and 2 in takes and row[0].count("\t") == 1:
        row = row[0].split("\t")
    if len(row) not in takes:
        how = {
            (1,): "one text a row: one --column",
            (2,): "two texts a row: two --column, or one tab between them",
            (1, 2): "one or two texts a row: a --column for each, or one tab between them",
        }[takes]
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
