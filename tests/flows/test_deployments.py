"""prefect.yaml, held against everything that Prefect would let pass without a word.

Prefect ignores unknown keys, stores unknown parameters, deploys flows it can't import and, with a
wrong schedule, skips the whole file.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import socketserver
import threading
import urllib.request
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import yaml
from prefect.exceptions import ParameterTypeError
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from fourstage.command.project_deployments import KEPT, project_deployments
from fourstage.command.servers import deploy, work_pool
from fourstage.errors import EnvironmentFault
from fourstage.settings import PRIVATE_ENVIRONMENT, REPOSITORY, TAG
from tests.flows.conftest import served_prefect
from tests.flows.databases import put_prefect

FILE = REPOSITORY / "prefect.yaml"
FLOWS = REPOSITORY / "flows"
# A comparison is asked for, never scheduled; a search is what `finetune` begins with.
NO_DEPLOYMENT = {"__init__", "compare", "search"}


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Flows are imported here, and the first import of one makes its home."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("home")
        patch.setenv("FOURSTAGE_HOME", str(home))
        patch.setenv("PREFECT_HOME", str(home / "prefect"))
        yield


@pytest.fixture(scope="module")
def raw() -> dict[str, Any]:
    values = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    values.pop("definitions")  # YAML anchors; Prefect looks at none of it
    return values


@pytest.fixture(scope="module")
def deployments(raw: dict[str, Any]) -> list[dict[str, Any]]:
    return raw["deployments"]


def strict(model: type[BaseModel], made: dict[type, type[BaseModel]]) -> type[BaseModel]:
    """A model's twin that forbids every key it does not know, at any depth."""
    if model not in made:
        fields = {
            name: (twin(field.annotation, made), field)
            for name, field in model.model_fields.items()
        }
        made[model] = create_model(
            f"Strict{model.__name__}",
            __config__=ConfigDict(extra="forbid", populate_by_name=True),
            **fields,
        )
    return made[model]


