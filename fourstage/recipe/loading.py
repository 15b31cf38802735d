"""From a YAML file to a `Recipe`: find it, read it, extend it, override it, check its shape."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fourstage.errors import RecipeError, UnknownNameError
from fourstage.recipe.messages import faults_of, raise_all, source_of
from fourstage.recipe.paths import CHOICES, parse_path, path_text
from fourstage.recipe.paths import Path as Place
from fourstage.recipe.schema import Recipe
from fourstage.recipe.smoke import shrink
from fourstage.settings import REPOSITORY, current_folder, search_folders
from fourstage.strict_yaml import ParsedYaml, kind_of, parse_document, read_document
from models import catalogue

# These are merged: keys that the child lacks keep the parent's value. All others are replaced.
MERGED = frozenset({"tokenizer", "units", "limits", "evaluate", "search", "promote"})
# Keys of a stage that are alternatives to others and replace them.
INSTEAD_OF = {
    "sequence_length": ("phases",),
    "phases": ("sequence_length",),
    "dataset": ("corpora",),
    "corpora": ("dataset",),
}


def load_recipe(
    path: Path | str,
    overrides: Sequence[str] = (),
    smoke: bool = False,
    folders: Sequence[Path] | None = None,
    pictured: Callable[[str], bool] = lambda _: False,
) -> Recipe:
    """Read a recipe and check its shape, its types and its names.

    Args:
        path: A file, or the name of a recipe such as ``quickstart`` or ``papers/bert``.
        overrides: ``path=value`` as given to ``--set``, the value in YAML; ``path=`` removes one.
        smoke: Whether to shrink it to a few steps of a tiny network on embedded text.
        folders: Project folders searched before the built-in ones; by default those of the
            recipe's own file.
        pictured: Whether the rows of a source have pictures; the smoke version keeps these.

    Raises:
        RecipeError: The recipe is invalid; the message lists every error, one per line.
    """
    file = find_recipe(path, folders)
    folders = search_folders(file) if folders is None else folders
    where: dict[Place, str] = {(): _display(file)}
    document = read_document(file, where[()])
    value, spellings = _extended(document, where, folders)
    for override in overrides:
        _override(value, override, where, spellings)
    _drop_left_out(value, where, spellings)
    faults: list[RecipeError] = list(_nothings(value, (), where))
    faults += _unknown_names(value, where, folders)
    recipe = None
    try:
        recipe = Recipe.model_validate(value)
    except ValidationError as error:
        faults += faults_of(error, value, where, spellings)
    raise_all(_without_echo(faults))
    assert recipe is not None
    if smoke:
        head = next((next(iter(stage.head)) for stage in recipe.stages if stage.head), None)
        answers = catalogue.answers_name(head, folders) if head else "label"
        named = {name for stage in recipe.stages for name in stage.objectives or ()}
        of_triples = {
            name
            for name in named
            if catalogue.literals("objectives", name, folders).get("READS_TRIPLES")
        }
        asking = catalogue.asking(named, folders)
        seen = _seen(recipe, folders, pictured)
        value, given = shrink(value, answers, of_triples, seen, asking), value
        recipe = Recipe.model_validate(value)
        where.update(_changed(given, value))
    recipe._path = file
    recipe._where = _display(file)
    recipe._origins.update(_origins(value, where))
    return recipe


def _seen(recipe: Recipe, folders: Sequence[Path], pictured: Callable[[str], bool]) -> set[str]:
    """The sources with pictures that a recipe's network sees."""
    family = recipe.family or ""
    known = catalogue.names("families", folders)
    if family not in known or "regions" not in catalogue.provided(family, folders):
        return set()
    read = {name for stage in recipe.stages for name in (*(stage.corpora or ()), stage.dataset)}
    return {name for name in read if name and pictured(name)}


def recipe_folders(folders: Sequence[Path]) -> list[Path]:
    """Folders that hold recipes, in the order in which they are searched."""
    found = [folder / "recipes" for folder in folders] + [REPOSITORY / "recipes"]
    return [folder for folder in dict.fromkeys(found) if folder.is_dir()]


def recipe_names(folders: Sequence[Path]) -> dict[str, Path]:
    """Every recipe name with its file; the project's own recipes hide built-in ones."""
    found: dict[str, Path] = {}
    for folder in recipe_folders(folders):
        for file in sorted(each for each in folder.rglob("*.yaml") if each.is_file()):
            found.setdefault(file.relative_to(folder).with_suffix("").as_posix(), file)
    return dict(sorted(found.items()))


