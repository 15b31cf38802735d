"""The state a flow ends in: what its message tells somebody who typed no command."""

from __future__ import annotations

from typing import Any

import pytest

from fourstage.errors import (
    ContractViolation,
    Diverged,
    EnvironmentFault,
    GateRefused,
    Interrupted,
    RecipeError,
)
from tasks.orchestration.failures import refused, says_what_next


@pytest.mark.parametrize(
    ("error", "code", "following"),
    [
        (
            RecipeError("x.yaml: no seed"),
            2,
            "fix this, then run `{}`; finished steps are reused.",
        ),
        (ContractViolation("rows are gone"), 3, "fix this, then run `{}`; finished steps"),
        (EnvironmentFault("the disk is full"), 1, "`fourstage doctor` shows the cause; "),
        (EnvironmentFault("the disk is full"), 1, "then `{}` continues."),
        (Diverged("the loss is nan"), 1, "change the recipe, then run `{}`; finished steps"),
        (Interrupted("stopped at step 3"), 1, "`{}` resumes from the checkpoint."),
        (GateRefused("no champion"), 4, "fix this, then run `{}`"),
    ],
)
def test_every_error_of_ours_names_its_exit_code_and_the_next_command(error, code, following):
    @says_what_next("run")
    def flow(recipe: str, overrides: list[str] | None = None, smoke: bool = False) -> Any:
        raise error

    state = flow("my recipe.yaml", ["seed=5"], smoke=True)
    assert state.is_failed()
    assert state.message.startswith(f"{error}\nExit code {code}. Next: ")
    assert following.format("fourstage run 'my recipe.yaml' --smoke --set seed=5") in state.message
    assert state.data is error  # what a caller sees raised


def test_the_next_command_is_the_whole_one():
    @says_what_next("promote")
    def promote(
        model: str, version: int, force: bool = False, approved_by: str = "", approval_reason=""
    ) -> Any:
        raise EnvironmentFault("the disk is full")

    @says_what_next("compare")
    def compare(recipes: list[str], seeds: list[int], equal: str, contrasts: list[str]) -> Any:
        raise EnvironmentFault("the disk is full")

    for state, typed in (
        (promote("small", 2, force=True), "fourstage promote small --force --version 2"),
        (
            promote("small", 2, approved_by="ada", approval_reason="a look"),
            "fourstage promote small --version 2 --approve 'a look'",
        ),
        (
            compare(["a", "b"], seeds=[1, 2], equal="tokens", contrasts=["b:a"]),
            "fourstage compare a b --equal tokens --contrast b:a --seeds 1,2",
        ),
    ):
        assert f"then `{typed}` continues." in state.message


def test_a_refresh_is_told_with_its_option():
    @says_what_next("run")
    def lifecycle(recipe: str, overrides: list[str] | None = None, new_data: bool = False) -> Any:
        raise ContractViolation("rows are gone")

    @says_what_next("refresh")
    def refresh(recipe: str, overrides: list[str] | None = None) -> Any:
        raise ContractViolation("rows are gone")

    typed = "fix this, then run `fourstage run a.yaml --refresh --set seed=5`; "
    for state in (lifecycle("a.yaml", ["seed=5"], new_data=True), refresh("a.yaml", ["seed=5"])):
        assert typed in state.message
    assert "run `fourstage run a.yaml`; " in lifecycle("a.yaml").message


def test_what_nobody_foresaw_is_raised_as_it_is():
    @says_what_next("run")
    def flow(recipe: str) -> Any:
        raise KeyError(recipe)

    with pytest.raises(KeyError):
        flow("a.yaml")


def test_a_refusal_is_completed_and_says_what_serves():
    decision = {"decision": "refuse", "reason": "accuracy is too low", "model": {"name": "small"}}
    state = refused({**decision, "champion": 3})
    assert state.is_completed()
    assert state.name == "Refused"
    assert state.message
    assert state.message.startswith("accuracy is too low\nExit code 4. Next: no action needed")
    assert "champion version 3 stays" in state.message
    assert "`fourstage trace models:/small@champion`" in state.message
    none = refused({**decision, "champion": None}).message
    assert none
    assert "there is no champion" in none
    assert "fourstage trace" not in none
