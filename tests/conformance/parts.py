"""What the conformance tests run over: every family with every objective and head it can carry."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import keras
import numpy as np

from fourstage.errors import RecipeError
from models import catalogue
from models.inputs.batches import batches
from models.inputs.captions import asked_answers
from models.protocols import Batch, Capability, Context, Objective
from models.signatures import settings_of
from models.training.optimizer import make_optimizer
from models.training.stage_model import StageModel
from models.weights import save_weights
from tests.models.memory_corpus import (
    MemoryRows,
    PlainTokenizer,
    random_captions,
    random_corpus,
)
from tests.models.training.memory import RULE

VOCABULARY_SIZE = 120
LENGTH = 24
BATCH_SIZE = 6
SENTINELS = tuple(VOCABULARY_SIZE - 1 - i for i in range(8))
CONTEXT = Context(PlainTokenizer(VOCABULARY_SIZE, sentinel_ids=SENTINELS), LENGTH)
# The answer to row i, by kind.
ANSWERS = {
    "label": lambda i: "abc"[i % 3],
    # Words of one or two digits and a blank: this touches the first two at most.
    "spans": lambda i: [f'[[0, 2, "{"ab"[i % 2]}"]]', "[]"][i % 3 == 2],
    "extract": lambda i: ['[[0, "12"]]', "[]"][i % 3 == 2],
    "choice": lambda i: str(i % 2),
    "label_set": lambda i: json.dumps([*"abc"][: i % 4]),
    "number": lambda i: json.dumps(3 + i / 4),
    "text": lambda i: json.dumps([" ".join(str(5 + 7 * i % 90 + k) for k in range(1 + i % 4))]),
}
# Those that are networks; one that trains itself or counts alone has tests of its own.
FAMILIES = [
    name
    for name in catalogue.names("families")
    if not {"TRAINS", "COUNTS"} & set(catalogue.literals("families", name))
]
# Where ``tiny`` is wider than what is tested here needs.
NARROW = {"elmo": {"cell_dim": 128}}
# Those that score batches; one that trains the network itself has tests of its own.
OBJECTIVES = [
    name
    for name in catalogue.names("objectives")
    if not catalogue.literals("objectives", name).get("TRAINS")
]


@cache
def stages() -> list[tuple[str, tuple[str, ...], str | None]]:
    """(family, objectives, head) of every stage that can be made.

    Each objective alone, or with masked_lm where it needs another; and each head.
    """
    found = []
    for family in FAMILIES:
        for objective in OBJECTIVES:
            with suppress(RecipeError):
                found.append((family, catalogue.combination(family, objective), None))
        found += [
            (family, (), head) for head in catalogue.names("heads") if compatible(family, (), head)
        ]
    return found


def compatible(family: str, objectives: tuple[str, ...], head: str | None) -> bool:
    """Whether the catalogue lets them make a stage."""
    try:
        catalogue.check_compatible(family, objectives, head)
    except RecipeError:
        return False
    return True


def heads_of(family: str) -> list[str]:
    """The heads that a family can carry."""
    return [head for head in catalogue.names("heads") if compatible(family, (), head)]


def family_of(head: str) -> str:
    """bert, or gpt2 for a head that bert cannot carry."""
    return "bert" if compatible("bert", (), head) else "gpt2"


def network(family: str, seed: int = 0, **changes: Any) -> Any:
    """The family's ``tiny`` with a small vocabulary."""
    keras.utils.set_random_seed(seed)
    size = catalogue.literals("families", family)["SIZES"]["tiny"]
    settings = {"vocabulary_size": VOCABULARY_SIZE} | NARROW.get(family, {})
    if "max_sequence_length" in settings_of(catalogue.file_of("families", family)):
        settings["max_sequence_length"] = 2 * LENGTH
    made = catalogue.find("families", family)(**size | settings | changes)
    if hasattr(made, "spell"):
        made.spell(CONTEXT.tokenizer)
    return made


def shallow(family: str) -> dict[str, int]:
    """Settings by which a network of two alike layers, on either side, has one."""
    size = catalogue.literals("families", family)["SIZES"]["tiny"]
    return {name: 1 for name in ("num_layers", "num_decoder_layers") if size.get(name) == 2}


