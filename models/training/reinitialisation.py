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
        RecipeError: The network has fewer layers, or not one block of its own for each of them.
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
    return [
        (variable, np.array(variable.numpy()))
        for path, variable in named.items()
        if layer.get(path, -1) >= layers - count or path.startswith("pooler/")
    ]
