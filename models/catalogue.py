"""Look-up of a recipe's parts: a part's name is the name of its file.

Names and literals are read from the source without importing it, so that ``list`` and ``plan`` run
without TensorFlow.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import re
import sys
import zlib
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fourstage.errors import RecipeError, UnknownNameError
from models.metrics import of_answers

if TYPE_CHECKING:
    from models.protocols import Answers

KINDS = {
    "families": "a family",
    "objectives": "an objective",
    "heads": "a head",
    "answers": "a kind of answer",
    "tokenizers": "a scheme of tokenizers",
}
# Setting that names an objective's teacher: the folder of a trained stage or, in a recipe, the name
# of an earlier stage. The literal `TEACHER_HEADS` lists the heads that the teacher must have.
TEACHER = "teacher"
TRIGRAM_SHARE = "trigram_share"  # a family's setting: it is measured mixed with a trigram
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")
_HERE = Path(__file__).resolve().parent


def names(kind: str, folders: Sequence[Path] = ()) -> list[str]:
    """All names of a kind, sorted.

    Args:
        kind: One of `KINDS`.
        folders: Project folders; each may contain a folder named `kind`.
    """
    return sorted(_files(kind, folders))


def find(kind: str, name: str, folders: Sequence[Path] = (), where: str = "") -> type:
    """The one public class of the file `name`. The file is imported, and Keras with most of them.

    Args:
        kind: One of `KINDS`.
        name: As written in a recipe.
        folders: Project folders, searched before the built-in files.
        where: Location of the name, for the error message; by default the kind.

    Raises:
        UnknownNameError: There is no such file. The message suggests the nearest name.
        RecipeError: The file does not have exactly one public class.
    """
    path = file_of(kind, name, folders, where)
    class_name = _public_class(path)
    if path.parent == _built_in(kind):
        module = importlib.import_module(f"models.{kind}.{name}")
    else:
        module = _project_module(kind, path)
    return getattr(module, class_name)


def literals(kind: str, name: str, folders: Sequence[Path] = (), where: str = "") -> dict[str, Any]:
    """The module-level literals of the file `name` (``NEEDS``, ``PROVIDES``, ``SIZES`` …).

    Args:
        kind: One of `KINDS`.
        name: As written in a recipe.
        folders: Project folders, searched before the built-in files.
        where: Location of the name, for the error message.

    Returns:
        {NAME_IN_CAPITALS: value}, read from the source.

    Raises:
        UnknownNameError: There is no such file.
        RecipeError: The file is not valid Python.
    """
    return dict(_literals(*_state(file_of(kind, name, folders, where))))


@lru_cache(maxsize=256)
def _literals(path: Path, mtime_ns: int, size: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in _parsed(path, mtime_ns, size).body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name) and target.id.isupper():
                try:
                    found[target.id] = ast.literal_eval(value)
                except ValueError:
                    continue  # computed from other constants: not a literal
    return found


def provided(family: str, folders: Sequence[Path] = ()) -> frozenset[str]:
    """Names of the capabilities that a family provides. Does not import Keras."""
    return frozenset(literals("families", family, folders).get("PROVIDES", ()))


def needed(objectives: Iterable[str], folders: Sequence[Path] = ()) -> set[str]:
    """Names of the capabilities that objectives need, of the network or of one another."""
    said = (literals("objectives", name, folders).get("NEEDS", ()) for name in objectives)
    return set().union(*said)


def saying(kind: str, literal: str, folders: Sequence[Path] = ()) -> list[str]:
    """Names of the parts whose file has a literal that is not false, sorted.

    Args:
        kind: One of `KINDS`.
        literal: Such as ``WRITES``.
        folders: Project folders, searched before the built-in files.
    """
    return [name for name in names(kind, folders) if literals(kind, name, folders).get(literal)]


def providing(*capabilities: str, folders: Sequence[Path] = ()) -> list[str]:
    """Names of the families that provide all of some capabilities, sorted."""
    return [
        name for name in names("families", folders) if provided(name, folders) >= {*capabilities}
    ]


def answers_of(head: str, folders: Sequence[Path] = ()) -> Answers:
    """A head's kind of answer, with its metrics. Does not import Keras."""
    return find("answers", answers_name(head, folders), folders)()


