"""Documents as token shards, and the profile their contract is held against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from corpora.arrow_files import TableWriter
from corpora.pieces import Pieces
from corpora.shards import TOKEN_PROFILE, TokenWriter
from corpora.tags import UNSPACED
from corpora.units import ENTITY, PHRASE, covered
from fourstage.languages import main_language

BATCH = 1000  # documents tokenised at a time: memory stays flat, tensorflow-text stays busy


def batches(items: Iterable, size: int) -> Iterator[list]:
    """Lists of `size` items, the last one shorter."""
    iterator = iter(items)
    while some := list(islice(iterator, size)):
        yield some


def tokenize(
    tokens: Path, profile: Path, pieces: Pieces, documents: Iterable[tuple[str, str, str]]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Write the shards and the profile of documents, in memory that does not grow with them.

    Args:
        tokens: File of the shards.
        profile: File of the profile.
        pieces: Cuts texts into sentences and tokens.
        documents: (id, text, split).

    Returns:
        Number of documents, tokens and characters of each split, and of words between blanks where
        the language has these; share of unknown tokens; with a gazetteer, the shares of tokens in
        its phrases and entities; with entities to link, the number of names that were found and of
        those that were linked. And by split, (V,) times each token is there.
    """
    tokenizer = pieces.tokenizer
    count = unknown = 0
    if pieces.entities is not None:
        pieces.entities.named = pieces.entities.linked = 0
    often = {s: np.zeros(tokenizer.vocabulary_size, np.int64) for s in ("train", "heldout")}
    in_names = dict.fromkeys(("phrase", "entity"), 0)
    characters, words = dict.fromkeys(often, 0), dict.fromkeys(often, 0)
    with (
        TokenWriter(tokens) as writer,
        TableWriter(profile, TOKEN_PROFILE) as table,
    ):
        for some in batches(documents, BATCH):
            encoded = pieces.of([text for _, text, _ in some])
            for (name, text, split), parts in zip(some, encoded, strict=True):
                characters[split] += len(text)
                words[split] += len(text.split())
                ids, units, lengths = _joined(parts)
                writer.add_document(name, split, ids, lengths, units)
                if pieces.gazetteer is not None:
                    in_names["phrase"] += covered(units, PHRASE)
                    in_names["entity"] += covered(units, ENTITY)
                unknown_here = int(np.count_nonzero(ids == tokenizer.unknown_id))
                units_here = int(tokenizer.unit_starts(ids).sum())
                table.add(
                    {
                        "id": name,
                        "split": split,
                        "num_tokens": len(ids),
                        "unknown_share": unknown_here / max(1, len(ids)),
                        "pieces_per_word": len(ids) / max(1, units_here),
                    }
                )
                count += 1
                unknown += unknown_here
                np.add.at(often[split], ids, 1)
    counts = {split: int(times.sum()) for split, times in often.items() if times.any()}
    total = max(1, sum(counts.values()))
    facts: dict[str, Any] = {
        "documents": count,
        "tokens": dict(sorted(counts.items())),
        "characters": {split: characters[split] for split in sorted(counts)},
        "words": {
            split: words[split]
            for split in sorted(counts)
            if main_language(pieces.language) not in UNSPACED
        },
        "unknown_share": unknown / total,
    }
    if pieces.gazetteer is not None:
        facts["coverage"] = {kind: inside / total for kind, inside in in_names.items()}
    if pieces.entities is not None:
        facts["names"] = {"found": pieces.entities.named, "linked": pieces.entities.linked}
    return facts, often


def _joined(
    sentences: Sequence[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids, unit starts and sentence lengths of a document, empty sentences left out."""
    sentences = [sentence for sentence in sentences if len(sentence[0])]
    if not sentences:
        return np.zeros(0, np.int32), np.zeros(0, np.uint32), np.zeros(0, np.int32)
    ids, starts = (np.concatenate(parts) for parts in zip(*sentences, strict=True))
    return ids, starts, np.array([len(part) for part, _ in sentences], np.int32)
