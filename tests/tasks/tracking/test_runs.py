"""Runs in MLflow on a real SQLite database."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from fourstage.errors import EnvironmentFault
from tasks.orchestration.processes import HOST, PROCESS, STARTED, alive, identity
from tasks.tracking.connection import Tracking, connect, every
from tasks.tracking.orphans import close_orphans
from tasks.tracking.runs import (
    ensure_experiment,
    finish_run,
    flat,
    log_history,
    metric_name,
    stage_run,
    start_lifecycle,
    system_metrics,
)
from tests.tasks.lifecycle import history

KEY = "ab" * 32


def test_artifacts_of_a_local_database_lie_under_the_home(tracking: Tracking, home: Path):
    run = start_lifecycle(tracking, "demo", resolved="name: demo\n")
    finish_run(tracking, run)
    assert [path.read_text() for path in home.rglob("recipe.yaml")] == ["name: demo\n"]
    assert not Path("mlruns").exists()
    assert tracking.client.get_run(run).info.status == "FINISHED"


def test_a_word_that_reads_like_a_path_is_a_name_of_a_metric(tracking: Tracking):
    words = ("w/", "/", "..", "http://x", "a/b", "苹果", "e.g.", "x" * 239 + "/")
    names = {metric_name(f"polysemy/{word}/within") for word in words}
    assert {"polysemy/w/_within", "polysemy/a/b/within", "polysemy/e.g./within"} < names
    run = start_lifecycle(tracking, "words")
    log_history(tracking, run, [{"step": 0, **dict.fromkeys(names, 0.5)}])
    assert tracking.client.get_run(run).data.metrics.keys() == names
    assert len(names) == len(words)


def test_one_experiment_whoever_comes_first(tracking: Tracking):
    with ThreadPoolExecutor(4) as pool:
        ids = set(pool.map(lambda _: ensure_experiment(tracking, "demo"), range(4)))
    assert len(ids) == 1


def test_a_search_goes_on_to_the_last_page(tracking: Tracking):
    ids = {ensure_experiment(tracking, name) for name in ("one", "two", "three")}
    found = every(tracking.client.search_experiments, max_results=1)
    assert ids < {experiment.experiment_id for experiment in found}


def test_a_stage_has_one_run_however_often_it_is_killed(tracking: Tracking):
    experiment = ensure_experiment(tracking, "demo")
    settings = {"optimizer": {"adamw": {"rate": 5e-4}}, "phases": [{"length": 64}], "seed": 1}
    runs = set()
    for _ in range(3):
        run = stage_run(tracking, experiment, KEY, stage="general", settings=settings)
        finish_run(tracking, run, "KILLED")
        runs.add(run)
    assert len(runs) == 1
    data = tracking.client.get_run(runs.pop()).data
    assert data.params == {"optimizer.adamw.rate": "0.0005", "phases.0.length": "64", "seed": "1"}


def test_a_stage_is_found_from_another_recipe(tracking: Tracking):
    first = stage_run(tracking, ensure_experiment(tracking, "a"), KEY, stage="general")
    assert stage_run(tracking, ensure_experiment(tracking, "b"), KEY, stage="general") == first


def test_each_step_is_logged_once_over_interruptions(tracking: Tracking):
    run = stage_run(tracking, ensure_experiment(tracking, "demo"), KEY, stage="general")
    rows = history(1500)
    assert log_history(tracking, run, rows[:600]) == 1200
    database = tracking.folder / "mlflow.db"
    whole = database.read_bytes()
    database.write_bytes(b"no database")
    with pytest.raises(EnvironmentFault):
        log_history(tracking, run, rows[:700])
    database.write_bytes(whole)
    assert log_history(tracking, run, rows[:700]) == 200
    # Another process goes on from an older checkpoint and offers some steps again.
    resumed = connect(tracking.uri, tracking.folder)
    assert log_history(resumed, run, rows[650:]) == 2 * 800 + 1
    steps = [metric.step for metric in tracking.client.get_metric_history(run, "loss")]
    assert sorted(steps) == list(range(1, 1501))


def test_runs_of_dead_processes_are_closed_and_no_others(tracking: Tracking):
    mine = start_lifecycle(tracking, "demo")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    gone = start_lifecycle(tracking, "demo", tags={PROCESS: str(dead.pid)})
    reused = start_lifecycle(tracking, "demo", tags={STARTED: "12.00"})
    elsewhere = start_lifecycle(tracking, "demo", tags={HOST: "another", PROCESS: str(dead.pid)})
    assert set(close_orphans(tracking)) == {gone, reused}
    status = {run: tracking.client.get_run(run).info.status for run in (mine, gone, elsewhere)}
    assert status == {mine: "RUNNING", gone: "KILLED", elsewhere: "RUNNING"}


def test_a_process_is_told_apart_by_host_pid_and_start():
    assert identity() == identity()
    assert identity().keys() == {HOST, PROCESS, STARTED}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process has a wall-clock start")
def test_setting_the_clock_makes_no_living_process_look_dead(monkeypatch):
    tags, started, moved = identity(), psutil.Process().create_time(), psutil.boot_time() - 3600
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: moved)
    assert abs(psutil.Process().create_time() - started) > 3000
    assert alive(tags)


def test_flat_settings_name_every_leaf():
    assert flat({"a": {"b": [1, 2]}, "c": [], "d": None, "e": {}}) == {
        "a.b": "[1, 2]",
        "c": "[]",
        "d": "None",
        "e": "{}",
    }


def test_the_machine_is_watched_while_a_stage_trains(tracking: Tracking):
    run = stage_run(tracking, ensure_experiment(tracking, "demo"), KEY, stage="general")
    for _ in range(2):
        with system_metrics(tracking, run, seconds=1):
            time.sleep(2.5)
    seen = tracking.client.get_metric_history(run, "system/cpu_utilization_percentage")
    steps = [metric.step for metric in seen]
    assert len(steps) >= 2
    assert len(steps) == len(set(steps)), "an interrupted stage goes on counting"
