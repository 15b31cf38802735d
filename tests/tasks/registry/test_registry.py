"""Publication, registration, promotion and lineage on a real database, with small real files."""

from __future__ import annotations

import hashlib
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlflow.data
import numpy as np
import pytest

from fourstage.errors import (
    ContractViolation,
    EnvironmentFault,
    GateRefused,
    RecipeError,
    UnknownNameError,
)
from models.stage_format import NETWORK
from tasks.registry import lineage, promote_model
from tasks.registry.decision import decision_of, hold
from tasks.registry.evidence import EVIDENCE, keep_evidence, read_evidence
from tasks.registry.gate import Evidence, Gate, Predictions, decide
from tasks.registry.lineage import impact, trace
from tasks.registry.lineage_views import mermaid, picture, text
from tasks.registry.predict import asking
from tasks.registry.promote_model import (
    Approval,
    ApprovalMissing,
    find_champion,
    find_version_of,
    promote,
    rollback,
    unreadable,
)
from tasks.registry.register_model import register
from tasks.registry.version_card import read_card
from tasks.registry.versions import aliases, registered_name, remember_versions
from tasks.store.ancestry import Ancestry, BrokenLineage, gather
from tasks.store.registry_memory import Version, remembered_versions
from tasks.tracking.connection import Tracking, connect
from tasks.tracking.logged_files import verified
from tasks.tracking.runs import ensure_experiment, log_history, stage_run, start_lifecycle
from tasks.tracking.stage_models import ensure_published, find_published, point_to, publish_stage
from tasks.tracking.tags import KEY
from tests.tasks.lifecycle import STAGES, Lifecycle, history, write_predictions

NAME = "relations"


def ancestry(lifecycle: Lifecycle, name: str) -> Ancestry:
    return gather(lifecycle.store.root, lifecycle[name])


def publish_all(tracking: Tracking, lifecycle: Lifecycle) -> str:
    run = start_lifecycle(tracking, "demo")
    for stage in STAGES:
        found = ensure_published(
            tracking, ancestry(lifecycle, f"stage {stage}"), experiment="demo", parent_run_id=run
        )
        point_to(tracking, run, stage, found)
    return run


def make_version(
    tracking: Tracking, home: Path, package: Path, seed: int, stages: bool = False, **more: Any
) -> Version:
    lifecycle = Lifecycle(home, seed, package, **more)
    run = publish_all(tracking, lifecycle) if stages else start_lifecycle(tracking, "demo")
    return register(
        tracking,
        ancestry(lifecycle, "package"),
        name=NAME,
        run_id=run,
        evaluation=ancestry(lifecycle, "evaluation"),
    )


def evidence(home: Path, version: Version) -> Evidence:
    folder = home / "store" / "evaluation" / version.tags["fourstage.evaluation_key"]
    facts = json.loads((folder / "predictions.json").read_text())
    said = Predictions(*(tuple(facts[name]) for name in ("ids", "labels", "predicted")))
    return Evidence(version.number, version.metrics, said)


def gate_for(tracking: Tracking, home: Path, version: Version) -> Gate:
    champion, fault = find_champion(tracking, NAME)
    return decide(
        NAME,
        {"accuracy": {"at_least": 0.7, "not_below_champion_by": 0.1}},
        evidence(home, version),
        evidence(home, champion) if champion else None,
        champion_version=champion.number if champion else None,
        champion_fault=fault,
    )


def promoted(tracking: Tracking, home: Path, version: Version) -> None:
    promote(tracking, gate_for(tracking, home, version), smoke_test=False)


