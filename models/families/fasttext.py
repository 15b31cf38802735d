"""fastText: word2vec whose words are made of character n-grams, and a classifier of word n-grams.

    token_ids → vectors → dropout → sequence_output (B, T, D); a row is the mean of its vectors

The network's table has the vectors of whole words, as a file of the original tool; that is what
heads read and tune. The rows of words and character n-grams that they are means of stay beside it,
for the next stage and for words that are not in the vocabulary (`models.vectors.subwords`).

With `word_ngrams` above 1 a row is the mean of its words and of its hashed n-grams of words, which
have a table of their own. Under a head for labels, trained by `sgd`, that is the classifier.

Parameters of the network: vocabulary × width, and buckets × width with n-grams of words; in
pre-training, (vocabulary + buckets) × width besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fourstage.errors import RecipeError
from models import features as keys
from models.keras_ops import ops
from models.layers.word_ngrams import LIMBS, MOST_BUCKETS, ngram_rows, word_hashes
from models.layers.word_vectors import Rows, WordVectors, WordVectorsConfig
from models.protocols import Capability, Tokenizer

PROVIDES = ("static",)
SIZES = {
    "tiny": {"hidden_dim": 32, "dropout": 0.1, "buckets": 2000, "word_ngrams": 2},
    "classifier": {"hidden_dim": 10, "buckets": 1_000_000, "word_ngrams": 2},
    "small": {"hidden_dim": 100, "buckets": 200_000},
    "base": {"hidden_dim": 300},
}


@dataclass(frozen=True, kw_only=True)
class _Config(WordVectorsConfig):
    """Arguments of word vectors, and fastText's.

    Attributes:
        shortest_ngram: Characters of the shortest n-gram; 0 for none.
        longest_ngram: Characters of the longest one.
        buckets: Rows that n-grams share by their hash: those of characters, and those of words.
        word_ngrams: Words of the longest n-gram of words; 1 for none.
    """

    shortest_ngram: int = 3
    longest_ngram: int = 6
    buckets: int = 2_000_000
    word_ngrams: int = 1


class FastText(WordVectors):
    """The vectors of Bojanowski et al. and the classifier of Joulin et al.

    `spell` tells it the hashes of its words, before the first training; they are saved with the
    weights.

    Shape:
        {token_ids (B, T), padding_mask? (B, T)} → {sequence_output (B, T, D) float32}

    With n-grams of words, a position has the sum of its word's vector and of those of the n-grams
    that begin there, times tokens / (words + n-grams) of the row: their mean is that of all.

    Differs from the paper:
        Vectors of n-grams begin as zeros, not at random: one that was never seen adds nothing. A
        word that is not in the vocabulary is in no n-gram, for the same reason.

    Raises:
        RecipeError: `word_ngrams` is below 1, or `buckets` too large for n-grams of words.

    Reference:
        Bojanowski et al. 2017, arXiv 1607.04606, 3.2; Joulin et al. 2016, arXiv 1607.01759, 2.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    config: _Config

    def build(self, input_shape: Any = None) -> None:
        """Create the tables."""
        longest, buckets = self.config.word_ngrams, self.config.buckets
        if longest < 1:
            raise RecipeError(f"size.word_ngrams: expected 1 or more, got {longest}")
        self.word_hashes: Any = None
        if longest > 1:
            if not 1 <= buckets <= MOST_BUCKETS:
                raise RecipeError(
                    f"size.buckets: expected 1 to {MOST_BUCKETS:,} with n-grams of words, got"
                    f" {buckets:,}"
                )
            self.ngram_embedding = Rows(
                buckets, self.hidden_dim, "zeros", name="ngram", dtype="float32"
            )
            self.ngram_embedding.build((None, None))
            self.word_hashes = self.add_weight(
                shape=(self.vocabulary_size, longest, LIMBS),
                initializer="zeros",
                dtype="int32",
                trainable=False,
                name="word_hashes",
                autocast=False,
            )
        super().build(input_shape)

    def spell(self, tokenizer: Tokenizer) -> None:
        """Learn the hashes of the words."""
        if self.word_hashes is not None:
            self.word_hashes.assign(word_hashes(tokenizer, self.config.word_ngrams))

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Look words and n-grams up; other keys of `features` are ignored."""
        if self.word_hashes is None:
            return super().call(features, training)
        ids = ops.cast(features[keys.TOKEN_IDS], "int32")
        real = ops.ones_like(ids)
        if keys.PADDING_MASK in features:
            real = ops.cast(features[keys.PADDING_MASK], "int32")
        hashes = ops.take(ops.convert_to_tensor(self.word_hashes), ids, axis=0)
        read = real * ops.cast(hashes[:, :, 0, 0] >= 0, "int32")
        rows, there = ngram_rows(hashes, read, self.config.buckets)
        words, ngrams = self.token_embedding(ids), self.ngram_embedding(rows)  # (B, T, N - 1, D)
        x = words * ops.cast(read, "float32")[..., None]
        x += ops.sum(ngrams * ops.cast(there, "float32")[..., None], axis=2)  # (B, T, D)
        found = ops.sum(read, axis=1) + ops.sum(there, axis=(1, 2))
        scale = ops.sum(real, axis=1) / ops.maximum(found, 1)
        x = x * ops.cast(scale, "float32")[:, None, None]
        return {keys.SEQUENCE_OUTPUT: self.dropout(x, training=training)}
