"""A network that was trained elsewhere, as the first stage of a recipe: ``init: …``."""

from __future__ import annotations

from pathlib import Path

from fourstage.digests import hash_file
from fourstage.errors import RecipeError
from models.interchange.huggingface import Checkpoint, read_checkpoint
from models.interchange.published import FETCHED
from models.interchange.stage_folder import TOKENIZER, is_stage, read_stage


def read_start(folder: Path, *, weights: bool = True) -> Checkpoint:
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


def start_files(folder: Path) -> dict[str, str]:
    """Digest of each file that can decide anything, by its name in the folder."""
    found = {path for pattern in FETCHED for path in folder.glob(pattern)}
    found |= {path for path in folder.glob(f"{TOKENIZER}/*")} | set(folder.glob("heads/*"))
    return {path.relative_to(folder).as_posix(): hash_file(path) for path in sorted(found)}
