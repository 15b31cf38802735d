"""How a registered model is asked, in a shell and in Python, by what its rows have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TEXT = "some text"
READING_PICTURE = 'base64.b64encode(Path("picture.png").read_bytes()).decode()'


def typed(answers: str, package: Mapping[str, Any]) -> str:
    """One row as an argument of ``fourstage predict``.

    Args:
        answers: Kind of answer, of the evaluation's facts.
        package: Settings of the step that packaged the model.
    """
    parts = [TEXT, *_more(answers, package)]
    if package.get("most_regions"):
        parts.append("picture.png")
    # $'…' is how bash and zsh write a tab.
    return f"'{TEXT}'" if len(parts) == 1 else "$'" + r"\t".join(parts) + "'"


def in_python(answers: str, package: Mapping[str, Any]) -> str:
    """The same row as an expression for the model that MLflow loads."""
    more = _more(answers, package)
    if answers == "choice":
        fields = [f'"text": "{TEXT}"', '"choices": [{}]'.format(", ".join(f'"{m}"' for m in more))]
    else:
        fields = [f'"text": "{TEXT}"', *(f'"text_pair": "{m}"' for m in more)]
    if package.get("most_regions"):
        fields.append(f'"picture": {READING_PICTURE}')
    return f'"{TEXT}"' if len(fields) == 1 else "{" + ", ".join(fields) + "}"


def _more(answers: str, package: Mapping[str, Any]) -> list[str]:
    if answers == "choice":
        return ["one choice", "another"]
    return ["a second text"] if package.get("pairs") else []
