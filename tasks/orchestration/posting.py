"""Cards on Prefect's pages."""

from __future__ import annotations

from prefect.artifacts import create_markdown_artifact

from tasks.orchestration.naming import card_key

LONGEST = 190_000  # most characters of an artifact, which is stored in Prefect's database


def post(of: str, card: str, markdown: str, description: str) -> None:
    """Post a card of a recipe or model."""
    if len(markdown) > LONGEST:
        # A picture is one long line; without it the text fits.
        markdown = "\n".join(line for line in markdown.split("\n") if len(line) < 20_000)
    key = card_key(of, card)
    create_markdown_artifact(markdown[:LONGEST], key=key, description=description)