def test_a_trained_stage_is_published_once_with_everything(
    tracking: Tracking, lifecycle: Lifecycle
):
    parent = start_lifecycle(tracking, "demo")
    experiment = ensure_experiment(tracking, "demo")
    first = ensure_published(tracking, ancestry(lifecycle, "stage general"), experiment="demo")
    stage = ancestry(lifecycle, "stage domain")
    run = stage_run(tracking, experiment, stage.root, stage="domain", parent_run_id=parent)
    log_history(tracking, run, history(10))
    published = publish_stage(tracking, run, stage, tags={"prefect.flow_run_id": "f1"})
    assert publish_stage(tracking, run, stage) == published

    logged = tracking.client.get_run(run)
    assert logged.info.status == "FINISHED"
    assert [data.dataset.name for data in logged.inputs.dataset_inputs] == ["trials"]
    assert len(logged.inputs.dataset_inputs[0].dataset.digest) == 36
    tags = {tag.key: tag.value for tag in logged.inputs.dataset_inputs[0].tags}
    assert tags["fourstage.digest"] == lifecycle["corpus trials"].digest
    assert [model.model_id for model in logged.inputs.model_inputs] == [first.model_id]
    assert [model.model_id for model in logged.outputs.model_outputs] == [published.model_id]
    assert len(tracking.client.get_metric_history(run, "loss")) == 20
    # Single figures would be curves of one point.
    assert set(logged.data.metrics) == {"loss", "learning_rate", "heldout_loss/trials"}
    note = logged.data.tags["mlflow.note.content"]
    assert f"[general](#/experiments/{experiment}/models/{first.model_id})" in note
    assert "corpus trials, 3 kept of 3" in note
    source = mlflow.data.get_source(logged.inputs.dataset_inputs[0])
    assert source.to_dict()["url"] == "https://example.org/trials"
    assert {item.path for item in tracking.client.list_artifacts(run)} == {"contracts", "loss.png"}

    model = tracking.client.get_logged_model(published.model_id)
    assert model.tags["fourstage.parent_model_id"] == first.model_id
    assert model.tags["fourstage.tokenizer_digest"] == lifecycle["tokenizer"].digest
    trials = lifecycle["contract corpus trials"].digest
    assert model.tags["fourstage.contract.corpus trials"] == trials
    assert model.tags["fourstage.licences"] == "CC-BY-SA-4.0, CC0-1.0"
    assert model.tags["git.commit"] == "1234567" * 5 + "12345"
    assert model.tags["prefect.flow_run_id"] == "f1"
    place = Path(next(tracking.folder.rglob(f"{published.model_id}/artifacts")))
    files = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    assert files == {
        "network.safetensors",
        "heads/masked_lm.safetensors",
        "config.json",
        "tokenizer/vocabulary.txt",
        "lineage/manifests.json",
        "lineage/files.json",
    }


def test_a_reused_stage_makes_no_new_run(tracking: Tracking, lifecycle: Lifecycle):
    publish_all(tracking, lifecycle)
    again = publish_all(tracking, lifecycle)
    found = tracking.client.search_runs(
        [ensure_experiment(tracking, "demo")], "tags.`fourstage.kind` = 'stage'"
    )
    assert len(found) == len(STAGES)
    tags = tracking.client.get_run(again).data.tags
    assert tags["fourstage.stage.domain.key"] == lifecycle["stage domain"].key


def test_a_half_made_model_is_made_again(tracking: Tracking, lifecycle: Lifecycle):
    stage = ancestry(lifecycle, "stage general")
    experiment = ensure_experiment(tracking, "demo")
    run = stage_run(tracking, experiment, stage.root, stage="general")
    tags = {"fourstage.key": stage.root, "fourstage.digest": stage.artifact.digest}
    half_made = [
        tracking.client.create_logged_model(
            experiment, name="general", source_run_id=run, tags={**tags, "fourstage.home": home}
        )
        for home in (tracking.home, "another")
    ]
    assert find_published(tracking, stage.artifact) is None
    published = publish_stage(tracking, run, stage)
    assert find_published(tracking, stage.artifact) == published
    left = {model.model_id for model in tracking.client.search_logged_models([experiment])}
    assert left == {half_made[1].model_id, published.model_id}, "another home is at work on its own"


def test_a_kill_before_a_run_is_closed_is_mended_by_publishing_again(lifecycle, tracking):
    stage = ancestry(lifecycle, "stage general")
    first = ensure_published(tracking, stage, experiment="demo")
    tracking.client.set_terminated(first.run_id, status="KILLED")
    assert find_published(tracking, stage.artifact) is None
    assert ensure_published(tracking, stage, experiment="demo") == first
    run = tracking.client.get_run(first.run_id)
    assert run.info.status == "FINISHED"
    assert [output.model_id for output in run.outputs.model_outputs] == [first.model_id]


def test_homes_that_trained_a_key_to_other_weights_each_publish_their_own(
    tracking: Tracking, home: Path, saved_model: Path, tmp_path: Path
):
    other = tmp_path / "other"
    theirs = connect(tracking.uri, other)
    versions = [
        make_version(tracking, home, saved_model, 1, stages=True),
        make_version(theirs, other, saved_model, 1, stages=True, machine=2),
    ]
    assert [version.number for version in versions] == [1, 2]
    for number, of, folder, machine in ((1, tracking, home, 1), (2, theirs, other, 2)):
        made = Lifecycle(folder, 1, saved_model, machine=machine)
        # Either home traces both versions; it holds the weights of its own alone.
        for asked in (of, theirs, tracking):
            found = trace(asked, f"models:/{NAME}/{number}", asked.folder / "store")
            general = next(hop for hop in found.hops if hop.manifest.stage == "general")
            assert general.manifest.weights_digest == made["stage general"].outputs[NETWORK]
            assert general.held_by == (("mlflow", "store") if asked is of else ("mlflow",))
            assert general.run_id
            assert general.model_id
            model = of.client.get_logged_model(general.model_id)
            assert model.source_run_id == general.run_id
            assert model.tags["fourstage.weights_digest"] == general.manifest.weights_digest
    keys = {
        ancestry(Lifecycle(f, 1, machine=m), "stage general").root
        for f, m in ((home, 1), (other, 2))
    }
    assert len(keys) == 1


