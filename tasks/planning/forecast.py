"""Cost estimates of a run: tokens, passes, minutes and disk.

The speed of a network is measured on its earlier stages in this home. Without any, a formula fitted
to measurements on two server cores estimates it. Each figure says which of the two it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from fourstage.languages import main_language
from fourstage.space import taken
from models.inputs.mixture import rates
from tasks.planning.layout import Plan
from tasks.steps.same_weights import is_copied
from tasks.store.artifacts import Artifact, Missing, Store
from tasks.store.step_names import as_texts, stage_step, subject_of
from tasks.store.steps import PreviousArtifacts, Prospect, Step, look_ahead

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedRecipe, ResolvedStage

LATEST = 5  # most recent stages of a network whose speed counts
# Two cores (Intel Xeon with AVX-512, float32): networks of 0.4 and 3.1 million weights in their
# blocks read 15,000 and 6,000 tokens a second.
SECONDS_A_TOKEN = 48e-6
SECONDS_A_WEIGHT = 34.5e-12
# One core of an AMD EPYC reads 160,000 to 240,000 for word vectors, and half to ten times that to
# count n-grams.
WITHOUT_GRADIENT = 200_000
PREDICTED = 0.3  # share of the tokens whose logits are computed
FLOAT = 4  # bytes
MOMENTS = 2  # AdamW's moments per weight
GRAPH_MB = 7.0  # size of a packaged model without its weights
BOOKS_MB = 15.0  # records of a run in MLflow and Prefect
BYTES_A_TOKEN = 6.0  # in a tokenised corpus
CHARACTERS_A_TOKEN = 3.6
UNPACKED = 3.0  # ratio of text size to compressed file size
PACKED = (".gz", ".bz2", ".tgz", ".zip", ".parquet", ".pq")


@dataclass(frozen=True)
class Cost:
    """Estimated cost of a stage.

    Attributes:
        stage: Its name.
        tokens: Tokens it reads; None if its budget is in epochs over data of unknown size.
        passes: Passes over each source of known size.
        seconds: Training time; None if the tokens are unknown.
        tokens_per_second: Its speed.
        measured: Whether the speed was measured on stages of this network; else it is the
            formula's.
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
    """Estimate the cost of each stage that is not in the store, nor its weights under another key.

    Args:
        recipe: The resolved recipe.
        prospects: Its steps with their state in the store.
        previous: Earlier stages and tokens.
    """
    there = {
        prospect.step.name
        for prospect in prospects
        if prospect.reused or is_copied(prospect, previous.store)
    }
    return [
        cost
        for cost in costs_from_scratch(recipe, prospects, previous)
        if stage_step(cost.stage) not in there
    ]


def costs_from_scratch(
    recipe: ResolvedRecipe, prospects: Sequence[Prospect], previous: PreviousArtifacts
) -> list[Cost]:
    """Estimate the cost of each stage as if none were in the store: `stage_costs`."""
    counted = _source_tokens(prospects, previous)
    rows = _training_rows(recipe, prospects, previous)
    stages = previous.of_kind("stage")
    found = []
    for stage in recipe.stages:
        if stage.init is not None:
            continue
        sizes = counted if stage.datasets else as_texts(counted)
        read = shares(stage, rows, sizes)
        known = {name: sizes[name] for name in read if name in sizes}
        tokens = _tokens(stage, read, known)
        speed, measured = tokens_per_second(
            stage.family,
            stage.network,
            (stage.tokenizer or recipe.tokenizer).vocabulary_size,
            stages,
            head=stage.head is not None,
            trains_itself=stage.trains_itself,
        )
        if tokens is None:
            found.append(Cost(stage.name, None, {}, None, speed, measured))
            continue
        passes = {name: tokens * read[name] / size for name, size in known.items() if size}
        found.append(Cost(stage.name, tokens, passes, tokens / speed, speed, measured))
    return found


