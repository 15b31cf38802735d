"""Links between the documents lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fourstage.settings import REPOSITORY

PAGES = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")]
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub writes them in addresses."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {_NOT_IN_ANCHORS.sub("", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_to_files_and_headings(page: Path):
    for path, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"