def test_homes_that_train_a_key_at_the_same_time_write_two_runs(
    tracking: Tracking, lifecycle: Lifecycle, tmp_path: Path
):
    stage = ancestry(lifecycle, "stage general")
    theirs = connect(tracking.uri, tmp_path / "other")
    experiment = ensure_experiment(tracking, "demo")
    ours, other = (
        stage_run(t, experiment, stage.root, stage="general") for t in (tracking, theirs)
    )
    assert ours != other
    tracking.client.set_terminated(ours, status="KILLED")
    assert stage_run(tracking, experiment, stage.root, stage="general") == ours
    assert ensure_published(tracking, stage, experiment="demo").run_id == ours
    # The other one ends with the same weights: they need no second model.
    second = ensure_published(theirs, stage, experiment="demo")
    assert second.run_id == other
    assert second.model_id == find_published(tracking, stage.artifact).model_id
    # A third home that has them already makes no run.
    third = connect(tracking.uri, tmp_path / "third")
    assert ensure_published(third, stage, experiment="demo").run_id in (ours, other)


def test_no_text_reaches_mlflow(tracking: Tracking, home: Path, saved_model: Path, tmp_path: Path):
    version = make_version(tracking, home, saved_model, 1, stages=True)
    promoted(tracking, home, version)
    outside = [path for path in home.rglob("*") if path.is_file() and "store" not in path.parts]
    assert not [path for path in outside if b"zqxcanary" in path.read_bytes()]


def test_the_same_package_is_one_version(tracking: Tracking, home: Path, saved_model: Path):
    first = make_version(tracking, home, saved_model, 1)
    again = make_version(tracking, home, saved_model, 1)
    other = make_version(tracking, home, saved_model, 2)
    assert (first.number, first.created) == (1, True)
    assert (again.number, again.created) == (1, False)
    assert other.number == 2
    assert first.aliases == ("challenger",)
    assert first.metrics["accuracy"] > 0.8


def test_versions_are_remembered_with_as_many_questions_however_many_there_are(
    tracking: Tracking, monkeypatch: pytest.MonkeyPatch
):
    """Each night adds one, and to name its aliases MLflow reads every version of the model."""
    tracking.client.create_registered_model(NAME)
    asked: list[str] = []
    for question in ("get_registered_model", "get_model_version", "search_model_versions"):
        ask = getattr(tracking.client, question)

        def noted(*args: Any, ask: Any = ask, question: str = question, **more: Any) -> Any:
            asked.append(question)
            return ask(*args, **more)

        monkeypatch.setattr(tracking.client, question, noted)
    questions = []
    for number in range(1, 6):
        tags = {KEY: f"k{number}"}
        tracking.client.create_model_version(NAME, f"s3://bucket/{number}", tags=tags)
        tracking.client.set_registered_model_alias(NAME, "champion", str(number))
        asked.clear()
        remember_versions(tracking, NAME)
        questions.append(len(asked))
    assert questions[0] == questions[-1]
    found = {each.number: each for each in remembered_versions(tracking.folder, NAME)}
    assert sorted(found) == [1, 2, 3, 4, 5]
    assert [found[n].aliases for n in (4, 5)] == [(), ("champion",)]
    assert found[5] == find_version_of(tracking, NAME, 5)


def test_two_at_once_register_one_version(tracking: Tracking, home: Path, saved_model: Path):
    lifecycle = Lifecycle(home, 1, saved_model)
    run = publish_all(tracking, lifecycle)
    package = ancestry(lifecycle, "package")

    def one(_: int) -> Version:
        return register(connect(), package, name=NAME, run_id=run)

    with ThreadPoolExecutor(3) as pool:
        versions = list(pool.map(one, range(3)))
    assert {version.number for version in versions} == {1}
    assert sum(version.created for version in versions) == 1


def test_smoke_runs_have_names_of_their_own():
    assert registered_name("relations", smoke=True) == "relations-smoke"
    with pytest.raises(RecipeError, match="choose another name"):
        registered_name("relations-smoke", smoke=False)


def test_a_broken_ancestry_is_not_registered(tracking: Tracking, home: Path, saved_model: Path):
    lifecycle = Lifecycle(home, 1, saved_model)
    run = publish_all(tracking, lifecycle)
    shutil.rmtree(lifecycle["corpus trials"].folder)
    with pytest.raises(BrokenLineage, match="corpus"):
        register(tracking, ancestry(lifecycle, "package"), name=NAME, run_id=run)


