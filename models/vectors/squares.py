"""GloVe's weighted least squares on logarithms of counts, by AdaGrad."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fourstage.errors import EnvironmentFault, RecipeError
from models.inputs.randomness import generator
from models.layers.scorer import ScorerLayer
from models.training import checkpoint
from models.training.interruption import Interruption
from models.training.job import Outcome, Silence, TrainingJob, TrainingListener
from models.training.trained_stage import load_before, write_settings, write_weights
from models.vectors import text
from models.vectors.cooccurrence import PairCounts, counted
from models.vectors.tables import summed
from models.vectors.training import CHECKPOINTS, network_of, report, stopped, tokens_of
from models.weights import array_of

COUNTS = "cooccurrence"  # folder of the counts, removed at the end
UPDATE = 1024  # pairs in an update
LOGS = 100


@dataclass(frozen=True)
class Squares:
    """Settings of the sum of squares.

    Attributes:
        window: Words to each side that are counted.
        most: Count from which a pair has full weight (x_max).
        power: Exponent of the weight below that (α).
        learning_rate: AdaGrad's rate.
    """

    window: int
    most: float
    power: float
    learning_rate: float

    def check(self) -> None:
        """Check the ranges.

        Raises:
            RecipeError: A setting is out of its range.
        """
        if self.window < 1:
            raise RecipeError(f"objectives.glove.window: expected 1 or more, got {self.window}")
        for name in ("most", "power", "learning_rate"):
            if not getattr(self, name) > 0:
                raise RecipeError(
                    f"objectives.glove.{name}: expected a number above 0, got {getattr(self, name)}"
                )


class GloveRows(ScorerLayer):
    """Both tables and biases, kept beside the network, whose table is their sum; scores nothing.

    Args:
        network: The network of word vectors.
    """

    def __init__(self, network: Any):
        super().__init__(name="glove", dtype="float32", autocast=False)
        self.shape = tuple(network.token_embedding.embeddings.shape)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Create the variables: w, w̃, b, b̃."""
        shapes = {"words": self.shape, "context": self.shape}
        shapes |= {f"{name}_bias": (*self.shape[:1], 1) for name in ("words", "context")}
        self.parts: Any = {
            name: self.add_weight(shape=shape, initializer="zeros", name=name)
            for name, shape in shapes.items()
        }
        self.built = True


def squares(
    parts: Mapping[str, np.ndarray],
    words: np.ndarray,
    others: np.ndarray,
    counts: np.ndarray,
    settings: Squares,
) -> tuple[float, dict[str, np.ndarray]]:
    """The loss Σ f(X)(w·w̃ + b + b̃ - log X)² of pairs, and half its gradients.

    Half, because the authors' code leaves out the factor of 2.

    Args:
        parts: ``words`` and ``context`` (V, D), ``words_bias`` and ``context_bias`` (V, 1).
        words: (n,) first words.
        others: (n,) second words.
        counts: (n,) X.
        settings: x_max and α.

    Returns:
        The loss, and of each part the gradient of each pair, (n, D) or (n, 1).

    Reference:
        Pennington et al. 2014, ACL D14-1162, equations 8 and 9.
    """
    w, c = np.take(parts["words"], words, axis=0), np.take(parts["context"], others, axis=0)
    weight = np.minimum(1.0, (counts / settings.most) ** settings.power).astype(w.dtype)
    biases = parts["words_bias"][words, 0] + parts["context_bias"][others, 0]
    missing = np.vecdot(w, c) + biases - np.log(counts).astype(w.dtype)
    slope = (weight * missing)[:, None]
    loss = float(np.vdot(weight, missing**2))
    return loss, {
        "words": slope * c,
        "context": slope * w,
        "words_bias": slope,
        "context_bias": slope,
    }


def descend(
    array: np.ndarray, squared: np.ndarray, rows: np.ndarray, gradients: np.ndarray, rate: float
) -> None:
    """AdaGrad on the rows that have gradients.

    The squares of this update count already in its own step, so that the sum of many gradients of
    one row can't go too far.

    Args:
        array: (V, …), changed in place.
        squared: (V, …) sums of squared gradients, changed in place.
        rows: (n,) row numbers, some of them several times.
        gradients: (n, …).
        rate: Learning rate.

    Reference:
        Duchi et al. 2011, JMLR 12, figure 1.
    """
    found, total, squares_of = summed(rows, gradients, gradients**2)
    squared[found] += squares_of
    array[found] -= np.float32(rate) * total / np.sqrt(squared[found])


@dataclass
class _State:
    """Progress of a stage: plain JSON, saved in its checkpoints."""

    step: int = 0
    seconds: float = 0.0
    loss: float = 0.0  # of the pairs since the last metric row
    number: int = 0  # of these pairs
    history: list[dict[str, float]] = field(default_factory=list)


