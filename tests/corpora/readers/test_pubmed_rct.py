"""Abstracts whose sentences have labels."""

from __future__ import annotations

from pathlib import Path

from tests.corpora.conftest import Prepare

ABSTRACTS = """###24491034
BACKGROUND\tHIV became a chronic condition\twhich changed care .
RESULTS\tIn all , 98 participants took part .

###20497432
RESULTS\tThirty patients were recruited .
a sentence without a label
"""


def test_rows_are_sentences_with_the_label_before_the_first_tab(tmp_path: Path, dataset: Prepare):
    (tmp_path / "abstracts.txt").write_text(ABSTRACTS)
    prepared = dataset(
        tmp_path / "abstracts.txt",
        format="pubmed_rct",
        fields={"text": "text", "label": "label", "group": "abstract"},
    )
    assert sorted((row["location"], row["label"], row["text"]) for row in prepared.table()) == [
        ("abstracts.txt:2", "BACKGROUND", "HIV became a chronic condition which changed care ."),
        ("abstracts.txt:3", "RESULTS", "In all , 98 participants took part ."),
        ("abstracts.txt:6", "RESULTS", "Thirty patients were recruited ."),
    ]
    assert prepared.counts.quarantined == {"no tab between label and sentence": 1}
    assert prepared.rejected()[0]["location"] == "abstracts.txt:7"
