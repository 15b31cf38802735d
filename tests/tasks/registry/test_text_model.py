"""The registered model as strangers meet it: in a fresh process, behind a server, from a server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from fourstage.errors import EnvironmentFault
from tasks.registry import fresh_process
from tasks.registry.fresh_process import get_ready, try_in_a_fresh_process
from tasks.registry.gate import Evidence, decide
from tasks.registry.lineage import trace
from tasks.registry.promote_model import promote
from tasks.registry.register_model import register
from tasks.store.ancestry import gather
from tasks.tracking.connection import Tracking, connect
from tasks.tracking.logged_files import verified
from tasks.tracking.runs import start_lifecycle
from tasks.tracking.stage_models import ensure_published
from tests.models.clean_process import CleanProcess
from tests.tasks.lifecycle import STAGES, Lifecycle

# What MLflow copies into a model and runs there.
CODES = [
    path
    for path in sorted(Path(fresh_process.__file__).parent.glob("*.py"))
    if "\nset_model(" in path.read_text("utf-8")
]

# Describing a model must not import TensorFlow: it would cost each packaging half a minute.
PACKAGING = """
import sys
from pathlib import Path
from tasks.registry.register_model import save_text_model
save_text_model(Path(sys.argv[1]), Path(sys.argv[2]))
assert "tensorflow" not in sys.modules, "describing a model imported TensorFlow"
"""


@pytest.fixture(scope="module")
def model_folder(saved_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "我的 model's"
    subprocess.run([sys.executable, "-c", PACKAGING, str(saved_model), str(folder)], check=True)
    return folder


def test_a_stranger_predicts_from_raw_text(model_folder: Path, elsewhere: CleanProcess):
    asked = ["one", "one two", "one two three", "词 词", "one two \ud83d"]  # half of an emoji
    answers, nothing = elsewhere.predicts(model_folder, asked, [])
    assert [answer["label"] for answer in answers] == ["alpha", "beta", "gamma", "beta", "beta"]
    for answer in answers:
        assert answer["score"] == max(answer["probabilities"].values())
        assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    assert nothing == []
    taken = json.loads(elsewhere.signature(model_folder)["inputs"])
    assert taken == [{"type": "string", "required": True}]


@pytest.mark.parametrize("code", CODES, ids=lambda path: path.stem)
def test_every_model_registers_the_tokenizers_operations_itself(code: Path):
    """A process that has loaded another model has them already, which would hide it."""
    loads = code.read_text("utf-8").split("def load_context(")[1].split("\n    def ")[0]
    assert loads.index("import tensorflow_text") < loads.index("saved_model.load(")


@pytest.mark.parametrize("code", CODES, ids=lambda path: path.stem)
def test_every_model_drops_half_of_a_character_before_tensorflow_refuses_it(code: Path):
    given = [line for line in code.read_text("utf-8").splitlines() if "tensorflow.constant" in line]
    assert all("encoded" in line for line in given), given


def test_many_texts_are_read_a_few_at_a_time():
    import tensorflow as tf

    from tasks.registry.text_model import AT_ONCE, TextModel

    read = []

    def answer(texts: tf.Tensor) -> dict[str, tf.Tensor]:
        read.append(len(texts))
        return {"output_0": tf.one_hot(tf.strings.length(texts) % 2, 2)}

    model = TextModel()
    model.answer, model.labels = answer, ["even", "odd"]
    answers = model.predict(None, ["x" * n for n in range(10 * AT_ONCE + 1)])
    assert [answer["label"] for answer in answers[:3]] == ["even", "odd", "even"]
    assert len(answers) == sum(read) == 10 * AT_ONCE + 1
    assert max(read) <= AT_ONCE


def test_a_model_names_three_packages_and_no_machine(model_folder: Path):
    wanted = (model_folder / "requirements.txt").read_text().split()
    assert [line.split("==")[0] for line in wanted] == ["tensorflow", "tensorflow-text", "mlflow"]
    described = (model_folder / "MLmodel").read_text()
    assert str(model_folder.parent) not in described
    assert str(Path(__file__).parents[2]) not in described


@pytest.mark.slow
def test_mlflow_serves_it(model_folder: Path, tmp_path: Path):
    port = _free_port()
    command = [sys.executable, "-m", "mlflow", "models", "serve", "--env-manager", "local"]
    command += ["--host", "127.0.0.1", "--port", str(port), "-m", str(model_folder)]
    with _running(command, tmp_path, f"http://127.0.0.1:{port}/ping"):
        url = f"http://127.0.0.1:{port}/invocations"
        answers = _post(url, {"inputs": ["one two", "one"]})["predictions"]
        assert [answer["label"] for answer in answers] == ["beta", "alpha"]
        with pytest.raises(urllib.error.HTTPError) as caught:
            _post(url, {"inputs": [1, 2]})
        assert caught.value.code == 400


@pytest.mark.slow
def test_a_whole_promotion_through_a_tracking_server(
    home: Path, saved_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{tmp_path / 'server.db'}"]
    command += ["--artifacts-destination", str(tmp_path / "artifacts")]
    with _running(command, tmp_path, f"{address}/health"):
        tracking = connect(address, home)
        lifecycle = Lifecycle(home, 1, saved_model)
        run = start_lifecycle(tracking, "demo", resolved="name: demo\n")
        root = lifecycle.store.root
        for stage in STAGES:
            ancestry = gather(root, lifecycle[f"stage {stage}"])
            ensure_published(tracking, ancestry, experiment="demo", parent_run_id=run)
        version = register(
            tracking, gather(root, lifecycle["package"]), name="relations", run_id=run
        )
        gate = decide("relations", {}, Evidence(version.number, {}))
        promotion = promote(tracking, gate)
        assert promotion.champion.aliases == ("champion",)
        assert promotion.smoke["answers"] == 2
        found = trace(tracking, "models:/relations@champion")
        assert [hop.manifest.stage for hop in found.hops if hop.run_id and hop.manifest.stage] == [
            *STAGES
        ]
        assert capsys.readouterr().out == "", "standard output belongs to --json"
        assert tracking.run_page(run).startswith(f"{address}/#/experiments/")
    began = time.monotonic()
    with pytest.raises(EnvironmentFault, match=str(port)):
        start_lifecycle(tracking, "demo")
    assert time.monotonic() - began < 60


def test_a_fresh_process_loads_a_version_and_knows_no_credentials(
    tracking: Tracking, home: Path, saved_model: Path, monkeypatch: pytest.MonkeyPatch
):
    lifecycle = Lifecycle(home, 1, saved_model)
    run = start_lifecycle(tracking, "demo")
    package = gather(lifecycle.store.root, lifecycle["package"])
    version = register(tracking, package, name="relations", run_id=run)
    secrets = ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_PASSWORD", "AWS_SECRET_ACCESS_KEY", "TOKEN")
    for name in secrets:
        monkeypatch.setenv(name, "sqlite:///nowhere/zqx.db")
    get_ready()
    process, end = psutil.Process(fresh_process._ready[0]._process.pid), time.monotonic() + 10
    while not (known := process.environ()) and time.monotonic() < end:
        time.sleep(0.05)  # while a program begins, the kernel shows none
    with verified(tracking, version.model_id) as folder:
        facts = try_in_a_fresh_process(folder)
    assert facts["answers"] == 2
    assert "PATH" in known
    assert not [value for value in known.values() if "zqx" in value]
    assert known["HOME"] != os.environ["HOME"]


def test_a_process_that_nobody_asks_ends_with_the_one_that_started_it(tmp_path: Path):
    lines = (
        "import os, signal, tasks.registry.fresh_process as fresh",
        "fresh.get_ready()",
        "print(fresh._ready[0]._process.pid, flush=True)",
        "os.kill(os.getpid(), signal.SIGKILL)",
    )
    said = subprocess.run([sys.executable, "-c", "\n".join(lines)], stdout=subprocess.PIPE)
    stranger = int(said.stdout)
    if psutil.pid_exists(stranger):
        _, alive = psutil.wait_procs([psutil.Process(stranger)], timeout=60)
        assert not alive


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def _running(command: list[str], folder: Path, ready: str) -> Iterator[None]:
    """A server in a session of its own, so that all its workers end with it."""
    # MLflow starts uvicorn through a shell, which has to find the one beside this Python.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with open(folder / "server.log", "w") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + 120
            while not _answers(ready):
                assert process.poll() is None, (folder / "server.log").read_text()[-2000:]
                assert time.monotonic() < deadline, "the server did not start within 120 s"
                time.sleep(0.5)
            yield
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(30)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except OSError:
        return False


def _post(url: str, payload: dict) -> dict:
    request = urllib.request.Request(
        url, json.dumps(payload).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)
