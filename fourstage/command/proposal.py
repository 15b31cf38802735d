"""Proposes a project's sources, contracts and first recipe for given files, and describes them."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import has_magic
from itertools import count
from pathlib import Path
from typing import Any

from corpora.files import find_files
from corpora.labels import visible
from corpora.survey import Survey, survey
from data_contracts.sources import Source, load_source, parse_source, source_names
from data_contracts.suite import BUILT_IN
from fourstage.command.example_data import example_files
from fourstage.command.first_recipe import Shape, budgets, first_recipe
from fourstage.command.pretrained_shape import pretrained_shape, whole_address
from fourstage.errors import ContractViolation, listed
from fourstage.languages import main_language
from fourstage.recipe.from_nothing import vocabulary_size
from fourstage.recipe.loading import load_recipe
from fourstage.settings import home, search_folders

TEXT, ROWS = "my_text", "my_rows"  # names of the sources
# Sources of general text by language; the first whose files exist here is used.
GENERAL = {"en": ("encyclopedia_en", "python_infrastructure"), "zh": ("novels_zh",)}
MINUTES, EXAMPLE_MINUTES = 10.0, 6.0
MOST_SET_ASIDE = 0.3  # of the records; if more break the contract, something else is wrong
SHOWN_LABELS = 8
YAML_WORDS = ("yes", "no", "on", "off", "true", "false", "null", "y", "n", ".", "_")


@dataclass(frozen=True)
class Proposal:
    """The initial content of a project.

    Attributes:
        files: Sources, contracts, recipe and data by path.
        told: What was found and assumed, in sentences.
    """

    files: Mapping[str, str]
    told: tuple[str, ...]


def propose(
    corpus: Sequence[str],
    rows: Sequence[str],
    *,
    minutes: float | None = None,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    answers: str | None = None,
    choices: Sequence[str] = (),
    language: str | None = None,
    init: str | None = None,
) -> Proposal:
    """Propose a project for some files.

    Args:
        corpus: Files, folders or patterns of unlabelled text.
        rows: The same for labelled rows.
        minutes: Approximate minutes that a run may take.
        text: The text column; that of the rows, if both are given.
        pair: The column of the second text of the rows.
        label: The label column.
        answers: Kind of answer of the rows.
        choices: The columns of the rows' choices, or one that holds a list of them.
        language: Language of both.
        init: Address of a pre-trained network to start from (`pretrained_shape`).

    Raises:
        ContractViolation: The files cannot be used.
        RecipeError: The pre-trained network can't be used.
        UnknownNameError: A column does not exist.
    """
    start = None if init is None else pretrained_shape(init)
    found: dict[str, Survey] = {}
    if rows:
        asked: dict[str, Any] = {"text": text, "pair": pair, "label": label}
        asked |= {"answers": answers, "choices": choices}
        found[ROWS] = survey(ROWS, _patterns(rows), labelled=True, language=language, **asked)
        language = language or found[ROWS].source["language"]
    if corpus:
        column = None if rows else text
        found[TEXT] = survey(
            TEXT, _patterns(corpus), labelled=False, text=column, language=language
        )
    return _proposal(found, minutes or MINUTES, {}, start=start)


def other_files(
    folder: Path, corpus: Sequence[str], rows: Sequence[str]
) -> dict[str, tuple[list[str], list[str]]]:
    """How a project's files differ from files that are named.

    Args:
        folder: A project made by `propose`.
        corpus: Files, folders or patterns of unlabelled text.
        rows: The same for labelled rows.

    Returns:
        For each source that differs, the files that are named but not the project's, and those
        that are the project's but not named.

    Raises:
        ContractViolation: A pattern matches nothing, or the project's files are gone.
    """
    found = {}
    for name, given in ((ROWS, rows), (TEXT, corpus)):
        named, known = set[str](), set[str]()
        if given:
            facts = {"name": name, "language": "en", "licence": "not stated"}
            named = _paths(parse_source({**facts, "files": _patterns(given)}))
        if name in source_names([folder]):
            known = _paths(load_source(name, [folder]))
        if named != known:
            found[name] = (sorted(named - known), sorted(known - named))
    return found


def other_columns(folder: Path, given: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """How what a project's rows are said to be differs from what is named.

    Args:
        folder: A project made by `propose`, whose source may have been edited.
        given: Some of the arguments of `propose` that say what the rows' columns are.

    Returns:
        For each that differs, what is named and what the project has, as words.
    """
    source = load_source(ROWS, [folder])
    fields = source.fields
    known = {
        "text": fields.text,
        "pair": fields.text_pair,
        "label": fields.label,
        "choices": fields.choices,
        "answers": source.answers,
        "language": source.language,
    }
    named = {name: _named(source, value) for name, value in given.items()}
    words = {name: (_words(value), _words(known[name])) for name, value in named.items()}
    return {name: pair for name, pair in words.items() if pair[0] != pair[1]}


def _named(source: Source, said: Any) -> Any:
    """A column that is given by its number, by the name that it got; or several."""
    if not isinstance(said, str):
        return [_named(source, each) for each in said]
    names = dict(zip(map(str, count(1)), source.columns, strict=False))
    return names.get(said, said)


def _words(said: str | Sequence[str] | None) -> str:
    """One or more values, as they are typed."""
    return said or "" if isinstance(said, str | None) else " ".join(said)


def other_network(folder: Path, init: str | None) -> tuple[str | None, str | None] | None:
    """How the network that a project starts from differs from the one that is named.

    Args:
        folder: A project made by `propose`, whose recipe may have been edited.
        init: Address of a pre-trained network, or None.

    Returns:
        The address that is named and the project's, None for no network; None if they are the same.

    Raises:
        RecipeError: The recipe can't be read, or a folder that is named does not exist.
    """
    recipe = load_recipe(folder / "recipes" / "first.yaml", folders=(folder,))
    known = next((stage.init for stage in recipe.stages if stage.init), None)
    named, known = (each and whole_address(each) for each in (init, known))
    return None if named == known else (named, known)


def _paths(source: Source) -> set[str]:
    return {str(Path(file.path).resolve()) for file in find_files(source)}


def propose_example() -> Proposal:
    """A project with the example's data among its files."""
    data = {f"data/{name}": content for name, content in example_files().items()}
    with tempfile.TemporaryDirectory() as place:
        for name, content in data.items():
            (Path(place) / name).parent.mkdir(exist_ok=True)
            (Path(place) / name).write_text(content, encoding="utf-8")
        own = {"text": [name for name in data if "text" in name]}
        rows = [str(Path(place) / name) for name in data if name not in own["text"]]
        texts = [str(Path(place) / name) for name in own["text"]]
        found = {
            ROWS: survey(ROWS, rows, labelled=True, language="en"),
            TEXT: survey(TEXT, texts, labelled=False, language="en"),
        }
    about = {
        TEXT: "Sections of Python's reference, an example of a corpus",
        ROWS: "Paragraphs of Python's reference and their subject, an example of a dataset",
    }
    proposal = _proposal(found, EXAMPLE_MINUTES, about, place)
    return Proposal({**proposal.files, **data}, proposal.told)


