"""Words of a domain added to a vocabulary, and rows for them in a network."""

from __future__ import annotations

import numpy as np
import pytest

from models.families.bert import Bert
from models.interchange.huggingface import save_network
from models.interchange.more_words import with_more_words
from models.interchange.pretrained_network import read_start, tokenizer_of, with_tokenizer
from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece

LETTERS = "abcdefghijklmnopqrstuvwxyz"
PIECES = (*SPECIAL_TOKENS, *LETTERS, *(f"##{letter}" for letter in LETTERS), "the", "##ing", ",")
OLD = WordPiece(PIECES, lowercase=True)
TEXTS = [
    "The cat, sitting, meow. " * 5,  # the: 1 piece; cat: 3; sitting: 5; meow: 4
    "Catalogue catalogue. " * 7,  # 9 pieces
    "rarely " * 4,
]


def spelled(tokenizer: WordPiece, text: str) -> list[str]:
    (ids,) = tokenizer.encode([text])
    return [tokenizer.vocabulary[i] for i in ids]


@pytest.mark.parametrize(
    ("most", "added"),
    [
        (1, ("catalogue",)),  # 14 × 8 pieces saved
        (2, ("catalogue", "sitting")),  # 5 × 4
        (3, ("catalogue", "sitting", "meow")),  # 5 × 3
        (99, ("catalogue", "sitting", "meow", "cat")),  # 5 × 2; the others are rare or one piece
    ],
)
def test_the_words_that_save_most_pieces_come_first(most, added):
    grown = with_more_words(OLD, TEXTS, most)
    assert grown.vocabulary == (*PIECES, *added)


def test_other_texts_are_spelled_as_before():
    grown = with_more_words(OLD, TEXTS, 99)
    assert spelled(grown, "The Sitting cat") == ["the", "sitting", "cat"]
    assert spelled(grown, "kitten, singing") == spelled(OLD, "kitten, singing")
    assert spelled(grown, "cats") == ["cat", "##s"]


def test_no_word_becomes_one_that_cannot_be_spelled():
    pieces = (*(piece for piece in PIECES if piece != "##s"), "##ts")
    old = WordPiece(pieces, lowercase=True)
    texts = ["cat " * 50, "cats " * 5]
    assert spelled(old, "cats") == ["c", "##a", "##ts"]
    grown = with_more_words(old, texts, 1)
    assert "cat" not in grown.vocabulary  # "cat" + "##s" would end in no piece
    assert spelled(grown, "cats") == ["c", "##a", "##ts"]


def test_new_rows_are_the_means_of_the_rows_of_the_pieces_they_replace(tmp_path):
    size = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 8}
    network = Bert(**size, max_sequence_length=16, vocabulary_size=len(PIECES))
    save_network(network, tmp_path / "given", tokenizer=OLD)
    start = read_start(tmp_path / "given")
    bias = np.arange(len(PIECES), dtype=np.float32)
    start.heads["masked_lm"] = {"output_bias": bias}
    start.heads["unified_lm"] = {"tokens/output_bias": bias, "pairs/output/bias": bias[:2]}
    start.heads["replaced_token_detection"] = {"generator_head/output_bias": bias}
    start.heads["region_class"] = {"output_bias": bias[:4]}  # of regions, not of tokens
    grown = with_tokenizer(start, tokenizer_of(tmp_path / "given", TEXTS, 2))

    table = start.network["embeddings/token/embeddings"]
    rows = [OLD.vocabulary.index(piece) for piece in ("s", "##i", "##t", "##t", "##ing")]
    new = grown.network["embeddings/token/embeddings"]
    assert np.array_equal(new[: len(PIECES)], table)
    assert np.array_equal(new[-1], table[rows].mean(axis=0))
    assert grown.heads["masked_lm"]["output_bias"][-1] == bias[rows].mean()
    for head, part in (("unified_lm", "tokens"), ("replaced_token_detection", "generator_head")):
        assert grown.heads[head][f"{part}/output_bias"][-1] == bias[rows].mean()
    assert len(grown.heads["unified_lm"]["pairs/output/bias"]) == 2
    assert len(grown.heads["region_class"]["output_bias"]) == 4
    assert {array.dtype for array in grown.network.values()} == {np.dtype("float32")}
    built = grown.build()
    assert built.get_config()["vocabulary_size"] == len(PIECES) + 2
    assert with_tokenizer(start, OLD) is start
