"""Training word vectors: portion by portion, block by block, with updates of the rows it touches.

    portion → words thinned out → windows → questions → gradients → rows of two tables

The rate falls linearly with the words read. A pure function of (seed, portion) draws everything,
and a checkpoint has both tables, so that a stage that is killed and restarted ends with the same
bits.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from fourstage.errors import EnvironmentFault, Interrupted, RecipeError
from models.inputs.randomness import generator
from models.stage_format import SUBWORDS, head_file
from models.training import checkpoint
from models.training.assembly import build_network
from models.training.interruption import Interruption
from models.training.job import Outcome, Silence, TrainingJob, TrainingListener
from models.training.trained_stage import load_before, write_settings, write_weights
from models.vectors import text
from models.vectors.context import ContextVectors
from models.vectors.context_windows import Block, blocks, num_blocks
from models.vectors.logistic import QuestionSums
from models.vectors.outputs import HierarchicalSoftmax, NegativeSampling, Output
from models.vectors.subwords import SubwordRows, SubwordTable, subwords_of
from models.vectors.tables import Table
from models.weights import array_of

CHECKPOINTS = "checkpoints"
LOGGED = "logged.json"
LOGS = 100  # metric rows of a stage
LEAST_RATE = 1e-4  # of the first one, as word2vec.c


@dataclass(frozen=True)
class Settings:
    """How vectors are learned from windows.

    Attributes:
        window: Words to each side at most.
        noise_words: Noise words for each predicted word; 0 for hierarchical softmax.
        noise_power: Exponent of a word's frequency among noise words.
        subsampling: Share of the text above which a word is thinned out; 0 keeps all.
        learning_rate: Rate at the start.
    """

    window: int
    noise_words: int
    noise_power: float
    subsampling: float
    learning_rate: float

    def check(self, where: str) -> None:
        """Check the ranges.

        Raises:
            RecipeError: A setting is out of its range.
        """
        for name, least in (("window", 1), ("noise_words", 0), ("subsampling", 0.0)):
            if getattr(self, name) < least:
                raise RecipeError(
                    f"{where}.{name}: expected {least} or more, got {getattr(self, name)}"
                )
        if not self.learning_rate > 0:
            raise RecipeError(
                f"{where}.learning_rate: expected a number above 0, got {self.learning_rate}"
            )


@dataclass(frozen=True)
class Vectors:
    """What is trained.

    Attributes:
        words: Vectors of words.
        context: Vectors of predicted words, or of the nodes of their tree.
        output: What predicted words are asked.
    """

    words: Table
    context: Table
    output: Output


class Update(Protocol):
    """One objective's use of a block."""

    def __call__(
        self, vectors: Vectors, block: Block, rng: np.random.Generator, rate: float
    ) -> QuestionSums:
        """Score a block and go down its gradients by `rate`; 0 changes nothing."""
        ...


@dataclass
class _State:
    """Progress of a stage: plain JSON, saved in its checkpoints."""

    portion: int = 0  # portions read
    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    score: dict[str, float] = field(default_factory=lambda: asdict(QuestionSums()))
    passes: dict[str, float] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)


def output_of(settings: Settings, frequencies: np.ndarray, tree: np.ndarray) -> Output:
    """What predicted words are asked.

    Args:
        settings: The objective's.
        frequencies: (V,) share of each word in the text, from which noise is drawn.
        tree: (V,) shares from which the tree was made.
    """
    if settings.noise_words:
        return NegativeSampling(frequencies, settings.noise_words, settings.noise_power)
    return HierarchicalSoftmax(tree)


def tokens_of(job: TrainingJob) -> int:
    """Tokens that a stage reads; an update of its budget is a batch of full rows.

    Raises:
        RecipeError: The budget is less than a token.
    """
    budget = job.stage.budget
    if budget.unit == "epochs":
        # As for networks, an epoch ends when the slowest corpus has been read once.
        size = max(corpus.num_tokens / share for corpus, share in job.corpora.values())
    else:
        size = 1 if budget.unit == "tokens" else job.stage.batch_size * job.stage.sequence_length
    tokens = round(budget.amount * size)
    if tokens < 1:
        raise RecipeError(f"budget: {budget.amount:g} {budget.unit} are less than one token")
    return tokens


def network_of(job: TrainingJob) -> Any:
    """A stage's network, in single precision; one that reads how words are spelled knows it."""
    network = build_network(
        job.stage.family,
        job.stage.network,
        vocabulary_size=job.tokenizer.vocabulary_size,
        precision="float32",
        folders=job.folders,
    )
    if hasattr(network, "spell"):
        network.spell(job.tokenizer)
    return network


def stopped(job: TrainingJob, interruption: Interruption, at: str) -> Interrupted:
    """What is raised where a stage was asked to stop and has written a checkpoint."""
    return Interrupted(
        f"{job.stage.kind}: stopped by {interruption.cause} {at}; a checkpoint was written, run the"
        " same command to go on",
        interruption.signal_number,
    )


