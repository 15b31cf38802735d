"""A corpus prepared: what is kept, where, and what is said of it (faults S18–S20, S22)."""

from __future__ import annotations

import base64
import json
import random
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpora.folds import FOLD
from corpora.preparation import prepare_corpus, prepare_dataset
from corpora.profile import script_share
from corpora.scratch import SeenDocuments, scratch_database
from corpora.snapshot import take_snapshot
from corpora.splits import HELDOUT, HeldOutSplit, position
from data_contracts.sources import Source
from fourstage.errors import ContractViolation
from tests.corpora.conftest import Prepare, source_of
from tests.corpora.made_up import chinese, documents, rows, write


def test_documents_profile_and_counts_agree(tmp_path: Path, corpus: Prepare):
    records = documents(300)
    records += [{"id": "same", "text": records[0]["text"].upper()}, {"id": "none", "text": " \x00"}]
    prepared = corpus(write(tmp_path / "c.jsonl", records))
    counts = json.loads((prepared.folder / "counts.json").read_text())
    assert (counts["read"], counts["kept"]) == (302, 300)
    assert counts["removed"] == {"empty": 1, "exact duplicate": 1}
    table, profile = prepared.table(), prepared.profile()
    assert [row["id"] for row in table] == [row["id"] for row in profile]
    assert [row["split"] for row in table] == [row["split"] for row in profile]
    assert counts["splits"]["heldout"] == sum(row["split"] == "heldout" for row in table) > 0
    assert profile[0]["num_duplicates"] == 1
    assert profile[0]["num_words"] == 60
    assert table[0]["location"] == "c.jsonl:1"


def test_of_a_large_corpus_a_text_stays_on_its_side_whatever_is_added():
    groups = [str(number) for number in range(4000)]
    chosen = HeldOutSplit(0.02)
    first = {group: chosen.takes(group) for group in groups}
    assert sum(first.values()) == pytest.approx(80, abs=25)
    assert not chosen.others()
    chosen = HeldOutSplit(0.02)
    second = {group: chosen.takes(group) for group in [*map(str, range(9000, 9500)), *groups[::-1]]}
    assert {group: second[group] for group in groups} == first


def test_splits_of_one_text_for_two_purposes_are_independent():
    """Otherwise the held-out part of a corpus would be what folds or a dev split take, too."""
    places = [[position(str(n), salt) for n in range(4000)] for salt in (HELDOUT, "split", FOLD)]
    apart = np.corrcoef(places) - np.eye(3)
    assert np.abs(apart).max() < 5 / 4000**0.5


@pytest.mark.parametrize(
    ("number", "wanted"), [(1, 0), (2, 1), (3, 1), (9, 1), (20, 4), (122, 20), (300, 20)]
)
def test_of_few_documents_a_fifth_and_of_more_twenty_are_held_out_whatever_their_order(
    tmp_path: Path, corpus: Prepare, number: int, wanted: int
):
    records = documents(number, seed=11)
    prepared = corpus(write(tmp_path / "a.jsonl", records))
    reversed_ = corpus(write(tmp_path / "b.jsonl", records[::-1]))
    for one in (prepared, reversed_):
        counts = json.loads((one.folder / "counts.json").read_text())
        assert counts["splits"] == {"train": number - wanted, "heldout": wanted}
        assert [row["split"] for row in one.table()] == [row["split"] for row in one.profile()]
        assert sum(row["split"] == "heldout" for row in one.table()) == wanted

    def held_out(one) -> set[str]:
        return {row["id"] for row in one.table() if row["split"] == "heldout"}

    assert held_out(prepared) == held_out(reversed_)


def test_files_with_text_are_for_their_owner_only(tmp_path: Path, corpus: Prepare):
    prepared = corpus(write(tmp_path / "c.jsonl", documents(20)))
    for name in ("documents.arrow", "rejected.jsonl"):
        assert stat.S_IMODE((prepared.folder / name).stat().st_mode) == 0o600
    left = {path.name for path in prepared.folder.iterdir()}
    assert left == {"documents.arrow", "profile.parquet", "rejected.jsonl", "counts.json"}


def test_what_is_remembered_in_the_meantime_is_for_the_owner_only(tmp_path: Path):
    path = tmp_path / "met.db"
    with scratch_database(path) as database:
        SeenDocuments(database).is_new("an id of the user's")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()


def test_the_profile_and_the_counts_hold_no_text(tmp_path: Path, corpus: Prepare):
    prepared = corpus(write(tmp_path / "c.jsonl", documents(40) + documents(3)))
    for name in ("profile.parquet", "rejected.jsonl", "counts.json"):
        assert b"zqxcanary" not in (prepared.folder / name).read_bytes()


def test_special_tokens_control_characters_and_giant_words_show_in_the_profile(
    tmp_path: Path, corpus: Prepare
):
    giant = base64.b64encode(random.Random(1).randbytes(1_500_000)).decode()
    records = [
        {"id": "special", "text": "[MASK] [SEP] of <extra_id_0> and </s> in a text"},
        {"id": "control", "text": "do\x00se\u202e\u200b\x1b[2J of it"},
        {"id": "b64", "text": giant},
        {"id": "replaced", "text": "a\ufffd b"},
        *documents(50),
    ]
    prepared = corpus(write(tmp_path / "c.jsonl", records))
    profile = {row["id"]: row for row in prepared.profile()}
    assert profile["special"]["special_token_strings"] == 4
    assert profile["control"]["control_removed"] == 7
    assert profile["b64"]["longest_word"] == 2_000_000
    assert profile["replaced"]["replacement_share"] == 0.25
    assert prepared.counts.details["characters_removed"] == {
        "bidi": 1,
        "control": 1,
        "escape": 4,
        "zero_width": 1,
    }


