"""Text in a terminal: how wide it is, and what of it the terminal would obey.

A Chinese character takes two columns.

Rich measures and cuts. Where it wraps, it breaks or cuts off a word longer than a line; here it
stays whole, so that a path or a command can be copied.
"""

from __future__ import annotations

# Control characters, of which a terminal obeys many (it clears its screen, changes its title), and
# those that change the writing direction. Line ends and tabs are layout.
_OBEYED = (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_HARMLESS = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for code in _OBEYED
    if chr(code) not in "\n\t"
}


def harmless(text: str) -> str:
    r"""A text with what a terminal would obey made visible, such as ``\x1b`` for an escape.

    Names of files and archive members, and what other people's recipes and sources say, may hold
    it.
    """
    return text.translate(_HARMLESS)


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
