"""Held-out loss, measured in the same way before, between and after stages.

Masks are drawn from a fixed seed with the objective's settings ``MEASURED`` (its defaults where it
has none), whatever the stage was trained with. Losses are therefore comparable for the same corpus,
tokenizer and sequence length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from fourstage.errors import ContractViolation
from models.catalogue import TRIGRAM_SHARE, literals
from models.evaluation.resampling import ratio_error
from models.evaluation.trigram import mixed_losses
from models.protocols import Batch, Context, Index, Objective, TokenisedCorpus, Tokenizer
from models.stage_format import head_file
from models.training.assembly import build_objectives
from models.training.own_trainer import own_trainer
from models.training.stage_model import Means, StageModel, memory_of
from models.training.trained_stage import config_of, load_stage

SEED = 20_201  # seed of the masks; losses measured with different seeds are not comparable
BATCH_SIZE = 16
ROWS = 2048
PARTS = ("sum", "weight")  # parts of a batch's loss


class _FromStart:
    """An objective that finds no more than the first rows of a corpus.

    Before the rows are dealt to lanes: of a network with memory a lane would else be a part of the
    whole corpus, of which the start alone is read, and its text not that of a network without.
    """

    def __init__(self, objective: Any, rows: int):
        self._objective, self._rows = objective, rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objective, name)

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """As the objective's, cut."""
        found, rows = self._objective.index(corpus, rng), self._rows
        return replace(found, entries=found.entries[:rows], lengths=found.lengths[:rows])


