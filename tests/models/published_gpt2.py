"""Folders as GPT-2 is published: byte-level BPE with one special token, and a small network."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from tokenizers import ByteLevelBPETokenizer

from tests.models.odd_lines import lines

GOLDEN = Path(__file__).parents[1] / "parity" / "golden" / "gpt2-small"
END = "<|endoftext|>"


def tokenizer_files(folder: Path) -> ByteLevelBPETokenizer:
    """The tokenizer's files: bytes, merges, and the special token last."""
    made = ByteLevelBPETokenizer()
    made.train_from_iterator(lines(), vocab_size=600, show_progress=False)
    made.save_model(str(folder))
    ids = json.loads((folder / "vocab.json").read_text("utf-8"))
    ids[END] = len(ids)
    (folder / "vocab.json").write_text(json.dumps(ids), "utf-8")
    roles = {f"{role}_token": END for role in ("bos", "eos", "unk")}
    settings = {"tokenizer_class": "GPT2Tokenizer", "model_max_length": 40, **roles}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    whole = ByteLevelBPETokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    whole.add_special_tokens([END])
    whole.save(str(folder / "tokenizer.json"))
    return whole


def network_files(folder: Path) -> None:
    """Configuration and tensors for the tokenizer there: no prefix, and the masks of attention."""
    size = len(json.loads((folder / "vocab.json").read_text("utf-8")))
    config = json.loads((GOLDEN / "config.json").read_text("utf-8"))
    del config["pad_token_id"]
    config |= {"vocab_size": size, "bos_token_id": size - 1, "eos_token_id": size - 1}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    whole = load_file(GOLDEN / "model.safetensors")
    tensors = {name.removeprefix("transformer."): value for name, value in whole.items()}
    drawn = np.random.default_rng(0).normal(0, 0.02, (size, config["n_embd"]))
    tensors["wte.weight"] = drawn.astype(np.float32)
    seen = np.tril(np.ones((1, 1, config["n_positions"], config["n_positions"]), np.float32))
    tensors |= {f"h.{number}.attn.bias": seen for number in range(config["n_layer"])}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def published(folder: Path) -> ByteLevelBPETokenizer:
    """A whole folder; the tokenizer as the Rust package has it."""
    folder.mkdir(exist_ok=True)
    made = tokenizer_files(folder)
    network_files(folder)
    return made
