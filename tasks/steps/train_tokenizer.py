"""Train a tokenizer on text that was not quarantined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.steps.durable import durable
from tasks.steps.taken_over import brought_tokenizer, has_start
from tasks.store.artifacts import Findings, Input
from tasks.store.kept import kept_texts
from tasks.store.steps import Bound

if TYPE_CHECKING:
    from models.protocols import Tokenizer


@durable()
def train_tokenizer(step: Bound, folder: Path) -> Findings:
    """Learn a vocabulary from training documents only, never from held-out text.

    An imported network brings its own tokenizer, which can be extended by more words.
    """
    texts = _TrainingTexts(step.inputs)
    make = brought_tokenizer if has_start(step.step) else _learned
    tokenizer = make(step, texts)
    tokenizer.save(folder)
    return Findings({"vocabulary_size": tokenizer.vocabulary_size, "digest": tokenizer.digest})


def _learned(step: Bound, texts: Iterable[str]) -> Tokenizer:
    from corpora.words import segmenter
    from models.saved_tokenizer import learn_tokenizer

    settings = step.step.settings
    return learn_tokenizer(
        settings["scheme"],
        texts,
        vocabulary_size=settings["vocabulary_size"],
        lowercase=settings["lowercase"],
        sentinels=settings.get("sentinels", 0),
        minimum_count=settings.get("minimum_count"),
        marks=settings.get("marks", ()),
        cut=segmenter(settings["segmenter"]["name"]) if "segmenter" in settings else None,
    )


class _TrainingTexts:
    """The training texts of all inputs, iterable more than once."""

    def __init__(self, inputs: Mapping[str, Input]):
        self._inputs = inputs

    def __iter__(self) -> Iterator[str]:
        for role, data in sorted(self._inputs.items()):
            if role.startswith("text "):
                contract = self._inputs[role.replace("text", "contract", 1)]
                for _, text, split in kept_texts(data, contract):
                    if split == "train":
                        yield text
