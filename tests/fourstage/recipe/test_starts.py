"""Which part of a stage's network starts from what, and what is refused before any work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from fourstage.errors import RecipeError
from fourstage.recipe.loading import load_recipe
from fourstage.recipe.resolution import resolve
from fourstage.recipe.resolved import as_recipe, stage_spec

PAIR = """
name: pair
family: recurrent
size: {num_layers: 1, embedding_dim: 8, hidden_dim: 16}
tokenizer: {vocabulary_size: 1000}
stages:
  - {stage: general, name: source, corpora: {text: 1}, objectives: {causal_lm: {}}}
  - stage: general
    name: target
    size: {num_layers: 1, embedding_dim: 8, hidden_dim: 16}
    corpora: {more: 1}
    objectives: {causal_lm: {}}
  - stage: finetune
    family: seq2seq
    size: {num_layers: 2, embedding_dim: 8, hidden_dim: 16, target_table: true}
    starts_from: {encoder: source, decoder: target}
    dataset: rows
    head: {sequence_to_sequence: {}}
    objectives: {joint_lm: {}}
"""
STARTS = "{encoder: source, decoder: target}"
LAST = "size: {num_layers: 2, embedding_dim: 8, hidden_dim: 16, target_table: true}"


@pytest.fixture
def write(tmp_path: Path):
    def _write(*changes: tuple[str, str]) -> Path:
        text = PAIR
        for before, after in changes:
            assert text.count(before) == 1, before
            text = text.replace(before, after)
        file = tmp_path / "pair.yaml"
        file.write_text(text, encoding="utf-8")
        return file

    return _write


def fault(file: Path) -> str:
    with pytest.raises(RecipeError) as caught:
        resolve(load_recipe(file))
    return str(caught.value)


def test_both_sides_name_the_stage_that_they_start_from(write, tmp_path: Path):
    resolved = resolve(load_recipe(write()))
    assert resolved.stages[2].starts_from == {"encoder": "source", "decoder": "target"}
    assert [s.name for s in resolved.last_network] == ["finetune"]
    said = as_recipe(resolved)
    (tmp_path / "again.yaml").write_text(yaml.safe_dump(said), encoding="utf-8")
    again = resolve(load_recipe(tmp_path / "again.yaml"))
    assert again.stages[2].starts_from == resolved.stages[2].starts_from
    # Names of stages are no weights: their digests are inputs of the stage's step.
    assert "starts_from" not in stage_spec(resolved.stages[2])


def test_smoke_keeps_what_starts_from_stages(write):
    small = resolve(load_recipe(write(), smoke=True)).stages[2]
    assert small.starts_from == {"encoder": "source", "decoder": "target"}
    changes = (STARTS, "{embeddings: vectors.txt}"), ("objectives: {joint_lm: {}}", "")
    assert not resolve(load_recipe(write(*changes), smoke=True)).stages[2].starts_from


VECTORS = """
name: vectors
family: word2vec
size: {hidden_dim: 128}
stages:
  - {stage: general, corpora: {text: 1}, objectives: {skip_gram: {}}}
  - {stage: finetune, family: bert, size: tiny, dataset: rows, head: {sequence_classification: {}}}
