"""What a run will cost before it begins: tokens, passes, minutes and disk.

The speed of a network is that of its earlier stages in this home. Without any, it is a formula's,
fitted to measurements on two cores of a server. Each figure says which of the two it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from tasks.store.artifacts import Artifact, Missing
from tasks.store.step_names import stage_step, subject_of
from tasks.store.steps import PreviousArtifacts, Prospect, Step

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedRecipe, ResolvedStage

LATEST = 5  # stages of a network whose speed counts
# Two cores (Intel Xeon with AVX-512, float32): networks of 0.4 and 3.1 million weights in their
# blocks read 15,000 and 6,000 tokens a second.
SECONDS_A_TOKEN = 48e-6
SECONDS_A_WEIGHT = 34.5e-12
PREDICTED = 0.3  # of the tokens, whose logits are computed
FLOAT = 4  # bytes
MOMENTS = 2  # numbers that AdamW remembers of each weight
GRAPH_MB = 7.0  # of a packaged model beside its weights
BOOKS_MB = 15.0  # what MLflow and Prefect write about a run
BYTES_A_TOKEN = 6.0  # of a tokenised corpus
CHARACTERS_A_TOKEN = 3.6
UNPACKED = 3.0  # times the size of a compressed file of text
PACKED = (".gz", ".bz2", ".tgz", ".zip", ".parquet", ".pq")


@dataclass(frozen=True)
class Cost:
    """What a stage will take.

    Attributes:
        stage: Its name.
        tokens: About how many it reads; None where a pass over its data is asked for, whose size
            is not known before they are read.
        passes: How often it reads each source, where its size is known.
        seconds: Of training; None as for tokens.
        tokens_per_second: Its speed.
        measured: Whether stages of this network were timed here; else the formula's.
    """

    stage: str
    tokens: float | None
    passes: Mapping[str, float]
    seconds: float | None
    tokens_per_second: float
    measured: bool


def stage_costs(
    recipe: ResolvedRecipe, prospects: Sequence[Prospect], previous: PreviousArtifacts
) -> list[Cost]:
    """What each stage that is not in the store will take.

    Args:
        recipe: Resolved.
        prospects: Its steps with what the store has of them.
        previous: Earlier stages and tokens.
    """
    reused = {prospect.step.name for prospect in prospects if prospect.reused}
    sizes = _source_tokens(prospects, previous)
    stages = previous.of_kind("stage")
    found = []
    for stage in recipe.stages:
        if stage_step(stage.name) in reused or stage.init is not None:
            continue
        read = stage.corpora or ({stage.dataset: 1.0} if stage.dataset else {})
        known = {name: sizes[name] for name in read if name in sizes}
        tokens = _tokens(stage, read, known)
        speed, measured = tokens_per_second(
            stage.family, stage.network, recipe.tokenizer.vocabulary_size, stages
        )
        if tokens is None:
            found.append(Cost(stage.name, None, {}, None, speed, measured))
            continue
        passes = {name: tokens * read[name] / size for name, size in known.items() if size}
        found.append(Cost(stage.name, tokens, passes, tokens / speed, speed, measured))
    return found


def tokens_per_second(
    family: str, network: Mapping[str, Any], vocabulary: int, stages: Sequence[Artifact]
) -> tuple[float, bool]:
    """The speed of training a network, and whether it was measured here.

    Args:
        family: Of the network.
        network: Its arguments.
        vocabulary: Pieces.
        stages: Finished stages, oldest first.
    """
    speeds = [
        stage.notes["tokens_per_second"]
        for stage in stages
        if stage.notes.get("tokens_per_second") and _is_alike(stage, family, network)
    ]
    if speeds:
        return median(speeds[-LATEST:]), True
    weights = _blocks(network) + PREDICTED * vocabulary * network.get("hidden_dim", 128)
    return 1 / (SECONDS_A_TOKEN + SECONDS_A_WEIGHT * weights), False


def disk_bytes(
    recipe: ResolvedRecipe, prospects: Sequence[Prospect], previous: PreviousArtifacts
) -> float:
    """About how much more will be on disk when all that is not in the store has been made.

    A step is taken to be as large as the last one of its name; without one, its size is reckoned
    from the weights of its network or the tokens of its text.

    Args:
        recipe: Resolved.
        prospects: Its steps with what the store has of them.
        previous: Earlier entries of the home.
    """
    sizes = _source_tokens(prospects, previous)
    weights = {stage.name: _weights(recipe, stage) for stage in recipe.stages}
    total, largest = BOOKS_MB * 1e6, 0.0
    for prospect in prospects:
        step = prospect.step
        if prospect.reused:
            continue
        if step.kind in ("stage", "package"):
            name = subject_of(step.name)
            number = weights.get(name) or max(weights.values(), default=0.0)
            largest = max(largest, number)
            size = FLOAT * number + (GRAPH_MB * 1e6 if step.kind == "package" else 0.0)
            total += 2 * size  # in the store, and in MLflow's own
        elif step.kind not in ("corpus", "dataset", "tokens", "rows"):
            continue  # of kilobytes, and a home has many contracts
        elif earlier := previous.of(step):
            total += _size(earlier[-1].folder)
        else:
            tokens = sizes.get(step.name.split(" ", 1)[1], 0.0)
            text = step.kind in ("corpus", "dataset")
            total += tokens * (CHARACTERS_A_TOKEN if text else BYTES_A_TOKEN)
    # A checkpoint is written beside the one it replaces.
    return total + 2 * (1 + MOMENTS) * FLOAT * largest


def _tokens(
    stage: ResolvedStage, read: Mapping[str, float], sizes: Mapping[str, float]
) -> float | None:
    """About how many tokens a stage's budget reads; None where a pass has no known size."""
    amount = stage.budget.amount
    if stage.budget.unit == "tokens":
        return amount
    if stage.budget.unit == "steps":
        return amount * stage.tokens_a_step
    if set(read) - set(sizes):
        return None
    # A pass lasts until the corpus that takes longest has been read once.
    return amount * max(sizes[name] / share for name, share in read.items())


