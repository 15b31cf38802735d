"""The names of a recipe's steps: what is made, and of what.

A name such as ``stage domain`` or ``contract tokens trials`` is unique in a recipe; of tokenizer,
package and evaluation there is one, named by its kind. Where a step is made from several of a kind,
a name is also the role of an input.
"""

from __future__ import annotations


def corpus_step(source: str) -> str:
    """The text of a source."""
    return f"corpus {source}"


def dataset_step(source: str) -> str:
    """The labelled rows of a source."""
    return f"dataset {source}"


def contract_step(of: str) -> str:
    """What a source promises or, of a `tokens_step`, its tokens."""
    return f"contract {of}"


def tokens_step(source: str) -> str:
    """A corpus or a dataset, tokenised."""
    return f"tokens {source}"


def stage_step(stage: str) -> str:
    """A trained stage."""
    return f"stage {stage}"


def measurement_step(stage: str) -> str:
    """What a stage's network knows."""
    return f"measurement {stage}"


def baseline_step(source: str) -> str:
    """The cheap rivals of a dataset."""
    return f"baseline {source}"


def probe_step(source: str) -> str:
    """What the pre-trained network knows of a dataset."""
    return f"probe {source}"


def last_step(step: str) -> str:
    """A step as the recipe's last run left it."""
    return f"last {step}"


def fresh_step(step: str) -> str:
    """A step that reads only what the last run had not."""
    return f"fresh {step}"


def subject_of(step: str) -> str:
    """What a step is of: ``domain`` of ``stage domain``, ``tokens trials`` of its contract."""
    return step.partition(" ")[2]
