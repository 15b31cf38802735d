"""What ``up`` runs: Prefect server, worker, deployments and MLflow's pages, all on loopback."""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO

from fourstage.command.embedded_prefect import ELSEWHERE, starting_prefect
from fourstage.command.login import login_file, write_joining
from fourstage.command.required_servers import MLFLOW, PREFECT, Server, fault_of
from fourstage.digests import write_atomically
from fourstage.errors import EnvironmentFault
from fourstage.settings import PAGES, SHIPPED, WEBHOOK, home, make_home, mlflow_uri, project
from fourstage.strict_yaml import read_document
from fourstage.terminal import say

LEASES = "prefect.server.concurrency.lease_storage.filesystem"
LOOPBACK = "127.0.0.1"
POOL = "fourstage"  # the work pool if no prefect.yaml names one
START_SECONDS = 120  # the first start creates two databases
START_AGAIN_SECONDS = 20  # what ends sooner has a fault that a restart does not fix
# Runs a module with the project's folder last on the path: its flows are found, but shadow nothing.
LAST = (
    "import os, runpy, sys; sys.path.append(os.getcwd()); del sys.argv[0];"
    " runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)
STOP_SECONDS = 30  # training writes its checkpoint within 20


@dataclass
class Servers:
    """Processes that are started and stopped together.

    Args:
        logs: Folder with one log per process.
    """

    logs: Path
    running: dict[str, subprocess.Popen] = field(default_factory=dict)

    def start(
        self,
        name: str,
        *command: str,
        environment: dict[str, str],
        folder: Path,
        lock: IO[str] | None = None,
    ) -> None:
        """Start a process in its own group, so that Ctrl-C reaches it only through us, once.

        If we are killed, it holds the lock until it ends.
        """
        with open(self.logs / f"{name}.log", "ab", opener=_for_us_alone) as log:
            self.running[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=folder,
                start_new_session=True,
                pass_fds=(lock.fileno(),) if lock else (),
            )

    def wait_for(
        self, name: str, server: Server, address: str, environment: Mapping[str, str]
    ) -> None:
        """Wait until a server answers as it should.

        Raises:
            EnvironmentFault: Its process ends, or it does not answer within two minutes.
        """
        deadline = time.monotonic() + START_SECONDS
        while fault := fault_of(server, address, environment, seconds=5):
            self.check()
            if time.monotonic() > deadline:
                raise EnvironmentFault(
                    f"{name} at {address} {fault}, {START_SECONDS} s after it was started. Its log:"
                    f" {self.log(name)}"
                )
            time.sleep(0.3)

    def check(self) -> None:
        """Check that no process has ended by itself.

        Raises:
            EnvironmentFault: One has; the message names it and its log.
        """
        for name, process in self.running.items():
            if process.poll() is not None:
                raise EnvironmentFault(
                    f"{name} ended with status {process.returncode}. Its log: {self.log(name)}"
                )

    def keep_running(self, starts: Mapping[str, Callable[[], None]]) -> None:
        """Start what has ended by itself again, until something ends that can't be.

        Args:
            starts: What starts a process, by its name.

        Raises:
            EnvironmentFault: Another process has ended, or one that was started a moment ago.
        """
        started = dict.fromkeys(starts, time.monotonic())
        while True:
            for name, start in starts.items():
                ended = self.running[name].poll() is not None
                if ended and time.monotonic() - started[name] > START_AGAIN_SECONDS:
                    say(f"the {name} has ended; it is started again. Its log: {self.log(name)}")
                    start()
                    started[name] = time.monotonic()
            self.check()
            time.sleep(1)

    def log(self, name: str) -> Path:
        """The log of a process."""
        return self.logs / f"{name}.log"

    def stop(self) -> None:
        """Stop every process; the worker first, while its server still listens."""
        worker = self.running.get("worker")
        servers = [process for process in self.running.values() if process is not worker]
        for group in ([worker] if worker else [], servers):
            for process in group:
                _signal_group(process, signal.SIGTERM)
            deadline = time.monotonic() + STOP_SECONDS
            for process in group:
                try:
                    process.wait(max(0.0, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    _signal_group(process, signal.SIGKILL)
                    process.wait()


def up(prefect_port: int = 4200, mlflow_port: int = 5000) -> None:
    """Start everything, print the addresses, and stay until a signal comes.

    A worker runs what a deployment says, so anyone who can write to the server can run code as this
    user. So the servers require a login, which only this user can read, and reject requests from
    pages of other sites.

    Args:
        prefect_port: Port of the Prefect server.
        mlflow_port: Port of MLflow's pages.

    Raises:
        EnvironmentFault: Another process serves the home, a port is taken, or a server does not
            start.
    """
    make_home()
    with _alone():
        _require_ports(prefect_port, mlflow_port)
        _serve(prefect_port, mlflow_port)


def _serve(prefect_port: int, mlflow_port: int) -> None:
    from tasks.tracking.connection import connect
    from tasks.tracking.mlflow_pages import LOGIN

    logs = home() / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    prefect, mlflow = f"http://{LOOPBACK}:{prefect_port}", f"http://{LOOPBACK}:{mlflow_port}"
    login = login_file().read_text(encoding="utf-8").strip()
    environment = os.environ | {
        "FOURSTAGE_HOME": str(home()),
        "PREFECT_API_URL": f"{prefect}/api",
        "PREFECT_API_AUTH_STRING": login,
    }
    of_prefect = {
        "PYTHONSAFEPATH": "1",  # -P for its child processes
        "PREFECT_SERVER_API_HOST": LOOPBACK,
        "PREFECT_UI_API_URL": f"{prefect}/api",
        "PREFECT_UI_URL": prefect,  # in notifications
        "PREFECT_SERVER_API_AUTH_STRING": login,
        "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": prefect,
        # By default the holders of a limit are kept in memory and forgotten at a restart.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": LEASES,
    }
    # `prefect deploy` would fill this in, but only the worker knows where the project is.
    environment.pop("FOURSTAGE_ROOT", None)
    # -P: files of the project may shadow packages.
    python = (sys.executable, "-P")
    with ExitStack() as stack:
        servers = Servers(logs)
        stack.callback(servers.stop)
        say("starting a Prefect server and MLflow …")
        # Create the database here: a server that is killed at its first start would leave half.
        tracking = connect()
        starts: dict[str, Callable[[], None]] = {}
        if tracking.local:
            environment["FOURSTAGE_MLFLOW_UI"] = mlflow
            write_atomically(home() / PAGES, mlflow + "\n")  # for links in runs that connect
            # Runs do without these pages, and the schedule must not end with them.
            starts["mlflow"] = partial(
                servers.start,
                "mlflow",
                *(*python, "-m", "uvicorn", "--factory", "tasks.tracking.mlflow_pages:pages"),
                *ELSEWHERE,
                *("--host", LOOPBACK, "--port", str(mlflow_port), "--log-level", "warning"),
                environment=environment | {LOGIN: login},
                folder=project(),
            )
            starts["mlflow"]()
        with starting_prefect() as lock:
            servers.start(
                "prefect-server",
                *(*python, "-m", "prefect", "server", "start"),
                *("--host", LOOPBACK, "--port", str(prefect_port)),
                environment=environment | of_prefect,
                folder=project(),
                lock=lock,
            )
            servers.wait_for("prefect-server", PREFECT, f"{prefect}/api", environment)
        deploy(environment)

        starts["worker"] = partial(
            servers.start,
            "worker",
            *(*python, "-m", "prefect", "worker", "start"),
            *("--pool", work_pool(project() / "prefect.yaml"), "--type", "process"),
            environment=environment | {"FOURSTAGE_ROOT": str(project())},
            folder=project(),
        )
        starts["worker"]()
        joining = write_joining(f"{prefect}/api")
        if tracking.local:
            user, password = login.split(":")
            credentials = {"MLFLOW_TRACKING_USERNAME": user, "MLFLOW_TRACKING_PASSWORD": password}
            servers.wait_for("mlflow", MLFLOW, mlflow, credentials)
        say(f"Prefect  {prefect}/v2/dashboard")
        say(f"MLflow   {mlflow if tracking.local else tracking.address}")
        say('         (its switch at the top left: "Model training", once)')
        say(f"logs     {logs}")
        say(f"login    cat {shlex.quote(str(login_file()))}")
        say("         (Prefect asks for the whole line, MLflow for user and password separately)")
        say(f"To use these servers from another terminal: . {shlex.quote(str(joining))}")
        say("Ctrl-C ends all of them.")
        servers.keep_running(starts)


def deploy(environment: dict[str, str]) -> None:
    """Create the work pool, every deployment of ``prefect.yaml`` and the automations.

    The project's own files take precedence. Deployments of ours that ``prefect.yaml`` no longer
    names are removed. A project without one gets none: the demo's are for the clone only.

    Raises:
        EnvironmentFault: Prefect refuses; the message quotes it.
    """
    own = project() / "prefect.yaml"
    pool = work_pool(own)
    _module(environment, "tasks.orchestration.work_pools", pool)
    files = (str(own),) if own.is_file() else ()
    for file in files:
        _module(environment, "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", file)
    if not files:
        say(f"there is no {own}, so nothing is deployed; `fourstage new` makes one")
    for removed in _module(environment, "tasks.orchestration.deployments", *files).splitlines():
        say(f"removed the deployment {removed}, which {own} does not name")
    for name in ("automations.yaml", *(["notifications.yaml"] if os.environ.get(WEBHOOK) else [])):
        file = project() / name
        read = file if file.is_file() else SHIPPED / name
        _module(environment, "tasks.orchestration.automations", str(read))


def work_pool(file: Path) -> str:
    """The work pool that a ``prefect.yaml`` gives its deployments.

    Raises:
        EnvironmentFault: They have none, or several, but one worker serves only one.
    """
    if not file.is_file():
        return POOL
    try:
        deployments = read_document(file, file.name).value["deployments"]
        names = [(each["name"], each["work_pool"]["name"]) for each in deployments]
    except (KeyError, TypeError) as error:
        raise EnvironmentFault(
            f"{file}: expected a list `deployments:`, in which each has a `name:` and a"
            " `work_pool:` with a `name:`"
        ) from error
    for name in chain.from_iterable(names):
        if not isinstance(name, str):
            raise EnvironmentFault(
                f"{file}: expected text as the name of a deployment or a work pool, got {name!r},"
                " as YAML reads it: put it in quotes"
            )
    pools = sorted({pool for _, pool in names})
    if len(pools) != 1:
        raise EnvironmentFault(
            f"{file}: expected one work pool for all deployments, got"
            f" {', '.join(pools) or 'no deployments'}; `fourstage up` starts one worker"
        )
    return pools[0]


def _module(environment: dict[str, str], *arguments: str) -> str:
    """Run a module of Prefect or ours; returns its output."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", LAST, *arguments],
        env=environment,
        cwd=project(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise EnvironmentFault(
            f"`{' '.join(arguments[:3])}` failed: {(done.stderr or done.stdout)[-800:]}"
        )
    return done.stdout


@contextmanager
def _alone() -> Iterator[None]:
    """Let no other process serve the home: it would take over the addresses that this one wrote.

    Raises:
        EnvironmentFault: Another process serves it.
    """
    with open(home() / "up.lock", "a+", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise EnvironmentFault(
                f"`fourstage up` serves the home {home()} already, as process {lock.read()}. Join"
                f" its servers (. {shlex.quote(str(home() / 'servers.env'))}), or end it first"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _require_ports(prefect_port: int, mlflow_port: int) -> None:
    """Refuse ports that are taken. MLflow's is not used where the pages are another server's."""
    from tasks.tracking.connection import is_local

    _require_free(prefect_port, "--prefect-port")
    if is_local(mlflow_uri()):
        if mlflow_port == prefect_port:
            raise EnvironmentFault(
                f"--prefect-port and --mlflow-port: expected two ports, got {mlflow_port} twice"
            )
        _require_free(mlflow_port, "--mlflow-port")


def _require_free(port: int, option: str) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise EnvironmentFault(
                f"port {port} on {LOOPBACK} is taken ({error.strerror}); end what listens there or"
                f" choose another with {option}"
            ) from error


def _for_us_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _signal_group(process: subprocess.Popen, number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return
