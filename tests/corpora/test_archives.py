"""Archives are read as streams and never unpacked (fault S44)."""

from __future__ import annotations

import gzip
import io
import random
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.archives import contents
from corpora.file_state import FileState
from fourstage.errors import ContractViolation
from tests.corpora.conftest import Prepare


def tar(path: Path, members: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def read_all(path: Path) -> None:
    info = path.stat()
    state = FileState(None, str(path), info.st_size, info.st_mtime_ns, info.st_ino, "", path.name)
    for content in contents(state):
        while content.stream.read(100_000):
            pass


@pytest.mark.parametrize("inner", ["inner.zip", "inner.tar.gz"])
def test_an_archive_in_an_archive_is_refused_by_name(tmp_path: Path, corpus: Prepare, inner: str):
    path = tmp_path / "c.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(inner, b"PK")
    with pytest.raises(ContractViolation, match=rf"c\.zip!{inner}: .* read one level deep"):
        corpus(path)


def test_a_link_in_a_tar_is_refused_by_name_and_nothing_is_written(tmp_path: Path, corpus: Prepare):
    escape = tmp_path / "escape"
    escape.mkdir()
    path = tmp_path / "c.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("d")
        link.type = tarfile.SYMTYPE
        link.linkname = str(escape)
        archive.addfile(link)
        info = tarfile.TarInfo("d/x.txt")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"evil"))
    with pytest.raises(ContractViolation, match=r"c\.tar\.gz: member 'd' is a link"):
        corpus(path)
    assert not list(escape.iterdir())


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (tarfile.LNKTYPE, "link"),
        (tarfile.CHRTYPE, "not a plain"),
        (tarfile.FIFOTYPE, "not a plain"),
    ],
)
def test_hard_links_devices_and_pipes_in_a_tar_are_refused(
    tmp_path: Path, corpus: Prepare, kind: bytes, word: str
):
    path = tmp_path / "c.tar"
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("d.txt")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(ContractViolation, match=rf"'d\.txt' is (a|not a) {word.split()[-1]}"):
        corpus(path)


def test_a_sparse_member_that_claims_a_terabyte_is_refused_at_once(tmp_path: Path, corpus: Prepare):
    path = tmp_path / "c.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("x.parquet")
        info.size = 4
        info.pax_headers = {
            "GNU.sparse.size": str(1 << 40), "GNU.sparse.map": "0,4", "GNU.sparse.numblocks": "1"
        }  # fmt: skip
        archive.addfile(info, io.BytesIO(b"PAR1"))
    with pytest.raises(ContractViolation, match=r"'x\.parquet' is not a plain file"):
        corpus(path)


# Lines of an ordinary length, so that no other bound is met.
MEGABYTE_OF_LINES = (b"a" * 1023 + b"\n") * 1024


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.bz2"])
def test_a_member_out_of_proportion_is_refused_early(tmp_path: Path, corpus: Prepare, kind: str):
    path = tmp_path / f"c.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.jsonl", MEGABYTE_OF_LINES * 64)
    else:
        tar(path, {"a.jsonl": MEGABYTE_OF_LINES * 64}, f"w:{kind.split('.')[1]}")
    with pytest.raises(ContractViolation, match="text does not compress so"):
        corpus(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_of_another_compression_is_refused_because_it_has_no_bound(
    tmp_path: Path, corpus: Prepare, method: int
):
    path = tmp_path / "c.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.jsonl", b'{"text": "A record of a few words."}\n')
    with pytest.raises(ContractViolation, match=rf"'a\.jsonl'.* method {method}; .* deflate\.$"):
        corpus(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("b.jsonl", b'{"text": "Another record of a few words."}\n')
    assert corpus(f"{path}!b.jsonl").counts.kept == 1


@pytest.mark.slow
def test_a_zip_that_lies_about_the_size_of_a_member_gains_nothing_by_it(tmp_path: Path):
    path = tmp_path / "c.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.jsonl", MEGABYTE_OF_LINES * 1000)
        archive.writestr("b.bin", random.Random(1).randbytes(1 << 18))  # makes the lie last
    data = bytearray(path.read_bytes())
    claimed = (1 << 30).to_bytes(4, "little")
    for place in (data.find(b"PK\x03\x04") + 18, data.rfind(b"a.jsonl") - 26):
        data[place : place + 4] = claimed
    path.write_bytes(data)
    with pytest.raises(ContractViolation, match="text does not compress so"):
        read_all(path)