def report(
    checkpoints: Path, history: Sequence[Mapping[str, float]], listener: TrainingListener
) -> None:
    """Report the metric rows that have not been reported yet, once a checkpoint has them.

    Args:
        checkpoints: The checkpoints' folder, which keeps how many were reported.
        history: All rows of the stage.
        listener: Receives the rows.
    """
    marker = checkpoints / LOGGED
    logged = int(json.loads(marker.read_text("utf-8"))) if marker.exists() else 0
    rows = history[logged:]
    if rows:
        listener.metrics(rows)
        part = marker.with_suffix(".part")
        part.write_text(str(logged + len(rows)), "utf-8")
        part.replace(marker)


def train_vectors(
    job: TrainingJob,
    folder: Path,
    listener: TrainingListener | None,
    objective: str,
    settings: Settings,
    update: Update,
) -> Outcome:
    """Train a stage's table, resuming from the newest checkpoint; as `models.training.trainer`.

    Args:
        job: The stage to train.
        folder: Its folder.
        listener: Receives progress and metrics.
        objective: Name of the objective.
        settings: Its settings.
        update: Its use of a block.

    Raises:
        Interrupted: A signal, the deadline or the disk limit stopped training.
        RecipeError: A setting or the budget is impossible.
        ContractViolation: The text has no words.
        EnvironmentFault: The loss is not finite, or the disk is full.
    """
    if not job.corpora:
        raise RecipeError(f"{job.stage.kind}: no corpora to train on")
    settings.check(f"objectives.{objective}")
    text.check_window(job.corpora, settings.window, f"objectives.{objective}")
    folder.mkdir(parents=True, exist_ok=True)
    # Products of small matrices: threads would cost more than they bring.
    with Interruption(job.deadline_seconds) as interruption, threadpool_limits(1):
        return _Run(job, folder, listener or Silence(), interruption, objective, settings).run(
            update
        )


