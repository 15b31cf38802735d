"""Rank the heads and tails of a dataset's triples among all entities."""

from __future__ import annotations

from pathlib import Path

from tasks.steps.durable import durable
from tasks.steps.tokens import ROWS, load_tokenizer
from tasks.store.artifacts import Findings
from tasks.store.predictions import PREDICTIONS
from tasks.store.steps import Bound


@durable()
def rank_links(step: Bound, folder: Path) -> Findings:
    """Rank heads and tails by the pre-trained network's vectors, filtered by all known triples.

    A triple with a name that is not in the vocabulary has no place: its head and its tail count as
    the last of all entities. The ranks are written to a file, by the id of the row.
    """
    import pandas

    from corpora.shards import TokenisedRows
    from models.evaluation.link_prediction import link_ranks, link_scores

    split = step.step.settings["split"]
    path = step.inputs["rows"].path(ROWS)
    asked = TokenisedRows(path, split)
    found = link_ranks(
        step.inputs["stage"].folder,
        load_tokenizer(step.inputs["tokenizer"]),
        asked,
        TokenisedRows(path),
        step.step.given["folders"],
    )
    ranks = pandas.DataFrame(
        {"id": asked.ids, "head": found.ranks[:, 0], "tail": found.ranks[:, 1]}
    )
    ranks.to_parquet(folder / PREDICTIONS)
    return Findings(
        {
            "split": split,
            "rows": len(asked),
            "entities": found.entities,
            "unknown": found.unknown,
            "metrics": link_scores(found.ranks),
            "metrics_of_heads": link_scores(found.ranks[:, 0]),
            "metrics_of_tails": link_scores(found.ranks[:, 1]),
        }
    )
