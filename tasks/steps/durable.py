"""Durable tasks: Prefect tasks whose results are store entries.

Prefect's cache must never contradict the store. So Prefect's cache key is the step's key, its
recorded result is only a reference, and if the store has no intact entry, the task runs with
``refresh_cache``.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from prefect import Task
from prefect.context import TaskRunContext
from prefect.utilities.annotations import quote

from fourstage.errors import EnvironmentFault
from fourstage.space import FULL, taken, too_many_open_files
from fourstage.terminal import say
from tasks.store.artifacts import Artifact, Findings, Missing, store
from tasks.store.provenance import git_state
from tasks.store.steps import Bound

Work = Callable[..., Findings]

_results: dict[str, dict[str, str]] = {}  # {key: result}; Prefect tracks results by identity


def durable(**options: Any) -> Callable[[Work], Task]:
    """Turn ``work(step: Bound, folder: Path, **extra) -> Findings`` into a Prefect task.

    Args:
        **options: Options of Prefect's ``Task``, such as retries.
    """

    def decorate(work: Work) -> Task:
        def run(step: Bound, **extra: Any) -> dict[str, str]:
            def make(folder: Path) -> Findings:
                found = work(step, folder, **extra)
                by = {"git": git_state(), "made_by": this_process()}
                return replace(found, notes={**found.notes, **by})

            kind = step.step.kind
            try:
                made = store().make(kind, step.step.name, step.preimage, make, step.made_from)
            except OSError as error:
                folder = store().folder(kind, step.key)
                raise _environment_fault(step, folder, error) from error
            return made[0].reference

        run.__name__ = run.__qualname__ = work.__name__
        run.__doc__ = work.__doc__
        return Task(
            run,
            name=work.__name__,
            task_run_name=_label,
            cache_key_fn=_cache_key,
            result_serializer="json",
            persist_result=True,
            **options,
        )

    return decorate


def perform(durable_task: Task, step: Bound, **extra: Any) -> tuple[Artifact, str]:
    """Run a durable task for a step.

    Returns:
        The artifact, and ``made`` or ``reused``.
    """
    kind, key = step.step.kind, step.key
    before = store().find(kind, key)
    if isinstance(before, Missing) and before.reason not in ("never made", "unfinished"):
        say(f"{step.step.name}: {before.reason}")
    runner = durable_task.with_options(refresh_cache=isinstance(before, Missing))
    runner.version = step.preimage["code"][:12]
    # Quoted: otherwise Prefect searches the step for futures, which costs a quickstart 5 s.
    _results[key] = runner(quote(step), wait_for=results_of(*step.made_from.values()), **extra)
    after = store().find(kind, key)
    if isinstance(after, Missing):
        raise EnvironmentFault(
            f"{step.step.name}: {after.reason} right after it was made; run again"
        )
    store().mark_used(after)
    ours = isinstance(before, Missing) and after.notes.get("made_by") == this_process()
    return after, "made" if ours else "reused"


def results_of(*artifacts: Artifact) -> list[dict[str, str]]:
    """Results of the tasks that made or reused the artifacts in this process.

    Passed to a task as ``wait_for``, they become edges of the graph on the run's page.
    """
    return [_results[artifact.key] for artifact in artifacts if artifact.key in _results]


@cache
def this_process() -> str:
    """Host and id of this process, recorded in the entries that it makes."""
    return f"{socket.gethostname()}-{os.getpid()}"


def _cache_key(context: TaskRunContext, parameters: Mapping[str, Any]) -> str:
    step: Bound = parameters["step"]
    return f"{step.step.kind}-{step.key}"


def _label() -> str:
    from prefect.runtime import task_run

    return task_run.parameters["step"].unquote().label


def _environment_fault(step: Bound, folder: Path, error: OSError) -> EnvironmentFault:
    place = f"{folder.parent.name}/{folder.name[:12]} in the store"
    said = error.strerror or str(error)
    if error.errno == errno.EMFILE:
        return EnvironmentFault(
            f"{step.step.name}: {too_many_open_files()}. Finished steps are kept; run the same"
            " command again."
        )
    if error.errno in FULL:
        said = f"no space for {place} ({said} after {taken(folder) / 1e6:.1f} MB)"
    else:
        said = f"{said} while writing {place}"
    return EnvironmentFault(
        f"{step.step.name}: {said}. Finished steps are kept; make room or set FOURSTAGE_HOME, then"
        " run the same command again."
    )
