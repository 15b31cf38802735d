"""The real data sets, as their READMEs count them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from corpora.answers import DROPPED, MOVED, names_in, num_in
from corpora.fetch import _is_there, downloads
from corpora.identity import normal_form
from corpora.preparation import prepare_corpus, prepare_dataset
from corpora.reading import read_rows
from corpora.rejections import Counts
from corpora.snapshot import take_snapshot
from corpora.target_language import TrigramProfiles
from data_contracts.check import check
from data_contracts.records import Rejected, Row
from data_contracts.sources import load_source, source_names
from data_contracts.suite import load_suite
from models.evaluation.word_relations import relations
from models.vectors.lookup import WordTable

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
        # Half a minute; that as many rows are read is tested below, of reviews_zh_categories.
        pytest.param("reviews_zh", 60_484, 0, marks=pytest.mark.slow),
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
        ("citation_intent", (1688, 114, 139), 6),
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


@dataclass(frozen=True)
class Read:
    """The rows of a data set as its reader gives them, without the cost of preparation.

    Attributes:
        rows: By split.
        rejected: How many by reason.
        mended: How often each thing was mended.
        kind: Kind of answer.
    """

    rows: dict[str | None, list[Row]]
    rejected: Counter[str]
    mended: Counter[str]
    kind: str

    def names(self, split: str | None) -> Counter[str]:
        """How often each label or type is in a split."""
        found = self.rows[split]
        return Counter(name for row in found for name in names_in(self.kind, row.label))

    def answers(self, split: str | None) -> list[int]:
        """How many answers each row has."""
        return [num_in(self.kind, row.label) for row in self.rows[split]]


@cache
def read(name: str) -> Read:
    source = load_source(name, [])
    rows: dict[str | None, list[Row]] = {}
    rejected, mended = Counter[str](), Counter[str]()
    for split, item in read_rows(source, take_snapshot(source)):
        if isinstance(item, Rejected):
            rejected[item.reason] += 1
        else:
            rows.setdefault(split, []).append(item)
            mended.update(item.mended)
    return Read(rows, rejected, mended, source.answers)


@pytest.mark.parametrize(
    ("name", "rows", "rejected"),
    [
        ("bc5cdr_ner", {"train": 3942, "dev": 3949, "test": 4139}, {}),
        # One sentence has I-creative-work right after I-person; a line with a byte order mark is
        # no sentence.
        (
            "wnut17_ner",
            {"train": 3394, "dev": 1008, "test": 1287},
            {"a tag that cannot follow the one before it (tag_scheme iob2)": 1},
        ),
        ("cluener2020", {"train": 10_747, "test": 1343}, {"spans that overlap": 1}),
        ("squad_v2_small", {"train": 4594, "test": 1484}, {}),
        ("cmrc2018", {"train": 3219, "test": 1002}, {}),
        ("codah", {"train": 1665, "dev": 556, "test": 555}, {}),
        ("stsb_en", {"train": 5749, "dev": 1500, "test": 1379}, {}),
        ("stsb_zh", {"train": 5749, "dev": 1500, "test": 1379}, {}),
        (
            "evidence_inference",
            {"train": 3641, "dev": 436, "test": 468},
            {"left out by 'where' (Valid Label)": 331},
        ),
        ("fewrel", {None: 11_200}, {}),
        ("mcl_wic", {"train": 8000, "dev": 1000, "test": 1000}, {}),
        ("mcl_wic_zh", {None: 1000}, {}),
        ("reviews_zh_categories", {None: 60_484}, {}),
        ("thucnews_titles", {"train": 10_000, "test": 10_000}, {}),
        ("thucnews_titles_text", {"train": 10_000, "test": 10_000}, {}),
        ("multi30k_en_de", {"train": 29_000, "dev": 1014, "test": 1000}, {}),
        ("scitldr", {"train": 1992, "dev": 619, "test": 618}, {}),
        ("nlvr", {"train": 989, "test": 990}, {}),
        ("nlvr_descriptions", {"train": 9890}, {}),
    ],
)
def test_every_row_is_read_or_its_fault_is_told(
    name: str, rows: dict[str | None, int], rejected: dict[str, int]
):
    found = read(name)
    assert {split: len(some) for split, some in found.rows.items()} == rows
    assert found.rejected == rejected


def test_entities_are_those_of_the_tags():
    """As many as a script counts that knows only where a tag begins another span."""
    numbers = {"train": 9270, "dev": 9455, "test": 9662}
    found = read("bc5cdr_ner")
    assert {split: found.names(split) for split in numbers} == {
        split: {"Entity": number} for split, number in numbers.items()
    }
    assert len(read("wnut17_ner").names("test")) == 6
    assert sum(read("wnut17_ner").answers("train")) == 1975  # B- tags


def test_entities_of_chinese_news_end_where_their_text_does():
    """A span is checked against the mention that the file gives with it."""
    found = read("cluener2020")
    assert len(found.names("train")) == len(found.names("test")) == 10
    assert sum(found.answers("test")) == 3072


def test_wrong_offsets_of_answers_are_mended_or_counted():
    """200 of 9,657 answers to train on are not at their offset, and 5 of 1,002 to test on."""
    found = read("cmrc2018")
    assert found.mended == {MOVED: 7 + 5, DROPPED: 193}
    assert sum(found.answers("train")) == 9657 - 193
    assert sum(found.answers("test")) == 1002


def test_half_of_the_questions_have_no_answer():
    found = read("squad_v2_small")
    assert not found.mended
    assert [found.answers(split).count(0) for split in ("train", "test")] == [2327, 841]


def test_numbers_and_choices_are_all_there():
    for name in ("stsb_en", "stsb_zh"):
        scores = [float(row.label) for row in read(name).rows["train"]]
        assert (min(scores), max(scores), round(sum(scores) / len(scores), 3)) == (0, 5, 2.701)
    codah = read("codah").rows["test"]
    assert Counter(row.label for row in codah) == {"2": 169, "1": 142, "3": 130, "0": 114}
    assert {len(row.choices or ()) for row in codah} == {4}


def test_labels_have_the_names_that_the_source_gives():
    topics = read("thucnews_titles").names("test")
    assert len(topics) == 10
    assert set(topics.values()) == {1000}
    assert {"finance", "entertainment"} < set(topics)
    assert set(read("fewrel").names(None).values()) == {700}
    for split, half in (("train", 4000), ("dev", 500), ("test", 500)):
        assert read("mcl_wic").names(split) == {"same": half, "different": half}
    assert read("mcl_wic_zh").names(None) == {"same": 500, "different": 500}
    assert read("evidence_inference").names("train") == {
        "no difference": 1806,
        "increased": 978,
        "decreased": 857,
    }


def test_texts_to_write_have_the_references_of_their_files():
    summaries = {split: Counter(read("scitldr").answers(split)) for split in ("train", "dev")}
    assert summaries == {"train": {1: 1992}, "dev": {3: 267, 2: 237, 1: 94, 4: 21}}
    assert Counter(read("scitldr").answers("test")) == {3: 339, 4: 196, 2: 83}
    topics = Counter(row.label for row in read("thucnews_titles_text").rows["test"])
    assert len(topics) == 10
    assert topics['["财经"]'] == 1000
    first = read("multi30k_en_de").rows["dev"][0]
    assert first.text.startswith("A group of men are loading cotton")
    assert first.label.startswith('["Eine Gruppe von Männern lädt Baumwolle')


def test_two_captions_have_signs_for_a_translation_and_no_row_is_a_copy(tmp_path: Path):
    """Lines 16,510 and 16,664 of Multi30k's German are ``@@``."""
    import pandas

    counts = prepared("multi30k_en_de", tmp_path)
    assert counts.removed == {"its text is in dev too": 1}
    profile = pandas.read_parquet(tmp_path / "profile.parquet").set_index("id")
    empty = profile.index[profile["target_words"] == 0]
    assert [name.rpartition(":")[2] for name in empty] == ["16510", "16664"]
    assert profile["copy_rate"].max() == 0.6
    report = check(profile.reset_index(), load_suite("targets"), subject="multi30k_en_de")
    assert report.verdict == "green"
    assert sorted(report.quarantined) == sorted(empty)


