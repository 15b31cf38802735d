"""Finding and snapshotting files (fault S11)."""

from __future__ import annotations

import os
from pathlib import Path

import fsspec
import pytest

from corpora.files import find_files
from corpora.snapshot import take_snapshot
from data_contracts.sources import load_source
from fourstage.errors import ContractViolation, UnknownNameError
from tests.corpora.conftest import Prepare, source_of
from tests.corpora.made_up import documents, lines_of, rows, write


def names(**settings: object) -> list[str]:
    return [file.name for file in find_files(source_of(**settings))]


def test_a_pattern_that_matches_nothing_says_where_it_looked(tmp_path: Path, corpus: Prepare):
    with pytest.raises(ContractViolation) as caught:
        corpus(f"{tmp_path}/none/*.jsonl")
    assert f"{tmp_path}/none/*.jsonl" in str(caught.value)
    assert f"looked in {tmp_path}" in str(caught.value)


def test_a_dangling_link_is_named_with_its_target(tmp_path: Path, corpus: Prepare):
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "gone.jsonl")
    for pattern in (link, tmp_path, tmp_path / "*.jsonl"):
        with pytest.raises(ContractViolation) as caught:
            corpus(pattern)
        assert str(link) in str(caught.value)
        assert str(tmp_path / "gone.jsonl") in str(caught.value)


def test_links_in_a_circle_are_named_as_such(tmp_path: Path):
    one, other = tmp_path / "a.txt", tmp_path / "b.txt"
    one.symlink_to(other)
    other.symlink_to(one)
    for pattern in (one, tmp_path, tmp_path / "*.txt"):
        with pytest.raises(ContractViolation, match="which leads back to it"):
            names(files=str(pattern))


def test_a_file_may_have_the_mark_of_members_in_its_name(tmp_path: Path):
    (tmp_path / "wow!.csv").write_text("text")
    (found,) = find_files(source_of(files=str(tmp_path / "wow!.csv")))
    assert (found.name, found.members) == ("wow!.csv", "")
    (tmp_path / "wow").write_text("text")
    (found,) = find_files(source_of(files=str(tmp_path / "wow!*.csv")))
    assert (found.name, found.members) == ("wow", "*.csv")


def test_folders_globs_and_files_are_found_in_one_settled_order(tmp_path: Path):
    for name in ("b/two.txt", "b/one.txt", "a.txt", "b/.hidden.txt", "c/deep/x.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    assert names(files=str(tmp_path / "b")) == ["b/one.txt", "b/two.txt"]
    assert names(files=f"{tmp_path}/*/*.txt") == ["b/one.txt", "b/two.txt"]
    assert names(files=f"{tmp_path}/**/*.txt")[-1] == "c/deep/x.txt"
    assert names(files=[f"{tmp_path}/a.txt", f"{tmp_path}/a.txt"]) == ["a.txt"]


def test_files_of_one_name_in_two_splits_have_names_of_their_own(tmp_path: Path, dataset: Prepare):
    """A line of test that cannot be read would otherwise bear the name of a good row of train."""
    for folder, seed in (("train", 2), ("test", 9)):
        (tmp_path / folder).mkdir()
        records = [{key: row[key] for key in ("text", "label")} for row in rows(20, seed)]
        write(tmp_path / folder / "part-0.jsonl", records)
    path = tmp_path / "test" / "part-0.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:6], "{broken", *lines[7:]]) + "\n")
    prepared = dataset(files={s: f"{tmp_path}/{s}/*.jsonl" for s in ("train", "test")})
    (rejected,) = prepared.rejected()
    assert rejected["location"] == "part-0~2.jsonl:7"
    assert rejected["location"] not in {row["id"] for row in prepared.table()}
    assert "part-0.jsonl:7" in {row["id"] for row in prepared.table()}


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path):
    (tmp_path / os.fsdecode("café.txt".encode("latin-1"))).write_text("text")
    for pattern in (tmp_path, tmp_path / "*.txt"):
        with pytest.raises(ContractViolation, match=r"caf\\udce9\.txt': the name is not UTF-8"):
            names(files=str(pattern))


def test_a_folder_that_cannot_be_listed_is_refused_and_not_left_out(tmp_path: Path):
    (tmp_path / "a.txt").write_text("text")
    assert names(files=str(tmp_path)) == [f"{tmp_path.name}/a.txt"]
    inner = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):  # deeper than a path may be, which not even root can list
        os.mkdir("d" * 250, dir_fd=inner)
        outer, inner = inner, os.open("d" * 250, os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)
    with pytest.raises(ContractViolation, match=r"the folder cannot be read \(File name too long"):
        names(files=str(tmp_path))


