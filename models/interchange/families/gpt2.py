"""GPT-2 in transformers 5.23, ``modeling_gpt2.py`` and ``configuration_gpt2.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fourstage.errors import RecipeError
from models.interchange.architecture import Architecture, Link, Settings, norm
from models.interchange.gpt_names import ARGUMENTS, blocks, heads, tables


def network(settings: Settings, pad_id: int) -> Iterator[Link]:
    """All tensors of the network."""
    yield from tables("wte", "wpe", settings)
    yield from blocks(settings)
    yield from norm("transformer.ln_f", "network/final_norm", settings["hidden_dim"])


def read(settings: dict[str, Any], config: Mapping[str, Any], pad_id: int) -> None:
    """The feed-forward network is four times as wide as a token's vector, unless they say."""
    inner = config.get("n_inner") or 4 * settings["hidden_dim"]
    if isinstance(inner, bool) or not isinstance(inner, int) or not 0 < inner < 1_000_000:
        raise RecipeError(f"n_inner: expected a whole number or null, got {str(inner)[:80]}")
    settings["intermediate_dim"] = inner


def write(config: dict[str, Any], settings: Mapping[str, Any], pad_id: int) -> None:
    """The inverse of `read`; without a tokenizer a text ends with the padding id."""
    config["n_inner"] = settings["intermediate_dim"]
    config["embd_pdrop"] = settings["dropout"]
    for key in ("bos_token_id", "eos_token_id"):
        config.setdefault(key, pad_id)


ARCHITECTURE = Architecture(
    model_type="gpt2",
    their_prefix="transformer",
    classes={"GPT2Model": (), "GPT2LMHeadModel": ("causal_lm",)},
    arguments=ARGUMENTS
    | {
        "vocab_size": ("vocabulary_size", 50257),
        "n_positions": ("max_sequence_length", 1024),
        "activation_function": ("activation", "gelu_new"),
    },
    network=network,
    heads=heads,
    copies={"lm_head.weight": "transformer.wte.weight"},
    demanded={
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "reorder_and_upcast_attn": False,
        "add_cross_attention": False,
        "tie_word_embeddings": True,
    },
    read=read,
    write=write,
    attention_dropout="attn_pdrop",
    pad_id=None,
    special_ids={"bos_token_id": "cls", "eos_token_id": "sep"},
)