def test_promotion_moves_previous_and_champion(tracking: Tracking, home: Path, saved_model: Path):
    for seed in (1, 2, 3):
        promoted(tracking, home, make_version(tracking, home, saved_model, seed))
    assert aliases(tracking, NAME) == {"champion": 3, "previous": 2}
    assert rollback(tracking, NAME).champion.number == 2
    assert aliases(tracking, NAME) == {"champion": 2, "previous": 1}
    assert rollback(tracking, NAME).champion.number == 1
    with pytest.raises(GateRefused, match="version 1 is the first champion"):
        rollback(tracking, NAME)
    assert aliases(tracking, NAME) == {"champion": 1}


def test_a_rollback_needs_no_older_version_and_none_that_a_cut_off_move_left(
    tracking: Tracking, home: Path, saved_model: Path
):
    for seed in (1, 2, 3):
        promoted(tracking, home, make_version(tracking, home, saved_model, seed))
    tracking.client.delete_model_version(NAME, "1")
    assert rollback(tracking, NAME).champion.number == 2
    assert aliases(tracking, NAME) == {"champion": 2}
    tracking.client.set_registered_model_alias(NAME, "previous", "2")
    with pytest.raises(GateRefused, match="version 2 is champion and previous champion at once"):
        rollback(tracking, NAME)


def test_rollback_of_an_unknown_model_names_the_nearest(
    tracking: Tracking, home: Path, saved_model: Path
):
    make_version(tracking, home, saved_model, 1)
    with pytest.raises(UnknownNameError, match="did you mean 'relations'"):
        rollback(tracking, "relation")


def test_a_refusal_leaves_the_champion_and_its_reasons(
    tracking: Tracking, home: Path, saved_model: Path
):
    best = make_version(tracking, home, saved_model, 1)
    promoted(tracking, home, best)
    worse = make_version(tracking, home, saved_model, 2, correct=0.5)
    with pytest.raises(GateRefused, match="accuracy at_least"):
        promoted(tracking, home, worse)
    assert aliases(tracking, NAME)["champion"] == 1
    tags = tracking.client.get_model_version(NAME, "2").tags
    assert tags["fourstage.gate"] == "refused"
    found = tracking.client.get_run(str(worse.run_id)).data.metrics
    assert found["gate/accuracy/difference"] == pytest.approx(
        worse.metrics["accuracy"] - 0.9, abs=0.1
    )
    assert found["gate/accuracy/lower_bound"] < found["gate/accuracy/difference"] < 0
    model = tracking.client.get_logged_model(str(worse.model_id))
    assert found.items() <= {metric.key: metric.value for metric in model.metrics}.items()
    report = json.loads(next(home.rglob("version-2.json")).read_text())
    assert report["decision"] == "refuse"
    assert report["champion_version"] == 1
    assert "**failed**" in next(home.rglob("version-2.md")).read_text()


def test_only_one_of_two_promotions_at_once_wins(tracking: Tracking, home: Path, saved_model: Path):
    promoted(tracking, home, make_version(tracking, home, saved_model, 1))
    rivals = [make_version(tracking, home, saved_model, seed) for seed in (2, 3)]
    gates = [gate_for(tracking, home, rival) for rival in rivals]

    def one(gate: Gate) -> int | str:
        try:
            return promote(connect(), gate, smoke_test=False).champion.number
        except GateRefused as refusal:
            return str(refusal)

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(one, gates))
    (winner,) = [outcome for outcome in outcomes if isinstance(outcome, int)]
    (loser,) = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert "compared with version 1, but the champion is version" in loser
    assert "out of date" in loser
    assert aliases(tracking, NAME)["champion"] == winner


def test_a_champion_that_is_moved_during_the_smoke_test_is_compared_with_anew(
    tracking: Tracking, home: Path, saved_model: Path, monkeypatch: pytest.MonkeyPatch
):
    promoted(tracking, home, make_version(tracking, home, saved_model, 1))
    other, late = (make_version(tracking, home, saved_model, seed) for seed in (2, 3))
    gate = gate_for(tracking, home, late)

    def moves(folder: Path) -> dict[str, Any]:
        tracking.client.set_registered_model_alias(NAME, "champion", str(other.number))
        return {}

    monkeypatch.setattr(promote_model, "try_in_a_fresh_process", moves)
    with pytest.raises(GateRefused, match="with version 1, but the champion is version 2 by now"):
        promote(tracking, gate)
    assert aliases(tracking, NAME)["champion"] == 2


def test_a_champion_whose_files_are_gone_stops_promotion_unless_forced(
    tracking: Tracking, home: Path, saved_model: Path
):
    first = make_version(tracking, home, saved_model, 1)
    promoted(tracking, home, first)
    shutil.rmtree(next(home.rglob(f"{first.model_id}")))
    assert unreadable(tracking, first)
    second = make_version(tracking, home, saved_model, 2)
    gate = gate_for(tracking, home, second)
    assert "champion version 1 cannot be read" in gate.reason
    assert "--force" in gate.reason
    with pytest.raises(GateRefused):
        promote(tracking, gate, smoke_test=False)
    assert promote(tracking, gate, force=True, smoke_test=False).champion.number == 2
    assert tracking.client.get_model_version(NAME, "2").tags["fourstage.gate"] == "forced"