def find_recipe(path: Path | str, folders: Sequence[Path] | None = None) -> Path:
    """The file of a recipe given by path or by name.

    Raises:
        UnknownNameError: Neither such a file nor such a recipe exists.
    """
    text = str(path)
    if "\0" in text:
        raise RecipeError("the recipe's path holds a NUL character")
    file = Path(path)
    try:
        if file.is_file():
            return file
        if file.is_dir():
            raise RecipeError(f"{text}: expected a recipe file, got a folder")
    except OSError as error:
        raise RecipeError(f"{text[:80]}: cannot be read ({error.strerror})") from error
    names = recipe_names(search_folders() if folders is None else folders)
    wanted = text.removesuffix(".yaml").removeprefix("recipes/")
    if wanted in names:
        return names[wanted]
    raise UnknownNameError("recipe", text, "a file or the name of a recipe", names)


def _display(file: Path) -> str:
    """The shortest form of the path from here."""
    absolute = file.absolute()
    for folder in (current_folder(), REPOSITORY):
        if absolute.is_relative_to(folder):
            return absolute.relative_to(folder).as_posix()
    return str(file)


def _extended(
    document: ParsedYaml, where: dict[Place, str], folders: Sequence[Path]
) -> tuple[dict[str, Any], dict[Place, str]]:
    """The recipe's values, on top of those of the recipe it extends."""
    child = _mapping(document, where[()])
    name = child.get("extends")
    if name is None:
        return child, document.spellings
    if not isinstance(name, str):
        raise RecipeError(f"{where[()]}: extends: expected text, got {kind_of(name)}")
    names = recipe_names(folders)
    if name not in names:
        raise UnknownNameError(f"{where[()]}: extends", name, "a recipe", names)
    source = _display(names[name])
    parent_document = read_document(names[name], source)
    parent = _mapping(parent_document, source)
    if "extends" in parent:
        raise RecipeError(
            f"{where[()]}: extends: {name!r} itself extends {str(parent['extends'])[:60]!r}; "
            "only one level is allowed"
        )
    return _merged(parent, child, source, where), {
        **parent_document.spellings,
        **document.spellings,
    }


def _mapping(document: ParsedYaml, where: str) -> dict[str, Any]:
    if not isinstance(document.value, dict):
        raise RecipeError(
            f"{where}: expected a mapping with the keys name, family, size and stages; "
            f"got {kind_of(document.value)}"
        )
    return document.value


def _merged(
    parent: dict[str, Any], child: dict[str, Any], source: str, where: dict[Place, str]
) -> dict[str, Any]:
    """The child merged into the parent.

    A key of the child replaces the parent's; `MERGED` mappings and stages are merged key by key. If
    the child lists stages, only these exist, and each extends the parent's stage of the same name.
    """
    parent = copy.deepcopy(parent)
    result: dict[str, Any] = dict(child)
    for key in ("seed", "seeds"):
        if key in child:
            parent.pop("seed", None)
            parent.pop("seeds", None)
    for key, value in parent.items():
        if key in ("name", "stages"):
            continue
        if key not in child:
            result[key] = value
            where[(key,)] = source
        elif key in MERGED and isinstance(value, dict) and isinstance(child[key], dict):
            result[key] = {**value, **child[key]}
            where.update({(key, inner): source for inner in value if inner not in child[key]})
    if "stages" not in child and "stages" in parent:
        result["stages"] = parent["stages"]
        where[("stages",)] = source
    elif isinstance(parent.get("stages"), list) and isinstance(child.get("stages"), list):
        known = {_stage_name(stage): stage for stage in parent["stages"]}
        result["stages"] = []
        for i, stage in enumerate(child["stages"]):
            base = known.get(_stage_name(stage))
            if isinstance(stage, dict) and isinstance(base, dict):
                base = {k: v for k, v in base.items() if not _replaced(k, stage)}
                where.update({("stages", i, key): source for key in base if key not in stage})
                stage = {**base, **stage}
            result["stages"].append(stage)
    return result


def _replaced(key: str, stage: Mapping[str, Any]) -> bool:
    return any(other in stage for other in INSTEAD_OF.get(key, ()))


