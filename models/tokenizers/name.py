"""Names between blanks: each is one token, or [UNK].

text → remove control characters, Unicode's normal form; case stays
     → split at blanks, and nowhere else
     → tokens: names of the vocabulary; any other one is [UNK]

For the names of a knowledge graph, whose signs are part of them: ``/m/027rn``, ``_has_part``. The
vocabulary is `word`'s, the most frequent ones, and so is everything that does not split text.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from models.sentinels import sentinel_ids, sentinel_names
from models.served.pieces import CONTINUATION
from models.tokenizers.word import Word
from models.tokenizers.wordpiece import MAX_WORD_BYTES, SPECIAL_TOKENS

KEEPS_CASE = True
ADDS_WORDS = False
WHOLE_WORDS = True  # a token is written as the name is
SMALLEST = 6  # smallest vocabulary: the special tokens and a name
SUITE = "tokens_words"
MINIMUM_COUNT = 2  # default; with 1 no name of the text is left out

# As `models.tokenizers.wordpiece.REMOVED`; half characters are lost when text is encoded.
_LEFT_OUT = ("Cc", "Cf", "Co", "Cs")
_BLANK = r"[\pZ\s]"  # RE2


class Name(Word):
    """A tokenizer of names.

    Args:
        vocabulary: Tokens ordered by id, with the five special ones.
        lowercase: False; names keep their case.

    Raises:
        ContractViolation: A special token is missing, or a token is repeated.
    """

    scheme = "name"

    @classmethod
    def counted(
        cls, texts: Iterable[str], *, lowercase: bool, cut: Callable[[str], Any] | None = None
    ) -> Counter[str]:
        """Count of each name that may be a token; none is cut."""
        assert cut is None
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(_cleaned(text).split())
        reserved = {*SPECIAL_TOKENS, *sentinel_names(len(sentinel_ids(counts)))}
        for name in list(counts):
            if name in reserved or name.startswith(CONTINUATION):
                del counts[name]
        return counts

    @cached_property
    def _blanks(self) -> Any:
        """Makes one plain space of each kind of blank."""
        import tensorflow as tf

        class Blanks:
            def normalize(self, texts: Any) -> Any:
                return tf.strings.regex_replace(texts, _BLANK, " ")

        return Blanks()

    @cached_property
    def _pieces(self) -> Any:
        """Splits at spaces, then looks names up."""
        import tensorflow as tf
        import tensorflow_text as tf_text

        # A special token's name in a text is an unknown name: no name ends with a blank.
        hidden = {self.vocabulary[i] for i in self.special_ids if i != self.unknown_id}
        names = [f"{name} " if name in hidden else name for name in self.vocabulary]

        class Names(tf.Module):
            def __init__(self):
                super().__init__()
                self.splitter = tf_text.WhitespaceTokenizer()
                self.table = tf_text.FastWordpieceTokenizer(
                    vocab=names,
                    token_out_type=tf.int32,  # pyright: ignore[reportArgumentType]
                    max_bytes_per_word=MAX_WORD_BYTES,
                    no_pretokenization=True,
                )

            def tokenize(self, texts: Any) -> Any:
                # One id a name, which stands in a row of its own until rows are merged.
                return self.table.tokenize(self.splitter.tokenize(texts)).merge_dims(1, 2)

            def tokenize_with_offsets(self, texts: Any) -> Any:
                found, starts, ends = self.splitter.tokenize_with_offsets(texts)
                return self.table.tokenize(found).merge_dims(1, 2), starts, ends

        return Names()


def _cleaned(text: str) -> str:
    """A text as the tokenizer normalises it."""
    if not text.isprintable():
        text = "".join(
            character
            for character in text
            if character in "\t\n\r" or unicodedata.category(character) not in _LEFT_OUT
        )
    return unicodedata.normalize("NFC", text.replace("\ufffd", ""))
