"""What is measured of the texts that a model learns to write, for contracts.

Columns of the profile: ``target_chars`` (of the longest reference), ``target_words`` (of the one
with the fewest; signs are no words, and in scripts without spaces each character is one),
``length_ratio`` (the most words of a reference to those of the text), ``copy_rate`` (of the longest
run of words that a reference shares with the text, its share of the reference's words, 0-1; the
highest) and ``target_script_share`` (of a reference's letters, those in the script of its language,
0-1; the lowest).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

from corpora.identity import normal_form
from corpora.profile import script_share

_UNSPACED = (  # the scripts of `corpora.identity`
    r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    r"\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")


def measure_targets(targets: Sequence[str], text: str, language: str) -> dict[str, Any]:
    """The columns of one row.

    Args:
        targets: Its references, cleaned; one or more.
        text: Its text, cleaned.
        language: Language of the references.
    """
    words = _words(text)
    by_target = [_words(target) for target in targets]
    return {
        "target_chars": max(map(len, targets)),
        "target_words": min(map(len, by_target)),
        "length_ratio": max(map(len, by_target)) / max(1, len(words)),
        "copy_rate": max(_copied(target, words) for target in by_target),
        "target_script_share": min(script_share(target, language) for target in targets),
    }


def _words(text: str) -> list[str]:
    """Words without case and punctuation, and characters of scripts without spaces."""
    return _WORD.findall(normal_form(text))


def _copied(target: Sequence[str], words: Sequence[str]) -> float:
    matcher = SequenceMatcher(None, words, target, autojunk=False)
    return matcher.find_longest_match().size / len(target) if target else 0.0
