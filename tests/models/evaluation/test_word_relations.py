"""Word similarity and analogies on vectors whose answers are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fourstage.errors import ContractViolation
from models.evaluation.word_relations import Relations, analogies, similarity

IDS = {"king": 0, "queen": 1, "man": 2, "woman": 3, "apple": 4}
# Royal, female, fruit.
VECTORS = np.array([[1, 0, 0], [1, 1, 0], [0.1, 0, 0.1], [0.1, 1, 0.1], [0, 0, 1.0]])


def test_analogies_leave_out_the_words_of_the_question(tmp_path: Path) -> None:
    lines = (
        ": royal\nman king woman queen\nMan King Woman Queen\nman king woman apple\n"
        ": other\r\nman king woman duke\r\n"
    )
    (tmp_path / "questions").write_text(lines)
    found = analogies(tmp_path / "questions", IDS, VECTORS)
    assert found["royal"] == Relations(2 / 3, 3, 0)
    assert (found["other"].asked, found["other"].skipped) == (0, 1)
    assert np.isnan(found["other"].score)


def test_similarity_is_a_correlation_of_ranks_and_counts_what_it_skips(tmp_path: Path) -> None:
    path = tmp_path / "pairs"
    path.write_text(
        "# two words, a score\nking\tqueen\t7\nKing\tapple\t1\nwoman\tqueen\t9\nx\ty\t3\n"
    )
    assert similarity(path, IDS, VECTORS) == Relations(pytest.approx(1.0), 3, 1)
    path.write_text("king\tqueen\t1\nking\tapple\t9\nwoman\tqueen\t0\n")
    assert similarity(path, IDS, VECTORS).score == pytest.approx(-1.0)


@pytest.mark.parametrize(("line", "test"), [("a b c", analogies), ("a\tb\tc", similarity)])
def test_a_line_of_another_kind_is_refused(tmp_path: Path, line, test) -> None:
    (tmp_path / "file").write_text(f"{line}\n")
    with pytest.raises(ContractViolation, match="file:1: expected"):
        test(tmp_path / "file", IDS, VECTORS)
