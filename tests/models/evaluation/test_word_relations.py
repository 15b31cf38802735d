"""Word similarity and analogies on vectors whose answers are known."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from fourstage.errors import ContractViolation
from models.evaluation.word_relations import (
    Relations,
    analogies,
    relations,
    similarity,
    stage_relations,
)
from models.stage_format import NETWORK
from models.vectors.lookup import WordTable
from tests.models.memory_corpus import PlainTokenizer

IDS = {"king": 0, "queen": 1, "man": 2, "woman": 3, "apple": 4}
# Royal, female, fruit.
VECTORS = np.array([[1, 0, 0], [1, 1, 0], [0.1, 0, 0.1], [0.1, 1, 0.1], [0, 0, 1.0]])
TABLE = WordTable(IDS, VECTORS, {})


def test_analogies_leave_out_the_words_of_the_question(tmp_path: Path) -> None:
    lines = (
        ": royal\nman king woman queen\nMan King Woman Queen\nman king woman apple\n"
        ": other\r\nman king woman duke\r\n"
    )
    (tmp_path / "questions").write_text(lines)
    found = analogies(tmp_path / "questions", TABLE)
    assert found["royal"] == Relations(2 / 3, 3, 0)
    assert (found["other"].asked, found["other"].skipped) == (0, 1)
    assert np.isnan(found["other"].score)


def test_similarity_is_a_correlation_of_ranks_and_counts_what_it_skips(tmp_path: Path) -> None:
    path = tmp_path / "pairs"
    path.write_text(
        "# two words, a score\nking\tqueen\t7\nKing\tapple\t1\nwoman\tqueen\t9\nx\ty\t3\n"
    )
    assert similarity(path, TABLE) == Relations(pytest.approx(1.0), 3, 1)
    path.write_text("king\tqueen\t1\nking\tapple\t9\nwoman\tqueen\t0\n")
    assert similarity(path, TABLE).score == pytest.approx(-1.0)


def test_a_file_says_itself_what_it_tests(tmp_path: Path) -> None:
    lines = (
        "# of people\n: royal\nman king woman queen\nman king woman apple\n"
        ": other\nman king woman duke\nking man queen woman\n"
    )
    path = tmp_path / "questions.txt.gz"
    path.write_bytes(gzip.compress(lines.encode()))
    metric, whole, sections = relations(path, TABLE)
    assert (metric, whole) == ("accuracy", Relations(pytest.approx(2 / 3), 3, 1))
    assert sections == analogies(path, TABLE)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("king\tqueen\t7\nking\tapple\t1\n")
    assert relations(pairs, TABLE) == ("spearman", similarity(pairs, TABLE), {})


def test_of_a_stage_it_asks_words_and_no_special_tokens(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(9, 4)).astype(np.float32)
    save_file({"token/embeddings": table}, tmp_path / NETWORK)
    path = tmp_path / "pairs"
    # PlainTokenizer's words are numbers, of which 0 to 4 are special tokens.
    path.write_text("5\t6\t3\n6\t8\t2\n7\t8\t1\n4\t5\t9\n")
    ids = {str(number): number for number in range(5, 9)}
    expected = relations(path, WordTable(ids, table, {}))
    assert (expected[1].asked, expected[1].skipped) == (3, 1)
    assert stage_relations(tmp_path, PlainTokenizer(9), path) == expected


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.tsv.gz"])
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes("café\tthé\t3\n".encode("latin-1"))
    with pytest.raises(ContractViolation, match=f"{name}: after line 0: expected UTF-8"):
        relations(tmp_path / name, TABLE)


def test_a_compressed_file_that_breaks_off_or_is_damaged_is_refused(tmp_path: Path) -> None:
    rows = "".join(f"king\tqueen\t{number}\n" for number in range(2000))
    whole, path = gzip.compress(rows.encode()), tmp_path / "pairs.tsv.gz"
    for damaged in (whole[:-20], whole[:60] + b"\xff" * 40 + whole[100:]):
        path.write_bytes(damaged)
        with pytest.raises(ContractViolation, match=r"pairs.tsv.gz: after line \d+: expected"):
            relations(path, TABLE)


def test_a_score_that_is_no_number_is_refused_and_no_reason_to_have_no_metric(tmp_path) -> None:
    (tmp_path / "file").write_text("king\tqueen\t7\nking\tapple\tnan\nwoman\tqueen\t9\n")
    with pytest.raises(ContractViolation, match="file:2: expected a finite score, got nan"):
        similarity(tmp_path / "file", TABLE)


@pytest.mark.parametrize(("line", "test"), [("a b c", analogies), ("a\tb\tc", similarity)])
def test_a_line_of_another_kind_is_refused(tmp_path: Path, line, test) -> None:
    (tmp_path / "file").write_text(f"{line}\n")
    with pytest.raises(ContractViolation, match="file:1: expected"):
        test(tmp_path / "file", TABLE)
