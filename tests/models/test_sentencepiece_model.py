"""SentencePiece models from anywhere: what is written is read, what is damaged is refused."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fourstage.errors import ContractViolation
from models.character_rules import compiled
from models.sentencepiece_model import (
    PieceType,
    Unigram,
    bpe_model,
    read_unigram_model,
    unigram_model,
)

MODEL = Unigram(
    ("<pad>", "<unk>", "▁", "a", "▁ab", "."),
    (0.0, 0.0, -1.5, -2.25, -3.0, 0.0),
    (PieceType.CONTROL, PieceType.UNKNOWN, *[PieceType.NORMAL] * 3, PieceType.USER_DEFINED),
    compiled({"é": "e", "ab": "ba"}),
)
WHOLE = unigram_model(MODEL)


def test_what_is_written_is_read():
    assert read_unigram_model(WHOLE, "x") == MODEL
    plain = replace(MODEL, rules=b"")
    assert read_unigram_model(unigram_model(plain), "x") == plain


@settings(max_examples=300)
@given(st.data())
def test_no_damage_goes_unnoticed_or_ends_in_another_error(data):
    """Torn, or with bytes changed: refused, or another sound model."""
    damaged = bytearray(WHOLE[: data.draw(st.integers(0, len(WHOLE)))])
    for _ in range(data.draw(st.integers(0, 3))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        found, said = read_unigram_model(bytes(damaged), "x.model"), ""
    except ContractViolation as refused:
        found, said = None, str(refused)
    if found is None:
        assert said.startswith("x.model: ")
    else:
        assert read_unigram_model(unigram_model(found), "x") == found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pieces": ("<pad>", "<unk>", "▁", "a", "a", ".")}, "each piece once"),
        ({"pieces": ("<pad>", "<unk>", "▁", "a", "", ".")}, "pieces with text"),
        ({"pieces": ("<pad>", "<unk>", "▁", "a", "b\0", ".")}, "without NUL"),
        ({"scores": (0.0, 0.0, float("nan"), -2.0, -3.0, 0.0)}, "finite scores"),
        ({"kinds": (PieceType.UNKNOWN,) * 6}, "one unknown piece; .* no special one"),
        ({"rules": struct.pack("<I", 4096) + bytes(1024) + b"\0"}, "rules of norm.* are damaged"),
        ({"rules": struct.pack("<I", 1024) + bytes(1024) + b"x"}, "rules of norm.* are damaged"),
    ],
)
def test_a_model_that_would_not_load_is_refused(changes, said):
    with pytest.raises(ContractViolation, match=said):
        read_unigram_model(unigram_model(replace(MODEL, **changes)), "x")


@pytest.mark.parametrize("unit", [1 << 29, (0x3FF << 10) | 0x200, 0x100])
def test_rules_that_lead_out_of_their_table_are_refused(unit):
    """A step beyond the trie, or an end whose replacement is beyond the text."""
    units = [0xFFFFFFFF if unit == 0x100 else 0] * 256
    units[0] = unit
    rules = struct.pack("<I256I", 1024, *units) + b"\0"
    with pytest.raises(ContractViolation, match=r"rules of normalisation are damaged"):
        read_unigram_model(unigram_model(replace(MODEL, rules=rules)), "x")


def test_another_kind_of_model_is_refused_by_its_settings():
    with pytest.raises(ContractViolation, match=r"model_type: expected 1, got 2; .*only unigram"):
        read_unigram_model(bpe_model([("<unk>", None), ("a", 0)], 0), "x")
    byte_fallback = b"\x12\x03\x98\x02\x01"  # trainer_spec, field 35
    with pytest.raises(ContractViolation, match="byte_fallback: expected 0, got 1"):
        read_unigram_model(WHOLE + byte_fallback, "x")
