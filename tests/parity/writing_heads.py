"""Networks with a head that writes, of random weights: what is written as a folder for theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from models.interchange.huggingface import PretrainedNetwork, read_checkpoint
from tests.models.odd_lines import byte_pairs, lines

GENERATION = Path(__file__).with_name("generation")
LENGTH = 32  # tokens of text and target together
# {network: its head's settings}. BART's theirs counts a token more, so that with another
# length_penalty its beams would differ.
HEADS: Mapping[str, Mapping[str, Any]] = {
    "bart": {"beams": 4, "length_penalty": 0.0, "min_tokens": 4, "target_length": 12},
    "gpt2": {"beams": 3, "length_penalty": 2.0, "no_repeat_ngram": 2, "target_length": 12},
    "marian": {"beams": 4, "target_length": 10},
    "t5": {"min_tokens": 5, "target_length": 12},
}


def texts() -> list[str]:
    """What is read, some of it too long."""
    return lines()[:12]


def writing_head(name: str) -> PretrainedNetwork:
    """A network of `generation`, its table drawn anew for a tokenizer of ours."""
    found, tokenizer = read_checkpoint(GENERATION / name), byte_pairs()
    size, rng = tokenizer.vocabulary_size, np.random.default_rng(0)
    arrays = dict(found.network)
    for path, value in sorted(found.network.items()):
        if len(value) == found.settings["vocabulary_size"]:
            drawn = rng.normal(0.0, 1.0, (size, *value.shape[1:]))
            drawn[tokenizer.sep_id] *= (
                1.6 if name == "gpt2" else 4.0
            )  # so that some texts end early
            arrays[path] = drawn.astype(np.float32)
    return replace(
        found,
        settings={**found.settings, "vocabulary_size": size},
        network=arrays,
        heads={"sequence_to_sequence": {}},
        head_settings={"sequence_to_sequence": HEADS[name]},
        tokenizer=tokenizer,
        pad_id=tokenizer.pad_id,
        sequence_length=LENGTH,
    )
