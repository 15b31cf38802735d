"""Make ``generation/*/written.json``: what transformers writes with the folders that we write.

Run by hand, in an environment of its own (torch and transformers are no dependencies of ours):

    pip install torch==2.13.0 transformers==5.23.0
    PYTHONPATH=. python tests/parity/make_writing_goldens.py

`generate` is told nothing but the texts: how it writes is in the folder.
"""

from __future__ import annotations

import json
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import transformers as hf

from models.interchange.huggingface import write_checkpoint
from tests.parity.writing_heads import GENERATION, HEADS, texts, writing_head


def written(name: str, folder: Path) -> list[list[int]]:
    """The ids that follow each text, without what begins and ends them."""
    write_checkpoint(writing_head(name), folder)
    tokenizer: Any = hf.AutoTokenizer.from_pretrained(folder)
    kind = json.loads((folder / "config.json").read_text("utf-8"))["architectures"][0]
    model: Any = getattr(hf, kind).from_pretrained(folder).eval()
    batch = tokenizer(texts(), padding=True, truncation=True, return_tensors="pt")
    ids = batch["input_ids"]
    found = model.generate(ids, attention_mask=batch["attention_mask"])
    first = 1 + (name == "bart") if model.config.is_encoder_decoder else ids.shape[1]
    ends = (tokenizer.sep_token_id, tokenizer.pad_token_id)
    return [list(takewhile(lambda i: i not in ends, row)) for row in found[:, first:].tolist()]


if __name__ == "__main__":
    for name in HEADS:
        with TemporaryDirectory() as folder:
            said = json.dumps(written(name, Path(folder) / "ours"))
        (GENERATION / name / "written.json").write_text(said.replace("], [", "],\n[") + "\n")