def _stage_name(stage: object) -> str | None:
    if not isinstance(stage, dict):
        return None
    name = stage.get("name", stage.get("stage"))
    return name if isinstance(name, str) else None


def _override(
    value: dict[str, Any],
    override: str,
    where: dict[Place, str],
    spellings: dict[Place, str],
) -> None:
    """Apply one ``--set`` to the recipe; the schema checks the result."""
    option = f"--set {override[:80]}"
    name, equals, text = override.partition("=")
    if not equals:
        raise RecipeError(f"{option}: expected path=value, such as seed=5")
    path = _addressed(parse_path(name.strip(), option), value, option)
    document = parse_document(text, option)
    for place in [place for place in where if place[: len(path)] == path]:
        del where[place]
    if document.value is None and not _is_stage(path):
        _remove(value, path, option)
        return
    holder: Any = value
    for depth, key in enumerate(path[:-1]):
        holder = _step(holder, key, path[: depth + 1], option)
    last = path[-1]
    if isinstance(holder, list):
        _step(holder, last, path, option)
    elif not isinstance(holder, dict):
        raise RecipeError(
            f"{option}: {path_text(path[:-1])} is {kind_of(holder)}, it has no {last!r}"
        )
    elif len(path) > 1 and path[-2] in CHOICES and last not in holder:
        holder.clear()  # `budget.steps=10` replaces `budget: {epochs: 20}`
    elif path in (("seed",), ("seeds",)):
        holder.pop("seed", None)
        holder.pop("seeds", None)
    elif len(path) == 3 and path[0] == "stages":
        for other in INSTEAD_OF.get(str(last), ()):
            holder.pop(other, None)
    holder[last] = document.value  # pyright: ignore[reportArgumentType, reportCallIssue]
    where[path] = "--set"
    spellings.update({(*path, *inner): word for inner, word in document.spellings.items()})


def _step(holder: Any, key: str | int, path: Place, option: str) -> Any:
    """Go one key down; a missing mapping is created, for the schema to check."""
    if isinstance(holder, list) and isinstance(key, int):
        if key >= len(holder):
            raise RecipeError(
                f"{option}: {path_text(path[:-1])} has {len(holder)} entries, "
                f"[0] to [{len(holder) - 1}]"
            )
        return holder[key]
    if isinstance(holder, dict) and isinstance(key, str):
        if len(path) > 1 and path[-2] in CHOICES and key not in holder:
            holder.clear()
        return holder.setdefault(key, {})
    raise RecipeError(
        f"{option}: {path_text(path[:-1])} is {kind_of(holder)}, it has no {path_text((key,))}"
    )


def _addressed(path: Place, value: Mapping[str, Any], option: str) -> Place:
    """``stages.NAME`` as ``stages[i]``."""
    stages = value.get("stages")
    if len(path) < 2 or path[0] != "stages" or isinstance(path[1], int):
        return path
    if not isinstance(stages, list):
        raise RecipeError(f"{option}: the recipe has no list of stages")
    names = [_stage_name(stage) for stage in stages]
    if path[1] not in names:
        raise UnknownNameError(
            option, str(path[1]), "the name of a stage of this recipe", [n for n in names if n]
        )
    return ("stages", names.index(path[1]), *path[2:])


def _is_stage(path: Place) -> bool:
    return len(path) == 2 and path[0] == "stages"


def _remove(value: dict[str, Any], path: Place, option: str) -> None:
    """Remove a key, so that what holds without it holds: a default, or what a stage inherits."""
    holder: Any = value
    for key in path[:-1]:
        if isinstance(holder, dict):
            holder = holder.get(key)
        elif isinstance(holder, list) and isinstance(key, int) and key < len(holder):
            holder = holder[key]
        else:
            holder = None
    if path == ("search",):
        value.pop("search", None)  # of several recipes that are compared one may have a search
        return
    if isinstance(holder, dict) and CHOICES.intersection(path[-2:-1]) and path[-1] in holder:
        parent = path_text(path[:-1])
        raise RecipeError(
            f"{option}: {parent} has exactly one key; write another one, or remove {parent} itself"
        )
    if isinstance(holder, list):
        raise RecipeError(f"{option}: one entry of a list can't be removed; write the whole list")
    if not isinstance(holder, dict) or path[-1] not in holder:
        raise RecipeError(
            f"{option}: expected a value after '=', or a key of the recipe, which is removed then;"
            f" it has no {path_text(path)}"
        )
    del holder[path[-1]]


