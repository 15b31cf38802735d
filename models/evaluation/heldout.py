"""Loss on text that was not trained on, measured the same way before, after and between stages.

The masks are drawn from a fixed seed and with the objective's default settings or those it is
`MEASURED` with, whatever the stage itself was trained with; so two numbers for one corpus, one
tokenizer and one sequence length can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from models.catalogue import literals
from models.evaluation.resampling import ratio_error
from models.protocols import Context, TokenisedCorpus, Tokenizer
from models.training.assembly import build_objectives
from models.training.stage_model import Means, StageModel, memory_of
from models.training.trained_stage import load_stage

SEED = 20_201  # of the masks; changing it makes old and new numbers incomparable
BATCH_SIZE = 16
ROWS = 2048
PARTS = ("sum", "weight")  # of a batch's loss


class HeldOut:
    """Held-out corpora, ready to be measured again and again on one network.

    Args:
        network: It may go on learning between the measurements.
        name: Of the objective that scores.
        scorer: Of that objective, with its weights.
        corpora: {source: held-out documents}.
        tokenizer: The recipe's.
        sequence_length: Tokens a window.
        rows: Windows of each corpus, the first ones.
        folders: Project folders, searched first.
        task: Number of the task that the objective is to the network.

    Attributes:
        feeds: {source: the batches it is measured on}.
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
    ):
        from models.inputs.batches import batches

        self._name = name
        self._count = max(1, rows // BATCH_SIZE)
        context = Context(tokenizer, sequence_length)
        measured = literals("objectives", name, folders).get("MEASURED", {})
        objective = build_objectives({name: measured}, None, context, folders)[name]
        self.feeds = {
            source: batches(
                {source: (corpus, 1.0)},
                [objective],
                context,
                BATCH_SIZE,
                SEED,
                once=True,
                task=task,
                in_lanes=bool(memory_of(network)),
            )
            for source, corpus in corpora.items()
        }
        self._model = StageModel(network, {name: scorer})
        if memory_of(network):
            self._model.carry_memory(BATCH_SIZE)
        self._model.ready()
        self._traced = False

    def losses(self, go_on: Callable[[], None] = lambda: None) -> dict[str, dict[str, float]]:
        """{source: {"loss": nats a predicted token, "error": its standard error, "accuracy": 0-1}}.

        The error is that of a ratio over batches of neighbouring windows; not there for one batch.

        Args:
            go_on: Called after each batch; it may raise.
        """
        found: dict[str, dict[str, float]] = {}
        for source, feed in self.feeds.items():
            if not self._traced:
                self._model.trace_for(feed.batch(0), lengths_vary=False)
                self._traced = True
            self._model.forget()
            means, losses = Means(), []
            for batch in islice(feed.iterate(), self._count):
                logs = self._model.test_on_batch(batch, return_dict=True)
                means.add(logs)
                losses.append([float(logs[f"{self._name}/loss/{part}"]) for part in PARTS])
                go_on()
            found[source] = {
                score.removeprefix(f"{self._name}/"): mean for score, mean in means.result().items()
            }
            if len(losses) > 1:
                found[source]["error"] = ratio_error(*np.transpose(losses))
        return found


def heldout_losses(
    folder: Path,
    tokenizer: Tokenizer,
    corpora: Mapping[str, TokenisedCorpus],
    *,
    objective: str,
    sequence_length: int | None = None,
    rows: int = ROWS,
    folders: Sequence[Path] = (),
) -> dict[str, dict[str, float]]:
    """Held-out loss of a finished stage on each corpus, in float32.

    A finetune stage has the head that its last pre-training stage left, so that forgetting can be
    measured: the loss of the changed network under the old head.

    Args:
        folder: Of the stage.
        tokenizer: The recipe's.
        corpora: {source: held-out documents}.
        objective: The one that scores.
        sequence_length: Tokens a window; the stage's own where None.
        rows: Windows of each corpus, the first ones.
        folders: Project folders, searched first.

    Raises:
        RecipeError: If the stage has no such head.
    """
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
    )
    return measured.losses()