def _proposal(
    found: Mapping[str, Survey],
    minutes: float,
    about: Mapping[str, str],
    root: str = "",
    start: Shape | None = None,
) -> Proposal:
    language = next(iter(found.values())).source["language"]
    # A network from nothing that writes reads no text but one's own.
    writes = not start and ROWS in found and found[ROWS].answers == "text"
    general = None if writes else _general(language)
    told = [_told(name, one) for name, one in found.items()]
    told += [f"{name}: {assumed}" for name, one in found.items() for assumed in one.assumed]
    files: dict[str, str] = {}
    for name, one in found.items():
        contract = ""
        if text := _contract(name, one):
            contract, files[f"suites/{name}.json"] = name, text
            told.append(_why_contract(name, one))
        tolerance = (json.loads(text) if text else _default(one))["tolerance"]
        told += _why_stop(name, one, tolerance)
        files[f"sources/{name}.yaml"] = _source_yaml(one, about.get(name, ""), contract, root)
    if general and not start:
        told.append(f"general text: {general} ({load_source(general).description})")
    elif not start and not writes:
        first = "reads your corpus" if TEXT in found else "is left out"
        also = (
            "; `fourstage list sources` shows what can be fetched"
            if main_language(language) in GENERAL
            else ""
        )
        told.append(
            f"general text: none in {language!r} on this machine, so stage general {first}{also}"
        )
    written = found[ROWS].source.get("answer_language", language) if ROWS in found else language
    largest = max(language, written, key=vocabulary_size)
    text, rows = found.get(TEXT), found.get(ROWS)
    planned = budgets(text, rows, general, largest, minutes, home(), start)
    files["recipes/first.yaml"] = first_recipe(planned, largest)
    return Proposal(files, (*told, *planned.told))