def _drop_left_out(
    value: dict[str, Any], where: dict[Place, str], spellings: dict[Place, str]
) -> None:
    """Drop the stages that were set to nothing: ``--set stages.task=`` leaves that stage out.

    Until then all have the numbers of the file, by which the settings find them.
    """
    stages = value.get("stages")
    if not isinstance(stages, list):
        return
    gone = {i for i, stage in enumerate(stages) if stage is None and ("stages", i) in where}
    kept = [i for i in range(len(stages)) if i not in gone]
    if not kept:
        return
    value["stages"] = [stages[i] for i in kept]
    for known in (where, spellings):
        before = dict(known)
        known.clear()
        for place, said in before.items():
            if place[:1] == ("stages",) and len(place) > 1:
                if place[1] not in kept:
                    continue
                place = ("stages", kept.index(place[1]), *place[2:])
            known[place] = said


def _nothings(value: object, path: Place, where: Mapping[Place, str]) -> list[RecipeError]:
    """Faults for keys without a value, which are a mistake, not a default."""
    if value is None:
        return [
            RecipeError(
                f"{source_of(path, where)}: {path_text(path)}: no value given; write one "
                "(`{}` for an empty mapping) or remove the key"
            )
        ]
    if isinstance(value, dict):
        return [f for key, v in value.items() for f in _nothings(v, (*path, key), where)]
    if isinstance(value, list):
        return [f for i, v in enumerate(value) for f in _nothings(v, (*path, i), where)]
    return []


def _unknown_names(
    value: Mapping[str, Any], where: Mapping[Place, str], folders: Sequence[Path]
) -> list[RecipeError]:
    """Faults for unknown families, tokenizers, objectives and heads."""
    found: list[RecipeError | None] = []

    def check(path: Place, name: object, kind: str, folders: Sequence[Path] = folders) -> None:
        if isinstance(name, str):
            place = f"{source_of(path, where)}: {path_text(path)}"
            there = catalogue.names(kind, folders)
            if name not in there:
                found.append(UnknownNameError(place, name, catalogue.KINDS[kind], there))

    check(("family",), value.get("family"), "families")
    if isinstance(tokenizer := value.get("tokenizer"), dict):
        check(("tokenizer", "scheme"), tokenizer.get("scheme"), "tokenizers", ())
    stages = value.get("stages")
    listed: list[Any] = stages if isinstance(stages, list) else []
    for i, stage in enumerate(listed):
        if not isinstance(stage, dict):
            continue
        check(("stages", i, "family"), stage.get("family"), "families")
        if isinstance(tokenizer := stage.get("tokenizer"), dict):
            check(("stages", i, "tokenizer", "scheme"), tokenizer.get("scheme"), "tokenizers", ())
        for key, kind in (("objectives", "objectives"), ("head", "heads")):
            if isinstance(stage.get(key), dict):
                for name in stage[key]:
                    check(("stages", i, key), name, kind)
    return [fault for fault in found if fault is not None]


def _without_echo(faults: Sequence[RecipeError]) -> list[RecipeError]:
    """Drop the schema's faults for keys without a value, which are reported already."""
    empty = {str(f).split(": no value given")[0] for f in faults if "no value given" in str(f)}
    return [
        fault
        for fault in faults
        if "no value given" in str(fault)
        or not any(str(fault).startswith(f"{place}: expected") for place in empty)
    ]


def _changed(before: object, after: object, path: Place = ()) -> dict[Place, str]:
    """Places where the smoke version differs."""
    if before == after:
        return {}
    if isinstance(before, dict) and isinstance(after, dict):
        pairs = [(key, before.get(key), value) for key, value in after.items()]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [(i, before[i], value) for i, value in enumerate(after)]
    else:
        return {path: "smoke"}
    return {k: v for key, b, a in pairs for k, v in _changed(b, a, (*path, key)).items()}


def _origins(value: object, where: Mapping[Place, str], path: Place = ()) -> dict[Place, str]:
    """The origin of each single value."""
    if isinstance(value, dict) and value:
        children: list[tuple[str | int, Any]] = list(value.items())
    elif isinstance(value, list) and value:
        children = list(enumerate(value))
    else:
        holder = path
        while holder not in where:
            holder = holder[:-1]
        source = where[holder]
        return {path: source}
    return {
        k: v for key, child in children for k, v in _origins(child, where, (*path, key)).items()
    }
