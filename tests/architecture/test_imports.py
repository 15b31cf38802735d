"""The rules of the house that import-linter cannot see: at run time, in strings, in calls."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from fourstage.command.project_deployments import KEPT
from fourstage.settings import PACKAGES, REPOSITORY, SHIPPED

ROOMS = (*PACKAGES, "recipes")
HEAVY = (
    "tensorflow",
    "keras",
    "tensorflow_text",
    "mlflow",
    "prefect",
    "great_expectations",
    "sklearn",
    "pandas",
    "matplotlib",
)
# Parts that `--help`, `list`, `plan` and `trace` reach, and that answer in seconds.
LIGHT = (
    "fourstage.errors",
    "fourstage.settings",
    "fourstage.command",
    "data_contracts",
    "corpora",
    "fourstage.recipe",
    "models.catalogue",
)


def files() -> Iterator[Path]:
    """Every file of the project as it would be committed."""
    skipped = {".git", "var", "build", "dist", "node_modules", "__pycache__", "shared"}
    folders = [REPOSITORY]
    while folders:
        for path in sorted(folders.pop().iterdir()):
            if path.is_symlink() or path.name in skipped or path.name.endswith(".egg-info"):
                continue
            if path.is_dir():
                # Of the folders with a dot only CI's is ours.
                if not path.name.startswith(".") or path.name in (".ci", ".github"):
                    folders.append(path)
            elif path.is_file():
                yield path


def name_of(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


PYTHON = [path for path in files() if path.suffix == ".py"]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=name_of(path))


def modules(*packages: str) -> list[str]:
    """Names of all modules of these packages (or the modules themselves), but not `__main__`."""
    found = []
    for package in packages:
        place = REPOSITORY.joinpath(*package.split("."))
        paths = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
        for path in paths:
            parts = path.relative_to(REPOSITORY).with_suffix("").parts
            if parts[-1] != "__main__":
                found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


def run(code: str) -> str:
    """What a fresh interpreter prints; its errors fail the test."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@cache
def imported(path: Path) -> set[str]:
    """Top-level names of everything a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def test_science_text_and_promises_need_neither_prefect_nor_mlflow():
    names = modules("models", "corpora", "data_contracts", "fourstage.recipe")
    assert len(names) > 50
    out = run(
        "import importlib, sys\n"
        "for name in ('prefect', 'mlflow', 'sklearn', 'jax'):\n"  # Keras takes the last two if any
        "    sys.modules[name] = None\n"
        f"for name in {names!r}:\n"
        "    importlib.import_module(name)\n"
        "print('all imported')\n"
    )
    assert out.splitlines()[-1] == "all imported"


def test_what_quick_commands_reach_imports_nothing_heavy():
    out = run(
        "import importlib, sys\n"
        f"for name in {modules(*LIGHT)!r}:\n"
        "    before = set(sys.modules)\n"
        "    importlib.import_module(name)\n"
        f"    heavy = (set(sys.modules) - before) & set({HEAVY!r})\n"
        "    if heavy: print(name, 'imports', *sorted(heavy))\n"
    )
    assert out == ""


@pytest.mark.parametrize(
    ("library", "allowed"),
    [
        ("prefect", ("flows/", "tasks/", "fourstage/command/")),
        ("mlflow", ("tasks/",)),
        ("great_expectations", ("data_contracts/check.py",)),
    ],
)
def test_each_framework_lives_in_its_room(library, allowed):
    users = [name_of(path) for path in PYTHON if library in imported(path)]
    ours = [name for name in users if name.split("/")[0] in ROOMS]
    assert [name for name in ours if not name.startswith(allowed)] == []


def ours(path: Path) -> set[Path]:
    """The files of ours that a file imports, wherever in it."""
    found: set[Path] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            place = REPOSITORY.joinpath(*name.split("."))
            folder = place if place.is_dir() else place.parent
            candidates = (
                place.with_suffix(".py"),
                folder.with_suffix(".py"),
                folder / "__init__.py",
            )
            found |= set([file for file in candidates if file.is_file()][:1])
    return found - {path}


def test_no_file_imports_itself_by_way_of_others():
    rooms = [path for path in PYTHON if name_of(path).split("/")[0] in ROOMS]
    left = {path: ours(path) & set(rooms) for path in rooms}
    assert sum(map(len, left.values())) > 1000
    while ends := [path for path, imports in left.items() if not imports]:
        left = {path: imports - set(ends) for path, imports in left.items() if imports}
    assert sorted(map(name_of, left)) == [], "these are in circles, or import what is"


def test_no_flow_shadows_another_module():
    taken = set(sys.stdlib_module_names) | set(ROOMS) | set(HEAVY)
    flows = {path.stem for path in (REPOSITORY / "flows").glob("*.py")} - {"__init__"}
    assert flows & taken == set()


# Written in halves, so that this file keeps the rule it tests.
REGISTRY_HOSTS = tuple(
    f"{name}.{domain}"
    for name, domain in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("anaconda", "org"),
        ("anaconda", "com"),
        ("crates", "io"),
    )
)
MACHINE_FOLDERS = ("work", "home", "root", "Users", "mnt", "farm", "data", "scratch", "workspace")
# A slash after a word, a colon or an ellipsis belongs to a relative path or an address, but for
# the fourth of a database's.
MACHINE_PATH = re.compile(rf"(?:(?<![\w.…~:/}}>-])|(?<=:///))/(?:{'|'.join(MACHINE_FOLDERS)})/\w")


def text_of(path: Path) -> str | None:
    """A file's text; None for pictures, arrays and archives."""
    raw = path.read_bytes()
    if b"\0" in raw[:8192]:
        return None
    return raw.decode("utf-8", errors="replace")


