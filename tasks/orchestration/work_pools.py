"""Create the work pool of a project's deployments, or bring it up to date.

``python -m tasks.orchestration.work_pools NAME`` does so on the server at ``PREFECT_API_URL``.
Prefect's own command would let the server ask raw.githubusercontent.com which kinds of pool there
are.
"""

from __future__ import annotations

import sys

KIND = "process"  # of the worker that `fourstage up` starts


def put_work_pool(name: str) -> None:
    """Create or update a work pool whose runs are processes of the worker's machine.

    Args:
        name: Its name.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.workers.process import ProcessWorker

    template = ProcessWorker.get_default_base_job_template()
    wanted = WorkPoolCreate(name=name, type=KIND, base_job_template=template)
    with get_client(sync_client=True) as client:
        client.create_work_pool(wanted, overwrite=True)


if __name__ == "__main__":
    put_work_pool(sys.argv[1])
