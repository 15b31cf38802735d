"""Datasets of triples whose heads and tails a pre-trained network ranks."""

from __future__ import annotations

from collections.abc import Sequence

from fourstage.recipe.ledger import Ledger
from fourstage.recipe.resolved import ResolvedStage, pretraining_of
from models import catalogue


def resolve_links(ledger: Ledger, stages: Sequence[ResolvedStage]) -> tuple[str, ...]:
    """Names of the datasets, each once."""
    asked = ledger.evaluate.links or ()
    for i, name in enumerate(asked):
        ledger.source(f"evaluate.links[{i}]", name, labelled=True)
    before = pretraining_of(stages)
    able = catalogue.saying("objectives", "READS_TRIPLES", ledger.folders)
    if asked and not (before and {*able} & before[-1].objectives.keys()):
        ledger.fault(
            "evaluate.links",
            f"expected {' or '.join(able)} as the objective of the last stage of pre-training,"
            " which gives entities and relations their vectors",
        )
    return tuple(dict.fromkeys(asked))
