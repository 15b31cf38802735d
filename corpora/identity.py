"""When two texts count as equal: the normal form for duplicates, overlap and decontamination."""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zlib
from collections.abc import Sequence

import numpy as np

# Symbols that say something: weather, faces, hands, stars, ticks (U+2600 to 27BF), and emoji.
_SYMBOLS = r"\u2600-\u27bf\U0001f000-\U0001faff"
_SYMBOL = re.compile(f"[{_SYMBOLS}]")
# Signs that are vowels and tones in Indian scripts, Thai, Burmese… "ดี" is good, "ดุ" fierce. Not the
# points of Arabic and Hebrew, which may be left out.
_SIGNS = "".join(
    sign for sign in map(chr, range(0x0900, 0x1DC0)) if unicodedata.category(sign) in ("Mn", "Mc")
)
_NOT_WORD = re.compile(rf"(?:[^\w {_SYMBOLS}{_SIGNS}]|_)+")
# The same for ASCII, ten times as fast: lowercase letters and digits; all else becomes a space.
_ASCII = bytes(
    ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else 32 for code in range(256)
)
_CHARACTER_SCRIPTS = re.compile(
    # Scripts without spaces between words: Han, kana, Thai, Lao, Khmer, Burmese.
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    r"\U00020000-\U0003ffff]+"
)
# Odd multipliers that mix bits well: Knuth's 2^64/φ, and the two of splitmix64.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def normal_form(text: str, markings: Sequence[str] = ()) -> str:
    """Letters, digits and emoji only, of one width and case, with one space between words.

    Each emoji, also each star or tick, is a word.

    Args:
        text: Any text.
        markings: Strings to remove first, such as markers around entities.

    Example:
        >>> normal_form("The << Ang-II >>  Receptor!", ["<<", ">>"])
        'the ang ii receptor'
    """
    for marking in markings:
        text = text.replace(marking, " ")
    if text.isascii():
        return b" ".join(text.encode().translate(_ASCII).split()).decode()
    folded = unicodedata.normalize("NFKC", text).casefold()
    # Case folding can undo the normal form (ΐ, for example), so it is applied once more.
    if not folded.isascii():
        folded = unicodedata.normalize("NFKC", folded)
    return " ".join(_SYMBOL.sub(r" \g<0> ", _NOT_WORD.sub(" ", folded)).split())


def marked_form(text: str, markings: Sequence[str]) -> str:
    """A normal form that keeps the markings, each as a word of its own."""
    for number, marking in enumerate(markings):
        text = text.replace(marking, f" marking{number} ")
    return normal_form(text)


def text_key(text: str, markings: Sequence[str] = (), normal: str | None = None) -> str:
    """What texts have in common that differ only in markings, punctuation and case.

    A marking may be inside a word, or between two of a script without spaces, so where there are
    markings, spaces make no difference either. A text without any letter is its own key.

    Args:
        text: Any text.
        markings: Strings to ignore.
        normal: Its normal form without them, if it is known.
    """
    normal = normal_form(text, markings) if normal is None else normal
    return (normal.replace(" ", "") if markings else normal) or text


def text_digest(text: str, normal: str, pair: str | None = None) -> str:
    """16 hex digits, equal for texts that differ only in punctuation and case.

    A text without any letter, digit or emoji (a row of asterisks) is digested as it is.
    """
    state = hashlib.sha256((normal or text).encode())
    if pair is not None:
        state.update(b"\0" + (normal_form(pair) or pair).encode())
    return state.hexdigest()[:16]


def is_unspaced(normal: str) -> bool:
    """Whether a text is mostly in a script without spaces between words."""
    if normal.isascii():
        return False
    return 2 * sum(map(len, _CHARACTER_SCRIPTS.findall(normal))) > len(normal.replace(" ", ""))


def word_units(normal: str) -> np.ndarray:
    """One number per word of a normal form, (words,) uint64."""
    words = normal.encode().split()
    return np.fromiter(map(zlib.crc32, words), dtype=np.uint64, count=len(words))


def character_units(normal: str) -> np.ndarray:
    """One number per character of a normal form, without spaces, (characters,) uint64."""
    packed = normal.replace(" ", "").encode("utf-32-le")
    return np.frombuffer(packed, dtype=np.uint32).astype(np.uint64)


def gram_hashes(units: np.ndarray, length: int) -> np.ndarray:
    """A 64-bit hash of every run of `length` units, (max(0, n - length + 1),) uint64."""
    count = len(units) - length + 1
    if count <= 0:
        return np.empty(0, dtype=np.uint64)
    hashes = np.zeros(count, dtype=np.uint64)
    mixed = _mixed(units)
    for start in range(length):  # wraps modulo 2^64 on purpose
        hashes = hashes * _STEP + mixed[start : start + count]
    return _mixed(hashes)


def _mixed(values: np.ndarray) -> np.ndarray:
    """The finalizer of splitmix64: every input bit reaches every output bit."""
    values = values + _STEP
    values = (values ^ (values >> np.uint64(30))) * _MIX[0]
    values = (values ^ (values >> np.uint64(27))) * _MIX[1]
    return values ^ (values >> np.uint64(31))