def test_a_member_without_a_name_is_refused(tmp_path: Path, corpus: Prepare):
    path = tmp_path / "c.zip"
    nameless = zipfile.ZipInfo()
    nameless.filename = ""
    with zipfile.ZipFile(path, "w") as archive, archive.open(nameless, "w") as member:
        member.write(b"a text")
    with pytest.raises(ContractViolation, match="a member has no name"):
        corpus(path)


@pytest.mark.parametrize(
    "name", ["../x.txt", "/etc/x.txt", "a/../../x.txt", "..\\x.txt", "C:/x.txt"]
)
@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_member_names_that_lead_out_are_refused(
    tmp_path: Path, corpus: Prepare, name: str, kind: str
):
    path = tmp_path / f"c.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, "text")
    else:
        tar(path, {name: b"text"})
    with pytest.raises(ContractViolation, match="refused"):
        corpus(path)


def test_a_link_in_a_zip_and_an_encrypted_member_are_refused(tmp_path: Path, corpus: Prepare):
    path = tmp_path / "c.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("link.txt")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(ContractViolation, match=r"'link\.txt' is a link"):
        corpus(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "text")
    data = bytearray(path.read_bytes())
    for at in (data.find(b"PK\x03\x04") + 6, data.find(b"PK\x01\x02") + 8):
        data[at] |= 1
    path.write_bytes(data)
    with pytest.raises(ContractViolation, match="encrypted"):
        corpus(path)


@pytest.mark.parametrize("name", ["c.tar", "c.tar.gz", "c.tgz", "c.tar.bz2", "c.zip"])
def test_members_of_several_formats_become_documents(tmp_path: Path, corpus: Prepare, name: str):
    members = {
        "a/one.txt": b"The first document stands alone.",
        "a/two.jsonl": b'{"text": "The second is a record."}\n{"text": "So is the third one."}\n',
        "a/.hidden.txt": b"not this",
        "__MACOSX/x.txt": b"nor this",
    }
    path = tmp_path / name
    if name.endswith("zip"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, data in members.items():
                archive.writestr(member, data)
    else:
        mode = {"c.tar": "w", "c.tar.bz2": "w:bz2"}.get(name, "w:gz")
        tar(path, members, mode)
    prepared = corpus(path)
    assert [row["location"] for row in prepared.table()] == [
        f"{name}!a/one.txt:1",
        f"{name}!a/two.jsonl:1",
        f"{name}!a/two.jsonl:2",
    ]


def test_only_the_members_asked_for_are_read(tmp_path: Path, corpus: Prepare):
    path = tmp_path / "c.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("train.tsv", "text\nOne for training here.\n")
        archive.writestr("test.tsv", "text\nOne for testing here.\n")
    assert [row["text"] for row in corpus(f"{path}!test.tsv").table()] == ["One for testing here."]
    with pytest.raises(ContractViolation, match="member that matches 'dev"):
        corpus(f"{path}!dev.tsv")


def test_a_member_of_unknown_format_and_an_empty_archive_are_named(tmp_path: Path, corpus: Prepare):
    tar(tmp_path / "c.tar.gz", {"a/data.bin": b"x"})
    with pytest.raises(ContractViolation, match=r"data\.bin: its name does not tell the format"):
        corpus(tmp_path / "c.tar.gz")
    tar(tmp_path / "e.tar.gz", {})
    with pytest.raises(ContractViolation, match="found none in the archive"):
        corpus(tmp_path / "e.tar.gz")


@pytest.mark.parametrize("name", ["c.tar", "c.tar.gz", "c.zip"])
def test_a_member_may_be_compressed_by_itself(tmp_path: Path, corpus: Prepare, name: str):
    path, data = tmp_path / name, gzip.compress(b'{"text": "A record of a shard."}\n')
    for whole, kept in ((data, True), (data[:-6], False)):
        if name == "c.zip":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("a/shard.jsonl.gz", whole)
        else:
            tar(path, {"a/shard.jsonl.gz": whole}, "w:gz" if name.endswith("gz") else "w")
        if kept:
            assert [row["text"] for row in corpus(path).table()] == ["A record of a shard."]
        else:
            with pytest.raises(ContractViolation, match=r"shard\.jsonl\.gz: ends in the middle"):
                corpus(path)


def test_a_member_whose_name_is_not_utf8_is_refused_if_it_is_wanted(
    tmp_path: Path, corpus: Prepare
):
    path = tmp_path / "c.tar"
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT, encoding="latin-1") as archive:
        for name, data in (("café.txt", b"One text."), ("b.jsonl", b'{"text": "Some words."}\n')):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    with pytest.raises(ContractViolation, match=r"member 'caf\\udce9\.txt': the name is not UTF-8"):
        corpus(path)
    assert corpus(f"{path}!*.jsonl").counts.kept == 1


