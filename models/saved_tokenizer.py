"""Learning and loading tokenizers by the name of their scheme.

A scheme is imported by name only when it is used, so that a step's code digest covers its recipe's
scheme (`tasks.planning.layout`) and no other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from fourstage.errors import ContractViolation, UnknownNameError
from models.catalogue import find, names
from models.protocols import Tokenizer

SETTINGS = "tokenizer.json"  # every scheme's `save` writes its name there


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """Load a tokenizer from a folder.

    Raises:
        UnknownNameError: Its scheme is unknown.
        ContractViolation: The files were changed.
    """
    path = Path(folder) / SETTINGS
    try:
        scheme = json.loads(path.read_text("utf-8"))["scheme"]
    except (ValueError, KeyError, TypeError) as error:
        raise ContractViolation(
            f"{path}: expected a tokenizer's settings ({type(error).__name__})"
        ) from error
    there = names("tokenizers")
    if scheme not in there:
        raise UnknownNameError(f"{path}: scheme", str(scheme), "a scheme", there)
    return find("tokenizers", scheme).load(folder)


def learn_tokenizer(
    scheme: str,
    texts: Iterable[str],
    *,
    vocabulary_size: int,
    lowercase: bool,
    sentinels: int = 0,
    minimum_count: int | None = None,
    marks: Sequence[str] = (),
    cut: Callable[[str], Iterable[str]] | None = None,
) -> Tokenizer:
    """Learn a tokenizer.

    Args:
        scheme: Name of the scheme.
        texts: The training texts; some schemes iterate over them twice.
        vocabulary_size: Number of tokens, including special tokens.
        lowercase: Whether case and accents are dropped; ignored by schemes that keep case.
        sentinels: Tokens that stand for hidden spans (`models.sentinels`).
        minimum_count: Smallest count of a word, for a scheme with ``MINIMUM_COUNT``; None for
            that.
        marks: Strings that are one token each wherever a text has them, for a scheme with
            ``MARKS``.
        cut: Gives the words of a run of Chinese characters, for a scheme with ``SEGMENTED``.
    """
    return find("tokenizers", scheme).learned(
        texts,
        vocabulary_size=vocabulary_size,
        lowercase=lowercase,
        sentinels=sentinels,
        **({} if minimum_count is None else {"minimum_count": minimum_count}),
        **({"marks": marks} if marks else {}),
        **({"cut": cut} if cut else {}),
    )


def scheme_of(tokenizer: Tokenizer) -> str:
    """The name of a tokenizer's scheme."""
    return type(tokenizer).__module__.rpartition(".")[2]
