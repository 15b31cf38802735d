"""Texts that a packaged model writes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from models.decoding.cached import CachedReader
from models.decoding.generate import generate
from models.decoding.settings import Generation
from models.served.pieces import text_of_bytes, text_of_words

AT_ONCE = 32  # rows that are read together


def predict_texts(
    columns: Sequence[Sequence[str]], loaded: Any, head: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Write a text for each row.

    Args:
        columns: One list of texts, or two for pairs.
        loaded: The loaded graph, with ``frame``, from texts to token ids and mask (B, T) and
            whether each was cut (B,), and ``start``, ``step`` and ``moved`` of a `CachedReader`.
        head: ``longest``, ``generation``, the ids ``begin`` and ``stop``,
            ``never`` and ``pad``, and the ``pieces`` of all ids, which are ``bytes`` or words.

    Returns:
        ``text``, ``score``, the probability of the whole text, and as JSON ``answer``; whether the
        text ``ended`` by itself, not at its largest length; and whether the row's text was longer
        than what is read of it, and so was ``cut``.
    """
    settings = Generation(**head["generation"])
    # A reader of its own for each call: calls may come at the same time.
    reader = CachedReader(head["longest"], loaded.start, loaded.step, loaded.moved, head["begin"])
    answers = []
    for first in range(0, len(columns[0]), AT_ONCE):
        texts = (np.array(column[first : first + AT_ONCE], object) for column in columns)
        ids, mask, cut = map(np.asarray, loaded.frame(*texts))
        found = generate(
            reader,
            [row[there] for row, there in zip(ids, mask.astype(bool), strict=True)],
            settings,
            stops={head["stop"]},
            never=head["never"],
            pad_id=head["pad"],
            batch_size=AT_ONCE,
        )
        for each, was_cut in zip(found, cut.tolist(), strict=True):
            text = text_of(each.tokens, head)
            answers.append(
                {
                    "text": text,
                    "score": math.exp(each.log_probability),
                    "answer": json.dumps([text], ensure_ascii=False),
                    "ended": each.stopped,
                    "cut": was_cut,
                }
            )
    return answers


def text_of(ids: Sequence[int], head: Mapping[str, Any]) -> str:
    """The text of ids."""
    pieces = [head["pieces"][token] for token in ids]
    if head["bytes"]:
        return text_of_bytes(piece.encode("latin-1") for piece in pieces).strip()
    return text_of_words(pieces).strip()
