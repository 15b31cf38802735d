"""What a flow hands to another goes past Prefect's server."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

import pytest
from prefect.states import Completed
from prefect.utilities.collections import visit_collection
from prefect.utilities.engine import resolve_to_final_result

from tasks.orchestration.handing import handed

FLOWS = {
    "lifecycle:lifecycle": {"recipe", "overrides", "smoke", "new_data", "accept_code_change"},
    "prepare:prepare": {"recipe", "overrides", "smoke"},
    "stages:pretrain": {"recipe", "overrides", "smoke", "stage"},
    "stages:adapt": {"recipe", "overrides", "smoke", "stage"},
    "stages:finetune": {"recipe", "overrides", "smoke", "stage"},
    "evaluate:evaluate": {"recipe", "overrides", "smoke"},
}


@dataclass
class Run:
    """JSON could be made of it."""

    text: str = "zqxcanary"


def test_prefect_stores_only_that_there_was_an_object():
    prepare = import_module("flows.prepare").prepare
    stored = prepare.serialize_parameters({"recipe": "quickstart", "run": handed(Run())})
    assert stored == {"recipe": "quickstart", "run": "<InMemory>"}


def test_prefect_does_not_look_into_it_and_passes_the_object_itself():
    result = Completed(data=1)
    run = {"made": result}
    given = (handed(run), resolve_to_final_result)
    passed = visit_collection(*given, return_data=True, remove_annotations=True, context={})
    assert passed is run
    assert run["made"] is result  # where Prefect looks it is 1


@pytest.mark.parametrize(("entrypoint", "parameters"), FLOWS.items())
def test_a_deployment_knows_plain_json_alone(entrypoint: str, parameters: set[str]):
    module, name = entrypoint.split(":")
    flow = getattr(import_module(f"flows.{module}"), name)
    assert flow.name == name
    assert set(flow.parameters.properties) == parameters


def test_a_flow_refuses_anything_else_in_its_place():
    from prefect.exceptions import ParameterTypeError

    prepare = import_module("flows.prepare").prepare
    with pytest.raises(ParameterTypeError):
        prepare.validate_parameters({"recipe": "quickstart", "run": Run()})
