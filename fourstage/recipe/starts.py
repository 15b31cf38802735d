"""What parts of a stage's new network start from: ``starts_from``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fourstage.errors import ContractViolation, UnknownNameError
from fourstage.recipe import defaults
from fourstage.recipe.ledger import Ledger
from fourstage.recipe.networks import ResolvedNetwork
from fourstage.recipe.schema import Stage
from models import catalogue
from models.stage_format import CONFIG, NETWORK

EMBEDDINGS = "embeddings"  # the part that every network with a table of tokens has
VECTORS_BY = "VECTORS_BY"  # literal of a family whose vectors are learned from the stage's own text
ENTITIES = "entities"  # the part that is the table of a network with a vocabulary of its own


def families_of_vectors(folders: Sequence[Path]) -> list[str]:
    """Families whose vectors can be learned from a stage's own text, as its table's start."""
    return catalogue.saying("families", VECTORS_BY, folders)


def table_width(arguments: Mapping[str, Any]) -> int | None:
    """Width of a network's token vectors; None without a table of tokens."""
    return arguments.get("embedding_dim") or arguments.get("hidden_dim")


def resolve_starts(
    ledger: Ledger,
    i: int,
    stage: Stage,
    network: ResolvedNetwork,
    earlier: Mapping[str, ResolvedNetwork],
) -> dict[str, str]:
    """{part: the earlier stage, folder of one or of a version's, file, or family it starts from}.

    Args:
        ledger: Collects faults.
        i: The stage's number.
        stage: The stage as written.
        network: Its network.
        earlier: Networks of the stages before, by name.
    """
    at = f"stages[{i}].starts_from"
    said = stage.starts_from or {}
    if said and i and not stage.starts_network:
        ledger.fault(
            at,
            "the stage goes on with the network of the stage before, weights and all; give it a"
            " family and a size of its own, or leave it out",
        )
        return {}
    literals = catalogue.literals("families", network.family, ledger.folders)
    tables = literals.get("TABLES", {})
    parts = {**literals.get("STARTS", {}), **{part: {} for part in tables}}
    parts |= {EMBEDDINGS: {}} if table_width(network.arguments) else {}
    learned = families_of_vectors(ledger.folders)
    found: dict[str, str] = {}
    tokenizers: dict[str, str] = {}
    for part, name in said.items():
        where = f"{at}.{part}"
        if part not in parts:
            ledger.faults.append(
                UnknownNameError(
                    f"{ledger.recipe.where}: {where}",
                    part,
                    f"a part of family {network.family!r} that can start from another network",
                    parts,
                )
            )
            continue
        others = ", ".join(each for each in said if each != part and each not in tables)
        if part == EMBEDDINGS and others:
            ledger.fault(
                where, f"{others} comes with token vectors of its own; leave one of the two out"
            )
        path = ledger.registered.get(name) or _path(name, ledger)
        if part in tables:
            found[part] = name
            _fits_table(ledger, where, name, network, earlier, tables[part])
        elif name in earlier:
            found[part] = name
            _fits(ledger, where, parts[part], network, earlier[name])
        elif (path / CONFIG).is_file():
            if (config := _stage_config(path)) is None:
                ledger.fault(
                    where,
                    f"expected the folder of a finished stage, with its {CONFIG} and {NETWORK}, got"
                    f" {path}; a checkpoint from elsewhere is a stage by `init`",
                )
                continue
            found[part] = str(path.resolve())
            tokenizers[part] = config["tokenizer_digest"]
            theirs = ResolvedNetwork(config["family"], config["network"], {})
            _fits(ledger, where, parts[part], network, theirs)
        elif part == EMBEDDINGS and name in learned:
            found[part] = name
            if stage.stage == "finetune":
                ledger.fault(where, f"stage finetune reads no text to learn {name} from")
        elif part == EMBEDDINGS and path.is_file():
            found[part] = str(path.resolve())
            _check_file(ledger, where, path, network)
        else:
            what, file = "an earlier stage of the recipe", ""
            if part == EMBEDDINGS:
                what += " or a family whose vectors are learned from the stage's text"
                file = ", a file of word vectors"
            ledger.faults.append(
                UnknownNameError(
                    f"{ledger.recipe.where}: {where}",
                    name,
                    what,
                    [*earlier, *(learned if part == EMBEDDINGS else ())],
                    f"The folder of a finished stage is allowed too{file}, or a registered version,"
                    " models:/NAME@alias.",
                )
            )
    if len(set(tokenizers.values())) > 1:
        each = ", ".join(f"{part} {digest[:12]}" for part, digest in tokenizers.items())
        ledger.fault(
            at,
            f"expected networks with one vocabulary, got those of the tokenizers {each}; the same"
            " token has to have the same number on both sides, so train them in one recipe, or"
            " with one tokenizer",
        )
    return found


