"""What the words of a row look at in its picture, for people to look at.

Two tables for each row: the attention of its tokens to the regions, in the last block in which they
attend to them, as a mean over the heads; and, where word-region alignment was learned, the plan by
which it carries tokens to regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from models import features as keys
from models.inputs.display import spelled
from models.inputs.rows import framed_rows
from models.protocols import TokenisedRows, Tokenizer
from models.stage_format import head_file
from models.training.trained_stage import load_stage

ROWS = 3
ALIGNMENT = "word_region_alignment"
PLAN = "word_region_plan"


def word_regions(
    folder: Path, tokenizer: Tokenizer, rows: TokenisedRows, folders: Sequence[Path] = ()
) -> list[dict[str, Any]]:
    """Of the first rows: ``id``, ``tokens``, ``attention`` (T, O) and perhaps ``plan`` (T, O).

    Args:
        folder: A stage's folder, whose network sees.
        tokenizer: The recipe's tokenizer.
        rows: Tokenised rows with pictures.
        folders: Project folders, searched first.

    Returns:
        Plain JSON; O is the number of the row's regions. Of a network with one sequence, the rest
        of the attention is to words. Nothing of a family that does not say (`words_to_regions`).
    """
    stage = load_stage(folder, tokenizer, precision="float32", folders=folders)
    if not hasattr(stage.network, "words_to_regions"):
        return []
    batch = framed_rows(rows, np.arange(min(ROWS, len(rows))), stage.context)
    found = {"attention": stage.network.words_to_regions(batch)}
    if head_file(folder, ALIGNMENT).exists():
        scorer = stage.scorer(ALIGNMENT, stage.objective(ALIGNMENT, folders))
        found["plan"] = scorer(batch, stage.network(batch))[1][PLAN]
    tables = {name: np.asarray(keras.ops.convert_to_numpy(each)) for name, each in found.items()}
    made = []
    for row in range(len(batch[keys.TOKEN_IDS])):
        words = batch[keys.PADDING_MASK][row] > 0
        there = batch[keys.REGION_MASK][row] > 0
        own = {name: table[row][words][:, there] for name, table in tables.items()}
        made.append(
            {
                "id": rows.ids[row],
                "tokens": [spelled(tokenizer, i) for i in batch[keys.TOKEN_IDS][row][words]],
                **{name: np.round(table.astype(float), 5).tolist() for name, table in own.items()},
            }
        )
    return made
