"""Keys of cards: whose they are, and what, in what Prefect allows."""

from __future__ import annotations

import pytest
from prefect.client.schemas.actions import ArtifactCreate

from tasks.orchestration.naming import called, card_key


def test_a_key_names_the_recipe_or_model_and_the_card():
    assert card_key("quickstart", "stage-domain") == "quickstart-stage-domain"
    assert card_key("python-libraries", "gate") == "python-libraries-gate"


@pytest.mark.parametrize(
    ("name", "left"),
    [("Reviews", "reviews-"), ("my_notes.v2", "my-notes-v2-"), ("评论", ""), ("评论 zh", "zh-")],
)
def test_a_name_that_does_not_survive_gets_a_digest(name: str, left: str):
    key = card_key(name, "gate")
    assert ArtifactCreate(key=key).key == key  # Prefect's own rule
    assert key.startswith(left)
    assert key.endswith("-gate")
    assert len(key) == len(left) + 6 + len("-gate")


def test_names_that_lose_the_same_stay_apart():
    names = ("评论", "新闻", "reviews", "Reviews", "REVIEWS", "re_views", "re-views")
    assert len({card_key(name, "gate") for name in names}) == len(names)


@pytest.mark.parametrize(
    ("given", "name"),
    [("notes", "notes"), ("notes.v2", "notes.v2"), ("recipes/my/notes.v2.yaml", "notes.v2")],
)
def test_a_flow_run_names_all_of_its_recipe(given: str, name: str):
    assert called(given) == name
