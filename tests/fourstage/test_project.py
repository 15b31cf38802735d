"""A new project: complete, deterministic, found from inside, and never over something else."""

from __future__ import annotations

import json

import pytest

from data_contracts.sources import load_source
from fourstage.command import main
from fourstage.command.project import CHAPTERS, FOLDERS, make_project
from fourstage.errors import RecipeError
from fourstage.settings import search_folders
from models.recipe import SourceFacts, load_recipe, resolve


def test_it_has_every_folder_and_its_recipe_and_sources_are_valid(tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    make_project(folder)
    for name in FOLDERS:
        assert (folder / name).is_dir()
    monkeypatch.chdir(folder)
    folders = search_folders()
    assert folders == [folder]
    sources = {name: load_source(name, folders) for name in ("my_text", "my_rows")}
    facts = {name: SourceFacts(source.is_dataset) for name, source in sources.items()}
    facts["python_infrastructure"] = SourceFacts(labelled=False)
    resolved = resolve(load_recipe("recipes/first.yaml"), facts)
    assert [stage.kind for stage in resolved.stages] == ["general", "domain", "task", "finetune"]


def test_rows_are_split_without_overlap_and_every_label_is_in_every_split(tmp_path):
    make_project(tmp_path / "mine")
    rows = {
        split: [
            json.loads(line)
            for line in (tmp_path / "mine/data" / f"{split}.jsonl").read_text().splitlines()
        ]
        for split in ("train", "dev", "test")
    }
    texts = [row["text"] for split in rows.values() for row in split]
    assert len(texts) == len(set(texts)) > 300
    for split in rows.values():
        assert {row["label"] for row in split} == set(CHAPTERS.values())
    ids = [row["id"] for split in rows.values() for row in split]
    assert len(ids) == len(set(ids))


def test_two_projects_are_equal(tmp_path):
    first, second = make_project(tmp_path / "a"), make_project(tmp_path / "b")
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(RecipeError, match="got one with 1 entries; nothing was changed"):
        make_project(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "x").touch()
    with pytest.raises(RecipeError, match="got a file"):
        make_project(tmp_path / "x")


def test_new_says_what_to_type_next(tmp_path, capsys):
    assert main(["new", str(tmp_path / "mine")]) == 0
    assert "fourstage run recipes/first.yaml" in capsys.readouterr().out