def test_signs_are_no_letters_of_a_script():
    hindi = "यह हिंदी का पाठ है and this is English text here"
    assert script_share(hindi, "hi") == 8 / 32
    assert script_share("3 × 5 × 7 ÷ да", "en") == 0.0
    assert script_share("मैं जाती हूँ।", "hi") == 1.0


def test_script_shares_and_word_counts_follow_the_language(tmp_path: Path, corpus: Prepare):
    novel = {"id": "novel", "text": "".join(r["text"].replace("。", "") for r in chinese(2000))}
    path = write(
        tmp_path / "c.jsonl", [novel, {"id": "en", "text": "in English all"}, *chinese(50)]
    )
    profile = {row["id"]: row for row in corpus(path, language="zh").profile()}
    assert profile["novel"]["num_words"] == profile["novel"]["num_chars"] == 144_000
    assert profile["novel"]["longest_word"] == 1
    assert profile["novel"]["script_share"] == 1.0
    assert profile["en"]["script_share"] == 0.0
    assert profile["en"]["num_words"] == 3


def test_short_documents_are_removed_where_the_source_says_so(tmp_path: Path, corpus: Prepare):
    records = [*documents(30), {"id": "short", "text": "too short"}]
    prepared = corpus(write(tmp_path / "c.jsonl", records), minimum_words=3)
    assert prepared.counts.removed == {"shorter than minimum_words": 1}


def test_nothing_is_left_behind_when_reading_fails(tmp_path: Path, corpus: Prepare):
    path = tmp_path / "c.csv"
    path.write_text('text\n"one"\n"never closed\n')
    with pytest.raises(ContractViolation):
        corpus(path)
    assert not list((tmp_path / "prepared0").iterdir())


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "text": st.text(max_size=30) | st.sampled_from(["a b c", "A, b c!"]) | st.none(),
                "id": st.integers(0, 9),
            },
        ),
        max_size=20,
    )
)
def test_read_is_kept_and_quarantined_and_removed(
    tmp_path: Path, corpus: Prepare, records: list[dict]
):
    path = tmp_path / "c.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    try:
        prepared = corpus(path)
    except ContractViolation:
        return
    counts = json.loads((prepared.folder / "counts.json").read_text())
    gone = sum(counts["quarantined"].values()) + sum(counts["removed"].values())
    assert counts["read"] == len(records) == counts["kept"] + gone
    assert len(prepared.table()) == counts["kept"]


# Not ru_maxrss: a child starts with its parent's.
PREPARE = """
import sys
from pathlib import Path
from corpora.preparation import prepare_corpus
from corpora.snapshot import take_snapshot
from corpora.splits import HeldOutSplit
from data_contracts.sources import parse_source
source = parse_source({"name": "mine", "language": "en", "licence": "x", "files": sys.argv[1]})
folder = Path(sys.argv[2]); folder.mkdir()
prepare_corpus(source, take_snapshot(source), folder)
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def peak(folder: Path, name: str, count: int, length: int) -> int:
    """KiB that preparing documents of so many words takes, at most, in a process of its own."""
    rng = random.Random(1)
    words = [f"w{i}" for i in range(20_000)]
    records = [{"text": " ".join(rng.choices(words, k=length))} for _ in range(count)]
    path = write(folder / f"{name}.jsonl", records)
    command = [sys.executable, "-c", PREPARE, str(path), str(folder / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    left = {file.name for file in (folder / name).iterdir()}
    assert left == {"documents.arrow", "profile.parquet", "rejected.jsonl", "counts.json"}
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_memory_grows_neither_with_long_documents_nor_with_many(tmp_path: Path):
    small = peak(tmp_path, "small", count=4000, length=200)
    long = peak(tmp_path, "long", count=4000, length=2000)
    many = peak(tmp_path, "many", count=40_000, length=200)
    # KiB: batches that are full now. The text alone grew by 43 MB in either case.
    assert long - small < 40_000
    # Ids, digests and signatures of 36,000 documents more would be 140 MB in memory.
    assert many - small < 40_000


@pytest.mark.parametrize("labelled", [False, True])
def test_what_preparation_reads_of_a_source_is_in_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labelled: bool
):
    file = write(tmp_path / "some.jsonl", rows(60) if labelled else documents(30))
    fields = {"text": "text", **({"label": "label"} if labelled else {})}
    source = source_of(files=str(file), fields=fields)
    snapshot = take_snapshot(source)
    (tmp_path / "prepared").mkdir()
    read: set[str] = set()
    plain = Source.__getattribute__

    def noted(source: Source, name: str) -> Any:
        read.add(name)
        return plain(source, name)

    with monkeypatch.context() as patch:
        patch.setattr(Source, "__getattribute__", noted)
        (prepare_dataset if labelled else prepare_corpus)(source, snapshot, tmp_path / "prepared")
    assert {"language", "fields", "minimum_words"} <= read
    # `files` says which splits are listed; the snapshot's digest has those of each file.
    assert (read & set(Source.model_fields)) - {"files"} <= set(source.settings())
