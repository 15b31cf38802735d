"""The words of a text, for heads that answer with parts of it.

A word is a run of letters, digits and symbols, one punctuation mark, or one Chinese character.
Words are found in the text as written, so that an answer can be given as offsets into it.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import pairwise

import numpy as np

# Ideographs and kana, by the blocks that BERT's published code splits, and their extensions.
_CJK = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002ebef\U0002f800-\U0002fa1f\U00030000-\U000323af"
)


def word_spans(text: str) -> np.ndarray:
    """Where the words of a text lie.

    Args:
        text: Any text.

    Returns:
        (words, 2) int64 offsets in characters: start, and end exclusive.
    """
    found = [match.span() for match in _pattern().finditer(text)]
    return np.array(found, np.int64).reshape(-1, 2)


def words_of(text: str) -> list[str]:
    """The words of a text, each with the blanks before it; a tokenizer may need them."""
    ends = [0, *word_spans(text)[:, 1].tolist()]
    return [text[start:end] for start, end in pairwise(ends)]


@cache
def _pattern() -> re.Pattern[str]:
    # As in BERT's published code, all ASCII signs that are no letters or digits are punctuation.
    signs = [chr(code) for code in range(33, 127) if not chr(code).isalnum()]
    signs += [
        chr(code) for code in range(128, 0x10000) if unicodedata.category(chr(code))[0] == "P"
    ]
    marks = "".join(map(re.escape, signs))
    return re.compile(rf"[{_CJK}]|[{marks}]|[^\s{_CJK}{marks}]+")
