"""ALBERT in transformers 5.23, ``modeling_albert.py`` and ``configuration_albert.py``."""

from __future__ import annotations

from collections.abc import Iterator

from models.interchange.architecture import Architecture, Link, Settings, dense, norm
from models.interchange.bert_names import (
    ARGUMENTS,
    DEMANDED,
    embeddings_norm,
    masked_lm,
    pooler,
    row_classes,
    segments,
    tables,
    width_of_tables,
)


def network(settings: Settings, pad_id: int) -> Iterator[Link]:
    """All tensors of the network; embeddings are projected even if the widths are equal."""
    width, inner = settings["hidden_dim"], settings["intermediate_dim"]
    yield from tables("albert", settings)
    yield segments("albert", settings)
    yield from embeddings_norm("albert", settings)
    projection = "albert.encoder.embedding_hidden_mapping_in"
    yield from dense(projection, "network/embedding_projection", width_of_tables(settings), width)
    in_group = settings["num_inner_blocks"]
    for number in range(settings["num_groups"] * in_group):
        group, place = divmod(number, in_group)
        theirs = f"albert.encoder.albert_layer_groups.{group}.albert_layers.{place}."
        ours = f"network/block_{number}/"
        for name in ("query", "key", "value"):
            yield from dense(f"{theirs}attention.{name}", f"{ours}attention/{name}", width, width)
        yield from dense(f"{theirs}attention.dense", f"{ours}attention/output", width, width)
        yield from norm(f"{theirs}attention.LayerNorm", f"{ours}attention_norm", width)
        yield from dense(f"{theirs}ffn", f"{ours}intermediate", width, inner)
        yield from dense(f"{theirs}ffn_output", f"{ours}output", inner, width)
        yield from norm(f"{theirs}full_layer_layer_norm", f"{ours}output_norm", width)
    yield from pooler("albert.pooler", settings)


def heads(settings: Settings, num_labels: int) -> dict[str, list[Link]]:
    """{head: all its tensors}."""
    start = "predictions."
    return {
        "masked_lm": masked_lm(f"{start}dense", f"{start}LayerNorm", f"{start}bias", settings),
        "sentence_order": row_classes("sop_classifier.classifier", "sentence_order", 2, settings),
        "sequence_classification": row_classes(
            "classifier", "sequence_classification", num_labels, settings
        ),
    }


ARCHITECTURE = Architecture(
    model_type="albert",
    classes={
        "AlbertModel": (),
        "AlbertForMaskedLM": ("masked_lm",),
        "AlbertForPreTraining": ("masked_lm", "sentence_order"),
        "AlbertForSequenceClassification": ("sequence_classification",),
    },
    arguments={
        **ARGUMENTS,
        "vocab_size": ("vocabulary_size", 30000),
        "embedding_size": ("embedding_dim", 128),
        "hidden_size": ("hidden_dim", 4096),
        "num_hidden_groups": ("num_groups", 1),
        "inner_group_num": ("num_inner_blocks", 1),
        "num_attention_heads": ("num_heads", 64),
        "intermediate_size": ("intermediate_dim", 16384),
        "hidden_act": ("activation", "gelu_new"),
        "hidden_dropout_prob": ("dropout", 0.0),
    },
    network=network,
    heads=heads,
    copies={
        "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    },
    demanded=DEMANDED,
)
