"""BART in transformers 5.23, ``modeling_bart.py`` and ``configuration_bart.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fourstage.errors import RecipeError
from models.interchange.architecture import Architecture, Link, Settings, dense, norm, table
from models.interchange.bart_names import ALIKE, ARGUMENTS, COPIES, blocks, check_alike

END = 2  # their default id of the token that ends a text, and of the one that begins a target
UNUSED = 2  # rows at the start of their position tables that no token reads


def network(settings: Settings, pad_id: int) -> Iterator[Link]:
    """All tensors of the network."""
    width = settings["hidden_dim"]
    ours = "network/embeddings/token"
    yield table("model.shared", ours, settings["vocabulary_size"], width)
    yield from _side("encoder", "embeddings", settings)
    yield from blocks("encoder", settings)
    yield from _side("decoder", "decoder_embeddings", settings)
    yield from blocks("decoder", settings)


def _side(side: str, ours: str, settings: Settings) -> Iterator[Link]:
    """Positions and LayerNorm of the encoder's or the decoder's embeddings."""
    theirs, width = f"model.{side}.", settings["hidden_dim"]
    yield table(
        f"{theirs}embed_positions",
        f"network/{ours}/position",
        settings["max_sequence_length"] + UNUSED,
        width,
        rows_before=UNUSED,
    )
    yield from norm(f"{theirs}layernorm_embedding", f"network/{ours}/norm", width)


def heads(settings: Settings, num_labels: int) -> dict[str, list[Link]]:
    """{head: all its tensors}: the token table writes."""
    width, ours = settings["hidden_dim"], "sequence_classification/"
    return {
        "text_infilling": [],
        "sequence_classification": [
            *dense("classification_head.dense", f"{ours}pooler", width, width),
            *dense("classification_head.out_proj", f"{ours}output", width, num_labels),
        ],
    }


def read(settings: dict[str, Any], config: Mapping[str, Any], pad_id: int) -> None:
    """Refuse a decoder whose blocks are of another shape, and a target that begins otherwise."""
    check_alike(config, "bart")
    ends, begin = (config.get(key, END) for key in ("eos_token_id", "decoder_start_token_id"))
    if begin != ends:
        raise RecipeError(
            f"decoder_start_token_id: expected {str(ends)[:80]}, as eos_token_id, got"
            f" {str(begin)[:80]}; our bart begins every target with the token that ends a text"
        )


def write(config: dict[str, Any], settings: Mapping[str, Any], pad_id: int) -> None:
    """The decoder's blocks are of the encoder's shape."""
    config |= {key: config[other] for key, other in ALIKE.items()}


ARCHITECTURE = Architecture(
    model_type="bart",
    their_prefix="model",
    classes={
        "BartModel": (),
        "BartForConditionalGeneration": ("text_infilling",),
        "BartForSequenceClassification": ("sequence_classification",),
    },
    arguments=ARGUMENTS,
    network=network,
    heads=heads,
    copies=COPIES,
    demanded={
        "tie_word_embeddings": True,
        "scale_embedding": False,
        "normalize_before": False,
        "normalize_embedding": True,
        "add_final_layer_norm": False,
    },
    fixed={"layer_norm_epsilon": 1e-5},
    read=read,
    write=write,
    attention_dropout="attention_dropout",
    pad_id=1,
    zeros={"final_logits_bias": ("text_infilling", (1, "vocabulary_size"))},
    special_ids={
        "bos_token_id": "cls",
        "forced_bos_token_id": "cls",  # a target begins with it
        "eos_token_id": "sep",
        "decoder_start_token_id": "sep",
        "forced_eos_token_id": "sep",
    },
)