def test_relative_files_are_looked_for_in_project_data_folders_and_cache_in_order(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    project, data, cache = tmp_path / "project", tmp_path / "data", home / "data" / "mine"
    for folder in (project / "sources", data, cache):
        folder.mkdir(parents=True)
    (project / "sources" / "mine.yaml").write_text(
        "name: mine\nlanguage: en\nlicence: x\nfiles: [c.txt]\n"
    )
    monkeypatch.setenv("FOURSTAGE_DATA", str(data))
    source = load_source("mine", [project])
    with pytest.raises(ContractViolation) as caught:
        take_snapshot(source)
    for folder in (project, data, cache):
        assert str(folder) in str(caught.value)
    for folder in (cache, data, project):
        (folder / "c.txt").write_text("text")
        assert find_files(source)[0].path == str(folder / "c.txt")


def test_addresses_of_memory_are_read_and_remote_ones_are_not(tmp_path: Path, corpus: Prepare):
    with fsspec.open("memory://room/c.jsonl", "wb") as stream:
        stream.write(lines_of(documents(30)).encode())
    assert corpus("memory://room/*.jsonl").counts.kept == 30
    write(tmp_path / "c.jsonl", documents(20))
    assert corpus(f"file://{tmp_path}/c.jsonl").counts.kept == 20
    with pytest.raises(ContractViolation, match="a run never fetches"):
        corpus("https://example.org/c.jsonl")
    with pytest.raises(ContractViolation, match="matches nothing in the memory file system"):
        corpus("memory://room/none.jsonl")


def test_an_address_of_a_device_or_a_pipe_is_refused_as_its_path_is(tmp_path: Path):
    """A device never ends, and a pipe waits for ever for somebody who writes."""
    write(tmp_path / "c.jsonl", documents(2))
    os.mkfifo(tmp_path / "pipe.jsonl")
    for address in ("file:///dev/zero", f"file://{tmp_path}/pipe.jsonl", f"file://{tmp_path}"):
        with pytest.raises(ContractViolation, match="expected a file, got a device, pipe"):
            names(files=[address])
    assert names(files=[f"file://{tmp_path}/c.jsonl"]) == ["c.jsonl"]


def test_the_digest_hangs_on_content_and_names_not_on_folders(tmp_path: Path):
    digests = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        write(folder / "c.jsonl", documents(20))
        digests.append(take_snapshot(source_of(files=str(folder / "c.jsonl"))).digest)
    assert digests[0] == digests[1]
    write(tmp_path / "two" / "c.jsonl", documents(21))
    assert take_snapshot(source_of(files=f"{tmp_path}/two/c.jsonl")).digest != digests[0]


def test_an_unknown_format_is_refused_before_reading(tmp_path: Path):
    (tmp_path / "c.docx").write_text("x")
    with pytest.raises(ContractViolation, match=r"add 'format:' \(conll, csv, "):
        take_snapshot(source_of(files=str(tmp_path / "c.docx")))
    with pytest.raises(UnknownNameError, match="did you mean 'jsonl'"):
        take_snapshot(source_of(files=str(tmp_path / "c.docx"), format="jsonll"))


@pytest.mark.parametrize("name", ["c.jsonl", "c.txt", "c.csv", "c.tsv"])
def test_empty_files_are_named(tmp_path: Path, corpus: Prepare, name: str):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ContractViolation, match=rf"{name} is empty \(0 bytes\)"):
        corpus(tmp_path / name)
