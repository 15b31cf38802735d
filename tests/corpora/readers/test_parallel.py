"""Lines that belong together because they have one number."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from fourstage.errors import ContractViolation
from tests.corpora.conftest import Prepare

ENGLISH = ["A red house.", "Two dogs run.", "", "A child sings.", "Nobody is here."]
GERMAN = ["Ein rotes Haus.", "Zwei Hunde laufen.", "Ein Ball.", "Ein Kind singt.", "Leer ist es."]


def source(folder: Path, more: str = "") -> dict[str, Any]:
    """Three splits whose lines have the same numbers; the last two are compressed."""
    (folder / "train.en").write_bytes("\r\n".join(ENGLISH).encode())
    (folder / "train.de").write_text("\n".join(GERMAN) + "\n" + more)
    for name, line in (("en", "A tree."), ("de", "Ein Baum.")):
        for split in ("dev", "test"):
            with gzip.open(folder / f"{split}.{name}.gz", "wt") as stream:
                stream.write(f"{line[:-1]} of {split}.\n")
    files = {
        name: {
            split: f"{folder}/{split}.{name}{'' if split == 'train' else '.gz'}"
            for split in ("train", "dev", "test")
        }
        for name in ("en", "de")
    }
    return {
        "files": files["en"],
        "join": {"by": "line", "files": files["de"]},
        "format": "parallel",
        "fields": {"text": "en", "label": "de"},
        "answers": "text",
        "answer_language": "de",
    }


def test_a_line_belongs_to_the_line_of_its_number_in_its_split(tmp_path: Path, dataset: Prepare):
    prepared = dataset(**source(tmp_path))
    assert {row["location"]: (row["text"], row["label"]) for row in prepared.table()} == {
        "train.en:1": ("A red house.", '["Ein rotes Haus."]'),
        "train.en:2": ("Two dogs run.", '["Zwei Hunde laufen."]'),
        "train.en:4": ("A child sings.", '["Ein Kind singt."]'),
        "train.en:5": ("Nobody is here.", '["Leer ist es."]'),
        "dev.en.gz:1": ("A tree of dev.", '["Ein Baum of dev."]'),
        "test.en.gz:1": ("A tree of test.", '["Ein Baum of test."]'),
    }
    assert prepared.counts.removed == {"empty": 1}


def test_an_empty_translation_is_quarantined_in_its_place(tmp_path: Path, dataset: Prepare):
    settings = source(tmp_path)
    (tmp_path / "train.de").write_text("\n".join([GERMAN[0], "", *GERMAN[2:]]))
    prepared = dataset(**settings)
    assert prepared.counts.quarantined == {"no label": 1}
    assert [row["location"] for row in prepared.rejected() if row["reason"] == "no label"] == [
        "train.en:2"
    ]


@pytest.mark.parametrize(("more", "lines"), [("Zu viel.\n", 6), (None, 4)])
def test_another_number_of_lines_is_refused(
    tmp_path: Path, dataset: Prepare, more: str | None, lines: int
):
    settings = source(tmp_path, more or "")
    if more is None:
        (tmp_path / "train.de").write_text("\n".join(GERMAN[1:]))
    with pytest.raises(ContractViolation, match=f"of split train, got {lines} and 5; line n"):
        dataset(**settings)
