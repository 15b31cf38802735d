"""Rows with pictures, asked of a registered model: files in, the answers of `predict` out."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora.limits import MAX_PICTURE_BYTES
from corpora.regions import NUM_FEATURES, regions_of
from fourstage.errors import RecipeError
from models import features as keys
from models.evaluation.predict import predict
from models.inputs.rows import seen_regions
from models.interchange.saved_model import export_text_model, load_text_model
from models.protocols import Capability, Context
from models.served.pictures import AT_ONCE, stacked
from models.training.gradient import train
from models.training.stage import Budget, Phase
from tasks.registry.fresh_process import FreshProcess
from tasks.registry.predict import PICTURED, Seeing, asking
from tasks.registry.register_model import register, save_text_model
from tasks.store.ancestry import gather
from tasks.tracking.connection import Tracking
from tasks.tracking.runs import start_lifecycle
from tests.corpora.test_regions import bomb, drawing, encoded
from tests.models.clean_process import CleanProcess
from tests.models.training.memory import NETWORK, WORDS, finetuning, tokenizer
from tests.tasks.lifecycle import Lifecycle
from tests.untraced import untraced

MOST = 5  # regions that are kept; a drawing has more
COUNT = AT_ONCE + 8
CASES = {
    "label": ("visualbert", "sequence_classification", {}, 1),
    "number": ("uniter", "sequence_regression", {"symmetric": True}, 2),
}
SMALL = {**NETWORK, "num_layers": 1, "region_dim": NUM_FEATURES}


def file_of(number: int) -> bytes:
    """PNG and JPEG files of unlike sizes; what is drawn depends on the number."""
    pixels = np.tile(drawing(number), (1 + number % 2, 1 + number % 3, 1))
    return encoded(pixels, ("PNG", "JPEG")[number % 2])


def as_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Rows:
    """Rows of one text or two about a picture; several are about the same one."""

    def __init__(self, kind: str, files: list[bytes]):
        rng = np.random.default_rng(len(files))
        number_of_texts = CASES[kind][-1]
        self.columns = [
            [" ".join(rng.choice(WORDS, rng.integers(1, 40))) for _ in files]
            for _ in range(number_of_texts)
        ]
        self.files = files
        self.answers = [
            ("no", "yes")[i % 2] if kind == "label" else json.dumps(i / 4)
            for i in range(len(files))
        ]
        self.ids = [str(i) for i in range(len(files))]
        self._ids = [tokenizer().encode(column) for column in self.columns]
        self._regions = [regions_of(data, MOST) for data in files]
        self.most_regions, self.has_classes = MOST, False

    def __len__(self) -> int:
        return len(self.files)

    def texts(self, i: int) -> tuple[np.ndarray, ...]:
        return tuple(column[i] for column in self._ids)

    def regions(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        return self._regions[i].boxes, self._regions[i].features

    def asked(self) -> list[dict[str, str]]:
        names = ("text", "text_pair")[: len(self.columns)]
        return [
            {**dict(zip(names, texts, strict=True)), "picture": as_text(data)}
            for *texts, data in zip(*self.columns, self.files, strict=True)
        ]


@pytest.fixture(scope="module")
def rows() -> dict[str, Rows]:
    # One picture alone has fewer regions than are kept.
    few = encoded(np.tile(np.array([200, 30, 30]), (20, 30, 1)))
    return {kind: Rows(kind, [few, *(file_of(i // 2) for i in range(1, COUNT))]) for kind in CASES}


@pytest.fixture(scope="module")
def folders(rows: dict[str, Rows], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A stage, its package and the model that MLflow loads, by kind of answer."""
    made = {}
    for kind, (family, head, settings, number_of_texts) in CASES.items():
        made[kind] = folder = tmp_path_factory.mktemp(kind)
        job = finetuning(
            family=family,
            network=SMALL,
            head=head,
            head_settings=settings,
            rows={"train": rows[kind]},
            phases=[Phase(24)],
            budget=Budget("steps", 12),
            select=None,
        )
        with untraced():
            train(job, folder / "stage")
        tokenizer().save(folder / "tokenizer")
        export_text_model(
            folder / "stage",
            folder / "tokenizer",
            folder / "package",
            pairs=number_of_texts == 2,
            most_regions=MOST,
        )
        save_text_model(folder / "package", folder / "model")
    return made


