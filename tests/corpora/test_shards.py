"""Token shards: what is written is read, in place, by any process."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpora.arrow_files import BATCH_ROWS
from corpora.shards import RowWriter, TokenisedCorpus, TokenisedRows, TokenWriter
from models import features as keys
from models.inputs.rows import framed_rows
from models.protocols import Context
from tests.models.memory_corpus import PlainTokenizer


def write_corpus(path: Path, count: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    documents = []
    with TokenWriter(path) as writer:
        for i in range(count):
            lengths = rng.integers(0, 9, size=rng.integers(0, 5)).astype(np.int32)
            tokens = rng.integers(0, 8000, size=lengths.sum()).astype(np.int32)
            starts = rng.integers(0, 256, len(tokens)).astype(np.uint8)
            if i % 3 == 0 and len(tokens):  # linked to an entity, from some tokens on
                starts = starts + 256 * rng.integers(0, 1 << 16, len(tokens)).astype(np.uint32)
            documents.append((tokens, lengths, starts))
            writer.add_document(
                f"d{i}", "heldout" if i % 10 == 3 else "train", tokens, lengths, starts
            )
    return documents


def test_documents_come_back_whole_and_by_split(tmp_path: Path):
    path = tmp_path / "tokens.arrow"
    documents = write_corpus(path, 2 * BATCH_ROWS + 77)
    corpus = TokenisedCorpus(path)
    assert len(corpus) == len(documents)
    assert corpus.num_tokens == sum(len(tokens) for tokens, _, _ in documents)
    assert corpus.lengths.dtype == np.int64
    assert corpus.lengths.tolist() == [len(tokens) for tokens, _, _ in documents]
    for i in (0, 5, BATCH_ROWS, len(documents) - 1, -1):
        for ours, theirs in zip(corpus.document(i), documents[i], strict=True):
            assert ours.dtype == theirs.dtype
            assert np.array_equal(ours, theirs)
    heldout = TokenisedCorpus(path, "heldout")
    assert len(heldout) == sum(i % 10 == 3 for i in range(len(documents)))
    assert heldout.ids[1] == "d13"
    assert np.array_equal(heldout.document(1)[0], documents[13][0])
    assert len(TokenisedCorpus(path, "none")) == 0
    with pytest.raises(IndexError):
        corpus.document(len(documents))


def test_documents_are_views_and_travel_to_workers_as_a_path(tmp_path: Path):
    path = tmp_path / "tokens.arrow"
    write_corpus(path, 500)
    corpus = TokenisedCorpus(path, "train")
    tokens = corpus.document(2)[0]
    assert not tokens.flags.owndata
    assert not tokens.flags.writeable
    _, arguments = corpus.__reduce__()
    assert len(str(arguments)) < 1000
    other = copy.deepcopy(corpus)  # goes by the same road as a worker's copy
    assert np.array_equal(other.document(2)[0], tokens)


def test_rows_come_back_with_pairs_and_answers(tmp_path: Path):
    path = tmp_path / "rows.arrow"
    with RowWriter(path) as writer:
        writer.add_row("a", "train", [np.array([1, 2, 3])], "yes", "ab c", [2, 1])
        writer.add_row("b", "test", [np.array([4]), np.array([5, 6], dtype=np.int64)], "no")
        none = np.array([], dtype=np.int32)
        writer.add_row("c", "train", [none, none, none], "")
        with pytest.raises(ValueError, match="sum to 2 tokens, got 1"):
            writer.add_row("d", "train", [none, np.array([1, 2])], "", "a", [1])
    rows = TokenisedRows(path)
    assert rows.ids == ["a", "b", "c"]
    assert rows.most_regions == 0
    assert not rows.has_classes
    assert [part.shape for part in rows.regions(0)] == [(0, 4), (0, 0)]
    assert rows.answers == ["yes", "no", ""]
    assert rows.lengths.tolist() == [3, 3, 0]
    assert [text.tolist() for text in rows.texts(0)] == [[1, 2, 3]]
    assert [text.tolist() for text in rows.texts(1)] == [[4], [5, 6]]
    assert [len(text) for text in rows.texts(2)] == [0, 0, 0]
    assert [rows.word_lengths(i).tolist() for i in range(3)] == [[2, 1], [], []]
    assert [rows.passage(i) for i in range(3)] == ["ab c", "", ""]
    train = TokenisedRows(path, "train")
    assert train.ids == ["a", "c"]
    assert train.answers == ["yes", ""]


def test_regions_come_back_and_are_padded_for_networks_that_see(tmp_path: Path):
    rng = np.random.default_rng(0)
    counts = {"a": 2, "b": 0, "c": 3}
    regions = {name: (rng.random((n, 4)), rng.random((n, 5))) for name, n in counts.items()}
    with RowWriter(tmp_path / "rows.arrow") as writer:
        for name, own in regions.items():
            split = "dev" if name == "c" else "train"
            writer.add_row(name, split, [np.array([9])], "yes", regions=own)
    rows = TokenisedRows(tmp_path / "rows.arrow", "train")
    for place, name in enumerate("ab"):
        boxes, features = rows.regions(place)
        np.testing.assert_array_equal(boxes, regions[name][0].astype(np.float32))
        assert features.shape[0] == counts[name]
    blind = Context(PlainTokenizer(), 8)
    batch = framed_rows(rows, np.array([1, 0]), replace(blind, network=frozenset({"regions"})))
    assert batch[keys.REGION_MASK].tolist() == [[0, 0, 0], [1, 1, 0]]  # as wide as the dev row
    assert batch[keys.REGION_BOXES].shape == (2, 3, 4)
    features = batch[keys.REGION_FEATURES]
    np.testing.assert_array_equal(features[1, :2], regions["a"][1].astype(np.float32))
    assert not features[0].any()
    assert not features[1, 2].any()
    assert keys.REGION_FEATURES not in framed_rows(rows, np.array([0]), blind)


def test_classes_of_a_detector_come_back_with_regions_and_are_padded(tmp_path: Path):
    rng = np.random.default_rng(0)
    seen = [(rng.random((n, 4)), rng.random((n, 5))) for n in (2, 3, 3, 2)]
    told = [(rng.integers(0, 9, (n, 2)), rng.random((n, 2))) for n in (2, 3)]
    with RowWriter(tmp_path / "rows.arrow") as writer:
        texts = [np.array([9])]
        for name, regions, classes in zip("ab", seen, told, strict=False):
            writer.add_row(name, "train", texts, "yes", regions=regions, classes=classes)
        writer.add_row("c", "train", texts, "yes", regions=seen[2])
        other = told[0][0] + 1, told[0][1]  # what it sees is as in the first row
        writer.add_row("d", "train", texts, "yes", regions=seen[0], classes=other)
        writer.add_row("e", "train", texts, "yes")
    rows = TokenisedRows(tmp_path / "rows.arrow", "train")
    assert rows.has_classes
    for place, own in enumerate([*told, (np.zeros((0, 2)),) * 2, other, (np.zeros((0, 2)),) * 2]):
        for found, wanted, kind in zip(
            rows.classes(place), own, (np.int32, np.float32), strict=True
        ):
            assert found.dtype == kind
            np.testing.assert_array_equal(found, wanted.astype(kind))
    sees = replace(Context(PlainTokenizer(), 8), network=frozenset({"regions"}))
    batch = framed_rows(rows, np.array([2, 1, 0]), sees)
    sure = batch[keys.DETECTED_CONFIDENCES]
    assert batch[keys.DETECTED_CLASSES].shape == sure.shape == (3, 3, 2)
    np.testing.assert_array_equal(batch[keys.DETECTED_CLASSES][1], told[1][0])
    np.testing.assert_array_equal(sure[2, :2], told[0][1].astype(np.float32))
    assert not sure[0].any()  # nothing is told of its picture
    assert not sure[2, 2].any()
    blind = framed_rows(rows, np.array([1]), Context(PlainTokenizer(), 8))
    assert not set(keys.DETECTED) & set(blind)


def test_a_picture_of_many_rows_is_stored_once(tmp_path: Path):
    rng = np.random.default_rng(0)
    one, other = ((rng.random((9, 4)), rng.random((9, 2048))) for _ in range(2))
    with RowWriter(tmp_path / "rows.arrow") as writer:
        for number in range(60):
            seen = other if number == 30 else one
            writer.add_row(f"r{number}", "train", [np.array([9])], "yes", regions=seen)
    rows = TokenisedRows(tmp_path / "rows.arrow")
    for number in range(60):
        for found, wanted in zip(rows.regions(number), other if number == 30 else one, strict=True):
            np.testing.assert_array_equal(found, wanted.astype(np.float32))
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"rows.arrow", "rows-pictures.arrow"}
    assert 2 * 9 * 2052 * 4 <= sizes["rows-pictures.arrow"] < 3 * 9 * 2052 * 4
    assert {path.name for path in tmp_path.iterdir()} == set(sizes)


def test_an_empty_file_is_a_corpus_of_none(tmp_path: Path):
    with TokenWriter(tmp_path / "t.arrow"):
        pass
    corpus = TokenisedCorpus(tmp_path / "t.arrow")
    assert (len(corpus), corpus.num_tokens, corpus.ids) == (0, 0, [])


def test_a_file_appears_only_when_it_is_whole(tmp_path: Path):
    def write_and_fail() -> None:
        with TokenWriter(tmp_path / "t.arrow") as writer:
            writer.add_document("a", "train", np.array([1]), np.array([1]), np.array([True]))
            assert not (tmp_path / "t.arrow").exists()
            raise RuntimeError

    def write_rows_and_fail() -> None:
        with RowWriter(tmp_path / "rows.arrow") as writer:
            picture = np.zeros((1, 4)), np.zeros((1, 5))
            writer.add_row("a", "train", [np.array([9])], "yes", regions=picture)
            raise RuntimeError

    for write in (write_and_fail, write_rows_and_fail):
        with pytest.raises(RuntimeError):
            write()
        assert not list(tmp_path.iterdir())


def test_sentence_lengths_that_do_not_sum_are_refused(tmp_path: Path):
    with TokenWriter(tmp_path / "t.arrow") as writer, pytest.raises(ValueError, match="sum to 2"):
        writer.add_document("a", "train", np.array([1, 2]), np.array([1]), np.array([True, True]))


def test_another_file_is_refused_by_its_columns(tmp_path: Path):
    with TokenWriter(tmp_path / "t.arrow"):
        pass
    with pytest.raises(ValueError, match="expected the columns"):
        TokenisedRows(tmp_path / "t.arrow")
