"""Fetching: verified, atomic, once; from a server of our own."""

from __future__ import annotations

import gzip
import hashlib
import socket
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from corpora.fetch import downloads, fetch
from corpora.snapshot import take_snapshot
from data_contracts.sources import load_source, source_names
from fourstage.errors import ContractViolation, EnvironmentFault
from tests.corpora.conftest import source_of
from tests.corpora.made_up import documents, lines_of

DATA = lines_of(documents(30)).encode()
SHA256 = hashlib.sha256(DATA).hexdigest()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "c.jsonl").write_bytes(DATA)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_what_is_fetched_is_found_by_a_run_and_not_fetched_again(url: str, home: Path):
    origin = {"url": f"{url}/c.jsonl", "sha256": SHA256, "save_as": "deep/c.jsonl.gz"}
    source = source_of(files="deep/c.jsonl.gz", origin=origin)
    with pytest.raises(ContractViolation, match="run `fourstage fetch mine`"):
        take_snapshot(source)
    said: list[str] = []
    [path] = fetch(source, said.append)
    assert path == home / "data" / "mine" / "deep" / "c.jsonl.gz"
    assert gzip.decompress(path.read_bytes()) == DATA
    assert take_snapshot(source).files[0].path == str(path)
    stamp = path.stat().st_mtime_ns
    fetch(source, said.append)
    assert path.stat().st_mtime_ns == stamp
    assert said[-1] == "c.jsonl.gz: there already"
    packed = path.read_bytes()
    for damaged in (b"damaged", packed[:20] + b"\xff" * 20 + packed[40:]):
        path.write_bytes(damaged)
        fetch(source)
        assert path.read_bytes() == packed


def test_another_content_than_published_is_refused_and_not_kept(url: str, home: Path):
    source = source_of(files="c.jsonl", origin={"url": f"{url}/c.jsonl", "sha256": "0" * 64})
    with pytest.raises(ContractViolation, match=f"expected sha256 {'0' * 64}, got {SHA256}"):
        fetch(source)
    assert not [path for path in home.rglob("*") if path.is_file()]


def test_no_answer_and_a_wrong_address_are_said(url: str):
    source = source_of(files="c.jsonl", origin={"url": f"{url}/none", "sha256": SHA256})
    with pytest.raises(EnvironmentFault, match="answered 404"):
        fetch(source)
    source = source_of(
        files="c.jsonl", origin={"url": "http://127.0.0.1:9/c.jsonl", "sha256": SHA256}
    )
    with pytest.raises(EnvironmentFault, match=r"cannot be reached, .*FOURSTAGE_DATA"):
        fetch(source)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\nsome", "9995 more expected"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n99\r\nsome", "IncompleteRead"),
        (b"no HTTP\r\n\r\n", "no HTTP"),
        (b"", "closed connection"),
    ],
)
def test_an_answer_that_breaks_off_is_no_other_content_and_no_full_disk(
    home: Path, answer: bytes, reason: str
):
    def once() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=once)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/c.jsonl"
        source = source_of(files="c.jsonl", origin={"url": url, "sha256": SHA256})
        with pytest.raises(EnvironmentFault, match=f"or broke off .*{reason}"):
            fetch(source)
        thread.join()
    assert not [path for path in home.rglob("*") if path.is_file()]


def test_what_cannot_be_fetched_says_why():
    with pytest.raises(ContractViolation, match="names no origin"):
        fetch(source_of(files="c.jsonl"))
    for name, why in (
        ("trial_reports", "not in the form used here"),
        ("python_scientific", "installed with the project"),
    ):
        with pytest.raises(ContractViolation, match=why):
            fetch(load_source(name, []))


def test_every_built_in_source_says_where_each_of_its_files_comes_from():
    for name in source_names([]):
        source = load_source(name, [])
        assert source.licence
        if source.fetch == "none":
            continue
        targets = {str(each.target) for each in downloads(source)}
        for patterns in source.patterns.values():
            for pattern in patterns:
                assert any(target.endswith(pattern.split("!")[0]) for target in targets), pattern
        for each in downloads(source):
            assert each.url.startswith("https://raw.githubusercontent.com/")
