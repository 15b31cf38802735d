"""Captions: texts that come with a picture each, as documents of a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fourstage.label_order import in_order
from models import features as keys
from models.catalogue import asking, file_of
from models.inputs.rows import labels_of, seen_regions
from models.protocols import Batch, Context, TokenisedRows, Tokenizer
from models.signatures import settings_of


class Captions:
    """A `TokenisedCorpus` of rows with pictures: a document is a row's texts, each a sentence.

    Args:
        rows: Tokenised rows.
        tokenizer: Theirs, which knows where words begin.
        labels: Those of the dataset. Where there is one at most it answers nothing, and the rows
            are captions without questions.

    Attributes:
        answers: (documents,) the answer to each row's question; "" for none.
    """

    def __init__(self, rows: TokenisedRows, tokenizer: Tokenizer, labels: Collection[str] = ()):
        self._rows = rows
        self._tokenizer = tokenizer
        known = set(labels) if len(labels) > 1 else set()
        self.answers = [answer if answer in known else "" for answer in rows.answers]
        self.lengths = np.array(
            [sum(map(len, rows.texts(i))) for i in range(len(rows))], dtype=np.int64
        )

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def ids(self) -> Sequence[str]:
        """The id of each row."""
        return self._rows.ids

    @property
    def num_tokens(self) -> int:
        """Number of tokens of all documents."""
        return int(self.lengths.sum())

    def document(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Document `i`: token ids (n,), lengths of its texts (s,), unit starts (n,)."""
        texts = self._rows.texts(i)
        # Of each text by itself: to byte-level BPE a word without a space before it goes on.
        starts = np.concatenate([self._tokenizer.unit_starts(text) for text in texts])
        lengths = np.array([len(text) for text in texts], np.int32)
        return np.concatenate(texts), lengths, starts.astype(np.uint8) * keys.WORD

    @property
    def most_regions(self) -> int:
        """The most regions that a picture has."""
        return self._rows.most_regions

    def regions(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Boxes (n, 4) and features (n, E) float32 of document `i`'s picture."""
        return self._rows.regions(i)

    @property
    def has_classes(self) -> bool:
        """Whether a detector told the classes of any picture's regions."""
        return self._rows.has_classes

    def classes(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Classes (n, 2) int32 of document `i`'s regions and confidences, (n, 2) float32."""
        return self._rows.classes(i)


def has_pictures(corpus: Any) -> bool:
    """Whether the documents of a corpus come with pictures."""
    return getattr(corpus, "most_regions", 0) > 0


def asked_answers(
    objectives: Mapping[str, Mapping[str, Any]],
    corpora: Iterable[Any],
    folders: Sequence[Path] = (),
) -> tuple[str, ...]:
    """The answers that a stage's objectives learn, in the order of a head's outputs.

    Args:
        objectives: {objective: its settings}.
        corpora: The stage's training documents.
        folders: Project folders, searched first.

    Returns:
        The commonest answers of captions, of several as common those that come first in order; none
        unless an objective asks (its literal ``ASKS``).
    """
    most = 0
    for name, bound in asking(objectives, folders).items():
        default = settings_of(file_of("objectives", name, folders))[bound].default
        most = max(most, objectives[name].get(bound, default))
    if not most:
        return ()
    counts = Counter(answer for corpus in corpora for answer in getattr(corpus, "answers", ()))
    del counts[""]
    places = {name: place for place, name in enumerate(in_order(counts))}
    commonest = sorted(counts, key=lambda name: (-counts[name], places[name]))
    return tuple(in_order(commonest[:most]))


def answers_of(corpus: Any, documents: np.ndarray, context: Context) -> Batch:
    """Which answer each of some documents has: image_question_answering_labels (B,) int32.

    -1 for none, and for one that is not learned; nothing for a stage whose objectives do not ask.
    """
    if not context.answers:
        return {}
    answers = getattr(corpus, "answers", None) or [""] * len(corpus)
    found = labels_of([answers[int(document)] for document in documents], context.answers)
    return {keys.ANSWER_LABELS: found}


def pictures_of(corpus: Any, documents: np.ndarray, context: Context) -> Batch:
    """The regions of documents' pictures, as `seen_regions`; nothing for a corpus without."""
    return seen_regions(corpus, documents, context) if has_pictures(corpus) else {}
