"""Rules that replace characters, compiled as SentencePiece reads them (``precompiled_charsmap``).

    length of the trie (4 bytes) · trie · replacements, each with a NUL behind it

At each place of a text the longest rule that matches is applied. The trie is a double array of
darts-clone, little-endian numbers of 32 bits. A unit at place p is at most two things:

    inner   step << 10 | has_end << 8 | byte     children at p ^ step ^ their byte
    end     1 << 31 | place of the replacement   at p ^ step, if has_end
"""

from __future__ import annotations

import struct
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain, islice

_BLOCK = 256  # units are added by blocks, so that no step leads out of the array
_LARGEST_STEP = 1 << 21
_MOST_FREE = 512  # places that are looked through for a node's children
_REMOVED = ("Cc", "Cf")  # control and format characters: zero width, direction


@cache
def canonical_rules() -> Mapping[str, str]:
    """Rules for NFC; blanks become spaces; control and format characters and U+FFFD disappear.

    Marks that follow a character in another than the canonical order stay as they are. NUL cannot
    be in a rule.
    """
    rules = {"\ufffd": ""}
    spelled: dict[str, list[str]] = {}  # {character: the spellings it is composed of}
    for code in (*range(1, 0xD800), *range(0xE000, 0x110000)):
        character = chr(code)
        category = unicodedata.category(character)
        if category == "Cn" or category == "Co":
            continue
        if character.isspace() and character != " ":
            rules[character] = " "
        elif category in _REMOVED:
            rules[character] = ""
        elif unicodedata.normalize("NFC", character) != character:
            rules[character] = unicodedata.normalize("NFC", character)
        elif parts := _parts(character):
            spelled[character] = [parts]
    for character in sorted(spelled, key=lambda c: len(unicodedata.normalize("NFD", c))):
        head, *rest = spelled[character][0]
        spelled[character] += ["".join([each, *rest]) for each in spelled.get(head, ())]
    rules |= {parts: whole for whole, each in spelled.items() for parts in each}
    return rules


@cache
def compiled_canonical_rules() -> bytes:
    """`canonical_rules` as SentencePiece reads them."""
    return compiled(canonical_rules())


def _parts(character: str) -> str:
    """The two characters that a character is composed of; empty if it is not composed."""
    if 0xAC00 <= ord(character) < 0xD7A4:  # Hangul syllables are composed by arithmetic
        head = 0xAC00 + (ord(character) - 0xAC00) // 28 * 28
        if head == ord(character):
            return unicodedata.normalize("NFD", character)
        return chr(head) + chr(0x11A7 + (ord(character) - head))
    mapped = unicodedata.decomposition(character)
    return "" if not mapped or "<" in mapped else "".join(chr(int(c, 16)) for c in mapped.split())


def compiled(rules: Mapping[str, str]) -> bytes:
    """Rules as SentencePiece reads them; the same rules give the same bytes.

    Args:
        rules: {text: its replacement}, one or more; both without NUL, texts not empty.
    """
    places: dict[str, int] = {}
    texts = bytearray()
    root: dict[int, dict] = {}
    for text, replacement in sorted(rules.items()):
        if replacement not in places:
            places[replacement] = len(texts)
            texts += replacement.encode() + b"\0"
        node = root
        for byte in text.encode():
            node = node.setdefault(byte, {})
        node[0] = {-1: places[replacement]}  # type: ignore[assignment]
    units = _double_array(root)
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + bytes(texts)


def _double_array(root: Mapping[int, dict]) -> list[int]:
    """The units of a trie of bytes, in which 0 leads to ``{-1: value}``."""
    units = [0] * _BLOCK
    free, bases = dict.fromkeys(range(1, _BLOCK)), {0}
    waiting = [(0, root)]
    for place, node in waiting:  # grows while it is read
        labels = sorted(node)
        # With places behind the last block too, so that one is found.
        behind = range(len(units), len(units) + _BLOCK)
        base = next(
            first ^ labels[0]
            for first in chain(free, behind)
            if _fits(first ^ labels[0], labels, free, bases, len(units))
        )
        if base >= len(units):
            units += [0] * _BLOCK
            kept = islice(free, max(0, len(free) - _MOST_FREE), None)
            free = dict.fromkeys([*kept, *behind])
        bases.add(base)
        assert place ^ base < _LARGEST_STEP, "too many rules"
        units[place] |= (place ^ base) << 10 | (1 << 8 if labels[0] == 0 else 0)
        for label in labels:
            del free[base ^ label]
            if label == 0:
                units[base] = 1 << 31 | node[0][-1]
            else:
                units[base ^ label] = label
                waiting.append((base ^ label, node[label]))
    return units


def _fits(
    base: int, labels: Iterable[int], free: Mapping[int, None], bases: set[int], end: int
) -> bool:
    """Whether a node's children have room; a base and its children are in one block."""
    return base not in bases and (base >= end or all(base ^ label in free for label in labels))
