"""Published region features: a table in base64, NumPy archives, Parquet; hostile ones, too."""

from __future__ import annotations

import base64
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from corpora.detected import detected
from corpora.pictures import PreparedRegions
from corpora.regions import NoRegionsError
from data_contracts.sources import Pictures
from fourstage.errors import ContractViolation, RecipeError
from tests.corpora.conftest import Prepare, Prepared, source_of
from tests.corpora.test_regions import drawing, encoded

WIDTH, HEIGHT, DIM = 640, 480, 5
FIELDS = {"id": "id", "text": "text", "label": "label", "picture": "image"}


def boxes_of(picture: int, count: int = 3) -> np.ndarray:
    corners = np.sort(np.random.default_rng(picture).random((count, 2, 2)), axis=1)
    return (corners.reshape(count, 4) * ([WIDTH, HEIGHT] * 2)).astype(np.float32)


def features_of(picture: int, count: int = 3) -> np.ndarray:
    return np.random.default_rng(100 + picture).normal(size=(count, DIM)).astype(np.float32)


def coded(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def line(picture: int | str, **instead: Any) -> str:
    """A line of the table; `instead` replaces cells."""
    seed = picture if isinstance(picture, int) else 0
    count = instead.get("num_boxes", 3)
    count = count if isinstance(count, int) and 0 <= count < 99 else 3
    cells = {"image_id": picture, "image_w": WIDTH, "image_h": HEIGHT, "num_boxes": count}
    cells |= {"boxes": coded(boxes_of(seed, count)), "features": coded(features_of(seed, count))}
    return "\t".join(map(str, (cells | instead).values()))


@pytest.fixture
def pictured(tmp_path: Path, dataset: Prepare):
    """Prepares a row for each named picture, with files of features that are there already."""

    def prepare(files: Path, pictures: list[Any], **settings: Any) -> Prepared:
        for split, some in {"train": pictures, "test": ["test"]}.items():
            rows = [
                {"id": f"{split} {image}", "text": f"About {image}.", "label": "a", "image": image}
                for image in some
            ]
            (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        named = {"files": [str(files)], "region_dim": DIM} | settings
        train, test = (tmp_path / f"{split}.jsonl" for split in ("train", "test"))
        return dataset(train, test, fields=FIELDS, pictures=named, contract="answers")

    return prepare


def check(prepared: Prepared, pictures: list[int], count: int = 3) -> None:
    regions = PreparedRegions(prepared.folder)
    rows = {row["id"]: row["picture"] for row in prepared.table()}
    for picture in pictures:
        boxes, features = regions.of(rows[f"train {picture}"])
        wanted = boxes_of(picture) / np.array([WIDTH, HEIGHT] * 2, np.float32)
        np.testing.assert_allclose(boxes, wanted[:count], atol=1e-6)
        assert np.array_equal(features, features_of(picture)[:count])


def test_the_table_of_bottom_up_attention_is_read_in_both_forms(tmp_path: Path, pictured):
    by_lxmert = ["2", HEIGHT, WIDTH, "ids", "conf", "ids", "conf", 3]
    by_lxmert += [coded(boxes_of(2)), coded(features_of(2))]
    table = tmp_path / "features.tsv"
    lines = [line(1), "\t".join(map(str, by_lxmert)), line("test"), line(77, features="never read")]
    table.write_text("\n".join(lines) + "\n")
    prepared = pictured(table, [1, 2, "lost"])
    check(prepared, [1, 2])
    assert prepared.counts.quarantined == {"a picture that is missing": 1}
    assert prepared.rejected()[0]["id"] == "train lost"
    told = prepared.counts.details["pictures"]
    assert (told["read"], told["not_named"], told["regions"]) == (4, 1, 9)
    few = pictured(table, [1, 2], most_regions=2)
    check(few, [1, 2], count=2)
    assert few.counts.details["pictures"]["with_more_regions"] == 3


OBJECTS, ATTRIBUTES = 1600, 400
TELLS = {"object_classes": OBJECTS, "attribute_classes": ATTRIBUTES}


def classes_of(picture: int, count: int = 3) -> dict[str, np.ndarray]:
    """What LXMERT's files tell of the regions, by its names."""
    rng = np.random.default_rng(200 + picture)
    sure = rng.random((2, count)).astype(np.float32)
    return {
        "objects_id": rng.integers(0, OBJECTS, count),
        "objects_conf": sure[0],
        "attrs_id": rng.integers(0, ATTRIBUTES, count),
        "attrs_conf": sure[1],
    }


def told_line(picture: int | str, **instead: str) -> str:
    """A line of ten columns; `instead` replaces those of classes."""
    seed = picture if isinstance(picture, int) else 0
    told = {name: coded(array) for name, array in classes_of(seed).items()} | instead
    cells = [picture, HEIGHT, WIDTH, *told.values(), 3]
    return "\t".join(map(str, [*cells, coded(boxes_of(seed)), coded(features_of(seed))]))


def check_classes(prepared: Prepared, pictures: list[int], kinds: int = 2, count: int = 3) -> None:
    regions = PreparedRegions(prepared.folder)
    rows = {row["id"]: row["picture"] for row in prepared.table()}
    for picture in pictures:
        classes, sure = regions.classes_of(rows[f"train {picture}"])
        told = classes_of(picture)
        assert (classes.dtype, sure.dtype) == (np.int32, np.float32)
        assert classes.shape == sure.shape == (count, 2)
        for column, name in enumerate(("objects", "attrs")):
            there = column < kinds
            assert np.array_equal(classes[:, column], told[f"{name}_id"][:count] * there)
            assert np.array_equal(sure[:, column], told[f"{name}_conf"][:count] * there)


def test_classes_of_a_detector_are_read_where_the_source_says_how_many(tmp_path: Path, pictured):
    table = tmp_path / "f.tsv"
    table.write_text("\n".join([told_line(1), told_line(2), line(3), told_line("test")]))
    prepared = pictured(table, [1, 2, 3], **TELLS)
    check(prepared, [1, 2])
    check_classes(prepared, [1, 2])
    assert prepared.counts.quarantined == {"a line without classes: one of six columns": 1}
    objects = pictured(table, [1, 2], object_classes=OBJECTS, most_regions=2)
    check_classes(objects, [1, 2], kinds=1, count=2)
    silent = pictured(table, [1, 2, 3])
    check(silent, [1, 2, 3])
    regions = PreparedRegions(silent.folder)
    assert all(regions.classes_of(str(n))[0].shape == (0, 2) for n in (1, 2, 3))

    (tmp_path / "npz").mkdir()
    whole = {"image_w": WIDTH, "image_h": HEIGHT}
    for name, seed in {"1": 1, "2": 2, "test": 0}.items():
        own = {"boxes": boxes_of(seed), "features": features_of(seed)} | classes_of(seed)
        np.savez(tmp_path / "npz" / f"{name}.npz", **whole, **own)
    np.savez(tmp_path / "npz" / "3.npz", boxes=boxes_of(3), features=features_of(3), **whole)
    prepared = pictured(tmp_path / "npz", [1, 2, 3], **TELLS)
    check_classes(prepared, [1, 2])
    assert prepared.counts.quarantined == {"an .npz file that lacks an array": 1}
    check(pictured(tmp_path / "npz", [1, 2, 3]), [1, 2, 3])

    ids = {"1": 1, "2": 2, "test": 0}
    columns: dict[str, list] = {"image_id": list(ids), "image_w": [WIDTH] * 3}
    columns |= {"image_h": [HEIGHT] * 3, "boxes": [boxes_of(n).ravel() for n in ids.values()]}
    columns["features"] = [features_of(n).ravel() for n in ids.values()]
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "without.parquet")
    for name in classes_of(0):
        columns[name] = [classes_of(n)[name] for n in ids.values()]
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "f.parquet")
    check_classes(pictured(tmp_path / "f.parquet", [1, 2], **TELLS), [1, 2])
    check(pictured(tmp_path / "without.parquet", [1, 2]), [1, 2])
    with pytest.raises(ContractViolation, match=r"without.parquet: missing columns: .*objects_id"):
        pictured(tmp_path / "without.parquet", [1, 2], **TELLS)


