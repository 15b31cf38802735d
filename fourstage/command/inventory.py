"""The generated tables of docs/families.md: ``python -m fourstage.command.inventory``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from fourstage.command.verbs.list import parts, recipes
from fourstage.digests import write_atomically
from fourstage.settings import REPOSITORY
from tasks.reports.tables import markdown_table

FILE = REPOSITORY / "docs" / "families.md"
PAPERS = "papers/"
_WORK = re.compile(
    r"([A-Z]\w+ (?:et al\. |and [A-Z]\w+ )?\d{4}), (arXiv \d{4}\.\d{4,5}|https://\S+)"
)


def matrix() -> str:
    """Which family can train which objective, and what the others lack."""
    rows = parts("objectives", [])
    families = [family["name"] for family in parts("families", [])]
    body = [[_code(row["name"]), *(_legality(row[name]) for name in families)] for row in rows]
    return markdown_table(["", *map(_code, families)], body)


def papers() -> str:
    """The recipes of papers, each with its paper and a sentence about it."""
    rows = [
        (
            f"[`{row['name'].removeprefix(PAPERS)}`](../recipes/{row['name']}.yaml)",
            "; ".join(
                f"[{who}]({where.replace('arXiv ', 'https://arxiv.org/abs/')})"
                for who, where in _WORK.findall(_comment(Path(row["path"])))
            ),
            row["about"],
        )
        for row in recipes([])
        if row["name"].startswith(PAPERS)
    ]
    return markdown_table(("recipe", "paper", "what it is"), rows)


def written(page: str) -> str:
    """The page with both tables replaced between their markers."""
    return _with_blocks(page, {"matrix": matrix(), "papers": papers()})


def _with_blocks(page: str, blocks: Mapping[str, str]) -> str:
    for name, content in blocks.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        assert found, f"no {begin}"
        assert closed, f"no {end}"
        page = f"{before}{begin}\n{content}\n{end}{after}"
    return page


def _comment(path: Path) -> str:
    """The recipe's opening comment, as one line."""
    lines = path.read_text(encoding="utf-8").split("\n")
    end = next(i for i, line in enumerate(lines) if not line.startswith("#"))
    return " ".join(line.strip("# ") for line in lines[:end])


def _legality(said: str) -> str:
    if said == "beside a head":
        return said
    word, _, names = said.partition(" ")
    listed = ", ".join(map(_code, names.split(", "))) if names else ""
    return {"yes": "yes", "with": f"with {listed}", "no": f"no {listed}"}[word]


def _code(name: str) -> str:
    return f"`{name}`"


if __name__ == "__main__":
    write_atomically(FILE, written(FILE.read_text(encoding="utf-8")))
