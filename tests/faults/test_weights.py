"""Weights from elsewhere that are not what they say (S46 to S48): refused, nothing written."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from safetensors.numpy import save_file

from fourstage.settings import REPOSITORY
from models.interchange.huggingface import read_checkpoint, write_checkpoint
from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece
from tests.faults.desk import Desk, documents, lines

# A pickle that would make the file `pwned`, written by hand: nobody here needs to pickle.
PICKLE = b"cposix\nsystem\n(S'touch %s'\ntR."


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    folder = tmp_path / "hf"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    return folder


def convert(source: Path, target: Path) -> tuple[int, str, float, int]:
    """Exit code, standard error, seconds and the largest memory in bytes."""
    began = time.monotonic()
    process = psutil.Popen(
        [sys.executable, "-m", "fourstage.command", "convert", str(source), str(target)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    largest = 0
    while process.poll() is None:
        try:
            largest = max(largest, process.memory_info().rss)
        except psutil.NoSuchProcess:
            break
        time.sleep(0.02)
    out, err = process.communicate(timeout=60)
    assert out == ""
    assert "Traceback" not in err
    return process.returncode, err, time.monotonic() - began, largest


def test_s46_a_header_that_lies(theirs, tmp_path):
    (theirs / "model.safetensors").write_bytes(struct.pack("<Q", 1 << 62) + b"{}")
    code, said, seconds, memory = convert(theirs, tmp_path / "out")
    assert code in (2, 3)
    assert str(theirs / "model.safetensors") in said
    assert seconds < 10
    assert memory < 500e6
    assert not (tmp_path / "out").exists()


def test_s47_only_a_pickle(theirs, tmp_path):
    pwned = tmp_path / "pwned"
    (theirs / "pytorch_model.bin").write_bytes(PICKLE % str(pwned).encode())
    code, said, _, _ = convert(theirs, tmp_path / "out")
    assert code == 2
    assert "pytorch_model.bin is a pickle and is never read" in said
    assert "save_pretrained" in said
    assert not pwned.exists()
    assert not (tmp_path / "out").exists()


def test_s48_configuration_and_tensors_disagree(theirs, tmp_path):
    name = "bert.embeddings.word_embeddings.weight"
    save_file({name: np.zeros((97, 48), np.float32)}, theirs / "model.safetensors")
    config = {
        "model_type": "bert",
        "architectures": ["BertForMaskedLM"],
        "vocab_size": 97,
        "hidden_size": 768,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
    }
    (theirs / "config.json").write_text(json.dumps(config), encoding="utf-8")
    code, said, _, _ = convert(theirs, tmp_path / "out")
    assert code == 2
    assert f"{name} is (97, 48) in the file, expected (97, 768) by the config" in said
    # Four of the embeddings, 16 a block, five of the head.
    assert "41 missing: bert.embeddings.position_embeddings.weight" in said
    assert said.count("bert.e") == 6
    assert "and 36 more" in said
    assert not (tmp_path / "out").exists()


def test_a_recipe_that_only_takes_a_network_over_measures_it_at_its_own_length(
    desk: Desk, tmp_path: Path
):
    desk.holds(desk.on_corpus(lines(documents())), 0)  # whatever other tests left there
    found = read_checkpoint(REPOSITORY / "tests" / "parity" / "golden" / "bert-large")
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    pieces = [*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters)]
    pieces += [f"{letter}a" for letter in letters[: 97 - len(pieces)]]
    write_checkpoint(replace(found, tokenizer=WordPiece(pieces, True)), tmp_path / "theirs")
    recipe = {
        "name": "on-trial",
        "family": "bert",
        "stages": [{"stage": "general", "init": f"folder:{tmp_path / 'theirs'}"}],
        "evaluate": {"forgetting_on": ["mine"]},
    }
    desk.project.recipe(recipe)
    plan = desk.listener.types("plan", str(desk.project.folder / "recipes" / "on-trial.yaml"))
    desk.holds(plan, 0)
    answer = desk.runs(recipe)
    desk.holds(answer, 0)
    measured = desk.newest("measurement general")
    settings = json.loads((measured / "manifest.json").read_text("utf-8"))["preimage"]["settings"]
    assert settings["sequence_length"] == 40
    assert "mine" in json.loads((measured / "measured.json").read_text("utf-8"))["heldout_loss"]
    del recipe["evaluate"]
    desk.holds(desk.runs(recipe), 0)  # with nothing to measure it on, it is taken over all the same