def of_lines(**instead: np.ndarray | str) -> dict[str, str]:
    return {n: each if isinstance(each, str) else coded(each) for n, each in instead.items()}


FEW = "classes or confidences of another number than the boxes"
NONE_OF_THESE = "a class that is none of the source's"
NO_SHARE = "a confidence that is not from 0 to 1"


@pytest.mark.parametrize(
    ("instead", "reason", "detail"),
    [
        (of_lines(objects_id=np.array([0, 1, OBJECTS])), NONE_OF_THESE, "object_classes is 1600"),
        (
            of_lines(attrs_id=np.array([5, ATTRIBUTES, 5])),
            NONE_OF_THESE,
            "attribute_classes is 400",
        ),
        (of_lines(attrs_id=np.array([5, -1, 5])), NONE_OF_THESE, "-1 to 5"),
        (of_lines(objects_id=np.array([0, 1])), FEW, ""),
        (of_lines(attrs_conf=np.ones(4, np.float32)), FEW, ""),
        (of_lines(objects_id=np.array([0, 1, 2], np.int32)), "classes that are not int64", ""),
        (of_lines(objects_id="*"), "classes that are not int64 in base64", ""),
        (of_lines(objects_conf="AAA="), "confidences that are not float32 in base64", ""),
        (of_lines(objects_conf=np.array([0, 1, 1.1], np.float32)), NO_SHARE, ""),
        (of_lines(attrs_conf=np.array([0, np.nan, 1], np.float32)), NO_SHARE, ""),
    ],
)
def test_classes_that_cannot_be_are_set_aside_with_their_picture(
    tmp_path: Path, pictured, instead: dict[str, str], reason: str, detail: str
):
    lines = [told_line(1), told_line("bad", **instead), told_line("test")]
    (tmp_path / "f.tsv").write_text("\n".join(lines))
    prepared = pictured(tmp_path / "f.tsv", [1, "bad"], **TELLS)
    check_classes(prepared, [1])
    (rejected,) = prepared.rejected()
    assert rejected["id"] == "train bad"
    assert rejected["reason"].startswith(reason)
    assert rejected["detail"].startswith("f.tsv:2")
    assert detail in rejected["detail"]