def metrics_of(head: str, folders: Sequence[Path] = ()) -> tuple[str, ...]:
    """The metrics that a head's rows can be scored by; perplexities if it has the likelihoods."""
    known = tuple(answers_of(head, folders).metrics)
    return known if literals("heads", head, folders).get("READS_TARGETS") else of_answers(known)


def answers_name(head: str, folders: Sequence[Path] = ()) -> str:
    """Name of a head's kind of answer.

    Args:
        head: Name of the head.
        folders: Project folders, searched first.

    Raises:
        UnknownNameError: There is no such head.
        RecipeError: The head has no literal ``ANSWERS``.
    """
    answers = literals("heads", head, folders).get("ANSWERS")
    if not answers:
        known = ", ".join(names("answers", folders))
        raise RecipeError(
            f"{file_of('heads', head, folders)}: no literal ANSWERS; a head names its kind of"
            f" answer, one of {known}"
        )
    return answers


def reads_entities(family: str, head: str, folders: Sequence[Path] = ()) -> bool:
    """Whether rows of a head are read with the entities that their texts name.

    A head of answers to whole rows reads them, under a network that does; one that reads words,
    chooses, writes or embeds reads text alone.
    """
    if "entities" not in provided(family, folders):
        return False
    alone = {"READS_WORDS", "EMBEDS"} & literals("heads", head, folders).keys()
    return not alone and answers_name(head, folders) in ("label", "label_set", "number")


def check_compatible(
    family: str,
    objectives: Sequence[str],
    head: str | None = None,
    folders: Sequence[Path] = (),
    where: str = "",
) -> None:
    """Check that a network, objectives and a head fit together in one stage, before any work.

    Args:
        family: Name of the network's family.
        objectives: Names of the stage's pre-training objectives.
        head: Name of the fine-tuning head, if any.
        folders: Project folders, searched first.
        where: Location in the recipe, such as ``recipes/x.yaml: stages[0]``.

    Raises:
        UnknownNameError: A name is unknown.
        RecipeError: A needed capability is missing, more than one part prepares the batch or hides
            its tokens, or not exactly one part chooses the segments.
    """
    where = f"{where}: " if where else ""
    network = literals("families", family, folders, f"{where}family")
    parts = {
        name: literals("objectives", name, folders, f"{where}objectives") for name in objectives
    }
    if head is not None:
        parts[head] = literals("heads", head, folders, f"{where}head")
    if not parts:
        raise RecipeError(f"{where}a stage needs an objective or a head")
    if head is not None and network.get("TRAINS"):
        raise RecipeError(
            f"{where}family {family!r} trains itself and has no vectors for a head to read;"
            " fine-tune a network of another family"
        )
    own = next((name for name in objectives if parts[name].get("TRAINS")), None)
    if own is not None and len(parts) > 1:
        beside = ", ".join(name for name in parts if name != own)
        raise RecipeError(
            f"{where}{own!r} trains the network itself, so nothing can be trained beside it; got"
            f" {beside}. Train them in stages of their own"
        )
    if network.get("COUNTS") and not (head is not None and parts[head].get("WIDE")):
        raise RecipeError(
            f"{where}family {family!r} has no network, so expected a head that counts n-grams; got"
            f" {', '.join(parts)}. Use head: {{sequence_classification: {{wide: true}}}}; for sets"
            " of labels multi_label_classification"
        )
    from_network = set(network.get("PROVIDES", ()))
    for name, part in parts.items():
        others = {
            capability
            for other, its in parts.items()
            if other != name
            for capability in its.get("PROVIDES", ())
        }
        missing = [need for need in part.get("NEEDS", ()) if need not in from_network | others]
        if missing:
            raise RecipeError(
                f"{where}{name!r} needs {', '.join(missing)}; family {family!r} provides "
                f"{', '.join(sorted(from_network)) or 'nothing'}"
                + (f", the other objectives {', '.join(sorted(others))}" if others else "")
                + f". {_providers(missing[0], family, folders)}"
            )
    preparing = [name for name, part in parts.items() if part.get("PREPARES")]
    if len(preparing) > 1:
        raise RecipeError(
            f"{where}at most one objective may change the batch before the network sees it, got "
            f"{len(preparing)}: {', '.join(preparing)}. Train them in stages of their own"
        )
    alone = [name for name in objectives if parts[name].get("ALONE")]
    if alone and len(objectives) > 1:
        raise RecipeError(
            f"{where}{alone[0]!r} shares its rows with no other objective, got"
            f" {', '.join(objectives)}. Let them take turns (`alternate: true`) or train them in"
            " stages of their own"
        )
    hiding = [name for name, part in parts.items() if part.get("HIDES_TOKENS")]
    if len(hiding) > 1:
        raise RecipeError(
            f"{where}at most one objective may hide tokens of a row, got {len(hiding)}:"
            f" {', '.join(hiding)}; the second would take what the first left for the text. Let"
            " them take turns (`alternate: true`) or train them in stages of their own"
        )
    choosing = [name for name, part in parts.items() if part.get("CHOOSES", 0) >= 2]
    if len(choosing) > 1:
        raise RecipeError(
            f"{where}at most one objective may choose the segments of a stage, got "
            f"{len(choosing)}: {', '.join(choosing)}. Let them take turns (`alternate: true`) or "
            "train them in stages of their own"
        )
    asks = [name for name, part in parts.items() if part.get("ASKS")]
    if asks and choosing and "regions" not in parts[choosing[0]].get("NEEDS", ()):
        raise RecipeError(
            f"{where}{asks[0]!r} asks about pictures of captions, but the rows that"
            f" {choosing[0]!r} chooses are no captions. Let them take turns (`alternate: true`) or"
            " train them in stages of their own"
        )
    if not any(part.get("CHOOSES", 0) for part in parts.values()):
        raise RecipeError(
            f"{where}no objective chooses the segments: {', '.join(parts)} only score. Add one "
            "that chooses them, such as masked_lm"
        )


