"""A network that was trained elsewhere, as the first stage of a recipe: ``init: …``."""

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

ROWS = ("embeddings/token/embeddings", "output_bias")  # weights with a row for each piece


def read_start(folder: Path, *, weights: bool = True) -> PretrainedNetwork:
    """A Hugging Face folder, or a stage of ours that has its tokenizer beside it.

    Args:
        folder: As `published_folder` gives it.
        weights: Whether to read a Hugging Face folder's tensors; it is checked without, too.

    Raises:
        RecipeError: As `read_checkpoint`, or there is no tokenizer to go on with.
        ContractViolation: A file is not what it claims to be.
    """
    found = read_stage(folder) if is_stage(folder) else read_checkpoint(folder, weights=weights)
    if found.tokenizer is None:
        raise RecipeError(f"{folder}: {found.notes[0]}; a stage cannot go on without the same one")
    return found


def tokenizer_of(folder: Path, texts: Iterable[str], add_words: int = 0) -> Any:
    """The tokenizer of a folder.

    Args:
        folder: As `read_start`.
        texts: Where more words come from; not looked at where none are wanted.
        add_words: How many whole words to add at most; for WordPiece only.
    """
    tokenizer = read_start(folder, weights=False).tokenizer
    if not add_words:
        return tokenizer
    from models.interchange.more_words import with_more_words

    return with_more_words(tokenizer, texts, add_words)


def with_tokenizer(start: PretrainedNetwork, tokenizer: Any) -> PretrainedNetwork:
    """The network with a row for each piece that the tokenizer has more than its own.

    A new row of the embedding, and its bias in the masked-token head, is the mean of the rows of
    the pieces that spelled the word before, so that the network starts from what it knew of them.

    Args:
        start: With its weights.
        tokenizer: Its own, or that one with words behind (`models.interchange.more_words`).
    """
    old = start.tokenizer
    if tokenizer.digest == old.digest:
        return start
    from models.interchange.more_words import replaced_pieces

    replaced = replaced_pieces(old, tokenizer)

    def grown(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {
            name: np.concatenate([array, [array[ids].mean(axis=0) for ids in replaced]])
            if name in ROWS
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
    """Digest of each file that can decide anything, by its name in the folder."""
    found = {path for pattern in FETCHED for path in folder.glob(pattern)}
    found |= {*folder.glob(f"{TOKENIZER}/*"), *head_files(folder).values()}
    return {path.relative_to(folder).as_posix(): hash_file(path) for path in sorted(found)}
