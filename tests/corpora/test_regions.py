"""Regions of drawn pictures, against a flood fill and SciPy's statistics; broken pictures."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from corpora.pictures import PreparedRegions, bytes_of, read_pictures
from corpora.preparation import prepare_dataset
from corpora.prepared import prepared_rows
from corpora.regions import NUM_FEATURES, NoRegionsError, drawn, regions_of
from corpora.snapshot import take_snapshot
from data_contracts.sources import load_source, parse_source


def encoded(pixels: np.ndarray, form: str = "PNG", **more) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(stream, form, **more)
    return stream.getvalue()


def drawing(seed: int) -> np.ndarray:
    """(40, 60, 3) random rectangles and discs of strong colours."""
    rng = np.random.default_rng(seed)
    pixels = np.full((40, 60, 3), 211)
    down, across = np.mgrid[:40, :60]
    for _ in range(12):
        y, x, size = rng.integers(0, 40), rng.integers(0, 60), rng.integers(1, 9)
        disc = (down - y) ** 2 + (across - x) ** 2 <= size**2
        square = (abs(down - y) <= size) & (abs(across - x) <= size)
        pixels[disc if rng.integers(2) else square] = rng.choice([0, 120, 255], 3)
    return pixels


def flooded(pixels: np.ndarray) -> Iterator[set[tuple[int, int]]]:
    """Every component, by flood fill from each pixel not seen yet."""
    levels = pixels // 32
    seen: set[tuple[int, int]] = set()
    for start in np.ndindex(levels.shape[:2]):
        if start in seen:
            continue
        part, pending = {start}, [start]
        while pending:
            y, x = pending.pop()
            for near in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                inside = 0 <= near[0] < levels.shape[0] and 0 <= near[1] < levels.shape[1]
                if inside and near not in part and (levels[near] == levels[y, x]).all():
                    part.add(near)
                    pending.append(near)
        seen |= part
        yield part


@pytest.mark.parametrize("seed", range(6))
def test_regions_are_those_of_a_flood_fill(seed: int):
    pixels = drawing(seed)
    wanted = []
    for part in flooded(pixels):
        thick = any({(y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)} <= part for y, x in part)
        if thick and len(part) >= 9:
            wanted.append(part)
    wanted.sort(key=lambda part: -len(part))  # stable: first pixels in order
    found = regions_of(encoded(pixels), 1000)
    assert found.found == len(wanted) == len(found.boxes)
    for part, box, features in zip(wanted, found.boxes, found.features, strict=True):
        y, x = np.array(sorted(part)).T
        left, top, right, bottom = x.min(), y.min(), x.max() + 1, y.max() + 1
        np.testing.assert_allclose(box * [60, 40, 60, 40], [left, top, right, bottom], atol=1e-5)
        wide, tall = right - left, bottom - top
        colours = pixels[y, x] // 32
        shares = [(colours[:, c] == level).mean() for c in range(3) for level in range(8)]
        shape = [
            *((x / wide).std(), (y / tall).std(), stats.pearsonr(x, y).statistic),
            *(stats.skew(x), stats.skew(y)),
            *(stats.kurtosis(values, fisher=False) / 3 for values in (x, y)),
            len(part) / (wide * tall),
        ]
        numbers = [*box, wide / 60, tall / 40, len(part) / 2400]
        np.testing.assert_allclose(features, [*shares, *shape, *numbers], atol=1e-5)


def test_the_largest_regions_are_kept_and_the_others_counted():
    every = regions_of(encoded(drawing(0)), 1000)
    few = regions_of(encoded(drawing(0)), 2)
    assert few.found == every.found > 2
    assert np.array_equal(few.features, every.features[:2])
    assert few.features.shape == (2, NUM_FEATURES)
    assert few.features.dtype == few.boxes.dtype == np.float32


def test_grey_palettes_and_alpha_show_what_a_page_does():
    pixels = np.full((20, 20, 3), 255)
    pixels[5:15, 5:12] = 0
    plain = regions_of(encoded(pixels))
    clear = np.zeros((20, 20, 4))  # black, but transparent: the page's white
    clear[5:15, 5:12, 3] = 255
    deep = Image.fromarray((pixels[..., 0] * 257).astype(np.uint16))
    stream = io.BytesIO()
    deep.save(stream, "PNG")
    palette = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).convert("P").save(palette, "PNG")
    others = [encoded(pixels[..., 0]), encoded(clear), stream.getvalue(), palette.getvalue()]
    for other in [*others, encoded(pixels, "JPEG", quality=100)]:
        assert np.array_equal(regions_of(other).boxes, plain.boxes)


def test_a_large_picture_is_shrunk_first():
    pixels = np.full((300, 1600, 3), 255)
    pixels[100:200, 400:800] = 0
    found = regions_of(encoded(pixels))
    assert found.boxes[1].tolist() == pytest.approx([0.25, 1 / 3, 0.5, 2 / 3])
    assert (found.width, found.height) == (1600, 300)


def bomb(width: int, height: int) -> bytes:
    """A PNG of 60 bytes that claims a size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(9000, 9000), (100_000, 100_000), (2**31 - 1, 2**31 - 1)])
