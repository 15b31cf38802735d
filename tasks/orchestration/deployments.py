"""Remove deployments that a project's ``prefect.yaml`` no longer contains.

``python -m tasks.orchestration.deployments [prefect.yaml]`` removes those with Fourstage's tag from
the server at ``PREFECT_API_URL`` and prints their names. The server must belong to the project.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fourstage.settings import TAG
from fourstage.strict_yaml import read_document


def remove_left_over(file: Path | None) -> list[str]:
    """Remove Fourstage's deployments that are not in a file, since their schedules never end.

    Args:
        file: The project's ``prefect.yaml``; None if it has none.

    Returns:
        Entrypoint and name of each removed deployment.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags

    wanted = read_document(file, file.name).value["deployments"] if file else []
    named = {(each["entrypoint"], each["name"]) for each in wanted}
    ours = DeploymentFilter(tags=DeploymentFilterTags(all_=[TAG]))
    removed = []
    with get_client(sync_client=True) as client:
        for deployment in client.read_deployments(deployment_filter=ours):
            if (deployment.entrypoint, deployment.name) not in named:
                client.delete_deployment(deployment.id)
                removed.append(f"{deployment.entrypoint} {deployment.name}")
    return removed


if __name__ == "__main__":
    for name in remove_left_over(Path(sys.argv[1]) if sys.argv[1:] else None):
        sys.stdout.write(name + "\n")
