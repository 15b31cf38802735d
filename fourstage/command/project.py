"""Creates a project folder for a user's own recipes, sources and model parts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fourstage.command.project_deployments import project_deployments
from fourstage.digests import write_atomically
from fourstage.errors import RecipeError

MARKER = "fourstage.project"
FOLDERS = ("recipes", "sources", "suites", "families", "objectives", "heads", "data")

README = """\
# A project of Fourstage

    fourstage plan first      # what would be made, and at what cost
    fourstage run first       # the stages, evaluation, gate, promotion
    fourstage list sources    # every source that a recipe may name

| folder | what goes there |
| --- | --- |
| recipes/ | recipes, one YAML each: `fourstage run NAME` |
| sources/ | where a corpus or a dataset comes from, one YAML each |
| suites/ | contracts of your own, one JSON each |
| families/ objectives/ heads/ | model parts of your own, one Python file each |
| data/ | data files, if you want them here; sources may name files anywhere |
| prefect.yaml | deployments of the recipe, for `fourstage up` |

These folders are searched before the parts that come with Fourstage. Runs write to var/ (or
`$FOURSTAGE_HOME`).
"""


def check_empty(folder: Path) -> None:
    """Refuse to write over existing files.

    Raises:
        RecipeError: The folder is a file or not empty.
    """
    if folder.exists() and not folder.is_dir():
        raise RecipeError(f"{folder}: expected a new or empty folder, got a file")
    if folder.is_dir() and any(folder.iterdir()):
        raise RecipeError(
            f"{folder}: expected a new or empty folder, got one with files; nothing was changed"
        )


def make_project(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Create a project.

    Args:
        folder: A new or empty folder.
        files: Texts by path: recipe, sources, data.

    Returns:
        The files written.

    Raises:
        RecipeError: The folder is not empty.
    """
    check_empty(folder)
    for name in FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    texts = {
        "README.md": README,
        ".gitignore": "var/\n",
        **files,
        "prefect.yaml": project_deployments(folder.resolve().name, "recipes/first.yaml", "first"),
        # Last: without its marker a folder does not count as a project.
        MARKER: "This file marks a project folder of Fourstage.\n",
    }
    for name, text in texts.items():
        write_atomically(folder / name, text)
    return [folder / name for name in texts]
