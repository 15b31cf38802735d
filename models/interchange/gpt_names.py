"""Hugging Face's names of settings and tensors of GPT and GPT-2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from models.interchange.architecture import Link, Settings, norm, table

ARGUMENTS: dict[str, tuple[str, Any]] = {
    "n_embd": ("hidden_dim", 768),
    "n_layer": ("num_layers", 12),
    "n_head": ("num_heads", 12),
    "resid_pdrop": ("dropout", 0.1),
    "layer_norm_epsilon": ("layer_norm_epsilon", 1e-5),
}


def product(theirs: str, ours: str, inputs: int, outputs: int, **more: Any) -> Iterator[Link]:
    """A dense layer of theirs, whose kernel is as ours, not transposed."""
    yield Link(f"{theirs}.weight", f"{ours}/kernel", (inputs, outputs), **more)
    yield Link(f"{theirs}.bias", f"{ours}/bias", (outputs,), **more)


def tables(tokens: str, positions: str, settings: Settings) -> Iterator[Link]:
    """The token table and the position table."""
    width, ours = settings["hidden_dim"], "network/embeddings/"
    yield table(f"transformer.{tokens}", f"{ours}token", settings["vocabulary_size"], width)
    yield table(
        f"transformer.{positions}", f"{ours}position", settings["max_sequence_length"], width
    )


def blocks(settings: Settings) -> Iterator[Link]:
    """All blocks; query, key and value are one tensor of theirs."""
    width, inner = settings["hidden_dim"], settings["intermediate_dim"]
    for number in range(settings["num_layers"]):
        theirs, ours = f"transformer.h.{number}.", f"network/block_{number}/"
        for place, name in enumerate(("query", "key", "value")):
            fused, own = f"{theirs}attn.c_attn", f"{ours}attention/{name}"
            yield from product(fused, own, width, 3 * width, part=(place, 3))
        yield from product(f"{theirs}attn.c_proj", f"{ours}attention/output", width, width)
        yield from norm(f"{theirs}ln_1", f"{ours}attention_norm", width)
        yield from product(f"{theirs}mlp.c_fc", f"{ours}intermediate", width, inner)
        yield from product(f"{theirs}mlp.c_proj", f"{ours}output", inner, width)
        yield from norm(f"{theirs}ln_2", f"{ours}output_norm", width)


def heads(settings: Settings, num_labels: int) -> dict[str, list[Link]]:
    """{head: all its tensors}: the token table makes the predictions."""
    return {"causal_lm": []}