@pytest.fixture(scope="module")
def expected(rows: dict[str, Rows], folders: dict[str, Path]) -> dict[str, Any]:
    return {kind: predict(folders[kind] / "stage", tokenizer(), rows[kind]) for kind in CASES}


def check(kind: str, found: list[dict[str, Any]], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for each, right in zip(found, expected, strict=True):
        assert each.get("error") is None
        if kind == "label":
            assert each["label"] == right.text
            assert each["probabilities"] == pytest.approx(right.details, abs=1e-5)
        else:
            assert each["number"] == pytest.approx(float(right.text), rel=1e-4)


def test_a_fresh_process_without_this_project_answers_as_the_stage_does(
    rows: dict[str, Rows],
    folders: dict[str, Path],
    expected: dict[str, Any],
    elsewhere: CleanProcess,
    tmp_path: Path,
):
    secret = tmp_path / "secret.png"
    secret.write_bytes(file_of(1))
    name, good = rows["label"].asked()[0]["text"], as_text(file_of(1))
    spoiled = {
        str(secret): "not base64: expected the picture's file, not its path",
        f"file://{secret}": "not base64: expected the picture's file, not its path",
        " ": "a picture that is missing",
        as_text(file_of(1)[:-40]): "not a whole PNG or JPEG picture",
        as_text(b"no picture"): "not a whole PNG or JPEG picture",
        as_text(bomb(100_000, 100_000)): "a picture of too many pixels",
        "A" * (2 * MAX_PICTURE_BYTES): f"a picture of more than {MAX_PICTURE_BYTES:,} bytes",
    }
    asked = {kind: each.asked() for kind, each in rows.items()}
    wrapped = "\n".join(good[i : i + 76] for i in range(0, len(good), 76))
    more = [{"text": name, "picture": each} for each in (good, wrapped, *spoiled)]
    labels, more, nothing, not_single = elsewhere.predicts(
        folders["label"] / "model", asked["label"], more, [], asked["number"]
    )
    numbers, not_pairs = elsewhere.predicts(
        folders["number"] / "model", asked["number"], asked["label"]
    )
    check("label", labels, expected["label"])
    check("number", numbers, expected["number"])
    assert nothing == []
    assert more[0] == more[1]
    assert more[0]["label"] in ("no", "yes")
    assert [each["error"] for each in more[2:]] == list(spoiled.values())
    assert {each["label"] for each in more[2:]} == {None}
    assert [not_single, not_pairs] == [
        "expected text and picture alone in each row",
        "expected text, text_pair and picture in each row",
    ]
    required = (folders["label"] / "model" / "requirements.txt").read_text("utf-8")
    assert {"pillow", "scipy"} < {line.split("==")[0] for line in required.splitlines()}


@pytest.mark.parametrize("kind", CASES)
def test_the_package_answers_as_the_stage_does(
    rows: dict[str, Rows], folders: dict[str, Path], expected: dict[str, Any], kind: str
):
    asked = rows[kind]
    seen = [asked.regions(i) for i in range(COUNT)]
    found = load_text_model(folders[kind] / "package")(*asked.columns, seen)
    if kind == "label":
        wanted = [list(answer.details.values()) for answer in expected[kind]]
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    else:
        wanted = [float(answer.text) for answer in expected[kind]]
        np.testing.assert_allclose(found[:, 0], wanted, rtol=1e-4)


def test_answers_depend_on_the_picture(rows: dict[str, Rows], folders: dict[str, Path]):
    model = load_text_model(folders["label"] / "package")
    seen = [rows["label"].regions(i) for i in (0, 1, 1)]
    values = model([rows["label"].columns[0][0]] * 3, seen)
    gaps = abs(values[:, None] - values[None]).max(axis=-1)
    assert gaps[0, 1] > 1e-6  # barely trained, its answers are all nearly alike
    assert gaps[0, 1] > 10 * gaps[1, 2]


def test_regions_are_stacked_as_in_training(rows: dict[str, Rows]):
    some = np.array([1, 0, 4])
    context = Context(tokenizer(), 24, network=frozenset({Capability.REGIONS}))
    wanted = seen_regions(rows["label"], some, context)
    found = dict(zip(keys.SEEN, stacked([rows["label"].regions(i) for i in some]), strict=True))
    for key, value in wanted.items():
        assert np.array_equal(found[key], value)
        assert found[key].dtype == value.dtype


@pytest.mark.slow
def test_a_model_that_sees_passes_the_smoke_test(folders: dict[str, Path]):
    assert FreshProcess().ask(folders["number"] / "model")["answers"] == 2


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    """A folder of pictures beside one that is outside of it."""
    folder = tmp_path / "gallery"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "1.png").write_bytes(file_of(0))
    (folder / "empty.png").write_bytes(b"")
    (tmp_path / "outside.png").write_bytes(file_of(0))
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    os.mkfifo(folder / "pipe.png")
    with (folder / "large.png").open("wb") as sparse:
        sparse.truncate(MAX_PICTURE_BYTES + 1)
    return folder


