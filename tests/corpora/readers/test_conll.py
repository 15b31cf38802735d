"""Tagged words in columns."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fourstage.errors import ContractViolation
from tests.corpora.conftest import Prepare

SENTENCES = """-DOCSTART- (11)

Ada\tNN\tB-person
Lovelace\tNN\tI-person
sings\tVB\tO

Oslo\tNN\tB-place
sleeps\tVB\tO
-DOCSTART-\t-X-\tO

Bob\tNN\tB-person
"""
SOURCE: dict[str, Any] = {
    "columns": ["token", "pos", "tag"],
    "fields": {"text": "token", "label": "tag"},
    "answers": "spans",
}


def rows(prepared: Any) -> dict[str, list[str]]:
    """By text, its spans with their types."""
    return {
        row["text"]: [f"{row['text'][a:b]}/{kind}" for a, b, kind in json.loads(row["label"])]
        for row in prepared.table()
    }


def test_sentences_are_texts_with_spans(tmp_path: Path, dataset: Prepare):
    (tmp_path / "a.conll").write_text(SENTENCES)
    prepared = dataset(tmp_path / "a.conll", **SOURCE)
    assert rows(prepared) == {
        "Ada Lovelace sings": ["Ada Lovelace/person"],
        "Oslo sleeps": ["Oslo/place"],
        "Bob": ["Bob/person"],
    }
    assert sorted(row["location"] for row in prepared.table()) == [
        "a.conll:11",
        "a.conll:3",
        "a.conll:7",
    ]


def test_columns_may_be_numbers_or_the_usual_ones(tmp_path: Path, dataset: Prepare):
    (tmp_path / "a.conll").write_text(SENTENCES)
    expected = rows(dataset(tmp_path / "a.conll", **SOURCE))
    for fields in ({"text": 1, "label": 3}, {"text": 1, "label": -1}, {"label": "tag"}):
        found = dataset(tmp_path / "a.conll", fields=fields, answers="spans")
        assert rows(found) == expected
    with pytest.raises(ContractViolation, match="expected a column 'tga'; did you mean 'tag'"):
        dataset(tmp_path / "a.conll", **SOURCE | {"fields": {"text": "token", "label": "tga"}})


def test_a_column_beyond_the_last_is_told(tmp_path: Path, dataset: Prepare):
    (tmp_path / "a.conll").write_text(SENTENCES)
    for fields in ({"text": 1, "label": 4}, {"text": -4, "label": 3}):
        with pytest.raises(ContractViolation, match="3 × fewer columns than 'fields' counts"):
            dataset(tmp_path / "a.conll", fields=fields, answers="spans")


def test_comments_before_a_sentence_are_no_words(tmp_path: Path, dataset: Prepare):
    (tmp_path / "a.conll").write_text(
        "# id 1 domain=train\nAda _ _ B-x\nsings _ _ O\n\n"
        "# text = Bob\n# id 2 domain=train\nBob _ _ B-x\n\n# the last\n"
    )
    fields = {"text": 1, "label": 4}
    found = dataset(tmp_path / "a.conll", fields=fields, answers="spans")
    assert rows(found) == {"Ada sings": ["Ada/x"], "Bob": ["Bob/x"]}
    assert not found.counts.quarantined
    # A word is none.
    (tmp_path / "b.conll").write_text("# O\n1 B-x\n# O\n\nNo O\n# 2 O\n")
    found = dataset(tmp_path / "b.conll", fields={"text": 1, "label": 2}, answers="spans")
    assert rows(found) == {"# 1 #": ["1/x"]}
    assert [row["reason"] for row in found.rejected()] == ["wrong number of columns"]


def test_a_document_is_a_group(tmp_path: Path, dataset: Prepare):
    text = "".join(
        f"-DOCSTART- ({number // 10})\n\nword{number} B-x\nof {number} O\n".replace("of ", "of")
        for number in range(300)
    )
    (tmp_path / "a.conll").write_text(text)
    fields = {"text": 1, "label": 2, "group": "document"}
    prepared = dataset(tmp_path / "a.conll", fields=fields, answers="spans")
    splits: dict[int, set[str]] = {}
    for row in prepared.table():
        splits.setdefault(int(row["text"].split()[0][4:]) // 10, set()).add(row["split"])
    assert len(splits) == 30
    assert all(len(split) == 1 for split in splits.values())


@pytest.mark.parametrize(
    "content",
    [
        SENTENCES.encode().replace(b"\n", b"\r\n"),
        SENTENCES.encode().rstrip(),
        b"\xef\xbb\xbf" + SENTENCES.encode(),
        SENTENCES.encode().replace(b"\t", b" "),
        SENTENCES.encode().replace(b"\t", b"   "),
        SENTENCES.encode().replace(b"\n\n", b"\n \xef\xbb\xbf\n\n\n"),
    ],
    ids=["CRLF", "no last line end", "byte order mark", "blanks", "many blanks", "stray marks"],
)
def test_the_form_of_the_file_does_not_matter(tmp_path: Path, dataset: Prepare, content: bytes):
    (tmp_path / "a.conll").write_text(SENTENCES)
    (tmp_path / "b.annotated.gz").write_bytes(gzip.compress(content))
    expected = rows(dataset(tmp_path / "a.conll", **SOURCE))
    found = dataset(tmp_path / "b.annotated.gz", format="conll", **SOURCE)
    assert rows(found) == expected
    assert not found.counts.quarantined


def test_a_malformed_sentence_is_set_aside_whole(tmp_path: Path, dataset: Prepare):
    wrong = (
        "one\tNN\ntwo\tNN\tO\n\n\tNN\tO\n\none\tNN\tO\ntwo\tNN\tI-person\n\none\tNN\tX-person\n\n"
    )
    (tmp_path / "a.conll").write_bytes(SENTENCES.encode() + b"\n" + wrong.encode() + b"\xff\tN\tO")
    prepared = dataset(tmp_path / "a.conll", **SOURCE)
    assert prepared.counts.kept == 3
    assert {row["location"]: row["reason"] for row in prepared.rejected()} == {
        "a.conll:13": "wrong number of columns",
        "a.conll:16": "an empty word",
        "a.conll:18": "a tag that cannot follow the one before it (tag_scheme iob2)",
        "a.conll:21": "a tag that is not one of tag_scheme iob2",
        "a.conll:23": "not utf-8",
    }


def test_the_wrong_scheme_is_told(tmp_path: Path, dataset: Prepare):
    (tmp_path / "a.conll").write_text("Ada I-x\nsings O\n\nBob I-x\n")
    fields = {"text": 1, "label": 2}
    with pytest.raises(ContractViolation) as caught:
        dataset(tmp_path / "a.conll", fields=fields, answers="spans")
    assert "2 × a tag that cannot follow the one before it (tag_scheme iob2)" in str(caught.value)
    assert "'tag_scheme'" in str(caught.value)
    assert dataset(
        tmp_path / "a.conll", fields=fields, answers="spans", tag_scheme="iob1"
    ).labels() == ["x"]


def test_chinese_characters_are_a_text_without_blanks(tmp_path: Path, dataset: Prepare):
    (tmp_path / "a.conll").write_text("我 O\n爱 O\n北 B-地\n京 I-地\n", encoding="utf-8")
    fields = {"text": 1, "label": 2}
    found = dataset(tmp_path / "a.conll", fields=fields, answers="spans", language="zh")
    assert rows(found) == {"我爱北京": ["北京/地"]}


def test_without_tags_it_is_a_corpus(tmp_path: Path, corpus: Prepare):
    (tmp_path / "a.conll").write_text(SENTENCES)
    found = corpus(tmp_path / "a.conll", columns=SOURCE["columns"], fields={"text": "token"})
    assert {row["text"] for row in found.table()} == {"Ada Lovelace sings", "Oslo sleeps", "Bob"}
