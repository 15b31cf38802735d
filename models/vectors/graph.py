"""Training vectors of a knowledge graph: batch by batch, with updates of the rows it touches.

    triples in random order → corrupted triples → gradients → rows of one table

Everything drawn is a pure function of (seed, pass) or (seed, update), and a checkpoint has the
table, so that a stage that is killed and restarted ends with the same bits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fourstage.errors import ContractViolation, EnvironmentFault, RecipeError
from models.evaluation.resampling import ratio_error
from models.inputs.randomness import generator
from models.layers.scorer import ScorerLayer
from models.protocols import TokenisedCorpus, Tokenizer
from models.training import checkpoint
from models.training.interruption import Interruption
from models.training.job import Outcome, Silence, TrainingJob, TrainingListener
from models.training.trained_stage import load_before, load_stage, write_settings, write_weights
from models.vectors.tables import Table
from models.vectors.training import CHECKPOINTS, network_of, report, stopped
from models.vectors.translation import Translation, TripleSums, compare, corrupted, unit
from models.vectors.triples import NAMES, entities_of, known, triples_of
from models.weights import array_of

LOGS = 100  # metric rows of a stage
SEED = 20_201  # of the corrupted triples of held-out text
BLOCK = 1024  # held-out triples compared at a time


class NothingBeside(ScorerLayer):
    """Says that an objective has trained the network; it has nothing of its own beside it.

    Args:
        name: Name of the objective.
    """

    def __init__(self, name: str):
        super().__init__(name=name, dtype="float32", autocast=False)
        self.built = True


@dataclass
class _State:
    """Progress of a stage: plain JSON, saved in its checkpoints."""

    step: int = 0
    triples: int = 0
    seconds: float = 0.0
    score: dict[str, float] = field(default_factory=lambda: asdict(TripleSums()))
    passes: dict[str, float] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)


def batches_of(
    graphs: Mapping[str, np.ndarray], shares: Mapping[str, float], size: int, seed: int
) -> Iterator[tuple[str, np.ndarray]]:
    """The order in which a stage reads triples, without end.

    Graphs take turns by their shares. Each pass over a graph has another order.

    Args:
        graphs: {source: (n, 3) triples}, none of them empty.
        shares: {source: share of the triples that are read}.
        size: Triples of a batch; the last one of a pass may have less.
        seed: The stage's seed.

    Yields:
        The source, and the numbers of its triples (size,).
    """
    orders = {name: _order(name, len(graph), size, seed) for name, graph in graphs.items()}
    given = dict.fromkeys(graphs, 0)
    read = 0
    while True:
        # The graph that is furthest behind its share; the first by name among equals.
        name = min(sorted(graphs), key=lambda each: given[each] - shares[each] * read)
        numbers = next(orders[name])
        yield name, numbers
        given[name] += len(numbers)
        read += len(numbers)


def updates_of(job: TrainingJob, graphs: Mapping[str, np.ndarray]) -> int:
    """Updates of a stage, each of a batch of triples.

    Raises:
        RecipeError: The budget is less than an update.
    """
    budget, size = job.stage.budget, job.stage.batch_size
    if budget.unit == "epochs":
        # As elsewhere, an epoch ends when the slowest graph has been read once.
        amount = budget.amount * max(
            math.ceil(len(graph) / size) / job.corpora[name][1] for name, graph in graphs.items()
        )
    else:
        amount = budget.amount / (1 if budget.unit == "steps" else NAMES * size)
    if round(amount) < 1:
        raise RecipeError(f"budget: {budget.amount:g} {budget.unit} are less than one update")
    return round(amount)


def train_graph(
    job: TrainingJob,
    folder: Path,
    listener: TrainingListener | None,
    objective: str,
    settings: Translation,
) -> Outcome:
    """Train a stage's table, resuming from the newest checkpoint; as `models.training.trainer`.

    Args:
        job: The stage to train.
        folder: Its folder.
        listener: Receives progress and metrics.
        objective: Name of the objective.
        settings: Its settings.

    Raises:
        Interrupted: A signal or the deadline stopped training; a checkpoint was written.
        RecipeError: A setting or the budget is impossible.
        ContractViolation: A text is no triple, or no triple has only known names.
        EnvironmentFault: The loss is not finite, or the disk is full.
    """
    if not job.corpora:
        raise RecipeError(f"{job.stage.kind}: no corpora to train on")
    settings.check(f"objectives.{objective}")
    folder.mkdir(parents=True, exist_ok=True)
    # Small arrays: threads would cost more than they bring.
    with Interruption(job.deadline_seconds) as interruption, threadpool_limits(1):
        return _Run(job, folder, listener or Silence(), interruption, objective, settings).run()


def measured_losses(
    folder: Path,
    tokenizer: Tokenizer,
    corpora: Mapping[str, TokenisedCorpus],
    settings: Translation,
) -> dict[str, dict[str, float]]:
    """Loss of a stage's vectors on held-out triples; as `models.evaluation.heldout.heldout_losses`.

    Triples are corrupted with the entities of the held-out ones, and compared with the objective's
    default settings, so that stages can be compared.
    Triples with unknown names are left out; a graph that has no others has no loss.

    Returns:
        {source: {"loss": for each triple, "accuracy": share of triples nearer than their corrupted
        ones, "error": standard error of the loss}}.
    """
    stage = load_stage(folder, tokenizer, precision="float32")
    table = Table(array_of(stage.network.token_embedding.embeddings))
    found: dict[str, dict[str, float]] = {}
    for source, corpus in corpora.items():
        triples = _triples(source, corpus)
        triples = triples[known(triples, tokenizer.unknown_id)]
        if not len(triples):
            continue
        entities = entities_of([triples])
        total, parts = TripleSums(), []
        for number, first in enumerate(range(0, len(triples), BLOCK)):
            true = triples[first : first + BLOCK]
            false = corrupted(true, entities, generator(SEED, "heldout", number))
            score = compare(table, true, false, settings, 0.0)
            total += score
            parts.append((score.loss, score.triples))
        found[source] = {
            "loss": total.loss / total.triples,
            "accuracy": total.right / total.triples,
        }
        if len(parts) > 1:
            found[source]["error"] = ratio_error(*np.transpose(parts))
    return found


class _Run:
    """One call of `train_graph`."""

    def __init__(
        self,
        job: TrainingJob,
        folder: Path,
        listener: TrainingListener,
        interruption: Interruption,
        objective: str,
        settings: Translation,
    ):
        self.job, self.folder, self.listener = job, folder, listener
        self.interruption, self.objective, self.settings = interruption, objective, settings
        self.checkpoints = folder / CHECKPOINTS
        self.graphs, self.unknown = self._graphs()
        self.entities = entities_of([*self.graphs.values()])
        self.total = updates_of(job, self.graphs)
        self.network = network_of(job)
        self.scorer = NothingBeside(objective)
        self.state = _State()
        self.table = self._start()

    def _graphs(self) -> tuple[dict[str, np.ndarray], int]:
        """The triples of each source without unknown names, and the number of the others."""
        graphs: dict[str, np.ndarray] = {}
        unknown = 0
        for name, (corpus, _) in self.job.corpora.items():
            triples = _triples(name, corpus)
            graphs[name] = triples[known(triples, self.job.tokenizer.unknown_id)]
            unknown += len(triples) - len(graphs[name])
            if not len(graphs[name]):
                raise ContractViolation(
                    f"source {name}: none of {len(triples):,} triples has three names of the"
                    " vocabulary; learn the vocabulary from this source, or ask for a larger one"
                )
        return graphs, unknown

    def _start(self) -> Table:
        """The table of the newest checkpoint, of the stage before, or a new one."""
        job, variable = self.job, self.network.token_embedding.embeddings
        # Algorithm 1, lines 1 to 3: uniform within ±6/√k, then of length 1.
        drawn = generator(job.stage.seed, "graph vectors").uniform(-1.0, 1.0, variable.shape)
        variable.assign(unit(drawn * 6.0 / math.sqrt(self.network.hidden_dim)))
        if job.initial is not None:
            load_before(job, self.network, {self.objective: self.scorer})
        array = array_of(variable)
        array[self.entities] = unit(array[self.entities])
        found = checkpoint.newest(self.checkpoints)
        if found is not None:
            if found.arrays[0].shape != array.shape:
                raise EnvironmentFault(
                    f"{self.checkpoints}: the checkpoint belongs to another network; remove the"
                    " folder"
                )
            (array,) = found.arrays
            self.state = _State(**found.details)
            report(self.checkpoints, self.state.history, self.listener)
        return Table(array)

    def run(self) -> Outcome:
        """Read the triples, and write the stage."""
        state, job = self.state, self.job
        shares = {name: share for name, (_, share) in job.corpora.items()}
        order = batches_of(self.graphs, shares, job.stage.batch_size, job.stage.seed)
        for name, numbers in islice(order, state.step, self.total):
            began = time.perf_counter()
            true = self.graphs[name][numbers]
            rng = generator(job.stage.seed, "update", state.step)
            score = compare(
                self.table,
                true,
                corrupted(true, self.entities, rng),
                self.settings,
                self.settings.learning_rate,
            )
            state.seconds += time.perf_counter() - began
            state.step += 1
            state.triples += len(true)
            read = len(true) / len(self.graphs[name])
            state.passes[name] = state.passes.get(name, 0.0) + read
            state.score = asdict(TripleSums(**state.score) + score)
            if not math.isfinite(state.score["loss"]):
                raise EnvironmentFault(
                    f"{job.stage.kind}: the loss is {state.score['loss']} at step {state.step:,};"
                    f" lower objectives.{self.objective}.learning_rate"
                )
            self._log()
            self._checkpoint()
            if self.interruption.asked and state.step < self.total:
                self._checkpoint(now=True)
                at = f"at step {state.step:,} of {self.total:,}"
                raise stopped(job, self.interruption, at)
        return self._finish()

    def _log(self) -> None:
        """A metric row, about a hundred times in a stage."""
        state = self.state
        if state.step % max(1, self.total // LOGS) and state.step < self.total:
            return
        score = TripleSums(**state.score)
        loss = score.loss / score.triples
        tokens = float(NAMES * state.triples)
        speed = tokens / max(state.seconds, 1e-9)
        state.history.append(
            {
                "step": state.step,
                "loss": loss,
                f"{self.objective}/loss": loss,
                f"{self.objective}/accuracy": score.right / score.triples,
                "learning_rate": self.settings.learning_rate,
                "tokens": tokens,
                "tokens_per_second": speed,
            }
        )
        state.score = asdict(TripleSums())
        self.listener.progress(state.step, self.total, {"loss": loss, "tokens_per_second": speed})

    def _checkpoint(self, now: bool = False) -> None:
        """Write a checkpoint, ten times in a stage and at its end, then report the metrics."""
        state = self.state
        if not now and state.step % max(10, self.total // 10) and state.step < self.total:
            return
        checkpoint.write(self.checkpoints, state.step, [self.table.array], asdict(state))
        report(self.checkpoints, state.history, self.listener)

    def _finish(self) -> Outcome:
        state, job = self.state, self.job
        self.network.token_embedding.embeddings.assign(self.table.array)
        write_weights(job, self.folder, self.network, {self.objective: self.scorer})
        metrics: dict[str, Any] = {
            "selection": None,
            "last": state.history[-1],
            "triples": {name: len(graph) for name, graph in self.graphs.items()},
            "triples_with_unknown_names": self.unknown,
            "entities": len(self.entities),
        }
        write_settings(
            job, self.folder, precision="float32", tasks={}, history=state.history, metrics=metrics
        )
        tokens = NAMES * state.triples
        return Outcome(
            state.step,
            tokens,
            state.seconds,
            tokens / max(state.seconds, 1e-9),
            metrics,
            dict(state.passes),
            weights=self.table.array.size,
            trained_weights=self.table.array.size,
        )


def _triples(source: str, corpus: TokenisedCorpus) -> np.ndarray:
    """All triples of a source, (n, 3)."""
    return triples_of(f"source {source}", (corpus.document(i)[0] for i in range(len(corpus))))


def _order(name: str, number: int, size: int, seed: int) -> Iterator[np.ndarray]:
    """The numbers of a graph's triples again and again, batch by batch."""
    for turn in count():
        order = generator(seed, "triples", name, turn).permutation(number)
        for first in range(0, number, size):
            yield order[first : first + size]
