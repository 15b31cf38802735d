"""The schema of MLflow's database: whether an older or a newer MLflow wrote it."""

from __future__ import annotations

import re
from importlib.metadata import version
from importlib.resources import files

from fourstage.settings import without_credentials

# How MLflow says it, in either case with the advice for an older one.
_OTHER = re.compile(r"out-of-date database schema \(found version (\w+), but expected \w+\)")


def of_another_version(said: str, uri: str) -> str:
    """What to do with a database of another MLflow; empty if `said` is about something else.

    Args:
        said: MLflow's message.
        uri: Address of the database.
    """
    found = _OTHER.search(said)
    if found is None:
        return ""
    address, here = without_credentials(uri), version("mlflow")
    # Each migration is a file that begins with its number; an older MLflow lacks the newer ones.
    migrations = files("mlflow") / "store" / "db_migrations" / "versions"
    if any(file.name.startswith(f"{found[1]}_") for file in migrations.iterdir()):
        return (
            f"MLflow's database {address} was last used by an older MLflow than the installed"
            f" {here}. Make a copy of it, then run  mlflow db upgrade {address}  and the same"
            " command again. Nothing in it is lost."
        )
    return (
        f"MLflow's database {address} was last used by a newer MLflow than the installed {here},"
        " which can't read it. Install that version again (pip install -r requirements.lock), or"
        " restore the copy from before its upgrade, then run the same command again. What is"
        " finished is kept."
    )
