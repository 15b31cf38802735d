"""What of a stage stays as it is: frozen weights, and layers that thaw one after another.

Frozen weights have no gradient and no moments. Layers that have not thawed yet have moments, which
stay zero; the gradient reaches down to the lowest layer that has thawed.

Reference:
    Gradual unfreezing: Howard and Ruder 2018, arXiv 1801.06146, 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from fourstage.errors import RecipeError
from models.training.duration import Duration
from models.training.optimizer import layer_depths
from models.weights import named_weights


def freeze(kind: str, network: Any, scorers: Mapping[str, Any], patterns: Sequence[str]) -> None:
    """Freeze the variables whose paths match.

    Args:
        kind: The stage's kind, for messages.
        network: A built network.
        scorers: {objective or head: scorer}; its name is the first part of its paths.
        patterns: Such as ``embeddings/*``, ``block_0/*``, ``masked_lm/*``; a ``*`` matches ``/``.

    Raises:
        RecipeError: A pattern matches nothing, or nothing is left to train.
    """
    named = named_weights(network)
    for name, scorer in scorers.items():
        named |= {f"{name}/{path}": variable for path, variable in named_weights(scorer).items()}
    for pattern in patterns:
        matching = [variable for path, variable in named.items() if fnmatchcase(path, pattern)]
        if not matching:
            there = dict.fromkeys(f"{path.partition('/')[0]}/*" for path in named)
            raise RecipeError(
                f"{kind}: freeze: no weights match {pattern!r}; there are {', '.join(there)}"
            )
        for variable in matching:
            variable.trainable = False
    if not any(variable.trainable for variable in named.values()):
        raise RecipeError(f"{kind}: freeze: every weight is frozen, so there is nothing to train")


@dataclass(frozen=True)
class Thawing:
    """Layers that begin to train one after another, from the top.

    Attributes:
        layers: The trainable variables of each layer: heads and pooler, the last block, …, the
            embeddings.
        every: Updates from one layer to the next.
    """

    layers: Sequence[Sequence[Any]]
    every: int

    def count(self, step: int) -> int:
        """Number of layers that update `step` trains, counted from 0."""
        return min(1 + step // self.every, len(self.layers))

    def resting(self, step: int) -> list[Any]:
        """The variables that update `step` leaves alone."""
        return [variable for layer in self.layers[self.count(step) :] for variable in layer]

    def starts(self) -> list[tuple[Any, int]]:
        """Each variable and its first update."""
        return [
            (variable, number * self.every)
            for number, layer in enumerate(self.layers)
            for variable in layer
        ]


def thawing(
    kind: str, setting: Mapping[str, float], variables: Sequence[Any], duration: Duration
) -> Thawing:
    """Gradual unfreezing as a recipe states it.

    Args:
        kind: The stage's kind, for messages.
        setting: ``{"epochs": n}`` or ``{"share": s}``: how long until the next layer thaws.
        variables: All trainable variables of the stage.
        duration: Length of the stage.

    Raises:
        RecipeError: The stage ends before all layers have thawed.
    """
    ((unit, amount),) = setting.items()
    whole = duration.steps_in_pass if unit == "epochs" else duration.total
    every = max(1, round(amount * whole))
    depths = layer_depths([variable.path for variable in variables])
    layers = [
        [variable for variable, own in zip(variables, depths, strict=True) if own == depth]
        for depth in sorted(set(depths), reverse=True)
    ]
    needed = (len(layers) - 1) * every + 1
    if needed > duration.total:
        raise RecipeError(
            f"{kind}: gradual_unfreezing: {len(layers)} layers, one more every {every:,} updates,"
            f" take {needed:,} updates to thaw, but the stage has {duration.total:,}; give a share"
            f" below {1 / len(layers):.2f} or a larger budget"
        )
    return Thawing(layers, every)