def test_no_file_names_a_registry_or_a_folder_of_one_machine():
    guilty = []
    for path in files():
        for number, line in enumerate((text_of(path) or "").splitlines(), start=1):
            if any(host in line for host in REGISTRY_HOSTS) or MACHINE_PATH.search(line):
                guilty.append(f"{name_of(path)}:{number}")
    assert guilty == []


UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
UNSAFE_CALLS = {
    "eval",
    "exec",
    "os.system",
    "os.popen",
    "yaml.load",
    "yaml.load_all",
    "yaml.full_load",
    "yaml.unsafe_load",
    "pandas.read_pickle",
    "pd.read_pickle",
    "torch.load",
}
UNSAFE_KEYWORDS = {"shell": True, "allow_pickle": True, "trust_remote_code": True}


def dotted(node: ast.expr) -> str:
    """`a.b.c` of a name or an attribute, or nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        of = dotted(node.value)
        return f"{of}.{node.attr}" if of else ""
    return ""


def unsafe(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of everything in a module that runs or unpacks what someone else wrote."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in UNSAFE_MODULES:
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").split(".")[0] in UNSAFE_MODULES:
                yield node.lineno, node.module or ""
        elif isinstance(node, ast.Call):
            if dotted(node.func) in UNSAFE_CALLS:
                yield node.lineno, dotted(node.func)
            for keyword in node.keywords:
                value = keyword.value
                if keyword.arg in UNSAFE_KEYWORDS and not (
                    isinstance(value, ast.Constant) and value.value is False
                ):
                    yield node.lineno, f"{keyword.arg}="


def test_nothing_is_unpickled_evaluated_or_run_by_a_shell():
    found = [
        f"{name_of(path)}:{line}: {what}" for path in PYTHON for line, what in unsafe(tree(path))
    ]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "import yaml; yaml.load(text)",
        "eval(text)",
        "exec(text)",
        "subprocess.run(text, shell=True)",
        "subprocess.run(text, shell=flag)",
        "np.load(path, allow_pickle=True)",
    ],
)
def test_the_search_for_unsafe_code_finds(code):
    assert list(unsafe(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "network.eval()",
        "yaml.safe_load(text)",
        "re.compile(text)",
        "np.load(path, allow_pickle=False)",
        "subprocess.run(words)",
    ],
)
def test_the_search_for_unsafe_code_leaves_alone(code):
    assert not list(unsafe(ast.parse(code)))


def test_the_search_for_machine_paths_knows_one():
    for folder in MACHINE_FOLDERS:
        assert MACHINE_PATH.search(f"open('/{folder}/someone')")
        assert MACHINE_PATH.search(f"sqlite:////{folder}/someone.db")
    for fine in ("a/home/b", "https://x/home/b", "../work/b", "$HOME/work/b", "{folder}/data/b"):
        assert not MACHINE_PATH.search(fine)


def test_a_wheel_takes_every_file_that_is_no_code():
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    taken = settings["tool"]["setuptools"]["package-data"]["*"]
    files = [path for room in ROOMS for path in (REPOSITORY / room).rglob("*.*") if path.is_file()]
    left = [path for path in files if not any(path.match(one) for one in (*taken, "*.py", "*.pyc"))]
    assert not left, f"add to package-data in pyproject.toml: {left}"
    # Files at the top stand in no package, so a wheel has them through links.
    assert {path.name for path in SHIPPED.iterdir()} == {
        path.name for path in REPOSITORY.glob("*.yaml")
    }
    for path in SHIPPED.iterdir():
        assert path.resolve() == REPOSITORY / path.name


@pytest.mark.slow
def test_an_installed_wheel_makes_a_project_and_knows_its_requirements(tmp_path):
    clone, site, away = tmp_path / "clone", tmp_path / "site", tmp_path / "away"
    for name in ROOMS:
        shutil.copytree(REPOSITORY / name, clone / name, symlinks=True)
    for path in (path for path in REPOSITORY.glob("*.*") if path.is_file()):
        shutil.copy(path, clone)
    away.mkdir()
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command = [sys.executable, "-m", "fourstage.command"]
    environment = {name: value for name, value in os.environ.items() if "FOURSTAGE" not in name}
    for line in (
        [*pip, "--no-build-isolation", "--target", str(site), str(clone)],
        [*command, "new", "first"],
        [*command, "doctor", "--json"],
    ):
        done = subprocess.run(
            line,
            capture_output=True,
            text=True,
            cwd=away,
            env=environment | {"PYTHONPATH": str(site)},
        )
        assert done.returncode == 0, done.stderr
    findings = {each["check"]: each["found"] for each in json.loads(done.stdout)}
    wanted = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    count = len(wanted["dependencies"])
    assert findings["packages"] == f"{count} of {count} within their caps"
    assert findings["own packages"] == f"all {len(PACKAGES)} from {site}"
    assert findings["home"] == str(away / "var")  # not in site-packages
    deployments = yaml.safe_load((away / "first" / "prefect.yaml").read_text("utf-8"))
    assert len(deployments["deployments"]) == len(KEPT)
