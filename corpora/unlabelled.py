"""The text of labelled rows as documents for pre-training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from corpora.answers import texts_in
from corpora.identity import text_key
from corpora.prepared import PreparedRow


def unlabelled(
    rows: Sequence[PreparedRow], markings: Sequence[str] = (), answers: str = "label"
) -> Iterator[tuple[str, str, str]]:
    """The text of labelled rows as documents for pre-training, each text once.

    Answers that are texts, such as translations, are documents, too: a network that is to write
    them reads their language. They come after all rows' texts, not beside the one they answer.

    Rows often share a text: a sentence with other entities marked, a premise with other hypotheses.
    They stand side by side, so that a network could copy a hidden word from the next line instead
    of predicting it. Of texts that differ in markings, marks or case alone the first is taken;
    train wins over dev.

    Args:
        rows: Of every split; those of ``test`` are left out.
        markings: Strings in the texts that mark something, such as entities.
        answers: The rows' kind of answer.

    Yields:
        (id, text, ``train`` or ``heldout``).
    """
    seen: set[str] = set()

    def new(texts: Iterable[str | None]) -> list[str]:
        parts = []
        for text in filter(None, texts):
            same = text_key(text, markings)
            if same not in seen:
                seen.add(same)
                parts.append(text)
        return parts

    for split, role in (("train", "train"), ("dev", "heldout")):
        of_split = [row for row in rows if row.split == split]
        for row in of_split:
            if parts := new((row.text, row.text_pair, *(row.choices or ()))):
                yield row.id, " ".join(parts), role
        for row in of_split:
            for number, text in enumerate(new(texts_in(answers, row.label)), start=1):
                yield f"{row.id} answer {number}", text, role
