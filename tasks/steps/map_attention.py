"""Find what the tokens of texts attend to in a stage's network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.steps.durable import durable
from tasks.steps.tokens import ROWS, load_tokenizer
from tasks.store.artifacts import Findings
from tasks.store.attention_file import ATTENTION
from tasks.store.steps import Bound

if TYPE_CHECKING:
    import pyarrow

    from models.evaluation.attention_maps import AttentionMap


@durable()
def map_attention(step: Bound, folder: Path) -> Findings:
    """Write the weights of every layer and head, a line for each pair of tokens.

    Sentences of the recipe come first, then rows, as many as there are. Of rows with choices the
    first choice is read.
    """
    import pyarrow
    import pyarrow.parquet

    from corpora.shards import TokenisedRows
    from models.evaluation.attention_maps import Sentences, attention_maps, sentences
    from models.training.trained_stage import load_stage

    settings, folders = step.step.settings, step.step.given["folders"]
    tokenizer = load_tokenizer(step.inputs["tokenizer"])
    asked = sentences(settings["texts"], tokenizer)
    ids, texts = list(asked.ids), [asked.texts(i) for i in range(len(asked))]
    if "rows" in step.inputs:
        dev = TokenisedRows(step.inputs["rows"].path(ROWS), "dev")
        some = range(min(settings["rows"], len(dev)))
        ids += [dev.ids[i] for i in some]
        texts += [dev.texts(i)[:2] for i in some]
    folder_of = step.inputs["stage"].folder
    stage = load_stage(folder_of, tokenizer, precision="float32", folders=folders)
    told, tables = [], []
    every = Sentences(ids, texts)
    for number, text in enumerate(attention_maps(stage, every, settings["layers"], folders), 1):
        kinds: dict[str, dict[str, int]] = {}
        for each in text.maps:
            tables.append(lines(number, text.id, each))
            heads, asking, seen = each.weights.shape
            own = kinds.setdefault(each.kind, {"layers": 0, "heads": heads})
            own |= {"layers": own["layers"] + 1, "asking": asking, "seen": seen}
        told.append(
            {"id": text.id, "tokens": text.tokens, "left_out": text.left_out, "kinds": kinds}
        )
    if tables:
        pyarrow.parquet.write_table(pyarrow.concat_tables(tables), folder / ATTENTION)
    return Findings({"texts": told})


def lines(number: int, name: str, found: AttentionMap) -> pyarrow.Table:
    """The weights of a layer, a line for each pair of tokens; all numbers count from 1."""
    import pyarrow

    head, asking, seen = (axis.ravel() for axis in np.indices(found.weights.shape, np.int32))
    count = found.weights.size
    return pyarrow.table(
        {
            "text": np.full(count, number, np.int32),
            "id": [name] * count,
            "kind": [found.kind] * count,
            "layer": np.full(count, found.layer, np.int32),
            "head": head + 1,
            "asking": asking + 1,
            "asking_token": np.array(found.asking, object)[asking],
            "seen": seen + 1,
            "seen_token": np.array(found.seen, object)[seen],
            "weight": found.weights.ravel(),
        }
    )
