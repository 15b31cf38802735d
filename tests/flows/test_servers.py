"""A server that is not there: said at once, with what to do, and no stack trace."""

from __future__ import annotations

import re
import time

import psutil
import pytest

from tests.flows.own_project import recipe, stages
from tests.flows.person import living

pytestmark = pytest.mark.slow

NOBODY = "http://127.0.0.1:9"  # the port of `discard`, where nobody listens


@pytest.mark.parametrize(
    ("variable", "address", "says"),
    [
        ("PREFECT_API_URL", f"{NOBODY}/api", r"PREFECT_API_URL.*(unset|without)"),
        ("MLFLOW_TRACKING_URI", NOBODY, r"MLFLOW_TRACKING_URI.*(unset|without)"),
    ],
)
def test_a_server_that_does_not_answer_ends_a_run_within_a_minute(
    person, project, variable, address, says
):
    user = person(project.folder, **{variable: address})
    answer = user.types("run", "small", "--json")
    assert answer.code == 1, answer.told()
    assert answer.seconds < 60
    assert answer.out == ""
    assert "Traceback" not in answer.err
    assert "internal error" not in answer.err
    assert NOBODY.removeprefix("http://") in answer.err
    assert re.search(says, answer.err, re.DOTALL), answer.told()
    assert not list((user.home / "store").glob("stage/*"))  # nothing was trained for nothing


def embedded(home) -> list[psutil.Process]:
    """Servers that Prefect started for a run of this home."""
    return [each for each in living(home) if "uvicorn" in each.cmdline()]


def test_a_server_that_a_kill_left_behind_is_ended_by_the_next_start(person, project):
    project.source("absent", files=["data/absent.jsonl"])
    project.recipe(
        recipe("absent", stages=stages(general={"corpora": {"absent": 1.0}}), promote=None)
    )
    user = person(project.folder)
    process = user.start("run", "small")
    deadline = time.monotonic() + 120
    # Alive until it has given its first run an id.
    while not embedded(user.home) or not list((user.home / "store").glob("dataset/*")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    (left,) = embedded(user.home)
    process.kill()
    process.wait()
    assert left.is_running()
    answer = user.types("run", "absent")
    assert answer.code == 3, answer.told()
    left.wait(10)
    assert living(user.home) == []
