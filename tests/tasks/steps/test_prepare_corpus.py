"""What corpora are kept free of."""

from __future__ import annotations

from pathlib import Path

from corpora.preparation import prepare_dataset
from corpora.snapshot import take_snapshot
from data_contracts.sources import parse_source
from tasks.steps.prepare_corpus import _evaluation_texts
from tasks.store.artifacts import Input
from tests.corpora.made_up import rows, write


def test_corpora_are_kept_free_of_the_texts_to_write_of_evaluation_rows(tmp_path: Path):
    files = {}
    for split, records in (
        ("train", rows(20, seed=1)),
        ("dev", rows(5)),
        ("test", rows(5, seed=3)),
    ):
        for number, record in enumerate(records):
            record |= {"id": f"{split}{number}", "label": [f"{split} {number}", f"{split} again"]}
        files[split] = str(write(tmp_path / f"{split}.jsonl", records))
    raw = {"name": "mine", "language": "en", "licence": "none", "files": files, "answers": "text"}
    source = parse_source(raw | {"fields": {"text": "text", "label": "label"}})
    prepare_dataset(source, take_snapshot(source), tmp_path, overlap="report")
    dataset = Input("dataset", "", tmp_path, {}, {"answers": source.answers})
    found = list(_evaluation_texts({"evaluation mine": dataset, "text": dataset}))
    assert len(found) == 10 * 3
    assert {f"{split} {n}" for split in ("dev", "test") for n in range(5)} < set(found)
    assert "dev again" in found
    assert not any(text.startswith("train") for text in found)
