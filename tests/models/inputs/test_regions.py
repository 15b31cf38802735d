"""Drawn pictures, from their files to what a network that sees learns of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import pytest

from corpora.pictures import PreparedRegions
from corpora.preparation import prepare_dataset
from corpora.prepared import prepared_rows
from corpora.regions import regions_of
from corpora.shards import RowWriter, TokenisedRows, TokenWriter, pictures_file
from corpora.snapshot import take_snapshot
from models import catalogue
from models import features as keys
from models.evaluation.heldout import HeldOut
from models.inputs.batches import batches
from models.inputs.captions import Captions
from models.protocols import Capability
from models.training.stage_model import StageModel
from tasks.steps.tokens import HELDOUT, documents
from tasks.store.artifacts import Input
from tests.conformance.parts import CONTEXT, Stage, network
from tests.corpora.conftest import source_of
from tests.corpora.readers.test_nlvr import archive, at, example
from tests.corpora.test_regions import encoded

COUNT = 8  # rows of each split
SAID = "12 7 30 15"  # what every row says: only its picture can tell its label
RED, BLUE = (230, 20, 20), (20, 20, 230)


def picture(number: int) -> bytes:
    """White, with one to three squares: red where the number is even, else blue."""
    pixels = np.full((30, 60, 3), 255)
    rng = np.random.default_rng(number)
    for place in range(1 + number % 3):
        left, top = 20 * place + rng.integers(1, 8), rng.integers(1, 20)
        pixels[top : top + 9, left : left + 9] = BLUE if number % 2 else RED
    return encoded(pixels)


@pytest.fixture(scope="module")
def pictures() -> dict[str, bytes]:
    """By the path that the rows' ids lead to."""
    return {
        at(split, f"{split}{i}"): picture(100 * start + i)
        for start, split in enumerate(("train", "dev", "test"))
        for i in range(COUNT)
    }


@pytest.fixture(scope="module")
def rows(pictures: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> TokenisedRows:
    """The training rows of a prepared dataset, tokenised."""
    folder: Path = tmp_path_factory.mktemp("pictures")
    archive(folder / "images.tar.gz", pictures)
    files = {split: folder / f"{split}.json" for split in ("train", "dev", "test")}
    for split, file in files.items():
        made = [example(f"{split}{i}", SAID, "false" if i % 2 else "true") for i in range(COUNT)]
        file.write_text("\n".join(map(json.dumps, made)))
    source = source_of(
        files={split: str(file) for split, file in files.items()},
        format="nlvr",
        fields={"id": "id", "text": "sentence", "label": "label", "picture": "picture"},
        pictures=str(folder / "images.tar.gz"),
    )
    assert prepare_dataset(source, take_snapshot(source), folder).kept == 3 * COUNT
    regions = PreparedRegions(folder)
    with RowWriter(folder / "tokens.arrow") as writer:
        for row in prepared_rows(folder):
            texts = CONTEXT.tokenizer.encode(row.texts)
            seen = regions.of(row.picture or "")
            writer.add_row(row.id, row.split, texts, row.label, regions=seen)
    return TokenisedRows(folder / "tokens.arrow", "train")


MORE = ("visualbert", "unicoder_vl", "uniter", "vilbert")


@pytest.fixture(
    scope="module",
    params=["lxmert", "vl_bert", *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)],
)
def stage(request, rows: TokenisedRows) -> Stage:
    """A tiny network with a classifier, and all the rows as one batch."""
    seeing = network(request.param, dropout=0.0)
    names = ("false", "true")
    context = replace(CONTEXT, network=seeing.provides, label_names=names, rows=rows)
    head = catalogue.find("heads", "sequence_classification")(context)
    fed = batches({"rows": (rows, 1.0)}, [head], context, COUNT, seed=1)
    scorers = {"sequence_classification": head.attach(seeing)}
    model = StageModel(seeing, scorers)
    made = {"sequence_classification": head}
    return Stage(seeing, made, scorers, model, fed.batch(0), context, rows)


def test_a_batch_has_the_regions_of_each_rows_own_picture(stage: Stage, pictures: dict[str, bytes]):
    batch, most = stage.batch, 4  # the white round three squares
    assert batch[keys.REGION_FEATURES].shape == (COUNT, most, stage.network.region_dim)
    assert batch[keys.REGION_BOXES].shape == (COUNT, most, 4)
    wanted = {}
    for name, data in pictures.items():
        if name.startswith("train"):
            found = regions_of(data)
            wanted[found.features.tobytes()] = found.boxes
    for features, boxes, mask, label in zip(
        batch[keys.REGION_FEATURES],
        batch[keys.REGION_BOXES],
        batch[keys.REGION_MASK].astype(bool),
        batch[keys.LABELS],
        strict=True,
    ):
        assert np.array_equal(boxes[mask], wanted.pop(features[mask].tobytes()))
        assert not features[~mask].any()
        red = features[mask][1:, 7] == 1  # all pixels at red's highest level; the first is white
        assert (red == bool(label)).all()
    assert not wanted


