"""``fourstage up`` and what it is for: a run that nobody starts, from its cron to the alias."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from fourstage.settings import PAGES, REPOSITORY, TAG
from tests.flows.conftest import Story, free_port
from tests.flows.own_project import Project
from tests.flows.person import Person, living
from tests.flows.started_up import Up, basic, started_up
from tests.flows.webhook import Webhook, webhook

pytestmark = pytest.mark.slow

RUN_SECONDS = 600
TERMINAL = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


@pytest.fixture(scope="module")
def heard() -> Iterator[Webhook]:
    with webhook() as heard:
        yield heard


@pytest.fixture(scope="module")
def up(story: Story, heard: Webhook, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """The servers with a project's own deployments, the lifecycle each minute.

    They share the home of the smoke runs, so that its text need not be read again.
    """
    folder = tmp_path_factory.mktemp("project") / "一个 project"
    project = Project(folder)
    recipe = yaml.safe_load((REPOSITORY / "recipes" / "quickstart.yaml").read_text("utf-8"))
    recipe |= {"name": "scheduled", "seed": 23}
    recipe["promote"]["model"] = "scheduled"
    project.recipe(recipe)
    deployments = yaml.safe_load((REPOSITORY / "prefect.yaml").read_text("utf-8"))
    weekly = next(each for each in deployments["deployments"] if each["name"] == "weekly")
    weekly["parameters"] = {"recipe": "recipes/scheduled.yaml", "smoke": True}
    weekly["schedules"][0]["cron"] = "* * * * *"
    (folder / "prefect.yaml").write_text(yaml.safe_dump(deployments), "utf-8")
    user = Person(story.person.home, folder, {"FOURSTAGE_WEBHOOK": heard.address})
    with started_up(user, tmp_path_factory.mktemp("up")) as up:
        yield up


def test_up_prints_where_to_look_and_all_of_it_answers(up: Up):
    said = up.said.read_text("utf-8")
    assert f"{up.prefect}/v2" in said
    assert up.mlflow in said
    assert shlex.quote(str(up.person.home / "servers.env")) in said
    assert (up.person.home / PAGES).read_text("utf-8") == f"{up.mlflow}\n"
    assert up.login.split(":")[1] not in said
    assert "Traceback" not in said
    with urllib.request.urlopen(f"{up.mlflow}/health", timeout=30) as answer:
        assert answer.status == 200
    wanted = yaml.safe_load((REPOSITORY / "prefect.yaml").read_text("utf-8"))["deployments"]
    there = up.ask("deployments/filter", {})
    assert {each["name"] for each in there} == {each["name"] for each in wanted}
    assert not any(str(REPOSITORY) in json.dumps(each) for each in there)  # no machine's path
    weekly = next(each for each in there if each["name"] == "weekly")
    assert [schedule["slug"] for schedule in weekly["schedules"]] == ["weekly"]


def test_all_of_it_listens_on_loopback_alone(up: Up):
    listening = set()
    for process in living(up.person.home):
        for connection in process.net_connections(kind="inet"):
            if connection.status == psutil.CONN_LISTEN:
                listening.add(connection.laddr.ip)
    assert listening <= {"127.0.0.1", "::1"}
    assert "127.0.0.1" in listening


def status(request: urllib.request.Request) -> int:
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_no_other_user_and_no_page_of_another_site_may_write(up: Up):
    """Who makes a deployment, or moves an alias, chooses what code is run."""
    own = {"Authorization": basic(up.login)}
    wrong = {"Authorization": basic("fourstage:guessed")}
    json_body = {"Content-Type": "application/json"}
    flow, token = f"{up.prefect}/api/flows/", f"{up.prefect}/api/csrf-token?client=a"
    experiment = f"{up.mlflow}/api/2.0/mlflow/experiments/create"
    foreign = {"Origin": "http://a.page.of.another.site"}
    for address, name, expected in (
        (flow, {}, 403),  # for want of a token, which only who is logged in can get
        (flow, wrong, 403),
        (flow, own | foreign, 403),
        (experiment, {}, 401),
        (experiment, wrong, 401),
        (experiment, own | foreign, 403),
        (experiment, own, 200),
    ):
        body = b'{"name": "by-hand"}'
        request = urllib.request.Request(address, body, json_body | name, method="POST")
        assert status(request) == expected, (address, name)
    request = urllib.request.Request(token, headers=own | foreign)
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.headers["Access-Control-Allow-Origin"] is None  # so a browser hands out none
    for page in (token, f"{up.mlflow}/", f"{up.mlflow}/ajax-api/2.0/mlflow/experiments/search"):
        assert status(urllib.request.Request(page)) == 401


def test_the_login_is_read_by_its_owner_alone(up: Up):
    home = up.person.home
    secrets = [home / "login", home / "servers.env", *(home / "logs").glob("*.log")]
    assert {path.stat().st_mode & 0o777 for path in secrets} == {0o600}
    password = up.login.split(":")[1]
    assert not any(password in path.read_text("utf-8", "replace") for path in secrets[1:])
    for process in living(home):
        assert password not in " ".join(process.cmdline())


def test_a_run_of_another_terminal_joins_in_and_one_without_the_login_is_told_how(up: Up):
    servers = up.person.home / "servers.env"

    def typed(words: str, joining: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", f"{joining} && exec {sys.executable} -m fourstage.command {words}"],
            cwd=up.person.folder,
            env=up.person.variables(SERVERS=str(servers)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
        )

    told = typed("run quickstart --smoke", f"export PREFECT_API_URL={up.prefect}/api")
    assert told.returncode == 1
    assert "PREFECT_API_AUTH_STRING" in told.stderr
    assert "servers.env" in told.stderr
    joined = typed("run quickstart --smoke --json", '. "$SERVERS"')
    assert joined.returncode == 0, joined.stderr
    ours = {"name": {"like_": "lifecycle-quickstart-"}, "tags": {"all_": [TAG]}}
    (run,) = up.ask("flow_runs/filter", {"flow_runs": ours})
    assert run["state_type"] == "COMPLETED"
    looked = typed("doctor --json", '. "$SERVERS"')
    found = {each["check"]: each["status"] for each in json.loads(looked.stdout)}
    assert found["prefect"] == "fine"


def test_a_scheduled_run_goes_from_its_cron_to_the_alias_and_is_told(up: Up, heard: Webhook):
    (weekly,) = up.ask("deployments/filter", {"deployments": {"name": {"any_": ["weekly"]}}})
    assert weekly["parameters"] == {"recipe": "recipes/scheduled.yaml", "smoke": True}
    runs = {"deployments": {"id": {"any_": [weekly["id"]]}}, "sort": "EXPECTED_START_TIME_ASC"}
    deadline = time.monotonic() + RUN_SECONDS
    ended: list[dict[str, Any]] = []
    while not ended:
        assert time.monotonic() < deadline, (up.person.home / "logs" / "worker.log").read_text()
        found = up.ask("flow_runs/filter", runs)
        ended = [run for run in found if run["state_type"] in TERMINAL]
        time.sleep(1)
    run = ended[0]
    log = (up.person.home / "logs" / "worker.log").read_text("utf-8", "replace")
    assert run["state_type"] == "COMPLETED", f"{run['state']['message']}\n{log[-3000:]}"
    assert run["auto_scheduled"] is True
    assert run["name"].startswith(f"lifecycle-scheduled-{run['expected_start_time'][:10]}")
    named = [each["key"] for each in up.ask("artifacts/latest/filter", {})]
    shown = ("stage-general", "stage-finetune", "gate", "lineage", "model-version")
    assert {f"scheduled-smoke-{card}" for card in shown} <= set(named)
    traced = up.person.types("trace", "models:/scheduled-smoke@champion", "--json")
    assert traced.code == 0, traced.told()
    assert traced.json["model"]["version"] == 1
    (told,) = [each for each in heard.told if each["event"] == "fourstage.promoted"]
    assert told["name"] == "scheduled-smoke"
    assert told["numbers"] == {"version": 1, "replaced": None}
    assert told["page"].startswith(f"{up.prefect}/runs/flow-run/")


def test_a_taken_port_is_told_before_anything_starts(up: Up, tmp_path: Path):
    port = up.prefect.rsplit(":", 1)[1]
    other = Person(tmp_path / "home", up.person.folder)
    answer = other.types("up", "--prefect-port", port, "--mlflow-port", str(free_port()))
    assert answer.code == 1, answer.told()
    assert f"port {port}" in answer.err
    assert "--prefect-port" in answer.err
    assert living(other.home) == []


def test_a_stop_that_comes_twice_ends_all_that_was_started(up: Up):
    """The last one: it takes the servers away. A closed terminal and its shell both send one."""
    assert len(living(up.person.home)) >= 4  # itself, server, MLflow, worker
    for _ in range(2):
        up.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
    assert up.process.wait(60) == 143
    assert living(up.person.home) == []
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # closed ones may linger
        probe.bind(("127.0.0.1", int(up.prefect.rsplit(":", 1)[1])))
    assert "Traceback" not in up.said.read_text("utf-8")
