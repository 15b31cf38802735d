"""What a comparison says of its own limits."""

from __future__ import annotations

from typing import Any

import pytest

from tasks.comparison.comparison_table import too_early, unlike_windows


def _recipe(read: list[str], **nats: float) -> dict[str, Any]:
    return {
        "name": "ours",
        "read": read,
        "heldout_window": 128,
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
