"""What words look at: tables without padding, the same for a row alone and beside others."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest

from corpora.shards import RowWriter, TokenisedRows
from models import catalogue
from models import features as keys
from models.evaluation.word_regions import word_regions
from models.protocols import Context
from models.training.trained_stage import load_stage, write_settings, write_weights
from tests.conformance.parts import network
from tests.models.memory_corpus import random_captions
from tests.models.training.memory import pretraining, tokenizer

VALUE = keras.ops.convert_to_numpy


def stage(folder: Path, family: str, objectives: dict) -> Path:
    """The folder of a stage whose weights are as drawn."""
    settings = catalogue.literals("families", family)["SIZES"]["tiny"]
    words = tokenizer()
    job = pretraining(family=family, network=settings, objectives=objectives, corpora={})
    seeing = network(family, vocabulary_size=words.vocabulary_size, max_sequence_length=512)
    scorers = {}
    for name in objectives:
        made = catalogue.find("objectives", name)(Context(words, 32, network=seeing.provides))
        scorers[name] = made.attach(seeing)
    folder.mkdir()
    write_weights(job, folder, seeing, scorers)
    write_settings(job, folder, precision="float32", tasks={}, history=[], metrics={})
    return folder


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> TokenisedRows:
    path = tmp_path_factory.mktemp("rows") / "rows.arrow"
    captions = random_captions(3, tokenizer().vocabulary_size, 39, seed=2)
    with RowWriter(path) as writer:
        for i in range(len(captions)):
            ids = captions.document(i)[0]
            writer.add_row(f"r{i}", "dev", [ids], "", regions=captions.regions(i))
    return TokenisedRows(path, "dev")


def test_a_rows_tables_are_those_of_the_row_alone(tmp_path: Path, rows: TokenisedRows):
    learned = {"image_text_match": {}, "word_region_alignment": {}}
    folder = stage(tmp_path / "uniter", "uniter", learned)
    found = word_regions(folder, tokenizer(), rows)
    loaded = load_stage(folder, tokenizer())
    scorer = loaded.scorer("word_region_alignment", loaded.objective("word_region_alignment"))
    assert [row["id"] for row in found] == rows.ids
    assert len({len(row["tokens"]) for row in found}) > 1
    for i, row in enumerate(found):
        (ids,), (boxes, features) = rows.texts(i), rows.regions(i)
        framed = [tokenizer().cls_id, *ids.tolist(), tokenizer().sep_id]
        assert row["tokens"] == [tokenizer().decode([token]) for token in framed]
        batch = {
            keys.TOKEN_IDS: np.array([framed], np.int32),
            keys.SEGMENT_IDS: np.zeros((1, len(framed)), np.int32),
            keys.PADDING_MASK: np.ones((1, len(framed)), np.int32),
            keys.REGION_FEATURES: features[None],
            keys.REGION_BOXES: boxes[None],
            keys.REGION_MASK: np.ones((1, len(boxes)), np.int32),
        }
        alone = VALUE(loaded.network.words_to_regions(batch))[0]
        np.testing.assert_allclose(row["attention"], alone, atol=2e-5)
        plan = VALUE(scorer(batch, loaded.network(batch))[1]["word_region_plan"])[0]
        np.testing.assert_allclose(row["plan"], plan, atol=2e-5)
        assert np.sum(row["plan"]) == pytest.approx(1.0, abs=1e-2)


def test_without_alignment_there_is_no_plan(tmp_path: Path, rows: TokenisedRows):
    folder = stage(tmp_path / "lxmert", "lxmert", {"image_text_match": {}})
    for row in word_regions(folder, tokenizer(), rows):
        assert set(row) == {"id", "tokens", "attention"}
        # The blocks across see regions alone.
        np.testing.assert_allclose(np.sum(row["attention"], axis=1), 1.0, atol=1e-3)
