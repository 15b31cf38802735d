"""Settings by which a small network learns from random weights in minutes, on two cores.

The measurements are in docs/results.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fourstage.languages import main_language

FAMILY = "roformer"
NETWORK: Mapping[str, float] = {
    "num_layers": 2,
    "hidden_dim": 128,
    "num_heads": 4,
    "intermediate_dim": 512,
    "dropout": 0.0,
}
VOCABULARY = 4000
VOCABULARY_OF_CHARACTERS = 8000  # at most half of it are single characters
MASK_RATE = 0.3
VECTORS = "word2vec"  # what the table of tokens starts from
SUMMARY = "mean"  # of a row's tokens, for heads; masked_lm does not train [CLS]
BETA_2 = 0.98
GENERAL_RATE, FINETUNE_RATE = 2.0e-3, 1.0e-3  # peak learning rates
SLOWER = {"general": 1, "domain": 2, "task": 4}  # divisors of the rate after the first stage
LENGTHS: tuple[int, ...] = (16, 32, 64)  # tokens of the first windows, a quarter of the budget each
WINDOW_TOKENS = 1024  # tokens of a batch, whatever the length of its windows


def vocabulary_size(language: str) -> int:
    """Pieces of the vocabulary for texts of a language."""
    of_characters = main_language(language) in ("zh", "ja")
    return VOCABULARY_OF_CHARACTERS if of_characters else VOCABULARY


def told_what_texts_share(answers: str, pairs: bool) -> bool:
    """Whether a head's network is told which tokens two texts share, by the kind of answers."""
    return answers == "choice" or (pairs and answers in ("label", "number"))


def batch_size(length: int) -> int:
    """Windows of a batch."""
    return max(4, WINDOW_TOKENS // length)


def phases(longest: int) -> list[dict[str, Any]]:
    """The phases of the first stage, whose last windows have `longest` tokens."""
    shares: dict[int, float] = dict.fromkeys(LENGTHS, 0.25)
    shares[longest] = shares.get(longest, 0.0) + 0.25
    return [
        {"sequence_length": length, "batch_size": batch_size(length), "share": share}
        for length, share in shares.items()
    ]
