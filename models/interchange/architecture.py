"""Mapping between a Hugging Face architecture and one of our families: settings and tensors.

"Theirs" is Hugging Face's, "ours" is this project's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

Settings = Mapping[str, Any]  # our arguments of a network, with ``vocabulary_size``

ACTIVATIONS = {  # theirs: ours
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
THEIR_ACTIVATION = {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu", "silu": "silu"}


@dataclass(frozen=True)
class Link:
    """One tensor, with both names.

    Attributes:
        theirs: Name in their checkpoint, with the prefix.
        ours: ``network/`` or an objective's name and ``/``, then the path.
        shape: Shape in their file; None for any number of rows.
        transposed: Whether ours is the transpose of theirs.
        rows_before: Number of rows at the start of theirs that ours does not have.
        rows: Number of rows of ours; None for all that follow.
        optional: Whether their checkpoint may lack it; it then lacks all optional tensors.
        part: (number, count) where theirs is `count` of ours side by side, along the last axis.
        as_ours: Shape in which theirs has as many axes as ours, before transposing; None for
            `shape`.
        halved: Axes of theirs of which ours has the places 0, 2, 4… in the first half and 1, 3, 5…
            in the second.
    """

    theirs: str
    ours: str
    shape: tuple[int | None, ...]
    transposed: bool = False
    rows_before: int = 0
    rows: int | None = None
    optional: bool = False
    part: tuple[int, int] | None = None
    as_ours: tuple[int, ...] | None = None
    halved: tuple[int, ...] = ()


def dense(theirs: str, ours: str, inputs: int, outputs: int, **more: Any) -> Iterator[Link]:
    """The tensors of a dense layer; their kernel is transposed."""
    yield Link(f"{theirs}.weight", f"{ours}/kernel", (outputs, inputs), transposed=True, **more)
    yield Link(f"{theirs}.bias", f"{ours}/bias", (outputs,), **more)


def norm(theirs: str, ours: str, width: int) -> Iterator[Link]:
    """The tensors of a LayerNorm."""
    yield Link(f"{theirs}.weight", f"{ours}/gamma", (width,))
    yield Link(f"{theirs}.bias", f"{ours}/beta", (width,))


def table(theirs: str, ours: str, their_rows: int | None, width: int, **more: Any) -> Link:
    """The tensor of an embedding table."""
    return Link(f"{theirs}.weight", f"{ours}/embeddings", (their_rows, width), **more)


def family_of(model_type: str) -> str | None:
    """The family of an architecture that Hugging Face calls `model_type`, if we exchange it."""
    named = {architecture.model_type: family for family, architecture in architectures().items()}
    return named.get(model_type)


def unchanged(values: dict[str, Any], others: Mapping[str, Any], pad_id: int) -> None:
    """Default for `Architecture.read` and `write`: the table of arguments is complete."""


@dataclass(frozen=True)
class Architecture:
    """The mapping of one architecture: ``ARCHITECTURE`` in a file of `models.interchange.families`.

    Attributes:
        model_type: Their name of the architecture, also the prefix of the tensors' names.
        classes: {their class: the heads it has}. The class with the most of our heads is written.
        arguments: {their key: (our argument, their default)}.
        network: (settings, padding id) → links of all tensors of the network.
        heads: (settings, number of labels) → {head: links of all its tensors}.
        copies: {their second copy of a tied tensor: the tensor}.
        demanded: {their key: the only value that our network supports}.
        fixed: {our argument: the only value that their class supports}.
        read: Sets arguments that `arguments` can't express: (our settings, their config, pad id).
        write: The inverse of `read`: (their config, our settings, pad id).
        ignored: Prefixes of their tensors that have no counterpart in ours.
        attention_dropout: Their key for the dropout rate of attention weights; ours has a single
            dropout rate.
        head_activation: Activation of their masked-token head, if it is not that of the blocks.
        pad_id: Their default padding id; None for the id of the end of a text.
        reads_segments: Whether it tells segments apart without a table of them (``num_segments``).
        padding_side: Where their class expects padding: at the last position XLNet's heads read.
        their_prefix: Prefix of the network's tensors in a file that also has a head, without the
            dot, "" for none; by default `model_type`.
        zeros: {their tensor that ours has no counterpart of, and that must be zero: (the head it
            belongs to, its shape in numbers and names of our arguments)}.
        computed: {their tensor that ours computes: (our arguments) → its values}. A file may lack
            it.
        writes_computed: Whether their files have it.
        special_ids: {their key: our special token, such as ``sep``, whose id it is}, for a network
            with its tokenizer.
        more_files: Writes what their class reads beside ``tokenizer.json``: (tokenizer, folder).
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
    pad_id: int | None = 0
    reads_segments: bool = False
    padding_side: str = "right"
    their_prefix: str | None = None
    zeros: Mapping[str, tuple[str, tuple[int | str, ...]]] = field(default_factory=dict)
    computed: Mapping[str, Callable[[Settings], np.ndarray]] = field(default_factory=dict)
    writes_computed: bool = False
    special_ids: Mapping[str, str] = field(default_factory=dict)
    more_files: Callable[[Any, Path], None] | None = None

    @property
    def prefix(self) -> str:
        """Prefix of the network's tensors in a file that also has a head."""
        prefix = self.model_type if self.their_prefix is None else self.their_prefix
        return prefix and f"{prefix}."


@cache
def architectures() -> Mapping[str, Architecture]:
    """{family: architecture}."""
    names = sorted(path.stem for path in Path(__file__).with_name("families").glob("[a-z]*.py"))
    return {
        name: import_module(f"models.interchange.families.{name}").ARCHITECTURE for name in names
    }