def _general(language: str) -> str | None:
    """The first source of general text in a language whose files exist here."""
    for name in GENERAL.get(main_language(language), ()):
        source = load_source(name)
        try:
            if source.packages or find_files(source, search_folders()):
                return name
        except ContractViolation:
            continue
    return None


def _told(name: str, one: Survey) -> str:
    """What was found, in one line."""
    least = "" if one.whole else "at least "
    said = (
        f"{name}: {least}{one.records:,} {'rows' if one.answers else 'documents'}"
        f" ({one.format}{f', {one.files:,} files' if one.files > 1 else ''}, language"
        f" {one.source['language']}), about {one.tokens:,} tokens (median {one.median:,})"
    )
    if one.answers:
        fields = one.source["fields"]
        pair = f", second text in {fields['text_pair']!r}" if "text_pair" in fields else ""
        counts = [f"{visible(label)} {n:,}" for label, n in one.labels.items()]
        if one.answers == "choice":
            counts = [
                f"choice {number} is right {n:,} times" for number, n in sorted(one.labels.items())
            ]
        if one.answers == "number":
            numbers = [float(number) for number in one.labels]
            counts = [f"numbers from {min(numbers):g} to {max(numbers):g}"]
        if one.answers == "text":
            counts = [f"nine of ten have up to about {one.long_answer} tokens"]
        kind = "label" if one.answers == "label" else f"answers ({one.answers})"
        splits = ", ".join(f"{split} {n:,}" for split, n in one.splits.items())
        share = one.source.get("set_aside")
        drawn = f"{share:.0%}" if share else "a tenth"
        said += (
            f"; text in {fields['text']!r}{pair}, {kind} in {fields['label']!r}:"
            f" {listed(counts, SHOWN_LABELS)};"
            f" {splits or f'not split yet: {drawn} each goes to dev and test'}"
        )
        if share and splits:
            said += f"; {drawn} of train becomes {_drawn(one)}"
    if one.unread:
        said += "; quarantined: " + ", ".join(f"{n:,} × {why}" for why, n in one.unread.items())
    return said


def _source_yaml(one: Survey, about: str, contract: str, root: str) -> str:
    """The YAML of a source, with comments on its keys."""
    facts = one.source
    files = facts["files"]
    description = about or f"{'Labelled rows' if one.answers else 'Text'} of ours."
    lines = [
        f"name: {facts['name']}",
        f"description: {description}",
        f"language: {_plain(facts['language'])}",
        f"licence: {'PSF-2.0' if about else 'not stated'}"
        + ("" if about else "        # yours: an SPDX name, or words"),
        "fetch: none",
    ]
    if isinstance(files, dict):
        lines.append("files:")
        lines += [f"  {split}: {_relative(paths, root)}" for split, paths in files.items()]
    else:
        lines.append(f"files: {_relative(files, root)}")
    for key in ("format", "encoding", "document"):
        if key in facts:
            lines.append(f"{key}: {facts[key]}")
    if "columns" in facts:
        lines.append(f"columns: {_flow(facts['columns'])}      # the table has no header")
    if "fields" in facts:
        roles = ", ".join(f"{role}: {_columns(said)}" for role, said in facts["fields"].items())
        lines.append(f"fields: {{{roles}}}")
    for key in ("answers", "answer_language", "separator", "tag_scheme", "span_ends"):
        if key in facts:
            lines.append(f"{key}: {_plain(facts[key])}")
    if "set_aside" in facts:
        lines.append(
            f"set_aside: {facts['set_aside']:g}"
            f"      # share of train set aside for {_drawn(one)}, enough for the gate to decide"
        )
    if contract:
        lines.append(f"contract: {contract}      # suites/{contract}.json")
    return "\n".join(lines) + "\n"