def test_classes_that_are_no_whole_numbers_are_none(tmp_path: Path):
    wanted = Pictures(files=("f.npz",), region_dim=DIM, object_classes=4)
    place = boxes_of(1), features_of(1), WIDTH, HEIGHT, wanted
    with pytest.raises(NoRegionsError, match="classes that are not whole numbers"):
        detected(*place, [np.array([0.5, 1, 2]), np.ones(3)])
    found = detected(*place, [np.array([3, 0, 1], np.uint8), np.array([1.0005, 0, 1])])
    assert found.classes[:, 0].tolist() == [3, 0, 1]
    assert found.confidences[:, 0].tolist() == [1, 0, 1]


def test_only_a_detector_tells_classes_and_attributes_only_of_objects():
    fields = {**FIELDS, "picture": "p"}
    for told, expected in (
        ({"object_classes": 9}, "object_classes: only with region_dim"),
        ({"region_dim": 5, "attribute_classes": 9}, "attribute_classes: only beside object"),
        ({"region_dim": 5, "object_classes": 1}, "object_classes"),
    ):
        with pytest.raises(RecipeError, match=expected):
            source_of(files="x.jsonl", fields=fields, pictures={"files": "y.tsv", **told})


def test_numpy_archives_are_read_from_a_folder_and_from_an_archive(tmp_path: Path, pictured):
    folder = tmp_path / "npz" / "val"
    folder.mkdir(parents=True)
    size = {"image_w": WIDTH, "image_h": np.float64(HEIGHT)}
    np.savez(
        folder / "1.npz", boxes=boxes_of(1), features=np.asfortranarray(features_of(1)), **size
    )
    other = {"info": np.array({"objects": "never unpickled"}, dtype=object), "num_bbox": 3}
    np.savez_compressed(folder / "2.npz", bbox=boxes_of(2), x=features_of(2), **size, **other)
    np.savez(folder / "test.npz", boxes=boxes_of(0), features=features_of(0), **size)
    check(pictured(tmp_path / "npz", [1, 2]), [1, 2])
    with tarfile.open(tmp_path / "npz.tar.gz", "w:gz") as packed:
        packed.add(tmp_path / "npz", "npz")
    check(pictured(tmp_path / "npz.tar.gz", [1, 2]), [1, 2])