def test_swapped_captions_are_told_by_their_language_and_others_are_not():
    there = {
        split: [(row.text, json.loads(row.label)) for row in rows]
        for split, rows in read("multi30k_en_de").rows.items()
    }
    train = there["train"]
    swapped = set(range(0, len(train), 50))  # 2 %, the tolerance
    for number in swapped:
        text, (target,) = train[number]
        train[number] = target, [text]
    profiles = TrigramProfiles(train)
    found = {}
    for split, rows in there.items():
        margins = (profiles.margin(*row, counted=split == "train") for row in rows)
        found[split] = {n for n, each in enumerate(margins) if each < -0.3}
    assert (len(swapped), swapped <= found["train"]) == (580, True)
    assert len(found["train"] - swapped) == 1
    assert found["dev"] == found["test"] == set()


def test_some_summaries_stand_in_their_abstract(tmp_path: Path):
    import pandas
    import pyarrow

    counts = prepared("scitldr", tmp_path)
    assert counts.removed == {"its text is in dev too": 1, "its text is in test too": 2}
    assert counts.details["answers"]["test"] == {"number": 1967, "rows_without": 0}
    profile = pandas.read_parquet(tmp_path / "profile.parquet")
    with pyarrow.memory_map(str(tmp_path / "rows.arrow")) as mapped:
        rows = pyarrow.ipc.open_file(mapped).read_all().to_pylist()
    copied = [
        any(f" {normal_form(t)} " in f" {normal_form(row['text'])} " for t in texts)
        for row in rows
        for texts in [json.loads(row["label"])]
    ]
    assert (profile["copy_rate"] == 1).tolist() == copied
    assert sum(copied) == 116
    assert profile["length_ratio"].max() < 1
    assert check(profile, load_suite("targets"), subject="scitldr").verdict == "green"


