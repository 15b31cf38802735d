"""Atomic creation of a folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from fourstage.errors import EnvironmentFault, RecipeError


def refuse_files(folder: Path) -> None:
    """Refuse a folder that has files, so that no file is overwritten.

    Raises:
        RecipeError: It has files, or is not a folder.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RecipeError(f"{folder}: expected a new or empty folder, it has files")


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """A temporary folder to write into, renamed to `folder` at the end.

    Raises:
        EnvironmentFault: It could not be written; the temporary folder has been removed.
    """
    part = folder.parent / f".{folder.name}.part"
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        yield part
        if folder.exists():
            folder.rmdir()
        os.replace(part, folder)
    except (OSError, SafetensorError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise EnvironmentFault(f"{folder}: cannot be written ({cause})") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