@pytest.mark.parametrize("nested", [False, True])
def test_parquet_is_read_flat_and_nested(tmp_path: Path, pictured, nested: bool):
    def table(ids: list) -> pyarrow.Table:
        arrays = [(boxes_of(n), features_of(n)) for n in range(1, len(ids) + 1)]
        lists = [[a.tolist() if nested else a.ravel().tolist() for a in each] for each in arrays]
        columns = {"image_id": ids, "image_w": [WIDTH] * len(ids), "image_h": [HEIGHT] * len(ids)}
        columns |= {
            name: [each[n] for each in lists] for n, name in ((0, "boxes"), (1, "features"))
        }
        return pyarrow.table(columns)

    numbered = table([1, 2, 3])
    ids = pyarrow.array(["1", "2", "3"], pyarrow.large_string())  # as Polars writes text
    written = numbered if nested else numbered.set_column(0, "image_id", ids)
    pyarrow.parquet.write_table(written, tmp_path / "f.parquet")
    prepared = pictured(tmp_path / "f.parquet", [1, 2, 4])
    check(prepared, [1, 2])
    assert prepared.counts.quarantined == {"a picture that is missing": 2}  # 4 and the test row's
    odd = numbered["features"].to_pylist()
    odd[1] = odd[1][:-1]  # a row of features less, or a number less
    broken = table([1, None, 3]).set_column(4, "features", pyarrow.array(odd))
    broken = broken.set_column(0, "image_id", pyarrow.array([1, 2, None]))
    pyarrow.parquet.write_table(broken, tmp_path / "g.parquet")
    prepared = pictured(tmp_path / "g.parquet", [1, 2])
    check(prepared, [1])
    faults = prepared.counts.details["pictures"]["without_regions"]
    assert sum(faults.values()) == 2
    assert faults["a row with an empty cell"] == 1
    wrong = numbered.drop_columns("boxes")
    pyarrow.parquet.write_table(wrong, tmp_path / "h.parquet")
    with pytest.raises(ContractViolation, match=r"h.parquet: missing columns: .*boxes.*; expected"):
        pictured(tmp_path / "h.parquet", [1])
    text = numbered.set_column(3, "boxes", pyarrow.array(["a", "b", "c"]))
    pyarrow.parquet.write_table(text, tmp_path / "i.parquet")
    with pytest.raises(ContractViolation, match=r"column 'boxes': expected .* got string"):
        pictured(tmp_path / "i.parquet", [1])


NAN = features_of(0)
NAN[1, 2] = np.nan
NOT_WHOLE = "a size or a number of boxes that is not a whole number"
NOT_THERE = "boxes or features of another number than num_boxes"
NOT_CODED = "boxes or features that are not float32 in base64"


