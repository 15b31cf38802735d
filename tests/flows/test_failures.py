"""What a person who is woken reads on Prefect's page: the cause, the exit code, what to type."""

from __future__ import annotations

import re
import shlex
import sqlite3
from collections.abc import Callable, Iterator

import pytest

from tests.flows.own_project import Project, recipe, stages
from tests.flows.person import Listener, Person

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def told(person: Callable[..., Person], project: Project) -> Iterator[dict[str, str]]:
    """Messages of failed flow runs by the run's name: data, a deadline, a recipe."""
    short = {"evaluate": None, "promote": None}
    project.source("lost", files=["data/lost.jsonl"], fields={"text": "text"})
    paths = [
        project.recipe(recipe(name, stages=[{**stages()[0], **changes}], **more, **short))
        for name, changes, more in (
            ("on-lost", {"corpora": {"lost": 1.0}}, {}),
            ("too-slow", {"budget": {"steps": 50_000}}, {"limits": {"minutes": 0.02}}),
        )
    ]
    user = person(project.folder)
    listener = Listener(user)
    try:
        codes = [listener.types("run", str(path)).code for path in paths]
        assert codes == [3, 1]
        listener.asks(refresh="nowhere.yaml")
        with sqlite3.connect(user.home / "prefect" / "prefect.db") as database:
            rows = database.execute(
                "select run.name, state.message from flow_run run"
                " join flow_run_state state on run.state_id = state.id where state.type = 'FAILED'"
            )
            # Their names end with the date and time.
            yield {name.rsplit("-", 4)[0]: message for name, message in rows}
    finally:
        listener.close()


def typed(project: Project, name: str) -> str:
    return re.escape(f"`fourstage run {shlex.quote(str(project.folder / 'recipes' / name))}`")


def test_data_that_cannot_be_read(told: dict[str, str], project: Project):
    assert re.search(
        rf"(?s)^source lost: .*data/lost\.jsonl.*\nExit code 3\. Next: .*"
        rf"{typed(project, 'on-lost.yaml')}",
        told["lifecycle-on-lost"],
    )


def test_a_deadline_in_the_stage_s_flow_and_in_the_one_that_called_it(told, project: Project):
    for name in ("pretrain-general-too-slow", "lifecycle-too-slow"):
        assert re.search(
            r"(?s)^general: stopped by the deadline at step \d+ of 50,000.*\nExit code 1\. Next: "
            rf"{typed(project, 'too-slow.yaml')} resumes from the checkpoint",
            told[name],
        )


def test_a_recipe_that_is_not_there_in_a_refresh(told: dict[str, str]):
    assert re.search(
        r"(?s)^recipe: 'nowhere\.yaml' is not .*\nExit code 2\. Next: .*"
        r"`fourstage run nowhere\.yaml --refresh`",
        told["refresh-nowhere"],
    )
