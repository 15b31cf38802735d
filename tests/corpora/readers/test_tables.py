"""CSV, TSV and Parquet (faults S09, S13)."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.archives import contents
from corpora.delimited import delimiter_of
from corpora.readers import Raw
from fourstage.command.row_files import read_rows
from fourstage.errors import ContractViolation
from tests.corpora.conftest import Prepare, source_of
from tests.corpora.made_up import rows, write


def test_a_quote_that_is_never_closed_is_an_error_naming_its_line(tmp_path: Path, dataset: Prepare):
    path = tmp_path / "t.csv"
    body = "".join(f"a fine film number {i},pos\na poor film number {i},neg\n" for i in range(200))
    test = write(tmp_path / "e.jsonl", rows(40, 9))
    path.write_text('text,label\n"never closed,pos\n' + body)
    with pytest.raises(ContractViolation, match=r"t\.csv: line 2: a quote opens here"):
        dataset(path, test)
    path.write_text('text,label\n"never closed,pos\n' + body + 'a "quoted, film",pos\n' + body)
    with pytest.raises(ContractViolation, match=r"t\.csv: line 2: a quote opens here"):
        dataset(path, test)
    path.write_text('text,label\n"never closed,pos\n' + body * 30)
    with pytest.raises(ContractViolation, match=r"line 2: .* within 10,000 lines"):
        dataset(path, test)


def test_labels_that_look_like_missing_values_are_three_classes(tmp_path: Path, dataset: Prepare):
    body = "text,label\n" + "".join(
        f"relation number {i} is absent,None\nrelation number {i} holds,NA\n"
        f"relation number {i} unclear,null\n"
        for i in range(100)
    )
    train, test = tmp_path / "t.csv", tmp_path / "e.csv"
    train.write_text(body)
    test.write_text(body)
    with pytest.raises(ContractViolation, match=r"no training row is left of 300"):
        dataset(train, test)
    assert dataset(train, test, overlap="report").labels() == ["NA", "None", "null"]


def test_quoted_commas_quotes_and_line_ends_stay_in_their_field(tmp_path: Path, corpus: Prepare):
    path = tmp_path / "t.csv"
    path.write_bytes(b'text,n\r\n"one, ""two""\nthree",1\r\nNA,2\r\nlast of all,3')
    table = corpus(path).table()
    assert [row["text"] for row in table] == ['one, "two"\nthree', "NA", "last of all"]
    assert [row["location"] for row in table] == ["t.csv:2", "t.csv:4", "t.csv:5"]


@pytest.mark.parametrize("bad", [b'in \xff between\nlast"', b'whole\nlast \xff"'])
def test_a_record_with_a_line_that_cannot_be_decoded_is_rejected_whole(
    tmp_path: Path, corpus: Prepare, bad: bytes
):
    path = tmp_path / "t.csv"
    good = "".join(f"text number {i},1\n" for i in range(20)).encode()
    path.write_bytes(b'text,n\n"first\n' + bad + b",2\nnext of all,3\n\xff end,4\n" + good)
    prepared = corpus(path)
    texts = [row["text"] for row in prepared.table()]
    assert texts == ["next of all", *(f"text number {i}" for i in range(20))]
    assert prepared.counts.quarantined == {"not utf-8": 2}
    assert [item["location"] for item in prepared.rejected()] == ["t.csv:2", "t.csv:6"]
    assert prepared.counts.read == 23


def test_rows_of_a_wrong_width_are_rejected_by_line(tmp_path: Path, corpus: Prepare):
    path = tmp_path / "t.csv"
    path.write_text("text,n\none of two,1\ntwo,2,3\nthree\n\nfour of two,4\n")
    prepared = corpus(path)
    assert prepared.counts.quarantined == {"wrong number of fields": 2}
    assert [item["location"] for item in prepared.rejected()] == ["t.csv:3", "t.csv:4"]


def test_a_missing_column_is_named_with_the_nearest(tmp_path: Path, corpus: Prepare):
    path = tmp_path / "t.csv"
    path.write_text("texts,label\na,b\n")
    with pytest.raises(ContractViolation, match=r"expected a column 'text'.*did you mean 'texts'"):
        corpus(path)
    path.write_text(f"A text of somebody,pos,{'x' * 50}\na,b,c\n")
    with pytest.raises(ContractViolation, match=r"It has 3 columns, such as pos\. Correct"):
        corpus(path)
    path.write_text("A text of somebody,\na,b\n")
    with pytest.raises(ContractViolation, match=r"It has 2 columns, none with a short name\."):
        corpus(path)
    path.write_text("a text,a text\na,b\n")
    with pytest.raises(ContractViolation, match="the column 1 occurs twice in the header"):
        corpus(path)
    path.write_text("text,text\na,b\n")
    with pytest.raises(ContractViolation, match="occurs twice in the header"):
        corpus(path)


@pytest.mark.parametrize("parts", [";", "\t", "|"])
def test_something_else_parts_a_csv_whose_first_line_has_no_comma(
    parts: str, tmp_path: Path, corpus: Prepare
):
    path = tmp_path / "t.csv"
    path.write_text('text;n\nfine, and well;1\n"a;b, c and d";2\n'.replace(";", parts))
    quoted = " ".join(f"a{parts}b, c and d".split())  # in a text a tab becomes a blank
    assert [row["text"] for row in corpus(path).table()] == ["fine, and well", quoted]
    assert [row["location"] for row in corpus(path).table()] == ["t.csv:2", "t.csv:3"]
    path.write_text("first this; then that\nand, at last, the end\n".replace(";", parts))
    assert corpus(path, columns=["text"], quotes="none").counts.quarantined == {
        "wrong number of fields": 1
    }


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        ('Name, Vorname;Text;n\nMeier, Jo;"well, or; not";1\nKo;short;2\n', ";"),
        ("Text (kurz, lang)\tn\nfine, well, good\t1\nshort\t2\n", "\t"),
        ("Text (kurz, lang);n\n", ","),  # with nothing but a header a comma is as good
        ("text,one;other\na,1;2\nb,2;1\n", ","),
        ('text,one;other\n"a\nb",1\nb,2\nc;d,3\n"cut', ","),
        ("text;n\nfine;1;2\nwell;3;4\n", ";"),
        ("text\nfine; or well\n", ","),
        ("", ","),
    ],
)
def test_a_csv_is_parted_by_what_most_records_agree_on(table: str, parts: str):
    assert delimiter_of(table.splitlines(keepends=True), ",") == parts


def test_a_comma_in_the_header_does_not_part_what_semicolons_part(tmp_path: Path, corpus: Prepare):
    path = tmp_path / "t.csv"
    path.write_text("Text (kurz, lang);n\n" + "well, this, is fine;1\nthis; too\n" * 30)
    names = {"text": "Text (kurz, lang)"}
    assert corpus(path, fields=names).counts.read == 60
    (rows,) = read_rows(path)
    assert rows[0] == {"Text (kurz, lang)": "well, this, is fine", "n": "1"}


def test_in_tsv_quotes_are_characters_unless_said_otherwise(tmp_path: Path, corpus: Prepare):
    path = tmp_path / "t.tsv"
    path.write_text('"He said\t1\nfine and well\t2\n')
    prepared = corpus(path, columns=["text", "label"])
    assert [row["text"] for row in prepared.table()] == ['"He said', "fine and well"]
    with pytest.raises(ContractViolation, match="line 1: a quote opens here"):
        corpus(path, columns=["text", "label"], quotes="standard")


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
            st.text("abc\"',\t\n ", max_size=10),
        ),
        min_size=1,
        max_size=10,
    )
)
def test_what_the_csv_module_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, values: list[tuple[str, str]]
):
    from corpora.readers.csv import read
    from corpora.snapshot import take_snapshot

    path = tmp_path_factory.mktemp("csv") / "t.csv"
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["text", "n"])
    writer.writerows(values)
    path.write_bytes(buffer.getvalue().encode())
    source = source_of(files=str(path))
    [state] = take_snapshot(source).files
    found = [item for content in contents(state) for item in read(content, source)]
    assert all(isinstance(item, Raw) for item in found)
    assert [(i.values["text"], i.values["n"]) for i in found if isinstance(i, Raw)] == values


def test_parquet_rows_are_read_by_role_and_damage_is_named(tmp_path: Path, dataset: Prepare):
    path = tmp_path / "t.parquet"
    table = pyarrow.table(
        {
            "id": list(range(40)),
            "body": [f"row number {i} of the table" for i in range(39)] + [None],
            "kind": [i % 2 for i in range(40)],
            "unread": [b"\xff"] * 40,
        }
    )
    pyarrow.parquet.write_table(table, path)
    fields = {"text": "body", "label": "kind"}
    prepared = dataset(path, fields=fields)
    assert prepared.labels() == ["0", "1"]
    assert prepared.counts.quarantined == {"field 'body' is not text": 1}
    assert prepared.table()[0]["id"] == "0"
    with pytest.raises(ContractViolation, match=r"expected a column 'bodi'.*did you mean 'body'"):
        dataset(path, fields={"text": "bodi", "label": "kind"})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ContractViolation, match=r"t\.parquet: not a whole Parquet file"):
        dataset(path, fields=fields)


CHANCE = "".join(random.Random(1).choices("abcdefgh", k=2_000_000))


def _shared(text: str, values: int) -> pyarrow.DictionaryArray:
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * values, pyarrow.int32()), [text])


def _one_list(values: pyarrow.Array) -> pyarrow.ListArray:
    return pyarrow.ListArray.from_arrays([0, len(values)], values)


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (lambda: _shared("x" * 30_000_000, 10), r"3\d,\d{3},\d{3}"),
        (lambda: _shared(CHANCE, 5000), "512,000,000"),  # of 10 GB, in the first batch
        (lambda: _shared(CHANCE, 100).cast(pyarrow.large_string()), "200,000,000"),
        (lambda: _one_list(_shared(CHANCE, 1000)), "2,000,000,000"),
        (lambda: _one_list(pyarrow.array(bytes(9_000_000), pyarrow.uint8())), "9,000,000"),
        (lambda: pyarrow.nulls(10_000_000, pyarrow.string()), "10,000,000"),
    ],
    ids=["page", "rows of one text", "large strings", "list of one text", "long list", "nulls"],
)
def test_a_parquet_file_that_claims_too_much_is_refused_in_little_memory(
    tmp_path: Path, column: Callable[[], pyarrow.Array], told: str
):
    from corpora.readers.parquet import read
    from corpora.snapshot import take_snapshot

    path = tmp_path / "t.parquet"
    table = pyarrow.table({"text": column()})
    schema = not pyarrow.types.is_dictionary(table.schema[0].type)
    pyarrow.parquet.write_table(table, path, compression="zstd", store_schema=schema)
    del table
    assert path.stat().st_size < 1_000_000
    source = source_of(files=str(path))
    [state] = take_snapshot(source).files
    usual = pyarrow.default_memory_pool()
    pool = pyarrow.proxy_memory_pool(usual)
    pyarrow.set_memory_pool(pool)
    try:
        with pytest.raises(ContractViolation, match=rf"t\.parquet: .* already gave {told}, more"):
            next(item for content in contents(state) for item in read(content, source))
    finally:
        pyarrow.set_memory_pool(usual)
    assert pool.max_memory() < 100_000_000
