"""Whole words: each word of a text is one token, or [UNK].

text → normalise and split as WordPiece does (each CJK character is a word by itself)
     → tokens: words of the vocabulary; any other word is [UNK]

Where a segmenter cut the texts of the vocabulary, characters that touch each other are joined again
to the longest words of the vocabulary (`models.longest_match`).

This is WordPiece without pieces that go on with a word (``##``): a word that is no token as a whole
can't be split, so it is [UNK]. Training, the served graph and the files for transformers are
therefore WordPiece's. For models of counts and of one vector a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Self

from fourstage.errors import ContractViolation
from models.longest_match import longest_match
from models.sentinels import sentinel_names
from models.tokenizers.wordpiece import MAX_WORD, SPECIAL_TOKENS, WordPiece, word_counts

KEEPS_CASE = False
ADDS_WORDS = False
WHOLE_WORDS = True  # a token is written as the word is
SMALLEST = 6  # smallest vocabulary: the special tokens and a word
SEGMENTED = True  # Chinese words of several characters can be tokens
SUITE = "tokens_words"  # what its tokens promise: more unknown ones than pieces have
MINIMUM_COUNT = 2  # default; so some words of the text are [UNK], and [UNK] has a count


class Word(WordPiece):
    """A tokenizer of whole words.

    Args:
        vocabulary: Tokens ordered by id, with the five special ones.
        lowercase: Whether case and accents are dropped.
        longest_match: Whether Chinese words are found by longest match. Otherwise each CJK
            character is a word.

    Raises:
        ContractViolation: A special token is missing, or a token is repeated.
    """

    scheme = "word"

    def __init__(self, vocabulary: Sequence[str], lowercase: bool, longest_match: bool = False):
        super().__init__(vocabulary, lowercase)
        self.longest_match = longest_match

    @classmethod
    def learned(
        cls,
        texts: Iterable[str],
        *,
        vocabulary_size: int,
        lowercase: bool,
        sentinels: int = 0,
        marks: Sequence[str] = (),
        minimum_count: int = MINIMUM_COUNT,
        cut: Callable[[str], Iterable[str]] | None = None,
    ) -> Self:
        """Take the most frequent words of texts; equally frequent ones in the order of code points.

        Args:
            texts: Any number of texts; only their distinct words are kept in memory.
            vocabulary_size: Largest number of tokens, with the special ones and the sentinels.
            lowercase: Whether case and accents are dropped.
            sentinels: Tokens that stand for hidden spans.
            marks: None: a recipe that gives words marks is refused.
            minimum_count: Smallest count of a word of the vocabulary, from 1.
            cut: Gives the words of a run of CJK characters. They are then found by longest match.
                None: each CJK character is a word.

        Raises:
            ContractViolation: There is no text, no word is frequent enough, or the vocabulary has
                no room for a word.
        """
        assert not marks
        most = vocabulary_size - sentinels - len(SPECIAL_TOKENS)
        if most < 1:
            raise ContractViolation(
                f"tokenizer: vocabulary_size {vocabulary_size} has no room for a word beside"
                f" {len(SPECIAL_TOKENS) + sentinels} special tokens"
            )
        counts = cls.counted(texts, lowercase=lowercase, cut=cut)
        if not counts:
            raise ContractViolation("tokenizer: learning a vocabulary needs text; none came")
        frequent = [
            word
            for word, count in counts.items()
            if count >= minimum_count and len(word) <= MAX_WORD
        ]
        if not frequent:
            raise ContractViolation(
                f"tokenizer: none of {len(counts):,} words occurs {minimum_count} times, so the"
                " vocabulary would be empty; give more text or a smaller minimum_count"
            )
        words = sorted(frequent, key=lambda word: (-counts[word], word))[:most]
        return cls(
            [*SPECIAL_TOKENS, *words, *sentinel_names(sentinels)], lowercase, cut is not None
        )

    @classmethod
    def counted(
        cls,
        texts: Iterable[str],
        *,
        lowercase: bool,
        cut: Callable[[str], Iterable[str]] | None = None,
    ) -> Counter[str]:
        """Count of each word."""
        return word_counts(texts, lowercase=lowercase, cut=cut)

    @cached_property
    def _pieces(self) -> Any:
        pieces = super()._pieces
        if not self.longest_match:
            return pieces
        return longest_match(self.vocabulary, self.unknown_id, pieces)
