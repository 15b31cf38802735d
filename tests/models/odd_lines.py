"""Lines of two languages with odd characters between, and a vocabulary that spells them."""

from __future__ import annotations

import random
from functools import cache

from models.tokenizers.byte_bpe import ByteBPE, learn
from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece


def lines() -> list[str]:
    """1,000 made-up lines of English and as many of Chinese, with odd characters between."""
    rng = random.Random(3)
    words = (
        "the Network learned naïve words, un-seen before: 3.14 % (of) them — isn't Ärger".split()
    )
    signs = "的一是不了人我在有他这中大来上国个到说们，。！？《》１２Ａ〇"
    odd = ["\t", "\u200b", "\u00a0", "…", "ﬁ", "½", "日本", "한국", "é", "e\u0301", "😀", "$5"]
    english = [" ".join(rng.choices(words + odd, k=rng.randint(1, 20))) for _ in range(1000)]
    chinese = ["".join(rng.choices([*signs, *odd], k=rng.randint(1, 30))) for _ in range(1000)]
    return english + chinese


def alphabet(lowercase: bool) -> WordPiece:
    """Every character of the lines, and a few longer pieces."""
    text = "".join(lines())
    letters = sorted(c for c in {*text, *text.casefold(), *"aeiou"} if c.isprintable() and c != " ")
    pieces = [*SPECIAL_TOKENS, *letters, *(f"##{c}" for c in letters), "the", "learn", "##ed"]
    return WordPiece(pieces, lowercase)


@cache
def byte_pairs() -> ByteBPE:
    """Byte-level BPE learned from the lines."""
    return learn(lines(), vocabulary_size=700)
