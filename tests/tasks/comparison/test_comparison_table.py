"""What a comparison says of its own limits."""

from __future__ import annotations

from typing import Any

import pytest

from tasks.comparison.comparison_table import (
    too_early,
    unknown_words,
    unlike_objectives,
    unlike_targets,
    unlike_windows,
)


def _recipe(read: list[str], **nats: float) -> dict[str, Any]:
    return {
        "name": "ours",
        "read": read,
        "heldout_window": 128,
        "measured_by": "causal_lm",
        "tokenizer": "pieces",
        "unknown_share": dict.fromkeys(nats, 0.0),
        "heldout_loss_a_character": dict.fromkeys(nats, 1.5),
        "unigram_loss": dict.fromkeys(nats, 6.0),
        "heldout_loss": {corpus: 6.0 + under for corpus, under in nats.items()},
    }


@pytest.mark.parametrize(
    ("read", "nats", "named"),
    [
        (["general"], {"general": -0.9}, "general"),
        (["general", "domain"], {"general": -1.5, "domain": -0.2}, "domain"),
        (["general"], {"general": -1.1, "labelled": 0.4}, None),  # it never read what is labelled
        ([], {"general": 0.1}, None),
        (["general"], {}, None),
    ],
)
def test_a_pre_training_is_judged_by_the_text_it_read(read, nats, named):
    notes = too_early([_recipe(read, **nats)])
    assert len(notes) == (named is not None)
    assert all(f" nats on {named} against" in note for note in notes)


def test_losses_in_windows_of_another_length_are_not_compared():
    ours, untrained = _recipe(["general"], general=-2.0), _recipe([]) | {"heldout_window": 64}
    assert unlike_windows([ours, ours, untrained]) == []  # it has no loss to compare
    shorter = ours | {"name": "shorter", "heldout_window": 64}
    (note,) = unlike_windows([ours, shorter])
    assert note.endswith("64 tokens in shorter; 128 tokens in ours")


def test_losses_of_unlike_objectives_are_not_compared():
    ours = _recipe(["general"], general=-2.0)
    untrained = _recipe([]) | {"measured_by": "masked_lm"}
    assert unlike_objectives([ours, ours, untrained]) == []
    masked = _recipe(["general"], general=-2.0) | {"name": "masked", "measured_by": "masked_lm"}
    (note,) = unlike_objectives([ours, masked])
    assert note.endswith("causal_lm in ours; masked_lm in masked")
    words = masked | {"tokenizer": "words", "heldout_loss_a_character": {}}  # none is shown
    assert unlike_objectives([ours, words]) == []


def test_perplexities_of_targets_that_were_cut_otherwise_are_not_compared():
    whole = _recipe([]) | {"target_words": 1234.0}
    labels = _recipe([]) | {"name": "labels", "target_words": None}
    assert unlike_targets([whole, whole | {"name": "other"}, labels]) == []
    (note,) = unlike_targets([whole, labels, whole | {"name": "cut", "target_words": 987.25}])
    assert note.endswith("target_length cuts them: 987.2 words in cut; 1,234.0 words in ours")


def test_unknown_words_make_a_loss_per_character_too_low():
    ours = _recipe(["general"], general=-2.0)
    words = ours | {"name": "words", "tokenizer": "words", "unknown_share": {"general": 0.05}}
    assert unknown_words([words, words]) == []  # of one tokenizer: losses per token compare
    (note,) = unknown_words([ours, words])
    assert note.startswith("words: unknown words are 5.0% of general;")
    unsaid = words | {"heldout_loss_a_character": {}}
    assert unknown_words([ours, unsaid]) == []