def _path(said: str, ledger: Ledger) -> Path:
    """A path, searched in the recipe's own folders first."""
    return next((f / said for f in ledger.folders if (f / said).exists()), Path(said))


def _stage_config(folder: Path) -> dict[str, Any] | None:
    """The settings of a finished stage; None for another folder, such as one of transformers."""
    try:
        config = json.loads((folder / CONFIG).read_text("utf-8"))
    except ValueError:
        return None
    needed = {"family", "network", "tokenizer_digest"}
    whole = isinstance(config, dict) and needed <= config.keys() and (folder / NETWORK).is_file()
    return config if whole else None


def _fits(
    ledger: Ledger,
    where: str,
    needed: Mapping[str, Any],
    network: ResolvedNetwork,
    theirs: ResolvedNetwork,
) -> None:
    """Check that the settings that a part depends on are those of the network it starts from."""
    if not needed:
        mine, other = table_width(network.arguments), table_width(theirs.arguments)
        if mine != other:
            ledger.fault(
                where,
                f"expected token vectors of {mine} numbers, which is this network's width, got"
                f" {other or 'none'} ({theirs.family}); give `size` as a mapping",
            )
        return
    for name, otherwise in needed.items():
        wanted, own = (each.arguments.get(name, otherwise) for each in (theirs, network))
        if wanted is None:
            ledger.fault(
                where, f"a network of family {theirs.family} has no {name}, so no such part"
            )
            return
        if own != wanted:
            ledger.fault(
                where,
                f"expected {name} {wanted}, as in the network that it starts from, got {own}; give"
                " both the same `size`",
            )


def _fits_table(
    ledger: Ledger,
    where: str,
    name: str,
    network: ResolvedNetwork,
    earlier: Mapping[str, ResolvedNetwork],
    size: tuple[str, str],
) -> None:
    """Check that a table starts from a stage with a vocabulary of its own, which fits in it."""
    rows, width = size
    own = {
        each: (earlier[each], stage.tokenizer.vocabulary_size or defaults.VOCABULARY_SIZE)
        for each, stage in zip(ledger.names(), ledger.recipe.stages, strict=True)
        if stage.tokenizer is not None and each in earlier
    }
    if name not in own:
        what = "an earlier stage of the recipe with a `tokenizer` of its own"
        ledger.faults.append(UnknownNameError(f"{ledger.recipe.where}: {where}", name, what, own))
        return
    theirs, vocabulary_size = own[name]
    if (wanted := table_width(theirs.arguments)) != network.arguments.get(width):
        ledger.fault(
            where,
            f"expected {width} {wanted}, the width of the vectors of stage {name}, got"
            f" {network.arguments.get(width)}; give both the same",
        )
    if (there := network.arguments.get(rows, 0)) < vocabulary_size:
        ledger.fault(
            where,
            f"expected {rows} of {vocabulary_size} or more, the vocabulary_size of stage {name},"
            f" got {there}; the table has a row for each of its names",
        )


def _check_file(ledger: Ledger, where: str, path: Path, network: ResolvedNetwork) -> None:
    from models.interchange.vector_files import width_of

    try:
        width = width_of(path)
    except ContractViolation as error:
        ledger.fault(where, str(error))
        return
    if width != (own := table_width(network.arguments)):
        ledger.fault(
            where,
            f"expected vectors of {own} numbers, which is this network's width, got {width} in"
            f" {path}; give `size` as a mapping, or take other vectors",
        )
