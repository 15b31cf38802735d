"""Words of a domain for a vocabulary that was learned elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from models.tokenizers.wordpiece import WordPiece

RAREST = 5  # times a word has to occur; a rarer one would train its row too seldom


def with_more_words(tokenizer: WordPiece, texts: Iterable[str], most: int) -> WordPiece:
    """The tokenizer with whole words added behind its pieces, whose ids stay.

    Chosen are the words that save the most pieces in the texts: how often a word occurs times the
    pieces it is cut into, less one. The longest piece that fits comes first, so a new word may also
    begin another one; where that one's rest could then not be spelled, the new word is left out.

    Args:
        tokenizer: As it was learned.
        texts: Gone through once.
        most: Words wanted; a small text gives fewer.
    """
    counts = _words(texts, tokenizer.lowercase)
    words = sorted(counts)
    before = tokenizer.encode(words)
    saved = [counts[word] * (len(ids) - 1) for word, ids in zip(words, before, strict=True)]
    ranked = sorted(zip(saved, words, strict=True), key=lambda pair: (-pair[0], pair[1]))
    chosen = [word for pieces, word in ranked if pieces and counts[word] >= RAREST][:most]
    whole = {w for w, ids in zip(words, before, strict=True) if tokenizer.unknown_id not in ids}
    while True:
        grown = WordPiece((*tokenizer.vocabulary, *chosen), tokenizer.lowercase)
        after = zip(words, grown.encode(words), strict=True)
        broken = [word for word, ids in after if grown.unknown_id in ids and word in whole]
        if not broken:
            return grown
        left = [each for each in chosen if not any(word.startswith(each) for word in broken)]
        chosen = left if len(left) < len(chosen) else []


def replaced_pieces(old: WordPiece, new: WordPiece) -> list[np.ndarray]:
    """Of each piece that `new` has more, the ids by which `old` spelled it."""
    return old.encode(new.vocabulary[old.vocabulary_size :])


def _words(texts: Iterable[str], lowercase: bool) -> Counter[str]:
    """How often each word occurs, cut and normalised as the tokenizer does it."""
    from tokenizers import normalizers, pre_tokenizers

    normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    cutter = pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for text in texts:
        normal = normalizer.normalize_str(text)
        counts.update(word for word, _ in cutter.pre_tokenize_str(normal))
    return counts
