"""Vectors by word: those of a finished stage's vocabulary, and fastText's of any other word.

A word is looked up as written, then in lower case, then as the tokenizer writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file

from models.interchange.vector_files import TABLE
from models.protocols import Tokenizer
from models.stage_format import NETWORK, SUBWORDS, head_file


@dataclass(frozen=True)
class WordTable:
    """Words and their vectors.

    Attributes:
        ids: {word: its row} of the vocabulary.
        vectors: (n, D).
        more: {word: its row} of words that are asked about and written otherwise in the
            vocabulary, such as without accents, or not in it: these are no answers.
    """

    ids: Mapping[str, int]
    vectors: np.ndarray
    more: Mapping[str, int]

    def row(self, word: str) -> int | None:
        """The row of a word as written, else in lower case; None if there is none."""
        return self.ids.get(word, self.ids.get(word.lower(), self.more.get(word)))


def word_table(
    folder: Path, tokenizer: Tokenizer, words: Iterable[str] = (), folders: tuple[Path, ...] = ()
) -> WordTable:
    """The vectors of a finished stage of a family with one vector a word.

    Args:
        folder: The stage's folder. Rows of n-grams in it are those of pre-training; fine-tuning
            does not change them.
        tokenizer: The recipe's tokenizer; special tokens are no words.
        words: Words that are asked about. Those that the tokenizer writes otherwise have the row of
            that word; those that are not in the vocabulary have the vector of their n-grams, if the
            stage has such rows.
        folders: Project folders, searched first.
    """
    pieces = tokenizer.served()["pieces"]
    special = set(tokenizer.special_ids)
    ids = {piece: number for number, piece in enumerate(pieces) if number not in special}
    vectors = load_file(folder / NETWORK)[TABLE]
    table = WordTable(ids, vectors, {})
    asked = [word for word in dict.fromkeys(words) if table.row(word) is None]
    written = _written(tokenizer, asked) if asked else {}
    more = {word: ids[own] for word, own in written.items() if own in ids}
    unseen = {word: own for word, own in written.items() if own not in ids}
    if unseen and head_file(folder, SUBWORDS).exists():
        found = _of_ngrams(folder, tokenizer, unseen, folders)
        more |= {word: len(vectors) + place for place, word in enumerate(found)}
        vectors = np.concatenate([vectors, *([vector] for vector in found.values())])
    return WordTable(ids, vectors, more)


def _written(tokenizer: Tokenizer, words: Iterable[str]) -> dict[str, str]:
    """{word: how the tokenizer writes it}, without what is several words."""
    from models.tokenizers.wordpiece import word_counts

    own: Any = tokenizer
    if not hasattr(own, "lowercase"):  # a project's own, which may write words in any way
        return {}
    # Where Chinese words are longer than a character, what is asked about is one as it stands.
    cut = (lambda run: [run]) if own.longest_match else None
    parts = {word: [*word_counts([word], lowercase=own.lowercase, cut=cut)] for word in words}
    return {word: found[0] for word, found in parts.items() if len(found) == 1}


def _of_ngrams(
    folder: Path, tokenizer: Tokenizer, words: Mapping[str, str], folders: tuple[Path, ...]
) -> dict[str, np.ndarray]:
    """Vectors of words without a row, by how the tokenizer writes them; none without n-grams."""
    from models.catalogue import find
    from models.training.trained_stage import config_of
    from models.vectors.subwords import ROWS, subwords_of

    config = config_of(folder)
    family: Any = find("families", config["family"], folders)
    subwords = subwords_of(family.config_class(**config["network"]), tokenizer.vocabulary_size)
    assert subwords is not None, "rows of n-grams are of a network with buckets"
    with safe_open(head_file(folder, SUBWORDS), "numpy") as file:
        rows = file.get_slice(ROWS)  # of which a few are read
        made = {word: subwords.unseen(own, rows) for word, own in words.items()}
    return {word: vector for word, vector in made.items() if vector is not None}


def nearest(
    table: WordTable, words: Sequence[str], count: int
) -> tuple[list[tuple[str, float]], list[str]]:
    """The words of the vocabulary that are nearest to a word, or that an analogy asks for.

    Args:
        table: The words.
        words: One word; or three, a, b and c: a is to b as c is to the words that are found, those
            with the highest cosine with b - a + c, of vectors of length 1 (3CosAdd).
        count: How many words.

    Returns:
        Words with their cosines, the nearest first, without those that were asked about; and which
        of `words` have no vector, for then nothing is found.

    Reference:
        Mikolov et al. 2013, NAACL, section 3; the name is Levy and Goldberg's (2014, CoNLL).
    """
    found = {word: table.row(word) for word in words}
    rows = [row for row in map(found.get, words) if row is not None]
    if len(rows) < len(words):
        return [], [word for word in words if found[word] is None]
    given = unit(table.vectors[rows])
    query = given[0] if len(words) == 1 else given[1] - given[0] + given[2]
    known = sorted(table.ids, key=table.ids.__getitem__)
    of_known = np.array([table.ids[word] for word in known])
    cosines = unit(table.vectors[of_known]) @ unit(query[None])[0]
    order = np.argsort(-cosines, kind="stable")
    order = order[~np.isin(of_known[order], rows)][:count]
    return [(known[i], float(cosines[i])) for i in order], []


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors (n, D) divided by their lengths; those of zeros stay."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
