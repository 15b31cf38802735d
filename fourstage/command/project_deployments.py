"""The ``prefect.yaml`` of a project: our deployments, for its recipe and model."""

from __future__ import annotations

import json
import re

from fourstage.settings import SHIPPED

KEPT = (
    "weekly",
    "choose",
    "refresh",
    "promote",
    "rollback",
    "janitor",
)  # not those of single stages, which differ between recipes
ENTRY = "\n  - name: "


def project_deployments(project: str, recipe: str, model: str) -> str:
    """The text of the file, derived from Fourstage's own.

    Deployments and work pool are named after the project, so that one server can have several
    projects and no worker takes runs of another. The recipe's schedule is inactive until somebody
    enables it; the janitor's is active.

    Args:
        project: Name of its folder.
        recipe: Path of the recipe, relative to the project.
        model: Name of the registered model that the recipe makes.
    """
    name = re.sub(r"[^\w.-]+", "-", project).strip("-.") or "project"
    if name.lower().startswith("prefect"):
        name = f"project-{name}"  # Prefect keeps work pools of such names to itself
    name = json.dumps(name, ensure_ascii=False)  # YAML takes a bare 2026 for a number, on for true
    head, *entries = (SHIPPED / "prefect.yaml").read_text(encoding="utf-8").split(ENTRY)
    kept = [entry.split("\n", 1) for entry in entries if entry.split("\n", 1)[0] in KEPT]
    text = head + "".join(f"{ENTRY}{name}\n{rest}" for _, rest in kept)
    for old, new in (
        ("# Deployments of Fourstage.", "# Deployments of this project."),
        ("work_pool: &process\n    name: fourstage\n", f"work_pool: &process\n    name: {name}\n"),
        ("recipes/quickstart.yaml", recipe),
        ("python-libraries", model),
        (
            '      - { cron: "0 2',
            '      # With `active: true` a run comes each Sunday at two.\n      - { cron: "0 2',
        ),
        ("slug: weekly, active: true", "slug: weekly, active: false"),
    ):
        assert old in text, old
        text = text.replace(old, new)
    return text
