"""What `predict` says before any model is loaded, and the files it reads and writes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from fourstage.command.exits import exit_code_of
from fourstage.command.parser import parse
from fourstage.command.row_files import (
    BATCH,
    SUFFIXES,
    read_one_text,
    read_rows,
    read_texts,
    written,
)
from fourstage.command.verbs.predict import LABEL, _batches, _check, _counted, _said, _told
from fourstage.errors import ContractViolation, RecipeError


def told(*words: str, capsys: pytest.CaptureFixture) -> tuple[int, str]:
    code = exit_code_of(lambda: (o := parse(("predict", "m@champion", *words))).handler(o))
    return code, capsys.readouterr().err


def test_a_column_that_is_not_there_is_said_with_those_that_are(tmp_path: Path, capsys):
    file = tmp_path / "rows.csv"
    file.write_text("\ufeffid,revue\n1,good\n", "utf-8")
    code, said = told("--input", str(file), "--column", "review", capsys=capsys)
    assert code == 2
    assert "did you mean 'revue'?" in said
    code, said = told("--input", str(file), "--column", "text", capsys=capsys)
    assert code == 2
    assert "id, revue" in said


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--column", "review"), "--column needs --input FILE"),
        (("--input", "no.csv", "--column", "a"), "there is no file no.csv"),
        (("a text", "--pictures", "no.zip"), "--pictures: expected a folder, got no.zip; unpack"),
        (("a text", "--input", "rows.csv", "--column", "a"), "texts or --input FILE, got both"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(words, expected, capsys):
    code, said = told(*words, capsys=capsys)
    assert code == 2
    assert expected in said


def test_the_column_is_asked_for_by_name_unless_there_is_one_alone(tmp_path: Path, capsys):
    file = tmp_path / "rows.csv"
    file.write_text("id,review\n1,good\n", "utf-8")
    code, said = told("--input", str(file), capsys=capsys)
    assert code == 2
    assert said.rstrip().endswith(f"--column NAME; {file} has id, review")
    file.write_text("review\ngood\n", "utf-8")
    asked = parse(("predict", "m@champion", "--input", str(file)))
    _check(asked)
    assert list(_batches(asked)) == [[({"review": "good"}, ["good"])]]


def test_a_file_in_the_place_of_a_text_is_told_how_it_is_read(tmp_path: Path, capsys):
    file = tmp_path / "rows.csv"
    file.write_text("review\ngood\n", "utf-8")
    code, said = told(str(file), capsys=capsys)
    assert code == 2
    assert f"its rows are read by --input {file}" in said


def test_what_was_cut_or_did_not_end_is_counted_and_said():
    answers = [
        {"text": "a", "ended": True, "cut": False},
        {"text": "b", "ended": False, "cut": True},
        {"text": "c", "ended": False, "cut": False},
        {"label": "d"},
        {"label": None, "error": "empty text"},
    ]
    limits: Counter[str] = Counter()
    told = list(_counted((({}, answer) for answer in answers), limits))
    assert [answer for _, answer in told] == answers
    cut, unended = _told(limits).split("; ")
    assert cut == "cut, as longer than the model reads: 1"
    assert unended == "stopped at the largest length of an answer: 2"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"label": "a", "score": 0.5}, "a"),
        (
            {"text": 'A "b"\nc', "answer": r'["A \"b\"\nc"]', "ended": True, "cut": False},
            'A "b"\nc',
        ),
        ({"text": "", "answer": '[""]', "ended": True, "cut": False}, ""),
        ({"text": None, "answer": None, "ended": None, "cut": None, "error": "it begins"}, None),
        ({"text": "b c", "answer": '[[4, "b c"]]'}, '[[4, "b c"]]'),  # a part of a passage
        ({"answer": '["x", "y"]', "labels": ["x", "y"]}, '["x", "y"]'),
        ({"vector": [0.5, 1.0]}, "[0.5, 1.0]"),
        ({"label": None, "score": None, "error": "empty text"}, None),
    ],
)
def test_a_written_text_is_said_as_it_is_and_other_answers_as_json(answer, said):
    assert _said(answer) == said


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_rows_come_back_as_they_were_written(tmp_path: Path, suffix: str):
    file = tmp_path / f"rows{suffix}"
    rows = [
        {"id": str(i), "text": f'第{i},\t"行"\n', "score": None if i < 300 else "0.5"}
        for i in range(600)
    ]
    with written(file, {"score": str}) as writer:
        for start in range(0, 600, 200):
            writer.write(rows[start : start + 200])
    batches = list(read_rows(file))
    assert len(batches) > 2  # never the whole file
    read = [row for batch in batches for row in batch]
    missing = "" if suffix in (".csv", ".tsv") else None
    assert read == [row | {"score": row["score"] or missing} for row in rows]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv"])
def test_half_of_an_emoji_in_a_row_ends_no_file(tmp_path: Path, suffix: str):
    source, target = tmp_path / "rows.jsonl", tmp_path / f"told{suffix}"
    source.write_text('{"text": "fine \\ud83d"}\n{"text": "so"}\n', "utf-8")
    (rows,) = read_rows(source)
    with written(target, {}) as writer:
        writer.write(rows)
    assert list(read_rows(target)) == [[{"text": "fine ?"}, {"text": "so"}]]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_list_is_as_many_texts(tmp_path: Path, suffix: str):
    file = tmp_path / f"rows{suffix}"
    rows = [
        {"text": "a", "choices": ["b", "c"], "more": "d"},
        {"text": None, "choices": ["b"], "more": "d"},
        {"text": "a", "choices": [], "more": None},
    ]
    with written(file, {}) as writer:
        writer.write(rows)
    (batch,) = read_texts(file, ["text", "choices", "more"])
    assert [texts for _, texts in batch] == [["a", "b", "c", "d"], ["", "b", "d"], ["a", ""]]
    assert [row for row, _ in batch] == rows


def test_a_list_of_texts_where_one_is_read_is_named(tmp_path: Path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"a": ["x"]}\n{"a": null}\n{"a": ["x", "y"]}\n', "utf-8")
    with pytest.raises(ContractViolation, match=r"row 3: expected one text in column a, .* 2"):
        list(read_one_text(file, "a"))
    file.write_text('{"a": ["x"]}\n{"a": null}\n', "utf-8")
    ((one, none),) = read_one_text(file, "a")
    assert (one, none) == (({"a": ["x"]}, "x"), ({"a": None}, ""))


def test_an_interruption_leaves_nothing_and_the_old_file_as_it_was(tmp_path: Path):
    file = tmp_path / "out.csv"
    file.write_text("old\n")

    def interrupted() -> None:
        with written(file, {}) as writer:
            writer.write([{"a": "1"}])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert file.read_text() == "old\n"


@pytest.mark.parametrize("parts", [";", "\t", "|"])
def test_a_comma_in_numbers_makes_programs_write_something_else(tmp_path: Path, parts: str):
    file = tmp_path / "rows.csv"
    file.write_text("id;review\n1;good, really\n".replace(";", parts), "utf-8-sig")
    assert list(read_rows(file)) == [[{"id": "1", "review": "good, really"}]]


def test_a_file_in_another_encoding_is_read_as_what_it_is(tmp_path: Path):
    file = tmp_path / "rows.csv"
    review = "送餐很快，味道也不错，就是份量少了一点，下次还会再来。"
    text = f"编号,评论\n1,{review}\n"
    rows = [[{"编号": "1", "评论": review}]]
    for marked in ("utf-8-sig", "utf-16", "utf-32"):
        file.write_bytes(text.encode(marked))
        assert list(read_rows(file)) == rows
    file.write_bytes(text.encode("gb18030"))
    with pytest.raises(ContractViolation, match=r"not UTF-8 .*; reads as GB18030: --encoding gb"):
        list(read_rows(file))
    assert list(read_rows(file, "gb18030")) == rows
    for wrong in ("gb18031", "rot13"):
        with pytest.raises(RecipeError, match=f"--encoding: .*{wrong}.*; utf-8 and gb18030 are"):
            list(read_rows(file, wrong))


def test_a_name_in_the_header_may_have_lines(tmp_path: Path):
    file = tmp_path / "rows.csv"
    file.write_text('"the\nid",review\n1,good\n')
    assert list(read_rows(file)) == [[{"the\nid": "1", "review": "good"}]]


def _write(file: Path, *rows: dict) -> None:
    with written(file, {}) as out:
        for row in rows:
            out.write([row])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_row_that_fits_no_table_is_refused_and_never_cut(tmp_path: Path, suffix: str):
    file = tmp_path / f"rows{suffix}"
    with pytest.raises(ContractViolation, match=r"a column 'note'.*jsonl"):
        _write(file, {"text": "a"}, {"text": "b", "note": "c"})
    assert list(tmp_path.iterdir()) == []


def test_a_parquet_column_of_several_types_is_refused(tmp_path: Path):
    for values in ([1, "a"], [None, 1]):
        with pytest.raises(ContractViolation, match="several types"):
            _write(tmp_path / "rows.parquet", *({"text": value} for value in values))


@pytest.mark.parametrize("row", [0, 1])
def test_a_column_that_the_answers_would_replace_is_refused_in_whichever_row(tmp_path: Path, row):
    file = tmp_path / "rows.jsonl"
    lines = [{"text": "a"}, {"text": "b"}]
    lines[row][LABEL] = "mine"
    file.write_text("\n".join(map(json.dumps, lines)))
    asked = parse(("predict", "m@champion", "--input", str(file), "--column", "text"))
    with pytest.raises(RecipeError, match=f"has a column {LABEL} already"):
        list(_batches(asked))


def test_later_rows_may_lack_the_column_of_texts(tmp_path: Path):
    file = tmp_path / "rows.jsonl"
    lines = ['{"text": "a"}'] + ['{"id": 1}'] * (2 * BATCH)
    file.write_text("\n".join(lines))
    texts = [of for batch in read_texts(file, ["text"]) for _, of in batch]
    assert texts == [["a"]] + [[""]] * (2 * BATCH)


def test_a_parquet_file_that_claims_more_than_its_size_can_hold_is_refused(tmp_path: Path):
    indices = pyarrow.array([0] * 1000, pyarrow.int32())
    texts = pyarrow.DictionaryArray.from_arrays(indices, ["word " * 200_000])
    file = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), file, store_schema=False)
    with pytest.raises(ContractViolation, match=r"rows.parquet: .*text does not compress so well"):
        list(read_rows(file))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", b"id,text\n1,a\n2\n", "line 3: 1 cells, the header has 2"),
        ("a.csv", b"id,text\n1,\xff\n", "not UTF-8"),
        ("a.csv", b"", "expected a header"),
        ("a.jsonl", b'{"text": "a"}\n{"text"\n', "line 2: "),
        ("a.jsonl", b"[1]\n", "line 1: expected a JSON object, got list"),
        ("a.parquet", b"PAR1", "a.parquet: "),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(tmp_path: Path, name, content, expected):
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(ContractViolation, match=expected) as error:
        list(read_rows(file))
    assert str(file) in str(error.value)
