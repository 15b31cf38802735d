"""Files of word vectors: word2vec's text and binary, GloVe's text, fastText's ``.vec``.

word2vec's text and fastText's begin with a line of two numbers, words and width; GloVe's has none.
Each line is a word and its numbers. In word2vec's binary, numbers are float32, little-endian.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fourstage.digests import unfinished
from fourstage.errors import ContractViolation, RecipeError

if TYPE_CHECKING:
    from models.interchange.huggingface import PretrainedNetwork

FORMATS = ("word2vec", "word2vec_binary", "glove")
ENDINGS = {".vec": "word2vec", ".bin": "word2vec_binary", ".txt": "glove"}
TABLE = "token/embeddings"
_MOST_DIGITS = 18  # of a number in a header


@dataclass(frozen=True)
class WordVectorsFile:
    """Words and their vectors.

    Attributes:
        words: (V,) words.
        vectors: (V, D) float32.
    """

    words: tuple[str, ...]
    vectors: np.ndarray


def write_vectors_of(stage: PretrainedNetwork, path: Path) -> None:
    """Write the words of a stage's table, without the special tokens; whole or not at all.

    Args:
        stage: A network of a family of word vectors, with its tokenizer.
        path: A new file; its ending gives the format, one of `ENDINGS`.

    Raises:
        RecipeError: The ending is none of these, the file is there, or there is no tokenizer.
    """
    kind = ENDINGS.get(path.suffix)
    if kind is None:
        raise RecipeError(
            f"{path}: expected a file of word vectors: .vec (word2vec's text, fastText's), .bin"
            " (word2vec's binary) or .txt (GloVe's)"
        )
    if path.exists():
        raise RecipeError(f"{path}: is there already; nothing was changed")
    if stage.tokenizer is None:
        raise RecipeError(f"{path}: the stage has no tokenizer beside it, so its words are unknown")
    found = vectors_of(stage)
    part = unfinished(path)
    write_vectors(part, found.words, found.vectors, kind)
    part.replace(path)


def vectors_of(stage: PretrainedNetwork) -> WordVectorsFile:
    """The words of a stage's table and their vectors, without the special tokens.

    Args:
        stage: A network of a family of word vectors, with its tokenizer.
    """
    assert stage.tokenizer is not None
    pieces = stage.tokenizer.served()["pieces"]
    kept = [i for i in range(len(pieces)) if i not in set(stage.tokenizer.special_ids)]
    return WordVectorsFile(tuple(pieces[i] for i in kept), stage.network[TABLE][kept])


def write_vectors(path: Path, words: Sequence[str], vectors: np.ndarray, kind: str) -> None:
    """Write a file of vectors.

    Args:
        path: The file.
        words: (V,) words without blanks.
        vectors: (V, D); as text, each number with the digits that give back the same float32.
        kind: One of `FORMATS`; fastText's ``.vec`` is ``word2vec``.
    """
    assert kind in FORMATS, kind
    header = "" if kind == "glove" else f"{len(words)} {vectors.shape[1]}\n"
    with path.open("wb") as file:
        file.write(header.encode())
        for word, vector in zip(words, vectors.astype("<f4"), strict=True):
            if kind == "word2vec_binary":
                file.write(f"{word} ".encode() + vector.tobytes() + b"\n")
            else:
                file.write(f"{word} {' '.join(map(str, vector))}\n".encode())


def read_vectors(path: Path, kind: str) -> WordVectorsFile:
    """Read a file of vectors.

    Args:
        path: The file, UTF-8; a byte order mark before text is dropped.
        kind: One of `FORMATS`.

    Raises:
        ContractViolation: The header is not what the lines are, a line has another width or a
            number that is none or is not UTF-8, a word comes twice, or there are no words.
    """
    assert kind in FORMATS, kind
    found = _binary(path) if kind == "word2vec_binary" else _text(path, kind == "word2vec")
    seen: dict[str, int] = {}
    for number, word in enumerate(found.words, 1):
        if word in seen:
            raise ContractViolation(
                f"{path}: word {number} is the same as word {seen[word]}; keep one"
            )
        seen[word] = number
    return found


def width_of(path: Path) -> int:
    """Width of a file's vectors, by its first line.

    Raises:
        ContractViolation: The file's ending is none of `ENDINGS`, or its first line no header or
            vector.
    """
    kind = ENDINGS.get(path.suffix)
    if kind is None:
        raise ContractViolation(f"{path}: expected a file of word vectors: {', '.join(ENDINGS)}")
    with path.open("rb") as file:
        parts = file.readline(1 << 20).decode("utf-8-sig", "replace").rstrip().split(" ")
    if kind != "glove":
        return _header(f"{path}:1", parts)[1]
    _numbers(f"{path}:1", parts[1:])
    return len(parts) - 1


def _text(path: Path, has_header: bool) -> WordVectorsFile:
    words: list[str] = []
    rows: list[np.ndarray] = []
    wanted = width = None
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            where = f"{path}:{number}"
            try:
                parts = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip().split(" ")
            except UnicodeDecodeError:
                raise ContractViolation(f"{where}: expected UTF-8; save the file as such") from None
            if has_header and number == 1:
                wanted, width = _header(where, parts)
                continue
            word, *values = parts
            if width is None:
                width = len(values)
            if len(values) != width or not width:
                raise ContractViolation(
                    f"{where}: expected a word and {width or 'some'} numbers, got"
                    f" {len(values)} after the word; mend the line, or the header"
                )
            words.append(word)
            rows.append(_numbers(where, values))
    if not words:
        raise ContractViolation(f"{path}: no vectors; expected a word and its numbers in each line")
    if wanted is not None and len(words) != wanted:
        raise ContractViolation(
            f"{path}:1: the header says {wanted:,} words, but {len(words):,} lines follow; the file"
            " may be cut off"
        )
    return WordVectorsFile(tuple(words), np.stack(rows))


def _binary(path: Path) -> WordVectorsFile:
    content = path.read_bytes()
    line, _, rest = content.partition(b"\n")
    wanted, width = _header(f"{path}:1", line.decode("utf-8", "replace").split(" "))
    if wanted * 4 * width > len(rest):  # before the memory is asked for
        raise ContractViolation(
            f"{path}: the header says {wanted:,} words of {width} numbers, but only"
            f" {len(rest):,} bytes follow; it may be cut off"
        )
    words: list[str] = []
    rows = np.empty((wanted, width), np.float32)
    at = 0
    for number in range(wanted):
        end = rest.find(b" ", at)
        after = end + 1 + 4 * width
        if end < 0 or after > len(rest):
            raise ContractViolation(
                f"{path}: the header says {wanted:,} words of {width} numbers, but the file ends in"
                f" word {number + 1:,}; it may be cut off"
            )
        words.append(rest[at:end].lstrip(b"\n").decode("utf-8", "replace"))
        rows[number] = np.frombuffer(rest, "<f4", width, end + 1)
        at = after
    if rest[at:].strip(b"\n"):
        raise ContractViolation(
            f"{path}: the header says {wanted:,} words of {width} numbers, but more follows"
        )
    return WordVectorsFile(tuple(words), rows)


def _header(where: str, parts: Sequence[str]) -> tuple[int, int]:
    """Number of words and width."""
    short = all(part.isdecimal() and len(part) <= _MOST_DIGITS for part in parts)
    if len(parts) != 2 or not short or not all(map(int, parts)):
        raise ContractViolation(
            f"{where}: expected a header with two numbers, words and width; got {len(parts)}"
            " fields. A file without a header is GloVe's"
        )
    return int(parts[0]), int(parts[1])


def _numbers(where: str, values: Sequence[str]) -> np.ndarray:
    try:
        found = np.array(values, np.float32)
    except ValueError:
        found = np.array([np.nan])
    if not np.isfinite(found).all():
        raise ContractViolation(f"{where}: expected finite numbers after the word")
    return found
