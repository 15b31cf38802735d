"""``fourstage up``: it starts alone and on ports of its own; what ends at night starts again."""

from __future__ import annotations

import os
import socket
from functools import partial
from pathlib import Path

import pytest

from fourstage.command import servers
from fourstage.command.servers import Servers
from fourstage.errors import EnvironmentFault

# Two seconds at first, then none at all.
SHORTER = "echo started; test -e again || { touch again; sleep 2; }"


@pytest.mark.parametrize("name", ["worker", "mlflow"])
def test_what_ended_is_started_again_unless_it_ends_at_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(servers, "START_AGAIN_SECONDS", 1.5)
    ours, where = Servers(tmp_path), {"environment": {"PATH": os.defpath}, "folder": tmp_path}
    ours.start("prefect-server", "/bin/sh", "-c", "sleep 60", **where)
    start = partial(ours.start, name, "/bin/sh", "-c", SHORTER, **where)
    start()
    try:
        with pytest.raises(EnvironmentFault, match=f"{name} ended with status 0"):
            ours.keep_running({name: start})
    finally:
        ours.stop()
    assert ours.log(name).read_text().split() == ["started", "started"]
    assert ours.log(name).stat().st_mode & 0o777 == 0o600
    assert f"the {name} has ended; it is started again" in capsys.readouterr().err


def test_a_home_is_served_by_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A second one on other ports would take over the addresses in `servers.env`."""
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path))
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    already = f"serves the home {tmp_path} already, as process {os.getpid()}"
    with servers._alone(), pytest.raises(EnvironmentFault, match=already):
        servers.up(1, 2)
    with servers._alone():  # after the first has ended
        pass


def test_the_port_of_pages_that_nobody_starts_may_be_taken(monkeypatch: pytest.MonkeyPatch):
    """MLflow's own server listens on 5000 by default, as `up` does where there is none."""
    with socket.socket() as theirs, socket.socket() as free:
        for each in (theirs, free):
            each.bind((servers.LOOPBACK, 0))
        theirs.listen()
        taken, ours = (each.getsockname()[1] for each in (theirs, free))
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{taken}")
        free.close()
        servers._require_ports(ours, taken)
        monkeypatch.delenv("MLFLOW_TRACKING_URI")
        with pytest.raises(EnvironmentFault, match=f"port {taken} on .* with --mlflow-port"):
            servers._require_ports(ours, taken)
        with pytest.raises(EnvironmentFault, match=f"two ports, got {ours} twice"):
            servers._require_ports(ours, ours)
