"""Network, objectives and scorers put together, for training and from a stage's folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fourstage.errors import RecipeError
from models.catalogue import find
from models.protocols import Capability, Context, Tokenizer
from models.training.precision import policy
from models.weights import load_weights

CONFIG = "config.json"
NETWORK = "network.safetensors"
HEADS = "heads"


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
        family: Name of its file.
        arguments: Its own arguments.
        vocabulary_size: Number of token ids.
        precision: ``float32`` or ``bfloat16``.
        folders: Project folders, searched first.
    """
    return find("families", family, folders)(
        **arguments, vocabulary_size=vocabulary_size, dtype=policy(precision)
    )


def build_objectives(
    objectives: Mapping[str, Mapping[str, Any]],
    head: Mapping[str, Mapping[str, Any]] | None,
    context: Context,
    folders: Sequence[Path] = (),
) -> dict[str, Any]:
    """{name: objective} of a stage in the order in which they work, the head last."""
    made = {
        name: find("objectives", name, folders)(context, **settings)
        for name, settings in objectives.items()
    }
    # Who reads another objective's predictions comes after it, in data and in scores.
    made = dict(sorted(made.items(), key=lambda item: Capability.TOKEN_LOGITS in item[1].needs))
    for name, settings in (head or {}).items():
        made[name] = find("heads", name, folders)(context, **settings)
    return made


def number_tasks(before: Path | None, turns: Iterable[str]) -> dict[str, int]:
    """{task: its number}: those of the stages before keep theirs, new ones come behind.

    A network that reads ``task_ids`` (ERNIE 2.0) learns a vector for each, so a task must be the
    same number in every stage.

    Args:
        before: Folder of the stage before, or None.
        turns: Names of the turns of this stage, in order.
    """
    config = json.loads((before / CONFIG).read_text("utf-8")) if before else {}
    tasks = dict(config.get("tasks", {}))
    for name in turns:
        tasks.setdefault(name, len(tasks))
    return tasks


def check_tasks(family: str, network: Any, tasks: Mapping[str, int]) -> None:
    """Refuse more tasks than the network has vectors for; most families read none.

    Raises:
        RecipeError: With both numbers.
    """
    rows = getattr(network, "num_tasks", 0)
    if rows and len(tasks) > rows:
        raise RecipeError(
            f"objectives: {len(tasks)} tasks ({', '.join(tasks)}), but the table of tasks of this"
            f" {family} network has {rows} rows; set size.num_tasks where the first stage is"
            " trained"
        )


def check_lengths(family: str, network: Any, sequence_length: int) -> None:
    """Refuse sequences longer than the network's table of positions.

    Raises:
        RecipeError: With both numbers.
    """
    longest = getattr(network, "max_sequence_length", None)
    if longest is not None and sequence_length > longest:
        raise RecipeError(
            f"sequence_length: {sequence_length} tokens, but the table of positions of this"
            f" {family} network ends at {longest}; shorten the sequences or set"
            " size.max_sequence_length where the first stage is trained"
        )


@dataclass(frozen=True)
class TrainedStage:
    """A finished stage, loaded.

    Attributes:
        folder: Where its files lie.
        config: Its ``config.json``.
        network: With its weights.
        context: Tokenizer, longest sequence, labels.
    """

    folder: Path
    config: Mapping[str, Any]
    network: Any
    context: Context

    def objective(self, name: str | None = None, folders: Sequence[Path] = ()) -> Any:
        """An objective or the head of the stage, built again with the recipe's settings."""
        head, objectives = self.config["head"] or {}, self.config["objectives"]
        chosen = name or next(iter(head or objectives))
        if chosen in head:
            parts = build_objectives({}, {chosen: head[chosen]}, self.context, folders)
        else:
            settings = objectives.get(chosen, {})
            parts = build_objectives({chosen: settings}, None, self.context, folders)
        return parts[chosen]

    def scorer(self, name: str, objective: Any) -> Any:
        """The objective's scorer with the weights in ``heads/``.

        Raises:
            RecipeError: If this stage has no such head.
        """
        path = self.folder / HEADS / f"{name}.safetensors"
        if not path.exists():
            there = ", ".join(sorted(p.stem for p in (self.folder / HEADS).glob("*"))) or "none"
            raise RecipeError(f"{self.folder.name}: no head {name!r} in this stage; it has {there}")
        scorer = objective.attach(self.network)
        load_weights(scorer, path)
        return scorer


def load_stage(
    folder: Path,
    tokenizer: Tokenizer,
    *,
    precision: str | None = None,
    folders: Sequence[Path] = (),
) -> TrainedStage:
    """The network of a finished stage.

    Args:
        folder: With ``config.json`` and ``network.safetensors``.
        tokenizer: The one it was trained with.
        precision: Of the matrix products; as trained where None.
        folders: Project folders, searched first.

    Raises:
        RecipeError: If the tokenizer is another one.
    """
    config = json.loads((folder / CONFIG).read_text("utf-8"))
    if config["tokenizer_digest"] != tokenizer.digest:
        raise RecipeError(
            f"{folder.name}: trained with tokenizer {config['tokenizer_digest'][:12]}, got"
            f" {tokenizer.digest[:12]}; use the tokenizer of the recipe it came from"
        )
    network = build_network(
        config["family"],
        config["network"],
        vocabulary_size=config["vocabulary_size"],
        precision=precision or config["precision"],
        folders=folders,
    )
    load_weights(network, folder / NETWORK)
    context = Context(tokenizer, config["sequence_length"], tuple(config["label_names"]))
    return TrainedStage(folder, config, network, context)
