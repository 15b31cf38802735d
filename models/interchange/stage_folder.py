"""Reading and writing stage folders as plain arrays, in the format of the store and MLflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from fourstage.errors import ContractViolation, RecipeError
from models import catalogue
from models.interchange.huggingface import PretrainedNetwork
from models.interchange.new_folder import refuse_files, written_whole
from models.interchange.weight_files import check_finite
from models.saved_tokenizer import SETTINGS, load_tokenizer
from models.signatures import settings_of
from models.stage_format import CONFIG, HEADS, NETWORK, TOKENIZER, head_file, head_files


def read_stage(folder: Path, tokenizer: Path | None = None) -> PretrainedNetwork:
    """Read a stage folder.

    Args:
        folder: The stage's folder.
        tokenizer: Folder of its tokenizer; None for ``tokenizer/`` in the stage's folder.

    Raises:
        RecipeError: The tokenizer is not the one the stage was trained with.
        ContractViolation: A file is malformed.
    """
    try:
        config = json.loads((folder / CONFIG).read_text("utf-8"))
        network = load_file(folder / NETWORK)
        heads = {name: load_file(path) for name, path in head_files(folder).items()}
        family, network_settings = str(config["family"]), dict(config["network"])
        vocabulary_size, digest = int(config["vocabulary_size"]), config["tokenizer_digest"]
        labels = tuple(config["label_names"])
        length = int(config["sequence_length"])
        head_settings = dict(config.get("head") or {})
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise ContractViolation(
            f"{folder}: not a readable stage ({type(error).__name__}: {error})"
        ) from error
    check_finite(folder / NETWORK, network)
    for name, weights in heads.items():
        check_finite(head_file(folder, name), weights)
    place = tokenizer or folder / TOKENIZER
    loaded = load_tokenizer(place) if (place / SETTINGS).is_file() else None
    if loaded is not None and loaded.digest != digest:
        raise RecipeError(
            f"{folder}: trained with tokenizer {str(digest)[:12]}, got {loaded.digest[:12]}"
        )
    # A stage's configuration may leave out settings that have a default.
    known = settings_of(catalogue.file_of("families", family))
    defaults = {name: each.default for name, each in known.items() if not each.required}
    return PretrainedNetwork(
        family=family,
        settings={**defaults, **network_settings, "vocabulary_size": vocabulary_size},
        network=network,
        heads=heads,
        tokenizer=loaded,
        pad_id=loaded.pad_id if loaded is not None else int(config.get("pad_id", 0)),
        label_names=labels,
        notes=() if loaded is not None else ("no tokenizer beside the stage",),
        sequence_length=length,
        head_settings=head_settings,
    )


def write_stage(checkpoint: PretrainedNetwork, folder: Path) -> None:
    """Write a stage folder, atomically.

    Raises:
        RecipeError: The folder has files.
    """
    refuse_files(folder)
    with written_whole(folder) as part:
        fill_stage(checkpoint, part)
        if checkpoint.tokenizer is not None:
            checkpoint.tokenizer.save(part / TOKENIZER)


def fill_stage(checkpoint: PretrainedNetwork, folder: Path) -> None:
    """Write a stage, without its tokenizer, into an existing folder."""
    (folder / HEADS).mkdir()
    save_file(dict(checkpoint.network), folder / NETWORK)
    for name, weights in checkpoint.heads.items():
        save_file(dict(weights), head_file(folder, name))
    text = json.dumps(_config(checkpoint), indent=2, ensure_ascii=False, sort_keys=True)
    (folder / CONFIG).write_text(text + "\n", "utf-8")


def is_stage(folder: Path) -> bool:
    """Whether a folder is a stage of ours; Hugging Face's configurations have a ``model_type``."""
    try:
        config = json.loads((folder / CONFIG).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return False  # reading the folder will raise an error that names the file
    return isinstance(config, dict) and "family" in config and "model_type" not in config


def _config(checkpoint: PretrainedNetwork) -> dict[str, Any]:
    settings = dict(checkpoint.settings)
    classifies = "sequence_classification" in checkpoint.heads
    return {
        "stage": "finetune" if classifies else "general",
        "family": checkpoint.family,
        "vocabulary_size": settings.pop("vocabulary_size"),
        "network": settings,
        "sequence_length": settings["max_sequence_length"],
        "precision": "float32",
        "objectives": {name: {} for name in checkpoint.heads if name != "sequence_classification"},
        "head": {"sequence_classification": {}} if classifies else None,
        "label_names": list(checkpoint.label_names),
        "pad_id": checkpoint.pad_id,
        "tokenizer_digest": checkpoint.tokenizer.digest if checkpoint.tokenizer else "",
    }
