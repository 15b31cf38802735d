"""Adding words of a domain to an existing WordPiece vocabulary."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from models.tokenizers.wordpiece import WordPiece, word_counts

RAREST = 5  # smallest count of an added word; the embedding of a rarer one would hardly be trained


def with_more_words(tokenizer: WordPiece, texts: Iterable[str], most: int) -> WordPiece:
    """Append whole words to a tokenizer's vocabulary; existing ids do not change.

    The added words are those that save the most tokens in the texts: count of the word × (number of
    its tokens - 1). WordPiece matches the longest token first, so a new word may also match the
    start of a longer word. If the rest of that word can then not be encoded, the new word is
    dropped.

    Args:
        tokenizer: The tokenizer to extend.
        texts: Texts of the domain, iterated over once.
        most: Number of words to add; short texts give fewer.
    """
    counts = word_counts(texts, lowercase=tokenizer.lowercase)
    words = sorted(counts)
    before = tokenizer.encode(words)
    saved = [counts[word] * (len(ids) - 1) for word, ids in zip(words, before, strict=True)]
    ranked = sorted(zip(saved, words, strict=True), key=lambda pair: (-pair[0], pair[1]))
    chosen = [word for pieces, word in ranked if pieces and counts[word] >= RAREST][:most]
    whole = {w for w, ids in zip(words, before, strict=True) if tokenizer.unknown_id not in ids}
    while True:
        grown = WordPiece((*tokenizer.vocabulary, *chosen), tokenizer.lowercase, tokenizer.marks)
        after = zip(words, grown.encode(words), strict=True)
        broken = [word for word, ids in after if grown.unknown_id in ids and word in whole]
        if not broken:
            return grown
        left = [each for each in chosen if not any(word.startswith(each) for word in broken)]
        chosen = left if len(left) < len(chosen) else []


def replaced_pieces(old: WordPiece, new: WordPiece) -> list[np.ndarray]:
    """The ids with which `old` encodes each of the words that `new` has added."""
    return old.encode(new.vocabulary[old.vocabulary_size :])