def test_rubbish_after_a_tar_and_a_cut_tar_are_errors(tmp_path: Path, corpus: Prepare):
    path = tar(tmp_path / "c.tar.gz", {"a.txt": b"A document of some words." * 2000})
    whole = path.read_bytes()
    path.write_bytes(whole + b"rubbish")
    with pytest.raises(ContractViolation, match="data after the end of the gzip stream"):
        corpus(path)
    plain = gzip.decompress(whole)
    cut = tmp_path / "cut.tar"
    cut.write_bytes(plain[: len(plain) // 2])
    with pytest.raises(ContractViolation, match="damaged or truncated"):
        corpus(cut)


@pytest.mark.parametrize("kind", ["cut before", "cut within", "damaged", "no mark", "joined"])
def test_a_tar_that_ends_early_is_an_error_and_not_a_shorter_tar(
    tmp_path: Path, corpus: Prepare, kind: str
):
    path = tar(tmp_path / "c.tar", {f"{i}.txt": b"Some words of a text." for i in range(3)}, "w")
    whole = path.read_bytes()
    second, end = 2 * tarfile.BLOCKSIZE, 6 * tarfile.BLOCKSIZE
    broken = {
        "cut before": whole[:second],
        "cut within": whole[: second + 300],
        "damaged": whole[:second] + b"x" + whole[second + 1 :],
        "no mark": whole[:end],
        "joined": whole + whole,
    }
    path.write_bytes(broken[kind])
    with pytest.raises(
        ContractViolation, match=r"c\.tar: (damaged or truncated|data after the end)"
    ):
        read_all(path)
    path.write_bytes(whole[: end + tarfile.BLOCKSIZE])
    read_all(path)


@settings(max_examples=60)
@given(data=st.data(), kind=st.sampled_from(["tar", "zip"]))
def test_flipped_bytes_in_an_archive_give_only_our_errors(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, kind: str
):
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.txt", "some text " * 50)
            archive.writestr("b.txt", "more text " * 50)
    else:
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            info = tarfile.TarInfo("a.txt")
            info.size = 500
            archive.addfile(info, io.BytesIO(b"some text " * 50))
    broken = bytearray(buffer.getvalue()[: 1600 if kind == "tar" else None])
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("fuzz") / f"c.{kind}"
    path.write_bytes(broken)
    try:
        read_all(path)
    except ContractViolation:
        pass
