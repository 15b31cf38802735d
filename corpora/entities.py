"""Names of a knowledge graph's entities, and their numbers in its vocabulary.

A file has one entity per line, ``id<TAB>name`` or ``id<TAB>name, what it is``, and may be
compressed with gzip. A name of several entities is found, but means none of them.

    00017222<TAB>plant, a living organism lacking the power of locomotion
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from fourstage.errors import ContractViolation, listed

_SHOWN = 5  # ids in a message
_LARGEST = 1 << 28  # bytes of a list of entities
MISSING = 0.1  # largest share of the entities that the vocabulary of their graph may lack


def read_entities(path: Path) -> list[tuple[str, str]]:
    """(id, name) of each line; empty lines are skipped. Ids are text: 00260881 is not 260881.

    A byte order mark is dropped.

    Raises:
        ContractViolation: A line has another form, an id occurs twice, or the file is too large,
            no gzip, or not UTF-8.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ContractViolation(
            f"{path}: expected a whole gzip file, got another or a damaged one; get it again"
        ) from error
    if len(data) > _LARGEST:
        raise ContractViolation(f"{path}: expected {_LARGEST:,} bytes of text at most, got more")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        raise ContractViolation(
            f"{path}:{number}: expected UTF-8; save the file as such"
        ) from error
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        entity, tab, said = line.rstrip("\r").partition("\t")
        name = said.split(", ", 1)[0].strip()
        if not tab or not name or len(entity.split()) != 1:
            raise ContractViolation(
                f"{path}:{number}: expected id<TAB>name or id<TAB>name, what it is; the id has no"
                " blank"
            )
        if entity in found:
            raise ContractViolation(f"{path}:{number}: duplicate id {entity!r}; keep one line")
        found[entity] = name
    if not found:
        raise ContractViolation(f"{path}: expected one entity per line, got an empty file")
    return list(found.items())


def numbered(path: Path, ids: Sequence[str], known: Mapping[str, int]) -> list[int]:
    """The number of each entity in the vocabulary of its graph; 0 for one that it does not have.

    Args:
        path: The list of entities, for messages.
        ids: Their ids.
        known: Numbers of the graph's names.

    Raises:
        ContractViolation: More than a tenth of the ids are no names of the graph, or one is but for
            its leading zeros: the list is of another graph, or was damaged.
    """
    strange = [entity for entity in ids if entity not in known]
    short = {name.lstrip("0"): name for name in known if name.startswith("0")}
    for entity in strange:
        if entity in short:
            raise ContractViolation(
                f"{path}: the graph has the entity {short[entity]}, the list {entity}; expected ids"
                " as text, with their leading zeros"
            )
    if len(strange) > MISSING * len(ids):
        raise ContractViolation(
            f"{path}: {len(strange):,} of {len(ids):,} ids are no entities of the graph that the"
            f" vectors are of: {listed(strange, _SHOWN)}; expected the entities of the same graph,"
            " and a vocabulary that is learned from all of them"
        )
    return [known.get(entity, 0) for entity in ids]
