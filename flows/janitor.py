"""Cleans up after killed processes, and resumes their runs."""

from __future__ import annotations

from prefect import flow
from prefect.logging import get_run_logger

from tasks.orchestration.dead_runs import resume_dead_runs
from tasks.orchestration.naming import named
from tasks.orchestration.orphans import end_embedded_servers
from tasks.tracking.connection import connect
from tasks.tracking.orphans import close_orphans


@flow(name="janitor", flow_run_name=named("janitor"))
def janitor(most_starts: int = 3) -> dict[str, list]:
    """Close MLflow runs of dead processes, stop servers without a run, resume dead runs.

    Locks need no attention: the kernel releases those of dead writers.

    Args:
        most_starts: Most starts of a run; after that it stays crashed until somebody looks.

    Returns:
        What was done: ids of stopped servers and closed MLflow runs, names of resumed flow runs.
    """
    done = {
        "servers_ended": end_embedded_servers(),
        "mlflow_runs_closed": close_orphans(connect()),
        "flow_runs_resumed": resume_dead_runs(most_starts),
    }
    get_run_logger().info("janitor: %s", done)
    return done
