"""File names in a stage's folder.

config.json                      configuration of network, objectives and head
network.safetensors              weights of the network
heads/<objective>.safetensors    weights of each objective or head, even if it has none
heads/subwords.safetensors       rows of words and n-grams that fastText's vectors are means of
heads/feature_based.safetensors  of what is between a frozen network and its head
history.json, metrics.json       training history and metrics, until the step has recorded them
tokenizer/                       tokenizer, in a standalone folder; the store keeps it separately
"""

from __future__ import annotations

from pathlib import Path

CONFIG = "config.json"
NETWORK = "network.safetensors"
HISTORY = "history.json"
METRICS = "metrics.json"
TOKENIZER = "tokenizer"
HEADS = "heads"
FEATURE_BASED = "feature_based"
SUBWORDS = "subwords"
ANSWERS = "answers"  # in `CONFIG`: those of captions that a head in `HEADS` has learned
EARLIER = "earlier_objectives"  # in `CONFIG`: those of the stages before, with their settings
MIXTURE = "mixture"  # in `CONFIG`: what a head has learned beside its own dataset
BEFORE_REGIONS = "before_regions"  # in `CONFIG`: the network can see pictures and has seen none yet


def head_file(folder: Path, name: str) -> Path:
    """The weights of an objective or head of the stage in `folder`."""
    return folder / HEADS / f"{name}.safetensors"


def head_files(folder: Path) -> dict[str, Path]:
    """{objective or head: its weights} of the stage in `folder`, in order of name."""
    return {path.stem: path for path in sorted((folder / HEADS).glob("*.safetensors"))}
