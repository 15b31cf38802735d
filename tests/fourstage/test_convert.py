"""``convert``: from Hugging Face to a stage of ours and back gives the same tensors."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from fourstage.command import main
from fourstage.settings import REPOSITORY
from models.interchange.huggingface import read_checkpoint, write_checkpoint
from models.saved_tokenizer import load_tokenizer
from models.stage_format import CONFIG
from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece
from models.training.trained_stage import load_stage
from tests.models.odd_lines import byte_pairs

PREFIXES = {"lxmert": "lxmert.", "visualbert": "visual_bert."}
GOLDEN = REPOSITORY / "tests" / "parity" / "golden" / "bert-large"


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    return published(GOLDEN, tmp_path / "theirs")


def published(golden: Path, folder: Path) -> Path:
    """A folder as it is published: a network of transformers, and a vocabulary."""
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(golden / name, folder / name)
    pieces = [*SPECIAL_TOKENS, *(f"w{i}" for i in range(92))]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    return folder


def test_there_and_back_again(theirs, tmp_path, capfd):
    stage, again = tmp_path / "stage", tmp_path / "again"
    assert main(["convert", str(theirs), str(stage), "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["family"] == "bert"
    assert told["heads"] == ["masked_lm", "next_sentence"]
    assert told["tokenizer"] is True
    assert told["notes"] == []
    assert main(["convert", str(stage), str(again)]) == 0
    assert "→" in capfd.readouterr().out
    before, after = (load_file(each / "model.safetensors") for each in (theirs, again))
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert (again / "vocab.txt").read_bytes() == (theirs / "vocab.txt").read_bytes()


@pytest.mark.parametrize(
    ("family", "name"), [("lxmert", "LxmertModel"), ("visualbert", "VisualBertModel")]
)
def test_networks_that_see_go_there_and_back(family, name, tmp_path, capfd):
    golden = GOLDEN.parents[1] / "regions" / f"{family}-large"
    theirs = published(golden, tmp_path / "theirs")
    stage, again, stage_again = (tmp_path / each for each in ("stage", "again", "stage again"))
    told = []
    for source, target in pairwise([theirs, stage, again, stage_again]):
        assert main(["convert", str(source), str(target), "--json"]) == 0
        told.append(json.loads(capfd.readouterr().out))
    assert told[0]["family"] == told[2]["family"] == family
    assert [each["heads"] for each in (told[0], told[2])] == [["masked_lm"], []]
    assert told[1]["notes"] == [f"left out, {name} has no counterpart: head masked_lm"]
    assert all(each["tokenizer"] for each in (told[0], told[2]))
    ours, whole = (load_file(each / "model.safetensors") for each in (again, theirs))
    kept = {each.partition(".")[2]: each for each in whole if each.startswith(PREFIXES[family])}
    assert ours.keys() == kept.keys()
    assert all(np.array_equal(ours[each], whole[kept[each]]) for each in ours)
    weights = [load_file(each / "network.safetensors") for each in (stage, stage_again)]
    assert weights[0].keys() == weights[1].keys()
    assert all(np.array_equal(value, weights[1][each]) for each, value in weights[0].items())


def test_the_stage_is_one_that_the_product_loads(theirs, tmp_path):
    assert main(["convert", str(theirs), str(tmp_path / "stage")]) == 0
    loaded = load_stage(tmp_path / "stage", WordPiece.load(tmp_path / "stage" / "tokenizer"))
    outputs = loaded.network({"token_ids": np.array([[2, 7, 9, 3]], np.int32)})
    assert outputs["pooled_output"].shape == (1, 32)
    for name in ("masked_lm", "next_sentence"):
        scorer = loaded.scorer(name, loaded.objective(name))
        assert scorer.weights


def test_their_pipeline_cuts_texts_where_the_stage_did(theirs, tmp_path):
    stage, again = tmp_path / "stage", tmp_path / "again"
    assert main(["convert", str(theirs), str(stage)]) == 0
    config = json.loads((stage / CONFIG).read_text("utf-8"))
    assert config["sequence_length"] == config["network"]["max_sequence_length"]
    (stage / CONFIG).write_text(json.dumps({**config, "sequence_length": 24}), "utf-8")
    assert main(["convert", str(stage), str(again)]) == 0
    settings = json.loads((again / "tokenizer_config.json").read_text("utf-8"))
    assert settings["model_max_length"] == 24


def test_a_folder_with_files_is_never_written_into(theirs, tmp_path, capsys):
    assert main(["convert", str(theirs), str(theirs)]) == 2
    assert "expected a new or empty folder, it has files" in capsys.readouterr().err


def test_a_source_that_is_nothing_is_said(tmp_path, capsys):
    assert main(["convert", str(tmp_path / "none"), str(tmp_path / "out")]) == 2
    assert "no such folder exists" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["convert", str(tmp_path / "empty"), str(tmp_path / "out")]) == 2
    assert "config.json: not found" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_damaged_stage_is_data_that_cannot_be_read(theirs, tmp_path, capsys):
    assert main(["convert", str(theirs), str(tmp_path / "stage")]) == 0
    (tmp_path / "stage" / "network.safetensors").write_bytes(b"\0" * 20)
    assert main(["convert", str(tmp_path / "stage"), str(tmp_path / "out")]) == 3
    assert "not a readable stage" in capsys.readouterr().err


def test_a_roberta_keeps_its_tokenizer(tmp_path, capfd):
    """There and back: the same files, and the row of padding at its place."""
    tokenizer = byte_pairs()
    found = read_checkpoint(GOLDEN.with_name("roberta-large"))
    size = tokenizer.vocabulary_size
    rng = np.random.default_rng(1)
    table = rng.normal(size=(size, found.settings["hidden_dim"])).astype(np.float32)
    wider = replace(
        found,
        settings={**found.settings, "vocabulary_size": size},
        network={**found.network, "embeddings/token/embeddings": table},
        heads={},
        tokenizer=tokenizer,
    )
    folders = [tmp_path / name for name in ("theirs", "stage", "again")]
    write_checkpoint(wider, folders[0])
    for source, target in pairwise(folders):
        assert main(["convert", str(source), str(target), "--json"]) == 0
        assert json.loads(capfd.readouterr().out)["tokenizer"] is True
    kept = load_tokenizer(folders[1] / "tokenizer")
    assert kept.digest == tokenizer.digest
    for name in ("vocab.json", "merges.txt", "tokenizer.json", "tokenizer_config.json"):
        assert (folders[2] / name).read_bytes() == (folders[0] / name).read_bytes(), name
    assert json.loads((folders[2] / "config.json").read_text("utf-8"))["pad_token_id"] == 1
