"""The real data sets, as their READMEs count them."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.answers import DROPPED, MOVED
from corpora.fetch import _is_there, downloads
from corpora.preparation import prepare_corpus, prepare_dataset
from corpora.rejections import Counts
from corpora.snapshot import take_snapshot
from data_contracts.sources import load_source, source_names

pytestmark = pytest.mark.realdata


@pytest.fixture(autouse=True)
def data(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOURSTAGE_DATA", str(shared_data))
    return shared_data


def prepared(name: str, folder: Path, overlap: str = "drop_from_train") -> Counts:
    source = load_source(name, [])
    snapshot = take_snapshot(source)
    if source.is_dataset:
        counts = prepare_dataset(source, snapshot, folder, overlap=overlap)  # type: ignore[arg-type]
    else:
        counts = prepare_corpus(source, snapshot, folder)
    counts.check()
    return counts


@pytest.mark.parametrize(
    ("name", "read", "quarantined"),
    [
        ("encyclopedia_en", 122, 0),
        ("speeches_en", 124, 0),
        ("trial_reports", 1912, 0),
        ("novels_zh", 292, 0),
        ("reviews_zh", 60_484, 0),
    ],
)
def test_corpora_are_read_whole(name: str, read: int, quarantined: int, tmp_path: Path):
    counts = prepared(name, tmp_path)
    assert counts.read == read
    assert sum(counts.quarantined.values()) == quarantined
    assert counts.kept > 0.98 * read


@pytest.mark.parametrize(
    ("name", "splits", "labels"),
    [
        ("chemprot", (4169, 2427, 3469), 13),
        ("sci_cite", (1688, 114, 139), 6),
        ("sst2", (6920, 872, 1821), 2),
        ("mrpc", (3576, 500, 1725), 2),
        ("nicta_piboso", (6979, 801, 1991), 6),
        ("chnsenticorp", (9600, 1200, 1200), 2),
    ],
)
def test_datasets_are_read_whole(
    name: str, splits: tuple[int, int, int], labels: int, tmp_path: Path
):
    counts = prepared(name, tmp_path, overlap="report")
    assert counts.details["rows"] == dict(zip(("train", "dev", "test"), splits, strict=True))
    assert counts.kept == counts.read == sum(splits)
    assert len(counts.details["labels"]["train"]) == labels


@pytest.mark.parametrize(
    ("name", "rows", "quarantined"),
    [
        ("bc5cdr_ner", (3942, 3949, 4139), {}),
        # One sentence has I-creative-work right after I-person.
        (
            "wnut17_ner",
            (3394, 1008, 1287),
            {"a tag that cannot follow the one before it (iob2)": 1},
        ),
        ("cluener2020", (10_747, 0, 1343), {"spans that overlap": 1}),
        ("squad_v2_small", (4594, 0, 1484), {}),
        ("cmrc2018", (3219, 0, 1000), {}),
        ("codah", (1665, 556, 555), {}),
        ("stsb_en", (5749, 1500, 1379), {}),
        ("stsb_zh", (5749, 1500, 1379), {}),
    ],
)
def test_other_answers_than_labels_are_read_whole(
    name: str, rows: tuple[int, int, int], quarantined: dict[str, int], tmp_path: Path
):
    counts = prepared(name, tmp_path, overlap="report")
    listed = counts.details["rows"]
    assert tuple(listed.get(split, 0) for split in ("train", "dev", "test")) == rows
    assert counts.quarantined == quarantined
    if name == "cmrc2018":
        # 200 of 9,657 and 5 of 1,002 answers are not at their offsets; two questions are blank.
        assert counts.removed == {"empty": 2}
        assert counts.details["mended"] == {MOVED: 12, DROPPED: 193}
        numbers = [split["number"] for split in counts.details["answers"].values()]
        assert sum(numbers) == 9657 - 193 + 1002 - 2
    if name == "squad_v2_small":
        without = {k: v["rows_without"] for k, v in counts.details["answers"].items()}
        assert (without["train"] + without["dev"], without["test"]) == (2327, 841)
    if name == "bc5cdr_ner":  # read as a script that knows only B- and I- reads them
        numbers = {k: v["number"] for k, v in counts.details["answers"].items()}
        assert numbers == {"train": 9270, "dev": 9455, "test": 9662}
    if name == "cluener2020":
        assert {len(names) for names in counts.details["labels"].values()} == {10}


def test_chemprot_has_fewer_sentences_than_rows(tmp_path: Path):
    counts = prepared("chemprot", tmp_path)
    assert counts.details["distinct_texts"]["train"] == 1653
    assert counts.details["train_rows_sharing_text_with"] == {"dev": 0, "test": 4}
    assert counts.removed == {"its text is in test too": 4}


def test_overlap_of_citations_and_reviews_is_what_their_readmes_say(tmp_path: Path):
    """Of ACL-ARC 48 long test texts occur in train, of ChnSentiCorp 334 distinct ones."""
    for name, least in (("sci_cite", 48), ("chnsenticorp", 334)):
        folder = tmp_path / name
        folder.mkdir()
        counts = prepared(name, folder)
        assert counts.details["train_rows_sharing_text_with"]["test"] >= least
        assert counts.removed["its text is in test too"] >= least


def test_speeches_in_latin_1_are_decoded(tmp_path: Path):
    import pyarrow

    prepared("speeches_en", tmp_path)
    with pyarrow.memory_map(str(tmp_path / "documents.arrow")) as mapped:
        text = "".join(pyarrow.ipc.open_file(mapped).read_all().column("text").to_pylist())
    assert "\ufffd" not in text


def test_published_digests_are_those_of_the_files_here(data: Path):
    checked = 0
    for name in source_names([]):
        source = load_source(name, [])
        if source.fetch == "none":
            continue
        for download in downloads(source):
            here = data / str(download.target).split(f"/data/{name}/")[1]
            assert _is_there(type(download)(download.url, download.sha256, here)), here
            checked += 1
    assert checked >= 38
