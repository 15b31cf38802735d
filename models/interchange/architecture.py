"""How an architecture of Hugging Face's is one of our families: its settings and its tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

Settings = Mapping[str, Any]  # our arguments of a network, ``vocabulary_size`` among them

ACTIVATIONS = {  # theirs: ours
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}
THEIR_ACTIVATION = {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu"}


@dataclass(frozen=True)
class Link:
    """One tensor under both names.

    Attributes:
        theirs: Name in a checkpoint of theirs, with the prefix.
        ours: ``network/`` or an objective's name, then the path below it.
        shape: As it lies in their file; None for any number of rows.
        transposed: Whether ours lies the other way round.
        rows_before: Rows at the start of theirs that ours has not.
        rows: Rows that ours has; None for all that follow.
        optional: Whether a checkpoint of theirs may be without; all such tensors are there or none.
    """

    theirs: str
    ours: str
    shape: tuple[int | None, ...]
    transposed: bool = False
    rows_before: int = 0
    rows: int | None = None
    optional: bool = False


def dense(theirs: str, ours: str, inputs: int, outputs: int, **more: Any) -> Iterator[Link]:
    """A dense layer; its matrix lies the other way round there."""
    yield Link(f"{theirs}.weight", f"{ours}/kernel", (outputs, inputs), transposed=True, **more)
    yield Link(f"{theirs}.bias", f"{ours}/bias", (outputs,), **more)


def norm(theirs: str, ours: str, width: int) -> Iterator[Link]:
    """A LayerNorm."""
    yield Link(f"{theirs}.weight", f"{ours}/gamma", (width,))
    yield Link(f"{theirs}.bias", f"{ours}/beta", (width,))


def table(theirs: str, ours: str, their_rows: int | None, width: int, **more: Any) -> Link:
    """A table of vectors."""
    return Link(f"{theirs}.weight", f"{ours}/embeddings", (their_rows, width), **more)


def unchanged(values: dict[str, Any], others: Mapping[str, Any], pad_id: int) -> None:
    """Nothing that the table of arguments does not say."""


@dataclass(frozen=True)
class Architecture:
    """What a file of `models.interchange.families` says as ``ARCHITECTURE``.

    Attributes:
        model_type: Their name for it, and the prefix of the tensors' names.
        classes: Their class: the heads it has; the first that has all of ours is written.
        arguments: Their key: (our argument, their default).
        network: Every tensor of the network: (settings, id of padding) → links.
        heads: Every tensor of each head: (settings, number of labels) → links by head.
        copies: Their second copy of a tensor: the tensor.
        demanded: Their key: the one value that our network can be.
        fixed: Our argument: the one value that their class can be.
        read: Sets what the table of arguments can't say: (our settings, their config, pad id).
        write: The same the other way round: (their config, our settings, pad id).
        ignored: Beginnings of names of theirs that ours has no place for.
        attention_dropout: Their key of the share of attention weights dropped; ours has one share.
        head_activation: What their class computes the masked-token head with, where that is not
            the activation of the blocks.
        pad_id: Their default.
    """

    model_type: str
    classes: Mapping[str, tuple[str, ...]]
    arguments: Mapping[str, tuple[str, Any]]
    network: Callable[[Settings, int], Iterator[Link]]
    heads: Callable[[Settings, int], Mapping[str, list[Link]]]
    copies: Mapping[str, str]
    demanded: Mapping[str, Any]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    read: Callable[[dict[str, Any], Mapping[str, Any], int], None] = unchanged
    write: Callable[[dict[str, Any], Mapping[str, Any], int], None] = unchanged
    ignored: tuple[str, ...] = ()
    attention_dropout: str = "attention_probs_dropout_prob"
    head_activation: str | None = None
    pad_id: int = 0

    @property
    def prefix(self) -> str:
        """Of the network's tensors in a file that holds a head, too."""
        return f"{self.model_type}."


@cache
def architectures() -> Mapping[str, Architecture]:
    """Every architecture that is exchanged, by the name of our family, which is theirs too."""
    names = sorted(path.stem for path in Path(__file__).with_name("families").glob("[a-z]*.py"))
    return {
        name: import_module(f"models.interchange.families.{name}").ARCHITECTURE for name in names
    }