def test_a_claimed_size_is_refused_before_decoding(size: tuple[int, int]):
    with pytest.raises(NoRegionsError, match="a picture of too many pixels"):
        regions_of(bomb(*size))


def test_a_picture_without_a_region_says_so():
    noise = np.random.default_rng(1).choice([0, 255], (16, 16, 3))
    noise[::2, ::2] = [0, 120, 0]
    noise[1::2, 1::2] = [120, 0, 0]
    for pixels in (noise, np.zeros((2, 2, 3))):
        with pytest.raises(NoRegionsError, match="a picture without regions"):
            regions_of(encoded(pixels))


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF"])
def test_damaged_pictures_are_refused_and_nothing_else_happens(form: str):
    whole = encoded(drawing(3), form)
    rng = np.random.default_rng(0)
    tried = [whole[:cut] for cut in range(0, len(whole) - 12, max(1, len(whole) // 60))]
    said: list[str] = []
    for damaged in tried:  # truncated: no regions, unless only what follows the pixels is missing
        try:
            found = regions_of(damaged)
        except NoRegionsError as error:
            said.append(error.reason)
        else:
            assert np.array_equal(found.features, regions_of(whole).features)
    assert set(said) == {"not a whole PNG or JPEG picture"}
    assert len(said) > 0.8 * len(tried)
    for _ in range(200):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), 3):
            data[place] = rng.integers(256)
        try:
            regions_of(bytes(data))
        except NoRegionsError as error:
            said.append(error.reason)
    assert all(reason.startswith(("a picture", "not a whole")) for reason in said)


def test_boxes_are_drawn_round_their_regions():
    pixels = np.full((20, 40, 3), 255, np.uint8)
    pixels[5:12, 10:22] = (0, 0, 200)
    data = encoded(pixels)
    with Image.open(io.BytesIO(drawn(data, regions_of(data).boxes[1:]))) as picture:
        found = np.asarray(picture)
    magenta = (found == (255, 0, 255)).all(axis=2)
    expected = np.zeros((20, 40), bool)
    expected[5:12, 10:22] = True
    expected[6:11, 11:21] = False
    assert np.array_equal(magenta, expected)
    assert np.array_equal(found[~magenta], pixels[~magenta])


def test_the_embedded_pictures_have_a_region_for_each_square(tmp_path: Path):
    source = load_source("smoke_captions")
    snapshot = take_snapshot(source)
    counts = prepare_dataset(source, snapshot, tmp_path)
    assert counts.kept == 2 * 60
    prepared, looks = PreparedRegions(tmp_path), set()
    rows = list(prepared_rows(tmp_path))
    for row in rows:
        boxes, features = prepared.of(row.picture or "")
        assert 2 <= len(boxes) <= 4  # the page round one to three squares
        looks.add(features.tobytes())
    assert len(looks) > 50
    files = bytes_of(snapshot, {rows[0].picture or ""})
    ((_, data),) = files.items()
    assert np.array_equal(regions_of(data).boxes, prepared.of(rows[0].picture or "")[0])


def test_a_picture_of_another_kind_is_not_missing(tmp_path: Path):
    (tmp_path / "pictures").mkdir()
    for name in ("a.png", "b.gif", "c.WEBP"):
        form = {"png": "PNG", "gif": "GIF", "webp": "WEBP"}[name[2:].lower()]
        (tmp_path / "pictures" / name).write_bytes(encoded(drawing(1), form))
    (tmp_path / "pictures" / "d.txt").write_text("no picture")
    (tmp_path / "rows.csv").write_text("text,label,picture\nword,yes,a.png\n")
    source = parse_source(
        {
            "name": "rows",
            "description": "Rows.",
            "language": "en",
            "licence": "none",
            "files": str(tmp_path / "rows.csv"),
            "fields": {"text": "text", "label": "label", "picture": "picture"},
            "pictures": str(tmp_path / "pictures"),
        }
    )
    index = read_pictures(source, take_snapshot(source), tmp_path)
    assert index is not None
    assert index.counts["without_regions"] == {"a picture that is neither PNG nor JPEG": 2}
    assert index.named("a.png").name.endswith("a.png")
    for name, said in (("b.gif", "neither PNG nor JPEG"), ("d.txt", "missing")):
        with pytest.raises(NoRegionsError, match=said):
            index.named(name)