"""


def test_smoke_of_a_network_that_starts_from_word_vectors_can_be_planned(tmp_path: Path):
    # The tiny word2vec's vectors are narrower than the tiny BERT's.
    started = VECTORS.replace("size: tiny,", "size: tiny, starts_from: {embeddings: general},")
    (tmp_path / "vectors.yaml").write_text(started, encoding="utf-8")
    whole = resolve(load_recipe(tmp_path / "vectors.yaml"))
    assert whole.stages[1].starts_from == {"embeddings": "general"}
    assert not resolve(load_recipe(tmp_path / "vectors.yaml", smoke=True)).stages[1].starts_from


def test_a_table_starts_from_vectors_of_its_own_text_also_in_a_smoke_run(tmp_path: Path):
    general = "{stage: general, corpora: {text: 1}, objectives: {masked_lm: {}}"
    start = "starts_from: {embeddings: word2vec}"
    written = VECTORS.replace(
        "family: word2vec\nsize: {hidden_dim: 128}", "family: bert\nsize: tiny"
    )
    written = written.replace("family: bert, size: tiny, dataset", "dataset")
    own = written.replace(
        "{stage: general, corpora: {text: 1}, objectives: {skip_gram: {}}}", f"{general}, {start}}}"
    )
    file = tmp_path / "own.yaml"
    file.write_text(own, encoding="utf-8")
    for smoke in (False, True):
        resolved = resolve(load_recipe(file, smoke=smoke))
        assert resolved.stages[0].starts_from == {"embeddings": "word2vec"}
        assert as_recipe(resolved)["stages"][0]["starts_from"] == {"embeddings": "word2vec"}
    file.write_text(own.replace("word2vec", "word2vek"), encoding="utf-8")
    assert "did you mean 'word2vec'? Known: word2vec. The folder of a finished" in fault(file)
    file.write_text(
        f"{written.replace('dataset: rows', f'{start}, dataset: rows')}".replace(
            "  - {stage: general, corpora: {text: 1}, objectives: {skip_gram: {}}}\n", ""
        ),
        encoding="utf-8",
    )
    assert "embeddings: stage finetune reads no text to learn word2vec from" in fault(file)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ((STARTS, "{encoder: sourse}"), "did you mean 'source'?"),
        ((STARTS, "{encoder: finetune}"), "'finetune' is not an earlier stage of the recipe"),
        ((STARTS, "{decodr: target}"), "'decodr' is not a part of family 'seq2seq' that can start"),
        (
            (STARTS, "{encoder: source, embeddings: target}"),
            "starts_from.embeddings: encoder comes with token vectors of its own; leave one of the",
        ),
        (
            (LAST, LAST.replace("16", "32")),
            "starts_from.encoder: expected hidden_dim 16, as in the network that it starts from,"
            " got 32",
        ),
        (
            (LAST, LAST.replace("true", "false")),
            "starts_from.decoder: expected target_table True, as in the network that it starts",
        ),
        (
            (LAST, LAST.replace("true", "true, direction: both")),
            "starts_from.encoder: expected direction forward",
        ),
        (
            (
                f"    starts_from: {STARTS}",
                "    starts_from: {encoder: source, embeddings: vectors}",
            ),
            "The folder of a finished stage is allowed too, a file of word vectors, or a register",
        ),
        (
            ("{sequence_to_sequence: {}}", "{sequence_classification: {}}"),
            "'joint_lm' needs written_targets; family 'seq2seq' provides",
        ),
        (
            (f"    family: seq2seq\n    {LAST}\n", ""),
            "stages[2].starts_from: the stage goes on with the network of the stage before",
        ),
    ],
)
def test_what_does_not_fit_is_refused(write, change: tuple[str, str], expected: str):
    assert expected in fault(write(change))


def test_an_encoder_is_no_part_of_a_network_of_another_kind(write):
    first = ("family: recurrent\nsize: {num_layers: 1, embedding_dim: 8, hidden_dim: 16}",
             "family: gpt2\nsize: tiny")  # fmt: skip
    second = ("    name: target\n", "    name: target\n    family: recurrent\n")
    said = fault(write(first, second))
    assert "stages[2].starts_from.encoder: a network of family gpt2 has no cell" in said


def folder(path: Path, tokenizer: str, **changes: Any) -> Path:
    """What planning reads of a finished language model."""
    path.mkdir()
    network = {"cell": "lstm", "num_layers": 1, "embedding_dim": 8, "hidden_dim": 16}
    config = {
        "family": "recurrent",
        "network": network | {"tied_output": False} | changes,
        "tokenizer_digest": tokenizer,
    }
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (path / "network.safetensors").touch()
    return path


def test_two_language_models_with_different_vocabularies_are_refused(write, tmp_path: Path):
    one, two = folder(tmp_path / "one", "1" * 64), folder(tmp_path / "two", "2" * 64)
    said = fault(write((STARTS, f"{{encoder: {one}, decoder: {two}}}")))
    assert (
        "stages[2].starts_from: expected networks with one vocabulary, got those of the tokenizers"
        f" encoder {'1' * 12}, decoder {'2' * 12}" in said
    )
    also = folder(tmp_path / "also", "1" * 64)
    parts = resolve(load_recipe(write((STARTS, f"{{encoder: {one}, decoder: {also}}}"))))
    assert parts.stages[2].starts_from == {"encoder": str(one), "decoder": str(also)}


def test_a_registered_version_is_a_folder_that_keeps_its_address(write, tmp_path: Path):
    address, there = "models:/lm/3", folder(tmp_path / "lm", "1" * 64)
    file = write((STARTS, f"{{encoder: source, decoder: '{address}'}}"))
    resolved = resolve(load_recipe(file), registered={address: there})
    stage = resolved.stages[2]
    assert stage.starts_from == {"encoder": "source", "decoder": str(there)}
    assert stage.versions == {"decoder": address}
    assert as_recipe(resolved)["stages"][2]["starts_from"]["decoder"] == address
    assert "versions" not in stage_spec(stage), "the digests of its files are in the key"
    wide = folder(tmp_path / "wide", "1" * 64, hidden_dim=32)
    with pytest.raises(RecipeError, match=r"decoder: expected hidden_dim 32, as in the network"):
        resolve(load_recipe(file), registered={address: wide})


@pytest.mark.parametrize("config", ['{"model_type": "bert", "hidden_size": 8}', "[]", "{"])
def test_a_folder_that_no_stage_left_is_refused(write, tmp_path: Path, config: str):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "config.json").write_text(config, encoding="utf-8")
    (theirs / "network.safetensors").touch()
    said = fault(write((STARTS, f"{{encoder: {theirs}}}")))
    assert (
        "starts_from.encoder: expected the folder of a finished stage, with its config.js" in said
    )
    cut = folder(tmp_path / "cut", "1" * 64)
    (cut / "network.safetensors").unlink()
    assert "expected the folder of a finished" in fault(write((STARTS, f"{{encoder: {cut}}}")))


def test_vectors_of_another_width_are_refused_and_a_wrong_file(write, tmp_path: Path):
    def started(text: str, name: str = "v.txt") -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        file = f"{{embeddings: {tmp_path / name}}}"
        return fault(write((STARTS, file), ("objectives: {joint_lm: {}}", "")))

    said = started("word 1 2 3\n")
    assert "expected vectors of 8 numbers, which is this network's width, got 3 in" in said
    assert "expected finite numbers after the word" in started("word 1 b 3\n")
    assert "expected a header with two numbers" in started("word 1 2 3\n", "v.vec")
    assert "expected a file of word vectors: .vec, .bin, .txt" in started("word 1", "v.csv")


def test_a_classifier_starts_as_the_encoder_that_reads_as_it_does(write):
    changes = (
        ("family: recurrent\nsize: {num", "family: seq2seq\nsize: {num"),
        ("name: source, corpora: {text: 1}, objectives: {causal_lm", "name: source, corpora:"
         " {text: 1}, objectives: {text_infilling"),
        ("    name: target\n", "    name: target\n    family: recurrent\n"),
        ("    family: seq2seq\n    " + LAST, "    family: recurrent\n    " + LAST.replace(
            ", target_table: true", "")),
        (STARTS, "{encoder: source}"),
        ("{sequence_to_sequence: {}}", "{sequence_classification: {}}"),
        ("    objectives: {joint_lm: {}}\n", ""),
    )  # fmt: skip
    assert resolve(load_recipe(write(*changes))).stages[2].starts_from == {"encoder": "source"}
    first = "family: seq2seq\nsize: {direction: backward, num"
    backward = (("family: recurrent\nsize: {num", first), *changes[1:])
    assert "starts_from.encoder: expected direction backward" in fault(write(*backward))
