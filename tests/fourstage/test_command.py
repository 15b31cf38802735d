"""The command as a process: how fast it answers, what goes where, which exit code it ends with."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import termios
import time
import zipfile
from pathlib import Path

import pytest

from corpora.archives import contents
from corpora.decoding import lines
from corpora.snapshot import take_snapshot
from data_contracts.sources import load_source
from fourstage.command import main
from fourstage.command.exits import exit_code_of
from fourstage.errors import (
    ContractViolation,
    EnvironmentFault,
    GateRefused,
    Interrupted,
    RecipeError,
    UnknownNameError,
)
from fourstage.settings import REPOSITORY

VERBS = (
    *(
        "run",
        "plan",
        "show",
        "explain",
        "compare",
        "choose",
        "list",
        "new",
        "fetch",
        "trace",
        "impact",
    ),
    *("diff", "report", "evaluate", "predict", "promote", "rollback", "up", "doctor"),
)


@pytest.fixture
def fourstage(tmp_path):
    """Run the command in a process of its own, with a home of its own."""

    def _run(
        *words: str, cwd: Path = REPOSITORY, **environment: str
    ) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-m", "fourstage.command", *words],
            cwd=cwd,
            env={
                **os.environ,
                "FOURSTAGE_HOME": str(tmp_path / "home"),
                "PYTHONPATH": str(REPOSITORY),
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=60,
        )

    return _run


def test_help_answers_in_a_second(fourstage):
    fourstage("--help")  # the first start compiles
    start = time.monotonic()
    done = fourstage("--help")
    assert time.monotonic() - start < 1.5  # one second, and room for a busy machine
    assert done.returncode == 0
    for verb in VERBS:
        assert f"\n    {verb}" in done.stdout, verb


@pytest.mark.parametrize("level", ["1", "2"])
def test_an_interpreter_without_assertions_is_refused(level, fourstage):
    done = fourstage("plan", "quickstart", PYTHONOPTIMIZE=level)
    assert done.returncode == 1
    assert f"PYTHONOPTIMIZE={level}, which strips assertions" in done.stderr


@pytest.mark.parametrize(
    ("closed", "words", "code"),
    [(">&-", "list recipes", 0), ("2>&-", "plan quickstrt", 2), ("<&- >&- 2>&-", "list heads", 0)],
)
def test_closed_streams_change_no_exit_code(closed, words, code):
    command = f"exec {sys.executable} -m fourstage.command {words} {closed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == code
    assert "internal error" not in done.stderr


def test_a_home_that_cannot_be_written_is_no_fault_of_the_data(fourstage):
    done = fourstage("plan", "quickstart", FOURSTAGE_HOME="/proc/self/no-home")
    assert done.returncode == 0, done.stderr
    assert "to be made" in done.stdout


def test_a_home_whose_name_no_address_can_hold_is_refused(fourstage, tmp_path):
    done = fourstage("run", "quickstart", FOURSTAGE_HOME=str(tmp_path / "what?"))
    assert done.returncode == 1
    assert "what? has a question mark in its name" in done.stderr


def test_a_folder_that_was_removed_and_a_user_that_is_none_change_nothing(fourstage, tmp_path):
    (tmp_path / "gone").mkdir()
    command = f"rmdir ../gone; exec {sys.executable} -m fourstage.command plan quickstart"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path / "gone",
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "FOURSTAGE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    done = fourstage("plan", "quickstart", FOURSTAGE_DATA="~no-such-user/data")
    assert done.returncode == 0, done.stderr


def test_a_locale_without_a_character_shows_its_code(fourstage, tmp_path):
    (tmp_path / "recipes").mkdir()
    (tmp_path / "fourstage.project").touch()
    (tmp_path / "recipes" / "名.yaml").touch()
    for words in (("list", "recipes"), ("list", "recipes", "--json")):
        done = fourstage(*words, cwd=tmp_path, PYTHONIOENCODING="ascii")
        assert done.returncode == 0, done.stderr
        assert "\\u540d" in done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb, capsys):
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code == 0
    assert f"usage: fourstage {verb}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [["--help"], ["list", "recipes"], ["list", "sources"], ["plan", "quickstart", "--resolved"]],
)
def test_answers_need_no_heavy_package(words):
    """Each of these would cost seconds: TensorFlow ten, Great Expectations six, MLflow three."""
    code = (
        "import sys\nfrom fourstage.command import main\n"
        f"try: main({words!r})\nexcept SystemExit: pass\n"
        "heavy = {'tensorflow', 'keras', 'mlflow', 'prefect', 'great_expectations', 'pandas',"
        " 'sklearn', 'matplotlib', 'grain'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = ran(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("lst", "'lst' is not a command; did you mean 'list'?"),
        ("list familys", "'familys' is not something to list; did you mean 'families'?"),
        ("list recipes more", "one word too many: 'more'"),
        ("run", "the following arguments are required: RECIPE"),
        ("run quickstart --smok", "run: '--smok' is not an option; did you mean '--smoke'?"),
        ("run quickstrat", "'quickstrat' is not a file or the name of a recipe; did you mean"),
        ("run quickstart --set seed=x", "--set: seed: expected a whole number"),
        ("run quickstart --set famly=x", "did you mean 'family'?"),
        ("plan quickstart --set decontaminate=[nothing]", "'nothing' is not a source"),
        ("explian quickstart", "'explian' is not a command; did you mean 'explain'?"),
        ("promote m --version one", "expected a version number, got 'one'"),
        (
            "promote m --approve=",
            "--approve: expected a reason for the approval, got an empty",
        ),
        ("up --mlflow-port 70000", "expected a port, 1 to 65535, got '70000'"),
        ("compare quickstart --seeds 1,x", "expected whole numbers such as 1,2,3"),
        ("fetch no_such_source", "'no_such_source' is not a source"),
    ],
)
def test_wrong_usage_is_exit_2_with_the_nearest_word(words, message, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path))
    assert main(words.split()) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert not any(tmp_path.iterdir()), "nothing may be started for a wrong command"


def test_a_wrong_recipe_is_refused_before_prefect_starts(fourstage):
    start = time.monotonic()
    done = fourstage("run", "quickstart", "--set", "family=brt", "--json")
    assert time.monotonic() - start < 10
    assert done.returncode == 2
    assert "'brt' is not a family; did you mean 'bert'?" in done.stderr
    assert done.stdout == ""


def test_what_is_frozen_is_looked_up_with_no_word_of_a_library(fourstage):
    done = fourstage("plan", "quickstart", "--set", "stages.finetune.freeze=[embedings/*]")
    *others, last = done.stderr.splitlines()
    assert done.returncode == 2
    assert "stages[3].freeze[0]: 'embedings/*' is not a pattern that matches a weight; did" in last
    assert all("looking up the names of weights" in line for line in others)


def test_a_home_that_cannot_be_written_is_exit_1_and_named(fourstage, tmp_path):
    (tmp_path / "file").touch()
    done = fourstage("run", "quickstart", FOURSTAGE_HOME=str(tmp_path / "file" / "home"))
    assert done.returncode == 1
    assert f"the folder {tmp_path}/file/home can't be written by user {os.getuid()}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RecipeError("wrong"), 2),
        (UnknownNameError("here", "x", "a thing", ["y"]), 2),
        (ContractViolation("broken"), 3),
        (GateRefused("worse"), 4),
        (EnvironmentFault("full"), 1),
        (Interrupted("stopped", signal.SIGTERM), 143),
        (Interrupted("stopped", signal.SIGINT), 130),
        (Interrupted("deadline"), 1),
        (OSError(28, "No space left on device", "x"), 1),
        (MemoryError(), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_every_error_has_its_exit_code_and_no_stack_trace(error, code, capsys):
    def fail() -> int:
        raise error

    before = signal.getsignal(signal.SIGINT)
    hook = sys.excepthook
    try:
        assert exit_code_of(fail) == code
    finally:
        signal.signal(signal.SIGINT, before)
        sys.excepthook = hook
    said = capsys.readouterr().err
    assert said.startswith("fourstage: ")
    assert "Traceback" not in said


def ran(code: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """What a process of these lines said."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.parametrize("wanted", ["0", "1"])
def test_a_stack_trace_is_shown_where_it_is_asked_for(fourstage, wanted):
    done = fourstage("list", "familys", FOURSTAGE_TRACEBACK=wanted)
    assert ("Traceback" in done.stderr) == (wanted == "1")
    assert done.returncode == 2