def test_a_version_that_has_to_be_approved_waits_for_somebody(
    tracking: Tracking, home: Path, saved_model: Path
):
    promoted(tracking, home, make_version(tracking, home, saved_model, 1))
    second = make_version(tracking, home, saved_model, 2)
    word = Approval("ada", "looked at the errors")

    def gate() -> Gate:
        return replace(gate_for(tracking, home, second), asks="its recipe wants it")

    with pytest.raises(ApprovalMissing, match=f"fourstage promote {NAME} --version 2 --approve"):
        promote(tracking, gate(), smoke_test=False)
    assert aliases(tracking, NAME) == {"champion": 1, "challenger": 2}
    # What was to be approved was a comparison with version 1.
    promoted(tracking, home, make_version(tracking, home, saved_model, 3))
    with pytest.raises(GateRefused, match=r"version 2 was compared with version 1, .* version 3"):
        promote(tracking, gate(), approval=word, smoke_test=False)
    with pytest.raises(ApprovalMissing):
        promote(tracking, gate(), smoke_test=False)
    done = promote(tracking, gate(), approval=word, smoke_test=False)
    assert aliases(tracking, NAME) == {"champion": 2, "previous": 3}
    assert "approved by ada: looked at the errors" in done.reason
    tags = tracking.client.get_model_version(NAME, "2").tags
    assert tags["fourstage.approved_by"] == "ada"
    assert tags["fourstage.approval_reason"] == "looked at the errors"
    assert tags["fourstage.gate"] == "promoted"


def test_what_somebody_took_out_of_use_comes_back_only_where_somebody_agrees(
    tracking: Tracking, home: Path, saved_model: Path
):
    rules = {"require": {}, "overlap": ["report", 0], "contracts": {}}
    for seed in (1, 2, 3):
        version = make_version(tracking, home, saved_model, seed, stages=True)
        keep_evidence(tracking, version, evidence(home, version), rules)

    def asks(number: int) -> str:
        gate = hold(tracking, NAME, number)
        assert gate.decision == ("wait" if gate.asks else "promote"), gate.reason
        return gate.asks

    for number in (1, 2):
        promote(tracking, hold(tracking, NAME, number), smoke_test=False)
    rollback(tracking, NAME)
    assert "somebody rolled version 2 back" in asks(2)
    assert asks(1) == asks(3) == ""
    word = Approval("ada", "it was the data")
    promote(tracking, hold(tracking, NAME, 2), approval=word, smoke_test=False)
    promote(tracking, hold(tracking, NAME, 3), smoke_test=False)
    assert asks(2) == ""
    tracking.client.delete_registered_model_alias(NAME, "champion")
    assert "has no champion while version 2 is the previous one" in asks(1)


def test_an_approval_is_none_of_a_version_that_fails_its_gate(
    tracking: Tracking, home: Path, saved_model: Path
):
    worse = make_version(tracking, home, saved_model, 1, correct=0.5)
    gate = replace(gate_for(tracking, home, worse), asks="its recipe wants it")
    with pytest.raises(GateRefused, match="accuracy at_least"):
        promote(tracking, gate, approval=Approval("ada", "all the same"), smoke_test=False)
    assert aliases(tracking, NAME) == {"challenger": 1}


@pytest.mark.parametrize("reason", ["", " \n"])
def test_an_approval_has_a_reason(reason: str):
    with pytest.raises(RecipeError, match="approval_reason: expected a reason why"):
        Approval("ada", reason)


def test_a_promotion_again_changes_nothing(tracking: Tracking, home: Path, saved_model: Path):
    version = make_version(tracking, home, saved_model, 1)
    promoted(tracking, home, version)
    gate = gate_for(tracking, home, version)
    again = promote(tracking, gate)
    assert not again.changed
    assert again.replaced is None
    assert aliases(tracking, NAME) == {"champion": 1}
    decision = decision_of(tracking, gate, again)
    assert (decision["decision"], decision["reason"]) == ("keep", "there was nothing to decide")
    assert tracking.client.get_model_version(NAME, "1").tags["fourstage.gate"] == "promoted"


def test_a_promotion_that_was_killed_in_the_move_is_completed(
    tracking: Tracking, home: Path, saved_model: Path
):
    version = make_version(tracking, home, saved_model, 1)
    tracking.client.set_registered_model_alias(NAME, "champion", "1")
    assert aliases(tracking, NAME) == {"challenger": 1, "champion": 1}
    promote(tracking, gate_for(tracking, home, version), smoke_test=False)
    assert aliases(tracking, NAME) == {"champion": 1}