class HeldOut:
    """Held-out corpora for repeated measurements of one network.

    Args:
        network: The network, which may be trained further between measurements.
        name: Name of the objective that scores.
        scorer: The objective's scorer, with its weights.
        corpora: {source: held-out documents}.
        tokenizer: The recipe's tokenizer.
        sequence_length: Tokens per window.
        rows: Largest number of windows per corpus, from its start.
        folders: Project folders, searched first.
        task: Task number of the objective, for networks that read task ids.
        answers: The answers of captions that it has learned, if it asks.

    Attributes:
        feeds: {source: its batches}.
        left_out: {source: why it has none}, of text that the objective finds no row in, such as
            single sentences for one that reads two after each other.
    """

    def __init__(
        self,
        network: Any,
        name: str,
        scorer: Any,
        corpora: Mapping[str, TokenisedCorpus],
        tokenizer: Tokenizer,
        sequence_length: int,
        *,
        rows: int = ROWS,
        folders: Sequence[Path] = (),
        task: int = 0,
        answers: tuple[str, ...] = (),
    ):
        from models.inputs.batches import batches

        self._name = name
        count = max(1, rows // BATCH_SIZE)
        remembers = bool(memory_of(network))
        context = Context(
            tokenizer,
            sequence_length,
            network=network.provides,
            remembers=remembers,
            answers=answers,
        )
        measured = literals("objectives", name, folders).get("MEASURED", {})
        self.feeds, self.left_out = {}, {}
        for source, corpus in corpora.items():
            try:
                self.feeds[source] = batches(
                    {source: (corpus, 1.0)},
                    # One each: what it draws may be by the frequencies of all that it has read.
                    [
                        cast(Objective, _FromStart(objective, count * BATCH_SIZE))
                        for objective in build_objectives(
                            {name: measured}, None, context, folders
                        ).values()
                    ],
                    context,
                    BATCH_SIZE,
                    SEED,
                    once=True,
                    task=task,
                    in_lanes=remembers,
                )
            except ContractViolation as error:
                self.left_out[source] = str(error)
        self._network, self._scorer, self._remembers = network, scorer, remembers
        self._models: dict[Any, StageModel] = {}  # by the names and shapes of what they read

    def losses(self, go_on: Callable[[], None] = lambda: None) -> dict[str, dict[str, float]]:
        """{source: {"loss": nats per predicted token, "accuracy": 0-1, "error": standard error}}.

        The standard error is that of the loss over batches; it is absent if there is only one. A
        corpus that asks nothing of the objective has no entry, nor has one that is left out.

        Args:
            go_on: Called after each batch; may raise to stop.
        """
        found: dict[str, dict[str, float]] = {}
        for source, feed in self.feeds.items():
            model = self._model_for(feed.batch(0))
            model.forget()
            means, losses = Means(), []
            for batch in self.batches(source):
                logs = model.test_on_batch(batch, return_dict=True)
                means.add(logs)
                losses.append([float(logs[f"{self._name}/loss/{part}"]) for part in PARTS])
                go_on()
            scores = {
                score.removeprefix(f"{self._name}/"): mean for score, mean in means.result().items()
            }
            if "loss" not in scores:
                continue  # such as text without pictures, of which no question is asked
            found[source] = scores
            if len(losses) > 1:
                found[source]["error"] = ratio_error(*np.transpose(losses))
        return found

    def batches(self, source: str) -> Iterator[Batch]:
        """The batches of a corpus that are measured."""
        return self.feeds[source].iterate()

    def _model_for(self, batch: Batch) -> StageModel:
        """The model for batches like this one: a corpus may have no pictures, or larger ones."""
        shapes = tuple(sorted((key, value.shape) for key, value in batch.items()))
        if shapes not in self._models:
            self._models[shapes] = model = StageModel(self._network, {self._name: self._scorer})
            if self._remembers:
                model.carry_memory(BATCH_SIZE, evaluating=True)
            model.ready()
            model.trace_for(batch, lengths_vary=False)
        return self._models[shapes]


def has_objective(folder: Path, objective: str, folders: Sequence[Path] = ()) -> bool:
    """Whether a finished stage can be measured under an objective.

    Without any pre-training there is no head that could predict a token.
    """
    own = own_trainer(config_of(folder)["family"], folders=folders)
    return own is not None or head_file(folder, objective).exists()


def heldout_losses(
    folder: Path,
    tokenizer: Tokenizer,
    corpora: Mapping[str, TokenisedCorpus],
    *,
    objective: str,
    sequence_length: int | None = None,
    rows: int = ROWS,
    folders: Sequence[Path] = (),
    counted: Mapping[str, TokenisedCorpus] | None = None,
    left_out: dict[str, str] | None = None,
) -> dict[str, dict[str, float]]:
    """Held-out loss of a finished stage on each corpus, in float32.

    A finetune stage keeps the head of the last pre-training stage. Its loss with the fine-tuned
    network measures forgetting.

    Args:
        folder: The stage's folder.
        tokenizer: The recipe's tokenizer.
        corpora: {source: held-out documents}.
        objective: Name of the objective that scores.
        sequence_length: Tokens per window; None for the stage's sequence length.
        rows: Largest number of windows per corpus, from its start.
        folders: Project folders, searched first.
        counted: {source: training documents} of a stage whose probabilities are mixed with those of
            a trigram (`models.evaluation.trigram`), of this stage and of those before it.
        left_out: Gets {source: why} of the corpora that could not be measured.

    Raises:
        RecipeError: The stage has no such head.
    """
    own = own_trainer(config_of(folder)["family"], [objective], folders)
    if own is not None:
        return own.heldout_losses(folder, tokenizer, corpora)
    stage = load_stage(folder, tokenizer, precision="float32", folders=folders)
    scorer = stage.scorer(objective, stage.objective(objective, folders))
    length = sequence_length or stage.config["sequence_length"]
    measured = HeldOut(
        stage.network,
        objective,
        scorer,
        corpora,
        tokenizer,
        length,
        rows=rows,
        folders=folders,
        task=stage.config.get("tasks", {}).get(objective, 0),
        answers=stage.context.answers,
    )
    if left_out is not None:
        left_out |= measured.left_out
    if not counted:
        return measured.losses()
    windows = {source: measured.batches(source) for source in measured.feeds}
    share = stage.config["network"][TRIGRAM_SHARE]
    return mixed_losses(stage.network, scorer, windows, counted, tokenizer, share)
