"""``hf:owner/name@commit`` and ``folder:path``: a folder on this machine, or the reason why not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fourstage.errors import RecipeError
from fourstage.settings import REPOSITORY
from models.interchange.published import WHOLE, published_folder

GOLDEN = REPOSITORY / "tests" / "parity" / "golden" / "bert-large"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def convert(address: str, home: Path, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "fourstage.command", "convert", address, str(home / "out")],
        cwd=REPOSITORY,
        env=os.environ | {"FOURSTAGE_HOME": str(home)} | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


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


def test_without_a_network_it_is_said_what_to_do(tmp_path):
    for environment in ({"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}):
        code, said = convert(f"hf:owner/name@{COMMIT}", tmp_path, **environment)
        assert code == 1, said
        assert "the hub cannot be reached and the files are not in" in said
        assert "folder:path" in said
        assert not (tmp_path / "out").exists()


def test_what_was_fetched_before_needs_no_network(tmp_path):
    snapshot = tmp_path / "huggingface" / "models--owner--name" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(GOLDEN / name, snapshot / name)
    code, said = convert(f"hf:owner/name@{COMMIT}", tmp_path, HF_HUB_OFFLINE="1")
    assert code == 0, said
    assert (tmp_path / "out" / "network.safetensors").is_file()


def test_a_whole_download_is_not_asked_for_again(tmp_path, monkeypatch):
    import socket

    snapshot = tmp_path / "huggingface" / "models--owner--name" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / WHOLE).touch()
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path))
    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *where, **how: asked.append(where))
    assert published_folder(f"hf:owner/name@{COMMIT[:7]}") == snapshot
    assert not asked