def test_a_version_that_cannot_be_loaded_never_becomes_the_champion(
    tracking: Tracking, home: Path, saved_model: Path, tmp_path: Path
):
    promoted(tracking, home, make_version(tracking, home, saved_model, 1))
    shutil.copytree(saved_model, tmp_path / "broken")
    (tmp_path / "broken" / "saved_model" / "saved_model.pb").write_bytes(b"zqx")
    broken = make_version(tracking, home, tmp_path / "broken", 2)
    with pytest.raises(GateRefused, match="failed its smoke test"):
        promote(tracking, gate_for(tracking, home, broken))
    assert aliases(tracking, NAME) == {"champion": 1, "challenger": 2}
    assert tracking.client.get_model_version(NAME, "2").tags["fourstage.gate"] == "refused"


def artifacts(home: Path, model_id: str | None) -> Path:
    return next(home.rglob(f"{model_id}/artifacts"))


def test_code_that_was_put_into_a_registered_model_is_not_run(
    tracking: Tracking, home: Path, saved_model: Path, tmp_path: Path
):
    first, second = (make_version(tracking, home, saved_model, seed) for seed in (1, 2))
    promoted(tracking, home, first)
    for number, version in ((1, first), (2, second)):
        code = artifacts(home, version.model_id) / "text_model.py"
        code.write_text(code.read_text() + f"\nopen({str(tmp_path / 'ran')!r}, 'w')\n")
        altered = f"text_model.py of {version.model_id} is not the file that was logged"
        with pytest.raises(ContractViolation, match=altered):
            asking(f"{NAME}/{number}").__enter__()
        with pytest.raises(BrokenLineage, match=altered):
            trace(tracking, f"models:/{NAME}/{number}", home / "store")
    # Neither is such a champion compared with, nor does such a challenger take its place.
    gate = gate_for(tracking, home, second)
    assert "champion version 1 cannot be read: text_model.py" in gate.reason
    with pytest.raises(GateRefused, match=f"failed its smoke test: {altered}"):
        promote(tracking, gate, force=True)
    assert aliases(tracking, NAME) == {"champion": 1, "challenger": 2}
    assert not (tmp_path / "ran").exists()


def test_only_what_was_logged_is_in_the_copy_that_is_loaded(
    tracking: Tracking, home: Path, saved_model: Path
):
    version = make_version(tracking, home, saved_model, 1)
    place = artifacts(home, version.model_id)
    logged = {path.relative_to(place) for path in place.rglob("*") if path.is_file()}
    (place / "tensorflow_text.py").write_text("raise SystemExit")
    with verified(tracking, version.model_id) as folder:
        copied = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    assert copied == logged


def test_one_byte_of_a_stage_or_its_listing_breaks_the_trace(
    tracking: Tracking, home: Path, saved_model: Path
):
    make_version(tracking, home, saved_model, 1, stages=True)
    found = trace(tracking, f"models:/{NAME}/1", home / "store")
    task = next(hop for hop in found.hops if hop.manifest.stage == "task")
    place = artifacts(home, task.model_id)
    for name in ("network.safetensors", "heads/masked_lm.safetensors", "lineage/files.json"):
        whole = (place / name).read_bytes()
        (place / name).write_bytes(whole[:-1] + b"\0")
        with pytest.raises(BrokenLineage, match=f"stage task: {name} of {task.model_id} is not"):
            trace(tracking, f"models:/{NAME}/1", home / "store")
        (place / name).write_bytes(whole)
    # What is gone the store may still have; what nobody has is a fault.
    (place / "network.safetensors").unlink()
    found = trace(tracking, f"models:/{NAME}/1", home / "store")
    assert next(hop for hop in found.hops if hop.manifest.stage == "task").held_by == ("store",)
    shutil.rmtree(home / "store")
    with pytest.raises(BrokenLineage, match=r"neither MLflow nor the store .*is gone"):
        trace(tracking, f"models:/{NAME}/1", home / "store")


def test_a_gate_reads_no_files_again_that_the_champion_is_made_of(
    tracking: Tracking, home: Path, saved_model: Path, monkeypatch: pytest.MonkeyPatch
):
    """A stage that continues every night has one more before it each time."""
    for seed in (1, 2):
        version = make_version(tracking, home, saved_model, seed, stages=True)
        rules = {"require": {}, "contracts": {}, "overlap": ["refuse", 0]}
        keep_evidence(tracking, version, evidence(home, version), rules)
        if seed == 1:
            promote(tracking, hold(tracking, NAME, 1), smoke_test=False)
    names = {hop.model_id: hop.manifest.name for hop in trace(tracking, f"models:/{NAME}/2").hops}
    read: list[str] = []
    check = lineage.check_files

    def noted(tracking: Tracking, model_id: str) -> None:
        read.append(names[model_id])
        check(tracking, model_id)

    monkeypatch.setattr(lineage, "check_files", noted)
    assert hold(tracking, NAME, 2).decision == "promote"
    assert read == ["stage finetune", "package"]