@pytest.mark.parametrize(
    ("instead", "reason"),
    [
        ({"features": coded(NAN)}, "boxes or features that are not finite numbers"),
        ({"features": coded(np.full((3, DIM), np.inf, np.float32))}, "boxes or features that are"),
        ({"features": "*" + coded(features_of(0))}, NOT_CODED),
        ({"features": coded(features_of(0))[:-5]}, NOT_CODED),
        ({"features": coded(features_of(0))[:-4]}, NOT_CODED),  # base64, but half a float
        ({"boxes": ""}, NOT_THERE),
        ({"num_boxes": 0}, "a picture without regions"),
        ({"num_boxes": 0, "features": coded(features_of(0))}, NOT_THERE),
        ({"num_boxes": 2, "boxes": coded(boxes_of(0))}, NOT_THERE),
        ({"num_boxes": 2, "features": coded(features_of(0)[:, :3])}, NOT_THERE),
        ({"num_boxes": 10**8}, NOT_THERE),
        ({"num_boxes": "9" * 5000}, NOT_WHOLE),
        ({"num_boxes": -3}, NOT_WHOLE),
        ({"image_w": "6e2"}, NOT_WHOLE),
        ({"image_w": 0}, "a picture without a size"),
        ({"image_h": 100}, "a box outside its picture"),
        ({"boxes": coded(boxes_of(0)[:, ::-1])}, "a box outside its picture"),
        ({"features": coded(np.zeros((3, DIM + 1), np.float32))}, "features of another width than"),
        ({"features": "a\tb"}, "a picture that is missing"),  # its line has seven columns
    ],
)
def test_a_broken_line_is_set_aside_with_the_rows_that_name_it(
    tmp_path: Path, pictured, instead: dict[str, Any], reason: str
):
    (tmp_path / "f.tsv").write_text("\n".join([line(1), line("bad", **instead), line("test")]))
    prepared = pictured(tmp_path / "f.tsv", [1, "bad"])
    check(prepared, [1])
    (rejected,) = prepared.rejected()
    assert rejected["id"] == "train bad"
    assert rejected["reason"].startswith(reason)
    faults = prepared.counts.details["pictures"]["without_regions"]
    assert sum(faults.values()) == 1
    if "missing" not in reason:
        assert rejected["detail"].startswith("f.tsv:2")


def test_ids_that_are_there_twice_and_lines_that_are_cut(tmp_path: Path, pictured):
    lines = [line(1), line(2), line(2), line("007"), b"\xff\xfe\0".decode("latin-1"), line("test")]
    (tmp_path / "f.tsv").write_text("\r\n".join([*lines, line(5)[:60]]))
    prepared = pictured(tmp_path / "f.tsv", [1, 2, 7, "007", 5])
    assert prepared.counts.quarantined == {
        "a name that several pictures have": 1,
        "a picture that is missing": 2,  # 7 is not 007; 5 is cut
    }
    faults = prepared.counts.details["pictures"]["without_regions"]
    assert faults == {"a line with another number of columns than 6 or 10": 2}


def npz(method: int = zipfile.ZIP_DEFLATED, **arrays: bytes) -> bytes:
    """A NumPy archive of arrays that are given as files."""
    whole = {"boxes": boxes_of(0), "features": features_of(0), "image_w": WIDTH, "image_h": HEIGHT}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, array in whole.items():
            file = io.BytesIO()
            np.save(file, array)
            archive.writestr(f"{name}.npy", arrays.get(name, file.getvalue()))
    return stream.getvalue()


def npy(shape: str, kind: str = "<f4", data: bytes = b"") -> bytes:
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