def search_cost(trials: Iterable[Plan], store: Store, previous: PreviousArtifacts) -> Cost | None:
    """Estimate the cost of the trials that a search has yet to train.

    None if all are trained, and what is left has only to be measured.

    Args:
        trials: Their plans.
        store: The store.
        previous: Earlier stages and tokens.
    """
    found = []
    for plan in trials:
        prospects = list(look_ahead(list(plan.steps.values()), store))
        assert plan.recipe.finetune is not None
        costs = stage_costs(plan.recipe, prospects, previous)
        found += [cost for cost in costs if cost.stage == plan.recipe.finetune.name]
    if not found:
        return None
    tokens = [cost.tokens for cost in found if cost.tokens is not None]
    seconds = [cost.seconds for cost in found if cost.seconds is not None]
    known = len(tokens) == len(found)
    return Cost(
        "search",
        sum(tokens) if known else None,
        {},
        sum(seconds) if known else None,
        median([cost.tokens_per_second for cost in found]),
        all(cost.measured for cost in found),
    )


def tokens_per_second(
    family: str,
    network: Mapping[str, Any],
    vocabulary: int,
    stages: Sequence[Artifact],
    *,
    head: bool = False,
    trains_itself: bool = False,
) -> tuple[float, bool]:
    """The training speed of a network, and whether it was measured here.

    Args:
        family: Family of the network.
        network: Its arguments.
        vocabulary: Number of pieces.
        stages: Finished stages, oldest first.
        head: Whether it learns rows. It was measured on those that do as well, if there are any.
        trains_itself: Whether its objective or family trains it, without gradient descent.
    """
    alike = [
        stage
        for stage in stages
        if stage.notes.get("tokens_per_second") and _is_alike(stage, family, network)
    ]
    same = [stage for stage in alike if bool(stage.preimage["settings"].get("head")) == head]
    # A table of vectors reads rows a tenth as fast as it is made.
    if measured := same or ([] if trains_itself else alike):
        return median([stage.notes["tokens_per_second"] for stage in measured[-LATEST:]]), True
    if trains_itself:
        return WITHOUT_GRADIENT, False
    weights = _blocks(network) + PREDICTED * vocabulary * network.get("hidden_dim", 128)
    return 1 / (SECONDS_A_TOKEN + SECONDS_A_WEIGHT * weights), False


def disk_bytes(
    recipe: ResolvedRecipe, prospects: Sequence[Prospect], previous: PreviousArtifacts
) -> float:
    """Estimate the additional disk use of all steps that are not in the store.

    Sizes are estimated from the weights of a step's network or the tokens of its text.

    Args:
        recipe: The resolved recipe.
        prospects: Its steps with their state in the store.
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
            total += 2 * size  # once in the store, once in MLflow
        elif step.kind not in ("corpus", "dataset", "tokens", "rows"):
            continue  # a few kilobytes
        elif earlier := previous.of(step):
            total += taken(earlier[-1].folder)
        else:
            tokens = sizes.get(step.name.split(" ", 1)[1], 0.0)
            text = step.kind in ("corpus", "dataset")
            total += tokens * (CHARACTERS_A_TOKEN if text else BYTES_A_TOKEN)
    # A checkpoint is written beside the one it replaces.
    return total + 2 * (1 + MOMENTS) * FLOAT * largest


def _tokens(
    stage: ResolvedStage, read: Mapping[str, float], sizes: Mapping[str, float]
) -> float | None:
    """Estimated tokens of a stage's budget; None for epochs over data of unknown size."""
    amount = stage.budget.amount
    if stage.budget.unit == "tokens":
        return amount
    if stage.budget.unit == "steps":
        return amount * stage.tokens_a_step
    if not read or set(read) - set(sizes):
        return None
    # An epoch ends when the slowest corpus has been read once.
    return amount * max(sizes[name] / share for name, share in read.items())


def shares(
    stage: ResolvedStage, rows: Mapping[str, int], sizes: Mapping[str, float]
) -> Mapping[str, float]:
    """Share of a stage's tokens by source.

    Args:
        stage: The stage.
        rows: Training rows by dataset, of those that were counted before.
        sizes: Training tokens by source.

    Returns:
        Shares that sum to 1; none of a mixture whose rows are not counted yet.
    """
    if stage.mixture is None:
        return stage.corpora or dict.fromkeys(stage.datasets, 1.0)
    if not set(stage.datasets) <= rows.keys() & sizes.keys():
        return {}
    counted = {name: rows[name] for name in stage.datasets}
    examples = rates(counted, stage.mixture["limit"], stage.mixture["temperature"])
    tokens = {name: examples[name] * sizes[name] / rows[name] for name in counted}
    return {name: own / sum(tokens.values()) for name, own in tokens.items()}


