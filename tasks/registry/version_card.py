"""The model card in MLflow: description of a version and its logged model, and a file of it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tasks.registry.lineage import trace
from tasks.reports.model_card import model_card
from tasks.reports.score_plots import answers_of
from tasks.store.ancestry import Ancestry
from tasks.store.artifacts import Artifact
from tasks.store.model_facts import ModelFacts, facts_of
from tasks.store.predictions import PREDICTIONS
from tasks.store.registry_memory import Version
from tasks.tracking.connection import Tracking, answered
from tasks.tracking.tags import NOTE

CARD = "model_card.md"
VERSIONS = "mlflow.modelVersions"  # tag that a logged model's page reads its versions from
LONGEST = 5000  # most characters of a version's description in MLflow's database


@answered
def keep_card(
    tracking: Tracking, version: Version, facts: ModelFacts, evaluation: Artifact
) -> None:
    """Write a version's model card. The card depends only on the arguments.

    Args:
        tracking: The MLflow connection.
        version: The version.
        facts: Its facts.
        evaluation: Its evaluation in the store, with the stored predictions.
    """
    import pandas

    table = pandas.read_parquet(evaluation.path(PREDICTIONS))
    of_classes = evaluation.facts["answers"] == "label"
    answers = answers_of(table) if of_classes and "baseline" in table else None
    called = f"{version.name}/{version.number}"
    card = model_card(facts, _title(version), called=called, answers=answers)
    number, description = str(version.number), fitting(card)
    client = tracking.client
    client.update_model_version(version.name, number, description=description)
    if version.model_id is None:
        return
    model = client.get_logged_model(version.model_id)
    # Without a server, MLflow does not set this tag, and the model's page shows no versions.
    versions = json.loads(model.tags.get(VERSIONS, "[]"))
    if all((v["name"], str(v["version"])) != (version.name, number) for v in versions):
        versions.append({"name": version.name, "version": number})
    tags = {VERSIONS: json.dumps(versions), NOTE: description}
    client.set_logged_model_tags(version.model_id, tags)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / CARD
        path.write_text(card, encoding="utf-8")
        client.log_model_artifact(version.model_id, str(path))


@answered
def read_card(tracking: Tracking, uri: str, store_root: Path) -> tuple[ModelFacts, str]:
    """The facts of a registered version, and its model card as shown on its page.

    Args:
        tracking: The MLflow connection.
        uri: ``models:/NAME@alias`` or ``models:/NAME/3``.
        store_root: ``$FOURSTAGE_HOME/store``.
    """
    way = trace(tracking, uri, store_root, every_file=False)
    version = way.version
    facts = facts_of(Ancestry(version.key, {hop.manifest.key: hop.manifest for hop in way.hops}))
    assert facts is not None, "a traced version has a stage"
    # From the database, which is trusted, not from the file, which may have been altered.
    registered = tracking.client.get_model_version(version.name, str(version.number))
    return facts, registered.description or model_card(facts, _title(version))


def _title(version: Version) -> str:
    return f"{version.name} version {version.number}"


def fitting(card: str) -> str:
    """A card as a description. If it is too long, it is cut before a section, with a note."""
    if len(card) <= LONGEST:
        return card
    more = f"\n\nThe whole card is `{CARD}` among the files of its logged model.\n"
    parts = card[: LONGEST - len(more)].split("\n## ")
    return "\n## ".join(parts[:-1] or parts).rstrip() + more
