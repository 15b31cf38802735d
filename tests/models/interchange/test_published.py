"""``hf:owner/name@commit`` and ``folder:path``: a folder on this machine, or the reason why not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha1
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from fourstage.errors import RecipeError
from fourstage.settings import REPOSITORY
from models.interchange.published import published_folder
from tests.answering import answering

GOLDEN = REPOSITORY / "tests" / "parity" / "golden" / "bert-large"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def converting(address: str, home: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fourstage.command", "convert", address, str(home / "out")],
        cwd=REPOSITORY,
        env=os.environ | {"FOURSTAGE_HOME": str(home)} | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=120)
    assert "Traceback" not in said
    return process.returncode, said


def convert(address: str, home: Path, **environment: str) -> tuple[int, str]:
    return ended(converting(address, home, **environment))


@pytest.fixture(scope="module", autouse=True)
def unreachable(tmp_path_factory) -> Iterator[dict[Path, subprocess.Popen[str]]]:
    """Two without a network, by home, begun before all others: one tries for half a minute."""
    started = {}
    for environment in ({"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}):
        home = tmp_path_factory.mktemp("home")
        started[home] = converting(f"hf:owner/name@{COMMIT}", home, **environment)
    yield started
    for process in started.values():
        process.kill()


def test_a_folder_is_itself(tmp_path):
    assert published_folder(f"folder:{tmp_path}") == tmp_path
    with pytest.raises(RecipeError, match="there is no such folder"):
        published_folder(f"folder:{tmp_path / 'none'}")


@pytest.mark.parametrize("address", ["hf:owner/name", "hf:owner/name@main", "hf:name@0123456"])
def test_a_branch_or_nothing_is_no_commit(address):
    with pytest.raises(
        RecipeError, match=r"expected hf:owner/name@commit \(a commit, not a branch"
    ):
        published_folder(address)


@pytest.mark.parametrize("body", [b"<html>Who are you?</html>", b"{}", b"[1]"])
def test_a_page_to_log_in_is_no_hub(body, tmp_path):
    with answering(lambda request: (200, {}, body)) as address:
        code, said = convert(f"hf:owner/name@{COMMIT}", tmp_path, HF_ENDPOINT=address)
    assert code == 1, said
    assert f"{address} does not answer like a hub" in said


def test_what_was_fetched_before_needs_no_network(tmp_path):
    snapshot = tmp_path / "huggingface" / "models--owner--name" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(GOLDEN / name, snapshot / name)
    code, said = convert(f"hf:owner/name@{COMMIT}", tmp_path, HF_HUB_OFFLINE="1")
    assert code == 0, said
    assert (tmp_path / "out" / "network.safetensors").is_file()


@pytest.fixture
def hub() -> Iterator[tuple[str, list[str]]]:
    """The answers of a hub that a download needs, on loopback: its address and what was asked."""
    asked: list[str] = []
    files = {name: (GOLDEN / name).read_bytes() for name in ("config.json", "model.safetensors")}

    def answers(request: BaseHTTPRequestHandler) -> tuple[int, dict[str, str], bytes]:
        asked.append(request.path)
        name = request.path.rsplit("/", 1)[-1]
        if request.path.startswith(f"/api/models/owner/name/tree/{COMMIT}"):
            rows = [
                {"type": "file", "path": n, "size": len(b), "oid": sha1(b).hexdigest()}
                for n, b in files.items()
            ]
            return 200, {"Content-Type": "application/json"}, json.dumps(rows).encode()
        if request.path == f"/owner/name/resolve/{COMMIT}/{name}" and name in files:
            more = {"ETag": f'"{sha1(files[name]).hexdigest()}"', "X-Repo-Commit": COMMIT}
            return 200, more, files[name]
        return 404, {}, b""

    with answering(answers) as address:
        yield address, asked


def test_a_commit_is_fetched_once_and_never_asked_for_again(hub, tmp_path):
    address, asked = hub
    requests = []
    for _ in range(2):
        code, said = convert(f"hf:owner/name@{COMMIT}", tmp_path, HF_ENDPOINT=address)
        assert code == 0, said
        assert (tmp_path / "out" / "network.safetensors").is_file()
        shutil.rmtree(tmp_path / "out")
        requests.append(len(asked))
    assert requests[0] > 0
    assert requests[1] == requests[0], asked[requests[0] :]


def test_half_a_download_is_not_taken_for_a_whole_one(hub, tmp_path):
    address, _ = hub
    assert convert(f"hf:owner/name@{COMMIT}", tmp_path, HF_ENDPOINT=address)[0] == 0
    shutil.rmtree(tmp_path / "out")
    (weights,) = (tmp_path / "huggingface").glob("models--*/snapshots/*/model.safetensors")
    weights.unlink()
    code, said = convert(f"hf:owner/name@{COMMIT}", tmp_path, HF_HUB_OFFLINE="1")
    assert code == 1, said
    assert "the hub cannot be reached and the files are not in" in said


def test_without_a_network_it_is_said_what_to_do(unreachable):
    """The last one here: meanwhile the others were run."""
    for home, process in unreachable.items():
        code, said = ended(process)
        assert code == 1, said
        assert "the hub cannot be reached and the files are not in" in said
        assert "folder:path" in said
        assert not (home / "out").exists()
