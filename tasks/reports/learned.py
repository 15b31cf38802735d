"""Warnings about pre-training that taught a network too little, with advice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedRecipe

LEARNED = 1.0  # nats under the loss of frequencies alone from which a pre-training can be judged
# What lets a network of a few layers learn within minutes (recipes/evidence/bert.yaml).
SHORT_WINDOW = 16  # tokens
HIDDEN = 0.3
VOCABULARY = 4000
TOKENS = 1_000_000


def against_frequency(
    loss: Mapping[str, float], unigram: Mapping[str, float], read: Iterable[str]
) -> dict[str, float]:
    """By corpus, nats a hidden token above (below: negative) guessing by how often each occurs.

    Args:
        loss: Held-out loss by corpus.
        unigram: That of frequencies alone; not of what has no held-out text.
        read: The corpora asked about.
    """
    return {name: loss[name] - unigram[name] for name in read if name in loss and name in unigram}


def little_learned(
    stages: Sequence[Mapping[str, Any]], resolved: Sequence[Any], pieces: int | None
) -> list[str]:
    """What to say where none of the stages before the labels learned enough; empty else.

    Each is judged by the text it read most of, where there is held-out text of it.

    Args:
        stages: Of a run's summary: what each pre-training stage reached.
        resolved: The same stages of the recipe.
        pieces: Of the vocabulary, where it was learned here; None where it came with a network.
    """
    found = []
    for stage, said in zip(stages, resolved, strict=True):
        most = max(said.corpora, key=said.corpora.__getitem__)
        nats = against_frequency(stage["heldout_loss"], stage["unigram_loss"], [most])
        found += [(stage["stage"], most, n) for n in nats.values()]
    if not found or min(nats for *_, nats in found) <= -LEARNED:
        return []
    told = ", ".join(f"stage {stage} {nats:+.2f} nats on {corpus}" for stage, corpus, nats in found)
    how = "nothing" if all(nats >= 0 for *_, nats in found) else "little"
    return [
        f"Pre-training learned {how}: against guessing by how often each token occurs, {told};"
        f" {-LEARNED:+.0f} is the least that counts. {_advice(stages[0], resolved[0], pieces)}"
    ]


def beyond_pretraining(recipe: ResolvedRecipe) -> list[str]:
    """What to say where the labels are read in longer windows than any pre-training had.

    Args:
        recipe: Resolved; a network that came from elsewhere has its positions from there.
    """
    before = [stage for stage in recipe.last_network if stage is not recipe.finetune]
    if recipe.finetune is None or not before or any(stage.init is not None for stage in before):
        return []
    longest = max(stage.sequence_length for stage in before)
    if recipe.finetune.sequence_length <= longest:
        return []
    return [
        f"Stage {recipe.finetune.name} reads up to {recipe.finetune.sequence_length} tokens, no"
        f" stage before it more than {longest}: what lies beyond begins untrained. Give stage"
        f" {before[-1].name} a phase of {recipe.finetune.sequence_length} tokens at its end."
    ]


def _advice(stage: Mapping[str, Any], said: Any, pieces: int | None) -> str:
    """What of the first stage differs from what is known to work."""
    tokens = stage["tokens"]
    more = f" ({TOKENS:,} tokens or more; it read {tokens:,})" if tokens < 0.9 * TOKENS else ""
    advice = [f"a larger budget{more}"]
    if pieces is not None:
        if said.phases[0].sequence_length > SHORT_WINDOW:
            advice.append("short windows first (phases of 16, then 32 and 64 tokens)")
        if said.objectives.get("masked_lm", {}).get("rate", HIDDEN) < HIDDEN:
            advice.append(f"masked_lm with rate {HIDDEN}")
        if said.network.get("dropout", 0.0) > 0:
            advice.append("dropout 0.0 among the values of size")
        if pieces > VOCABULARY:
            few = f"{VOCABULARY // 2:,} to {VOCABULARY:,}"
            advice.append(f"a vocabulary_size of {few} (of Chinese {2 * VOCABULARY:,})")
    also = " The recipe that `fourstage new` writes has these, with reasons."
    return f"Give stage {stage['stage']} {'; '.join(advice)}." + (also if advice[1:] else "")