def _training_rows(
    recipe: ResolvedRecipe, prospects: Sequence[Prospect], previous: PreviousArtifacts
) -> dict[str, int]:
    """Training rows of each dataset of a mixture that was prepared before."""
    mixed = {name for stage in recipe.stages if stage.mixture for name in stage.datasets}
    found: dict[str, int] = {}
    for step in (prospect.step for prospect in prospects if prospect.step.kind == "dataset"):
        name = subject_of(step.name)
        if name in mixed and (earlier := previous.of(step)):
            found[name] = earlier[-1].facts["counts"]["splits"]["train"]
    return found


def _source_tokens(prospects: Sequence[Prospect], previous: PreviousArtifacts) -> dict[str, float]:
    """Training tokens of each source: counted earlier, or estimated from its file sizes.

    Those of a draw of training rows are known once it has been counted itself. Of rows whose
    answers are texts only the other texts are counted, so that the size of the files tells more.
    """
    found: dict[str, float] = {}
    written = {
        subject_of(prospect.step.name)
        for prospect in prospects
        if prospect.step.kind == "dataset" and prospect.step.given["source"].answers == "text"
    }
    drawn = {
        subject_of(prospect.step.name)
        for prospect in prospects
        if "training_rows" in prospect.step.settings
    }
    for prospect in prospects:
        step = prospect.step
        if step.kind not in ("corpus", "dataset", "tokens", "rows"):
            continue
        name = step.name.split(" ", 1)[1]
        counted = prospect.found
        if name in drawn and not isinstance(counted, Artifact):
            continue
        if step.kind in ("tokens", "rows"):
            if not counted or isinstance(counted, Missing):
                counted = next(reversed(previous.of(step)), None)
            if counted is not None:
                facts = counted.facts  # a text that several rows have is one document
                tokens = float(facts.get("row_tokens") or facts["tokens"].get("train", 0))
                found[name] = max(tokens, found.get(name, 0.0) if name in written else 0.0)
        elif not step.given["source"].packages:
            found[name] = _by_files(step)
    return found


def _by_files(step: Step) -> float:
    """Estimated tokens of a source, from its file sizes."""
    files = step.given["snapshot"].files
    sizes = {f.path: f.size for f in files if f.split in (None, "train")}  # archives count once
    size = sum(n * (UNPACKED if f.lower().endswith(PACKED) else 1.0) for f, n in sizes.items())
    chinese = main_language(step.given["source"].language) == "zh"
    return size / (3.0 if chinese else CHARACTERS_A_TOKEN)


def _is_alike(stage: Artifact, family: str, network: Mapping[str, Any]) -> bool:
    """Whether a finished stage trained a network of this shape. Keys omit default arguments."""
    settings = stage.preimage["settings"]
    trained = settings.get("network")
    if settings.get("family") != family or not trained:
        return False
    return all(network.get(name) == value for name, value in trained.items())


def _blocks(network: Mapping[str, Any]) -> float:
    """Weights in the layers of a Transformer, without embeddings."""
    width = network.get("hidden_dim", 128)
    inside = network.get("intermediate_dim", 4 * width)
    block = 4 * width**2 + 2 * width * inside
    # A decoder's block also attends to the encoder.
    decoder = network.get("num_decoder_layers", 0) * (block + 4 * width**2)
    return network.get("num_layers", 1) * block + decoder + _seeing_blocks(network, width, inside)


def _seeing_blocks(network: Mapping[str, Any], width: int, inside: int) -> float:
    """Weights in the layers of regions, and of text and regions together."""
    other = network.get("region_hidden_dim", width)
    regions = 4 * other**2 + 2 * other * network.get("region_intermediate_dim", inside)
    both = 2 * (4 * width**2 + 2 * width * inside) + 4 * width**2  # LXMERT's
    layers = network.get("num_region_layers", 0)
    if "region_hidden_dim" in network:  # ViLBERT has a block across for each of regions
        regions += regions + 4 * width * other + 2 * width * inside
    return layers * regions + network.get("num_cross_layers", 0) * both


def _weights(recipe: ResolvedRecipe, stage: ResolvedStage) -> float:
    network = stage.network
    if stage.init is not None and recipe.start is not None:
        return taken(Path(recipe.start)) / FLOAT
    width = network.get("embedding_dim") or network.get("hidden_dim", 128)
    rows = (stage.tokenizer or recipe.tokenizer).vocabulary_size + network.get(
        "max_sequence_length", 512
    )
    return _blocks(network) + rows * width
