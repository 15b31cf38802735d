"""Classify a dataset's rows by the nearest of a few prototypes, with a pre-trained network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.steps.durable import durable
from tasks.steps.prediction_columns import texts_of
from tasks.steps.tokens import ROWS, load_tokenizer
from tasks.store.artifacts import Findings
from tasks.store.kept import kept_rows
from tasks.store.predictions import PREDICTIONS
from tasks.store.steps import Bound

if TYPE_CHECKING:
    from corpora.prepared import PreparedRow


@durable()
def compare_prototypes(step: Bound, folder: Path) -> Findings:
    """Answer episodes by the network's vectors and, the same ones, by TF-IDF.

    The answers are written to a file, a row for each query of each episode, in the format of
    `evaluate_model`; ``asked`` says how many ways and shots.
    """
    import numpy as np
    import pandas

    from corpora.shards import TokenisedRows
    from models.evaluation import prototypes

    settings, inputs = step.step.settings, step.inputs
    split, markings, episodes = (settings[n] for n in ("split", "markings", "episodes"))
    rows = TokenisedRows(inputs["rows"].path(ROWS), split)
    chosen = prototypes.drawn_rows(rows.answers)
    labels, ids = ([of[i] for i in chosen.tolist()] for of in (rows.answers, rows.ids))
    asked = [(ways, shots) for ways in settings["ways"] for shots in settings["shots"]]
    # Refused, if so, before the network is loaded.
    classes = {each: prototypes.rows_by_class(labels, *each) for each in asked}
    by_network = prototypes.network_vectors(
        inputs["stage"].folder,
        load_tokenizer(inputs["tokenizer"]),
        rows,
        chosen,
        markings,
        step.step.given["folders"],
    )
    by_count = prototypes.counted_vectors(*_texts(step, ids), markings)
    products = {
        "predicted": prototypes.inner_products(by_network),
        "baseline": prototypes.inner_products(by_count),
    }
    texts = np.array(texts_of(inputs["dataset"], ids, markings))
    scores: dict[str, dict[str, float]] = {}
    tables = []
    for ways, shots in asked:
        name = f"{ways}_way_{shots}_shot"
        drawn = [
            prototypes.draw(classes[ways, shots], ways, shots, number) for number in range(episodes)
        ]
        queries = np.array([episode.queries for episode in drawn])  # (episodes, N)
        true = np.asarray(labels, object)[queries]
        columns = {}
        for who, of in products.items():
            said = prototypes.answered(of, drawn)
            columns[who] = np.take_along_axis(true, said, 1).ravel()
            found = prototypes.share(said)
            place, reach = ("metrics", "reach") if who == "predicted" else (who, "baseline_reach")
            scores.setdefault(place, {})[name] = found.accuracy
            scores.setdefault(reach, {})[name] = found.reach
        scores.setdefault("chance", {})[name] = 1 / ways
        tables.append(
            pandas.DataFrame(
                {
                    "asked": name,
                    "id": [
                        f"{e}/{ids[q]}" for e, some in enumerate(queries.tolist()) for q in some
                    ],
                    "text": texts[queries.ravel()],
                    "label": true.ravel(),
                    **columns,
                }
            )
        )
    pandas.concat(tables, ignore_index=True).to_parquet(folder / PREDICTIONS)
    named = [any(each.any() for each in rows.entities(i)) for i in chosen.tolist()]
    return Findings(
        {
            "split": split,
            "rows": len(chosen),
            "classes": len(set(labels)),
            "episodes": episodes,
            **scores,
            **({"named": float(np.mean(named))} if any(named) else {}),
        }
    )


def _texts(step: Bound, ids: Sequence[str]) -> tuple[list[list[str]], list[list[str]]]:
    """Columns of texts: those of the train rows, and those of the rows with the given ids."""
    rows = {row.id: row for row in kept_rows(step.inputs["dataset"], step.inputs["contract"])}
    asked = [rows[name] for name in ids]
    train = [row for row in rows.values() if row.split == "train"]
    pairs = asked[0].text_pair is not None

    def columns(some: Sequence[PreparedRow]) -> list[list[str]]:
        return [[row.text for row in some]] + (
            [[row.text_pair or "" for row in some]] if pairs else []
        )

    return columns(train), columns(asked)