def _source_tokens(prospects: Sequence[Prospect], previous: PreviousArtifacts) -> dict[str, float]:
    """About how many tokens of each source are trained on: counted before, or by its files."""
    found: dict[str, float] = {}
    for prospect in prospects:
        step = prospect.step
        if step.kind not in ("corpus", "dataset", "tokens", "rows"):
            continue
        name = step.name.split(" ", 1)[1]
        counted = prospect.found
        if step.kind in ("tokens", "rows"):
            if not counted or isinstance(counted, Missing):
                counted = next(reversed(previous.of(step)), None)
            if counted is not None:
                found[name] = float(counted.facts["tokens"].get("train", 0))
        elif not step.given["source"].packages:
            found[name] = _by_files(step)
    return found


def _by_files(step: Step) -> float:
    """About how many tokens the files of a source hold, by their sizes."""
    files = step.given["snapshot"].files
    sizes = {f.path: f.size for f in files if f.split in (None, "train")}  # an archive once
    size = sum(n * (UNPACKED if f.lower().endswith(PACKED) else 1.0) for f, n in sizes.items())
    return size / (3.0 if step.given["source"].language == "zh" else CHARACTERS_A_TOKEN)


def _is_alike(stage: Artifact, family: str, network: Mapping[str, Any]) -> bool:
    """Whether a finished stage trained a network of this shape; keys leave out its defaults."""
    settings = stage.preimage["settings"]
    trained = settings.get("network")
    if settings.get("family") != family or not trained:
        return False
    return all(network.get(name) == value for name, value in trained.items())


def _blocks(network: Mapping[str, Any]) -> float:
    """Weights of the layers of a Transformer encoder: those that each token goes through."""
    width = network.get("hidden_dim", 128)
    inside = network.get("intermediate_dim", 4 * width)
    return network.get("num_layers", 1) * (4 * width**2 + 2 * width * inside)


def _weights(recipe: ResolvedRecipe, stage: ResolvedStage) -> float:
    network = stage.network
    if stage.init is not None and recipe.start is not None:
        return _size(Path(recipe.start)) / FLOAT
    width = network.get("embedding_dim") or network.get("hidden_dim", 128)
    rows = recipe.tokenizer.vocabulary_size + network.get("max_sequence_length", 512)
    return _blocks(network) + rows * width


def _size(folder: Path) -> float:
    return float(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))
