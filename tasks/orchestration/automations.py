"""Synchronise a Prefect server's automations with a file.

``python -m tasks.orchestration.automations automations.yaml`` writes them to the server at
``PREFECT_API_URL``. Prefect's own command would create duplicates. If the file's actions call a
webhook, ``FOURSTAGE_WEBHOOK`` is its address, which the server stores in a block.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from fourstage.errors import EnvironmentFault
from fourstage.settings import WEBHOOK
from fourstage.strict_yaml import read_document

BLOCK = "fourstage"  # name of the webhook's block on the server


def put_automations(file: Path) -> list[str]:
    """Create or update the automations of a file, by name. Paused ones stay paused.

    Returns:
        Their names.

    Raises:
        EnvironmentFault: An action calls a webhook, but no address is set.
    """
    from prefect.client.orchestration import get_client
    from prefect.events.schemas.automations import AutomationCore

    document = read_document(file, file.name)
    described = document.value["automations"]
    calls = [
        action
        for each in described
        for action in each["actions"]
        if action["type"] == "call-webhook"
    ]
    if calls:
        block = _webhook()
        for action in calls:
            action["block_document_id"] = block
    wanted = [AutomationCore.model_validate(each) for each in described]
    with get_client(sync_client=True) as client:
        for automation in wanted:
            there = client.read_automations_by_name(automation.name)
            if not there:
                client.create_automation(automation)
                continue
            # `prefect automation create` makes duplicates. Keep a paused one: a user paused it.
            kept, *twins = sorted(there, key=lambda each: each.enabled)
            client.update_automation(kept.id, automation)
            for twin in twins:
                client.delete_automation(twin.id)
    return [automation.name for automation in wanted]


def _webhook() -> Any:
    """Id of the block with the webhook's address, which is a secret."""
    from prefect.blocks.webhook import Webhook
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    address = os.environ.get(WEBHOOK)
    if address:
        block = Webhook.model_validate(
            {"url": address, "headers": {"Content-Type": "application/json"}}
        )
        return block.save(BLOCK, overwrite=True)
    try:
        with get_client(sync_client=True) as client:
            return client.read_block_document_by_name(BLOCK, "webhook").id
    except ObjectNotFound as error:
        raise EnvironmentFault(
            f"the server has no webhook named {BLOCK}: set {WEBHOOK} once to the address for"
            " messages"
        ) from error


if __name__ == "__main__":
    try:
        put_automations(Path(sys.argv[1]))
    except EnvironmentFault as fault:
        sys.exit(f"fourstage: {fault}")
