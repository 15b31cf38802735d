"""``list``: the names that a recipe may use, read from the files that define them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from fourstage.command.options import add_json
from fourstage.command.output import print_json, print_line, print_table
from fourstage.errors import RecipeError, UnknownNameError
from fourstage.settings import search_folders

KINDS = ("families", "objectives", "heads", "recipes", "sources")
HELP = "list families, objectives, heads, recipes or sources"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("kind", metavar="KIND", help=", ".join(KINDS))
    add_json(parser)


def handle(options: Namespace) -> int:
    """Print one line per name."""
    if options.kind not in KINDS:
        raise UnknownNameError("list", options.kind, "something to list", KINDS)
    folders = search_folders()
    entries = {"recipes": recipes, "sources": _sources}.get(options.kind)
    rows = entries(folders) if entries else parts(options.kind, folders)
    if options.json:
        print_json(rows)
        return 0
    if not rows:
        print_line(f"no {options.kind}")
        return 0
    if options.kind == "objectives":
        rows = [_with_families_grouped(row) for row in rows]
    head = [key for key in rows[0] if key != "path"]
    print_table(head, [[_cell(row[key]) for key in head] for row in rows])
    return 0


def parts(kind: str, folders: list[Path]) -> list[dict[str, Any]]:
    """Every family, objective or head; with an objective, which families can train it."""
    from models import catalogue

    columns = {"families": ("SIZES", "PROVIDES"), "objectives": ("NEEDS", "PROVIDES")}
    rows = []
    for name in catalogue.names(kind, folders):
        literals = catalogue.literals(kind, name, folders)
        row: dict[str, Any] = {"name": name}
        for column in columns.get(kind, ("NEEDS",)):
            row[column.lower()] = list(literals.get(column, ()))
        if kind == "objectives":
            row |= _legality(name, folders)
        rows.append({**row, "path": str(catalogue.file_of(kind, name, folders))})
    return rows


def _legality(objective: str, folders: list[Path]) -> dict[str, str]:
    """Whether each family can train the objective, and if not, what is missing."""
    from models import catalogue

    found: dict[str, str] = {}
    needs = catalogue.literals("objectives", objective, folders).get("NEEDS", ())
    given, of_heads = (
        {
            each
            for other in catalogue.names(kind, folders)
            for each in catalogue.literals(kind, other, folders).get("PROVIDES", ())
        }
        for kind in ("objectives", "heads")
    )
    for family in catalogue.names("families", folders):
        try:
            others = catalogue.combination(family, objective, folders)[:-1]
            found[family] = f"with {others[0]}" if others else "yes"
        except RecipeError:
            there = catalogue.provided(family, folders) | of_heads
            missing = [need for need in needs if need not in there | given]
            if not missing and there.issuperset(needs):  # it chooses no rows of its own
                found[family] = "beside a head"
            else:
                found[family] = f"no {', '.join(missing)}" if missing else "no"
    return found


def _with_families_grouped(row: dict[str, Any]) -> dict[str, Any]:
    """An objective's row with one cell for all families that can train it."""
    row = dict(row)
    shown = {key: row.pop(key) for key in ("name", "needs", "provides")}
    groups: dict[str, list[str]] = {}
    for family, said in row.items():
        if family != "path" and not said.startswith("no"):
            groups.setdefault(said, []).append(family)
    cells = [
        ("" if said == "yes" else f"{said}: ") + ", ".join(families)
        for said, families in sorted(groups.items(), key=lambda group: group[0] != "yes")
    ]
    return {**shown, "families": "; ".join(cells)}


def recipes(folders: list[Path]) -> list[dict[str, Any]]:
    """Every recipe and the first sentence about it."""
    from fourstage.recipe.loading import recipe_names

    return [
        {"name": name, "about": _first_sentence(path), "path": str(path)}
        for name, path in recipe_names(folders).items()
    ]


def _sources(folders: list[Path]) -> list[dict[str, Any]]:
    from data_contracts.sources import load_source, source_names

    rows = []
    for name in source_names(folders):
        try:
            source = load_source(name, folders)
        except RecipeError as error:
            # One unreadable source must not hide the others; its line says so.
            about = f"cannot be read: {str(error).splitlines()[0]}"
            rows.append({"name": name, "kind": "?", "language": "", "licence": "", "about": about})
            continue
        rows.append(
            {
                "name": name,
                "kind": "dataset" if source.is_dataset else "corpus",
                "language": source.language,
                "licence": source.licence,
                "about": source.description,
            }
        )
    return rows


def _first_sentence(path: Path) -> str:
    """A recipe's first comment, up to its first full stop."""
    lines: list[str] = []
    with open(path, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if not line.startswith("#") or not line.strip("# \n"):
                break
            lines.append(line.strip("# \n"))
    return " ".join(lines).split(". ")[0].rstrip(".")


def _cell(value: object) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)