def test_chemprot_has_fewer_sentences_than_rows(tmp_path: Path):
    counts = prepared("chemprot", tmp_path)
    assert counts.details["distinct_texts"]["train"] == 1653
    assert counts.details["train_rows_sharing_text_with"] == {"dev": 0, "test": 4}
    assert counts.removed == {"its text is in test too": 4}


def test_overlap_of_citations_and_reviews_is_what_their_readmes_say(tmp_path: Path):
    """Of ACL-ARC 48 long test texts occur in train, of ChnSentiCorp 334 distinct ones."""
    for name, least in (("citation_intent", 48), ("chnsenticorp", 334)):
        folder = tmp_path / name
        folder.mkdir()
        counts = prepared(name, folder)
        assert counts.details["train_rows_sharing_text_with"]["test"] >= least
        assert counts.removed["its text is in test too"] >= least


def test_the_marks_are_all_that_tells_the_two_readings_of_fewrel_apart():
    plain, marked = (read(name).rows[None] for name in ("fewrel", "fewrel_marks"))
    signs = dict(zip(("<<", ">>", "[[", "]]"), ("[HD]", "[HD]", "[TL]", "[TL]"), strict=True))
    assert [row.label for row in plain] == [row.label for row in marked]
    for one, other in zip(plain, marked, strict=True):
        words = [signs.get(word, word) for word in one.text.split(" ")]
        assert words == other.text.split(" ")


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
    assert checked >= 57


@pytest.mark.parametrize(
    ("file", "lines", "sections"),
    [
        ("questions-words.txt.gz", 19_544, 14),
        ("CA8/semantic.txt", 7636, 4),
        ("CA8/morphological.txt", 10_177, 4),
        ("CA_translated/ca_translated.txt", 953, 3),
        ("wordsim353.tsv", 353, 0),
        ("simlex999.txt", 999, 0),
    ],
)
def test_word_relations_are_read_whole(file: str, lines: int, sections: int, data: Path):
    nothing = WordTable({}, np.zeros((0, 2), np.float32), {})
    path = data / "tasks" / "word_relations" / file
    measure, found, by_section = relations(path, nothing)
    assert measure == ("accuracy" if sections else "spearman")
    assert (found.asked, found.skipped, len(by_section)) == (0, lines, sections)
