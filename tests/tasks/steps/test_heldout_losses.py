"""Losses a character and a word are those of the held-out text, not of its tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from corpora.shards import TokenWriter
from tasks.steps.heldout_losses import a_character, a_word
from tasks.steps.tokens import DOCUMENTS
from tasks.store.artifacts import Artifact

FACTS = {
    "tokens": {"heldout": 30, "train": 600},
    "characters": {"heldout": 120, "train": 2400},
    "words": {"heldout": 24, "train": 480},
}


def tokens(folder: Path = Path(), **facts: dict[str, int]) -> Artifact:
    return Artifact(
        "tokens", "", folder, {DOCUMENTS: ""}, FACTS | facts, "", "tokens", {}, {}, {}, ""
    )


def test_nats_of_tokens_are_spread_over_the_held_out_text():
    made = {"tokens en": tokens(), "tokens zh": tokens(words={})}
    losses = {"en": 4.0, "zh": 4.0}
    assert a_character(losses, made, "masked_lm") == {"en": 1.0, "zh": 1.0}
    assert a_word(losses, made, "masked_lm") == {"en": pytest.approx(5.0)}


@pytest.mark.parametrize(
    ("objective", "predicted"),
    [
        ("masked_lm", 30),
        ("bidirectional_lm", 30 + 2),
        ("causal_lm", 30 + 3),
        ("masked_seq2seq", 30 + 3),
    ],
)
def test_nats_of_the_ends_of_documents_count_but_they_are_no_characters(
    tmp_path: Path, objective: str, predicted: int
):
    with TokenWriter(tmp_path / DOCUMENTS) as writer:
        for name, split, length in [
            ("a", "heldout", 14),
            ("b", "train", 600),
            ("c", "heldout", 16),
        ]:
            writer.add_document(
                name, split, np.arange(length), np.array([length]), np.ones(length, bool)
            )
        writer.add_document("d", "heldout", np.arange(0), np.arange(0), np.ones(0, bool))
    made = {"tokens en": tokens(tmp_path)}
    assert a_character({"en": 4.0}, made, objective) == {"en": pytest.approx(4 * predicted / 120)}
    assert a_word({"en": 4.0}, made, objective) == {"en": pytest.approx(4 * predicted / 24)}


def test_what_is_no_cross_entropy_of_tokens_is_not_spread():
    assert a_word({"en": 4.0}, {"tokens en": tokens()}, "skip_gram") == {}
