"""A SentencePiece model of type BPE as bytes, for tensorflow-text's operation.

Field numbers are those of ``sentencepiece_model.proto``. Texts are taken as they are: nothing is
normalised, no blank is added, removed or escaped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3  # ModelProto.SentencePiece.Type
_BPE = 2  # TrainerSpec.ModelType


def bpe_model(pieces: Iterable[tuple[str, int | None]], unknown_id: int) -> bytes:
    """A ``ModelProto``.

    Args:
        pieces: In the order of their ids: the text, and the order in which it is joined (whole
            numbers below 2²⁴, the least first; single characters are always there). None is a name
            that no text gives.
        unknown_id: Of the piece for characters that are none.
    """
    model = b""
    for i, (text, order) in enumerate(pieces):
        kind = _UNKNOWN if i == unknown_id else _CONTROL if order is None else _NORMAL
        score = _tag(2, 5) + struct.pack("<f", -(order or 0))
        model += _field(1, _field(1, text.encode()) + score + _field(3, kind))
    # No table of replacements would do, but every process that loads a model without one writes a
    # line about it. This one, a trie of zeros and an empty text, matches nothing.
    table = struct.pack("<I", 1024) + bytes(1024) + b"\0"
    as_it_is = _field(2, table) + _field(3, 0) + _field(4, 0) + _field(5, 0)
    return model + _field(2, _field(3, _BPE)) + _field(3, as_it_is)


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _field(number: int, value: int | bytes) -> bytes:
    """A field of a protocol buffer: a whole number, or bytes with their length before them."""
    if isinstance(value, int):
        return _tag(number, 0) + _varint(value)
    return _tag(number, 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])
