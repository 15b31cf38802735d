"""Names of a recipe's steps: a kind and a subject.

A name such as ``stage domain`` or ``contract tokens trials`` is unique in a recipe. Package and
evaluation exist once and are named by their kind, and so is the recipe's tokenizer. If a step has
several inputs of a kind, their names are also their roles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NewType, TypeVar

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedStage

StepName = NewType("StepName", str)
Made = TypeVar("Made")

TOKENIZER = StepName("tokenizer")  # the recipe's
PACKAGE = StepName("package")
EVALUATION = StepName("evaluation")
POLYSEMY = StepName("polysemy")
WORD_MAP = StepName("word_map")
ATTENTION = StepName("attention")
# The role of the stage whose weights a stage goes on with. `tasks.steps.training_job` spells it
# out: its text is part of the keys of stages.
STAGE_BEFORE = "stage before"
WIDE = "wide"  # the role, too
LABELLED = "labelled rows"  # the role of the rows by which a measurement finds the task metric
_WHOLE = " whole"


def corpus_step(source: str) -> StepName:
    """The text of a source."""
    return StepName(f"corpus {source}")


def dataset_step(source: str) -> StepName:
    """The labelled rows of a source."""
    return StepName(f"dataset {source}")


def contract_step(of: str) -> StepName:
    """The contract of a source or, given a `tokens_step`, of its tokens."""
    return StepName(f"contract {of}")


def tokens_step(source: str) -> StepName:
    """A tokenised corpus or dataset."""
    return StepName(f"tokens {source}")


def whole_step(step: str) -> StepName:
    """A step on all rows of a dataset of which a recipe learns labels from a few."""
    return StepName(step + _WHOLE)


def as_texts(made: Mapping[str, Made]) -> dict[str, Made]:
    """What is made, by step name, as texts: of all rows, also where labels are learned from a few.

    Args:
        made: By step name, with those of `whole_step`, if there are any.
    """
    whole = {
        name.removesuffix(_WHOLE): each for name, each in made.items() if name.endswith(_WHOLE)
    }
    return {**made, **whole}


def tokenizer_step(stage: ResolvedStage) -> StepName:
    """The vocabulary that a stage reads by: the recipe's, or its own."""
    return TOKENIZER if stage.tokenizer is None else StepName(f"{TOKENIZER} {stage.name}")


def earlier(source: str) -> str:
    """The role of the tokens of a corpus of the stage before."""
    return f"earlier {source}"


def wide_step(source: str) -> StepName:
    """What the wide part of a head learns from a dataset's training rows."""
    return StepName(f"{WIDE} {source}")


def vectors_step(stage: str) -> StepName:
    """The word vectors that the table of tokens of a stage's network starts from."""
    return StepName(f"vectors {stage}")


def stage_step(stage: str) -> StepName:
    """A trained stage."""
    return StepName(f"stage {stage}")


def measurement_step(stage: str) -> StepName:
    """The measurement after a stage."""
    return StepName(f"measurement {stage}")


def baseline_step(source: str) -> StepName:
    """The baselines of a dataset."""
    return StepName(f"baseline {source}")


def probe_step(source: str) -> StepName:
    """The linear probe of the pre-trained network on a dataset."""
    return StepName(f"probe {source}")


def few_shot_step(source: str) -> StepName:
    """A dataset's rows answered by the pre-trained network from its prompt."""
    return StepName(f"few_shot {source}")


def prototypes_step(source: str) -> StepName:
    """Episodes in which the pre-trained network tells a dataset's classes by prototypes."""
    return StepName(f"prototypes {source}")


def links_step(source: str) -> StepName:
    """The ranks of a dataset's heads and tails by the pre-trained network."""
    return StepName(f"links {source}")


def word_relations_step(source: str) -> StepName:
    """The test of the pre-trained network's word vectors on similarities or analogies."""
    return StepName(f"word_relations {source}")


def word_in_context_step(source: str) -> StepName:
    """The test of the pre-trained network's layers on a word in two sentences."""
    return StepName(f"word_in_context {source}")


def fold_step(step: str, number: int, folds: int) -> StepName:
    """Tokenised rows whose dev rows are one of several parts of the training rows."""
    return StepName(f"{step} fold {number} of {folds}")


def last_step(step: str) -> StepName:
    """A step's artifact from the recipe's last run."""
    return StepName(f"last {step}")


def fresh_step(step: str) -> StepName:
    """A step that reads only data the last run did not have."""
    return StepName(f"fresh {step}")


def subject_of(step: str) -> str:
    """Subject of a step: ``domain`` for ``stage domain``, ``tokens trials`` for its contract."""
    return step.partition(" ")[2]