def test_what_nobody_foresaw_says_the_place_and_not_the_values():
    code = (
        "import sys\nfrom fourstage.command.exits import exit_code_of\n"
        "def f(): raise TypeError('zqxcanary')\nsys.exit(exit_code_of(f))"
    )
    done = ran(code)
    assert done.returncode == 1
    assert "internal error: TypeError at <string>:3" in done.stderr
    assert "zqxcanary" not in done.stderr
    assert "Traceback" not in done.stderr


def test_two_quick_interrupts_end_in_one_line():
    code = (
        "import os, signal, sys, time\nfrom fourstage.command.exits import exit_code_of\n"
        "def f():\n    print('ready', flush=True)\n    time.sleep(30)\n"
        "code = exit_code_of(f)\ntime.sleep(0.5)\nsys.exit(code)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == "fourstage: interrupted; run the same command again to go on\n"


@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_that_arrives_where_a_log_is_written_leaves_no_lock_behind(number, code):
    """Between taking a handler's lock and the ``try`` that would release it."""
    code_of = (
        "import logging, signal, sys, threading, time\n"
        "from fourstage.command.exits import exit_code_of\n"
        "class Log(logging.StreamHandler):\n"
        "    def acquire(self):\n"
        "        super().acquire()\n"
        f"        signal.raise_signal(signal.{number})\n"
        "log = Log(sys.stdout)\n"
        "logging.getLogger().addHandler(log)\n"
        "def command():\n    logging.warning('written')\n    time.sleep(30)\n"
        "code = exit_code_of(command)\n"
        "def other():\n"
        "    free = log.lock.acquire(timeout=5)\n    print(free)\n"
        "    if free: log.lock.release()\n"
        "thread = threading.Thread(target=other)\nthread.start()\nthread.join()\nsys.exit(code)"
    )
    done = ran(code_of)
    assert done.stdout == "written\nTrue\n"
    assert done.returncode == code


def test_a_log_that_blocks_for_ever_does_not_keep_a_signal_off():
    code_of = (
        "import logging, signal, sys, time\n"
        "from fourstage.command.exits import exit_code_of\n"
        "class Log(logging.StreamHandler):\n"
        "    def emit(self, record):\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "        time.sleep(30)\n"
        "logging.getLogger().addHandler(Log())\n"
        "sys.exit(exit_code_of(lambda: logging.warning('never written')))"
    )
    done = ran(code_of, timeout=20)
    assert done.stderr == "fourstage: ended by SIGTERM; run the same command again to go on\n"
    assert done.returncode == 143


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [("SIGTERM", 143, "ended by SIGTERM"), ("SIGINT", 130, "interrupted")],
)
def test_what_fails_because_a_signal_was_swallowed_is_said_to_be_ended(number, code, said):
    """As in Prefect's engine, when a task run is being made."""
    code_of = (
        "import os, signal, sys\nfrom fourstage.command.exits import exit_code_of\n"
        f"def f():\n    try:\n        os.kill(os.getpid(), signal.{number})\n"
        "        while True: pass\n    except BaseException: pass\n    raise ValueError('unset')\n"
        "sys.exit(exit_code_of(f))"
    )
    done = ran(code_of)
    assert done.stderr == f"fourstage: {said}; run the same command again to go on\n"
    assert done.returncode == code


