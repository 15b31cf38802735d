"""Orphans in Prefect after a killed process, which the next start cleans up.

These are flow runs that are still RUNNING although their process is gone, and embedded servers,
which Prefect starts for a run if no other server is configured.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import UUID

from fourstage.digests import write_atomically
from fourstage.settings import EMBEDDED, OWNER, TAG
from tasks.orchestration.flow_runs import chosen_flow_runs
from tasks.orchestration.processes import HOST, MARK, PROCESS, STARTED, alive


@contextmanager
def marked_in_a_file() -> Iterator[None]:
    """Within a flow: move the run's process mark from its tag to a file. Does nothing elsewhere.

    The tag exists from the creation of the run, but it is visible to users. It also slows runs: for
    each tag of a task, Prefect's server looks up a concurrency limit, in a transaction that SQLite
    refuses during another write, and the client retries after 2 s, at every stage.
    """
    from prefect.client.orchestration import get_client
    from prefect.context import FlowRunContext, TagsContext

    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        yield
        return
    flow_run = context.flow_run
    if marks := [tag for tag in flow_run.tags if tag.startswith(MARK)]:
        write_atomically(_marks() / str(flow_run.id), marks[0])
        with get_client(sync_client=True) as client:
            client.update_flow_run(flow_run.id, tags=[t for t in flow_run.tags if t not in marks])
    others = TagsContext.get().current_tags - {*marks, TAG}
    with TagsContext(current_tags=others):
        yield


def _marks() -> Path:
    """Folder of process marks by flow run id, next to Prefect's database."""
    return Path(os.environ["PREFECT_HOME"]) / "fourstage-runs"


def end_embedded_servers() -> list[int]:
    """Stop this user's embedded Prefect servers whose run is gone.

    Returns:
        Ids of the stopped processes.
    """
    import psutil

    ended = []
    for process in psutil.process_iter():
        try:
            variables = process.environ()
            if variables.get("PREFECT__SERVER_EPHEMERAL") != "1" or OWNER not in variables:
                continue
            if _namespace(process.pid) != _namespace(os.getpid()):
                continue  # a container's, whose owner's number is another process here
            if not _lives(int(variables[OWNER]), process.create_time()):
                process.terminate()
                ended.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied, ValueError):
            continue  # ended meanwhile, or another user's
    return ended


def _namespace(pid: int) -> str:
    """The namespace that a process's number belongs to; empty where the system has none."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def _lives(owner: int, started: float) -> bool:
    """Whether a process is alive and started no later than `started`: pids are reused."""
    import psutil

    try:
        process = psutil.Process(owner)
        return process.create_time() <= started and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def over(flow_runs: set[str]) -> set[str]:
    """The flow runs that have ended, according to the permanent server; empty without one."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
    from prefect.settings import PREFECT_API_URL

    if not flow_runs or os.environ.get(EMBEDDED) or not PREFECT_API_URL.value():
        return set()
    ids = FlowRunFilterId(any_=[UUID(name) for name in flow_runs])
    with get_client(sync_client=True) as client:
        found = chosen_flow_runs(client, FlowRunFilter(id=ids))
    return {str(run.id) for run in found if run.state is not None and run.state.is_final()}


def _lives_by(mark: str) -> bool:
    """Whether the process of a mark is alive."""
    return alive(dict(zip((HOST, PROCESS, STARTED), mark[len(MARK) :].split("/"), strict=True)))


def _tagged_by_the_dead() -> set[str]:
    """Unfinished flow runs that are still tagged with a process that is gone."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterState,
        FlowRunFilterStateType,
    )
    from prefect.client.schemas.objects import StateType

    types = [StateType.RUNNING, StateType.PENDING]
    unfinished = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=types)))
    with get_client(sync_client=True) as client:
        runs = chosen_flow_runs(client, unfinished)
    return {
        str(run.id)
        for run in runs
        for tag in run.tags
        if tag.startswith(MARK) and not _lives_by(tag)
    }


def crash_unrecorded() -> None:
    """Crash flow runs of dead processes that have no MLflow run."""
    crash(_tagged_by_the_dead())
    for file in _marks().glob("[!.]*"):
        with suppress(FileNotFoundError):  # removed by another process
            if not _lives_by(file.read_text("utf-8")):
                crash([file.name])
                file.unlink()


def crash(flow_runs: Iterable[str]) -> None:
    """Set flow runs and their subflow runs to Crashed in Prefect."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterId,
        FlowRunFilterParentFlowRunId,
    )
    from prefect.states import Crashed

    ids = sorted(UUID(name) for name in flow_runs)
    if not ids:
        return  # a client without a server would start one
    chosen = FlowRunFilter(id=FlowRunFilterId(any_=ids))
    state = Crashed(message="Its process ended without a word; the next start found it gone.")
    left = []
    with get_client(sync_client=True) as client:
        while ids:
            found = chosen_flow_runs(client, chosen)
            left += [run.id for run in found if run.state is None or not run.state.is_final()]
            ids = [run.id for run in found]
            chosen = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=ids))
        for run_id in reversed(left):  # callers last: their end may start the janitor
            client.set_flow_run_state(run_id, state, force=True)
