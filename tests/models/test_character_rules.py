"""Compiled rules of characters: every rule is found, nothing else is."""

from __future__ import annotations

import struct
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from models.character_rules import compiled, compiled_canonical_rules
from models.sentencepiece_model import _sound

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1)


def applied(rules: bytes, text: str) -> str:
    """A text under compiled rules: at each place the longest one that matches."""
    (size,) = struct.unpack("<I", rules[:4])
    units = struct.unpack(f"<{size // 4}I", rules[4 : 4 + size])
    replacements, data, at, found = rules[4 + size :], text.encode(), 0, b""

    def step(unit: int) -> int:
        return unit >> 10 << ((unit & 0x200) >> 6)

    while at < len(data):
        place, best = step(units[0]), None
        for length, byte in enumerate(data[at:], 1):
            place ^= byte
            unit = units[place]
            if unit & 0x800000FF != byte:
                break
            place ^= step(unit)
            if unit >> 8 & 1:
                begin = units[place] & 0x7FFFFFFF
                best = length, replacements[begin : replacements.index(b"\0", begin)]
        length, new = best or (1, data[at : at + 1])
        found, at = found + new, at + length
    return found.decode()


@settings(max_examples=50)
@given(st.dictionaries(TEXT, TEXT, min_size=1, max_size=40), TEXT)
def test_the_longest_rule_is_applied(rules, text):
    made = compiled(rules)
    assert _sound(made)
    expected, at = "", 0
    while at < len(text):
        ends = [end for end in range(len(text), at, -1) if text[at:end] in rules]
        end = ends[0] if ends else at + 1
        expected += rules.get(text[at:end], text[at:end])
        at = end
    assert applied(made, text) == expected


def test_every_character_is_in_nfc_and_blanks_and_controls_go():
    made = compiled_canonical_rules()
    parts, expected = [], []
    for code in (*range(1, 0x3400), *range(0xAC00, 0xB000), *range(0xF900, 0x10000)):
        character = chr(code)
        category = unicodedata.category(character)
        if category in ("Cn", "Co"):
            continue
        plain = unicodedata.normalize("NFC", character)
        if character.isspace():
            plain = " "
        elif category in ("Cc", "Cf") or character == "\ufffd":
            plain = ""
        for form in ("NFC", "NFD"):
            parts.append(unicodedata.normalize(form, character))
            expected.append(plain)
    assert applied(made, "|".join(parts)) == "|".join(expected)


def test_the_same_rules_give_the_same_bytes():
    rules = {"a": "b", "ab": "c", "é": ""}
    assert compiled(rules) == compiled(dict(reversed(rules.items())))
