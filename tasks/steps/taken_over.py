"""Imported networks: a first stage whose ``init`` names a network trained elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from tasks.store.steps import Bound, Step

if TYPE_CHECKING:
    from types import ModuleType

    from models.interchange.huggingface import PretrainedNetwork
    from models.protocols import Tokenizer

READER = "models.interchange.pretrained_network"


def has_start(step: Step) -> bool:
    """Whether a step imports its output from such a network."""
    return "start" in step.given


def brought_tokenizer(step: Bound, texts: Iterable[str]) -> Tokenizer:
    """The network's tokenizer, extended by the requested number of words from the texts."""
    return _reader().tokenizer_of(
        step.step.given["start"], texts, step.step.settings.get("add_words", 0)
    )


def brought_network(step: Bound, tokenizer: Tokenizer) -> PretrainedNetwork:
    """The network as a `PretrainedNetwork`, with an embedding for each piece of the tokenizer."""
    return _reader().with_tokenizer(_reader().read_start(step.step.given["start"]), tokenizer)


def _reader() -> ModuleType:
    """The module that reads such a network.

    It is imported by name, so that its code is part of a step's key only if the step lists it among
    its parts.
    """
    return import_module(READER)
