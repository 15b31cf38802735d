"""Warnings about a network that has learned too little, with advice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from models.catalogue import literals, provided
from models.metrics import best

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedRecipe, ResolvedStage

LEARNED = 1.0  # nats below the unigram loss that a pre-training must reach
# Settings with which a network of a few layers learns within minutes (recipes/evidence/bert.yaml).
SHORT_WINDOW = 16  # tokens
HIDDEN = 0.3
VOCABULARY = 4000
TOKENS = 1_000_000
BETTER = "roformer"
ONE_ANSWER = 0.9  # share of rows with one prediction from which a network tells none apart
BEYOND = 0.1  # by how much more often than it is right


def against_frequency(
    loss: Mapping[str, float], unigram: Mapping[str, float], read: Iterable[str]
) -> dict[str, float]:
    """Held-out loss minus unigram loss by corpus, in nats per hidden token.

    Args:
        loss: Held-out loss by corpus.
        unigram: Unigram loss of each corpus with held-out text.
        read: The corpora to compare.
    """
    return {name: loss[name] - unigram[name] for name in read if name in loss and name in unigram}


def little_learned(
    stages: Sequence[Mapping[str, Any]], resolved: Sequence[Any], pieces: int | None
) -> list[str]:
    """Warning if no pre-training stage learned enough; empty otherwise.

    A stage is judged on its largest corpus, if that has held-out text.

    Args:
        stages: The pre-training stages in a run's summary.
        resolved: The same stages of the recipe.
        pieces: Size of the vocabulary; None if it came with an imported network.
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
    """Warning if finetune reads longer windows than any pre-training stage; empty otherwise.

    Args:
        recipe: The resolved recipe. An imported network, whose positions are trained, gets no
            warning.
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


def tells_nothing_apart(evaluation: Mapping[str, Any]) -> list[str]:
    """Warning if nearly all rows get one prediction, which is right much less often.

    Args:
        evaluation: The evaluation's facts; those of earlier versions have no ``commonest``.
    """
    shares = evaluation.get("commonest") or {"predicted": 0.0, "right": 0.0}
    predicted, right = shares["predicted"], shares["right"]
    if predicted < ONE_ANSWER or predicted - right < BEYOND:
        return []
    return [
        f"The model gives one answer to {predicted:.0%} of the {evaluation['rows']:,} rows, and it"
        f" is right for {right:.0%}: the model does not tell rows apart. Give stage finetune more"
        " rows or epochs, or another learning rate."
    ]


def adds_nothing(training: Mapping[str, Any]) -> list[str]:
    """Note if a network's updates were worse than the n-grams counted beside it; else empty.

    Args:
        training: What the training of stage finetune measured (``metrics.json``).
    """
    selection = training.get("selection")
    if not selection or selection["step"] != 0:
        return []
    metric = selection["metric"]
    after = [each[metric] for each in selection["evaluations"] if each["step"]]
    if not after:
        return []
    return [
        f"The network adds nothing to the n-grams counted beside it: on the dev rows {metric} was"
        f" {selection['value']:.4f} before the first update and {after[best(metric, after)]:.4f} at"
        " best after it. The weights before it were kept, so the answers are those of the n-grams"
        " alone. `family: tfidf` is such a model without a network."
    ]


def _suits(family: str, objectives: Iterable[str]) -> bool:
    """Whether a family can learn these objectives."""
    return all(provided(family) >= {*literals("objectives", each)["NEEDS"]} for each in objectives)


def _advice(stage: Mapping[str, Any], said: ResolvedStage, pieces: int | None) -> str:
    """Advice on settings of the first stage that differ from proven values."""
    tokens = stage["tokens"]
    more = f" ({TOKENS:,} tokens or more; it read {tokens:,})" if tokens < 0.9 * TOKENS else ""
    advice = [f"a larger budget{more}"]
    if pieces is not None:
        if said.family == "bert" and _suits(BETTER, said.objectives):
            advice.append(f"family: {BETTER}, which learns from less text")
        if said.phases[0].sequence_length > SHORT_WINDOW:
            advice.append("short windows first (phases of 16, then 32 and 64 tokens)")
        if said.objectives.get("masked_lm", {}).get("rate", HIDDEN) < HIDDEN:
            advice.append(f"masked_lm with rate {HIDDEN}")
        if said.network.get("dropout", 0.0) > 0:
            advice.append("dropout 0.0 among the values of size")
        if pieces > VOCABULARY:
            few = f"{VOCABULARY // 2:,} to {VOCABULARY:,}"
            advice.append(f"a vocabulary_size of {few} (of Chinese {2 * VOCABULARY:,})")
    told = f"Give stage {stage['stage']} {'; '.join(advice)}."
    if advice[1:]:
        told += " The recipe that `fourstage new` writes has these, with reasons."
    return told
