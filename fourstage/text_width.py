"""The width of text in a terminal, where a Chinese character takes two columns.

Rich measures and cuts. Where it wraps, it breaks or cuts off a word longer than a line; here it
stays whole, so that a path or a command can be copied.
"""

from __future__ import annotations


def width(text: str) -> int:
    """The number of columns that a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, columns: int) -> str:
    """A text padded with spaces to at least this many columns."""
    return text + " " * (columns - width(text))


def cropped(text: str, columns: int) -> str:
    """A text cut to this many columns."""
    from rich.cells import set_cell_size

    return text if width(text) <= columns else set_cell_size(text, columns - 1).rstrip() + "…"


def wrapped(text: str, columns: int) -> list[str]:
    """A text broken into lines between words; a word longer than a line stays whole."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and width(longer) > columns:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
