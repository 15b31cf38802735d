"""SentencePiece models: serialised for tensorflow-text, and read from files.

Field numbers are those of ``sentencepiece_model.proto``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from fourstage.errors import ContractViolation

_UNIGRAM, _BPE = 1, 2  # TrainerSpec.ModelType
LARGEST = 100_000_000  # bytes of a model; the largest published ones have 5 million
MOST_PIECES = 10_000_000

# A normalisation table that matches nothing (a trie of zeros and an empty text). Without a
# table, SentencePiece logs a line in every process that loads the model.
_NO_RULES = struct.pack("<I", 1024) + bytes(1024) + b"\0"


class PieceType(IntEnum):
    """What a piece is: ``ModelProto.SentencePiece.Type``."""

    NORMAL = 1
    UNKNOWN = 2  # stands for characters that no piece has
    CONTROL = 3  # never comes from text
    USER_DEFINED = 4  # is one piece wherever it stands
    UNUSED = 5


@dataclass(frozen=True)
class Unigram:
    """A unigram language model of pieces.

    A space is put before a text, runs of spaces become one, and a space within a piece is ``▁``.

    Attributes:
        pieces: Texts of the pieces, ordered by id.
        scores: Natural logarithm of each piece's probability; of no meaning for special ones.
        kinds: What each piece is; one is unknown.
        rules: Compiled rules of normalisation (`models.character_rules`); empty for none.
    """

    pieces: tuple[str, ...]
    scores: tuple[float, ...]
    kinds: tuple[PieceType, ...]
    rules: bytes = field(default=b"", repr=False)


def bpe_model(pieces: Iterable[tuple[str, int | None]], unknown_id: int) -> bytes:
    """A serialised ``ModelProto`` that neither normalises text nor adds or removes spaces.

    Args:
        pieces: (text, merge rank) in the order of the ids. Ranks are integers below 2²⁴; lower
            ranks are merged first, and single characters need no merge. None marks a control token,
            which never comes from text.
        unknown_id: Id of the token for unknown characters.
    """
    model = b""
    for i, (text, order) in enumerate(pieces):
        special = PieceType.UNKNOWN if i == unknown_id else PieceType.CONTROL
        model += _piece(text, -(order or 0), PieceType.NORMAL if order is not None else special)
    as_it_is = _field(2, _NO_RULES) + _field(3, 0) + _field(4, 0) + _field(5, 0)
    return model + _field(2, _field(3, _BPE)) + _field(3, as_it_is)


def unigram_model(model: Unigram) -> bytes:
    """A serialised ``ModelProto``; the same model gives the same bytes."""
    parts = [_piece(*piece) for piece in zip(model.pieces, model.scores, model.kinds, strict=True)]
    unknown = model.kinds.index(PieceType.UNKNOWN)
    trained = _field(3, _UNIGRAM) + _field(40, unknown)
    trained += _field(45, model.pieces[unknown].encode())  # else "<unk>"
    normalised = _field(2, model.rules or _NO_RULES)
    normalised += _field(3, 1) + _field(4, 1) + _field(5, 1)
    return b"".join(parts) + _field(2, trained) + _field(3, normalised)


def read_unigram_model(data: bytes, where: str) -> Unigram:
    """Read a serialised ``ModelProto``, which may come from anywhere.

    Args:
        data: Its bytes.
        where: The file, for messages.

    Raises:
        ContractViolation: It is malformed, too large, or a model of another kind.
    """
    if len(data) > LARGEST:
        raise ContractViolation(f"{where}: expected at most {LARGEST:,} bytes, got {len(data):,}")
    pieces: list[tuple[str, float, PieceType]] = []
    trained: dict[int, Any] = {}
    normalised: dict[int, Any] = {}
    try:
        for number, value in _fields(data):
            if number == 1:
                pieces.append(_read_piece(value))
            elif number == 2:
                trained |= dict(_fields(value))
            elif number == 3:
                normalised |= dict(_fields(value))
    except (ValueError, TypeError, AttributeError, struct.error) as error:
        raise ContractViolation(
            f"{where}: not a SentencePiece model ({type(error).__name__})"
        ) from error
    # {field: (the value that ours has, its default)}
    wanted = {
        "model_type": (trained.get(3, _UNIGRAM), _UNIGRAM),
        "treat_whitespace_as_suffix": (trained.get(24, 0), 0),
        "byte_fallback": (trained.get(35, 0), 0),
        "add_dummy_prefix": (normalised.get(3, 1), 1),
        "remove_extra_whitespaces": (normalised.get(4, 1), 1),
        "escape_whitespaces": (normalised.get(5, 1), 1),
    }
    wrong = [
        f"{name}: expected {want}, got {got}" for name, (got, want) in wanted.items() if got != want
    ]
    if wrong:
        raise ContractViolation(f"{where}: {'; '.join(wrong)}; only unigram models are supported")
    rules = normalised.get(2, b"")
    if not isinstance(rules, bytes):
        raise ContractViolation(f"{where}: not a SentencePiece model (its rules are a number)")
    made = Unigram(*_columns(pieces), rules=b"" if rules == _NO_RULES else rules)
    check_unigram(made, where)
    return made


def _columns(pieces: list[tuple[str, float, PieceType]]) -> Any:
    return zip(*pieces, strict=True) if pieces else ((), (), ())


def check_unigram(model: Unigram, where: str) -> None:
    """Refuse what SentencePiece could not load, or would read beyond its end for.

    Raises:
        ContractViolation: There is something.
    """
    names = model.pieces
    faults = {
        f"expected 1 to {MOST_PIECES:,} pieces": not 0 < len(names) <= MOST_PIECES,
        "expected each piece once": len(set(names)) != len(names),
        "expected pieces with text, without NUL": any(not p or "\0" in p for p in names),
        "expected finite scores": not all(map(math.isfinite, model.scores)),
        "expected one unknown piece": model.kinds.count(PieceType.UNKNOWN) != 1,
        "expected a piece that is no special one": PieceType.NORMAL not in model.kinds,
        "the rules of normalisation are damaged": not _sound(model.rules),
    }
    found = [what for what, true in faults.items() if true]
    if found:
        raise ContractViolation(f"{where}: {'; '.join(found)}")


def _sound(rules: bytes) -> bool:
    """Whether each step in compiled rules (`models.character_rules`) leads to one of its units.

    SentencePiece does not look.
    """
    if not rules:
        return True
    size = int.from_bytes(rules[:4], "little")
    texts = rules[4 + size :]
    if len(rules) <= 4 + size or size % 1024 or not size or texts[-1]:
        return False
    units = np.frombuffer(rules, "<u4", size // 4, 4).astype(np.int64)
    inner = units < 1 << 31
    steps = np.arange(len(units)) ^ (units >> 10 << ((units & 0x200) >> 6))
    if (steps[inner] | 0xFF).max(initial=0) >= len(units):
        return False
    ends = units[steps[inner & (units & 0x100 > 0)]] & 0x7FFFFFFF
    return bool(ends.max(initial=0) < len(texts))


def _piece(text: str, score: float, kind: PieceType) -> bytes:
    written = _field(1, text.encode()) + _tag(2, 5) + struct.pack("<f", score) + _field(3, kind)
    return _field(1, written)


def _read_piece(data: bytes) -> tuple[str, float, PieceType]:
    found = dict(_fields(data))
    (score,) = struct.unpack("<f", found.get(2, bytes(4)))
    return found.get(1, b"").decode("utf-8"), score, PieceType(found.get(3, PieceType.NORMAL))


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _field(number: int, value: int | bytes) -> bytes:
    """A protocol buffer field: an integer, or bytes preceded by their length."""
    if isinstance(value, int):
        return _tag(number, 0) + _varint(value)
    return _tag(number, 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """(number, value) of each field of a message; numbers of a fixed width as bytes.

    Raises:
        ValueError: The message ends within a field, or has a type of field that no SentencePiece
            model has.
    """
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, at = _read_varint(data, at)
            yield number, value
            continue
        if wire_type == 2:
            size, at = _read_varint(data, at)
        elif wire_type in (1, 5):
            size = 8 if wire_type == 1 else 4
        else:
            raise ValueError("a type of field")
        if at + size > len(data):
            raise ValueError("ends within a field")
        yield number, data[at : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("ends within a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number of more than ten bytes")
