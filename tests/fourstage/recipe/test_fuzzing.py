"""Recipe files with a few edits, and files that are none: a recipe, or a `RecipeError`."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fourstage.errors import RecipeError
from fourstage.recipe.loading import load_recipe
from fourstage.recipe.resolution import resolve
from fourstage.settings import REPOSITORY

FOLDERS = (REPOSITORY / "recipes", Path(__file__).parent / "fixtures" / "recipes")
GENUINE = sorted(path for folder in FOLDERS for path in folder.rglob("*.yaml"))
MARKS = (
    "no", "null", "~", "1e-4", "1.0e-4", ".nan", "-.inf", "0x10", "12:30", "2026-01-01", "9" * 70,
    "-1", "1e308", "''", "!!python/none", "&a [*a]", "*a", "<<: {}", "{", "}", "[", "]", ": ", "- ",
    "\n", "\n  ", "\t", "#", "'", '"', "|", ">", "---\n", "\ufeff", "\0", "\x85", "\u2028", "😀",
    "../..", "os", "bert.Bert", "extends: quickstart\n", "extends: x\n", "[" * 30, "{a: " * 30,
)  # fmt: skip
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A recipe of ours with a few edits; now and then any bytes."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=300))
    text = draw(st.sampled_from(GENUINE)).read_text(encoding="utf-8")
    for _ in range(draw(st.integers(1, 4))):
        lines = text.splitlines(keepends=True)
        line = draw(st.integers(0, len(lines) - 1)) if lines else 0
        match draw(st.integers(0, 4)):
            case 0 if lines:
                del lines[line]
            case 1 if lines:
                lines.insert(draw(st.integers(0, len(lines))), lines[line])
            case 2 if lines and ":" in lines[line]:
                key, _, _ = lines[line].partition(":")
                lines[line] = f"{key}: {draw(st.sampled_from(MARKS))}\n"
            case 3 if lines:
                indent = draw(st.integers(0, 6))
                lines[line] = " " * indent + lines[line].lstrip()
            case _:
                place = draw(st.integers(0, len(text)))
                text = text[:place] + draw(st.sampled_from(MARKS)) + text[place:]
                continue
        text = "".join(lines)
    return text.encode("utf-8", "surrogatepass")


def loads_or_refuses(folder: Path, content: bytes) -> None:
    """All that a command does with a recipe before any work."""
    file = folder / "x.yaml"
    file.write_bytes(content)
    for smoke in (False, True):
        said = "x.yaml"
        try:
            recipe = load_recipe(file, smoke=smoke, folders=[folder])
            resolve(recipe)
        except RecipeError as error:
            said = str(error)
        assert "x.yaml" in said or "recipes/" in said  # of a parent


@settings(max_examples=300, derandomize=True, suppress_health_check=QUIET)
@given(content=damaged())
def test_a_damaged_recipe_is_loaded_or_refused(tmp_path: Path, content: bytes):
    loads_or_refuses(tmp_path, content)


@pytest.mark.slow
@settings(max_examples=4000, suppress_health_check=QUIET, print_blob=True)
@given(content=damaged())
def test_a_damaged_recipe_is_loaded_or_refused_at_length(tmp_path: Path, content: bytes):
    loads_or_refuses(tmp_path, content)
