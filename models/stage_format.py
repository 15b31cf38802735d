"""What lies in a stage's folder, by name.

config.json                      what the network is and what it was trained for
network.safetensors              its weights
heads/<objective>.safetensors    one file for each objective or head that has weights
history.json, metrics.json       what the training said, until its step has recorded it
tokenizer/                       in a folder that stands alone; the store keeps it apart
"""

from __future__ import annotations

from pathlib import Path

CONFIG = "config.json"
NETWORK = "network.safetensors"
HISTORY = "history.json"
METRICS = "metrics.json"
TOKENIZER = "tokenizer"
HEADS = "heads"


def head_file(folder: Path, name: str) -> Path:
    """The weights of an objective or head of the stage in `folder`."""
    return folder / HEADS / f"{name}.safetensors"


def head_files(folder: Path) -> dict[str, Path]:
    """{objective or head: its weights} of the stage in `folder`, in order of name."""
    return {path.stem: path for path in sorted((folder / HEADS).glob("*.safetensors"))}
