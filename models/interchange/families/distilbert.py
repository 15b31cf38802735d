"""DistilBERT in transformers 5.23, ``modeling_distilbert.py`` and its configuration."""

from __future__ import annotations

from collections.abc import Iterator

from models.interchange.architecture import Architecture, Link, Settings, dense, norm
from models.interchange.bert_names import embeddings_norm, masked_lm, tables


def network(settings: Settings, pad_id: int) -> Iterator[Link]:
    """All tensors of the network; it has no segments and no pooler."""
    width, inner = settings["hidden_dim"], settings["intermediate_dim"]
    yield from tables("distilbert", settings)
    yield from embeddings_norm("distilbert", settings)
    for number in range(settings["num_layers"]):
        theirs, ours = f"distilbert.transformer.layer.{number}.", f"network/block_{number}/"
        for letter, name in (("q", "query"), ("k", "key"), ("v", "value"), ("out", "output")):
            yield from dense(
                f"{theirs}attention.{letter}_lin", f"{ours}attention/{name}", width, width
            )
        yield from norm(f"{theirs}sa_layer_norm", f"{ours}attention_norm", width)
        yield from dense(f"{theirs}ffn.lin1", f"{ours}intermediate", width, inner)
        yield from dense(f"{theirs}ffn.lin2", f"{ours}output", inner, width)
        yield from norm(f"{theirs}output_layer_norm", f"{ours}output_norm", width)


def heads(settings: Settings, num_labels: int) -> dict[str, list[Link]]:
    """{head: all its tensors}."""
    names = ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias")
    return {"masked_lm": masked_lm(*names, settings)}


ARCHITECTURE = Architecture(
    model_type="distilbert",
    classes={"DistilBertModel": (), "DistilBertForMaskedLM": ("masked_lm",)},
    arguments={
        "vocab_size": ("vocabulary_size", 30522),
        "dim": ("hidden_dim", 768),
        "n_layers": ("num_layers", 6),
        "n_heads": ("num_heads", 12),
        "hidden_dim": ("intermediate_dim", 3072),
        "max_position_embeddings": ("max_sequence_length", 512),
        "activation": ("activation", "gelu"),
        "dropout": ("dropout", 0.1),
    },
    network=network,
    heads=heads,
    copies={"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"},
    demanded={"tie_word_embeddings": True, "pruned_heads": {}},
    fixed={"layer_norm_epsilon": 1e-12},
    attention_dropout="attention_dropout",
)
