"""VisualBERT in transformers 5.23, ``modeling_visual_bert.py``, ``configuration_visual_bert.py``.

Their class for pre-training has a head that tells whether a caption is the picture's, which ours
has not: it is read without it, and a network is written as `VisualBertModel`.
"""

from __future__ import annotations

from collections.abc import Iterator

from models.interchange.architecture import Architecture, Link, Settings, dense, table
from models.interchange.bert_names import (
    ARGUMENTS,
    blocks,
    embeddings_norm,
    masked_lm_alone,
    pooler,
    segments,
    tables,
)


def network(settings: Settings, pad_id: int) -> Iterator[Link]:
    """All tensors of the network."""
    width, theirs = settings["hidden_dim"], "visual_bert.embeddings.visual_"
    yield from tables("visual_bert", settings)
    yield segments("visual_bert", settings)
    yield from embeddings_norm("visual_bert", settings)
    yield from blocks("visual_bert", settings)
    yield from pooler("visual_bert.pooler.dense", settings)
    yield from dense(
        f"{theirs}projection", "network/region_embedding", settings["region_dim"], width
    )
    for name, ours, rows in (
        ("position", "position", settings["max_sequence_length"]),
        ("token_type", "segment", settings["num_segments"]),
    ):
        yield table(f"{theirs}{name}_embeddings", f"network/region_{ours}", rows, width)


ARCHITECTURE = Architecture(
    model_type="visual_bert",
    classes={"VisualBertModel": ()},
    arguments={key: value for key, value in ARGUMENTS.items() if key != "type_vocab_size"}
    | {"visual_embedding_dim": ("region_dim", 512)},
    network=network,
    heads=masked_lm_alone,
    copies={
        "cls.predictions.decoder.weight": "visual_bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    # Theirs gives regions segment 1, ours the last one.
    demanded={"bypass_transformer": False, "type_vocab_size": 2, "tie_word_embeddings": True},
    fixed={"num_segments": 2},
    ignored=("cls.seq_relationship.",),
    pad_id=1,
)
