"""A server that is not there: said at once, with what to do, and no stack trace."""

from __future__ import annotations

import re

import pytest

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
