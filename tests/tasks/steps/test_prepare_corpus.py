"""What corpora are kept free of."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.decontamination import EvaluationTexts
from corpora.identity import normal_form
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
    found = list(_evaluation_texts({"evaluation mine": dataset, "text": dataset}, {}))
    assert len(found) == 10 * 3
    assert {f"{split} {n}" for split in ("dev", "test") for n in range(5)} < set(found)
    assert "dev again" in found
    assert not any(text.startswith("train") for text in found)


@pytest.mark.parametrize("markings", [(), ("<e1>", "</e1>")])
def test_a_passage_of_many_rows_is_found_however_many_they_are(
    tmp_path: Path, markings: tuple[str, ...]
):
    """Each row asks something else of it, or marks another of its words."""
    words = [f"word{number}" for number in range(16)]
    before, after = markings or ("", "")
    asked = [
        {
            "text": f"What is said of word{n}?",
            "passage": " ".join([*words[:n], before, words[n], after, *words[n + 1 :]]),
            "label": "ab"[n % 2],
        }
        for n in range(15)
    ]
    train = [
        {"text": f"A text to train {label}.", "passage": f"Passage of {label}.", "label": label}
        for label in "ab"
    ]
    files = {
        split: str(write(tmp_path / f"{split}.jsonl", of))
        for split, of in (("train", train), ("test", asked))
    }
    raw = {"name": "mine", "language": "en", "licence": "none", "files": files}
    fields = {"text": "passage", "text_pair": "text", "label": "label"}
    source = parse_source(raw | {"fields": fields, "markings": markings})
    prepare_dataset(source, take_snapshot(source), tmp_path, overlap="report")
    dataset = Input("dataset", "", tmp_path, {}, {"answers": source.answers})
    role = "evaluation mine"
    found = EvaluationTexts(_evaluation_texts({role: dataset}, {role: source.markings}))
    text = f"So: {' '.join(words)}."
    assert found.touches(text, normal_form(text))


def test_texts_of_a_pair_and_texts_without_their_markings_are_found_in_a_corpus(tmp_path: Path):
    words = [f"word{number}" for number in range(16)]
    marked = " ".join([*words[:8], "<e1>", words[8], "</e1>", *words[9:]])
    records = {
        split: [
            {"text": text, "question": f"What is said of {split}?", "label": label}
            for text, label in ((first, "a"), (f"Another {split} text.", "b"))
        ]
        for split, first in (("train", "A text for training."), ("test", marked))
    }
    files = {split: str(write(tmp_path / f"{split}.jsonl", of)) for split, of in records.items()}
    raw = {"name": "mine", "language": "en", "licence": "none", "files": files}
    fields = {"text": "text", "text_pair": "question", "label": "label"}
    source = parse_source(raw | {"fields": fields, "markings": ["<e1>", "</e1>"]})
    prepare_dataset(source, take_snapshot(source), tmp_path, overlap="report")
    dataset = Input("dataset", "", tmp_path, {}, {"answers": source.answers})
    role = "evaluation mine"
    found = EvaluationTexts(_evaluation_texts({role: dataset}, {role: source.markings}))
    for text in ("What is said of test?", "Another test text.", f"So: {' '.join(words)}."):
        assert found.touches(text, normal_form(text)), text
    for text in ("What is said of train?", "A text for training."):
        assert not found.touches(text, normal_form(text)), text
