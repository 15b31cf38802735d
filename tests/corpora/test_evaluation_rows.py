"""Training rows that give away evaluation rows of the dataset that they are learnt beside."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.evaluation_rows import EvaluationRow, EvaluationRows
from fourstage.errors import ContractViolation
from tests.corpora.conftest import Prepare
from tests.corpora.made_up import rows, write

ROWS = EvaluationRows(
    [
        EvaluationRow(("test of own", "1"), "A man rides.", None, ("Ein Mann reitet.",)),
        EvaluationRow(("dev of own", "2"), "A <<plane>> lands.", "It flies.", ("ja",)),
    ],
    ["<<", ">>"],
)


@pytest.mark.parametrize(
    ("text", "pair", "targets", "place"),
    [
        ("a man RIDES", None, (), ("test of own", "1")),
        ("A plane lands", "it flies", (), ("dev of own", "2")),
        ("A [plane] lands", "it flies", (), ("dev of own", "2")),
        ("A plane lands", None, (), None),  # half of a pair
        ("A plane lands", "It drives.", (), None),
        ("Ein Mann reitet!", None, (), ("test of own", "1")),  # translated the other way
        ("Something else", None, ("A man rides",), ("test of own", "1")),
        ("Something else", None, ("ja",), None),  # many rows have the same short answer
    ],
)
def test_a_row_gives_an_evaluation_row_away(text, pair, targets, place):
    assert ROWS.given_away(text, pair, targets, ["[", "]"]) == place


def test_such_rows_are_dropped_reported_or_refused(tmp_path: Path, dataset: Prepare):
    train = rows(200)
    elsewhere = EvaluationRows(
        [
            EvaluationRow(("test of own", "x y"), train[3]["text"].upper() + "!", None),
            EvaluationRow(("dev of own", "z"), rows(1, 9)[0]["text"], None),  # not of train
        ]
    )
    paths = write(tmp_path / "t.jsonl", train), write(tmp_path / "e.jsonl", rows(60, 9))
    prepared = dataset(*paths, elsewhere=elsewhere)
    assert prepared.counts.removed == {"its text is in test of own too": 1}
    (gone,) = prepared.rejected()
    assert (gone["id"], gone["detail"]) == ("r2-3", "x y")
    assert prepared.counts.details["train_rows_in_evaluation_elsewhere"] == 1
    assert prepared.counts.details["splits"]["test"] == 60
    prepared = dataset(*paths, overlap="report", elsewhere=elsewhere)
    assert prepared.counts.removed == {}
    assert prepared.counts.details["train_rows_in_evaluation_elsewhere"] == 1
    with pytest.raises(ContractViolation, match="r2-3 = test of own x y"):
        dataset(*paths, overlap="refuse", elsewhere=elsewhere)
    assert "train_rows_in_evaluation_elsewhere" not in dataset(*paths).counts.details
