"""The automations of a file on a Prefect server, each of them once and as the file says.

``python -m tasks.automations automations.yaml`` puts them on the server of ``PREFECT_API_URL``;
Prefect's own command would add a second one of each name.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fourstage.strict_yaml import read_document


def put_automations(file: Path) -> list[str]:
    """Update the automations of the same names where they are, and make those that are missing.

    One that somebody has paused stays paused.

    Returns:
        Their names.
    """
    from prefect.client.orchestration import get_client
    from prefect.events.schemas.automations import AutomationCore

    document = read_document(file, file.name)
    wanted = [AutomationCore.model_validate(each) for each in document.value["automations"]]
    with get_client(sync_client=True) as client:
        for automation in wanted:
            there = client.read_automations_by_name(automation.name)
            if not there:
                client.create_automation(automation)
                continue
            # Several are of `prefect automation create`; a paused one is the one somebody touched.
            kept, *twins = sorted(there, key=lambda each: each.enabled)
            client.update_automation(kept.id, automation)
            for twin in twins:
                client.delete_automation(twin.id)
    return [automation.name for automation in wanted]


if __name__ == "__main__":
    put_automations(Path(sys.argv[1]))
