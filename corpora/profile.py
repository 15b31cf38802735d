"""The profile: one row of numbers per document or labelled row, without text, for contracts.

Columns for all: ``id``, ``split``, ``num_chars``, ``num_words``, ``longest_word`` (characters),
``replacement_share`` (of U+FFFD, 0-1), ``script_share`` (of letters that are in the language's
script, 0-1; 1 where there are no letters), ``control_removed`` (characters removed in cleaning),
``special_token_strings`` (how many occur in the text), ``digest`` (of the normal form), and
``num_duplicates`` (removed documents that this one stands for; their share is the duplicate rate).

Further columns of datasets: ``label`` (of other answers their kind), ``num_answers`` (labels, spans
or reference answers of the row), ``number`` (null unless the answer is one), ``text_pair_chars``
(null without a pair),
``duplicate_of_train`` (for rows of the other splits, the id of a training row with the same text,
or null) and ``contradictory`` (another row has the same text and another answer). Of rows whose
answers are texts also those of `corpora.targets`, and ``target_language_margin``
(`corpora.target_language`; 0 where texts and targets are in one language or in two scripts).

Only kept documents and rows are in it; what was removed or quarantined is in ``rejected.jsonl``
and in the counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from corpora.identity import is_unspaced
from fourstage.languages import main_language

SPECIAL_TOKENS = re.compile(
    r"\[(?:PAD|UNK|CLS|SEP|MASK)\]|</?s>|<(?:pad|unk|mask|cls|sep|eod|eop|bos|eos)>"
    r"|<extra_id_\d{1,3}>|<\|[a-z_]{2,24}\|>"
)
_LETTERS = re.compile(r"[^\W\d_]+")
_SCRIPTS = {
    "latin": re.compile(
        r"[A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a]+"
    ),
    "han": re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"),
    "japanese": re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"),
    "hangul": re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]+"),
    "cyrillic": re.compile(r"[\u0400-\u052f]+"),
    "arabic": re.compile(r"[\u0600-\u06ff\u0750-\u077f]+"),
    "greek": re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]+"),
    "devanagari": re.compile(r"[\u0900-\u097f]+"),
    "hebrew": re.compile(r"[\u0590-\u05ff]+"),
    "thai": re.compile(r"[\u0e00-\u0e7f]+"),
}
_LANGUAGES = {
    "zh": "han",
    "ja": "japanese",
    "ko": "hangul",
    "ru": "cyrillic",
    "uk": "cyrillic",
    "bg": "cyrillic",
    "sr": "cyrillic",
    "ar": "arabic",
    "fa": "arabic",
    "ur": "arabic",
    "el": "greek",
    "hi": "devanagari",
    "mr": "devanagari",
    "he": "hebrew",
    "th": "thai",
}


def measure(text: str, language: str, removed: Mapping[str, int]) -> dict[str, Any]:
    """The columns that depend on a single text.

    Args:
        text: Cleaned text.
        language: Language of the source.
        removed: Number of characters that cleaning removed, by kind.
    """
    words = text.split()
    return {
        "num_chars": len(text),
        "num_words": _num_words(text, words),
        "longest_word": max(map(len, words), default=0)
        if not _unspaced(text)
        else _longest_run(text),
        "replacement_share": text.count("\ufffd") / len(text) if text else 0.0,
        "script_share": script_share(text, language),
        "control_removed": sum(removed.values()),
        "special_token_strings": len(SPECIAL_TOKENS.findall(text))
        if "[" in text or "<" in text
        else 0,
    }


def script_share(text: str, language: str) -> float:
    """Share of the letters that are in the language's script, 0-1; 1 if there are no letters."""
    of = script(language)
    if text.isascii() and of == "latin":
        return 1.0
    # The scripts' ranges hold signs, too: of vowels, × and ÷.
    letters = "".join(_LETTERS.findall(text))
    return _total(_SCRIPTS[of], letters) / len(letters) if letters else 1.0


def script(language: str) -> str:
    """Name of a language's script."""
    return _LANGUAGES.get(main_language(language), "latin")


def _total(pattern: re.Pattern[str], text: str) -> int:
    """Total length of a pattern's matches."""
    return sum(map(len, pattern.findall(text)))


def _unspaced(text: str) -> bool:
    return not text.isascii() and is_unspaced(text)


_CHARACTER_WORDS = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f\U00020000-\U0003ffff]+"
)
_NOT_CHARACTER_WORDS = re.compile(
    r"[^\s\u3000-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f\uff00-\uffef"
    r"\U00020000-\U0003ffff]+"
)


def _num_words(text: str, words: list[str]) -> int:
    """Words between spaces; in scripts without spaces each character counts as a word."""
    if text.isascii():
        return len(words)
    characters = _total(_CHARACTER_WORDS, text)
    if not characters:
        return len(words)
    return characters + len(_NOT_CHARACTER_WORDS.findall(text))


def _longest_run(text: str) -> int:
    """Longest run without a space or a character of an unspaced script."""
    return max(map(len, _NOT_CHARACTER_WORDS.findall(text)), default=1 if text else 0)
