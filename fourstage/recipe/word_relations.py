"""Sources of similarities and analogies that word vectors are held against."""

from __future__ import annotations

from collections.abc import Sequence

from fourstage.recipe.ledger import Ledger
from fourstage.recipe.resolved import ResolvedStage, of_last_network
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
    evaluate = ledger.recipe.evaluate
    asked = (evaluate and evaluate.word_relations) or ()
    for i, name in enumerate(asked):
        ledger.source(f"evaluate.word_relations[{i}]", name, labelled=False)
    before = [stage for stage in of_last_network(stages) if stage.kind != "finetune"]
    if asked and not (before and "static" in catalogue.provided(before[-1].family, ledger.folders)):
        able = [
            name
            for name in catalogue.names("families", ledger.folders)
            if "static" in catalogue.provided(name, ledger.folders)
        ]
        ledger.fault(
            "evaluate.word_relations",
            "expected a stage of pre-training whose network has one vector a word: family"
            f" {' or '.join(able)}",
        )
    if asked and not catalogue.literals("tokenizers", scheme, ledger.folders).get("WHOLE_WORDS"):
        ledger.fault(
            "evaluate.word_relations",
            f"{scheme} writes a word otherwise at its place in a text, so that no token is the word"
            " of a list; use scheme word",
        )
    return tuple(dict.fromkeys(asked))
