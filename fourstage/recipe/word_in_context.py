"""Words in sentences, for networks that have vectors of them there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fourstage.errors import listed
from fourstage.recipe.ledger import Ledger
from fourstage.recipe.resolved import ResolvedStage, pretraining_of
from models import catalogue
from models.evaluation.marked_words import word_in


def resolve_word_in_context(ledger: Ledger, stages: Sequence[ResolvedStage]) -> tuple[str, ...]:
    """Names of the datasets, each once."""
    asked = ledger.evaluate.word_in_context or ()
    for i, name in enumerate(asked):
        place = f"evaluate.word_in_context[{i}]"
        ledger.source(place, name, labelled=True)
        ledger.answers(place, name, "label", "a word in context")
        ledger.pairs(place, name, "a word in context")
    if asked:
        check_vectors(ledger, "evaluate.word_in_context", stages)
    return tuple(dict.fromkeys(asked))


def resolve_polysemy(
    ledger: Ledger, stages: Sequence[ResolvedStage]
) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Sentences by word and sense, each with its word."""
    asked = ledger.evaluate.polysemy or {}
    for word, senses in asked.items():
        for sense, texts in senses.items():
            for number, text in enumerate(texts):
                if not word.strip() or word_in(text, word) is None:
                    ledger.fault(
                        f"evaluate.polysemy.{word}.{sense}[{number}]",
                        "expected a sentence with the word as it is written here, in any case",
                    )
    if asked:
        check_vectors(ledger, "evaluate.polysemy", stages)
    return asked


def check_vectors(ledger: Ledger, place: str, stages: Sequence[ResolvedStage]) -> None:
    """Refuse a recipe without a stage of pre-training whose network gives a token a vector."""
    before = pretraining_of(stages)
    if not before:
        ledger.fault(place, "there is no pre-trained network to look at; add a stage general")
        return
    family = before[-1].family
    literals = catalogue.literals("families", family, ledger.folders)
    if _counts(literals):
        others = [
            name
            for name in catalogue.names("families", ledger.folders)
            if not _counts(catalogue.literals("families", name, ledger.folders))
        ]
        ledger.fault(
            place, f"family {family!r} counts and has no vectors; {listed(others, 5)} have some"
        )


def _counts(literals: Mapping[str, Any]) -> bool:
    """Whether a family is counted, not trained by gradient descent."""
    return bool(literals.get("TRAINS") or literals.get("COUNTS"))
