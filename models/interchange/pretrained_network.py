"""A pre-trained network as the start of a recipe: ``init: …``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fourstage.digests import hash_file
from fourstage.errors import RecipeError
from models.interchange.huggingface import PretrainedNetwork, read_checkpoint
from models.interchange.published import FETCHED
from models.interchange.stage_folder import is_stage, read_stage
from models.stage_format import TOKENIZER, head_files

# Ends of the names of weights with one row per token; a head's may be those of a part of it.
ROWS = ("token/embeddings", "output_bias", "output_table")


def read_start(folder: Path, *, weights: bool = True) -> PretrainedNetwork:
    """Read a Hugging Face folder, or a standalone stage folder of ours with its tokenizer.

    Args:
        folder: The folder, such as from `published_folder`.
        weights: Whether to read a Hugging Face folder's tensors; they are checked in either case.

    Raises:
        RecipeError: As `read_checkpoint`, or there is no tokenizer.
        ContractViolation: A file is malformed.
    """
    found = read_stage(folder) if is_stage(folder) else read_checkpoint(folder, weights=weights)
    if found.tokenizer is None:
        why = next(note for note in found.notes if note.startswith("no tokenizer"))
        raise RecipeError(f"{folder}: {why}; training needs the network's tokenizer")
    return found


def tokenizer_of(folder: Path, texts: Iterable[str], add_words: int = 0) -> Any:
    """The tokenizer of a folder.

    Args:
        folder: As for `read_start`.
        texts: Texts from which words are added; not read if `add_words` is 0.
        add_words: Largest number of whole words to add; WordPiece only.
    """
    tokenizer = read_start(folder, weights=False).tokenizer
    if not add_words:
        return tokenizer
    from models.interchange.more_words import with_more_words

    return with_more_words(tokenizer, texts, add_words)


def with_tokenizer(start: PretrainedNetwork, tokenizer: Any) -> PretrainedNetwork:
    """Extend a network's token embedding to the words that were added to its tokenizer.

    The embedding of a new word, and its bias in the masked-token head, is the mean over the tokens
    that encoded the word before.

    Args:
        start: The network with its weights.
        tokenizer: Its tokenizer, or that one with added words (`models.interchange.more_words`).
    """
    old = start.tokenizer
    if tokenizer.digest == old.digest:
        return start
    from models.interchange.more_words import replaced_pieces

    replaced = replaced_pieces(old, tokenizer)

    def grown(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {
            name: np.concatenate([array, [array[ids].mean(axis=0) for ids in replaced]])
            if name.endswith(ROWS) and len(array) == old.vocabulary_size
            else array
            for name, array in weights.items()
        }

    return replace(
        start,
        settings={**start.settings, "vocabulary_size": tokenizer.vocabulary_size},
        network=grown(start.network),
        heads={name: grown(weights) for name, weights in start.heads.items()},
        tokenizer=tokenizer,
    )


def start_files(folder: Path) -> dict[str, str]:
    """{file name in the folder: its digest} of all files that are read."""
    found = {path for pattern in FETCHED for path in folder.glob(pattern)}
    found |= {*folder.glob(f"{TOKENIZER}/*"), *head_files(folder).values()}
    return {path.relative_to(folder).as_posix(): hash_file(path) for path in sorted(found)}
