"""Which scheme a tokenizer is of: the one place that knows them all.

A scheme is imported only where it is used, by its name: so the code digest of a step holds the file
of its recipe's scheme (`tasks.planning.layout`) and of no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from fourstage.errors import ContractViolation, UnknownNameError

SETTINGS = "tokenizer.json"  # every scheme's `save` writes its name there
CLASSES = {"wordpiece": "WordPiece", "byte_bpe": "ByteBPE"}


def load_tokenizer(folder: str | Path) -> Any:
    """The tokenizer that was saved in a folder.

    Returns:
        A `models.protocols.Tokenizer`.

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
    if scheme not in CLASSES:
        raise UnknownNameError(f"{path}: scheme", str(scheme), "a scheme", CLASSES)
    return getattr(module_of(scheme), CLASSES[scheme]).load(folder)


def learn_tokenizer(
    scheme: str, texts: Iterable[str], *, vocabulary_size: int, lowercase: bool
) -> Any:
    """Learn a tokenizer.

    Args:
        scheme: ``wordpiece`` or ``byte_bpe``, which keeps case.
        texts: As often as they are asked for.
        vocabulary_size: Pieces wanted, the special ones counted.
        lowercase: Whether case and accents are dropped.

    Returns:
        A `models.protocols.Tokenizer`.
    """
    module = module_of(scheme)
    if scheme == "byte_bpe":
        return module.learn(texts, vocabulary_size=vocabulary_size)
    pieces = module.learn(texts, vocabulary_size=vocabulary_size, lowercase=lowercase)
    return module.WordPiece(pieces, lowercase)


def scheme_of(tokenizer: Any) -> str:
    """The name of a tokenizer's scheme."""
    return next(name for name, made in CLASSES.items() if made == type(tokenizer).__name__)


def module_of(scheme: str) -> Any:
    """The file of a scheme, imported."""
    return import_module(f"models.tokenizers.{scheme}")
