"""Names of a recipe's steps: a kind and a subject.

A name such as ``stage domain`` or ``contract tokens trials`` is unique in a recipe. Package and
evaluation exist once and are named by their kind, and so is the recipe's tokenizer. If a step has
several inputs of a kind, their names are also their roles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedStage


def corpus_step(source: str) -> str:
    """The text of a source."""
    return f"corpus {source}"


def dataset_step(source: str) -> str:
    """The labelled rows of a source."""
    return f"dataset {source}"


def contract_step(of: str) -> str:
    """The contract of a source or, given a `tokens_step`, of its tokens."""
    return f"contract {of}"


def tokens_step(source: str) -> str:
    """A tokenised corpus or dataset."""
    return f"tokens {source}"


def tokenizer_step(stage: ResolvedStage) -> str:
    """The vocabulary that a stage reads by: the recipe's, or its own."""
    return "tokenizer" if stage.tokenizer is None else f"tokenizer {stage.name}"


def stage_step(stage: str) -> str:
    """A trained stage."""
    return f"stage {stage}"


def measurement_step(stage: str) -> str:
    """The measurement after a stage."""
    return f"measurement {stage}"


def baseline_step(source: str) -> str:
    """The baselines of a dataset."""
    return f"baseline {source}"


def probe_step(source: str) -> str:
    """The linear probe of the pre-trained network on a dataset."""
    return f"probe {source}"


def few_shot_step(source: str) -> str:
    """A dataset's rows answered by the pre-trained network from its prompt."""
    return f"few_shot {source}"


def prototypes_step(source: str) -> str:
    """Episodes in which the pre-trained network tells a dataset's classes by prototypes."""
    return f"prototypes {source}"


def links_step(source: str) -> str:
    """The ranks of a dataset's heads and tails by the pre-trained network."""
    return f"links {source}"


def word_relations_step(source: str) -> str:
    """The test of the pre-trained network's word vectors on similarities or analogies."""
    return f"word_relations {source}"


def word_in_context_step(source: str) -> str:
    """The test of the pre-trained network's layers on a word in two sentences."""
    return f"word_in_context {source}"


def fold_step(step: str, number: int, folds: int) -> str:
    """Tokenised rows whose dev rows are one of several parts of the training rows."""
    return f"{step} fold {number} of {folds}"


def last_step(step: str) -> str:
    """A step's artifact from the recipe's last run."""
    return f"last {step}"


def fresh_step(step: str) -> str:
    """A step that reads only data the last run did not have."""
    return f"fresh {step}"


def subject_of(step: str) -> str:
    """Subject of a step: ``domain`` for ``stage domain``, ``tokens trials`` for its contract."""
    return step.partition(" ")[2]