def twin(annotation: Any, made: dict[type, type[BaseModel]]) -> Any:
    """An annotation with Prefect's models in it replaced by their strict twins."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return strict(annotation, made)
    origin, inner = get_origin(annotation), get_args(annotation)
    if not inner:
        return annotation
    inner = tuple(twin(part, made) for part in inner)
    if origin is list:
        return list[inner[0]]
    if origin is dict:
        return dict[inner[0], inner[1]]
    union = inner[0]
    for part in inner[1:]:
        union |= part
    return union


@pytest.fixture(scope="module")
def strict_file() -> type[BaseModel]:
    from prefect.cli.deploy import _models as models

    made: dict[type, type[BaseModel]] = {}
    # Prefect takes a schedule in four forms; ours are of the one that people write.
    schedule = strict(models.RawScheduleConfig, made)
    fields: dict[str, Any] = {
        name: (twin(field.annotation, made), field)
        for name, field in models.DeploymentConfig.model_fields.items()
        if name not in ("schedule", "schedules", "sla", "concurrency_limit")
    }
    fields["schedules"] = (list[schedule], [])
    fields["concurrency_limit"] = (strict(models.ConcurrencyLimitSpec, made), ...)
    forbid = ConfigDict(extra="forbid", populate_by_name=True)
    made[models.DeploymentConfig] = create_model("Deployment", __config__=forbid, **fields)
    return strict(models.PrefectYamlModel, made)


def test_every_key_is_one_that_prefect_knows(raw, strict_file):
    loaded = strict_file.model_validate(raw)
    assert len(loaded.deployments) == len(raw["deployments"])


@pytest.mark.parametrize(
    "place",
    [(), ("deployments", 0), ("deployments", 0, "work_pool"), ("deployments", 0, "schedules", 0)],
)
def test_an_unknown_key_would_be_seen(raw, strict_file, place):
    changed = yaml.safe_load(yaml.safe_dump(raw))
    at = changed
    for step in place:
        at = at[step]
    at["shedules"] = []
    with pytest.raises(ValidationError, match="shedules"):
        strict_file.model_validate(changed)


def flow_of(deployment: dict[str, Any]) -> Any:
    module, name = deployment["entrypoint"].split(":")
    return getattr(import_module(module), name)


def test_every_entrypoint_is_a_module_with_a_flow(deployments):
    from prefect import Flow

    for deployment in deployments:
        assert re.fullmatch(r"flows\.\w+:\w+", deployment["entrypoint"]), deployment["name"]
        assert isinstance(flow_of(deployment), Flow)
        assert deployment["description"].endswith(".")


def test_every_flow_has_a_deployment(deployments):
    there = {
        deployment["entrypoint"].split(":")[0].removeprefix("flows.") for deployment in deployments
    }
    assert there == {path.stem for path in FLOWS.glob("*.py")} - NO_DEPLOYMENT


def test_every_parameter_binds_and_has_the_right_type(deployments):
    for deployment in deployments:
        flow = flow_of(deployment)
        inspect.signature(flow.fn).bind(**deployment["parameters"])
        flow.validate_parameters(deployment["parameters"])
        for schedule in deployment.get("schedules", []):
            flow.validate_parameters(deployment["parameters"] | schedule.get("parameters", {}))


def test_every_stage_of_the_default_recipe_has_a_deployment(deployments):
    recipe = yaml.safe_load((REPOSITORY / "recipes" / "quickstart.yaml").read_text("utf-8"))
    stages = {stage["stage"] for stage in recipe["stages"]}
    by_stage = {d["parameters"]["stage"]: d for d in deployments if "stage" in d["parameters"]}
    assert set(by_stage) == stages
    models = {d["parameters"]["model"] for d in deployments if "model" in d["parameters"]}
    assert models == {recipe["promote"]["model"]}


def test_recipes_are_there_under_a_path_relative_to_the_project(deployments):
    for deployment in deployments:
        recipe = deployment["parameters"].get("recipe")
        if recipe:
            assert not Path(recipe).is_absolute()
            assert (REPOSITORY / recipe).is_file()


def test_every_schedule_has_a_slug_a_zone_and_a_cron_that_parses(deployments):
    from prefect.client.schemas.schedules import CronSchedule

    slugs = []
    for deployment in deployments:
        for schedule in deployment.get("schedules", []):
            assert CronSchedule(cron=schedule["cron"], timezone=schedule["timezone"])
            slugs.append(schedule["slug"])
    assert slugs
    assert len(slugs) == len(set(slugs))


def test_the_lifecycle_runs_weekly(deployments):
    (weekly,) = [d for d in deployments if d["entrypoint"] == "flows.lifecycle:lifecycle"]
    minute, hour, day, month, weekday = weekly["schedules"][0]["cron"].split()
    assert (day, month) == ("*", "*")
    assert weekday.isdigit()
    assert minute.isdigit()
    assert hour.isdigit()


def test_one_run_of_a_deployment_at_a_time_and_the_next_waits(deployments):
    for deployment in deployments:
        assert deployment["concurrency_limit"] == {"limit": 1, "collision_strategy": "ENQUEUE"}
        assert deployment["work_pool"]["name"] == "fourstage"


def test_a_run_is_born_with_the_settings_that_prefect_reads_before_our_code(deployments):
    """Whatever starts the worker; `fourstage up` alone would set them itself."""
    names = ("PREFECT_FLOWS_HEARTBEAT_FREQUENCY", "DO_NOT_TRACK")
    wanted = {name: PRIVATE_ENVIRONMENT[name] for name in names}
    for deployment in deployments:
        assert deployment["work_pool"]["job_variables"] == {"env": wanted}, deployment["name"]


def test_on_a_server_of_many_only_what_is_ours_is_met(deployments):
    """Each deployment bears our tag, and nothing is triggered by a run without it."""
    assert all(TAG in deployment["tags"] for deployment in deployments)
    triggers = []
    for name in ("automations.yaml", "notifications.yaml"):
        automations = yaml.safe_load((REPOSITORY / name).read_text(encoding="utf-8"))
        triggers += [each["trigger"] for each in automations["automations"]]
    triggers += [each for deployment in deployments for each in deployment.get("triggers", [])]
    ours = {"prefect.resource.id": f"prefect.tag.{TAG}", "prefect.resource.role": "tag"}
    for trigger in triggers:
        if trigger["match"] == {"prefect.resource.id": "fourstage.*"}:
            continue  # events of ours
        related = trigger["match_related"]
        assert ours in (related if isinstance(related, list) else [related])


def test_no_path_of_a_machine_is_in_it(raw):
    text = FILE.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w:/}.])/(home|root|Users|work|tmp|usr|opt)\b", text)
    (step,) = raw["pull"]
    # Without `pull` the deploying machine's folder would be stored.
    assert step == {
        "prefect.deployments.steps.set_working_directory": {"directory": "{{ $FOURSTAGE_ROOT }}"}
    }


def test_a_new_project_deploys_its_own_recipe_and_schedules_no_run(strict_file, tmp_path):
    text = project_deployments("My 项目 (2)", "recipes/mine.yaml", "mine")
    file = tmp_path / "prefect.yaml"
    file.write_text(text, "utf-8")
    assert work_pool(file) == "My-项目-2"
    assert work_pool(tmp_path / "other.yaml") == work_pool(REPOSITORY / "prefect.yaml")
    values = yaml.safe_load(text)
    values.pop("definitions")
    assert strict_file.model_validate(values)
    deployments = values["deployments"]
    entrypoints = [deployment["entrypoint"] for deployment in deployments]
    assert len(set(entrypoints)) == len(entrypoints) == len(KEPT)
    for deployment in deployments:
        assert deployment["name"] == deployment["work_pool"]["name"] == "My-项目-2"
        assert TAG in deployment["tags"]
        flow_of(deployment).validate_parameters(deployment["parameters"])
    named = [d["parameters"] for d in deployments if "most_starts" not in d["parameters"]]
    assert {tuple(each.items()) for each in named} == {
        (("recipe", "recipes/mine.yaml"),),
        (("recipe", "recipes/mine.yaml"), ("minutes", 60)),
        (("model", "mine"),),
    }
    active = [d["entrypoint"] for d in deployments for s in d.get("schedules", []) if s["active"]]
    assert active == ["flows.janitor:janitor"]


@pytest.mark.parametrize(
    ("entrypoint", "parameters", "told"),
    [
        ("flows.compare:compare", {"recipes": ["a"], "equal": "token"}, "'tokens' or 'time'"),
        ("flows.compare:compare", {"recipes": ["a"], "seeds": [-1]}, "greater than or equal to 0"),
        ("flows.choose:choose", {"recipe": "a", "minutes": 0}, "greater than or equal to 1"),
    ],
)
def test_a_form_refuses_what_the_command_line_refuses(entrypoint, parameters, told):
    with pytest.raises(ParameterTypeError, match=told):
        flow_of({"entrypoint": entrypoint}).validate_parameters(parameters)


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("2026", "2026"),
        ("2026-11-29", "2026-11-29"),
        ("on", "on"),
        ("null", "null"),
        ("prefect-demo", "project-prefect-demo"),
        ("Prefect", "project-Prefect"),
    ],
)
def test_no_project_has_a_name_that_yaml_or_prefect_takes_for_something_else(
    tmp_path, folder, name
):
    file = tmp_path / "prefect.yaml"
    file.write_text(project_deployments(folder, "recipes/mine.yaml", "mine"), "utf-8")
    assert work_pool(file) == name
    values = yaml.safe_load(file.read_text("utf-8"))  # as Prefect does
    named = [(each["name"], each["work_pool"]["name"]) for each in values["deployments"]]
    assert set(named) == {(name, name)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("deployments: [{name: 2026, work_pool: {name: mine}}]", "got 2026, as YAML reads it"),
        ("deployments: [{name: mine, work_pool: {name: on}}]", "got True, as YAML reads it"),
        ("deployments: [{name: mine}]", "each has a `name:` and a `work_pool:`"),
        ("deployments: [{name: mine, work_pool: mine}]", "each has a `name:` and a `work_pool:`"),
        ("name: mine", "expected a list `deployments:`"),
        ("deployments: []", "got no deployments"),
        (
            "deployments: [{name: a, work_pool: {name: x}}, {name: a, work_pool: {name: y}}]",
            "expected one work pool for all deployments, got x, y",
        ),
    ],
)
def test_up_says_what_is_wrong_with_the_names_in_a_file_of_ones_own(tmp_path, text, told):
    file = tmp_path / "prefect.yaml"
    file.write_text(text, "utf-8")
    with pytest.raises(EnvironmentFault, match=re.escape(told)):
        work_pool(file)


def test_deploying_asks_nobody_outside_of_this_machine(
    empty_prefect: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Prefect's own command for work pools has the server look them up at GitHub."""
    (tmp_path / "fourstage.project").touch()
    monkeypatch.chdir(tmp_path)
    put_prefect(empty_prefect, tmp_path / "prefect")
    asked: list[bytes] = []

    class Proxy(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked.append(self.rfile.readline())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever, args=[0.01], daemon=True).start()
        outside = f"http://127.0.0.1:{proxy.server_address[1]}"
        proxied = {"HTTPS_PROXY": outside, "HTTP_PROXY": outside, "NO_PROXY": "127.0.0.1"}
        with served_prefect(tmp_path / "prefect", **proxied) as address:
            deploy({**os.environ, **PRIVATE_ENVIRONMENT, **proxied, "PREFECT_API_URL": address})
            with urllib.request.urlopen(f"{address}/work_pools/fourstage", timeout=60) as answer:
                made = json.load(answer)
        proxy.shutdown()
    assert made["type"] == "process"
    assert "env" in made["base_job_template"]["variables"]["properties"]
    assert asked == []


def test_names_are_unique(deployments):
    names = [deployment["name"] for deployment in deployments]
    assert len(names) == len(set(names))
