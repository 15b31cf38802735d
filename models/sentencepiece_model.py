"""Serialised SentencePiece BPE models for tensorflow-text.

Field numbers are those of ``sentencepiece_model.proto``. The model does not normalise text and does
not add, remove or escape spaces.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3  # ModelProto.SentencePiece.Type
_BPE = 2  # TrainerSpec.ModelType


def bpe_model(pieces: Iterable[tuple[str, int | None]], unknown_id: int) -> bytes:
    """A serialised ``ModelProto``.

    Args:
        pieces: (text, merge rank) in the order of the ids. Ranks are integers below 2²⁴; lower
            ranks are merged first, and single characters need no merge. None marks a control token,
            which never comes from text.
        unknown_id: Id of the token for unknown characters.
    """
    model = b""
    for i, (text, order) in enumerate(pieces):
        kind = _UNKNOWN if i == unknown_id else _CONTROL if order is None else _NORMAL
        score = _tag(2, 5) + struct.pack("<f", -(order or 0))
        model += _field(1, _field(1, text.encode()) + score + _field(3, kind))
    # A normalisation table that matches nothing (a trie of zeros and an empty text). Without a
    # table, SentencePiece logs a line in every process that loads the model.
    table = struct.pack("<I", 1024) + bytes(1024) + b"\0"
    as_it_is = _field(2, table) + _field(3, 0) + _field(4, 0) + _field(5, 0)
    return model + _field(2, _field(3, _BPE)) + _field(3, as_it_is)


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
