"""Plain text, in all its divisions."""

from __future__ import annotations

from pathlib import Path

import pytest

from fourstage.errors import ContractViolation
from tests.corpora.conftest import Prepare

TEXT = """
 = First article =

 Some words here .

 = = A section = =

 More words there .
 = Second article =
 The last words .
"""


@pytest.mark.parametrize(
    ("document", "starts"),
    [
        ("file", [1]),
        ("line", [2, 4, 6, 8, 9, 10]),
        ("paragraphs", [2, 4, 6, 8]),
        ("heading", [2, 9]),
    ],
)
def test_documents_begin_where_the_option_says(
    tmp_path: Path, corpus: Prepare, document: str, starts: list[int]
):
    path = tmp_path / "c.txt"
    path.write_text(TEXT)
    prepared = corpus(path, document=document)
    assert [row["location"] for row in prepared.table()] == [f"c.txt:{line}" for line in starts]
    text = " ".join(row["text"] for row in prepared.table())
    assert text.split() == TEXT.split()


def test_encodings_are_tried_in_the_order_named(tmp_path: Path, corpus: Prepare):
    (tmp_path / "a.txt").write_bytes("A café in the morning.".encode())
    (tmp_path / "b.txt").write_bytes("Another café at noon.".encode("latin-1"))
    prepared = corpus(tmp_path / "*.txt", encoding=["utf-8", "iso-8859-1"])
    assert prepared.counts.kept == 2
    prepared = corpus(tmp_path / "*.txt")
    assert prepared.counts.quarantined == {"not utf-8": 1}
    assert prepared.rejected()[0]["detail"] == "byte 11 of the file; reads as cp1252"


@pytest.mark.parametrize("name", ["c.txt", "c.jsonl"])
def test_utf_16_may_be_the_second_encoding_named(tmp_path: Path, corpus: Prepare, name: str):
    text = "A café in the morning."
    written = text if name == "c.txt" else f'{{"text": "{text}"}}\n'
    for encoding in ("utf-8", "utf-16"):
        (tmp_path / name).write_bytes(written.encode(encoding))
        (row,) = corpus(tmp_path / name, encoding=["utf-8", "utf-16"]).table()
        assert row["text"] == text
    (tmp_path / name).write_bytes(b"A text with \0 in it.")
    with pytest.raises(ContractViolation, match="a NUL at byte 12"):
        corpus(tmp_path / name, encoding=["utf-8", "utf-16"])


def test_binary_files_are_named_for_what_they_are(tmp_path: Path, corpus: Prepare):
    path = tmp_path / "c.txt"
    for data, what in (
        (b"\x1f\x8b\x08\0", "gzip data; its name should end in .gz"),
        (b"PK\x03\x04", "zip"),
        (b"PAR1....", "Parquet"),
        (b"%PDF-1.7", "a PDF"),
        (b"some\0text", r"a NUL at byte 4"),
        ("text".encode("utf-16"), "set `encoding: utf-16`"),
    ):
        path.write_bytes(data)
        with pytest.raises(ContractViolation, match=what):
            corpus(path)


def test_a_giant_document_is_refused_with_the_way_out(tmp_path: Path, corpus: Prepare):
    path = tmp_path / "c.txt"
    path.write_bytes(b"word another\n" * 3_000_000)
    with pytest.raises(ContractViolation, match="set `document: paragraphs`"):
        corpus(path)
