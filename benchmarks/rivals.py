"""Scores and seconds of the cheap baselines on published rows: ``python -m benchmarks.rivals``.

Rows are read as they are published, from the folders of FOURSTAGE_DATA. Without published dev rows
the baselines keep their default settings.
"""

from __future__ import annotations

import time

from corpora.reading import read_rows
from corpora.snapshot import take_snapshot
from data_contracts.records import Row
from data_contracts.sources import load_source
from models.catalogue import find
from models.evaluation.resampling import scores
from models.evaluation.rivals import RawRows, fit

SETS = {
    "chemprot": "micro_f1",
    "sst2": "accuracy",
    "mrpc": "accuracy",
    "chnsenticorp": "accuracy",
    "stsb_en": "pearson",
    "stsb_zh": "pearson",
    "codah": "accuracy",
    "wnut17_ner": "entity_f1",
    "bc5cdr_ner": "entity_f1",
    "cluener2020": "entity_f1",
    "squad_v2_small": "f1",
    "cmrc2018": "cmrc_f1",
    "multi30k_en_de": "bleu",
    "scitldr": "rougeL",
    "thucnews_titles_text": "exact_match",
}


def rows_of(name: str) -> tuple[str, dict[str, RawRows]]:
    """The kind of answer of a source, and its rows by split."""
    source = load_source(name, [])
    found: dict[str, list[Row]] = {}
    for split, row in read_rows(source, take_snapshot(source)):
        if isinstance(row, Row):
            found.setdefault(split or "", []).append(row)
    return source.answers, {split: _rows(some) for split, some in found.items()}


def _rows(rows: list[Row]) -> RawRows:
    columns = [[row.text for row in rows]]
    if rows[0].text_pair is not None:
        columns.append([row.text_pair or "" for row in rows])
    choices = [row.choices or () for row in rows]
    return RawRows(tuple(columns), [row.label for row in rows], choices if any(choices) else None)


def main() -> None:
    """Print one line for each set."""
    print(f"{'set':<20} {'metric':<11} {'cheap':>6} {'most frequent':>14} {'seconds':>8}")
    for name, metric in SETS.items():
        kind, of = rows_of(name)
        markings = load_source(name, []).markings
        began = time.perf_counter()
        rival = fit(kind, of["train"], of.get("dev"), metric=metric, markings=markings)
        said = rival.answer(of["test"])
        seconds = time.perf_counter() - began
        test = of["test"].answers
        ours, most = (
            scores(find("answers", kind)(), test, each, [metric])[metric]
            for each in (said, [rival.majority] * len(test))
        )
        print(f"{name:<20} {metric:<11} {ours:>6.3f} {most:>14.3f} {seconds:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
