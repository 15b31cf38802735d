"""Top layers of a pre-trained network that begin at random again.

They are the most specialised in what the network was pre-trained for; with few labelled rows,
fine-tuning is steadier and often better when it learns them anew.

Reference:
    Zhang et al. 2021, "Revisiting Few-sample BERT Fine-tuning", arXiv 2006.05987, section 5.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from fourstage.errors import RecipeError
from models.weights import named_weights

_TOP = re.compile(r"block_(\d+)/")


def fresh_layers(kind: str, network: Any, count: int) -> list[tuple[Any, np.ndarray]]:
    """The weights of the top blocks and of the pooler, each with its present value.

    Asked for before a network's weights are loaded, the values are those drawn by the stage's seed.

    Args:
        kind: The stage's kind, for messages.
        network: A built network.
        count: Number of blocks, at least 1.

    Raises:
        RecipeError: The network has fewer layers, or not one block of its own for each of them; or
            one of these weights is frozen.
    """
    named = named_weights(network)
    layer = {path: int(match[1]) for path in named if (match := _TOP.match(path))}
    layers = getattr(network, "num_layers", None)
    if layers is None or set(layer.values()) != set(range(layers)):
        raise RecipeError(
            f"{kind}: reinitialise: expected an encoder or decoder in which every layer is a block"
            " with weights of its own; this network has none, shares them between layers, or has"
            " several stacks; leave it out"
        )
    if count > layers:
        raise RecipeError(f"{kind}: reinitialise: expected at most {layers} layers, got {count}")
    fresh = {
        path: variable
        for path, variable in named.items()
        if layer.get(path, -1) >= layers - count or path.startswith("pooler/")
    }
    if frozen := [path for path, variable in fresh.items() if not variable.trainable]:
        raise RecipeError(
            f"{kind}: reinitialise: freeze keeps {frozen[0]} from training, so that it would stay"
            " random; leave the top layers and the pooler out of freeze"
        )
    return [(variable, np.array(variable.numpy())) for variable in fresh.values()]
