"""A knowledge graph as its files are published: no header, lists of names beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.corpora.conftest import Prepare

TRAIN = ["00260881\t_hypernym\t00260622", "00260622\t_has_part\t01332730"]


@pytest.fixture
def graph(tmp_path: Path, dataset: Prepare):
    """Prepares training triples beside one dev and one test triple; no last line ends."""

    def prepare(
        train: list[str], overlap: str = "drop_from_train", written: str = "utf-8", **source: Any
    ) -> Any:
        files = {
            "train.tsv": train,
            "dev.tsv": ["01332730\t_hypernym\t00260881"],
            "test.tsv": ["00260622\t_hypernym\t01332730"],
            "entities.txt": ["00260881", "00260622", "01332730"],
            "relations.txt": ["_has_part", "_hypernym"],
        }
        for name, lines in files.items():
            (tmp_path / name).write_text("\n".join(lines), written)
        lists = {"head": "entities", "relation": "relations", "tail": "entities"}
        return dataset(
            files={split: str(tmp_path / f"{split}.tsv") for split in ("train", "dev", "test")},
            columns=["head", "relation", "tail"],
            join=[
                {"by": column, "files": str(tmp_path / f"{name}.txt")}
                for column, name in lists.items()
            ],
            fields={"text": "{head} {relation} {tail}", "label": "relation"},
            overlap=overlap,
            **source,
        )

    return prepare


def test_zeros_at_the_front_stay_and_the_label_is_the_relation(graph):
    prepared = graph(TRAIN)
    (first, *_) = prepared.table()
    assert first["text"] == "00260881 _hypernym 00260622"
    assert first["label"] == "_hypernym"
    assert prepared.counts.kept == 4


@pytest.mark.parametrize("named", ["utf-8", "utf8"])
def test_a_byte_order_mark_is_no_part_of_a_name(graph, named: str):
    prepared = graph(TRAIN, written="utf-8-sig", encoding=named)
    assert prepared.counts.quarantined == {}
    assert prepared.table()[0]["text"] == "00260881 _hypernym 00260622"


def test_names_that_are_not_listed_are_quarantined_by_what_they_are(graph):
    strange = ["00260881\t_meronym\t00260622", "260881\t_hypernym\t00260622", "00260881\t_hypernym"]
    prepared = graph([*TRAIN, *strange])
    assert prepared.counts.quarantined == {
        "no record to join by 'relation'": 1,
        "no record to join by 'head'": 1,
        "wrong number of fields": 1,
    }
    assert prepared.counts.kept == 4


def test_training_triples_that_are_asked_for_are_dropped_and_counted(graph):
    prepared = graph([*TRAIN, "00260622\t_hypernym\t01332730", "01332730\t_hypernym\t00260881"])
    assert prepared.counts.removed == {
        "its text is in dev too": 1,
        "its text is in test too": 1,
    }
    assert prepared.counts.details["train_rows_sharing_text_with"] == {"dev": 1, "test": 1}
    assert prepared.counts.kept == 4