def turns(objectives: Sequence[str], folders: Sequence[Path] = ()) -> dict[str, tuple[str, ...]]:
    """The groups of objectives that train together where a stage's objectives alternate.

    Each objective that can choose segments leads a group. An objective that only scores joins every
    group whose leader provides what it needs from other objectives.

    Args:
        objectives: Names, in the recipe's order.
        folders: Project folders, searched first.

    Returns:
        {leader: members of its group, in the given order}.

    Raises:
        UnknownNameError: A name is unknown.
    """
    parts = {name: literals("objectives", name, folders) for name in objectives}
    leaders = [name for name, part in parts.items() if part.get("CHOOSES", 0)]
    provided = {name: set(parts[name].get("PROVIDES", ())) for name in leaders}
    of_others = set().union(*provided.values())

    def rides(name: str, leader: str) -> bool:
        return set(parts[name].get("NEEDS", ())) & of_others <= provided[leader]

    return {
        leader: tuple(
            name
            for name in parts
            if name == leader or (name not in leaders and rides(name, leader))
        )
        for leader in leaders
    }


def measured_by(objectives: Iterable[str], folders: Sequence[Path] = ()) -> str | None:
    """The first objective whose loss on held-out text can be measured; None without any.

    One that asks questions is so only where no other is: it says nothing of text.

    Args:
        objectives: Names, in order.
        folders: Project folders, searched first.

    Raises:
        UnknownNameError: A name is unknown.
    """
    asked = None
    for name in objectives:
        said = literals("objectives", name, folders)
        if "MEASURED" in said and "ASKS" not in said:
            return name
        if "MEASURED" in said:
            asked = asked or name
    return asked


def asking(objectives: Iterable[str], folders: Sequence[Path] = ()) -> dict[str, str]:
    """{objective: its setting for how many answers it learns}, of those that ask questions.

    Args:
        objectives: Names.
        folders: Project folders, searched first.

    Raises:
        UnknownNameError: A name is unknown.
    """
    said = {name: literals("objectives", name, folders).get("ASKS") for name in objectives}
    return {name: setting for name, setting in said.items() if setting}


def check_turns(
    family: str, objectives: Sequence[str], folders: Sequence[Path] = (), where: str = ""
) -> None:
    """Check that objectives can alternate on a network: `check_compatible` for each turn.

    Raises:
        UnknownNameError: A name is unknown.
        RecipeError: The parts of a turn do not fit, or no objective chooses the segments.
    """
    groups = turns(objectives, folders)
    if not groups:
        # Raises: no objective chooses the segments.
        check_compatible(family, objectives, folders=folders, where=where)
    for group in groups.values():
        check_compatible(family, group, folders=folders, where=where)


