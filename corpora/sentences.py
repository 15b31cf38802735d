"""Splits English and Chinese text into sentences by rules; only whitespace between them is lost.

An English sentence ends at ``. ! ?`` (and closing quotes or brackets) followed by whitespace and
something that can begin a sentence, unless the dot belongs to an abbreviation, an initial or a
number. A Chinese sentence ends at any ``。！？…；``. In both an empty line ends a sentence.
"""

from __future__ import annotations

import re

from fourstage.languages import main_language

# A dot after these never ends a sentence.
_TITLES = frozenset(
    "mr mrs ms dr prof rev hon st sr jr gen col lt sgt capt cmdr adm gov sen rep pres "
    "fig figs eq eqs sec secs ch vol vols no nos pp ref refs ed eds cf vs viz approx resp e.g i.e "
    "al ca dept univ assn bros est".split()
)
# After these it does if the next word is capitalised and long enough to begin a sentence.
_OPEN = frozenset("etc inc ltd co corp a.m p.m u.s u.k u.n ph.d m.d b.a m.a".split())

# A run of marks is tried once, as a whole: from each of its marks it would take quadratic time.
_ENDS = re.compile(r"""(?<![.!?])[.!?]++["'”’)\]»]*+(?=\s)""")
_CHINESE_ENDS = re.compile(
    r"(?:[。！？；]|…++|(?<![!?])[!?]++(?=[^\x00-\x7f]|\s|$))[”’」』）)\"']*+"
)
_PARAGRAPH = re.compile(r"\n\s*\n")
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘«]+$")
_NEXT = re.compile(r"""\s+(["'“‘(\[«]*)(\S+)""")

_UNSPACED = ("zh", "ja")


def split_sentences(text: str, language: str) -> list[str]:
    """The sentences of a text, without the whitespace between them.

    Args:
        text: Any text; usually cleaned.
        language: ``zh`` and ``ja`` follow the Chinese rules, all others the English ones.

    Returns:
        Non-empty sentences in order; joined, they are the text except for whitespace.

    Example:
        >>> split_sentences("Dr. Li saw 3.5 mg. It helped (see Fig. 2). Why?", "en")
        ['Dr. Li saw 3.5 mg.', 'It helped (see Fig. 2).', 'Why?']
        >>> split_sentences("天气很好。“走吧！”他说……我们去了", "zh")
        ['天气很好。', '“走吧！”', '他说……', '我们去了']
    """
    unspaced = main_language(language) in _UNSPACED
    sentences: list[str] = []
    for paragraph in _PARAGRAPH.split(text):
        ends = _chinese_ends(paragraph) if unspaced else _english_ends(paragraph)
        start = 0
        for end in (*ends, len(paragraph)):
            sentence = paragraph[start:end].strip()
            if sentence:
                sentences.append(sentence)
            start = end
    return sentences


def split_lines(text: str) -> list[str]:
    """The lines of a text that is already split: utterances of a dialogue, verses of a poem.

    Returns:
        Non-empty lines in order, stripped.
    """
    return [line for line in map(str.strip, text.split("\n")) if line]


def _chinese_ends(paragraph: str) -> list[int]:
    return [match.end() for match in _CHINESE_ENDS.finditer(paragraph)]


def _english_ends(paragraph: str) -> list[int]:
    return [
        match.end()
        for match in _ENDS.finditer(paragraph)
        if not _goes_on(paragraph, match.start(), match.group(), match.end())
    ]


def _goes_on(paragraph: str, start: int, mark: str, end: int) -> bool:
    """Whether the sentence continues after a mark."""
    following = _NEXT.match(paragraph, end)
    if following is None:
        return False
    word = following[2]
    if not (word[0].isupper() or word[0].isdigit() or following[1] or not word[0].isalpha()):
        return True  # a lowercase letter does not begin a sentence
    if not mark.startswith(".") or mark.startswith(".."):
        return False
    # No abbreviation is longer. Without a bound, a line of one long word would take for ever.
    before = _LAST_WORD.search(paragraph[max(0, start - 16) : start])
    if before is None:
        return False
    last = before[0].lower()
    if len(last) == 1 and last.isalpha() and before[0].isupper():
        return True  # an initial: J. Smith
    if last in _TITLES:
        return last != "no" or word[0].isdigit()
    if last in _OPEN or (last.count(".") and all(len(part) <= 1 for part in last.split("."))):
        return not (word[0].isupper() and len(word) > 1)
    return False
