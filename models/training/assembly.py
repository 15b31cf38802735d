"""Build a stage's network and objectives, and check that they fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fourstage.errors import RecipeError
from models.catalogue import find, needed
from models.protocols import Capability, Context
from models.training.precision import policy
from models.weights import named_weights


def build_network(
    family: str,
    arguments: Mapping[str, Any],
    *,
    vocabulary_size: int,
    precision: str,
    folders: Sequence[Path] = (),
) -> Any:
    """A network with random weights.

    Args:
        family: Name of the family.
        arguments: The family's own arguments.
        vocabulary_size: Number of token ids.
        precision: ``float32`` or ``bfloat16``.
        folders: Project folders, searched first.
    """
    return find("families", family, folders)(
        **arguments, vocabulary_size=vocabulary_size, dtype=policy(precision)
    )


def weight_names(
    family: str,
    arguments: Mapping[str, Any],
    *,
    vocabulary_size: int,
    folders: Sequence[Path] = (),
) -> tuple[str, ...]:
    """Names of a network's weights (`models.weights.named_weights`), none of which is made.

    The largest networks here take three seconds and no memory; Keras is imported.

    Args:
        family: Name of the family.
        arguments: The family's own arguments.
        vocabulary_size: Number of token ids.
        folders: Project folders, searched first.
    """
    import keras
    from keras.src.backend.common.global_state import set_global_attribute

    try:
        with keras.StatelessScope(initialize_variables=False):
            network = build_network(
                family,
                arguments,
                vocabulary_size=vocabulary_size,
                precision="float32",
                folders=folders,
            )
        return tuple(named_weights(network))
    finally:
        # Or Keras would make them all at the end of the next such scope.
        set_global_attribute("uninitialized_variables", [])


def build_objectives(
    objectives: Mapping[str, Mapping[str, Any]],
    head: Mapping[str, Mapping[str, Any]] | None,
    context: Context,
    folders: Sequence[Path] = (),
) -> dict[str, Any]:
    """{name: objective} of a stage in the order in which they run, the head last."""
    made = {
        name: find("objectives", name, folders)(context, **settings)
        for name, settings in objectives.items()
    }
    # An objective that reads another one's predictions runs after it, in data and in scores.
    after = {name for name in made if Capability.TOKEN_LOGITS in needed([name], folders)}
    made = dict(sorted(made.items(), key=lambda item: item[0] in after))
    for name, settings in (head or {}).items():
        made[name] = find("heads", name, folders)(context, **settings)
    return made


def number_tasks(before: Mapping[str, int], turns: Iterable[str]) -> dict[str, int]:
    """{task: its number}: tasks of previous stages keep their numbers, new ones are appended.

    A network that reads ``task_ids`` (ERNIE 2.0) learns a vector per task, so a task must have the
    same number in every stage.

    Args:
        before: {task: its number} of the previous stages.
        turns: Names of this stage's turns, in order.
    """
    tasks = dict(before)
    for name in turns:
        tasks.setdefault(name, len(tasks))
    return tasks


def check_tasks(family: str, network: Any, tasks: Mapping[str, int]) -> None:
    """Check that the network has a vector for every task; most families have no task vectors.

    Raises:
        RecipeError: There are more tasks than vectors.
    """
    rows = getattr(network, "num_tasks", 0)
    if rows and len(tasks) > rows:
        raise RecipeError(
            f"objectives: {len(tasks)} tasks ({', '.join(tasks)}), but the table of tasks of this"
            f" {family} network has {rows} rows; set size.num_tasks where the first stage is"
            " trained"
        )


def check_lengths(family: str, network: Any, sequence_length: int) -> None:
    """Check that sequences are not longer than the network's position table.

    Raises:
        RecipeError: They are longer.
    """
    longest = getattr(network, "max_sequence_length", None)
    if longest is not None and sequence_length > longest:
        raise RecipeError(
            f"sequence_length: {sequence_length} tokens, but the table of positions of this"
            f" {family} network ends at {longest}; shorten the sequences or set"
            " size.max_sequence_length where the first stage is trained"
        )
