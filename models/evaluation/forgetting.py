"""Forgetting: what a network has lost of a corpus that it knew better after an earlier stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def forgetting(
    losses: Sequence[Mapping[str, float]], corpora: Sequence[str] | None = None
) -> dict[str, float]:
    """Forgetting: the last stage's loss minus the best earlier stage's, for each corpus, in nats.

    Chaudhry et al. 2018 (arXiv 1801.10112), eq. 3, with loss in place of accuracy. Negative if the
    last stage is the best.

    Args:
        losses: {corpus: held-out loss} after each stage, in order.
        corpora: Corpora to report; None for all.
    """
    if len(losses) < 2:
        return {}
    last = losses[-1]
    return {
        name: last[name] - min(before[name] for before in losses[:-1] if name in before)
        for name in (corpora if corpora is not None else last)
        if name in last and any(name in before for before in losses[:-1])
    }
