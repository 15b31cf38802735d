"""Resume crashed runs of Fourstage's deployments automatically, with a limit on restarts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterId,
    FlowRunFilter,
    FlowRunFilterEndTime,
    FlowRunFilterParentTaskRunId,
    FlowRunFilterStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.states import AwaitingRetry, Failed

from fourstage.errors import UnknownNameError
from fourstage.settings import TAG
from tasks.orchestration.flow_runs import chosen_flow_runs
from tasks.orchestration.orphans import crash

RESUMABLE = "resumable"  # tag of deployments whose crashed runs are resumed
AWAITING_RETRY = "AwaitingRetry"  # name of the state that resumes a run
OLDEST = timedelta(days=1)  # since a run died; by then the next night's run has superseded it


def resume_dead_runs(most_starts: int) -> list[str]:
    """Reschedule the crashed runs of resumable deployments.

    The same flow run starts again: finished stages are reused, and the interrupted stage resumes
    from its checkpoint. A run stays crashed if it has been started too often or a later run of its
    deployment has started. One with a parameter that its flow does not have fails instead: it would
    crash again. Subflow runs of crashed runs are closed.

    Args:
        most_starts: Most starts of a run, including the first.

    Returns:
        Names of the resumed runs.
    """
    resumed = []
    now = datetime.now(UTC)
    with get_client(sync_client=True) as client:
        crashed = chosen_flow_runs(
            client,
            FlowRunFilter(
                state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.CRASHED])),
                tags=FlowRunFilterTags(all_=[TAG]),
                parent_task_run_id=FlowRunFilterParentTaskRunId(is_null_=True),
                end_time=FlowRunFilterEndTime.model_validate({"after_": now - OLDEST}),
            ),
            FlowRunSort.START_TIME_DESC,
        )
        crash(str(run.id) for run in crashed)
        for run in crashed:
            if refused := _unknown_parameter(client, run):
                client.set_flow_run_state(run.id, Failed(message=refused), force=True)
                continue
            again = RESUMABLE in run.tags and _starts(client, run) < most_starts
            if again and _newest(client, run):
                client.set_flow_run_state(run.id, AwaitingRetry(scheduled_time=now))
                resumed.append(run.name)
    return resumed


def _unknown_parameter(client: SyncPrefectClient, run: FlowRun) -> str:
    """What to say of the first parameter that the run's flow does not have; else empty.

    Prefect's API takes any name; the run's process ends with an error before the flow begins.
    """
    if run.deployment_id is None or not run.parameters:
        return ""
    this = DeploymentFilter(id=DeploymentFilterId(any_=[run.deployment_id]))
    schemas = [
        each.parameter_openapi_schema for each in client.read_deployments(deployment_filter=this)
    ]
    known = next((schema.get("properties", {}) for schema in schemas if schema), run.parameters)
    unknown = next((name for name in run.parameters if name not in known), None)
    if unknown is None:
        return ""
    hint = "Start a new run without it."
    return str(UnknownNameError(run.name, unknown, "a parameter of its flow", known, hint))


def _starts(client: SyncPrefectClient, run: FlowRun) -> int:
    """How often a run was started; Prefect's count lacks starts that died before the flow began."""
    states = client.read_flow_run_states(run.id)
    resumed = sum(state.name == AWAITING_RETRY for state in states)
    return max(run.run_count, 1 + resumed)


def _newest(client: SyncPrefectClient, run: FlowRun) -> bool:
    """Whether no later run of the same deployment has started."""
    if run.deployment_id is None:
        return False
    last = client.read_flow_runs(
        flow_run_filter=FlowRunFilter(start_time=FlowRunFilterStartTime(is_null_=False)),
        deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[run.deployment_id])),
        sort=FlowRunSort.START_TIME_DESC,
        limit=1,
    )
    return all(each.id == run.id for each in last)  # none, if it died before its flow began