@dataclass
class Stage:
    """A stage ready to train."""

    network: Any
    objectives: dict[str, Objective]
    scorers: dict[str, Any]
    model: StageModel
    batch: Batch
    context: Context
    data: Any

    def train(self, steps: int, rate: float = 1e-3, until: float = 0.0) -> list[float]:
        """Losses of `steps` updates on the one batch, or less: `until` a share of the first."""
        self.model.compile(
            optimizer=make_optimizer(
                {**RULE, "peak_learning_rate": rate, "warmup": 0, "decay": "constant"},
                total_steps=steps,
            ),
            jit_compile="auto" if keras.backend.backend() == "jax" else False,
        )
        # Built while a step is traced, it would have the step traced twice.
        self.model.optimizer.build(self.model.trainable_variables)
        self.model.trace_for(self.batch, lengths_vary=False)
        losses = []
        for _ in range(steps):
            logs = self.model.train_on_batch(self.batch, return_dict=True)
            losses.append(
                sum(
                    float(logs[f"{name}/loss/sum"]) / float(logs[f"{name}/loss/weight"])
                    for name in self.scorers
                )
            )
            if losses[-1] < until * losses[0]:
                break
        return losses

    def scores(self) -> tuple[dict, dict]:
        """Scores and predictions on the batch, outside training."""
        return self.model.outputs(self.batch, training=False)


def stage(
    family: str, objectives: tuple[str, ...], head: str | None, seed: int = 0, **changes: Any
) -> Stage:
    """Network, scorers and one batch."""
    given = {name: settings(name, family) for name in (*objectives, head) if name}
    made_network = network(family, seed, **changes)  # last, for a teacher draws by itself
    named = {name: catalogue.find("objectives", name) for name in objectives}
    context = replace(CONTEXT, network=made_network.provides)
    data: Any = random_corpus(40, VOCABULARY_SIZE, seed=3)
    if Capability.REGIONS in catalogue.needed(objectives):
        data = random_captions(40, VOCABULARY_SIZE, made_network.region_dim, seed=3)
        asked = {name: given[name] for name in objectives}
        context = replace(context, answers=asked_answers(asked, [data]))
    if Capability.ENTITIES in made_network.provides:
        data = random_corpus(40, VOCABULARY_SIZE, seed=3, entities=20)
    if head is not None:
        named[head] = catalogue.find("heads", head)
        data = answered(head)
        names = catalogue.answers_of(head).names(data.answers)
        context = replace(context, label_names=names, rows=data)
    made = {name: found(context, **given[name]) for name, found in named.items()}
    scorers = {name: objective.attach(made_network) for name, objective in made.items()}
    fed = batches({"data": (data, 1.0)}, list(made.values()), context, BATCH_SIZE, seed=5)
    model = StageModel(made_network, scorers)
    return Stage(made_network, made, scorers, model, fed.batch(0), context, data)


def settings(objective: str, family: str) -> dict[str, Any]:
    """Settings without which an objective cannot be made."""
    if objective == "distillation":
        return {"teacher": str(teacher(family))}
    return {"target_length": 6} if objective == "sequence_to_sequence" else {}


@cache
def teacher(family: str) -> Path:
    """Folder of a finished stage: masked_lm, trained on the batch that students are tested on."""
    made = stage(family, ("masked_lm",), None, seed=8, dropout=0.0)
    made.train(60)
    folder = Path(tempfile.mkdtemp(prefix="teacher-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return save(made, family, folder)


def save(made: Stage, family: str, folder: Path) -> Path:
    """Write a stage of masked_lm as the training loop does."""
    (folder / "heads").mkdir()
    save_weights(made.network, folder / "network.safetensors")
    save_weights(made.scorers["masked_lm"], folder / "heads" / "masked_lm.safetensors")
    network_settings = made.network.get_config()
    for name in ("vocabulary_size", "dtype", "name"):
        network_settings.pop(name)
    config = {
        "family": family,
        "network": network_settings,
        "vocabulary_size": VOCABULARY_SIZE,
        "sequence_length": LENGTH,
        "precision": "float32",
        "objectives": {"masked_lm": {}},
        "head": None,
        "label_names": [],
        "tokenizer_digest": CONTEXT.tokenizer.digest,
    }
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return folder


def answered(head: str) -> MemoryRows:
    """Rows with the answers of a head's kind, some of them pairs."""
    answer = ANSWERS[catalogue.answers_name(head)]
    rng = np.random.default_rng(0)

    def text() -> list[int]:
        return rng.integers(5, VOCABULARY_SIZE, rng.integers(2, 9)).tolist()

    def texts(i: int) -> tuple[list[int], ...]:
        if catalogue.answers_name(head) == "choice":
            return (text(), *(text() for _ in range(2 + i % 3)))
        if catalogue.literals("heads", head).get("EMBEDS"):
            return (text(), text())
        return (text(), text()) if i % 2 else (text(),)

    return MemoryRows([(*texts(i), answer(i)) for i in range(24)])
