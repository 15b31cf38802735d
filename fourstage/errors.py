"""The errors that users can cause, the refusal of a gate, and two errors of the machine.

Every message says where, what was expected, what came and what to do; none contains a user's text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches


class RecipeError(ValueError):
    """An invalid recipe or command line; raised before any work. Exit code 2."""

    exit_code = 2


class UnknownNameError(RecipeError):
    """An unknown name; the message suggests the nearest known one. Exit code 2.

    Args:
        where: Place of the name, such as ``recipes/x.yaml: stages[0].objectives``.
        name: The unknown name.
        kind: What was expected, with its article: ``an objective``.
        known: All known names.
        hint: What else the user can do, as a full sentence.
    """

    def __init__(self, where: str, name: str, kind: str, known: Iterable[str], hint: str = ""):
        known = sorted(known)
        self.name = name
        message = f"{where}: {name[:80]!r} is not {kind}{look_alikes(name)}"
        message += f"{did_you_mean(name, known)} Known: {listed(known, 20) or 'none'}."
        super().__init__(f"{message} {hint}".strip())


def check_known(where: str, name: str, kind: str, known: Iterable[str]) -> None:
    """Refuse an unknown name.

    Raises:
        UnknownNameError: It is none of `known`; the arguments are that error's.
    """
    if name not in known:
        raise UnknownNameError(where, str(name), kind, known)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence: the known name that is nearest, if any is near."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    near = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return f"; did you mean {by_folded[near[0]]!r}?" if near else "."


def listed(words: Sequence[str], most: int, between: str = ", ") -> str:
    """The first words, and the number of further ones."""
    more = f" and {len(words) - most:,} more" if len(words) > most else ""
    return between.join(words[:most]) + more


def look_alikes(name: str) -> str:
    """The non-Latin letters in a name that look like Latin ones, as a remark; empty if none.

    Example:
        >>> look_alikes("n\u0430me")
        ' (its letter 2 is U+0430, CYRILLIC SMALL LETTER A)'
    """
    foreign = [
        f"letter {place} is U+{ord(letter):04X}, {unicodedata.name(letter, 'of no name')}"
        for place, letter in enumerate(name[:80], 1)
        if not letter.isascii()
    ]
    # A name entirely in another script is intended; a single letter in a Latin name was overlooked.
    if not foreign or not any(letter.isascii() and letter.isalpha() for letter in name):
        return ""
    return f" (its {'; '.join(foreign[:3])})"


class ContractViolation(ValueError):
    """Data that cannot be read, or that break a contract. Exit code 3."""

    exit_code = 3


class GateRefused(ValueError):
    """A version that may not become the champion, or one that can't be moved. Exit code 4."""

    exit_code = 4


class EnvironmentFault(RuntimeError):
    """A problem of the environment: a full disk, a silent server, a deadline. Exit code 1.

    It is not a mistake in recipe or data. Finished steps are kept; the same command continues.
    """

    exit_code = 1


class Diverged(EnvironmentFault):
    """A stage whose loss or weights are no longer finite; the same settings would meet it again."""


class Interrupted(EnvironmentFault):
    """A signal or a deadline stopped a stage after a checkpoint, from which the next run continues.

    Args:
        message: What stopped it, at which step, and how to continue.
        signal_number: The signal to raise again, 0 for a deadline.
    """

    def __init__(self, message: str, signal_number: int = 0):
        super().__init__(message)
        self.exit_code = 128 + signal_number if signal_number else 1
        self.signal_number = signal_number


@contextmanager
def located(where: str) -> Iterator[None]:
    """Prefix errors raised in the block with a place that their origin does not know.

    Args:
        where: For example ``recipes/x.yaml: stages[0].init``.
    """
    try:
        yield
    except (RecipeError, ContractViolation, EnvironmentFault) as error:
        error.args = (f"{where}: {error}",)
        raise
