"""Tokenizers by the name of their scheme: learned, and read back where they were saved.

A scheme is imported only where it is used, by its name: so the code digest of a step holds the file
of its recipe's scheme (`tasks.planning.layout`) and of no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from fourstage.errors import ContractViolation, UnknownNameError
from models.catalogue import find, names
from models.protocols import Tokenizer

SETTINGS = "tokenizer.json"  # every scheme's `save` writes its name there


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """The tokenizer that was saved in a folder.

    Raises:
        UnknownNameError: Its scheme is none of ours.
        ContractViolation: The files are not those that were saved.
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
    scheme: str, texts: Iterable[str], *, vocabulary_size: int, lowercase: bool
) -> Tokenizer:
    """Learn a tokenizer.

    Args:
        scheme: Name of its file.
        texts: As often as they are asked for.
        vocabulary_size: Pieces wanted, the special ones counted.
        lowercase: Whether case and accents are dropped; one that keeps them ignores it.
    """
    made = find("tokenizers", scheme)
    return made.learned(texts, vocabulary_size=vocabulary_size, lowercase=lowercase)


def scheme_of(tokenizer: Tokenizer) -> str:
    """The name of a tokenizer's scheme."""
    return type(tokenizer).__module__.rpartition(".")[2]
