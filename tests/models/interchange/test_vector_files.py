"""Files of word vectors: what is written is read; what is wrong is refused with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fourstage.errors import ContractViolation, RecipeError
from models.interchange.huggingface import PretrainedNetwork
from models.interchange.vector_files import (
    ENDINGS,
    FORMATS,
    read_vectors,
    width_of,
    write_vectors,
    write_vectors_of,
)
from models.protocols import Tokenizer
from models.saved_tokenizer import learn_tokenizer

WORDS = ("the", "中文", "naïve")
VECTORS = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_written_is_read(tmp_path: Path, kind) -> None:
    write_vectors(tmp_path / "v", WORDS, VECTORS, kind)
    found = read_vectors(tmp_path / "v", kind)
    assert found.words == WORDS
    assert np.array_equal(found.vectors, VECTORS)


def test_files_of_the_original_tools_are_read(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("2 3\n</s> 0.5 -1 2e-3 \n中 1 2 3 \n".encode())
    found = read_vectors(tmp_path / "text", "word2vec")
    assert found.words == ("</s>", "中")
    assert np.allclose(found.vectors, [[0.5, -1, 0.002], [1, 2, 3]])


@pytest.mark.parametrize(("ending", "head"), [(".vec", "2 3\n"), (".txt", "")])
def test_a_byte_order_mark_is_no_part_of_the_first_line(
    tmp_path: Path, ending: str, head: str
) -> None:
    path = tmp_path / f"words{ending}"
    path.write_text(f"{head}the 1 2 3\n中 4 5 6\n", encoding="utf-8-sig")
    assert read_vectors(path, ENDINGS[ending]).words == ("the", "中")
    assert width_of(path) == 3


@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        ("a 1 2\nb 3 4\n", "word2vec", r":1: expected a header with two numbers"),
        ("0 2\n", "word2vec", r":1: expected a header"),
        ("9" * 5000 + " 2\na 1 2\n", "word2vec", r":1: expected a header"),
        ("3 2\na 1 2\nb 3 4\n", "word2vec", r":1: the header says 3 words, but 2 lines follow"),
        ("2 2\na 1 2\nb 3\n", "word2vec", r":3: expected a word and 2 numbers, got 1"),
        ("a 1 2\nb 3 4 5\n", "glove", r":2: expected a word and 2 numbers, got 3"),
        ("a 1 2\nb 3 x\n", "glove", r":2: expected finite numbers"),
        ("a 1 2\nb nan 3\n", "glove", r":2: expected finite numbers"),
        ("a 1 2\nb 1 3\na 1 4\n", "glove", r"word 3 is the same as word 1"),
        ("", "glove", r"no vectors"),
        ("2 2\na 12345678\nb 1234", "word2vec_binary", r"ends in word 2; it may be cut off"),
        ("9999999999 1000000\na 1234", "word2vec_binary", r"only 6 bytes follow; it may"),
        ("1 2\na 12345678\nmore", "word2vec_binary", r"but more follows"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(tmp_path: Path, content, kind, said) -> None:
    (tmp_path / "v").write_text(content, encoding="utf-8")
    with pytest.raises(ContractViolation, match=said):
        read_vectors(tmp_path / "v", kind)


@pytest.mark.parametrize(("kind", "line"), [("word2vec", 2), ("glove", 1)])
def test_text_in_another_encoding_is_refused_with_its_line(tmp_path: Path, kind, line) -> None:
    head = "1 2\n" if kind == "word2vec" else ""
    (tmp_path / "v").write_text(f"{head}naïve 1 2\n", encoding="latin-1")
    with pytest.raises(ContractViolation, match=rf":{line}: expected UTF-8"):
        read_vectors(tmp_path / "v", kind)


def _stage(tokenizer: Tokenizer | None) -> PretrainedNetwork:
    size = tokenizer.vocabulary_size if tokenizer else 4
    table = np.arange(3.0 * size, dtype=np.float32).reshape(size, 3)
    return PretrainedNetwork(
        family="word2vec",
        settings={"hidden_dim": 3},
        network={"token/embeddings": table},
        heads={},
        tokenizer=tokenizer,
        pad_id=0,
    )


@pytest.mark.parametrize(("ending", "kind"), ENDINGS.items())
def test_a_stage_is_written_without_its_special_tokens(tmp_path: Path, ending, kind) -> None:
    texts = ["the cat saw the dog", "the dog saw 中文"] * 3
    tokenizer = learn_tokenizer("word", texts, vocabulary_size=40, lowercase=True)
    stage = _stage(tokenizer)
    write_vectors_of(stage, tmp_path / f"v{ending}")
    found = read_vectors(tmp_path / f"v{ending}", kind)
    assert {"the", "cat", "saw", "dog", "中", "文"} == set(found.words)
    for word, vector in zip(found.words, found.vectors, strict=True):
        (place,) = tokenizer.encode([word])[0]
        assert np.array_equal(vector, stage.network["token/embeddings"][place]), word
    with pytest.raises(RecipeError, match="is there already"):
        write_vectors_of(stage, tmp_path / f"v{ending}")


def test_a_folder_and_a_stage_without_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"expected a file of word vectors: \.vec"):
        write_vectors_of(_stage(None), tmp_path / "v")
    with pytest.raises(RecipeError, match="no tokenizer beside it"):
        write_vectors_of(_stage(None), tmp_path / "v.vec")
    assert not list(tmp_path.iterdir())