@pytest.mark.parametrize(
    ("features", "reason"),
    [
        (npy(f"({10**12}, 5)"), "an array that is not of numbers, or not as many as it says"),
        (npy("(3, 5)", "|O", b"cos\nsystem\n."), "an array that is not of numbers"),
        (npy("(-3, -5)", data=bytes(60)), "not a whole .npz file of numbers"),
        (npy("(3, 5)", data=bytes(60))[:20], "not a whole .npz file of numbers"),
        (npy("(3, __import__)", data=bytes(60)), "not a whole .npz file of numbers"),
        (npy("(" * 2000 + "3", data=bytes(60)), "not a whole .npz file of numbers"),
        (npy("(15,)", data=bytes(60)), "boxes, features or a size of another shape"),
        (npy("(2, 5)", data=bytes(40)), "boxes that do not fit the features"),
        (npy("(3, 5)", "<f8", np.full(15, 1e300).tobytes()), "boxes or features that are not fin"),
        (bytes(33 << 20), "not a whole .npz file of numbers"),
    ],
)
def test_hostile_numpy_archives_are_refused(tmp_path: Path, pictured, features: bytes, reason: str):
    folder = tmp_path / "npz"
    folder.mkdir()
    (folder / "bad.npz").write_bytes(npz(features=features))
    (folder / "cut.npz").write_bytes(npz()[:-30])
    for name in ("whole", "test"):
        (folder / f"{name}.npz").write_bytes(npz())
    prepared = pictured(folder, ["bad", "cut", "whole"])
    rejected = {each["id"]: each["reason"] for each in prepared.rejected()}
    assert rejected["train bad"].startswith(reason)
    assert rejected["train cut"] == "not a whole .npz file of numbers"
    assert len(rejected) == 2


def test_numpy_archives_of_another_compression_are_refused_because_it_has_no_bound(
    tmp_path: Path, pictured
):
    folder = tmp_path / "npz"
    folder.mkdir()
    for name, method in (("1", zipfile.ZIP_BZIP2), ("2", zipfile.ZIP_LZMA)):
        (folder / f"{name}.npz").write_bytes(npz(method))
    for name, method in (("3", zipfile.ZIP_STORED), ("test", zipfile.ZIP_DEFLATED)):
        (folder / f"{name}.npz").write_bytes(npz(method))
    prepared = pictured(folder, [1, 2, 3])
    refused = {"an .npz array not packed with deflate; pack it again": 2}
    assert prepared.counts.quarantined == refused


@pytest.mark.parametrize("side", [0, -1, 10**9, 10**300])
def test_a_size_that_no_picture_has_is_refused(side: int):
    wanted = Pictures(files=("features.npz",), region_dim=DIM)
    for width, height in ((side, HEIGHT), (WIDTH, side)):
        with pytest.raises(NoRegionsError, match="without a size"):
            detected(boxes_of(1), features_of(1), width, height, wanted)


def test_pictures_and_features_are_not_taken_for_each_other(tmp_path: Path, pictured):
    (tmp_path / "f.tsv").write_text(line(1))
    (tmp_path / "a.png").write_bytes(encoded(drawing(1)))
    for name, given in (("f.tsv", {"region_dim": None}), ("a.png", {})):
        with pytest.raises(ContractViolation, match=r"files have no picture; expected \.png"):
            pictured(tmp_path / name, [1], **given)
    (tmp_path / "both").mkdir()
    for name in ("f.tsv", "a.png"):
        (tmp_path / name).rename(tmp_path / "both" / name)
    check(pictured(tmp_path / "both", [1, "a.png"]), [1])
    seen = pictured(tmp_path / "both", [1, "a.png"], region_dim=None)
    assert [row["picture"] for row in seen.table()] == ["both/a.png"]
    fields = {**FIELDS, "picture": "p"}
    for dim in (0, 10**6, "2048"):
        with pytest.raises(RecipeError, match="region_dim"):
            source_of(files="x.jsonl", fields=fields, pictures={"files": "y", "region_dim": dim})


def test_a_table_is_never_held_in_memory(tmp_path: Path, pictured):
    import tracemalloc

    with open(tmp_path / "f.tsv", "w") as file:
        for picture in ["test", *range(1, 300)]:
            wide = np.full((36, 512), picture if isinstance(picture, int) else 0, np.float32)
            boxes = np.tile(boxes_of(0), (12, 1))
            file.write(line(picture, num_boxes=36, boxes=coded(boxes), features=coded(wide)) + "\n")
    tracemalloc.start()
    prepared = pictured(tmp_path / "f.tsv", [1, 2, 299], region_dim=512)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert prepared.counts.kept == 4
    assert (tmp_path / "f.tsv").stat().st_size > 28_000_000
    assert most < 12_000_000
    assert (prepared.folder / "regions.arrow").stat().st_size < 400_000  # what no row names isn't
