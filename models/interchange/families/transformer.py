"""The Transformer as Marian in transformers 5.23, ``modeling_marian.py``.

Their table of positions has all sines before all cosines, ours (Vaswani et al. 2017, 3.5) one after
the other. Their class makes the table itself, whatever the file has. So here the places of a
token's vector are put in another order, in all tensors that have them, which changes no result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fourstage.errors import RecipeError
from models.interchange.architecture import Architecture, Link, Settings, dense, norm, table
from models.interchange.bart_names import ALIKE, ARGUMENTS, COPIES, blocks, check_alike
from models.interchange.unigram_files import write_marian
from models.layers.sinusoids import Sinusoids


def network(settings: Settings, pad_id: int) -> Iterator[Link]:
    """All tensors of the network."""
    width, rows = settings["hidden_dim"], settings["vocabulary_size"]
    yield table("model.shared", "network/embeddings/token", rows, width, halved=(1,))
    for side in ("encoder", "decoder"):
        yield from blocks(side, settings, _reads, _writes, _norm)
    if settings["biased_output"]:
        yield Link("final_logits_bias", "network/output_bias", (1, rows), as_ours=(rows,))


def _reads(theirs: str, ours: str, inputs: int, outputs: int) -> Iterator[Link]:
    """A dense layer whose inputs are the places of a token's vector."""
    kernel, bias = dense(theirs, ours, inputs, outputs)
    yield replace(kernel, halved=(1,))
    yield bias


def _writes(theirs: str, ours: str, inputs: int, outputs: int) -> Iterator[Link]:
    """A dense layer whose outputs are the places of a token's vector."""
    for link in dense(theirs, ours, inputs, outputs):
        yield replace(link, halved=(0,))


def _norm(theirs: str, ours: str, width: int) -> Iterator[Link]:
    for link in norm(theirs, ours, width):
        yield replace(link, halved=(0,))


def positions(settings: Settings) -> np.ndarray:
    """Their table of positions, (P, D)."""
    ours = Sinusoids(settings["max_sequence_length"], settings["hidden_dim"]).embeddings
    return np.concatenate([ours[:, 0::2], ours[:, 1::2]], axis=1)


def heads(settings: Settings, num_labels: int) -> dict[str, list[Link]]:
    """{head: all its tensors}: the token table writes."""
    return {"sequence_to_sequence": []}


def read(settings: dict[str, Any], config: Mapping[str, Any], pad_id: int) -> None:
    """How a target begins, and whether there is a bias; refuse what ours cannot compute."""
    if config.get("scale_embedding", False) is not True:
        raise RecipeError("scale_embedding: expected true; our transformer has no other")
    check_alike(config, "transformer")
    rows = settings["vocabulary_size"]
    if config.get("decoder_vocab_size") not in (None, rows):
        raise RecipeError(
            f"decoder_vocab_size: expected {rows}, as vocab_size, got"
            f" {str(config['decoder_vocab_size'])[:80]}; our transformer has one value for both"
        )
    begins = {pad_id: "pad", config.get("eos_token_id", 0): "sep"}
    begin = config.get("decoder_start_token_id", pad_id)
    if not isinstance(begin, int) or begin not in begins:
        raise RecipeError(
            f"decoder_start_token_id: expected {' or '.join(map(str, begins))}, the id of padding"
            f" or of a text's end, got {str(begin)[:80]}"
        )
    settings["begins_with"] = begins[begin]
    settings["biased_output"] = config.get("architectures") != ["MarianModel"]


def write(config: dict[str, Any], settings: Mapping[str, Any], pad_id: int) -> None:
    """The inverse of `read`."""
    config |= {key: config[other] for key, other in ALIKE.items()}
    config |= {"scale_embedding": True, "share_encoder_decoder_embeddings": True}
    if settings["activation"] == "silu":
        config["activation_function"] = "swish"  # the name in their published files
    if settings["begins_with"] == "pad":
        config["decoder_start_token_id"] = pad_id


ARCHITECTURE = Architecture(
    model_type="marian",
    their_prefix="model",
    # The first is written: their class without the output has no place for its bias.
    classes={"MarianMTModel": ("sequence_to_sequence",), "MarianModel": ()},
    arguments={**ARGUMENTS, "vocab_size": ("vocabulary_size", 58101)},
    network=network,
    heads=heads,
    copies=COPIES,
    demanded={
        "tie_word_embeddings": True,
        "share_encoder_decoder_embeddings": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
    },
    fixed={"layer_norm_epsilon": 1e-5},
    read=read,
    write=write,
    attention_dropout="attention_dropout",
    pad_id=58100,
    computed={
        "model.encoder.embed_positions.weight": positions,
        "model.decoder.embed_positions.weight": positions,
    },
    special_ids={
        "eos_token_id": "sep",
        "forced_eos_token_id": "sep",
        "decoder_start_token_id": "sep",
    },
    more_files=write_marian,
)
