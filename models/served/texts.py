"""Texts that a packaged model writes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from models.decoding.cached import CachedReader
from models.decoding.generate import generate
from models.decoding.settings import Generation
from models.served.pieces import encoded, text_of_bytes, text_of_words

AT_ONCE = 32  # rows that are read together
NOTHING = dict.fromkeys(("text", "score", "answer", "ended", "cut"))


def predict_texts(
    columns: Sequence[Sequence[str]], loaded: Any, head: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Write a text for each row.

    Args:
        columns: One list of texts, or two for pairs.
        loaded: The loaded graph, with ``frame``, from texts to token ids and mask (B, T) and
            whether each was cut (B,), and the four functions of a `CachedReader`.
        head: ``longest``, ``generation``, the ids ``begin`` and ``stop``,
            ``never`` and ``pad``, the ``pieces`` of all ids, which are ``bytes`` or words, and the
            ``known_prefixes``.

    Returns:
        ``text``, ``score``, the probability of the whole text, and as JSON ``answer``; whether the
        text ``ended`` by itself, not at its largest length; and whether the row's text was longer
        than what is read of it, and so was ``cut``. All of them are None for a row that begins with
        a known prefix; ``error`` says so.
    """
    faults = [prefix_fault(text, head["known_prefixes"]) for text in columns[0]]
    bare = [row for row, fault in zip(zip(*columns, strict=True), faults, strict=True) if not fault]
    written = iter(_written(list(zip(*bare, strict=True)), loaded, head))
    return [NOTHING | {"error": fault} if fault else next(written) for fault in faults]


def prefix_fault(text: str, prefixes: Sequence[str]) -> str | None:
    """What is wrong with a text that brings a task's prefix along; None if it brings none.

    A prefix that ends in a letter or a digit is not looked for: a text may begin with that word.

    Args:
        text: The text.
        prefixes: Those of all tasks that were learnt; the first is put before each text.

    Example:
        >>> prefix_fault("Sum up: the house", ["sum up:", "stsb:"])[:34]
        "it begins with the prefix 'sum up:"
    """
    for prefix in prefixes:
        words = r"\s+".join(map(re.escape, prefix.split()))
        if re.search(r"\w$", prefix.rstrip()) or not re.match(rf"\s*{words}", text, re.IGNORECASE):
            continue
        known = ", ".join(map(repr, prefixes))
        return (
            f"it begins with the prefix {prefix!r}; expected a text without one, as {prefixes[0]!r}"
            f" is put before each and other tasks are not answered (known prefixes: {known})"
        )
    return None


def _written(
    columns: Sequence[Sequence[str]], loaded: Any, head: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """What is written for rows that can be read."""
    if not columns:
        return []
    settings = Generation(**head["generation"])
    # A reader of its own for each call: calls may come at the same time.
    functions = loaded.start, loaded.kernel, loaded.step, loaded.moved
    reader = CachedReader(head["longest"], *functions, head["begin"], settings.beams)
    answers = []
    for first in range(0, len(columns[0]), AT_ONCE):
        some = (encoded(list(column[first : first + AT_ONCE])) for column in columns)
        texts = (np.array(column, object) for column in some)
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
