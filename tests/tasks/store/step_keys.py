"""Every step's key, its inputs being entries of fixed digests: nothing has to be made for it.

As a program it prints those of the recipe that it is given.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fourstage.digests import digest
from tasks.planning.plan import plan_recipe
from tasks.store.artifacts import Artifact
from tasks.store.steps import Bound, bind


def keys(recipe: Path) -> dict[str, str]:
    """Of a recipe, by the step's name."""
    made: dict[str, Artifact] = {}
    found: dict[str, str] = {}
    for name, step in plan_recipe(str(recipe)).steps.items():
        bound = bind(step, made)
        assert isinstance(bound, Bound)
        found[name] = bound.key
        rest = (bound.key, name, {}, {}, {}, "")
        made[name] = Artifact(step.kind, digest(name), Path(), {}, {}, *rest)
    return found


if __name__ == "__main__":
    print(json.dumps(keys(Path(sys.argv[1]))))  # noqa: T201
