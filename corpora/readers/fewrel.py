"""Sentences with two entities and their relation, in the JSON of FewRel.

The file is an object from relation to sentences. Each sentence is a row with the columns ``text``
(its words, the first mentions marked as ``<< head >>`` and ``[[ tail ]]``, or with the source's own
four `markings`), ``relation``, ``head`` and ``tail`` (their ids).

Reference:
    Han et al. 2018, arXiv 1810.10147.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from corpora.archives import Content
from corpora.decoding import check_text
from corpora.json_values import whole_value
from corpora.readers import Raw
from data_contracts.records import Rejected
from data_contracts.sources import Source
from fourstage.errors import ContractViolation

SUFFIXES = ()  # files end in .json, which means JSON lines

MARKINGS = ("<<", ">>", "[[", "]]")  # before and behind the head, before and behind the tail


def read(content: Content, source: Source) -> Iterator[Raw | Rejected]:
    """Each sentence; its location is its number in the file, from 1."""
    markings = source.markings or MARKINGS
    if len(markings) != len(MARKINGS):
        raise ContractViolation(
            f"source {source.name}: markings: expected four, before and behind the head and before"
            f" and behind the tail, got {len(markings)}"
        )
    relations = whole_value(content, source)
    if not isinstance(relations, Mapping):
        raise ContractViolation(
            f"{content.where}: expected the JSON of FewRel, an object from relation to sentences."
        )
    number = 0
    for relation, sentences in relations.items():
        for sentence in sentences if isinstance(sentences, list) else [None]:
            number += 1
            location = f"{content.name}:{number}"
            try:
                values = _values(relation, sentence, markings)
            except (KeyError, IndexError, TypeError, ValueError):
                yield Rejected(location, location, "not a sentence with 'tokens', 'h' and 't'")
                continue
            if values is None:
                yield Rejected(location, location, "entities that overlap or have no words")
                continue
            yield check_text(Raw(number, values), content.name)


def _values(relation: str, sentence: Any, markings: Sequence[str]) -> dict[str, str] | None:
    """The columns of a sentence; None if its entities cannot be marked."""
    tokens = [str.strip(token) for token in sentence["tokens"]]
    (_, head, places), (_, tail, others) = sentence["h"], sentence["t"]
    spans = []
    for mentions, marks in ((places, markings[:2]), (others, markings[2:])):
        first, behind = min(mentions[0]), max(mentions[0]) + 1
        if not 0 <= first < behind <= len(tokens):
            return None
        spans.append((first, behind, marks))
    (_, end, _), (start, _, _) = sorted(spans)
    if end > start:
        return None
    for first, behind, (opening, closing) in sorted(spans, reverse=True):
        tokens[first:behind] = [opening, *tokens[first:behind], closing]
    text = " ".join(token for token in tokens if token)
    return {"text": text, "relation": relation, "head": str(head), "tail": str(tail)}
