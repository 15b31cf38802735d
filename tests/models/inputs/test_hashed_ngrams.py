"""Hashed n-grams: against a brute-force count, in a graph as outside, for both kinds of pieces."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from models.inputs.hashed_ngrams import BUCKETS, Ngrams
from models.tokenizers.byte_bpe import ByteBPE, learn
from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece

WORDS = WordPiece([*SPECIAL_TOKENS, "the", "##y", "saw", "a", "我", "##s", "."], lowercase=True)
TEXTS = ["they saw a saw.", "", "我 saws", "a", "the zebra"]
CHARACTERS = [" they saw a saw .", "", "我 saws", " a", " the [unk]"]


def bucket(values: tuple[int, ...], seed: int) -> int:
    """The hash as written down in the module, with Python's own integers."""
    total = seed
    for value in values:
        total = (total + value + 1) * 0x9E3779B97F4A7C15 % (1 << 64)
    return total >> (64 - 17)


def counted(ids: list[int], characters: list[int]) -> Counter[int]:
    found: Counter[int] = Counter()
    for kind, (values, lengths) in enumerate(((ids, (1, 2)), (characters, (3, 4, 5)))):
        for n in lengths:
            for start in range(len(values) - n + 1):
                own = bucket(tuple(values[start : start + n]), n)
                found[own + kind * BUCKETS // 2] += 1
    return found


def rows_of(features: dict) -> list[dict[int, int]]:
    ids, counts = np.asarray(features["ngram_ids"]), np.asarray(features["ngram_counts"])
    return [
        {int(i): n for i, n in zip(own, often.tolist(), strict=True) if np.any(n)}
        for own, often in zip(ids, counts, strict=True)
    ]


def features_of(tokenizer, *columns: list[str], rows: slice = slice(None)) -> dict:
    """Of rows of one text or two."""
    encoded = zip(*(tokenizer.encode(column) for column in columns), strict=True)
    return Ngrams(tokenizer).of_texts(list(encoded)[rows])


def byte_bpe() -> ByteBPE:
    return learn(["The zebra saw the naïve 我们 zebra. " * 3], vocabulary_size=300)


def test_each_row_has_its_n_grams_of_pieces_and_characters_as_counted_by_hand():
    ids = [own.tolist() for own in WORDS.encode(TEXTS)]
    expected = [
        counted(own, [ord(c) for c in spelled])
        for own, spelled in zip(ids, CHARACTERS, strict=True)
    ]
    found = rows_of(features_of(WORDS, TEXTS))
    assert found == [dict(own) for own in expected]
    assert max(found[0].values()) == 2, "saw stands there twice"


def test_bytes_are_characters_where_pieces_are_of_bytes_in_lower_case():
    made = byte_bpe()
    texts = ["The naïve zebra", "我们"]
    ids = [own.tolist() for own in made.encode(texts)]
    expected = [
        dict(counted(own, list(text.encode("utf-8").lower())))
        for own, text in zip(ids, texts, strict=True)
    ]
    assert rows_of(features_of(made, texts)) == expected


@pytest.mark.parametrize("made", [WORDS, byte_bpe()], ids=["wordpiece", "byte_bpe"])
def test_a_graph_gives_the_buckets_of_training(made):
    import tensorflow as tf

    module = made.module()
    graph = tf.function(
        lambda first, second: Ngrams(made).of([module(first), module(second)]),
        input_signature=[tf.TensorSpec([None], tf.string)] * 2,
    )
    served = rows_of(graph(tf.constant(TEXTS), tf.constant(TEXTS[::-1])))
    columns = TEXTS, TEXTS[::-1]
    assert served == rows_of(features_of(made, *columns))
    # A batch of other rows changes nothing.
    assert served[2:3] == rows_of(features_of(made, *columns, rows=slice(2, 3)))
    assert all(0 <= i < BUCKETS for row in served for i in row)


def test_buckets_are_used_evenly():
    import tensorflow as tf

    vocabulary = [*SPECIAL_TOKENS, *(f"w{i}" for i in range(2000))]
    made = WordPiece(vocabulary, lowercase=True)
    ids = np.random.default_rng(0).integers(5, 2005, 20_000).astype(np.int32)
    (row,) = rows_of(Ngrams(made).of([tf.RaggedTensor.from_row_lengths(ids, [len(ids)])]))
    pieces = len({*zip(ids[:-1].tolist(), ids[1:].tolist(), strict=True)}) + len({*ids.tolist()})
    spelled = "".join(f" {vocabulary[i]}" for i in ids)
    characters = len({spelled[i : i + n] for n in (3, 4, 5) for i in range(len(spelled) - n + 1)})
    half = BUCKETS // 2
    expected = [half * (1 - (1 - 1 / half) ** balls) for balls in (pieces, characters)]
    found = [sum(i // half == kind for i in row) for kind in (0, 1)]
    assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("tokenizer", [WORDS, byte_bpe()], ids=["words", "bytes"])
def test_the_texts_of_a_pair_are_counted_with_the_same_hashes(tokenizer):
    columns = TEXTS, [TEXTS[0], "saw", "", "a a", "a saw they"]
    found = features_of(tokenizer, *columns)
    for text, column in enumerate(columns):
        alone = features_of(tokenizer, column)
        own = {"ngram_ids": found["ngram_ids"], "ngram_counts": found["ngram_counts"][..., text]}
        assert rows_of(own) == rows_of(alone)
    assert np.array_equal(*found["ngram_counts"][0].T)
