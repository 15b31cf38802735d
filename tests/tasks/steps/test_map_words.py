"""A map of words: fastText places a word that is not in the vocabulary by its n-grams."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from models.stage_format import CONFIG, NETWORK, SUBWORDS, head_file
from models.tokenizers.word import Word
from models.tokenizers.wordpiece import SPECIAL_TOKENS
from models.vectors.subwords import ROWS
from tasks.steps.map_words import map_words
from tasks.store.artifacts import Artifact, Findings, store
from tasks.store.steps import Bound, Step

PIECES = [*SPECIAL_TOKENS, "king", "queen", "apple"]


def vocabulary(folder: Path) -> Findings:
    Word(PIECES, lowercase=True).save(folder)
    return Findings()


def stage(folder: Path) -> Findings:
    rows = np.random.default_rng(1).normal(size=(len(PIECES) + 20, 3)).astype(np.float32)
    head_file(folder, SUBWORDS).parent.mkdir()
    save_file({ROWS: rows}, head_file(folder, SUBWORDS))
    save_file({"token/embeddings": rows[: len(PIECES)].copy()}, folder / NETWORK)
    config = {"family": "fasttext", "network": {"hidden_dim": 3, "buckets": 20}}
    (folder / CONFIG).write_text(json.dumps(config), "utf-8")
    return Findings()


def test_a_word_of_no_vocabulary_has_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))
    settings = {"words": ["King", "kings", "two words"]}
    made = {"stage": stage, "tokenizer": vocabulary}
    inputs = {
        role: store().make(role, role, {"of": role}, make, {})[0] for role, make in made.items()
    }
    step = Step("word_map", "word_map", settings, given={"folders": ()})
    map_words.fn(Bound(step, inputs))
    found = store().find("word_map", Bound(step, inputs).key)
    assert isinstance(found, Artifact)
    assert (found.facts["words"], found.facts["unknown"]) == (["King", "kings"], ["two words"])
