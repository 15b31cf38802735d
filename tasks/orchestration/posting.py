"""Cards on Prefect's pages."""

from __future__ import annotations

from itertools import accumulate

from prefect.artifacts import create_markdown_artifact

from tasks.orchestration.naming import card_key

LONGEST = 190_000  # most characters of an artifact, which is stored in Prefect's database
PICTURE = 20_000  # least characters of a line that is a picture


def post(of: str, card: str, markdown: str, description: str) -> None:
    """Post a card of a recipe or model."""
    create_markdown_artifact(fitted(markdown), key=card_key(of, card), description=description)


def fitted(markdown: str) -> str:
    """A card that is too long, without its pictures and last lines; it says what is left out."""
    if len(markdown) <= LONGEST:
        return markdown
    whole = markdown.split("\n")
    lines = [line for line in whole if len(line) < PICTURE]
    ends = accumulate(len(line) + 1 for line in lines)
    kept = lines[: sum(end <= LONGEST for end in ends)]
    out = {"pictures": len(whole) - len(lines), "last lines": len(lines) - len(kept)}
    told = ", ".join(f"{what} {count:,}" for what, count in out.items() if count)
    return "\n".join([*kept, "", f"*A card holds {LONGEST:,} characters. Left out: {told}.*"])
