"""Hugging Face's card: the task by their class, and what a folder lacks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tasks.reports.hub_card import write_hub_card
from tasks.reports.model_card import model_card
from tasks.store.ancestry import gather, join
from tasks.store.model_facts import facts_of
from tests.tasks.lifecycle import Lifecycle


@pytest.mark.parametrize(
    ("architecture", "task"),
    [
        ("BertForSequenceClassification", "text-classification"),
        ("RobertaForMaskedLM", "fill-mask"),
        ("GPT2LMHeadModel", "text-generation"),
        ("MarianMTModel", "translation"),
        ("BertModel", "feature-extraction"),
        ("ElectraForPreTraining", None),
        ("LxmertModel", None),
    ],
)
def test_the_task_follows_from_the_class_and_the_card_names_what_is_left_out(
    home: Path, saved_model: Path, tmp_path: Path, architecture: str, task: str | None
):
    made = Lifecycle(home, package=saved_model)
    root = made.store.root
    facts = facts_of(join(gather(root, made["package"]), gather(root, made["evaluation"])))
    assert facts is not None
    if architecture == "LxmertModel":
        last = facts.stages[-1]
        settings = {**last.settings, "family": "lxmert"}
        last = replace(last, preimage={**last.preimage, "settings": settings})
        facts = replace(facts, stages=(*facts.stages[:-1], last))
    (tmp_path / "config.json").write_text(json.dumps({"architectures": [architecture]}), "utf-8")
    told = model_card(facts, "relations")

    write_hub_card(facts, told, tmp_path)
    _, front, card = (tmp_path / "README.md").read_text("utf-8").split("---\n", 2)
    assert yaml.safe_load(front).get("pipeline_tag") == task
    assert f"transformers.{architecture}.from_pretrained" in card
    assert "Not in this folder" not in card

    write_hub_card(facts, told, tmp_path, ["head one", "head two"])
    lacks = (tmp_path / "README.md").read_text("utf-8").split("## Not in this folder")[1]
    assert "\n- head one\n- head two\n\n## How to call it" in lacks
    assert "The scores above are the whole model's." in lacks
    write_hub_card(facts, "# A stage", tmp_path, ["head one"])
    assert "scores" not in (tmp_path / "README.md").read_text("utf-8")
