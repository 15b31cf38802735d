"""The reference of the command as Markdown: ``python -m fourstage.command.reference`` writes it."""

from __future__ import annotations

import argparse

from fourstage.command.parser import EPILOG, Parser, command_parser
from fourstage.digests import write_atomically
from fourstage.settings import REPOSITORY

FILE = REPOSITORY / "docs" / "reference" / "command.md"

HEAD = """\
# The command

Written by `python -m fourstage.command.reference` from the command itself; do not edit by hand.

A RECIPE is a file, or a name that `fourstage list recipes` prints. Results go to standard output,
the story of a run to standard error; with `--json` standard output holds one JSON object and
nothing else. Options are not abbreviated.
"""

EXITS = """\
## Exit codes

| code | means |
| --- | --- |
| 0 | done |
| 1 | the environment is in the way: disk, server, deadline, memory; what finished is kept |
| 2 | wrong usage or recipe; said before any work |
| 3 | data that cannot be read, or a contract that is broken |
| 4 | the gate refused, or a version cannot be moved |
| 130, 143 | interrupted by SIGINT, or by SIGTERM or a closed terminal; the same command goes on |

## Environment

| variable | means |
| --- | --- |
| `FOURSTAGE_HOME` | folder of everything that is written; default `var/` in the project |
| `FOURSTAGE_DATA` | folders of data, separated like `PATH`; looked in after the project |
| `FOURSTAGE_MLFLOW_UI` | address of MLflow's pages, for links, where tracking is a local database |
| `FOURSTAGE_WEBHOOK` | where `fourstage up` has notifications sent to; default nowhere |
| `FOURSTAGE_TRACEBACK` | `1` shows the stack trace of an error |
| `MLFLOW_TRACKING_URI` | an MLflow server; default SQLite under the home |
| `PREFECT_API_URL` | a Prefect server; default one that the run brings along |
| `PREFECT_API_AUTH_STRING` | its login, where it wants one |
| `KERAS_BACKEND` | `tensorflow` (default) or `jax` |
"""


def reference() -> str:
    """The whole page."""
    assert "130/143" in EPILOG  # the short form of the table above
    _, verbs = command_parser()
    parts = [HEAD, "| command | does |\n| --- | --- |"]
    said = {choice.dest: choice.help or "" for choice in verbs._choices_actions}
    parts[-1] += "".join(
        f"\n| [`{name}`](#fourstage-{name}) | {said[name]} |" for name in verbs.choices
    )
    parts[-1] += "\n"
    parts += [_verb(name, parser, said[name]) for name, parser in verbs.choices.items()]
    return "\n".join([*parts, EXITS])


def _verb(name: str, parser: Parser, does: str) -> str:
    actions = [a for a in parser._actions if not isinstance(a, argparse._HelpAction)]
    words = [_word(action) for action in actions]
    lines = [f"## `fourstage {name}`\n", f"{does[:1].upper()}{does[1:]}.\n"]
    lines.append(f"    fourstage {' '.join([name, *words])}\n")
    told = [(action, action.help) for action in actions if action.help]
    if told:
        lines.append("| word | means |\n| --- | --- |")
        lines += [f"| `{_cell(_bare(action))}` | {_cell(help_)} |" for action, help_ in told]
        lines.append("")
    return "\n".join(lines)


def _word(action: argparse.Action) -> str:
    bare = _bare(action)
    if not action.option_strings:
        return {"+": f"{bare} [{bare} …]", "*": f"[{bare} …]"}.get(str(action.nargs), bare)
    return f"[{bare}]"


def _bare(action: argparse.Action) -> str:
    name = action.metavar or ("|".join(action.choices) if action.choices else action.dest.upper())
    if not action.option_strings:
        return str(name)
    return action.option_strings[0] if action.nargs == 0 else f"{action.option_strings[0]} {name}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    write_atomically(FILE, reference())
