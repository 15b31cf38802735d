"""The text of labelled rows as documents for pre-training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corpora.identity import normal_form
from corpora.prepared import PreparedRow


def unlabelled(
    rows: Sequence[PreparedRow], markings: Sequence[str] = ()
) -> Iterator[tuple[str, str, str]]:
    """The text of labelled rows as documents for pre-training, each text once.

    Rows often share a text: a sentence with other entities marked, a premise with other hypotheses.
    They stand side by side, so that a network could copy a hidden word from the next line instead
    of predicting it. Of texts that differ in markings, marks or case alone the first is taken;
    train wins over dev.

    Args:
        rows: Of every split; those of ``test`` are left out.
        markings: Strings in the texts that mark something, such as entities.

    Yields:
        (id, text, ``train`` or ``heldout``).
    """
    seen: set[str] = set()
    for split, role in (("train", "train"), ("dev", "heldout")):
        for row in rows:
            if row.split != split:
                continue
            parts = []
            for text in (row.text, row.text_pair, *(row.choices or ())):
                if not text:
                    continue
                same = normal_form(text, markings) or text
                if same not in seen:
                    seen.add(same)
                    parts.append(text)
            if parts:
                yield row.id, " ".join(parts), role
