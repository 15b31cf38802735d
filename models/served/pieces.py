"""Tokens to text: the pieces of WordPiece, or bytes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

CONTINUATION = "##"  # before a piece that goes on with a word
CJK = (  # first and last code point of BERT's blocks of CJK ideographs; no kana, no Hangul
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


@cache  # asked of each character of a text
def is_cjk(character: str) -> bool:
    """Whether a character is a CJK ideograph (`CJK`)."""
    code = ord(character)
    return any(first <= code <= last for first, last in CJK)


def encoded(texts: Any) -> Any:
    """Texts as UTF-8, in lists as given; anything else as it is.

    Half a surrogate pair, such as of an emoji that was cut, has no meaning: it is dropped, as in
    training.
    """
    if isinstance(texts, str):
        return texts.encode("utf-8", "ignore")
    return [encoded(each) for each in texts] if isinstance(texts, list | tuple) else texts


def text_of_words(pieces: Iterable[str]) -> str:
    """The text of WordPiece's pieces; words are separated by spaces, except between CJK."""
    words: list[str] = []
    for piece in pieces:
        if piece.startswith(CONTINUATION) and words:
            words[-1] += piece.removeprefix(CONTINUATION)
        else:
            words.append(piece)
    text = ""
    for word in words:
        joined = text and is_cjk(text[-1]) and is_cjk(word[0])
        text += word if joined or not text else " " + word
    return text


def characters_of(text: bytes) -> np.ndarray:
    """The character to which each byte of a UTF-8 text belongs, (bytes + 1,) int64.

    Behind the last byte is the number of characters, so that an offset may be the text's end.
    """
    data = np.frombuffer(text + b".", np.uint8)
    return np.cumsum((data & 0xC0) != 0x80) - 1


def text_of_bytes(pieces: Iterable[bytes]) -> str:
    """The text of byte-level pieces; U+FFFD for an incomplete character."""
    return b"".join(pieces).decode("utf-8", "replace")
