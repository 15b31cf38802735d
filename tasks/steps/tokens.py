"""Tokenised text for later steps: file names, the tokenizer, unigram loss and loss a character."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from models.catalogue import literals
from tasks.store.artifacts import Artifact, Input
from tasks.store.step_names import tokens_step

if TYPE_CHECKING:
    from models.protocols import Tokenizer

DOCUMENTS = "documents.arrow"
ROWS = "rows.arrow"
PROFILE = "profile.parquet"
HELDOUT = "heldout"


def load_tokenizer(artifact: Input) -> Tokenizer:
    """Load a tokenizer artifact."""
    from models import saved_tokenizer

    return saved_tokenizer.load_tokenizer(artifact.folder)


def unigram_losses(
    made: Mapping[str, Artifact],
    corpora: Iterable[str],
    objective: str | None = None,
    folders: Sequence[Path] = (),
) -> dict[str, float]:
    """Unigram loss of each corpus with held-out text, in nats per held-out token.

    Args:
        made: Artifacts by step name.
        corpora: Names of corpora and datasets.
        objective: What the losses to be compared with it are of. Those of an objective with the
            literal ``PER_TOKEN = False`` can't be compared: there are none then.
        folders: Project folders, searched first.
    """
    if objective and not literals("objectives", objective, folders).get("PER_TOKEN", True):
        return {}
    tokens = {name: made.get(tokens_step(name)) for name in corpora}
    losses = {name: found.facts["unigram_loss"] for name, found in tokens.items() if found}
    return {name: loss for name, loss in losses.items() if loss is not None}


def a_character(
    losses: Mapping[str, float], made: Mapping[str, Artifact | Input]
) -> dict[str, float]:
    """Loss of each corpus in nats per character, which is comparable across tokenizers.

    Args:
        losses: Nats per held-out token, by corpus.
        made: Tokenised corpora by name.
    """
    found = {}
    for name, loss in losses.items():
        facts = made[name].facts
        found[name] = loss * facts["tokens"][HELDOUT] / facts["characters"][HELDOUT]
    return found
