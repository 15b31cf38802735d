"""What a table of word vectors is asked: similarities, analogies, and words to draw."""

from __future__ import annotations

from collections.abc import Sequence

from fourstage.recipe.ledger import Ledger
from fourstage.recipe.resolved import ResolvedStage, pretraining_of
from models import catalogue


def resolve_word_relations(
    ledger: Ledger, stages: Sequence[ResolvedStage], scheme: str
) -> tuple[str, ...]:
    """Names of the sources, each once.

    Args:
        ledger: Collects faults.
        stages: The recipe's.
        scheme: Of its tokenizer.
    """
    asked = ledger.evaluate.word_relations or ()
    for i, name in enumerate(asked):
        ledger.source(f"evaluate.word_relations[{i}]", name, labelled=False)
    if asked:
        _check_words(ledger, "evaluate.word_relations", stages, scheme)
    return tuple(dict.fromkeys(asked))


def resolve_word_map(
    ledger: Ledger, stages: Sequence[ResolvedStage], scheme: str
) -> tuple[str, ...]:
    """Words to draw, each once; the arguments are those of `resolve_word_relations`."""
    asked = ledger.evaluate.word_map or ()
    if asked:
        _check_words(ledger, "evaluate.word_map", stages, scheme)
    return tuple(dict.fromkeys(asked))


def _check_words(ledger: Ledger, place: str, stages: Sequence[ResolvedStage], scheme: str) -> None:
    """Refuse a network without one vector a word, and a tokenizer whose tokens are no words."""
    before = pretraining_of(stages)
    if not (before and "static" in catalogue.provided(before[-1].family, ledger.folders)):
        able = catalogue.providing("static", folders=ledger.folders)
        ledger.fault(
            place,
            "expected a stage of pre-training whose network has one vector a word: family"
            f" {' or '.join(able)}",
        )
    if not catalogue.literals("tokenizers", scheme, ledger.folders).get("WHOLE_WORDS"):
        ledger.fault(
            place,
            f"{scheme} spells a word in a text differently from the word alone, so that no token is"
            " a word of the list; use scheme word",
        )
