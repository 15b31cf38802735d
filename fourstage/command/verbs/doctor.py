"""``doctor``: checks that the environment is in order."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from fourstage.command.options import add_json
from fourstage.command.output import print_json, print_table

HELP = "check versions, servers, disk, locks, telemetry"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_json(parser)


def handle(options: Namespace) -> int:
    """Print each finding; exit code 1 if any is wrong."""
    from fourstage.command.diagnosis import diagnose

    findings = list(diagnose())
    if options.json:
        print_json([dict(finding.__dict__) for finding in findings])
    else:
        print_table(("check", "status", "found"), [(f.check, f.status, f.found) for f in findings])
    return 1 if any(finding.status == "wrong" for finding in findings) else 0
