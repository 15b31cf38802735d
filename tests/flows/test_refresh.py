"""New data: the flow ``refresh`` goes on from the last run by each stage's policy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.flows.own_project import Project, document, recipe
from tests.flows.person import Answer, Listener

pytestmark = pytest.mark.slow


@dataclass
class Story:
    """A first run, then refreshes: with new letters, with hardly any, with another corpus.

    The last may not continue a stage that was continued twice.
    """

    first: Answer
    grown: Answer
    hardly: Answer
    wider: Answer
    anew: Answer

    def stages(self, answer: Answer) -> dict[str, Any]:
        assert answer.code == 0, answer.told()
        return {stage["stage"]: stage for stage in answer.json["stages"]}


@pytest.fixture(scope="module")
def story(person, project: Project, prefect_server: str):
    listener = Listener(person(project.folder, PREFECT_API_URL=prefect_server))
    path = project.recipe(recipe("growing"))
    try:
        first = listener.types("run", str(path), "--json")
        project.lines("letters.jsonl", map(document, range(2000, 2080)), mode="a")
        grown = listener.asks(refresh=str(path))
        project.lines("letters.jsonl", [document(3000, sentences=1)], mode="a")
        hardly = listener.types("run", str(path), "--refresh", "--json")
        more = "stages.domain.corpora={letters: 0.5, notes: 0.5}"
        wider = listener.types("run", str(path), "--refresh", "--json", "--set", more)
        project.lines("letters.jsonl", map(document, range(4000, 4080)), mode="a")
        often = "stages.domain.continuations=2"
        again = ("run", str(path), "--refresh", "--json", "--set", more, "--set", often)
        anew = listener.types(*again)
    finally:
        listener.close()
    return Story(first, grown, hardly, wider, anew)


def test_general_stays_and_domain_goes_on_with_the_new_documents(story: Story):
    before, after = story.stages(story.first), story.stages(story.grown)
    assert after["general"]["status"] == "reused"
    assert after["general"]["weights_digest"] == before["general"]["weights_digest"]
    domain = after["domain"]
    assert domain["status"] == "trained"
    assert domain["weights_digest"] != before["domain"]["weights_digest"]
    # 80 documents came to 160: a third of the text gets a third of the recipe's 20 steps.
    assert 5 <= domain["steps"] <= 8
    assert "stage domain: continues with" in story.grown.err


def test_later_stages_follow_as_their_data_demand(story: Story):
    after = story.stages(story.grown)
    # The labelled rows are the same, but the network they start from is not.
    assert after["task"]["status"] == "trained"
    assert after["finetune"]["status"] == "trained"
    assert story.grown.json["model"]["version"] == 2


def test_with_less_new_text_than_a_batch_the_domain_stage_stays(story: Story):
    before, after = story.stages(story.grown), story.stages(story.hardly)
    assert "last version kept" in story.hardly.err
    for stage in ("general", "domain", "task", "finetune"):
        assert after[stage]["status"] == "reused", stage
        assert after[stage]["key"] == before[stage]["key"]
    assert story.hardly.json["model"]["version"] == 2


def test_a_corpus_that_the_last_run_did_not_read_is_new_text(story: Story):
    assert "stage domain: continues with" in story.wider.err
    assert story.stages(story.wider)["domain"]["status"] == "trained"


def test_a_stage_that_was_continued_as_often_as_allowed_is_trained_anew(story: Story):
    assert "stage domain: continued 2 times, as often as the recipe allows" in story.anew.err
    assert story.stages(story.anew)["domain"]["steps"] == 20
    assert story.stages(story.anew)["general"]["status"] == "reused"


def test_the_summaries_are_plain_json(story: Story):
    for answer in (story.first, story.grown, story.hardly, story.wider, story.anew):
        assert json.dumps(answer.json)
