"""``convert``: converts a network from or to a Hugging Face folder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from fourstage.command.options import add_json
from fourstage.command.output import only_this_on_standard_output, print_line
from fourstage.errors import RecipeError
from fourstage.settings import home
from models.catalogue import provided

HELP = "convert a network from or to a Hugging Face folder, or word vectors to a file"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a Hugging Face folder, hf:owner/name@commit, a stage's folder, or models:/NAME@alias",
    )
    parser.add_argument(
        "target",
        metavar="TARGET",
        type=Path,
        help="a new folder: a stage's if SOURCE is in Hugging Face's format, else one in Hugging"
        " Face's format; for word vectors a new file, .vec, .bin or .txt",
    )
    parser.add_argument(
        "--as-unilm",
        action="store_true",
        help="write a Hugging Face BERT as a stage of family unilm, which a recipe can start from",
    )
    add_json(parser)


def handle(options: Namespace) -> int:
    """Convert in the direction given by the source."""
    with only_this_on_standard_output(options.json) as say:
        told = convert(options.source, options.target, options.as_unilm)
        say(told)
    if not options.json:
        print_line(f"{told['family']}, {told['parameters']:,} parameters → {told['target']}")
        print_line(f"heads: {', '.join(told['heads']) or 'none'}")
        print_line(f"tokenizer: {'yes' if told['tokenizer'] else 'no'}")
        for note in told["notes"]:
            print_line(f"note: {note}")
    return 0


def convert(source: str, target: Path, unilm: bool = False) -> dict[str, Any]:
    """Convert a network.

    Args:
        source: Its folder or address.
        target: A new folder; of word vectors a new file.
        unilm: Whether a Hugging Face BERT is written as a network of family ``unilm``.

    Returns:
        What was done, as plain JSON.

    Raises:
        RecipeError: The source is unknown or cannot be converted, or the target is not empty.
        ContractViolation: A file of the source is invalid.
        EnvironmentFault: The hub or the registry cannot be reached.
    """
    from models.interchange.huggingface import read_checkpoint, write_checkpoint
    from models.interchange.new_folder import refuse_files
    from models.interchange.published import published_folder
    from models.interchange.stage_folder import is_stage, read_stage, write_stage
    from models.interchange.vector_files import write_vectors_of
    from tasks.store.artifacts import tokenizer_in_store

    refuse_files(target)
    address = source.startswith(("hf:", "folder:"))
    folder = published_folder(source) if address else Path(source)
    notes: tuple[str, ...] = ()
    if unilm and (not folder.is_dir() or is_stage(folder)):
        raise RecipeError(f"--as-unilm: expected a Hugging Face folder of a BERT, got {source}")
    if folder.is_dir() and is_stage(folder):
        found = read_stage(folder, tokenizer_in_store(folder))
        if "static" in provided(found.family):
            write_vectors_of(found, target)
        else:
            notes = write_checkpoint(found, target)
            _write_card_of_stage(folder.resolve(), target, notes)
    elif folder.is_dir():
        found = read_checkpoint(folder)
        if unilm:
            from models.interchange.bert_as_unilm import as_unilm

            found = as_unilm(found)
        write_stage(found, target)
    elif source.startswith("models:/") or ("@" in source and "/" not in source):
        from tasks.registry.stage_files import stage_files

        with stage_files(source) as (stage, tokenizer):
            found = read_stage(stage, tokenizer)
        if "static" in provided(found.family):
            write_vectors_of(found, target)
        else:
            notes = write_checkpoint(found, target)
            _write_card_of_version(source, target, notes)
    else:
        raise RecipeError(
            f"{source[:200]}: expected a Hugging Face folder, a stage's folder or"
            " models:/NAME@alias; no such folder exists"
        )
    return {
        "source": source,
        "target": str(target),
        "family": found.family,
        "parameters": sum(array.size for array in found.network.values()),
        "heads": sorted(found.heads),
        "tokenizer": found.tokenizer is not None,
        "notes": [*found.notes, *notes],
    }


def _write_card_of_version(uri: str, target: Path, left_out: tuple[str, ...]) -> None:
    from tasks.registry.version_card import read_card
    from tasks.reports.hub_card import write_hub_card
    from tasks.tracking.connection import connect

    write_hub_card(*read_card(connect(), uri, home() / "store"), target, left_out)


def _write_card_of_stage(stage: Path, target: Path, left_out: tuple[str, ...]) -> None:
    """Write the card of a stage in a store; nothing is known about a folder from elsewhere."""
    from tasks.reports.hub_card import write_hub_card
    from tasks.reports.model_card import model_card
    from tasks.store.artifacts import MANIFEST, Store
    from tasks.store.model_facts import facts_in_store

    if not (stage / MANIFEST).is_file():
        return
    store = Store(stage.parent.parent.parent)
    facts = facts_in_store(store, {"kind": "stage", "key": stage.name})
    if facts is not None:
        card = model_card(facts, f"Stage {facts.stages[-1].stage}")
        write_hub_card(facts, card, target, left_out)
