"""Triples of Python files, read by syntax."""

from __future__ import annotations

from pathlib import Path

from corpora.preparation import prepare_dataset
from corpora.python_graph import triples
from corpora.snapshot import take_snapshot
from data_contracts.sources import load_source
from tests.corpora.conftest import Prepared

MODULE = b"""
import typing as t

class Shape(t.Protocol, metaclass=Meta):
    def area(self) -> float: ...
    async def parts(self) -> t.Iterator["Shape"]: ...
    def itself(self) -> "Shape | None": ...

class Square(Shape, tuple[int]):
    def area(self) -> float:
        def inner() -> int: ...

def Shape(): ...
"""


def test_a_file_says_where_names_are_what_they_extend_and_return():
    assert triples(MODULE, "own.shapes") == [
        (4, "Shape", "_extends", "Protocol"),
        (4, "Shape", "_in", "own.shapes"),
        (5, "area", "_in", "Shape"),
        (5, "area", "_returns", "float"),
        (6, "parts", "_in", "Shape"),
        (6, "parts", "_returns", "Iterator"),
        (7, "itself", "_in", "Shape"),
        (9, "Square", "_extends", "Shape"),
        (9, "Square", "_extends", "tuple"),
        (9, "Square", "_in", "own.shapes"),
        (10, "area", "_in", "Square"),
    ]


def test_what_is_no_python_has_none():
    assert triples(b"def f(:", "own") is None


def test_the_embedded_graph_is_split_without_losing_a_triple(tmp_path: Path):
    source = load_source("smoke_triples")
    counts = prepare_dataset(source, take_snapshot(source), tmp_path)
    assert counts.kept == counts.read > 1000
    table = Prepared(counts, tmp_path, "").table()
    assert all(len(row["text"].split()) == 3 for row in table)
    assert all(row["text"].split()[1] == row["label"] for row in table)
    splits = counts.details["splits"]
    assert min(splits["dev"], splits["test"]) > 50
    assert splits["train"] > 0.6 * counts.kept
