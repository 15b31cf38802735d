"""What kills leave behind: closed, ended, and let go on."""

from __future__ import annotations

from prefect import flow
from prefect.logging import get_run_logger

from tasks.dead_runs import resume_dead_runs
from tasks.naming import named
from tasks.orphans import close_orphans, end_embedded_servers
from tasks.tracking import connect


@flow(name="janitor", flow_run_name=named("janitor"))
def janitor(most_starts: int = 3) -> dict[str, list]:
    """Close runs of dead processes, end servers without a run, let dead runs go on.

    Locks need nothing: the kernel frees a dead writer's.

    Args:
        most_starts: Starts a run may have in all; after that it stays crashed and somebody looks.

    Returns:
        What was done: ids of ended servers, of closed MLflow runs, names of resumed flow runs.
    """
    done = {
        "servers_ended": end_embedded_servers(),
        "mlflow_runs_closed": close_orphans(connect()),
        "flow_runs_resumed": resume_dead_runs(most_starts),
    }
    get_run_logger().info("janitor: %s", done)
    return done
