"""A BERT as the start of a UniLM: the same network, with segments of their own for each mode."""

from __future__ import annotations

from dataclasses import replace

from fourstage.errors import RecipeError
from models.interchange.huggingface import PretrainedNetwork
from models.modes import SEGMENT_ROWS

FAMILY = "unilm"
SEGMENTS = "embeddings/segment/embeddings"


def as_unilm(bert: PretrainedNetwork) -> PretrainedNetwork:
    """The same weights as a network of family ``unilm``.

    A mode's segments begin as BERT's first and second segment; text that is read in one direction
    begins as the first. With both pre-training heads there is that of ``unified_lm``.

    Args:
        bert: A BERT with two segments, or with the six of a UniLM.

    Raises:
        RecipeError: It is of another family, has another number of segments, or is pre-LN.

    Reference:
        ``modeling.py`` of microsoft/unilm, where a checkpoint with two segments is loaded.
    """
    rows = 1 + max(map(max, SEGMENT_ROWS))
    given = bert.settings.get("num_segments")
    if bert.family != "bert" or given not in (2, rows):
        raise RecipeError(
            f"expected a bert with 2 or {rows} segments to start {FAMILY} from, got a"
            f" {bert.family} with {given or 'no'} segments"
        )
    if bert.settings.get("norm_first"):
        raise RecipeError(f"norm_first: our {FAMILY} supports only False, this bert has True")
    network = dict(bert.network)
    if given != rows and SEGMENTS in network:
        source: dict[int, int] = {}
        for pair in SEGMENT_ROWS:
            for segment, row in enumerate(pair):
                source.setdefault(row, segment)
        network[SEGMENTS] = network[SEGMENTS][[source[row] for row in range(rows)]]
    heads = dict(bert.heads)
    if {"masked_lm", "next_sentence"} <= heads.keys():
        parts = {"tokens": heads.pop("masked_lm"), "pairs": heads.pop("next_sentence")}
        heads["unified_lm"] = {
            f"{part}/{name}": array
            for part, weights in parts.items()
            for name, array in weights.items()
        }
    settings = {**bert.settings, "num_segments": rows}
    settings.pop("norm_first", None)  # its blocks have no such choice
    return replace(bert, family=FAMILY, settings=settings, network=network, heads=heads)
