"""Gradient training: one loop for all four stages.

    per update: pick the turn → batch k → micro-batches → train_on_batch each
    at intervals: evaluate, log, write a checkpoint

All randomness is a pure function of (seed, k), and a checkpoint contains every variable. A stage
that is killed at any moment and restarted therefore ends with bit-identical weights.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras.src.random import seed_generator  # Keras has no public way to hand it a generator

from fourstage.errors import (
    ContractViolation,
    Diverged,
    EnvironmentFault,
    Interrupted,
    RecipeError,
)
from fourstage.space import taken
from models import catalogue
from models import features as keys
from models.compilation import jit_compile
from models.inputs.batches import batches
from models.inputs.mixture import mixed, tasks_beside
from models.inputs.randomness import grain_seed
from models.inputs.rows import mark_ids
from models.inputs.task_schedule import TaskSchedule
from models.layers.frozen_features import FrozenFeatures
from models.layers.low_rank import add_low_rank
from models.protocols import Capability, Context
from models.stage_format import FEATURE_BASED
from models.training import checkpoint
from models.training.adversarial import AdversarialStageModel
from models.training.assembly import (
    build_network,
    build_objectives,
    check_lengths,
    check_tasks,
    number_tasks,
)
from models.training.averaging import WeightAverage
from models.training.dev_blend import dev_blend
from models.training.dev_threshold import dev_threshold
from models.training.duration import Duration, duration
from models.training.freezing import freeze, thawing
from models.training.interruption import Interruption
from models.training.job import Outcome, Silence, TrainingJob, TrainingListener
from models.training.optimizer import make_optimizer
from models.training.precision import resolve_precision
from models.training.reinitialisation import fresh_layers
from models.training.remedies import EWC, REMEDIES, Remedy
from models.training.selection import make_selection
from models.training.stage import Phase
from models.training.stage_model import LossWeights, Means, StageModel, memory_of, total_loss
from models.training.starts import start_parts
from models.training.trained_stage import load_before, tasks_before, write_settings, write_weights
from models.weights import WIDE, array_of, named_weights

CHECKPOINTS = "checkpoints"
LOGGED = "logged.json"  # number of history rows already passed to the report
ROWS_LOGGED = 100  # approximate number of metric rows per stage
BEST = "best"


def train(job: TrainingJob, folder: Path, report: TrainingListener | None = None) -> Outcome:
    """Train a stage, resuming from the newest intact checkpoint if there is one.

    Writes ``network.safetensors``, ``heads/<objective>.safetensors``, ``config.json``,
    ``history.json`` and ``metrics.json``. Checkpoints stay in ``checkpoints/``; the caller removes
    them once the stage counts as finished.

    Args:
        job: The stage to train.
        folder: The stage's folder; created if missing.
        report: Receives progress and metrics.

    Raises:
        Interrupted: A signal, the deadline or the disk limit stopped training; a checkpoint was
            written.
        RecipeError: The settings are impossible: sequence lengths, budget, batch size, metric.
        ContractViolation: There are too few data.
        Diverged: The loss, or a weight, is not finite.
        EnvironmentFault: The disk is full, or a checkpoint does not fit the network.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _seeded(job.stage.seed), Interruption(job.deadline_seconds) as interruption:
        return _Run(job, folder, report or Silence(), interruption).run()


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Give Keras its own generator for the seeds of initial weights and dropout.

    By default Keras draws them from Python's global generator. The threads of Prefect and MLflow
    draw from it too, for the random delay of a retry, so the same seed could give other weights.
    """
    python, numpy, shared = random.getstate(), np.random.get_state(), seed_generator.python_random
    keras.utils.set_random_seed(seed)
    seed_generator.python_random = random.Random(seed)  # type: ignore[assignment]
    try:
        yield
    finally:
        seed_generator.python_random = shared
        random.setstate(python)
        np.random.set_state(numpy)


@dataclass
class _State:
    """Progress of a stage: plain JSON, saved in its checkpoints."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    timed_tokens: int = 0
    timed_seconds: float = 0.0
    evaluated: int = -1  # last step at which the selection metric was measured
    best: float | None = None
    best_step: int = -1
    without_best: int = 0
    stopped: bool = False
    means: dict[str, list[float]] = field(default_factory=dict)
    evaluations: list[dict[str, float]] = field(default_factory=list)
    history: list[dict[str, float]] = field(default_factory=list)