def combination(family: str, objective: str, folders: Sequence[Path] = ()) -> tuple[str, ...]:
    """The smallest set of objectives with which a family can train an objective.

    Args:
        family: Name of the network's family.
        objective: Name of the objective.
        folders: Project folders, searched first.

    Returns:
        ``(objective,)``, or ``(other, objective)`` where it needs a capability of another one.

    Raises:
        RecipeError: There is no such set. The message is the one for the objective alone.
    """
    try:
        check_compatible(family, (objective,), folders=folders)
        return (objective,)
    except RecipeError as reason:
        missing = needed([objective], folders) - provided(family, folders)
        others = (name for name in names("objectives", folders) if name != objective)
        for other in sorted(others, key=lambda name: name != "masked_lm"):
            if not missing <= set(literals("objectives", other, folders).get("PROVIDES", ())):
                continue
            try:
                check_compatible(family, (other, objective), folders=folders)
            except RecipeError:
                continue
            return (other, objective)
        raise reason


def _providers(need: str, family: str, folders: Sequence[Path]) -> str:
    """For the error message: the parts that provide a missing capability."""
    families = [
        name
        for name in names("families", folders)
        if name != family and need in literals("families", name, folders).get("PROVIDES", ())
    ]
    parts = [
        f"{kind.removesuffix('s')} {name}"
        for kind in ("objectives", "heads")
        for name in names(kind, folders)
        if need in literals(kind, name, folders).get("PROVIDES", ())
    ]
    who = [f"family {name}" for name in families] + parts
    return f"It is provided by: {', '.join(who)}." if who else f"Nothing here provides {need}."


def _built_in(kind: str) -> Path:
    """The folder of the built-in files of a kind."""
    return _HERE / kind


def _files(kind: str, folders: Sequence[Path]) -> dict[str, Path]:
    """{name: path of its file}; a project's file overrides a built-in one of the same name."""
    found = dict(_built_in_files(kind))
    # The project folder with the highest precedence is last, so that it wins.
    for folder in (Path(project) / kind for project in reversed(folders)):
        if folder.is_dir():
            found |= _listed(folder)
    return found


@cache
def _built_in_files(kind: str) -> dict[str, Path]:
    """Read once a process: what goes with what asks a hundred thousand times."""
    assert kind in KINDS, kind
    return _listed(_built_in(kind))


def _listed(folder: Path) -> dict[str, Path]:
    """The files of one folder, without links in their paths."""
    with os.scandir(os.path.realpath(folder)) as entries:
        return {
            name: Path(entry.path).resolve() if entry.is_symlink() else Path(entry.path)
            for entry in sorted(entries, key=lambda entry: entry.name)
            if (name := entry.name.removesuffix(".py")) != entry.name
            and NAME.match(name)
            and entry.is_file()
        }


def file_of(kind: str, name: str, folders: Sequence[Path] = (), where: str = "") -> Path:
    """The file of a name, looked up in a listing: no path is ever built from the name.

    Raises:
        UnknownNameError: There is no such file. The message suggests the nearest name.
    """
    files = _files(kind, folders)
    if name not in files:
        raise UnknownNameError(
            where or kind, str(name), KINDS[kind], files, f"Each is a file in models/{kind}/."
        )
    return files[name]


@lru_cache(maxsize=256)
def _parsed(path: Path, mtime_ns: int, size: int) -> ast.Module:
    """The syntax tree of a file; modification time and size invalidate the cache."""
    try:
        return ast.parse(path.read_text(encoding="utf-8"), filename=path.name)
    except (SyntaxError, UnicodeDecodeError) as error:
        line = getattr(error, "lineno", None)
        place = f"{path}:{line}" if line else str(path)
        raise RecipeError(f"{place}: not a Python file that can be read: {error}") from error


def _state(path: Path) -> tuple[Path, int, int]:
    """A file, with the modification time and size by which a change is noticed."""
    state = path.stat()
    return path, state.st_mtime_ns, state.st_size


def _public_class(path: Path) -> str:
    """Name of the only public class of a file."""
    public = [
        node.name
        for node in _parsed(*_state(path)).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    if len(public) != 1:
        raise RecipeError(
            f"{path}: expected exactly one public class, found {len(public)}"
            f"{': ' + ', '.join(public) if public else ''}. Prefix the names of the others with _"
        )
    return public[0]


def _project_module(kind: str, path: Path) -> Any:
    """Import a project's file once, under a module name that cannot clash with a built-in one."""
    name = f"fourstage_project_{kind}_{path.stem}_{zlib.crc32(str(path).encode()):08x}"
    loaded = sys.modules.get(name)
    if loaded is not None:
        return loaded
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
