"""Losses a character and a word are those of the held-out text, not of its tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.steps.tokens import a_character, a_word
from tasks.store.artifacts import Artifact

FACTS = {
    "tokens": {"heldout": 30, "train": 600},
    "characters": {"heldout": 120, "train": 2400},
    "words": {"heldout": 24, "train": 480},
}


def tokens(**facts: dict[str, int]) -> Artifact:
    return Artifact("tokens", "", Path(), {}, FACTS | facts, "", "tokens", {}, {}, {}, "")


def test_nats_of_tokens_are_spread_over_the_held_out_text():
    made = {"tokens en": tokens(), "tokens zh": tokens(words={})}
    losses = {"en": 4.0, "zh": 4.0}
    assert a_character(losses, made, "causal_lm") == {"en": 1.0, "zh": 1.0}
    assert a_word(losses, made, "causal_lm") == {"en": pytest.approx(5.0)}


def test_what_is_no_cross_entropy_of_tokens_is_not_spread():
    assert a_word({"en": 4.0}, {"tokens en": tokens()}, "skip_gram") == {}
