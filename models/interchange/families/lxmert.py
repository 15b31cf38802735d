"""LXMERT in transformers 5.23, ``modeling_lxmert.py`` and ``configuration_lxmert.py``.

Their class for pre-training has heads for pairs, regions and answers, with other outputs than ours:
it is read without them, and a network is written as `LxmertModel`.
"""

from __future__ import annotations

from collections.abc import Iterator

from models.interchange.architecture import Architecture, Link, Settings, dense, norm
from models.interchange.bert_names import (
    ARGUMENTS,
    block,
    embeddings_norm,
    masked_lm_alone,
    pooler,
    segments,
    tables,
)

SIDES = {"lang": "", "visn": "regions/"}  # theirs: ours, of a cross-modality layer


def network(settings: Settings, pad_id: int) -> Iterator[Link]:
    """All tensors of the network."""
    width, theirs, regions = settings["hidden_dim"], "lxmert.encoder.", "network/region_encoder/"
    yield from tables("lxmert", settings)
    yield segments("lxmert", settings)
    yield from embeddings_norm("lxmert", settings)
    for number in range(settings["num_layers"]):
        yield from block(f"{theirs}layer.{number}.", number, settings)
    for number in range(settings["num_cross_layers"]):
        ours = f"network/block_{settings['num_layers'] + number}/"
        yield from _cross_layer(f"{theirs}x_layers.{number}.", ours, settings)
    for name, inputs in (("visn", settings["region_dim"]), ("box", 4)):
        ours = f"{regions}{'feature' if name == 'visn' else name}_embedding"
        yield from dense(f"{theirs}visn_fc.{name}_fc", ours, inputs, width)
        yield from norm(f"{theirs}visn_fc.{name}_layer_norm", f"{ours}_norm", width)
    for number in range(settings["num_region_layers"]):
        yield from block(f"{theirs}r_layers.{number}.", number, settings, regions)
    yield from pooler("lxmert.pooler.dense", settings)


def _cross_layer(theirs: str, ours: str, settings: Settings) -> Iterator[Link]:
    """A layer of both streams."""
    width, inner = settings["hidden_dim"], settings["intermediate_dim"]
    shared = f"{theirs}visual_attention."
    yield from _attention(f"{shared}att", f"{shared}output", f"{ours}cross_attention", width)
    yield from norm(f"{shared}output.LayerNorm", f"{ours}cross_norm", width)
    for side, prefix in SIDES.items():
        own, here = f"{theirs}{side}_self_att.", f"{ours}{prefix}"
        yield from _attention(f"{own}self", f"{own}output", f"{here}attention", width)
        yield from norm(f"{own}output.LayerNorm", f"{here}attention_norm", width)
        yield from dense(f"{theirs}{side}_inter.dense", f"{here}intermediate", width, inner)
        yield from dense(f"{theirs}{side}_output.dense", f"{here}output", inner, width)
        yield from norm(f"{theirs}{side}_output.LayerNorm", f"{here}output_norm", width)


def _attention(theirs: str, their_output: str, ours: str, width: int) -> Iterator[Link]:
    for name in ("query", "key", "value"):
        yield from dense(f"{theirs}.{name}", f"{ours}/{name}", width, width)
    yield from dense(f"{their_output}.dense", f"{ours}/output", width, width)


ARCHITECTURE = Architecture(
    model_type="lxmert",
    classes={"LxmertModel": ()},
    arguments={
        key: value
        for key, value in ARGUMENTS.items()
        if key not in ("num_hidden_layers", "layer_norm_eps")
    }
    | {
        "l_layers": ("num_layers", 9),
        "r_layers": ("num_region_layers", 5),
        "x_layers": ("num_cross_layers", 5),
        "visual_feat_dim": ("region_dim", 2048),
    },
    network=network,
    heads=masked_lm_alone,
    copies={"cls.predictions.decoder.weight": "lxmert.embeddings.word_embeddings.weight"},
    demanded={"visual_pos_dim": 4, "tie_word_embeddings": True},
    fixed={"layer_norm_epsilon": 1e-12},
    # Full names: what has no known first part gets the prefix.
    ignored=("cls.seq_relationship.", "lxmert.obj_predict_head.", "lxmert.answer_head."),
)
