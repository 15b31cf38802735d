"""Every recipe that comes with Fourstage, written out with all its values, is the same recipe."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fourstage.digests import canonical
from fourstage.recipe.resolved import as_recipe, stage_spec
from fourstage.settings import REPOSITORY
from tasks.planning.plan import resolve_recipe

FOLDER = REPOSITORY / "recipes"
RECIPES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.yaml"))


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_that_is_written_out_is_the_same_recipe(name: str, tmp_path: Path) -> None:
    recipe, _, _ = resolve_recipe(str(FOLDER / name))
    written = as_recipe(recipe)
    (tmp_path / "written.yaml").write_text(yaml.safe_dump(written), encoding="utf-8")
    again, _, _ = resolve_recipe(str(tmp_path / "written.yaml"))
    assert canonical(as_recipe(again)) == canonical(written)
    for one, other in zip(recipe.stages, again.stages, strict=True):
        assert canonical(stage_spec(one)) == canonical(stage_spec(other))
