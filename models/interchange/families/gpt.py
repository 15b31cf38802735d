"""GPT in transformers 5.23, ``modeling_openai.py`` and ``configuration_openai.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fourstage.errors import RecipeError
from models.interchange.architecture import Architecture, Link, Settings
from models.interchange.gpt_names import ARGUMENTS, blocks, heads, tables


def network(settings: Settings, pad_id: int) -> Iterator[Link]:
    """All tensors of the network."""
    yield from tables("tokens_embed", "positions_embed", settings)
    yield from blocks(settings)


def read(settings: dict[str, Any], config: Mapping[str, Any], pad_id: int) -> None:
    """Their feed-forward network is always four times as wide as a token's vector."""
    settings["intermediate_dim"] = 4 * settings["hidden_dim"]


def write(config: dict[str, Any], settings: Mapping[str, Any], pad_id: int) -> None:
    """Refuse another width of the feed-forward network."""
    if settings["intermediate_dim"] != 4 * settings["hidden_dim"]:
        raise RecipeError(
            f"intermediate_dim: their openai-gpt supports only {4 * settings['hidden_dim']}, four"
            f" times hidden_dim, this network has {settings['intermediate_dim']}"
        )
    config |= {"afn": "gelu", "embd_pdrop": settings["dropout"]}


ARCHITECTURE = Architecture(
    model_type="openai-gpt",
    their_prefix="transformer",
    classes={"OpenAIGPTModel": (), "OpenAIGPTLMHeadModel": ("causal_lm",)},
    arguments=ARGUMENTS
    | {
        "vocab_size": ("vocabulary_size", 40478),
        "n_positions": ("max_sequence_length", 512),
    },
    network=network,
    heads=heads,
    copies={"lm_head.weight": "transformer.tokens_embed.weight"},
    demanded={"afn": "gelu", "tie_word_embeddings": True},
    fixed={"activation": "gelu_tanh"},  # what their ``afn: gelu`` is
    read=read,
    write=write,
    attention_dropout="attn_pdrop",
    pad_id=None,
    special_ids={"bos_token_id": "cls", "eos_token_id": "sep"},
)