def test_captions_are_documents_with_their_own_picture(rows: TokenisedRows):
    captions = Captions(rows, CONTEXT.tokenizer)
    assert captions.num_tokens == captions.lengths.sum() == COUNT * len(SAID.split())
    assert captions.ids == rows.ids
    context = replace(CONTEXT, network=frozenset({Capability.REGIONS}))
    masked = catalogue.find("objectives", "masked_lm")(context)
    made = batches({"captions": (captions, 1.0)}, [masked], context, COUNT, seed=1)
    batch, members = made.batch(0), made.members(0)
    assert sorted(number for _, number in members) == list(range(COUNT))
    for row, (_, number) in enumerate(members):
        boxes, features = rows.regions(number)
        there = batch[keys.REGION_MASK][row] > 0
        assert np.array_equal(batch[keys.REGION_FEATURES][row][there], features)
        assert np.array_equal(batch[keys.REGION_BOXES][row][there], boxes)
        assert batch[keys.PADDING_MASK][row].sum() == len(SAID.split()) + 2


def test_a_network_that_sees_learns_what_no_text_tells(stage: Stage):
    losses = stage.train(40, rate=2e-3, until=0.2)
    assert np.isfinite(losses).all()
    assert losses[0] > 0.3
    assert losses[-1] < 0.2 * losses[0]


def test_held_out_captions_are_measured_with_their_own_pictures(
    stage: Stage, rows: TokenisedRows, tmp_path: Path
):
    facts = {"labels": ["false", "true"]}
    outputs = dict.fromkeys(("rows.arrow", "documents.arrow"), "")
    for file in (rows.path, pictures_file(rows.path)):
        (tmp_path / file.name.replace("tokens", "rows")).symlink_to(file)
    with TokenWriter(tmp_path / "documents.arrow") as writer:  # all dev texts are in train, too
        writer.add_document("a", "train", np.arange(5), np.array([5]), np.ones(5, bool))
    tokens = Input("tokens", "", tmp_path, outputs, facts)
    assert not len(documents(tokens, CONTEXT.tokenizer, "bert", (), HELDOUT))
    captions = documents(tokens, CONTEXT.tokenizer, "lxmert", (), HELDOUT)
    assert captions.ids == [f"dev{i}" for i in range(COUNT)]
    masked = catalogue.find("objectives", "masked_lm")(CONTEXT)
    scorer = masked.attach(stage.network)
    corpora = {"rows": captions}
    measured = HeldOut(stage.network, "masked_lm", scorer, corpora, CONTEXT.tokenizer, 16)
    feed = measured.feeds["rows"]
    batch = feed.batch(0)
    for row, (_, number) in enumerate(feed.members(0)):
        if number >= 0:
            there = batch[keys.REGION_MASK][row] > 0
            assert np.array_equal(
                batch[keys.REGION_FEATURES][row][there], captions.regions(number)[1]
            )


def test_an_answer_depends_on_the_question_and_on_the_picture(tmp_path: Path):
    """Image question answering is a class of a row: a question, a picture, an answer."""
    asked = {"colour": [12, 7, 30], "side": [12, 9, 15]}  # of each picture
    with RowWriter(tmp_path / "rows.arrow") as writer:
        for i in range(COUNT):
            pixels = np.full((30, 60, 3), 255)
            left = 10 + 30 * (i // 2 % 2)
            pixels[i : i + 15, left : left + 9] = BLUE if i % 2 else RED
            seen = regions_of(encoded(pixels))
            told = {"colour": ("red", "blue")[i % 2], "side": ("left", "right")[i // 2 % 2]}
            for question, ids in asked.items():
                regions, answer = (seen.boxes, seen.features), told[question]
                writer.add_row(f"{question}{i}", "train", [np.array(ids)], answer, regions=regions)
    rows = TokenisedRows(tmp_path / "rows.arrow")
    seeing = network("lxmert", dropout=0.0)
    names = tuple(sorted(set(rows.answers)))
    assert names == ("blue", "left", "red", "right")
    context = replace(CONTEXT, network=seeing.provides, label_names=names, rows=rows)
    head = catalogue.find("heads", "sequence_classification")(context)
    fed = batches({"rows": (rows, 1.0)}, [head], context, 2 * COUNT, seed=1)
    made, scorer = {"sequence_classification": head}, head.attach(seeing)
    model = StageModel(seeing, {"sequence_classification": scorer})
    batch = fed.batch(0)
    stage = Stage(seeing, made, {"sequence_classification": scorer}, model, batch, context, rows)
    stage.train(60, rate=1e-3, until=0.1)
    _, predicted = scorer(batch, seeing(batch))
    logits = keras.ops.convert_to_numpy(predicted[keys.LOGITS])
    assert (logits.argmax(-1) == batch[keys.LABELS]).all()


def test_objectives_beside_a_head_hide_regions_in_their_copy_alone(rows: TokenisedRows):
    context = replace(
        CONTEXT, network=frozenset({Capability.REGIONS}), label_names=("false", "true"), rows=rows
    )
    head = catalogue.find("heads", "sequence_classification")(context)
    names = ("masked_lm", "region_regression", "region_class")
    beside = [catalogue.find("objectives", name)(context) for name in names]
    fed = batches({"rows": (rows, 1.0)}, [head], context, COUNT, seed=1, on_copy=beside)
    batch = fed.batch(0)
    copy = {key: batch[keys.COPY + key] for key in (*keys.SEEN, keys.REGION_LABELS)}
    for key in (keys.REGION_BOXES, keys.REGION_MASK):
        assert np.array_equal(copy[key], batch[key])
    assert np.array_equal(copy[keys.REGION_LABELS], batch[keys.REGION_FEATURES])
    changed = (copy[keys.REGION_FEATURES] != batch[keys.REGION_FEATURES]).any(axis=(1, 2))
    assert changed.sum() > COUNT // 2  # nine of ten of those to predict are hidden or exchanged
    assert keys.REGION_LABELS not in batch
