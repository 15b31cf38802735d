"""Copies planted among originals: how many are found, and what is taken away by mistake."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.corpora.conftest import Prepare
from tests.corpora.made_up import documents, write

PLANTED = 1000
_WORDS = [f"{a}{b}" for a in ("ba", "den", "ko", "lir", "mus", "nap") for b in ("o", "ent", "ist")]


def english(rng: random.Random) -> str:
    """A text of 120 words out of some thousands, as a paragraph has."""
    return " ".join(f"{rng.choice(_WORDS)}{rng.randrange(400)}" for _ in range(120)) + "."


def chinese(rng: random.Random) -> str:
    """A text of 120 of the common characters."""
    return "".join(chr(0x4E00 + rng.randrange(3000)) for _ in range(120)) + "。"


def edited(text: str, rng: random.Random, language: str) -> str:
    """A near copy, as they are met: another notice at the end, or two words or signs changed."""
    units = text.split(" ") if language == "en" else list(text)
    match rng.randrange(4):
        case 0:
            units += ["all", "rights", "reserved"] if language == "en" else list("版权所有")
        case 1:
            units = units[3:]
        case 2:
            units[rng.randrange(len(units))] = "changed" if language == "en" else "改"
        case _:
            units.insert(rng.randrange(len(units)), "added" if language == "en" else "加")
    return (" " if language == "en" else "").join(units)


@pytest.mark.parametrize(("language", "write_text"), [("en", english), ("zh", chinese)])
def test_planted_near_copies_are_found_and_nothing_else_is_removed(
    tmp_path: Path, corpus: Prepare, language: str, write_text
):
    rng = random.Random(11)
    originals = [{"id": f"o{n}", "text": write_text(rng)} for n in range(PLANTED)]
    copies = [
        {"id": f"c{n}", "text": edited(one["text"], rng, language)}
        for n, one in enumerate(originals)
    ]
    records = originals + copies
    rng.shuffle(records)  # whichever comes first is the one that stays
    prepared = corpus(write(tmp_path / "c.jsonl", records), language=language)
    pairs = [{item["id"], item["detail"]} for item in prepared.rejected()]
    right = [pair for pair in pairs if len({name[1:] for name in pair}) == 1]
    assert len(right) >= 0.95 * PLANTED
    assert len(pairs) - len(right) <= 0.001 * len(records)


@pytest.mark.parametrize(("language", "write_text"), [("en", english), ("zh", chinese)])
def test_every_planted_evaluation_row_is_found_and_no_other_document_goes(
    tmp_path: Path, corpus: Prepare, language: str, write_text
):
    """Each stands somewhere inside a document: as it is, in capitals, with other punctuation."""
    rng = random.Random(12)
    blank = " " if language == "en" else ""
    rows, records = [], []
    for n in range(PLANTED):
        units = write_text(rng).rstrip(".。").split(" ") if language == "en" else list(
            write_text(rng).rstrip("。")
        )  # fmt: skip
        row = units[:30]
        rows.append(blank.join(row))
        if n % 3 == 1:
            row = [unit.upper() for unit in row]
        if n % 3 == 2:
            row = [*row[:10], "," if language == "en" else "，", *row[10:]]
        around = write_text(rng).rstrip(".。")
        cut = len(around) // 2 if language == "zh" else around.index(" ", len(around) // 2)
        text = f"{around[:cut]}{blank}{blank.join(row)}{blank}{around[cut:]}"
        records.append({"id": f"planted{n}", "text": text})
        records.append({"id": f"own{n}", "text": write_text(rng)})
    path = write(tmp_path / "c.jsonl", records)
    prepared = corpus(path, evaluation_texts=rows, language=language)
    assert prepared.counts.removed == {"holds an evaluation text": PLANTED}
    assert {item["id"] for item in prepared.rejected()} == {f"planted{n}" for n in range(PLANTED)}


def test_exact_copies_are_all_found_whatever_their_case_width_and_marks(
    tmp_path: Path, corpus: Prepare
):
    originals = documents(PLANTED)
    copies = [
        {"id": f"c{n}", "text": one["text"].upper().replace(" ", "  ").replace(".", "!")}
        for n, one in enumerate(originals)
    ]
    prepared = corpus(write(tmp_path / "c.jsonl", originals + copies))
    assert prepared.counts.removed == {"exact duplicate": PLANTED}
