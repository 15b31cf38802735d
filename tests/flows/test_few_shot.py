"""A network is asked from its prompt: labels, choices and texts, in one run."""

from __future__ import annotations

import pytest
import yaml

from tests.flows.person import Listener

pytestmark = pytest.mark.slow  # step by step in tests/tasks/run/test_step_by_step.py
ASKED = {
    "smoke_labels": {"score": "over_neutral", "balanced": True, "overlap_words": 4},
    "smoke_choice": {"answers": "choice"},
    "smoke_text": {"answers": "text", "answer_length": 8, "rows": 6, "beams": 2},
}
RECIPE = {
    "name": "asked",
    "family": "gpt3",
    "size": "tiny",
    "tokenizer": {"scheme": "byte_bpe"},
    "stages": [
        {
            "stage": "general",
            "corpora": {"smoke_general": 1.0},
            "objectives": {"causal_lm": {}},
            "budget": {"steps": 4},
        },
    ],
    "evaluate": {"split": "dev", "few_shot": ASKED},
}


def test_rows_are_answered_from_prompts(someone: Listener):
    path = someone.person.folder / "asked.yaml"
    path.write_text(yaml.safe_dump(RECIPE, sort_keys=False), "utf-8")
    answer = someone.types("run", "asked.yaml", "--smoke", "--json")
    assert answer.code == 0, answer.told()
    found = answer.json["few_shot"]
    assert list(found) == ["smoke_labels", "smoke_choice", "smoke_text"]
    for facts in found.values():
        assert [point["shots"] for point in facts["curve"]] == [0, 1]
        assert facts["split"] == "dev"
        for point in facts["curve"]:
            assert point["low"] <= point["score"] <= point["high"]
            assert point["examples"] <= point["shots"]
        assert facts["texts"] == ["smoke_general"]
        assert facts["clean_rows"] == round(facts["rows"] * (1 - facts["seen_before"]))
    labels, choices, texts = found.values()
    assert (labels["chance"], texts["chance"]) == (0.25, None)
    assert choices["chance"] == pytest.approx(1 / 3)
    # Corpora hold no 13 words of these rows, but four words in a row are common.
    assert labels["seen_before"] > 0.5
    assert "0-shot" in answer.err
    assert "rows with 13 words in a row, or all they have, that were trained on" in answer.err

    again = someone.types("run", "asked.yaml", "--smoke", "--json")
    assert again.json["few_shot"] == found
    asked = "evaluate.few_shot.smoke_labels"
    refused = someone.types(
        "run", "asked.yaml", "--smoke", "--set", f"{asked}.verbalisers={{x: y}}"
    )
    assert refused.code != 0
    assert "expected labels of the dataset" in refused.err, refused.told()