def test_evidence_that_was_altered_decides_nothing(
    tracking: Tracking, home: Path, saved_model: Path
):
    version = make_version(tracking, home, saved_model, 1)
    keep_evidence(tracking, version, evidence(home, version), {"require": {}})
    version = find_version_of(tracking, NAME, 1)
    kept, _ = read_evidence(tracking, version)
    assert kept.metrics == version.metrics
    path = next(home.rglob("evaluation/version-1.json"))
    path.write_text(path.read_text().replace('"accuracy": 0.', '"accuracy": 1.'))
    with pytest.raises(EnvironmentFault, match="or was altered there"):
        read_evidence(tracking, version)


@pytest.mark.parametrize("place", ["evidence", "predictions"])
def test_evidence_of_a_newer_fourstage_is_refused_by_name(
    tracking: Tracking, home: Path, saved_model: Path, place: str
):
    """After a return to older code; what it can't judge it must not judge by the rest."""
    version = make_version(tracking, home, saved_model, 1)
    keep_evidence(tracking, version, evidence(home, version), {"require": {}})
    path = next(home.rglob("evaluation/version-1.json"))
    kept = json.loads(path.read_text("utf-8"))
    of = kept["evidence"] if place == "evidence" else kept["evidence"]["predictions"]
    of["abstained"] = [False]
    content = json.dumps(kept)
    path.write_text(content, "utf-8")
    digest = hashlib.sha256(content.encode()).hexdigest()
    tracking.client.set_model_version_tag(NAME, "1", EVIDENCE, digest)
    said = f"kept by a newer version of Fourstage, with abstained.* `fourstage rollback {NAME}`"
    with pytest.raises(EnvironmentFault, match=said):
        hold(tracking, NAME, 1)


def test_a_trace_is_complete_from_mlflow_alone(tracking: Tracking, home: Path, saved_model: Path):
    promoted(tracking, home, make_version(tracking, home, saved_model, 1, stages=True))
    shutil.rmtree(home / "store")
    found = trace(tracking, f"models:/{NAME}@champion", home / "store")
    assert found.told_by == "mlflow"
    stages = [hop for hop in found.hops if hop.manifest.stage]
    assert [hop.manifest.stage for hop in stages] == list(STAGES)
    assert all(hop.run_id and hop.model_id and hop.commit for hop in stages)
    kinds = {hop["kind"] for hop in found.to_json()["hops"]}
    assert {"corpus", "dataset", "contract", "tokenizer", "tokens", "package"} <= kinds
    assert "stage general" in text(found)
    assert "flowchart TD" in mermaid(found)
    assert picture(found).startswith(b"\x89PNG")


def test_a_trace_ends_with_the_last_evaluation(
    tracking: Tracking, home: Path, saved_model: Path, capsys: pytest.CaptureFixture[str]
):
    lifecycle, address = Lifecycle(home, 1, saved_model), f"models:/{NAME}/1"
    run, package = publish_all(tracking, lifecycle), ancestry(lifecycle, "package")

    def registered() -> tuple[Version, Ancestry]:
        evaluation = ancestry(lifecycle, "evaluation")
        made = register(tracking, package, name=NAME, run_id=run, evaluation=evaluation)
        return made, evaluation

    def evaluations() -> list[str]:
        hops = trace(tracking, address, home / "store").hops
        assert all("mlflow" in hop.held_by for hop in hops)
        return [hop.manifest.key for hop in hops if hop.manifest.kind == "evaluation"]

    _, first = registered()
    assert evaluations() == [first.root]
    labels = np.arange(60) % 2
    lifecycle.make(
        "evaluation",
        "evaluation",
        {"metrics": ["accuracy", "macro_f1"]},
        {"stage": "stage finetune", "rows": "tokens dataset relations"},
        lambda folder: write_predictions(folder, labels, labels),
    )
    version, last = registered()
    assert (version.number, version.created, first.root != last.root) == (1, False, True)
    assert evaluations() == [first.root]
    assert "was evaluated again since it was registered" in capsys.readouterr().err
    keep_evidence(tracking, version, evidence(home, version), {"require": {}}, last)
    shutil.rmtree(home / "store")
    assert evaluations() == [first.root, last.root]
    facts, _ = read_card(tracking, address, home / "store")
    assert facts.scores["metrics"] == {"accuracy": 1.0}
    assert "again" not in capsys.readouterr().err


