"""Held-out losses of tokenised text: by guessing, and of a network per character or word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from models.catalogue import literals
from tasks.steps.tokens import DOCUMENTS, HELDOUT
from tasks.store.artifacts import Artifact, Input
from tasks.store.step_names import tokens_step


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
    if not _of_tokens(objective, folders):
        return {}
    tokens = {name: made.get(tokens_step(name)) for name in corpora}
    losses = {name: found.facts["unigram_loss"] for name, found in tokens.items() if found}
    return {name: loss for name, loss in losses.items() if loss is not None}


def _of_tokens(objective: str | None, folders: Sequence[Path]) -> bool:
    """Whether an objective's held-out loss is a cross-entropy of tokens."""
    return not objective or literals("objectives", objective, folders).get("PER_TOKEN", True)


def a_character(
    losses: Mapping[str, float],
    made: Mapping[str, Artifact | Input],
    objective: str | None,
    folders: Sequence[Path] = (),
) -> dict[str, float]:
    """Loss of each corpus in nats per character, which is comparable across tokenizers.

    See `_spread` for arguments.

    Returns:
        {corpus: nats}; none for captions whose texts are all in the training rows, too.
    """
    return _spread("characters", losses, made, objective, folders)


def a_word(
    losses: Mapping[str, float],
    made: Mapping[str, Artifact | Input],
    objective: str | None,
    folders: Sequence[Path] = (),
) -> dict[str, float]:
    """Loss of each corpus in nats per word between blanks; exp of it is the perplexity per word.

    An unknown word costs what its tokens cost, of which [UNK] is one. See `_spread` for arguments.

    Returns:
        {corpus: nats}; none for a language without blanks between words.
    """
    return _spread("words", losses, made, objective, folders)


def _spread(
    unit: str,
    losses: Mapping[str, float],
    made: Mapping[str, Artifact | Input],
    objective: str | None,
    folders: Sequence[Path],
) -> dict[str, float]:
    """Loss of each corpus per unit of its held-out text.

    All nats count, those of ends of documents included, which are no characters and no words: so
    unlike tokenizers compare, however many tokens of a document they make.

    Args:
        unit: ``characters`` or ``words``, as a tokenised corpus counts them.
        losses: Nats per predicted token, by corpus.
        made: Tokenised corpora by step name.
        objective: What the losses are of; none is told where a loss is no cross-entropy of tokens
            (`unigram_losses`).
        folders: Project folders, searched first.
    """
    if not _of_tokens(objective, folders):
        return {}
    found = {}
    for name, loss in losses.items():
        tokens = made[tokens_step(name)]
        if number := tokens.facts[unit].get(HELDOUT):
            predicted = tokens.facts["tokens"][HELDOUT] + _ends(tokens, objective, folders)
            found[name] = loss * predicted / number
    return found


def _ends(tokens: Artifact | Input, objective: str | None, folders: Sequence[Path]) -> int:
    """How many ends of held-out documents an objective predicts."""
    from corpora.shards import TokenisedCorpus

    literal = literals("objectives", objective, folders).get("PREDICTS_ENDS") if objective else None
    if literal is None:
        return 0
    documents = len(TokenisedCorpus(tokens.path(DOCUMENTS), HELDOUT))
    return documents if literal == "all" else documents - 1
