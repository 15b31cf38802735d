"""Entity scores of random legal tags by seqeval 1.2.2, strict in each scheme.

pip install 'setuptools<70' setuptools_scm wheel numpy scikit-learn
pip install --no-build-isolation --no-deps seqeval==1.2.2
python tests/models/answers/golden/make_seqeval.py
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES

SCHEMES = {"iob1": IOB1, "iob2": IOB2, "bioes": IOBES, "bilou": BILOU}
Spans = list[tuple[int, int, str]]

draw = random.Random(0)


def spans(length: int) -> Spans:
    found, place = [], 0
    while place < length:
        if draw.random() < 0.45:
            end = min(length, place + draw.randint(1, 3))
            found.append((place, end, draw.choice("ABC")))
            place = end
        else:
            place += 1
    return found


def partly(right: Spans, other: Spans) -> Spans:
    """Some of the right spans, some others, none over another."""
    mixed = [r if draw.random() < 0.6 else o for r, o in zip(right, other, strict=False)]
    kept, end = [], 0
    for span in sorted({*mixed, *other[len(right) :]}):
        if span[0] >= end:
            kept.append(span)
            end = span[1]
    return kept


def tags(length: int, some: Spans, scheme: str) -> list[str]:
    written = ["O"] * length
    for first, end, kind in some:
        inside = ["I"] * (end - first - 1)
        if scheme == "iob1":
            touches = first > 0 and written[first - 1][1:] == f"-{kind}"
            prefixes = ["B" if touches else "I", *inside]
        elif scheme == "iob2":
            prefixes = ["B", *inside]
        else:
            last, single = ("E", "S") if scheme == "bioes" else ("L", "U")
            prefixes = ["B", *inside[1:], last] if inside else [single]
        written[first:end] = [f"{prefix}-{kind}" for prefix in prefixes]
    return written


def case(scheme: str) -> dict[str, object]:
    right, said = [], []
    for _ in range(4):
        length = draw.randint(3, 9)
        true, other = spans(length), spans(length)
        right.append(tags(length, true, scheme))
        said.append(tags(length, partly(true, other), scheme))
    asked = {"mode": "strict", "scheme": SCHEMES[scheme], "zero_division": 0}
    return {
        "scheme": scheme,
        "right": [" ".join(row) for row in right],
        "said": [" ".join(row) for row in said],
        "entity_f1": float(f1_score(right, said, **asked)),
        "entity_precision": float(precision_score(right, said, **asked)),
        "entity_recall": float(recall_score(right, said, **asked)),
        "entity_macro_f1": float(f1_score(right, said, average="macro", **asked)),
    }


if __name__ == "__main__":
    lines = [json.dumps(case(scheme)) for scheme in SCHEMES for _ in range(5)]
    here = Path(__file__).parent
    (here / "seqeval.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