def train_squares(
    job: TrainingJob, folder: Path, listener: TrainingListener | None, settings: Squares
) -> Outcome:
    """Count pairs, then train both tables; as `models.vectors.training.train_vectors`.

    Raises:
        Interrupted: A signal or the deadline stopped training; a checkpoint was written.
        RecipeError: A setting or the budget is impossible.
        ContractViolation: The text has no pairs of words.
        EnvironmentFault: The loss is not finite, or the disk is full.
    """
    if not job.corpora:
        raise RecipeError(f"{job.stage.kind}: no corpora to train on")
    settings.check()
    text.check_window(job.corpora, settings.window, "objectives.glove")
    folder.mkdir(parents=True, exist_ok=True)
    kept = text.kept_shares(text.frequencies(job.corpora, job.tokenizer), 0.0)
    with Interruption(job.deadline_seconds) as interruption, threadpool_limits(1):
        pairs = counted(job.corpora, kept, settings.window, folder / COUNTS, job.stage.seed)
        return _trained(job, folder, listener or Silence(), interruption, settings, pairs)


def _trained(
    job: TrainingJob,
    folder: Path,
    listener: TrainingListener,
    interruption: Interruption,
    settings: Squares,
    pairs: PairCounts,
) -> Outcome:
    network = network_of(job)
    scorer = GloveRows(network)
    rng = generator(job.stage.seed, "word vectors")
    for variable in scorer.parts.values():  # glove.c: uniform within ±1/2 divided by the width
        drawn = rng.random(tuple(variable.shape), dtype=np.float32)
        variable.assign((drawn - 0.5) / network.hidden_dim)
    if job.initial is not None:
        load_before(job, network, {"glove": scorer})
    parts = {name: array_of(variable) for name, variable in scorer.parts.items()}
    squared = {name: np.ones_like(array) for name, array in parts.items()}  # glove.c: from 1
    state = _State()
    arrays = [*parts.values(), *squared.values()]
    found = checkpoint.newest(folder / CHECKPOINTS)
    if found is not None:
        state = _State(**found.details)
        report(folder / CHECKPOINTS, state.history, listener)
        for array, kept in zip(arrays, found.arrays, strict=True):
            array[...] = kept
    tokens = tokens_of(job)
    size = max(corpus.num_tokens / share for corpus, share in job.corpora.values())
    in_pass = -(-len(pairs) // UPDATE)
    total = max(1, round(tokens / size * in_pass))
    order, turn_of_order = np.empty(0, np.int64), -1
    while state.step < total:
        began = time.perf_counter()
        # Each pass reads the updates of the shuffled file in another order.
        turn, place = divmod(state.step, in_pass)
        if turn != turn_of_order:
            turn_of_order = turn
            order = generator(job.stage.seed, "pass", turn).permutation(in_pass)
        first = int(order[place]) * UPDATE
        words, others, counts = pairs.part(first, first + UPDATE)
        lost, gradients = squares(parts, words, others, counts, settings)
        for name, gradient in gradients.items():
            rows = words if name.startswith("words") else others
            descend(parts[name], squared[name], rows, gradient, settings.learning_rate)
        state.loss += lost
        state.number += len(words)
        state.step += 1
        state.seconds += time.perf_counter() - began
        if not math.isfinite(state.loss):
            raise EnvironmentFault(
                f"{job.stage.kind}: the loss is {state.loss} at step {state.step:,}; lower"
                " objectives.glove.learning_rate"
            )
        if state.step % max(1, total // LOGS) == 0 or state.step == total:
            loss = state.loss / state.number
            state.history.append({"step": state.step, "loss": loss, "glove/loss": loss})
            listener.progress(state.step, total, {"loss": loss})
            state.loss, state.number = 0.0, 0
        if state.step % max(10, total // 10) == 0 or state.step == total or interruption.asked:
            checkpoint.write(folder / CHECKPOINTS, state.step, arrays, asdict(state))
            report(folder / CHECKPOINTS, state.history, listener)
        if interruption.asked and state.step < total:
            raise stopped(job, interruption, f"at step {state.step:,} of {total:,}")
    for name, array in parts.items():
        scorer.parts[name].assign(array)
    network.token_embedding.embeddings.assign(parts["words"] + parts["context"])
    write_weights(job, folder, network, {"glove": scorer})
    metrics = {"selection": None, "last": state.history[-1], "pairs": len(pairs)}
    write_settings(
        job, folder, precision="float32", tasks={}, history=state.history, metrics=metrics
    )
    shutil.rmtree(folder / COUNTS)
    weights = sum(array.size for array in parts.values())
    return Outcome(
        state.step,
        tokens,
        state.seconds,
        tokens / max(state.seconds, 1e-9),
        metrics,
        {name: tokens * share / corpus.num_tokens for name, (corpus, share) in job.corpora.items()},
        weights=weights,
        trained_weights=weights,
    )
