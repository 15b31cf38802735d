"""Texts cut into sentences, sentences into tokens, and what starts at each token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corpora.gazetteer import Gazetteer
from corpora.gazetteer_file import read_gazetteer
from corpora.linking import Entities, linked, named
from corpora.sentences import split_lines, split_sentences
from corpora.units import ENTITY_UNIT, case_starts, unit_starts, word_starts
from corpora.words import word_numbers


def as_read(tokenizer: Any, names: Sequence[str]) -> list[str]:
    """Names as a tokenizer reads texts, so that case and accents count as they do there."""
    return [text.strip() for text, *_ in tokenizer.encode_with_places(names)]


class Pieces:
    """Texts cut into sentences, sentences into tokens, and what starts at each token.

    Args:
        tokenizer: The recipe's.
        language: Of the texts; decides where sentences end.
        segmenter: Finds words where blanks do not; None for the tokenizer's own.
        gazetteer: File of phrases and entities; None for none.
        case: Whether to say which words began with a capital.
        lines: Whether each line is a sentence, whatever the language's rules say.
        entities: (name, number) of each entity of a knowledge graph; empty for none.
    """

    def __init__(
        self,
        tokenizer: Any,
        language: str,
        segmenter: str | None = None,
        gazetteer: Path | None = None,
        case: bool = False,
        lines: bool = False,
        entities: Sequence[tuple[str, int]] = (),
    ):
        self.tokenizer = tokenizer
        self.language = language
        self.segmenter = segmenter
        self.case = case
        self.lines = lines
        self.gazetteer = self.entities = None
        if gazetteer is not None:
            names = read_gazetteer(gazetteer)
            normal = as_read(tokenizer, [name for name, _ in names])
            self.gazetteer = Gazetteer(
                (name, kind) for name, (_, kind) in zip(normal, names, strict=True)
            )
        if entities:
            normal = as_read(tokenizer, [name for name, _ in entities])
            self.entities = Entities(normal, [number for _, number in entities])

    def of(self, texts: Sequence[str]) -> Iterator[list[tuple[np.ndarray, np.ndarray]]]:
        """(ids, unit starts) of each sentence of each text."""
        sentences = [_with_blanks(text, self._sentences(text)) for text in texts]
        encoded = iter(self._encoded([part for parts in sentences for part in parts]))
        return ([next(encoded) for _ in parts] for parts in sentences)

    def named(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The entity that is named from each token of each text on, (n,) uint32, 0 for none.

        The tokens are those of the whole text, without sentences.
        """
        assert self.entities is not None, "asked for where entities are linked"
        placed = (
            (text, self.tokenizer.unit_starts(ids), starts, ends)
            for text, ids, starts, ends in self.tokenizer.encode_with_places(texts)
        )
        return named(placed, self.entities)

    def _sentences(self, text: str) -> list[str]:
        return split_lines(text) if self.lines else split_sentences(text, self.language)

    def _encoded(self, sentences: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        tokenizer = self.tokenizer
        plain = self.segmenter is None and self.gazetteer is None and self.entities is None
        if plain and not self.case:
            return [(ids, tokenizer.unit_starts(ids)) for ids in tokenizer.encode(sentences)]
        placed = tokenizer.encode_with_places(sentences)
        numbers: list[np.ndarray | None] = [None] * len(placed)
        if self.segmenter is not None:
            numbers = list(word_numbers([text for text, *_ in placed], self.segmenter))
        as_written = [text for text, *_ in placed]
        if self.case and tokenizer.lowercase:
            as_written = tokenizer.with_case(sentences)
        found = []
        for (text, ids, starts, ends), number, written in zip(
            placed, numbers, as_written, strict=True
        ):
            basic = tokenizer.unit_starts(ids)
            words = basic if number is None else word_starts(basic, starts, number)
            if self.gazetteer is not None:
                names = self.gazetteer.matches(text)
                words = unit_starts(basic, words, starts, ends, names)
            if self.case:
                words = words.astype(np.uint8) + case_starts(basic, starts, written)
            if self.entities is not None:
                words = words + ENTITY_UNIT * linked(basic, starts, ends, text, self.entities)
            found.append((ids, words))
        return found


def _with_blanks(text: str, sentences: Sequence[str]) -> list[str]:
    """Sentences with the blanks before them: byte-level BPE spells a word after a blank otherwise.

    Joined, they have the tokens of the whole text but where a sign begins a sentence behind
    another one with no blank between. To WordPiece blanks are nothing.
    """
    parts, end = [], 0
    for sentence in sentences:
        start, end = end, text.index(sentence, end) + len(sentence)
        parts.append(text[start:end])
    return parts
