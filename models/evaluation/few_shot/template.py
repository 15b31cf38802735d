r"""How a row becomes text: ``{text}\nAnswer: {answer}``."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter

ANSWER = "answer"
FIELDS = ("text", "text_pair")
DEFAULTS = {
    "label": "{text}\nAnswer: {answer}",
    "choice": "{text} {answer}",
    "text": "{text}\nAnswer: {answer}",
}


class Template:
    r"""A text with fields in braces, whose last one is ``{answer}``; braces are written twice.

    Args:
        text: The template.

    Raises:
        ValueError: It has another field, or does not end with its answer.

    Example:
        >>> Template("{text}\nA: {answer}").question({"text": "Who?"})
        'Who?\nA: '
    """

    def __init__(self, text: str):
        parts = _parsed(text)
        names = [field for _, field in parts if field is not None]
        known = (*FIELDS, ANSWER)
        for name in names:
            if name not in known:
                raise ValueError(
                    f"expected the fields {', '.join(f'{{{each}}}' for each in known)}, got"
                    f" {{{name}}}"
                )
        if names.count(ANSWER) != 1 or names[-1] != ANSWER or parts[-1][1] is None:
            raise ValueError(f"expected {{{ANSWER}}} once, at the end, got {text!r}")
        self._parts = parts
        self.fields = tuple(dict.fromkeys(names[:-1]))

    def question(self, values: Mapping[str, str]) -> str:
        """The text before the answer.

        Args:
            values: Value of each field.
        """
        return "".join(
            literal + (values[field] if field in self.fields else "")
            for literal, field in self._parts
        )


def _parsed(text: str) -> list[tuple[str, str | None]]:
    """(literal, field after it) in order.

    Raises:
        ValueError: A brace is not closed, or a field has a format.
    """
    found: list[tuple[str, str | None]] = []
    for literal, field, spec, conversion in Formatter().parse(text):
        if spec or conversion:
            raise ValueError(f"expected fields without a format, got {{{field}}} with one")
        found.append((literal, field))
    return found
