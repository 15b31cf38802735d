"""How a stage trains a pre-trained network: what of it, and with which regularisation."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fourstage.accelerator import backend
from fourstage.activity import activity
from fourstage.errors import UnknownNameError
from fourstage.recipe.ledger import Ledger
from fourstage.recipe.networks import ResolvedNetwork
from fourstage.recipe.schema import Stage
from fourstage.terminal import libraries_are_silent
from models import catalogue
from models.protocols import Capability
from models.training.stage import Budget

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedStage

LORA = {"rank": 8, "alpha": 16.0, "targets": ["query", "value"], "dropout": 0.0}
FEATURE_BASED = {"hidden_dim": 128, "num_layers": 1, "dropout": 0.1}
REMEDIES = ("l2_sp", "ewc", "rec_adam")  # at most one of them
KEYS = ("reinitialise", "freeze", "gradual_unfreezing", "lora", "feature_based")
AVERAGE = {"decay": 0.99}
EWC = {"samples": 256}
REGULARISERS = {"r_drop": {"alpha": 1.0}, "fgm": {"epsilon": 0.1}}
ON_TENSORFLOW = ("lora", "fgm")  # and the remedy ewc
_WILD = re.compile(r"[*?[]")


def resolve_tuning(
    ledger: Ledger, at: str, stage: Stage, random_weights: bool, heads: Collection[str]
) -> dict[str, Any]:
    """Settings of `models.training.stage.StageSettings` by name.

    Args:
        ledger: Collects faults and origins.
        at: Path of the stage.
        stage: The stage.
        random_weights: Whether its network starts from random weights.
        heads: Names of its objectives and its head, with which the paths of their weights begin.
    """
    said = [key for key in KEYS if getattr(stage, key) is not None]
    if random_weights and said:
        ledger.fault(
            ", ".join(f"{at}.{key}" for key in said),
            "the network of this stage starts from random weights, so there is nothing to"
            f" preserve; leave {'it' if len(said) == 1 else 'them'} out",
        )
        stage = stage.model_copy(update=dict.fromkeys(said))  # what is left out conflicts with none
    if stage.lora is not None and stage.gradual_unfreezing is not None:
        ledger.fault(
            f"{at}.gradual_unfreezing",
            "with lora the network's own layers never train; keep one of the two",
        )
    if stage.reinitialise is not None and stage.lora is not None:
        ledger.fault(
            f"{at}.reinitialise",
            "with lora the network's own layers never train, so they would stay random; keep one of"
            " the two",
        )
    if stage.lora is not None:
        for i, pattern in enumerate(stage.freeze or ()):
            if pattern.partition("/")[0] not in heads:
                ledger.fault(
                    f"{at}.freeze[{i}]",
                    "with lora the network is frozen, and its updates are merged into the"
                    " projections that `targets` names, in every block; keep one of the two",
                )
    for key in ON_TENSORFLOW:
        if getattr(stage, key) is not None:
            _check_backend(ledger, f"{at}.{key}")
    gradual = stage.gradual_unfreezing
    return {
        "reinitialise": stage.reinitialise or 0,
        "freeze": stage.freeze or (),
        "gradual_unfreezing": gradual.model_dump(exclude_none=True) if gradual else None,
        "lora": stage.lora and ledger.filled(f"{at}.lora", stage.lora, LORA),
        "feature_based": _feature_based(ledger, at, stage),
        "average": stage.average and ledger.filled(f"{at}.average", stage.average, AVERAGE),
        **_regularisers(ledger, at, stage),
    }


def _feature_based(ledger: Ledger, at: str, stage: Stage) -> dict[str, Any] | None:
    said = stage.feature_based
    if said is None:
        return None
    head = next(iter(stage.head or {}), None)
    if head in catalogue.names("heads", ledger.folders):
        needs = catalogue.literals("heads", head, ledger.folders).get("NEEDS", ())
        if Capability.GENERATION in needs:
            ledger.fault(
                f"{at}.feature_based", f"head {head} writes with the network itself; leave it out"
            )
    for key in ("reinitialise", "freeze", "gradual_unfreezing", "lora", "fgm", "objectives"):
        if getattr(stage, key) is not None:
            ledger.fault(
                f"{at}.{key}",
                "with feature_based the whole network stays frozen and has no gradient; keep one of"
                " the two",
            )
    written = stage.optimizer
    for place, value in (
        *(
            (f"optimizer.{name}.layer_decay", settings.layer_decay)
            for name, settings in written or ()
            if settings is not None
        ),
        ("remedies.layer_decay", stage.remedies and stage.remedies.layer_decay),
    ):
        if value not in (None, 1.0):
            ledger.fault(
                f"{at}.{place}",
                "with feature_based no layer of the network is trained; leave it out",
            )
    return ledger.filled(f"{at}.feature_based", said, FEATURE_BASED)


def resolve_remedy(
    ledger: Ledger, at: str, stage: Stage, before: ResolvedStage | None, rate: float
) -> dict[str, Any]:
    """Settings of `ResolvedStage` by name: the remedy that pulls weights, and the text it reads.

    Args:
        ledger: Collects faults and origins.
        at: Path of the stage.
        stage: The stage.
        before: The stage whose weights it goes on with, or None.
        rate: Its peak learning rate.
    """
    said = stage.remedies
    named = [name for name in REMEDIES if said is not None and getattr(said, name) is not None]
    if said is None or not named:
        return {}
    name, at = named[0], f"{at}.remedies.{named[0]}"
    if before is None:
        ledger.fault(
            at, "the network starts from random weights, to which nothing is pulled; leave it out"
        )
    if len(named) > 1:
        ledger.fault(
            at,
            f"expected at most one of {', '.join(REMEDIES)}, got {' and '.join(named)}; keep one",
        )
    for key in ("lora", "feature_based"):
        if getattr(stage, key) is not None:
            ledger.fault(
                at, f"with {key} the network's own weights stay as they are; keep one of the two"
            )
    if stage.reinitialise is not None:
        ledger.fault(
            at,
            "with reinitialise the top layers would be pulled to random weights; keep one of the"
            " two, or protect the lower layers with layer_decay or freeze",
        )
    if said.rec_adam is not None and said.rec_adam.pull * rate >= 1.0:
        ledger.fault(
            f"{at}.pull",
            f"expected less than {1.0 / rate:g}, 1 / peak_learning_rate, got"
            f" {said.rec_adam.pull:g}: weights would overshoot what they are pulled to",
        )
    if said.ewc is None:
        return {"remedies": {name: getattr(said, name).model_dump()}}
    _check_backend(ledger, at)
    if stage.stage == "finetune":
        ledger.fault(
            at,
            "how much a weight matters comes from the loss of the stage before, which stage"
            " finetune does not have; use l2_sp or rec_adam",
        )
    if before is not None and not before.corpora:
        ledger.fault(at, f"stage {before.name} reads no text here; use l2_sp or rec_adam")
    return {
        "remedies": {name: ledger.filled(at, said.ewc, EWC)},
        "earlier": {n: round(share, 9) for n, share in (before.corpora if before else {}).items()},
    }


def _regularisers(ledger: Ledger, at: str, stage: Stage) -> dict[str, Any]:
    written = {name: getattr(stage, name) for name in REGULARISERS}
    return {
        name: said and ledger.filled(f"{at}.{name}", said, REGULARISERS[name])
        for name, said in written.items()
    }


def _check_backend(ledger: Ledger, at: str) -> None:
    if backend() != "tensorflow":
        ledger.fault(at, f"needs the TensorFlow backend, and KERAS_BACKEND is {backend()}")


def check_gradual_unfreezing(
    ledger: Ledger, at: str, stage: Stage, network: ResolvedNetwork, budget: Budget
) -> None:
    """Refuse a Transformer's layers that can't all thaw, if the recipe alone tells.

    Args:
        ledger: Collects faults.
        at: Path of the stage.
        stage: The stage. What depends on the number of its rows, the stage itself refuses.
        network: Its network.
        budget: How long it trains.
    """
    gradual, size = stage.gradual_unfreezing, network.arguments
    blocks = size.get("num_groups", size.get("num_layers"))
    known = "num_heads" in size and isinstance(blocks, int)
    if gradual is None or stage.freeze or stage.phases or not known:
        return
    layers = blocks + 1 + bool(stage.head)  # with embeddings and head
    if gradual.share is not None:
        each, whole = gradual.share, 1.0
    elif gradual.epochs is not None and budget.unit == "epochs":
        each, whole = gradual.epochs, budget.amount
    else:
        return
    if (layers - 1) * each >= whole:
        ledger.fault(
            f"{at}.gradual_unfreezing",
            f"embeddings, blocks and head are {layers} layers, so expected less than"
            f" {whole / (layers - 1):.3g}, got {each:g}: the stage would end before all thaw",
        )


def check_reinitialise(ledger: Ledger, at: str, stage: Stage, network: ResolvedNetwork) -> None:
    """Refuse layers at random where not every layer is a block of its own, or more than there are.

    Args:
        ledger: Collects faults.
        at: Path of the stage.
        stage: The stage.
        network: The network. What it does not tell here, the stage itself refuses.
    """
    count, layers = stage.reinitialise, network.arguments.get("num_layers")
    if count is None:
        return
    several = {"encoder_decoder", "static"} & catalogue.provided(network.family, ledger.folders)
    shared = network.arguments.get("num_groups", layers) != layers
    if several or shared or "num_cross_layers" in network.arguments:
        ledger.fault(
            f"{at}.reinitialise",
            "expected an encoder or decoder in which every layer is a block with weights of its"
            f" own; {network.family} has none, shares them between layers, or has several stacks;"
            " leave it out",
        )
    elif isinstance(layers, int) and count > layers:
        ledger.fault(
            f"{at}.reinitialise", f"expected at most the network's {layers} layers, got {count}"
        )


def check_freeze(ledger: Ledger, stage: ResolvedStage, vocabulary_size: int) -> None:
    """Refuse patterns that match no weight, and those that leave nothing to train.

    Args:
        ledger: Collects faults.
        stage: The stage. What the weights of its objectives and its head are called, it knows
            itself when it begins.
        vocabulary_size: Number of token ids.
    """
    if not stage.freeze:
        return
    there = _weights_of(ledger, stage, vocabulary_size)
    heads = [f"{name}/" for name in (*stage.objectives, *(stage.heads or ()))]
    for i, pattern in enumerate(stage.freeze):
        begins = _WILD.split(pattern)[0]
        of_head = any(name.startswith(begins) or begins.startswith(name) for name in heads)
        if of_head or any(fnmatchcase(name, pattern) for name in there):
            continue
        part = f"{pattern.partition('/')[0]}/"
        parts = {f"{name.partition('/')[0]}/*" for name in (*there, *heads)}
        ledger.faults.append(
            UnknownNameError(
                f"{ledger.recipe.where}: stages[{stage.index}].freeze[{i}]",
                pattern,
                "a pattern that matches a weight",
                [name for name in there if name.startswith(part)] or parts,
            )
        )
    every = (*there, *(f"{name}*" for name in heads))
    if all(any(fnmatchcase(name, pattern) for pattern in stage.freeze) for name in every):
        ledger.fault(
            f"stages[{stage.index}].freeze", "every weight is frozen, so there is nothing to train"
        )


def check_lora(ledger: Ledger, stage: ResolvedStage, vocabulary_size: int) -> None:
    """Refuse names of projections that the network does not have.

    Args:
        ledger: Collects faults.
        stage: The stage.
        vocabulary_size: Number of token ids.
    """
    if not stage.lora:
        return
    there = _weights_of(ledger, stage, vocabulary_size)
    layers = {name.split("/")[-2] for name in there if name.endswith("/kernel")}
    for name in stage.lora["targets"]:
        if name not in layers:
            where = f"{ledger.recipe.where}: stages[{stage.index}].lora.targets"
            ledger.faults.append(UnknownNameError(where, name, "a projection", layers))


def _weights_of(ledger: Ledger, stage: ResolvedStage, vocabulary_size: int) -> tuple[str, ...]:
    arguments = json.dumps(stage.network, sort_keys=True)
    return _weight_names(stage.family, arguments, vocabulary_size, tuple(ledger.folders))


@lru_cache(maxsize=64)
def _weight_names(
    family: str, arguments: str, vocabulary_size: int, folders: tuple[Path, ...]
) -> tuple[str, ...]:
    from models.training.assembly import weight_names

    said = json.loads(arguments)
    with activity("looking up the names of weights"), libraries_are_silent():  # imports Keras
        return weight_names(family, said, vocabulary_size=vocabulary_size, folders=folders)


def check_r_drop(ledger: Ledger, at: str, stage: Stage, network: object, head: object) -> None:
    """Refuse R-Drop where two passes have no divergence, or none but 0 for lack of dropout.

    Args:
        ledger: Collects faults.
        at: Path of the stage.
        stage: The stage.
        network: Dropout rate of the network; None where it names none.
        head: That of the head, likewise.
    """
    named = next(iter(stage.head or {}), None)
    if stage.r_drop is not None and named in catalogue.saying("heads", "EMBEDS", ledger.folders):
        ledger.fault(f"{at}.r_drop", f"head {named} predicts no distribution; leave it out")
    where = "size"
    if (features := stage.feature_based) is not None:  # a frozen network is read without
        where = "feature_based"
        network = FEATURE_BASED["dropout"] if features.dropout is None else features.dropout
    rates = (network, head)
    if stage.r_drop is not None and all(rate == 0 for rate in rates):
        ledger.fault(
            f"{at}.r_drop",
            "dropout is 0 in network and head, so both passes would be the same; give"
            f" `{where}` or the head a dropout, or leave r_drop out",
        )