def check_alike(one: dict[str, Any], other: dict[str, Any]) -> None:
    """The same answer in two batches, where products may be added up in another order."""
    assert one["label"] == other["label"]
    assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-6)


def test_predict_reads_pictures_of_their_folder_alone(
    tracking: Tracking,
    home: Path,
    folders: dict[str, Path],
    rows: dict[str, Rows],
    gallery: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    lifecycle = Lifecycle(home, 1, folders["label"] / "package")
    run = start_lifecycle(tracking, "demo")
    register(tracking, gather(lifecycle.store.root, lifecycle["package"]), name="see", run_id=run)
    text = rows["label"].columns[0][0]
    outside = "a picture outside of the folder of the pictures"
    faults = {
        "a/2.png": "a picture that is missing",
        "a": "a picture that is missing",
        "": "a picture that is missing",
        "pipe.png": "a picture that is missing",
        "empty.png": "an empty file in place of a picture",
        "large.png": f"a picture of more than {MAX_PICTURE_BYTES:,} bytes",
        "../outside.png": outside,
        "link.png": outside,
        str(gallery.parent / "outside.png"): outside,
        "x" * 300: "a picture that can't be read: File name too long",
    }
    same = ["a/1.png", "./a/1.png", str(gallery / "a" / "1.png")]
    with asking("see/1", pictures=gallery) as (_, ask):
        found = ask([[text, name] for name in (*same, *faults)])
        lines = ask([[f"{text}\ta/1.png"], [" "], ["\ta/1.png"]])
        with pytest.raises(RecipeError, match=r"a text and the path of a picture.*got 1 parts"):
            ask([[text]])
        with pytest.raises(RecipeError, match="got 3 parts"):
            ask([[text, "more", "a/1.png"]])
    assert found[0] == found[1] == found[2]
    check_alike(lines[0], found[0])
    with_regions = load_text_model(folders["label"] / "package")
    seen = regions_of(file_of(0), MOST)
    (wanted,) = with_regions([text], [(seen.boxes, seen.features)])
    assert list(found[0]["probabilities"].values()) == pytest.approx(wanted.tolist(), abs=1e-5)
    assert [each["error"] for each in found[len(same) :]] == list(faults.values())
    assert [each.get("error") for each in lines[1:]] == ["empty text", "empty text"]
    monkeypatch.chdir(gallery)
    with asking("see/1") as (_, ask):
        (alone,) = ask([[text, "a/1.png"]])
    check_alike(alone, found[0])


def test_few_pictures_are_in_memory_at_a_time(gallery: Path):
    asked: list[int] = []

    def answer(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
        asked.append(len(rows))
        return [{"label": row["text"], "score": 1.0} for row in rows]

    texts = [f"text {i}" for i in range(2 * PICTURED + 3)]
    found = Seeing(answer, 1, gallery, "see/1").ask([[text, "a/1.png"] for text in texts])
    assert [each["label"] for each in found] == texts
    assert asked == [PICTURED, PICTURED, 3]
