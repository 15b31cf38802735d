"""The network that a recipe's first stage is, where ``init`` names one trained elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tasks.store.steps import Bound, Step

if TYPE_CHECKING:
    from models.interchange.huggingface import PretrainedNetwork
    from models.protocols import Tokenizer

READER = "models.interchange.pretrained_network"


def has_start(step: Step) -> bool:
    """Whether a step takes what it makes from there."""
    return "start" in step.given


def brought_tokenizer(step: Bound, texts: Iterable[str]) -> Any:
    """The network's tokenizer, with as many words of the texts behind its pieces as are wanted."""
    return _reader().tokenizer_of(
        step.step.given["start"], texts, step.step.settings.get("add_words", 0)
    )


def brought_network(step: Bound, tokenizer: Tokenizer) -> PretrainedNetwork:
    """The network as a `PretrainedNetwork`, with a row for each piece of the tokenizer."""
    return _reader().with_tokenizer(_reader().read_start(step.step.given["start"]), tokenizer)


def _reader() -> Any:
    """What reads such a network, imported by name.

    So its code enters the keys of steps that have it among their parts, and of no others.
    """
    return import_module(READER)