def test_a_trace_asks_for_the_models_of_its_own_artifacts_alone(
    tracking: Tracking, home: Path, saved_model: Path, monkeypatch: pytest.MonkeyPatch
):
    """A server has the models of every night, and of other teams."""
    for seed in (1, 2):
        make_version(tracking, home, saved_model, seed, stages=True)
    before = trace(tracking, f"models:/{NAME}/2", home / "store")
    read: list[str] = []
    search = tracking.client.search_logged_models

    def noted(*args: Any, **more: Any) -> Any:
        found = search(*args, **more)
        read.extend(model.model_id for model in found)
        return found

    monkeypatch.setattr(tracking.client, "search_logged_models", noted)
    assert trace(tracking, f"models:/{NAME}/2", home / "store") == before
    assert sorted(read) == sorted(hop.model_id for hop in before.hops if hop.model_id)


def test_a_trace_is_complete_from_the_store_where_mlflow_lost_the_model(
    tracking: Tracking, home: Path, saved_model: Path
):
    version = make_version(tracking, home, saved_model, 1)
    shutil.rmtree(next(home.rglob(f"{version.model_id}")))
    assert trace(tracking, f"models:/{NAME}/1", home / "store").told_by == "store"
    shutil.rmtree(home / "store")
    with pytest.raises(BrokenLineage, match="MLflow has lost its lineage"):
        trace(tracking, f"models:/{NAME}/1", home / "store")


def test_a_trace_fails_at_a_hop_that_is_not_what_it_claims(
    tracking: Tracking, home: Path, saved_model: Path
):
    """Where the store tells it, which has no digest of a whole way."""
    version = make_version(tracking, home, saved_model, 1, stages=True)
    shutil.rmtree(next(home.rglob(f"{version.model_id}")))
    path = Lifecycle(home, 1, saved_model)["corpus trials"].folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["preimage"]["settings"]["snapshot"] = "00" * 32
    path.write_text(json.dumps(manifest))
    with pytest.raises(BrokenLineage, match="its preimage does not give its key"):
        trace(tracking, f"models:/{NAME}/1", home / "store")
    path.unlink()
    with pytest.raises(BrokenLineage, match="can't be read"):
        trace(tracking, f"models:/{NAME}/1", home / "store")


def test_addresses_that_lead_nowhere_are_the_users_errors(
    tracking: Tracking, home: Path, saved_model: Path
):
    make_version(tracking, home, saved_model, 1)
    for address, error, says in (
        ("models:/relation@champion", UnknownNameError, "did you mean 'relations'"),
        ("models:/relations@challanger", UnknownNameError, "did you mean 'challenger'"),
        ("models:/relations/7", RecipeError, "no version 7"),
        ("relations/x/y", RecipeError, "expected"),
    ):
        with pytest.raises(error, match=says):
            trace(tracking, address)


def test_impact_finds_the_versions_that_saw_a_text(
    tracking: Tracking, home: Path, saved_model: Path, capsys: pytest.CaptureFixture[str]
):
    for seed in (1, 2):
        make_version(tracking, home, saved_model, seed)
    lifecycle = Lifecycle(home, 2, saved_model)
    seen = impact(tracking, lifecycle["corpus trials"].digest[:10])
    assert [each.version.number for each in seen] == [1, 2]
    assert seen[0].through == "digest of corpus trials"
    only = impact(tracking, lifecycle["stage finetune"].key)
    assert [each.version.number for each in only] == [2]
    tracking.client.create_registered_model("another team's")
    tracking.client.create_model_version("another team's", source=home.as_uri())
    assert impact(tracking, "0123456789") == []
    assert "unknown for 1 version that Fourstage did not register" in capsys.readouterr().err
    with pytest.raises(RecipeError, match="6 to 64"):
        impact(tracking, "abc")


def test_a_lost_database_is_published_again(
    tracking: Tracking, home: Path, saved_model: Path, tmp_path: Path
):
    make_version(tracking, home, saved_model, 1, stages=True)
    other = tmp_path / "other"
    shutil.copytree(home / "store", other / "store")
    again = connect(f"sqlite:///{other / 'mlflow.db'}", other)
    promoted(again, other, make_version(again, other, saved_model, 1, stages=True))
    found = trace(again, f"models:/{NAME}@champion", other / "store")
    assert all(hop.run_id for hop in found.hops if hop.manifest.stage)


def test_a_database_that_goes_away_is_an_environment_fault(
    tracking: Tracking, home: Path, saved_model: Path
):
    version = make_version(tracking, home, saved_model, 1)
    (home / "mlflow.db").write_bytes(b"no database")
    # Not that its files are lost, for which the gate offers --force.
    with pytest.raises(EnvironmentFault, match="file is not a database"):
        unreadable(tracking, version)
    with pytest.raises(EnvironmentFault, match=r"file is not a database.*Restore it from a backup"):
        start_lifecycle(tracking, "demo")