def test_a_reader_that_leaves_is_no_error(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "fourstage.command", "list", "recipes", "--json"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()  # before a word is written, as a `head` that has seen enough
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 128 + signal.SIGPIPE


def test_json_is_alone_on_standard_output_whoever_prints():
    code = (
        "import os, sys\nfrom fourstage.command.output import only_this_on_standard_output\n"
        "with only_this_on_standard_output(True) as say:\n"
        "    print('from Python', flush=True)\n    os.write(1, b'from below\\n')\n"
        "    os.system('echo from a child')\n    say({'a': 1})\n"
        "print('after')"
    )
    done = ran(code)
    assert done.stdout == '{\n "a": 1\n}\nafter\n'
    assert done.stderr.splitlines() == ["from Python", "from below", "from a child"]


@pytest.mark.parametrize("kind", ["families", "objectives", "heads", "recipes", "sources"])
def test_list_gives_names_as_a_table_and_as_json(kind, capsys):
    assert main(["list", kind, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert main(["list", kind]) == 0
    table = capsys.readouterr().out
    assert rows
    for row in rows:
        assert row["name"] in table
        if "path" in row:
            assert Path(row["path"]).is_file()


def test_the_list_of_objectives_says_which_family_trains_which(tmp_path, capsys, monkeypatch):
    (tmp_path / "families").mkdir()
    bare = 'PROVIDES = ("bidirectional",)\nSIZES = {"tiny": {}}\nclass Bare: ...\n'
    (tmp_path / "families" / "bare.py").write_text(bare, encoding="utf-8")
    (tmp_path / "fourstage.project").touch()
    monkeypatch.chdir(tmp_path)
    assert main(["list", "objectives", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["masked_lm"]["bert"] == rows["next_sentence"]["bert"] == "yes"
    assert rows["span_boundary"]["bare"] == "with masked_lm"
    assert rows["sentence_order"]["bare"] == "no pooled_output, segments"


def test_list_shows_a_source_that_cannot_be_read_beside_the_others(tmp_path, capsys, monkeypatch):
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "broken.yaml").write_text("name: other\n", encoding="utf-8")
    (tmp_path / "fourstage.project").touch()
    monkeypatch.chdir(tmp_path)
    assert main(["list", "sources", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["broken"]["about"].startswith("cannot be read: sources/broken.yaml")
    assert rows["python_libraries"]["kind"] == "dataset"


def test_no_name_of_others_steers_the_terminal(tmp_path, capsys, monkeypatch):
    """A source may describe itself with escapes, and a message names what an archive has."""
    title, cleared = "\x1b]0;mine\x07", "\x1b[2J\x9b31m\u202e"
    (tmp_path / "fourstage.project").touch()
    (tmp_path / "sources").mkdir()
    written = {"name": "x", "language": "en", "licence": "CC0", "files": ["a.zip"]}
    source = tmp_path / "sources" / "x.yaml"
    source.write_text(json.dumps({**written, "description": title + cleared}), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["list", "sources"]) == 0
    listed = capsys.readouterr().out
    assert r"\x1b]0;mine\x07\x1b[2J\x9b31m\u202e" in listed

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(f"{title}.txt", b"\x89PNG")

    def read() -> int:
        found = load_source("x", [tmp_path])
        for state in take_snapshot(found).files:
            for content in contents(state):
                list(lines(content, found))
        return 0

    assert exit_code_of(read) == 3
    said = capsys.readouterr().err
    assert r"a.zip!\x1b]0;mine\x07.txt: expected text, got an image" in said
    assert not re.search(r"[^\n\x20-\x7e]", said)


def test_plan_resolved_prints_every_value_with_its_origin(capsys):
    assert main(["plan", "quickstart", "--resolved", "--json", "--set", "seed=5"]) == 0
    printed = json.loads(capsys.readouterr().out)
    values = {row["path"]: row for row in printed["values"]}
    assert values["seed"] == {"path": "seed", "value": 5, "origin": "--set"}
    assert values["stages[1].refresh"]["origin"] == "default for domain"
    assert printed["recipe"]["stages"][0]["stage"] == "general"


@pytest.mark.parametrize(
    ("search", "trained_after"),
    [
        ("{grid: {batch_size: [4, 8]}}", False),  # the best trial goes on as the stage
        ("{grid: {batch_size: [4, 8]}, seeds: [1]}", True),
        ("{folds: 2}", True),
    ],
)
def test_plan_counts_the_stage_that_is_trained_after_a_search(
    tmp_path, monkeypatch, capsys, search, trained_after
):
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path))
    assert main(["plan", "quickstart", "--smoke", "--json", "--set", f"search={search}"]) == 0
    stages = [cost["stage"] for cost in json.loads(capsys.readouterr().out)["costs"]]
    assert stages[3:] == (["finetune", "search"] if trained_after else ["search"])


def test_no_word_at_all_shows_the_help(capsys):
    assert main([]) == 2
    assert "commands:" in capsys.readouterr().out


def test_gc_shows_first_and_takes_days(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert main(["gc", "--keep", "a week"]) == 2
    assert "expected a number of days such as 30, got 'a week'" in capsys.readouterr().err
    log = tmp_path / "logs" / "20260101-000000-run-7.log"
    log.parent.mkdir()
    log.touch()
    os.utime(log, (0, 0))
    assert main(["gc", "--keep", "7d", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["deleted"] is False
    assert [entry["path"] for entry in told["entries"]] == [f"logs/{log.name}"]
    assert log.exists()
    assert main(["gc", "--delete"]) == 0
    assert "Deleted: 1 entries" in capsys.readouterr().out
    assert not log.exists()


# Says something now and then until it is ended, and writes down how it ended.
HUNG_UP = """
import sys, time
from pathlib import Path
from fourstage.activity import activity
from fourstage.command.exits import exit_code_of
from fourstage.terminal import libraries_speak_to, say

def work():
    with libraries_speak_to(Path(sys.argv[1] + ".log")), activity("working"):
        say("begun")
        while True:
            time.sleep(0.01)

code = exit_code_of(work)
Path(sys.argv[1]).write_text(str(code))
sys.exit(code)
"""


def at_terminal(*command: str) -> tuple[subprocess.Popen, int]:
    """A process whose controlling terminal is a new one, once it has said that it has begun."""
    ours, theirs = os.openpty()

    def begin() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests themselves may run under nohup
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [sys.executable, *command],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=begin,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    os.close(theirs)
    said = b""
    while b"begun" not in said:
        said += os.read(ours, 1024)
    return process, ours


def test_a_terminal_that_is_closed_ends_the_command_as_sigterm_does(tmp_path: Path):
    process, terminal = at_terminal("-c", HUNG_UP, str(tmp_path / "code"))
    os.close(terminal)
    assert process.wait(30) == 143
    assert (tmp_path / "code").read_text() == "143"


def test_under_nohup_a_command_goes_on(tmp_path: Path):
    ignoring = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{HUNG_UP}"
    process, terminal = at_terminal("-c", ignoring, str(tmp_path / "code"))
    os.close(terminal)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143


def test_explain_says_a_cause_once_and_what_follows_from_it(fourstage):
    done = fourstage("explain", "quickstart", "--smoke")
    assert done.returncode == 0, done.stderr
    *causes, rest = done.stdout.splitlines()
    assert "    never made" in causes
    assert not any("waits for" in line for line in causes)
    assert re.match(r"\d+ more follow from these: .*stage general, .*evaluation", rest)


def test_no_farewell_of_a_library_comes_after_our_last_word(fourstage, tmp_path):
    code = (
        "import logging, sys; from pathlib import Path;"
        "from fourstage.terminal import libraries_speak_to;"
        "import prefect; from prefect.logging import get_logger\n"
        f"with libraries_speak_to(Path({str(tmp_path / 'log')!r})): pass\n"
        "get_logger('EventsWorker').warning('Still processing items: 3 items remaining...')"
    )
    environment = {"PYTHONPATH": str(REPOSITORY), "PREFECT_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600  # a library may log a text