class _StopHereError(Exception):
    """Stops the loop, also from inside an evaluation."""


class _Run:
    """One call of `train`."""

    def __init__(
        self, job: TrainingJob, folder: Path, report: TrainingListener, interruption: Interruption
    ):
        _check(job)
        self.job = job
        self.stage = job.stage
        self.folder = folder
        self.checkpoints = folder / CHECKPOINTS
        self.report = report
        self.interruption = interruption
        self.precision = resolve_precision(self.stage.precision)

        self.network = build_network(
            self.stage.family,
            self.stage.network,
            vocabulary_size=job.tokenizer.vocabulary_size,
            precision=self.precision,
            folders=job.folders,
        )
        # A head's rows go on from no other.
        self.remembers = self.stage.head is None and bool(memory_of(self.network))
        contexts = [self._context(phase.sequence_length) for phase in self.stage.phases]
        per_phase = [
            build_objectives(self.stage.objectives, self.stage.heads, context, job.folders)
            for context in contexts
        ]
        check_lengths(self.stage.family, self.network, self.stage.sequence_length)
        # Predictions are made, and text is measured, at the longest.
        longest = max(range(len(contexts)), key=lambda i: contexts[i].sequence_length)
        self.objectives = per_phase[longest]
        # Whether the head knows something before the first update.
        self.learns_first = getattr(
            self.objectives.get(str(self.stage.head)), "learns_first", False
        )
        self.context = contexts[longest]
        # What scorers read: the network, or the features of the frozen one.
        self.encoder = self.network
        if self.stage.feature_based:
            self.encoder = FrozenFeatures(self.network, **self.stage.feature_based)
        self.scorers = {
            name: objective.attach(self.encoder) for name, objective in self.objectives.items()
        }
        self.low_rank = (
            add_low_rank(self.stage.kind, self.network, **self.stage.lora)
            if self.stage.lora
            else []
        )
        freeze(self.stage.kind, self.network, self.scorers, self.stage.freeze)
        self.groups = self._groups()
        self.on_copy = tuple(
            name
            for name in (self.stage.objectives if self.stage.head is not None else ())
            if not catalogue.literals("objectives", name, job.folders).get("KEEPS_INPUT")
        )
        self.tasks = number_tasks(
            tasks_before(job), () if self.stage.head is not None else self.groups
        )
        check_tasks(self.stage.family, self.network, self.tasks)
        self.data = self._data()
        self.feeds: list[TaskSchedule] = [
            self._feed(number, phase, context, objectives)
            for number, (phase, context, objectives) in enumerate(
                zip(self.stage.phases, contexts, per_phase, strict=True)
            )
        ]
        self.duration: Duration = duration(self.stage.phases, self.stage.budget, self.feeds)
        self.model = self._whole_model()
        self.models = {name: self._model(name) for name in self.groups}
        self.optimizer = make_optimizer(
            self.stage.optimizer.settings,
            total_steps=self.duration.total,
            accumulation=self.stage.micro_batches,
            name=self.stage.optimizer.name,
        )
        self.loss_weights = {name: LossWeights(model) for name, model in self.models.items()}
        self._carry_memory()
        for name, model in self.models.items():
            model.compile(optimizer=self.optimizer, jit_compile=jit_compile())
            self.loss_weights[name].ready()
        self._build(self.feeds[0])
        resting = [variable for turn in self.groups for variable in self._unread(turn)]
        self.optimizer.count({id(variable): variable for variable in resting}.values())
        self.optimizer.remedy = self.remedy = self._remedy()
        self.average = None
        if self.stage.average:
            self.average = WeightAverage(self.model.trainable_variables, **self.stage.average)
        self.thawing = None
        if self.stage.gradual_unfreezing:
            variables = self.model.trainable_variables
            self.thawing = thawing(
                self.stage.kind, self.stage.gradual_unfreezing, variables, self.duration
            )
            self.optimizer.begin_at(self.thawing.starts())
        answering = (job, self.encoder, self.objectives, self.scorers, self.context)
        self.blend = dev_blend(*answering)
        self.selection = make_selection(*answering, self.tasks, self.blend)
        self.threshold = dev_threshold(*answering)
        self.state = _State()
        self.means = Means()
        # Step of the newest checkpoint, and the last one evaluated by then.
        self._written: tuple[int, int] | None = None
        # {turn: phase and number of thawed layers its model is compiled for}
        self._compiled_for: dict[str, tuple[int, int]] = {}

    # Parts of the stage

    def _groups(self) -> dict[str, tuple[str, ...]]:
        """{turn: the objectives that score in it}; a single turn unless they alternate."""
        if self.stage.alternate:
            return catalogue.turns(list(self.objectives), self.job.folders)
        chooser = max(self.objectives, key=lambda name: self.objectives[name].chooses)
        return {chooser: tuple(self.objectives)}

    def _data(self) -> dict[str, tuple[Any, float]]:
        """{source: (its text or rows, its share)}, as `batches` takes it."""
        job, stage = self.job, self.stage
        if stage.head is None:
            return dict(job.corpora)
        own, rows = stage.dataset or "rows", job.rows["train"]
        if stage.mixture is None:
            return {own: (rows, 1.0)}
        beside = tasks_beside(stage.mixture, job.beside, job.tokenizer)
        return mixed(own, rows, beside, stage.mixture)

    def _feed(
        self, number: int, phase: Phase, context: Context, objectives: Mapping[str, Any]
    ) -> TaskSchedule:
        """The batches of a phase."""
        return TaskSchedule(
            {
                name: batches(
                    self.data,
                    [objectives[each] for each in group if each not in self.on_copy],
                    context,
                    phase.batch_size or self.stage.batch_size,
                    grain_seed(
                        self.stage.seed, "phase", number, *([name] if self.stage.alternate else [])
                    ),
                    task=self.tasks.get(name, 0),
                    in_lanes=self.remembers,
                    on_copy=[objectives[each] for each in group if each in self.on_copy],
                )
                for name, group in self.groups.items()
            },
            {
                name: self.stage.weights.get(name, 1.0) if self.stage.alternate else 1.0
                for name in self.groups
            },
        )

    def _whole_model(self) -> StageModel:
        """The network and all scorers, trained as the stage says."""
        stage, more = self.stage, {}
        if stage.r_drop:
            head = str(stage.head)
            if not hasattr(self.scorers[head], "divergence"):
                raise RecipeError(f"{stage.kind}: r_drop: not with head {head}; leave it out")
            more["r_drop"] = {head: stage.r_drop["alpha"]}
        if stage.fgm:
            more["epsilon"] = stage.fgm["epsilon"]
        made = AdversarialStageModel if stage.fgm else StageModel
        return made(
            self.encoder,
            self.scorers,
            stage.weights,
            on_copy=self.on_copy,
            low_rank=self.low_rank,
            **more,
        )

    def _remedy(self) -> Remedy | None:
        """What pulls the network's weights to their start, if the stage asks for it.

        Raises:
            RecipeError: EWC of a network that carries memory, or of objectives that take turns.
        """
        for name, settings in self.stage.remedies.items():
            if name == "ewc" and (self.remembers or self.stage.alternate):
                cause = "objectives take turns" if self.stage.alternate else "memory is carried"
                raise RecipeError(f"{self.stage.kind}: remedies.ewc: not where {cause}; use l2_sp")
            return REMEDIES[name](self.network.trainable_variables, **settings)
        return None

    def _earlier_rows(self, number: int) -> Iterator[dict[str, np.ndarray]]:
        """Rows of the text of the stage before, each a batch."""
        objectives = list(self.objectives.values())
        seed = grain_seed(self.stage.seed, "earlier")
        rows = batches(self.job.earlier, objectives, self.context, 1, seed)
        return (rows.batch(k) for k in range(number))

    def _model(self, name: str) -> StageModel:
        """The model trained in a turn: the network and the turn's scorers."""
        if not self.stage.alternate:
            return self.model
        # The leader's weight is its turn's share of the updates, not a factor in the loss.
        factors = {**self.stage.weights, name: 1.0}
        return StageModel(
            self.network, self.scorers, factors, self.groups[name], low_rank=self.low_rank
        )

    def _carry_memory(self) -> None:
        """Let the model carry the network's memory from batch to batch, where it has one.

        Raises:
            RecipeError: Batches that don't follow one another row by row.
        """
        if not self.remembers:
            return
        stage = self.stage
        sizes = {phase.batch_size or stage.batch_size for phase in stage.phases}
        if len(sizes) > 1 or stage.micro_batches > 1 or stage.alternate:
            raise RecipeError(
                f"{stage.kind}: a {stage.family} network carries memory from batch to batch, so"
                " expected one batch_size in all phases, micro_batches 1, and objectives that don't"
                f" take turns; got batch_size {', '.join(map(str, sorted(sizes)))}, micro_batches"
                f" {stage.micro_batches}, alternate {str(stage.alternate).lower()}. Change these,"
                " or set size.memory_length: 0"
            )
        self.model.carry_memory(sizes.pop())

    def _context(self, sequence_length: int) -> Context:
        job = self.job
        marks = mark_ids(job.tokenizer, job.markings)
        rows = job.rows.get("train")
        return Context(
            job.tokenizer,
            sequence_length,
            job.label_names,
            rows,
            job.folders,
            marks,
            network=catalogue.provided(self.stage.family, job.folders),
            remembers=self.remembers,
            answers=job.answers,
            machine=job.machine,
        )

    def _build(self, feed: TaskSchedule) -> None:
        """Build on symbolic tensors: a real batch would draw from the random generators."""
        for name, model in self.models.items():
            batch = feed.groups[name].batch(0)
            model({k: keras.KerasTensor(v.shape, str(v.dtype)) for k, v in batch.items()})
        self.optimizer.build(self.model.trainable_variables)

    # The loop

    def run(self) -> Outcome:
        """Train from the first update, or the newest checkpoint, and write the stage's files."""
        state = self._start()
        total = self.duration.total
        try:
            stream: Iterator[tuple[str, dict[str, np.ndarray]]] = iter(())
            phase_of_stream = -1
            while True:
                if self._evaluation_due():
                    self._evaluate()
                    self._checkpoint()  # keeps the checkpoint in step with the best weights
                if state.step >= total or state.stopped:
                    break
                phase, k = self.duration.place(state.step)
                if phase != phase_of_stream:
                    stream, phase_of_stream = self.feeds[phase].iterate(k), phase
                self._update(phase, *next(stream))
                if state.step % self.log_every == 0 or state.step == total:
                    self._log(total)
                if state.step % self.checkpoint_every == 0 and not self._evaluation_due():
                    self._checkpoint()
                self._go_on()
            self._checkpoint()
            self._put_kept()
        except _StopHereError:
            self._checkpoint()
            raise Interrupted(
                f"{self.stage.kind}: stopped by {self.interruption.cause} at step {state.step:,} of"
                f" {total:,}; a checkpoint was written, run the same command to go on",
                self.interruption.signal_number,
            ) from None
        return self._finish()

    def _update(self, phase: int, turn: str, batch: dict[str, np.ndarray]) -> None:
        """One optimizer update: one batch, in `micro_batches` parts."""
        state, model = self.state, self.models[turn]
        compiled_for = (phase, self.thawing.count(state.step) if self.thawing else 0)
        compiled = self._compiled_for.get(turn) == compiled_for
        if not compiled:
            lengths_vary = self.feeds[phase].groups[turn].feeds[0].index.by_length
            self.loss_weights[turn].trace_for(batch, lengths_vary=lengths_vary)
            model.trace_for(next(self._parts(turn, batch)), lengths_vary=lengths_vary)
        self._rest(turn)
        started = time.perf_counter()
        means = Means()
        for part in self._parts(turn, batch):
            means.add(model.train_on_batch(part, return_dict=True))
        if self.average is not None:
            self.average.add(state.step + 1)
        seconds = time.perf_counter() - started
        state.step += 1
        loss = total_loss(means.result(), model.factors)
        if not math.isfinite(loss):
            self._diverged(f"the loss is {loss}")
        self.means.add(means.flat())
        tokens = sum(int(batch[key].sum()) for key in keys.MASKS if key in batch)
        tokens = tokens or int(batch[keys.TOKEN_IDS].size)
        state.tokens += tokens
        state.seconds += seconds
        if compiled:
            state.timed_tokens += tokens
            state.timed_seconds += seconds
        self._compiled_for[turn] = compiled_for

    def _rest(self, turn: str) -> None:
        """Freeze what has not thawed yet, and what the turn's loss does not depend on."""
        resting = self.thawing.resting(self.state.step) if self.thawing else []
        self.optimizer.rest(resting + self._unread(turn))

    def _unread(self, turn: str) -> list[Any]:
        """What a turn's loss does not depend on: the other heads and a pooler that nobody reads."""
        if not self.stage.alternate:
            return []
        group = self.groups[turn]
        layers = [scorer for name, scorer in self.scorers.items() if name not in group]
        pooler = getattr(self.network, "pooler", None)
        needs = catalogue.needed(group, self.job.folders)
        if pooler is not None and Capability.POOLED_OUTPUT not in needs:
            layers.append(pooler)
        return [v for layer in layers for v in layer.trainable_variables]

    def _parts(self, turn: str, batch: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
        """The batch, split by rows into micro-batches."""
        if self.stage.micro_batches == 1:
            yield dict(batch)
        else:
            yield from self.loss_weights[turn].parts(batch, self.stage.micro_batches)

    def _log(self, total: int) -> None:
        state = self.state
        means = self.means.result()
        scalars = {
            "loss": self._mean_loss(means),
            **means,
            **self._updates(),
            "learning_rate": float(self.optimizer.learning_rate_of(state.step - 1)),
            "gradient_norm": float(array_of(self.optimizer.gradient_norm)),
            "tokens": float(state.tokens),
        }
        if any((self.stage.freeze, self.stage.lora, self.stage.feature_based, self.thawing)):
            resting = self.thawing.resting(state.step - 1) if self.thawing else []
            trained = _size(self.model.trainable_variables) - _size(resting)
            scalars["trained_weights"] = float(trained)
        speed = state.timed_tokens / state.timed_seconds if state.timed_seconds else 0.0
        self._row(scalars | {"tokens_per_second": speed})
        self.means.clear()
        self.report.progress(
            state.step, total, {"loss": scalars["loss"], "tokens_per_second": speed}
        )

    def _mean_loss(self, means: Mapping[str, float]) -> float:
        """Mean loss since the last metric row; each turn counts by its share of the updates."""
        rows = [row["step"] for row in self.state.history if "loss" in row]
        counts = self._counts(int(rows[-1]) if rows else 0)
        done = {name: sum(phase[name] for phase in counts) for name in self.groups}
        return sum(
            number / sum(done.values()) * total_loss(means, self.models[name].factors)
            for name, number in done.items()
        )

    def _counts(self, start: int = 0) -> list[dict[str, int]]:
        """Number of updates of each turn, from step `start` on: one dict per phase."""
        found, first = [], 0
        for feed, steps in zip(self.feeds, self.duration.steps, strict=True):
            ends = (min(max(at - first, 0), steps) for at in (start, self.state.step))
            found.append(feed.counts(*ends))
            first += steps
        return found

    def _updates(self) -> dict[str, float]:
        """Number of updates of each turn so far; empty unless objectives alternate."""
        if not self.stage.alternate:
            return {}
        counts = self._counts()
        return {f"{name}/updates": float(sum(c[name] for c in counts)) for name in self.groups}

    def _row(self, scalars: Mapping[str, float]) -> None:
        self.state.history.append({"step": self.state.step, **scalars})

    def _diverged(self, found: str) -> None:
        kept = checkpoint.newest(self.checkpoints)
        good = f"the checkpoint of step {kept.step:,} is kept" if kept else "no checkpoint was due"
        raise Diverged(
            f"{self.stage.kind}: {found} at step {self.state.step:,}, expected finite"
            f" numbers; {good}. Lower optimizer.{self.stage.optimizer.name}.peak_learning_rate,"
            " lengthen its warmup, or set precision: float32"
        )

    # Evaluation

    def _go_on(self) -> None:
        if self.interruption.asked:
            raise _StopHereError

    @property
    def log_every(self) -> int:
        """Updates per metric row."""
        return max(1, self.duration.total // ROWS_LOGGED)

    @property
    def checkpoint_every(self) -> int:
        """Updates between checkpoints."""
        return self.job.checkpoint_every or max(10, min(500, self.duration.total // 10))

    @property
    def evaluate_every(self) -> int:
        """Updates between evaluations: one epoch for a budget in epochs, else a tenth of it."""
        if self.stage.budget.unit == "epochs":
            return min(self.duration.steps_in_pass, self.duration.total)
        return max(10, self.duration.total // 10)

    def _evaluation_due(self) -> bool:
        state = self.state
        if self.selection is None or state.evaluated >= state.step:
            return False
        if not state.step:
            return self.learns_first
        return state.step % self.evaluate_every == 0 or state.step == self.duration.total

    def _evaluate(self) -> None:
        """Measure the selection metric; save the best weights; stop when patience is exhausted."""
        assert self.selection is not None
        state, metric = self.state, self.selection.metric
        if self.blend is not None:
            self.blend.step = state.step
        with self._averaged():
            value = self.selection.measure(self._go_on)
            state.evaluated = state.step
            state.evaluations.append({"step": state.step, metric: value})
            self._row({f"selection/{metric}": value})
            if state.best is None or self.selection.better(value, state.best):
                state.best, state.best_step, state.without_best = value, state.step, 0
                arrays = [array_of(variable) for variable in self.model.trainable_variables]
                checkpoint.write(self.checkpoints, state.step, arrays, {}, series=BEST)
            else:
                state.without_best += 1
        patience = (self.stage.stop or {}).get("patience")
        state.stopped = patience is not None and state.without_best >= patience

    def _averaged(self) -> AbstractContextManager[None]:
        """Within it the weights are their average, if the stage averages them."""
        return nullcontext() if self.average is None else self.average.in_place()

    # Checkpoints

    def _variables(self) -> list[Any]:
        """Every variable of model and optimizer, including dropout seeds, in a fixed order.

        What weights are pulled to, and their average, come last.
        """
        beside = [each.variables for each in (self.remedy, self.average) if each is not None]
        return [*self.model.variables, *self.optimizer.variables, *itertools.chain(*beside)]

    def _start(self) -> _State:
        """Restore the newest intact checkpoint, or load the initial weights."""
        found = checkpoint.newest(self.checkpoints, self._best_is_intact)
        if found is None:
            # Starting anew: remove damaged checkpoints, or a later resume could find one.
            shutil.rmtree(self.checkpoints, ignore_errors=True)
            if hasattr(self.network, "spell"):
                self.network.spell(self.job.tokenizer)
            if self.job.initial is not None:
                count = self.stage.reinitialise
                fresh = fresh_layers(self.stage.kind, self.network, count) if count else ()
                load_before(self.job, self.network, self.scorers)
                for variable, value in fresh:
                    variable.assign(value)
            else:
                for objective in self.objectives.values():
                    if hasattr(objective, "initialise"):
                        objective.initialise(self.network, self.scorers)
                start_parts(self.job, self.network, self.scorers)
            if self.learns_first:
                head = str(self.stage.head)
                self.objectives[head].learn(self.scorers[head])
            if self.average is not None:
                self.average.start()
            if self.remedy is not None:
                self.remedy.start()
            if isinstance(self.remedy, EWC):
                self.remedy.measure(self.model, self._earlier_rows(self.remedy.samples))
            return self.state
        variables = self._variables()
        if [tuple(v.shape) for v in variables] != [array.shape for array in found.arrays]:
            raise EnvironmentFault(
                f"{self.checkpoints}: the checkpoint belongs to another network; remove the folder"
            )
        for variable, array in zip(variables, found.arrays, strict=True):
            variable.assign(array)
        self.state = _State(**found.details)
        self.means.restore(self.state.means)
        self._flush()
        self._written = (self.state.step, self.state.evaluated)
        return self.state

    def _best_is_intact(self, found: checkpoint.Checkpoint) -> bool:
        best = found.details["best_step"]
        return best < 0 or isinstance(
            checkpoint.read(self.checkpoints, best, BEST), checkpoint.Checkpoint
        )

    def _checkpoint(self) -> None:
        """Write a checkpoint, then report the metrics.

        In this order, a kill in between neither loses nor repeats a metric row. Asks to stop where
        the stage exceeds its disk limit. Writes nothing where only time has passed since the last
        one: to write a step again, its checkpoint is removed first.
        """
        now = (self.state.step, self.state.evaluated)
        if now == self._written:
            return
        self.state.means = self.means.state()
        arrays = [array_of(variable) for variable in self._variables()]
        if not all(np.isfinite(array).all() for array in arrays):
            self._diverged("a weight or a moment of the optimizer is not finite")
        checkpoint.write(self.checkpoints, self.state.step, arrays, vars(self.state))
        self._written = now
        self._flush()
        most, size = self.job.most_bytes, taken(self.folder)
        if most is not None and size > most:
            self.interruption.ask(
                f"limits.disk_gb ({max(most, 0) / 1e6:.1f} MB were left for this stage, its files"
                f" take {size / 1e6:.1f} MB)"
            )

    def _flush(self) -> None:
        """Report the history rows that have not been reported yet."""
        marker = self.checkpoints / LOGGED
        logged = int(json.loads(marker.read_text("utf-8"))) if marker.exists() else 0
        rows = self.state.history[logged:]
        if rows:
            self.report.metrics(rows)
            part = marker.with_suffix(".part")
            part.write_text(str(logged + len(rows)), "utf-8")
            part.replace(marker)

    # The end

    def _put_kept(self) -> None:
        """Replace the last weights by the best ones, or by their average, as the stage says."""
        state = self.state
        if self.selection is None or state.best_step in (-1, state.step):
            if self.average is not None:
                self.average.put()
            return
        best = checkpoint.read(self.checkpoints, state.best_step, BEST)
        if not isinstance(best, checkpoint.Checkpoint):
            raise EnvironmentFault(f"{best}; run again to resume from the previous checkpoint")
        for variable, array in zip(self.model.trainable_variables, best.arrays, strict=True):
            variable.assign(array)

    def _cut(self) -> dict[str, dict[str, float]]:
        """Number of training rows, and of texts to write, that were cut, and the longest's tokens.

        Rows that are read in several windows are not cut.
        """
        (batches, *_) = self.feeds[-1].groups.values()
        found = [feed.index.details for feed in batches.feeds]
        return {
            what: {
                "count": sum(details[f"truncated_{what}s"] for details in found),
                "longest": max(details[f"longest_{what}"] for details in found),
            }
            for what in ("row", "target")
            if any(details.get(f"truncated_{what}s") for details in found)
        }

    def _finish(self) -> Outcome:
        state = self.state
        metrics: dict[str, Any] = {
            "selection": None,
            "last": next((row for row in reversed(state.history) if "loss" in row), {}),
        }
        if self.selection is not None:
            metrics["selection"] = {
                "metric": self.selection.metric,
                "value": state.best,
                "step": state.best_step,
                "stopped_early": state.stopped,
                "evaluations": state.evaluations,
            }
        if cut := self._cut():
            metrics["cut"] = cut
        turns = self._counts() if self.stage.alternate else []
        if turns:
            metrics["turns"] = turns
        passes: dict[str, float] = {}
        left = state.step
        for feed, steps in zip(self.feeds, self.duration.steps, strict=True):
            for source, share in feed.passes(min(left, steps)).items():
                passes[source] = passes.get(source, 0.0) + share
            left -= min(left, steps)
        speed = state.timed_tokens / state.timed_seconds if state.timed_seconds else 0.0
        trained = _size(self.model.trainable_variables)
        if self.blend is not None:
            self.blend.step = state.step if state.best_step < 0 else state.best_step
            metrics["blend"] = self.blend.fit()
        for update in self.low_rank:
            update.merge()
        beside = dict(self.scorers)
        if self.stage.feature_based:
            beside[FEATURE_BASED] = self.encoder.reader
        write_weights(self.job, self.folder, self.network, beside)
        chosen = {}
        if self.threshold is not None:
            value, score = self.threshold.choose()
            chosen[self.threshold.setting] = value
            metrics["threshold"] = {
                "value": value,
                "metric": self.threshold.metric,
                "score": score,
            }
        write_settings(
            self.job,
            self.folder,
            precision=self.precision,
            tasks=self.tasks,
            history=state.history,
            metrics=metrics,
            chosen=chosen,
        )
        return Outcome(
            state.step,
            state.tokens,
            state.seconds,
            speed,
            metrics,
            passes,
            turns,
            weights=sum(
                _size(v for name, v in named_weights(layer).items() if not name.startswith(WIDE))
                for layer in (self.network, *beside.values())
            ),
            trained_weights=trained,
        )


def _check(job: TrainingJob) -> None:
    """Checks that need nothing built.

    Raises:
        ContractViolation: There are no training rows.
        RecipeError: There are no corpora, or a batch can't be split into equal micro-batches.
    """
    stage = job.stage
    if stage.head is not None and "train" not in job.rows:
        raise ContractViolation(f"{stage.kind}: the dataset has no training rows")
    if stage.head is None and not job.corpora:
        raise RecipeError(f"{stage.kind}: no corpora to train on")
    for phase in stage.phases:
        rows = phase.batch_size or stage.batch_size
        if rows % stage.micro_batches:
            raise RecipeError(
                f"{stage.kind}: micro_batches: a batch of {rows} rows cannot be split into"
                f" {stage.micro_batches} equal parts"
            )


def _size(variables: Iterable[Any]) -> int:
    """Number of weights in variables."""
    return sum(math.prod(variable.shape) for variable in variables)