def _drawn(one: Survey) -> str:
    """The splits that are drawn from the training rows."""
    return "dev" if "test" in one.splits else "dev, and again for test"


def _relative(paths: Sequence[str], root: str) -> str:
    return _flow([path.removeprefix(f"{root}/") if root else path for path in paths])


def _flow(values: Sequence[str]) -> str:
    return f"[{', '.join(map(_plain, values))}]"


def _columns(said: str | Sequence[str]) -> str:
    return _plain(said) if isinstance(said, str) else _flow(said)


def _plain(value: str) -> str:
    """A single word unquoted, anything else in quotes."""
    is_word = re.fullmatch(r"[A-Za-z_./][A-Za-z0-9_./-]*", value)
    return (
        value
        if is_word and value.lower() not in YAML_WORDS
        else json.dumps(value, ensure_ascii=False)
    )


def _contract(name: str, one: Survey) -> str | None:
    """The default contract with more tolerance, if some but not most records break it."""
    broken = sum(one.breaking.values())
    default = _default(one)
    if not default["tolerance"] < broken <= MOST_SET_ASIDE:
        return None
    tolerance = math.ceil(20 * 1.2 * broken) / 20
    return json.dumps(
        {**default, "name": name, "tolerance": tolerance}, indent=2, ensure_ascii=False
    )


def _why_contract(name: str, one: Survey) -> str:
    broken = ", ".join(f"{why} {share:.1%}" for why, share in one.breaking.items())
    default = _default(one)
    return (
        f"{name}: {broken} of the records break the contract {default['name']!r}, which tolerates"
        f" {default['tolerance']:.0%}; suites/{name}.json tolerates more and quarantines them"
    )


def _why_stop(name: str, one: Survey, tolerance: float) -> list[str]:
    """What to say where more records will be quarantined than the contract tolerates."""
    unread = sum(one.unread.values())
    # Records without text are removed, not quarantined.
    breaking = {why: share for why, share in one.breaking.items() if why != "text_present"}
    quarantined = unread + round(sum(breaking.values()) * one.records)
    if quarantined <= tolerance * (one.records + unread):
        return []
    reasons = [*(f"{n:,} × {why}" for why, n in one.unread.items()), *breaking]
    return [
        f"{name}: a run will stop: {quarantined:,} of {one.records + unread:,} records would be"
        f" quarantined ({listed(reasons, 5)}), where the contract tolerates {tolerance:.0%}; mend"
        " or remove them, or give the source a contract that tolerates more"
    ]


def _default(one: Survey) -> dict[str, Any]:
    """The default suite of such a source."""
    suite, *_ = parse_source(one.source).suites
    return json.loads((BUILT_IN / f"{suite}.json").read_text(encoding="utf-8"))


def _patterns(given: Sequence[str]) -> list[str]:
    """Absolute patterns; one pattern per kind of file in a folder, so that new files match."""
    paths = [Path(word).expanduser().absolute() for word in given]
    kinds: dict[tuple[Path, str], list[Path]] = {}
    for path in paths:
        kinds.setdefault((path.parent, path.suffix), []).append(path)
    found: list[str] = []
    for (folder, suffix), some in kinds.items():
        pattern = folder / f"*{suffix}"
        whole = len(some) > 1 and suffix and not has_magic(str(folder))
        if whole and set(some) == set(folder.glob(f"*{suffix}")):
            found.append(str(pattern))
        else:
            found += map(str, some)
    return found