class _Run:
    """One call of `train_vectors`."""

    def __init__(
        self,
        job: TrainingJob,
        folder: Path,
        listener: TrainingListener,
        interruption: Interruption,
        objective: str,
        settings: Settings,
    ):
        self.job, self.folder, self.listener = job, folder, listener
        self.interruption, self.objective, self.settings = interruption, objective, settings
        self.checkpoints = folder / CHECKPOINTS
        self.frequencies = text.frequencies(job.corpora, job.tokenizer)
        self.total = tokens_of(job)
        self.state = _State()
        self.logged_at = self.saved_at = 0
        self.network = network_of(job)
        self.scorer = ContextVectors(self.network, objective)
        self.subwords = subwords_of(self.network.config, self.network.vocabulary_size)
        self.subword_rows = None
        if self.subwords is not None:
            number = self.subwords.vocabulary_size + self.subwords.buckets
            self.subword_rows = SubwordRows(number, self.network.hidden_dim)
        self.vectors = self._start()

    def _beside(self) -> dict[str, Any]:
        """{name: layer} of what is kept beside the network."""
        return {self.objective: self.scorer} | (
            {SUBWORDS: self.subword_rows} if self.subword_rows is not None else {}
        )

    def _start(self) -> Vectors:
        """The tables of the newest checkpoint, of the stage before, or new ones."""
        job, width = self.job, self.network.hidden_dim
        rng = generator(job.stage.seed, "word vectors")
        # Of words, or of words and n-grams.
        table = self.network.token_embedding.embeddings
        if self.subword_rows is not None:
            table = self.subword_rows.rows
        # word2vec.c, InitNet; fastText's n-grams begin twice as wide.
        wide = 1.0 if self.subword_rows is not None else 0.5
        table.assign((2.0 * wide / width) * (rng.random(table.shape, dtype=np.float32) - 0.5))
        if job.initial is not None:
            if self.subword_rows is not None and not head_file(job.initial, SUBWORDS).exists():
                raise RecipeError(
                    f"{job.stage.kind}: the stage before has no rows of n-grams; train fastText"
                    " vectors from the first stage on"
                )
            load_before(job, self.network, self._beside())
        arrays = [array_of(table), *self.scorer.arrays()]
        hierarchical = self.settings.noise_words == 0
        if hierarchical != arrays[2].any():
            # Vectors of words, where those of nodes are needed, or the reverse: new ones.
            arrays[1][:] = 0.0
            arrays[2][:] = self.frequencies if hierarchical else 0.0
        found = checkpoint.newest(self.checkpoints)
        if found is not None:
            if [array.shape for array in arrays] != [array.shape for array in found.arrays]:
                raise EnvironmentFault(
                    f"{self.checkpoints}: the checkpoint belongs to another network; remove the"
                    " folder"
                )
            arrays = list(found.arrays)
            self.state = _State(**found.details)
            self.logged_at = self.saved_at = self.state.tokens
            report(self.checkpoints, self.state.history, self.listener)
        words, context, self.tree = arrays
        output = output_of(self.settings, self.frequencies, self.tree)
        return Vectors(self._table(words), Table(context), output)

    def _table(self, array: np.ndarray) -> Table:
        """The table of words: each has a row, or is the mean of rows."""
        if self.subwords is None:
            return Table(array)
        tokenizer = self.job.tokenizer
        special = set(tokenizer.special_ids)
        words = [
            None if i in special else tokenizer.decode([i])
            for i in range(tokenizer.vocabulary_size)
        ]
        return SubwordTable(array, self.subwords.members(words))

    def run(self, update: Update) -> Outcome:
        """Read the text, and write the stage."""
        state, job = self.state, self.job
        kept = text.kept_shares(self.frequencies, self.settings.subsampling)
        for portion in text.portions(job.corpora, self.total, job.stage.seed):
            if portion.number < state.portion:
                continue
            rng = generator(job.stage.seed, "portion", portion.number)
            began = time.perf_counter()
            score = self._read(portion, kept, rng, update)
            state.seconds += time.perf_counter() - began
            state.portion += 1
            state.tokens += portion.most
            corpus = job.corpora[portion.source][0]
            state.passes[portion.source] = (
                state.passes.get(portion.source, 0.0) + portion.most / corpus.num_tokens
            )
            state.score = asdict(QuestionSums(**state.score) + score)
            if not math.isfinite(state.score["loss"]):
                raise EnvironmentFault(
                    f"{job.stage.kind}: the loss is {state.score['loss']} after {state.tokens:,}"
                    f" words; lower objectives.{self.objective}.learning_rate"
                )
            self._log()
            self._checkpoint()
            if self.interruption.asked:
                self._checkpoint(now=True)
                read = f"after {state.tokens:,} of {self.total:,} words"
                raise stopped(job, self.interruption, read)
        return self._finish()

    def _read(
        self, portion: text.Portion, kept: np.ndarray, rng: np.random.Generator, update: Update
    ) -> QuestionSums:
        ids, documents = text.kept_words(portion, self.job.corpora, kept, rng)
        score = QuestionSums()
        total = num_blocks(len(ids))
        for number, block in enumerate(blocks(ids, documents, self.settings.window, rng)):
            read = self.state.tokens + portion.most * number / total
            score += update(self.vectors, block, rng, self._rate(read))
        self.state.step += total
        return score

    def _rate(self, read: float) -> float:
        return self.settings.learning_rate * max(LEAST_RATE, 1.0 - read / self.total)

    def _log(self) -> None:
        """A metric row, about a hundred times in a stage."""
        state = self.state
        if state.tokens < self.total and state.tokens - self.logged_at < self.total / LOGS:
            return
        self.logged_at = state.tokens
        score = QuestionSums(**state.score)
        speed = state.tokens / max(state.seconds, 1e-9)
        loss = score.loss / max(score.pairs, 1.0)
        state.history.append(
            {
                "step": state.step,
                "loss": loss,
                f"{self.objective}/loss": loss,
                f"{self.objective}/accuracy": score.right / max(score.questions, 1.0),
                "learning_rate": self._rate(state.tokens),
                "tokens": float(state.tokens),
                "tokens_per_second": speed,
            }
        )
        state.score = asdict(QuestionSums())
        steps = round(state.step * self.total / state.tokens)
        self.listener.progress(state.step, steps, {"loss": loss, "tokens_per_second": speed})

    def _checkpoint(self, now: bool = False) -> None:
        """Write a checkpoint, ten times in a stage and at its end, then report the metrics."""
        state = self.state
        due = state.tokens >= self.total or state.tokens - self.saved_at >= self.total / 10
        if not (due or now) or state.tokens == self.saved_at:
            return
        self.saved_at = state.tokens
        arrays = [self.vectors.words.array, self.vectors.context.array, self.tree]
        checkpoint.write(self.checkpoints, state.step, arrays, asdict(state))
        report(self.checkpoints, state.history, self.listener)

    def _finish(self) -> Outcome:
        state, job = self.state, self.job
        every = np.arange(self.network.vocabulary_size)
        self.network.token_embedding.embeddings.assign(self.vectors.words.vectors(every))
        if self.subword_rows is not None:
            self.subword_rows.rows.assign(self.vectors.words.array)
        self.scorer.context.assign(self.vectors.context.array)
        self.scorer.tree.assign(self.tree)
        write_weights(job, self.folder, self.network, self._beside())
        metrics: dict[str, Any] = {"selection": None, "last": state.history[-1]}
        write_settings(
            job, self.folder, precision="float32", tasks={}, history=state.history, metrics=metrics
        )
        weights = self.vectors.words.array.size + self.vectors.context.array.size
        return Outcome(
            state.step,
            state.tokens,
            state.seconds,
            state.tokens / max(state.seconds, 1e-9),
            metrics,
            dict(state.passes),
            weights=weights,
            trained_weights=weights,
        )
