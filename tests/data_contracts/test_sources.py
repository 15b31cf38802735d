"""Sources: what is accepted, and what every refusal says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_contracts.sources import ANSWERS, load_source, parse_source, read_source, source_names
from fourstage.errors import RecipeError, UnknownNameError

SMALLEST = {"name": "mine", "language": "en", "licence": "CC0-1.0", "fields": {"text": "text"}}
MINIMAL = """
name: mine
language: en
licence: CC0-1.0
files: [c.jsonl]
"""


def test_the_smallest_corpus_and_dataset_work_as_they_are():
    corpus = parse_source(SMALLEST | {"files": ["/x/c.jsonl"]})
    assert not corpus.is_dataset
    assert corpus.suites == ("corpus",)
    assert corpus.patterns == {None: ("/x/c.jsonl",)}
    fields = {"text": "text", "label": "label"}
    dataset = parse_source(
        SMALLEST | {"fields": fields, "files": {"test": "/x/e.jsonl", "train": ["/x/t.jsonl"]}}
    )
    assert dataset.is_dataset
    assert dataset.suites == ("dataset",)
    assert list(dataset.patterns.items()) == [("train", ("/x/t.jsonl",)), ("test", ("/x/e.jsonl",))]


@pytest.mark.parametrize(
    ("labels", "pictures", "suite"),
    [
        (["yes"], True, "answers"),  # captions, for which one label is no fault
        (["yes"], False, "dataset"),
        (["yes", "no"], True, "dataset"),
    ],
)
def test_captions_need_no_second_label(labels: list[str], pictures: bool, suite: str):
    fields = {"text": "text", "label": "label"} | ({"picture": "picture"} if pictures else {})
    more: dict[str, Any] = {"fields": fields, "where": {"label": labels}}
    more |= {"pictures": ["/x/p.zip"]} if pictures else {}
    assert parse_source(SMALLEST | {"files": ["/x/t.jsonl"]} | more).suites == (suite,)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("name: no", "name: expected text, got `false` (YAML reads yes, no, on and off so: quote"),
        ("name: other", "name: expected the file's own, 'mine', got 'other'"),
        ("name: ../mine", "name: expected letters, digits"),
        ("language: no", "language: expected text, got `false`"),
        (f"name: {'x' * 81}", "name: expected at most 80 characters (it names files), got 81"),
        ("language: English", "language: expected a code such as en or zh, got 'English'"),
        ("licence: ''", "licence: expected an SPDX name"),
        ("licence: 3", "licence: expected text, got the number 3"),
        ("files: []", "files: expected paths or patterns, one or more"),
        ("files: 3", "files: expected a mapping, got the number 3"),
        ("files: [1]", "files[0]: expected text, got the number 1"),
        ("files: {trian: a}", "files.trian: expected a list of files, or the splits"),
        ("files: {test: a}", "expected at least the split 'train'"),
        ("files: {train: a}", "a corpus (no 'label' among its fields) is split by us"),
        ("packages: [numpy]", "expected either 'files' or 'packages', got both"),
        ("fields: {txt: a}", "fields.txt: 'txt' is not a key here; did you mean 'text'?"),
        ("format: conll2003", "format: conll2003: write `format: conll`"),
        ("fields: {tokens: a, tags: b}", "fields.tokens: write the words (or the text) as 'text'"),
        ("fields: {question: q}", "fields.question: write the question as 'text'"),
        ("answers: span", "answers: span: expected 'fields' to name the column as 'label'"),
        ("answers: 3", "answers: expected text, got the number 3"),
        ("fields: text", "fields: expected a mapping, got the text 'text'"),
        ("licens: x", "licens: 'licens' is not a key here; did you mean 'licence'?"),
        (
            "licen\u0441e: x",
            "'licen\u0441e' is not a key here (its letter 6 is U+0441, CYRILLIC SMALL LETTER ES); "
            "did you mean 'licence'?",
        ),
        ("encoding: utf-9", "encoding: 'utf-9' is not an encoding"),
        ("encoding: rot13", "is not an encoding of text files"),
        ("document: lines", "document: expected 'file', 'line'"),
        ("rows_per_label: 0", "rows_per_label: expected at least 1, got the number 0"),
        ("rows_per_label: 1.5", "rows_per_label: expected a whole number, got the number 1.5"),
        ("fetch: always", "fetch: expected 'none', got the text 'always'"),
        ("origin: {url: https://x.org/c}", "origin: expected the sha256 of what is published"),
        ("origin: {url: c.jsonl, sha256: x}", "origin: expected an address with https://"),
        ("origin: {url: 'https://x', sha256: abc}", "origin: expected a sha256 of 64 hexadecimal"),
        ("origin: {url: 'https://x', shaa256: abc}", "origin.shaa256: 'shaa256' is not a key here"),
        ("x: !!python/object/apply:os.getcwd []", "is not allowed; write plain values"),
        ("1: 2", "a key must be text, got '1'"),
        ("name: mine\nname: mine", "the key 'name' occurs twice, in lines"),
        ("x: {" * 60, "line 6"),
        ("- a", "line 6: not YAML"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, line: str, said: str):
    folder = tmp_path / "sources"
    folder.mkdir()
    key = line.split(":")[0]
    kept = [each for each in MINIMAL.split("\n") if not each.startswith(f"{key}:")]
    (folder / "mine.yaml").write_text("\n".join(kept) + line + "\n")
    with pytest.raises(RecipeError) as caught:
        load_source("mine", [tmp_path])
    assert str(caught.value).startswith("sources/mine.yaml: ")
    if not said.startswith("line"):
        assert said in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"answers": "Spans"}, "answers: expected one of label, number, label_set, spans, extract"),
        ({"answers": "extract"}, "fields.text_pair: expected the column of the context"),
        ({"answers": "choice"}, "fields.choices: expected the columns of the choices"),
        (
            {"fields": {"label": "l", "choices": ["a", "b"]}},
            "fields.choices: only with `answers: c",
        ),
        (
            {"answers": "spans", "fields": {"label": "l", "text_pair": "b"}},
            "a row of 'spans' has one text",
        ),
        (
            {"answers": "spans", "fields": {"label": "l", "text": "{a} {b}"}},
            "the text that 'spans' point into must be one column",
        ),
        ({"answer_language": "de"}, "answer_language: only with `answers: text`, got 'label'"),
        ({"answers": "text", "answer_language": "German"}, "answer_language: expected a code such"),
        (
            {
                "format": "parallel",
                "join": {"by": "line", "files": "b.de"},
                "files": {"train": "a"},
            },
            "join.files: expected the splits of 'files', for parallel text",
        ),
        ({"tag_scheme": "iob1"}, "tag_scheme: only with `answers: spans`, got 'label'"),
        ({"answers": "spans", "tag_scheme": "iob3"}, "tag_scheme: expected 'iob1', 'iob2'"),
        ({"answers": "number", "rows_per_label": 3}, "rows_per_label: only with `answers: label`"),
        ({"set_aside": 0}, "set_aside: expected more than 0, got the number 0"),
        ({"set_aside": 0.4}, "set_aside: expected at most 0.3, got the number 0.4"),
        ({"set_aside": "a third"}, "set_aside: expected a number, got the text 'a third'"),
        ({"set_aside": float("nan")}, "set_aside: expected"),
        (
            {"set_aside": 0.2, "files": {"train": "a", "dev": "b", "test": "c"}},
            "set_aside: train, dev and test are all listed; leave it out",
        ),
        ({"set_aside": 0.2, "fields": {"text": "text"}}, "set_aside: only with labelled rows"),
        ({"label_names": 3}, "label_names: expected a mapping, got the number 3"),
        ({"label_names": ["a", 1]}, "label_names.1: expected text, got the number 1"),
    ],
)
def test_keys_that_do_not_fit_the_kind_of_answer_are_refused(settings: dict[str, Any], said: str):
    raw = SMALLEST | {"files": "x", "fields": {"text": "text", "label": "l"}} | settings
    with pytest.raises(RecipeError) as caught:
        parse_source(raw)
    assert said in str(caught.value)


def test_a_kind_of_answer_is_built_in_or_a_file_of_the_project(tmp_path: Path):
    for folder in ("sources", "answers"):
        (tmp_path / folder).mkdir()
    text = MINIMAL + "fields: {text: text, label: tags}\nanswers: {}\n"
    (tmp_path / "sources" / "mine.yaml").write_text(text.replace("{}", "span"))
    with pytest.raises(UnknownNameError, match="did you mean 'spans'"):
        load_source("mine", [tmp_path])
    (tmp_path / "answers" / "span.py").write_text("")
    assert load_source("mine", [tmp_path]).answers == "span"


def test_the_examples_of_the_documentation_are_sources(tmp_path: Path):
    page = Path(__file__).parents[2] / "docs" / "sources.md"
    blocks = re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    kinds = set()
    for number, block in enumerate(blocks):
        path = tmp_path / f"s{number}.yaml"
        path.write_text(f"name: {path.stem}\nlanguage: en\nlicence: none\n{block}", "utf-8")
        kinds.add(read_source(path).answers)
    assert kinds == set(ANSWERS)


def test_columns_in_a_pattern_are_all_needed():
    fields = {"text": "{title}. {body}", "label": 3, "choices": ["a", "b"]}
    source = parse_source(SMALLEST | {"files": "x", "fields": fields, "answers": "choice"})
    named = [column for _, column in source.columns_named()]
    assert named == ["title", "body", "3", "a", "b"]


@pytest.mark.parametrize("key", ["name", "language", "licence", "files"])
def test_each_key_that_is_missing_is_said(key: str):
    raw = {name: value for name, value in (SMALLEST | {"files": ["a"]}).items() if name != key}
    with pytest.raises(RecipeError, match=rf"{key}: expected .*, got nothing"):
        parse_source(raw)


def test_unknown_names_suggest_the_nearest_and_paths_are_no_names(tmp_path: Path):
    with pytest.raises(UnknownNameError, match="did you mean 'chemprot'"):
        load_source("chemport", [])
    outside = tmp_path / "outside.yaml"
    outside.write_text(MINIMAL.replace("mine", "outside"))
    (tmp_path / "project" / "sources").mkdir(parents=True)
    for name in ("../../outside", str(outside)[:-5], "", ".", "mine.yaml"):
        with pytest.raises(UnknownNameError):
            load_source(name, [tmp_path / "project"])


def test_a_project_folder_is_searched_before_the_built_in_sources(tmp_path: Path):
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "sst2.yaml").write_text(MINIMAL.replace("mine", "sst2"))
    assert load_source("sst2", [tmp_path]).project == tmp_path
    assert load_source("sst2", []).project is None
    assert "chemprot" in source_names([tmp_path])


@pytest.mark.parametrize("name", source_names([]))
def test_every_built_in_source_loads(name: str):
    source = load_source(name, [])
    assert source.description
    assert source.fetch == "none" or source.origin


def test_dates_and_a_byte_order_mark_are_no_surprise(tmp_path: Path):
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "mine.yaml").write_bytes(b"\xef\xbb\xbf" + MINIMAL.encode())
    assert load_source("mine", [tmp_path]).language == "en"
    (folder / "mine.yaml").write_bytes(b"name: caf\xe9")
    with pytest.raises(RecipeError, match="line 1: not UTF-8"):
        load_source("mine", [tmp_path])


KEYS = st.sampled_from(
    "name language licence files fields origin fetch format encoding document columns quotes "
    "packages markings rows_per_label minimum_words contract description nmae".split()
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["en", "utf-8", "none", "text", "https://x.org/y", "a" * 64, "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["train", "test", "text", "label", "url", "sha256", "path", "files", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=6,
)


@settings(max_examples=400)
@given(st.dictionaries(KEYS, VALUES, max_size=9))
def test_any_mapping_is_a_source_or_a_recipe_error(raw: dict[str, Any]):
    message = "source: "
    try:
        parse_source(raw).settings()
    except RecipeError as error:
        message = str(error)
    assert message.startswith("source: ")
