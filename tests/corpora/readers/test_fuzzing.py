"""Every reader, those to come included, on files that are nearly or not at all of its format."""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpora.archives import contents
from corpora.file_state import FileState
from corpora.readers import Raw, formats, reader
from data_contracts.records import Rejected
from data_contracts.sources import Source
from fourstage.errors import ContractViolation, EnvironmentFault, RecipeError
from tests.corpora.conftest import source_of
from tests.corpora.made_up import lines_of, rows

OURS = (RecipeError, ContractViolation, EnvironmentFault)
ROWS = rows(12)
# What breaks parsers: marks of the formats, half characters, numbers at the edge, other encodings.
MARKS = [
    *(mark.encode() for mark in ('"', "'", ",", "\t", "\n", "\r", "\\", "{", "}", "[", "]", ":")),
    *(b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf0\x9f", b"\x1f\x8b"),
    *(b"\xe2\x80\xa8", b"\xc2\x85", b"NaN", b"-1e999", b"9" * 5000, b'"""', b"'''", b"= A =\n"),
    *(b"\\ud800", b"[" * 3000, b"def f(:\n", b"PAR1", "今天".encode("gb18030"), b"A" * 70_000),
]


def _csv(delimiter: str) -> bytes:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, ["id", "text", "label"], delimiter=delimiter)
    writer.writeheader()
    writer.writerows(ROWS)
    return stream.getvalue().encode()


def _parquet() -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), sink)
    return sink.getvalue()


GENUINE: dict[str, bytes] = {
    "csv": _csv(","),
    "tsv": _csv("\t"),
    "jsonl": lines_of(ROWS).encode(),
    "parquet": _parquet(),
    "pubmed_rct": "\n\n".join(
        f"###{row['id']}\n{row['label']}\t{row['text']}" for row in ROWS
    ).encode(),
    "conll": "\n\n".join(
        "\n".join(f"{word}\tO\tB-{row['label']}" for word in row["text"].split()) for row in ROWS
    ).encode(),
    "fewrel": json.dumps(
        {
            row["id"]: [
                {"tokens": row["text"].split(), "h": ["a", "Q1", [[0]]], "t": ["b", "Q2", [[2]]]}
            ]
            for row in ROWS
        }
    ).encode(),
    "mcl_wic": json.dumps(
        [
            {"id": row["id"], "start1": "0", "end1": "2", "sentence1": row["text"]}
            | {"start2": 1, "end2": 3, "sentence2": row["text"]}
            for row in ROWS
        ]
    ).encode(),
    "squad": json.dumps(
        {
            "data": [
                {
                    "title": row["label"],
                    "paragraphs": [
                        {
                            "context": row["text"],
                            "qas": [
                                {
                                    "id": row["id"],
                                    "question": "which film",
                                    "answers": [{"text": "film", "answer_start": 3}],
                                }
                            ],
                        }
                    ],
                }
                for row in ROWS
            ]
        }
    ).encode(),
    "nlvr": lines_of(
        {"sentence": row["text"], "label": "true", "identifier": row["id"], "directory": "0"}
        for row in ROWS
    ).encode(),
    "nlvr_descriptions": lines_of(
        {
            "identifier": row["id"],
            "directory": "0",
            "structured_rep": [
                [{"type": "square", "color": "Black", "size": 20, "x_loc": 40, "y_loc": 80}]
            ]
            * 3,
        }
        for row in ROWS
    ).encode(),
    "parallel": "\n".join(row["text"] for row in ROWS).encode(),
    "text": "\n\n".join(f"= {row['id']} =\n{row['text']}" for row in ROWS).encode(),
    "python_docs": "".join(
        f'def {row["label"]}{n}():\n    """{row["text"]}"""\n' for n, row in enumerate(ROWS)
    ).encode(),
}
SETTINGS: dict[str, Any] = {
    "document": [None, "file", "line", "paragraphs", "heading", "module", "object", "passage"],
    "encoding": ["utf-8", "gb18030", "utf-16", "latin-1", ["utf-8", "big5"]],
    "quotes": [None, "none", "standard"],
    "columns": [[], ["id", "text", "label"]],
}


@st.composite
def damaged(draw: st.DrawFn, genuine: bytes) -> bytes:
    """A genuine file with a few edits, packed or not; now and then just any bytes."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=400))
    data = bytearray(genuine)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        match draw(st.integers(0, 3)):
            case 0:
                data[place:place] = draw(st.sampled_from(MARKS))
            case 1:
                data[place : place + draw(st.integers(1, 30))] = b""
            case 2:
                data[place : place + 1] = draw(st.binary(min_size=1, max_size=4))
            case _:
                other = draw(st.integers(0, len(data)))
                data[place:place] = data[other : other + draw(st.integers(1, 200))]
    return bytes(data)


@st.composite
def sources(draw: st.DrawFn, name: str) -> Source:
    chosen = {key: draw(st.sampled_from(values)) for key, values in SETTINGS.items()}
    given = {key: value for key, value in chosen.items() if value}
    if name == "python_docs" and draw(st.booleans()):
        return source_of(packages=["numpy"], format=name, document=chosen["document"])
    fields = {"text": "text", "label": "label"} if draw(st.booleans()) else {"text": "text"}
    return source_of(files="x", format=name, fields=fields, **given)


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
}


def state_of(path: Path) -> FileState:
    info = path.stat()
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()  # a reader may remember by it
    return FileState(
        None, str(path), info.st_size, info.st_mtime_ns, info.st_ino, sha256, path.name
    )


def reads_or_refuses(folder: Path, name: str, data: st.DataObject) -> None:
    """Read one damaged file to its end: records, rejections, or an error of ours."""
    suffix = data.draw(st.sampled_from(sorted(PACKED)))
    content = PACKED[suffix](data.draw(damaged(GENUINE[name])))
    if data.draw(st.integers(0, 4)) == 0:
        content = data.draw(damaged(content))
    source = data.draw(sources(name))
    path = folder / f"x.{name}{suffix}"
    path.write_bytes(content)
    said = path.name
    try:
        for one in contents(state_of(path)):
            for record in reader(name, "source x")(one, source):
                assert isinstance(record, Raw | Rejected)
    except OURS as error:
        said = str(error)
    assert path.name in said


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@pytest.mark.parametrize("name", formats())
@settings(max_examples=200, derandomize=True, suppress_health_check=QUIET)
@given(data=st.data())
def test_a_damaged_file_gives_records_or_our_errors(tmp_path: Path, name: str, data: st.DataObject):
    reads_or_refuses(tmp_path, name, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", formats())
@settings(max_examples=5000, suppress_health_check=QUIET, print_blob=True)
@given(data=st.data())
def test_a_damaged_file_gives_records_or_our_errors_at_length(
    tmp_path: Path, name: str, data: st.DataObject
):
    reads_or_refuses(tmp_path, name, data)


def test_every_reader_has_a_genuine_file_here_and_reads_it(tmp_path: Path):
    assert sorted(GENUINE) == list(formats())
    for name, content in GENUINE.items():
        path = tmp_path / f"x.{name}"
        path.write_bytes(content)
        state = state_of(path)
        source = source_of(files="x", format=name, fields={"text": "text"})
        records = [
            record for one in contents(state) for record in reader(name, "source x")(one, source)
        ]
        assert len(records) >= (1 if name == "text" else len(ROWS)), name
        assert all(isinstance(record, Raw) for record in records), name
