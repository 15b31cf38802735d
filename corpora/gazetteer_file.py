"""A gazetteer's file: one name per line, ``name<TAB>phrase`` or ``name<TAB>entity``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fourstage.errors import ContractViolation
from fourstage.settings import REPOSITORY, data_folders

KINDS = ("phrase", "entity")


def find_gazetteer(file: str, folders: Sequence[Path] = (), key: str = "gazetteer") -> Path:
    """The path of a gazetteer.

    Args:
        file: The path in the recipe: absolute, or relative to one of the search folders.
        folders: Project folders, searched before those of ``FOURSTAGE_DATA`` and Fourstage's own.
        key: The recipe's key below ``units``.

    Raises:
        ContractViolation: It does not exist; the message lists the folders searched.
    """
    places = [*folders, *data_folders(), REPOSITORY]
    for place in places:
        path = place / Path(file).expanduser()
        if path.is_file():
            return path
    looked_in = ", ".join(str(place) for place in places)
    raise ContractViolation(f"units.{key}: no file {file!r} in {looked_in}")


def read_gazetteer(path: Path) -> list[tuple[str, str]]:
    """(name, kind) of each line; empty lines are skipped, and so is a byte order mark.

    Raises:
        ContractViolation: A line has another form, or the file is not UTF-8.
    """
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        raise ContractViolation(
            f"{path}:{number}: expected UTF-8, got the byte 0x{error.object[error.start]:02x}; "
            "save the file as UTF-8"
        ) from error
    names: list[tuple[str, str]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        name, tab, kind = line.rstrip("\r").partition("\t")
        if not tab or kind not in KINDS or not name.strip():
            raise ContractViolation(
                f"{path}:{number}: expected name<TAB>kind with a kind of {' or '.join(KINDS)}; "
                "correct the line"
            )
        names.append((name.strip(), kind))
    if not names:
        raise ContractViolation(f"{path}: expected one name per line, got an empty file")
    return names
