"""What a recipe takes from the network that it starts from: ``init`` of its first stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fourstage.errors import located
from fourstage.recipe.ledger import Ledger
from fourstage.recipe.networks import ResolvedNetwork, resolve_network
from fourstage.recipe.resolved import ResolvedTokenizer
from fourstage.recipe.schema import Stage
from models import catalogue
from models.interchange.published import FOLDER, published_folder
from models.protocols import Tokenizer
from models.signatures import settings_of

MORE = ("learn_from", "add_words")  # keys that do not contradict the existing tokenizer
ALLOWED = frozenset({"stage", "name", "init"})  # the keys of a stage that is not trained


@dataclass(frozen=True)
class Start:
    """A network that was trained elsewhere.

    Attributes:
        folder: The folder with its files.
        network: Its family and arguments.
        heads: Names of the objectives whose heads come with it.
        tokenizer: The tokenizer it was trained with.
        special: The tokenizer itself, for its special tokens.
    """

    folder: Path
    network: ResolvedNetwork
    heads: tuple[str, ...]
    tokenizer: ResolvedTokenizer
    special: Tokenizer


def resolve_start(ledger: Ledger) -> Start | None:
    """Inspect the network that the first stage starts from, if any.

    Raises:
        RecipeError: It cannot be read, or is not supported.
        ContractViolation: One of its files is invalid.
        EnvironmentFault: The hub cannot be reached and the files are not cached.
    """
    stages = ledger.recipe.stages
    for i, stage in enumerate(stages):
        if stage.init is not None:
            _check(ledger, i, stage)
    address = stages[0].init
    if address is None:
        return None
    from models.interchange.pretrained_network import read_start
    from models.saved_tokenizer import scheme_of

    with located(f"{ledger.recipe.where}: stages[0].init"):
        folder = ledger.registered.get(address)
        folder = folder or published_folder(_found(address, ledger.folders))
        given = read_start(folder, weights=False)
    known = settings_of(catalogue.file_of("families", given.family, ledger.folders))
    # A stage says every argument; one that is None by default is left out, as in a recipe.
    settings: dict[str, Any] = {
        name: value
        for name, value in given.settings.items()
        if value is not None or name not in known or known[name].default is not None
    }
    size = settings.pop("vocabulary_size")
    network = resolve_network(ledger, given.family, settings, "stages[0].init")
    tokenizer = ResolvedTokenizer(
        scheme_of(given.tokenizer),
        size,
        given.tokenizer.lowercase,
        (),
        sentinels=len(given.tokenizer.sentinel_ids),
        marks=getattr(given.tokenizer, "marks", ()),
    )
    _agrees(ledger, network, tokenizer)
    ledger.origins |= {name: "stages[0].init" for name in ("size", "tokenizer")}
    ledger.notes.extend(f"stages[0].init: {note}" for note in given.notes)
    return Start(folder, network, tuple(sorted(given.heads)), tokenizer, given.tokenizer)


def _found(address: str, folders: Iterable[Path]) -> str:
    """The address of a folder, with the path searched in the recipe's own folders first."""
    if not address.startswith(FOLDER):
        return address
    said = address.removeprefix(FOLDER)
    there = [folder / said for folder in folders if (folder / said).is_dir()]
    return f"{FOLDER}{there[0]}" if there else address


def _check(ledger: Ledger, i: int, stage: Stage) -> None:
    at = f"stages[{i}].init"
    if i:
        ledger.fault(at, "only the first stage starts from a network that was trained elsewhere")
    surplus = sorted(stage.model_fields_set - ALLOWED)
    if surplus and stage.stage == "general":
        ledger.fault(
            f"stages[{i}].{surplus[0]}",
            f"the network of `init` is taken as it is, so nothing of {', '.join(surplus)} would"
            " be used; go on training it in a stage domain",
        )


def _agrees(ledger: Ledger, network: ResolvedNetwork, tokenizer: ResolvedTokenizer) -> None:
    """Check that the recipe's network and tokenizer agree with the files."""
    recipe = ledger.recipe
    if recipe.family != network.family:
        ledger.fault(
            "family", f"expected {network.family!r}, that of `init`, got {recipe.family!r}"
        )
        return
    if recipe.size is not None:
        said = resolve_network(ledger, recipe.family, recipe.size, "size").arguments
        other = _differences(said, network.arguments)
        if other:
            ledger.fault("size", f"not that of `init`: {'; '.join(other)}; leave `size` out")
    if recipe.tokenizer is None:
        return
    said = recipe.tokenizer.model_dump(exclude_none=True)
    if "learn_from" in said and "add_words" not in said:
        ledger.fault(
            "tokenizer.learn_from",
            "the tokenizer is that of `init`; leave it out, or give `add_words` too",
        )
    theirs = {name: getattr(tokenizer, name) for name in said if name not in MORE}
    other = _differences({name: said[name] for name in theirs}, theirs)
    if other:
        ledger.fault("tokenizer", f"not that of `init`: {'; '.join(other)}; leave it out")


def _differences(said: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} {said[name]} here and {theirs.get(name)} there"
        for name in said
        if said[name] != theirs.get(name)
    ]
