"""Parses the command line, and suggests the nearest word for an unknown one.

Typer would list all options for an unknown one, and draw boxes where nobody looks at a terminal.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

from fourstage.errors import RecipeError, UnknownNameError

# Each is a file in `verbs/`; they are listed in this order.
VERBS = (
    "run plan show explain compare choose list new fetch convert report"
    " trace impact diff generate embed predict nearest evaluate promote rollback up doctor gc"
).split()
EPILOG = """\
exit codes: 0 done, 1 environment (disk, server, deadline), 2 wrong usage or recipe,
3 data unreadable or contract broken, 4 gate refused, 130/143 interrupted"""


class UsageError(RecipeError):
    """An invalid command line. Exit code 2."""


class Parser(argparse.ArgumentParser):
    """Raises instead of exiting, takes no abbreviations and suggests the nearest option."""

    def __init__(self, *args: object, **options: object):
        options.setdefault("allow_abbrev", False)
        super().__init__(*args, **options)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Report what is wrong and how the verb is used.

        Raises:
            UsageError: Always.
        """
        raise UsageError(f"{message}\n{self.format_usage().rstrip()}")

    def unknown(self, words: Sequence[str]) -> NoReturn:
        """Report which words are unknown.

        Raises:
            RecipeError: Always.
        """
        word = words[0]
        if word.startswith("-"):
            options = [option for option in self._option_string_actions if option.startswith("--")]
            verb = self.prog.removeprefix("fourstage ")
            raise UnknownNameError(verb, word.split("=")[0], "an option", options)
        self.error(f"one word too many: {word[:80]!r}")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The verb's handler and its options.

    Raises:
        RecipeError: The command line is invalid; exit code 2.
    """
    parser, verbs = command_parser()
    first = next((word for word in arguments if not word.startswith("-")), None)
    if first is not None and first not in verbs.choices:
        raise UnknownNameError("command line", first, "a command", verbs.choices)
    parsed, surplus = parser.parse_known_args(arguments)
    if surplus:
        chosen = verbs.choices[first] if first is not None else parser
        assert isinstance(chosen, Parser)
        chosen.unknown(surplus)
    if not hasattr(parsed, "handler"):
        parser.print_help()
        parsed.handler = lambda _: 2
    return parsed


def command_parser() -> tuple[Parser, argparse._SubParsersAction]:
    """The whole command, and its verbs."""
    parser = Parser(
        prog="fourstage",
        description="Train a language model in four stages: general, domain, task, finetune.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fourstage {_version()}")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for name in VERBS:
        verb = import_module(f"fourstage.command.verbs.{name}")
        of_verb = verbs.add_parser(name, help=verb.HELP)
        verb.add_arguments(of_verb)
        of_verb.set_defaults(handler=verb.handle)
    return parser, verbs


def _version() -> str:
    try:
        return version("fourstage")
    except PackageNotFoundError:
        return "(not installed)"
