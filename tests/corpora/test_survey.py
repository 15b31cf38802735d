"""Looking at files: what is found, what is guessed and said, what is refused and what to say."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from corpora.survey import Survey, num_tokens, survey
from data_contracts.sources import parse_source
from fourstage.errors import ContractViolation, UnknownNameError
from tests.corpora.made_up import chinese, documents

TEXTS = [record["text"] for record in documents(60)]
LABELS = ["bug", "question", "idea"]
NAMED = ("number,body,queue", [f"{n},{text},{LABELS[n % 3]}" for n, text in enumerate(TEXTS)])


def _write(path: Path, lines: list[str], encoding: str = "utf-8") -> str:
    path.write_text("\n".join(lines) + "\n", encoding=encoding)
    return str(path)


def _rows(*paths: str, **said: str) -> Survey:
    return survey("rows", paths, labelled=True, **said)


def test_a_table_with_names_tells_text_label_id_and_counts(tmp_path: Path):
    found = _rows(_write(tmp_path / "t.csv", [NAMED[0], *NAMED[1]]))
    assert found.source["fields"] == {"id": "number", "text": "body", "label": "queue"}
    assert found.labels == {"bug": 20, "question": 20, "idea": 20}
    assert (found.records, found.format, found.splits, found.whole) == (60, "csv", {}, True)
    parse_source(found.source)


def test_a_table_without_names_is_given_some(tmp_path: Path):
    lines = [f"{text}\t{n % 2}" for n, text in enumerate(TEXTS)]
    found = _rows(_write(tmp_path / "t.tsv", lines))
    assert found.source["columns"] == ["text", "label"]
    assert found.records == 60  # the first row among them
    assert any("first row" in assumed for assumed in found.assumed)


def test_a_known_or_named_column_makes_a_header_of_long_cells_and_numbers(tmp_path: Path):
    rows = [f"{text},{LABELS[n % 3]},{n % 5}" for n, text in enumerate(TEXTS)]
    found = _rows(_write(tmp_path / "t.csv", ["Text,label,2024", *rows]))
    assert found.source["fields"] == {"text": "Text", "label": "label"}
    question = f"What did you like about our service{' so far' * 10}?"
    path = _write(tmp_path / "t.csv", [f"{question},What was it?,2024", *rows])
    found = _rows(path, label="2")
    assert found.records == 61
    assert any("if it is one, call its columns" in assumed for assumed in found.assumed)
    found = _rows(path, label="What was it?")
    assert found.source["fields"] == {"text": question, "label": "What was it?"}
    assert (found.records, "columns" in found.source) == (60, False)
    # Labels may be called what columns are.
    rows = [f"{text},{['topic', 'question'][n % 2]}" for n, text in enumerate(TEXTS)]
    assert _rows(_write(tmp_path / "t.csv", rows)).records == 60


def test_an_empty_last_column_and_a_label_without_a_name_are_below_a_header(tmp_path: Path):
    rows = [f"{text},{LABELS[n % 3]}" for n, text in enumerate(TEXTS)]
    found = _rows(_write(tmp_path / "t.csv", ["text,label,", *(f"{row}," for row in rows)]))
    assert found.source["fields"] == {"text": "text", "label": "label"}
    assert (found.records, "columns" in found.source) == (60, False)
    found = _rows(_write(tmp_path / "t.csv", ["text,", *rows]))
    assert found.source["fields"] == {"text": "text", "label": ""}
    assert found.labels == {"bug": 20, "question": 20, "idea": 20}
    assert parse_source(found.source).is_dataset


def test_json_lines_are_known_whatever_the_file_is_called(tmp_path: Path):
    lines = [json.dumps({"text": t, "intent": LABELS[n % 3]}) for n, t in enumerate(TEXTS)]
    for name in ("train.txt", "test.txt"):
        _write(tmp_path / name, lines)
    found = _rows(str(tmp_path / "*.txt"))
    assert found.source["format"] == "jsonl"
    assert found.splits == {"train": 60, "test": 60}
    assert set(found.source["files"]) == {"train", "test"}


def test_parquet_and_members_of_an_archive_are_looked_into(tmp_path: Path):
    table = {"body": TEXTS, "topic": [LABELS[n % 3] for n in range(60)], "year": list(range(60))}
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "t.parquet")
    assert _rows(str(tmp_path / "t.parquet")).source["fields"]["label"] == "topic"
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        for split in ("train", "dev"):
            archive.writestr(f"{split}.csv", "\n".join([NAMED[0], *NAMED[1]]))
    found = _rows(str(tmp_path / "z.zip"))
    assert found.source["files"] == {s: [f"{tmp_path}/z.zip!{s}.csv"] for s in ("train", "dev")}
    assert found.splits == {"train": 60, "dev": 60}


def test_without_a_label_the_columns_and_the_option_are_named(tmp_path: Path):
    lines = ["number,body", *(f"{n},{text}" for n, text in enumerate(TEXTS))]
    with pytest.raises(ContractViolation, match=r"no label column.*'number', 'body'.*--label"):
        _rows(_write(tmp_path / "t.csv", lines))
    with pytest.raises(ContractViolation, match="--corpus"):
        _rows(_write(tmp_path / "t.txt", TEXTS))


def test_labels_that_are_folders_or_fields_of_fields_are_said_not_to_be_read(tmp_path: Path):
    for label in LABELS:
        (tmp_path / label).mkdir()
        _write(tmp_path / label / "1.txt", TEXTS)
    with pytest.raises(ContractViolation, match="Folders are not read as labels: write each"):
        _rows(str(tmp_path))
    lines = [json.dumps({"text": t, "by": {"label": LABELS[n % 3]}}) for n, t in enumerate(TEXTS)]
    with pytest.raises(ContractViolation, match=r"no label .* Fields inside 'by' are not read"):
        _rows(_write(tmp_path / "t.jsonl", lines))


def test_names_of_files_that_tell_splits_may_have_the_mark_of_members(tmp_path: Path):
    for split in ("train", "test"):
        _write(tmp_path / f"wow!{split}.csv", [NAMED[0], *NAMED[1]])
    found = _rows(str(tmp_path / "*.csv"))
    assert found.source["files"]["test"] == [f"{tmp_path}/wow!test.csv"]
    assert found.splits == {"train": 60, "test": 60}


def test_of_several_labels_the_user_chooses_one(tmp_path: Path):
    lines = ["body,team,urgent", *(f"{t},{LABELS[n % 3]},{n % 2}" for n, t in enumerate(TEXTS))]
    path = _write(tmp_path / "t.csv", lines)
    with pytest.raises(ContractViolation, match=r"2 columns may be the label: 'team', 'urgent'"):
        _rows(path)
    assert _rows(path, label="urgent").labels == {"0": 30, "1": 30}
    with pytest.raises(UnknownNameError, match="did you mean 'team'"):
        _rows(path, label="teem")
    with pytest.raises(UnknownNameError, match="--text"):
        _rows(path, text="bodi")


def test_labels_that_differ_by_case_alone_are_refused_now(tmp_path: Path):
    lines = ["text,label", *(f"{t},{['Bug', 'bug'][n % 2]}" for n, t in enumerate(TEXTS))]
    with pytest.raises(ContractViolation, match="write each label in one way"):
        _rows(_write(tmp_path / "t.csv", lines))


def test_labels_of_two_types_are_refused_with_the_first_of_each(tmp_path: Path):
    kinds = [1, "1"]
    lines = [json.dumps({"text": t, "label": kinds[n == 7]}) for n, t in enumerate(TEXTS)]
    path = _write(tmp_path / "t.jsonl", lines)
    with pytest.raises(ContractViolation, match=r"first at t\.jsonl:1\), text .*t\.jsonl:8\)"):
        _rows(path, label="label", answers="label")


def test_labels_that_look_like_missing_values_are_told(tmp_path: Path):
    labels = ["N/A", "-", "bug", "idea", "nan", "-"]
    lines = [f"{text},{labels[n % 6]}" for n, text in enumerate(TEXTS)]
    (told,) = _rows(_write(tmp_path / "t.csv", ["text,label", *lines])).assumed[-1:]
    assert "missing values are classes of their own: `-` 20, `N/A` 10, `nan` 10;" in told
    found = _rows(_write(tmp_path / "t.csv", [NAMED[0], *NAMED[1]]))
    assert not any("missing" in assumed for assumed in found.assumed)


def test_a_label_that_no_training_row_has_is_told(tmp_path: Path):
    for split, labels in (("train", LABELS[:2]), ("test", LABELS)):
        lines = [f"{text},{labels[n % len(labels)]}" for n, text in enumerate(TEXTS)]
        _write(tmp_path / f"{split}.csv", ["text,label", *lines])
    (told,) = [said for said in _rows(str(tmp_path / "*.csv")).assumed if "will stop" in said]
    assert "no training row has the label `idea`;" in told


def test_the_language_and_the_encoding_of_chinese_are_found(tmp_path: Path):
    texts = [record["text"] for record in chinese(60)]
    found = survey("c", [_write(tmp_path / "c.txt", texts, "gb18030")], labelled=False)
    assert found.source["language"] == "zh"
    assert found.source["encoding"] == "gb18030"
    assert found.tokens == pytest.approx(sum(map(len, texts)), rel=0.1)
    said = survey("c", [str(tmp_path / "c.txt")], labelled=False, language="ja")
    assert said.source["language"] == "ja"


@pytest.mark.parametrize(
    ("text", "document"),
    [("\n\n".join(TEXTS), "paragraphs"), ("\n".join(TEXTS), "line"), (TEXTS[0], None)],
)
def test_documents_of_a_text_file_are_the_largest_part_of_which_there_are_many(
    tmp_path: Path, text: str, document: str | None
):
    found = survey("c", [_write(tmp_path / "c.txt", [text])], labelled=False)
    assert found.source.get("document") == document
    assert found.records == (60 if document else 1)


def test_many_files_are_a_document_each(tmp_path: Path):
    for number, text in enumerate(TEXTS[:30]):
        _write(tmp_path / f"{number}.txt", [text, "", text])
    assert survey("c", [str(tmp_path)], labelled=False).records == 30


def test_what_breaks_the_default_contract_is_counted(tmp_path: Path):
    texts = [*(record["text"] for record in chinese(90)), *TEXTS[:10]]
    found = survey("c", [_write(tmp_path / "c.txt", texts)], labelled=False)
    assert found.breaking == {"script_right": 0.1}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_what_excel_saves_where_the_comma_is_in_numbers_is_read(tmp_path: Path, encoding: str):
    lines = [line.replace(",", ";", 1) for line in NAMED[1]]
    lines = [";".join(line.rsplit(",", 1)) for line in lines]
    path = _write(tmp_path / "t.csv", [NAMED[0].replace(",", ";"), *lines], encoding)
    found = _rows(path)
    assert found.source["fields"] == {"id": "number", "text": "body", "label": "queue"}
    assert (found.records, found.unread) == (60, {})


@pytest.mark.parametrize(
    ("name", "lines", "expected"),
    [
        (
            "u.json",
            ["[1, 2]"],
            r"expected one JSON object a line, got a JSON array. `jq -c '.\[\]'",
        ),
        ("u.json", ["7"], "expected one JSON object a line"),
        ("u.jsonl", ['{"m": {"text": "a longer text"}}'], r"Fields inside 'm' are not read; write"),
        ("u.xlsx", ["x"], r"u\.xlsx: a workbook is not read; save it as CSV \(UTF-8\)\.$"),
        ("empty.csv", [], "expected rows below a header"),
        ("head.csv", ["number,body,queue"], "expected rows below a header"),
    ],
)
def test_what_has_no_record_is_refused_with_what_was_expected(
    tmp_path: Path, name: str, lines: list[str], expected: str
):
    with pytest.raises(ContractViolation, match=expected):
        survey("c", [_write(tmp_path / name, lines)], labelled=False)


def _tagged(scheme: str) -> list[str]:
    """Sentences about Ada Lovelace, then Bob, who is named right after her."""
    tags = {
        "iob1": ("I-per", "I-per", "B-per"),
        "iob2": ("B-per", "I-per", "B-per"),
        "bioes": ("B-per", "E-per", "S-per"),
        "bilou": ("B-per", "L-per", "U-per"),
        "bmes": ("B-per", "M-per", "E-per", "S-per"),
    }[scheme]
    names = ("Ada", *["King"] * (len(tags) - 3), "Lovelace", "Bob")
    words = zip(names, tags, strict=True)
    sentence = [f"{word} NNP {tag}" for word, tag in words]
    return [line for n in range(40) for line in (f"word{n} NN O", *sentence, "")]


@pytest.mark.parametrize("scheme", ["iob1", "iob2", "bioes", "bilou", "bmes"])
@pytest.mark.parametrize("name", ["t.conll", "t.txt", "t.tsv", "eng.tagged"])
def test_tagged_words_are_known_by_content_with_their_scheme(tmp_path, scheme: str, name: str):
    found = _rows(_write(tmp_path / name, _tagged(scheme)))
    assert found.source["format"] == "conll"
    assert found.source["columns"] == ["token", "column2", "tag"]
    assert found.source["answers"] == "spans"
    assert found.source.get("tag_scheme", "iob2") == scheme
    assert (found.records, found.labels, found.unread) == (40, {"per": 80}, {})


def test_numbers_of_words_are_not_the_words(tmp_path: Path):
    lines, number = [], 0
    for line in _tagged("iob2"):
        number = number + 1 if line else 0
        lines += ["# id a b"] if number == 1 else []
        lines.append(f"{number} {line}" if line else "")
    found = _rows(_write(tmp_path / "t.conll", lines))
    assert found.source["columns"] == ["column1", "token", "column3", "tag"]
    assert found.source["fields"] == {"text": "token", "label": "tag"}
    assert (found.records, found.labels, found.unread) == (40, {"per": 80}, {})


def test_a_few_illegal_tags_do_not_make_iob1(tmp_path: Path):
    lines = [*_tagged("iob2"), "Ada NNP I-per", ""]
    found = _rows(_write(tmp_path / "t.conll", lines))
    assert "tag_scheme" not in found.source
    assert (found.records, sum(found.unread.values())) == (40, 1)
    # Where entities are rare, few rows are illegal.
    lines = [*(f"word{n} NN O\n" for n in range(200)), "Ada NNP I-per", ""]
    assert _rows(_write(tmp_path / "u.conll", lines)).source["tag_scheme"] == "iob1"


def test_documents_of_tagged_words_stay_together(tmp_path: Path):
    path = _write(tmp_path / "t.txt", ["-DOCSTART- -X- O", "", *_tagged("iob2")])
    assert _rows(path).source["fields"]["group"] == "document"
    with pytest.raises(ContractViolation, match="answers of kind spans; leave --answers out"):
        _rows(path, answers="label")
    with pytest.raises(ContractViolation, match="expected on each line a word and"):
        _rows(_write(tmp_path / "u.conll", TEXTS))


def test_words_and_tags_in_json_lines_are_spans(tmp_path: Path):
    row = {"tokens": ["Ada", "met", "Bob"], "pos": ["N", "V", "N"], "tags": ["B-per", "O", "B-per"]}
    found = _rows(_write(tmp_path / "t.jsonl", [json.dumps(row)] * 20))
    assert found.source["fields"] == {"text": "tokens", "label": "tags"}
    assert (found.answers, found.labels) == ("spans", {"per": 40})


def test_lists_that_are_written_as_text_are_refused(tmp_path: Path):
    for value in ('[[0, 3, "per"]]', "['bug', 'idea']", '{"per": [[0, 3]]}'):
        cells = [value.replace('"', '""')] * 60
        lines = ["text,label", *(f'"{t}","{c}"' for t, c in zip(TEXTS, cells, strict=True))]
        path = _write(tmp_path / "t.csv", lines)
        with pytest.raises(ContractViolation, match="'label' has lists or objects that are"):
            _rows(path, label="label")
    assert _rows(path, label="label", answers="label").answers == "label"


def test_what_was_decided_on_annotations_is_no_label(tmp_path: Path):
    rows = [
        {"text": text, "spans": [{"start": 0, "end": 4, "label": "x"}], "answer": answer}
        for text, answer in zip(TEXTS, ["accept", "accept", "reject"] * 20, strict=True)
    ]
    found = _rows(_write(tmp_path / "t.jsonl", list(map(json.dumps, rows))))
    assert (found.answers, found.source["fields"]["label"]) == ("spans", "spans")
    assert any("`where: {answer: accept}` in the source" in said for said in found.assumed)
    rows = [row | {"answer": "accept"} for row in rows]
    found = _rows(_write(tmp_path / "u.jsonl", list(map(json.dumps, rows))))
    assert not any("accept" in said for said in found.assumed)


def test_numbers_in_place_of_tags_are_refused_with_what_to_do(tmp_path: Path):
    row = {"id": "1", "tokens": ["Ada", "met", "Bob"], "ner_tags": [1, 0, 1]}
    path = _write(tmp_path / "t.jsonl", [json.dumps(row)] * 20)
    said: list[dict[str, str]] = [{}, {"text": "tokens", "label": "ner_tags"}, {"answers": "spans"}]
    for asked in said:
        with pytest.raises(ContractViolation, match="'ner_tags' has a number for each word of"):
            _rows(path, **asked)
    rows = [row | {"text": TEXTS[n], "label": LABELS[n % 3]} for n in range(60)]
    found = _rows(_write(tmp_path / "u.jsonl", list(map(json.dumps, rows))))
    assert found.source["fields"] == {"text": "text", "label": "label"}


def test_the_ends_of_spans_are_those_with_which_most_rows_can_be_read(tmp_path: Path):
    row = {"text": "Ada met Bob", "label": {"per": {"Ada": [[0, 2]], "Bob": [[8, 10]]}}}
    found = _rows(_write(tmp_path / "t.jsonl", [json.dumps(row)] * 20))
    assert found.source["span_ends"] == "inclusive"
    assert (found.labels, found.unread) == ({"per": 40}, {})


def test_the_ends_of_spans_are_those_that_cut_no_words(tmp_path: Path):
    def read(*more: list, text: str = "Then Ada met Bob here", shift: int = 0) -> Survey:
        rows = [{"text": text, "label": [[5 + shift, 8, "per"]]} for _ in range(40)]
        rows[0]["label"] += more
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        return _rows(_write(tmp_path / "t.jsonl", lines))

    # An empty span is no reason to read all ends as inclusive.
    found = read([13, 13, "per"])
    assert "span_ends" not in found.source
    assert (found.labels, found.unread) == ({"per": 39}, {"an empty span": 1})
    assert not any("within a word" in said for said in found.assumed)
    # Words tell that ends are inclusive, though every row can be read otherwise.
    found = read(text="Then Adam met Bob")
    assert found.source["span_ends"] == "inclusive"
    assert not any("within a word" in said for said in found.assumed)
    # As of offsets in bytes.
    found = read(shift=1)
    assert "span_ends" not in found.source
    assert any("40 of 40 spans begin or end within a word" in said for said in found.assumed)
    found = read(text="张三在北京大学见到李四了")
    assert not any("within a word" in said for said in found.assumed)


def test_questions_and_their_answers_are_found_in_squad_and_in_tables(tmp_path: Path):
    context, answer = "Ada wrote it in 1843.", {"text": ["1843"], "answer_start": [16]}
    questions = [
        {"id": str(n), "question": f"When, {n}?", "answers": [{"text": "1843", "answer_start": 16}]}
        for n in range(20)
    ]
    articles = [{"title": "Ada", "paragraphs": [{"context": context, "qas": questions}]}]
    found = _rows(_write(tmp_path / "s.json", [json.dumps({"version": "1.1", "data": articles})]))
    assert (found.format, found.answers, found.labels) == ("squad", "extract", {"answered": 20})
    assert found.tokens > 20 * 6  # the context counts, too
    lines = [
        json.dumps({"context": context, "question": f"When, {n}?", "answers": answer})
        for n in range(20)
    ]
    found = _rows(_write(tmp_path / "s.jsonl", lines))
    roles = {"text": "question", "text_pair": "context", "label": "answers", "group": "context"}
    assert (found.source["fields"], found.answers) == (roles, "extract")
    lines = [line.replace("context", "passage_of_it") for line in lines]
    path = _write(tmp_path / "u.jsonl", lines)
    with pytest.raises(ContractViolation, match="which column has that text with --pair COLUMN"):
        _rows(path)
    assert _rows(path, pair="passage_of_it").source["fields"]["text"] == "question"


def test_lists_of_labels_are_sets_and_texts_with_a_separator_on_request(tmp_path: Path):
    sets = [LABELS[: n % 3 + 1] for n in range(60)]
    lines = [json.dumps({"text": t, "topics": s}) for t, s in zip(TEXTS, sets, strict=True)]
    found = _rows(_write(tmp_path / "t.jsonl", lines))
    assert found.answers == "label_set"
    assert found.labels == {"bug": 60, "question": 40, "idea": 20}
    lines = ["text,topics", *(f"{t},{'; '.join(s)}" for t, s in zip(TEXTS, sets, strict=True))]
    path = _write(tmp_path / "t.csv", lines)
    found = _rows(path)
    assert found.answers == "label"
    assert any("contain ';'; --answers label_set" in assumed for assumed in found.assumed)
    found = _rows(path, answers="label_set")
    assert found.source["separator"] == ";"
    assert found.labels == {"bug": 60, "question": 40, "idea": 20}


def test_labels_that_recur_in_many_sets_are_sets_and_others_are_not(tmp_path: Path):
    def read(*values: str, **said: str) -> Survey:
        cells = (values[n % len(values)] for n in range(60))
        lines = (f'"{text}","{cell}"' for text, cell in zip(TEXTS, cells, strict=True))
        return _rows(_write(tmp_path / "t.csv", ["text,topics", *lines]), **said)

    sets = ("bug", "bug, idea", "idea", "idea, question", "bug, question")
    found = read(*sets)
    assert found.source["separator"] == ","
    assert found.labels == {"bug": 36, "idea": 36, "question": 24}
    assert any("--answers label makes each cell" in assumed for assumed in found.assumed)
    assert read(*sets, answers="label").labels["idea, question"] == 12
    for one in (("York, UK", "Bath; Spa", "Rome"), ("1,0", "1,5", "2,0", "2,5", "0,5"), ("a", "b")):
        found = read(*one)
        assert found.answers == "label"
        assert not any("label_set" in assumed for assumed in found.assumed)


@pytest.mark.parametrize(
    ("first", "second"),
    [("sentence1", "sentence2"), ("#1 String", "#2 String"), ("Sentence_A", "Sentence_B"),
     ("premise", "hypothesis"), ("question", "sentence"), ("text", "text_pair")],
)  # fmt: skip
def test_pairs_are_known_by_their_names(tmp_path: Path, first: str, second: str):
    rows = zip(TEXTS, reversed(TEXTS), strict=True)
    lines = [f"{n}\t{a}\t{b}\t{n % 2}" for n, (a, b) in enumerate(rows)]
    path = _write(tmp_path / "t.tsv", [f"number\t{first}\t{second}\tsame", *lines])
    found = _rows(path)
    fields = {"id": "number", "text": first, "text_pair": second, "label": "same"}
    assert (found.source["fields"], found.answers) == (fields, "label")
    assert any("are read as a pair" in assumed for assumed in found.assumed)
    assert "text_pair" not in _rows(path, text=first).source["fields"]
    assert not any("--pair" in assumed for assumed in found.assumed)
    assert _rows(path, text=second, pair=first).source["fields"]["text_pair"] == first
    with pytest.raises(UnknownNameError, match="--pair"):
        _rows(path, pair="pear")


def test_where_one_of_two_texts_is_taken_the_option_for_a_pair_is_told(tmp_path: Path):
    rows = [f"{text}\t{text[:30]}\t{n % 2}" for n, text in enumerate(TEXTS)]
    path = _write(tmp_path / "t.tsv", ["left\tright\tsame", *rows])
    assert "--pair COLUMN reads a second text: 'right'" in _rows(path).assumed
    found = _rows(path, pair="right")
    assert found.source["fields"]["text_pair"] == "right"


def test_many_numbers_with_fractions_are_numbers_unless_the_user_says_labels(tmp_path: Path):
    rows = zip(TEXTS, reversed(TEXTS), strict=True)
    lines = [f"{a}\t{b}\t{n % 12 / 4}" for n, (a, b) in enumerate(rows)]
    path = _write(tmp_path / "t.tsv", lines)  # no header, so the pair is known by its lengths
    found = _rows(path)
    assert found.source["columns"] == ["text", "text_pair", "label"]
    assert found.answers == "number"
    assert any("answers are numbers" in assumed for assumed in found.assumed)
    assert _rows(path, answers="label").answers == "label"
    grades = [f"{text}\t{n % 5}" for n, text in enumerate(TEXTS)]
    path = _write(tmp_path / "g.tsv", ["text\tgrade", *grades])
    assert _rows(path).answers == "label"
    assert _rows(path, answers="number").labels["4.0"] == 12
    with pytest.raises(ContractViolation, match="expected one with answers of kind 'spans'"):
        _rows(path, answers="spans")


def test_a_label_is_preferred_to_a_score_in_a_table_of_single_texts(tmp_path: Path):
    lines = [f"{t},{LABELS[n % 3]},{n / 7}" for n, t in enumerate(TEXTS)]
    found = _rows(_write(tmp_path / "t.csv", ["body,team,score", *lines]))
    assert found.source["fields"]["label"] == "team"


def _choices(path: Path, names: list[str], right: str = "label", bad: str = "") -> str:
    """Rows with choices in columns of these names, or as a list in a single one."""
    records = []
    for n, text in enumerate(TEXTS):
        ends = [f"{text[:20]} {word}" for word in ("goes on", "stays here")]
        choices = dict(zip(names, ends, strict=True)) if len(names) > 1 else {names[0]: ends}
        records.append({"uid": n // 2, "premise": text, **choices, right: str(n % 2)})
    if bad:
        records[7][right] = bad
    return _write(path / "t.jsonl", list(map(json.dumps, records)))


@pytest.mark.parametrize("names", [["choice1", "choice2"], ["option_a", "option_b"], ["endings"]])
def test_choices_are_known_by_their_names(tmp_path: Path, names: list[str]):
    found = _rows(_choices(tmp_path, names))
    assert (found.source["answers"], found.records) == ("choice", 60)
    assert found.source["fields"]["choices"] == (names if len(names) > 1 else names[0])
    assert found.source["fields"]["text"] == "premise"
    assert any("--answers label" in assumed for assumed in found.assumed)
    (unused,) = [assumed for assumed in found.assumed if "'uid'" in assumed]
    assert "rows are named by file and line" in unused
    labels = _rows(_choices(tmp_path, names), answers="label", text="premise", label="label")
    assert "choices" not in labels.source["fields"]


def test_choices_that_seem_to_be_counted_from_one_are_refused(tmp_path: Path):
    words = {f"option{i}": [f"{t[:20]} {i}" for t in TEXTS] for i in (1, 2, 3)}
    fromone = [str(n % 2 + 1) for n in range(len(TEXTS))]  # the third is never right
    with pytest.raises(ContractViolation, match=r"'answer'; got 1 .* never 0.*Subtract 1"):
        _survey_of(tmp_path, **words, answer=fromone)
    path = str(tmp_path / "t.csv")
    with pytest.raises(ContractViolation, match="never 0"):
        survey("rows", [path], labelled=True, label="answer", choices=list(words))
    assert _rows(path, answers="label").labels == {"1": 30, "2": 30}
    for answers in (["0", *fromone[1:]], [" AB"[int(n)] for n in fromone]):
        assert _survey_of(tmp_path, **words, answer=answers).answers == "choice"


def test_one_strange_value_does_not_hide_the_answers(tmp_path: Path):
    found = _rows(_choices(tmp_path, ["choice1", "choice2"], bad="none"))
    assert found.source["answers"] == "choice"
    assert found.unread == {"a choice that is neither a number nor a letter": 1}
    lines = [f"{text},{n / 7 if n else 'n/a'}" for n, text in enumerate(TEXTS)]
    found = _rows(_write(tmp_path / "t.csv", ["body,score", *lines]))
    assert found.source["answers"] == "number"
    assert found.unread == {"not a number": 1}


def test_choices_that_have_other_names_are_asked_for(tmp_path: Path):
    file = _choices(tmp_path, ["first end", "second end"])
    with pytest.raises(ContractViolation, match="Say which ones hold them with --choices"):
        _rows(file, answers="choice")
    found = survey("rows", [file], labelled=True, choices=["first end", "second end"])
    assert found.source["answers"] == "choice"


def _survey_of(path: Path, **columns: list[str]) -> Survey:
    lines = [",".join(row) for row in zip(TEXTS, *columns.values(), strict=True)]
    return _rows(_write(path / "t.csv", [",".join(["comment", *columns]), *lines]))


def test_columns_named_as_choices_are_read_as_such_only_if_they_are_choices(tmp_path: Path):
    numbers = range(len(TEXTS))
    words = [[f"{word} number {n}" for n in numbers] for word in ("first", "second")]
    kinds, flags = [LABELS[n % 3] for n in numbers], [str(n % 2) for n in numbers]
    others = [str(n // 2 % 2) for n in numbers]
    # Flags that are often the same are no choices, whatever the label is.
    found = _survey_of(tmp_path, option_a=flags, option_b=others, sentiment=others)
    assert found.source["fields"]["label"] == "sentiment"
    assert "choices" not in found.source["fields"]
    # Nothing tells the right one: the comment is read, not both choices as a pair.
    for label in (kinds, [str(n % 2 + 1) for n in numbers]):
        found = _survey_of(tmp_path, option_a=words[0], option_b=words[1], answer=label)
        assert "choices" not in found.source["fields"]
        assert found.source["fields"]["text"] == "comment"
        assert "text_pair" not in found.source["fields"]
        assert any("are named as choices are" in assumed for assumed in found.assumed)
    # Two columns may be what is asked for.
    with pytest.raises(
        ContractViolation, match=r"'urgent' may tell .* or 'class' may be the label"
    ):
        _survey_of(tmp_path, option_a=words[0], option_b=words[1], urgent=flags, **{"class": kinds})


def test_texts_to_be_written_are_asked_for_or_known_where_no_value_repeats(tmp_path: Path):
    told = [{"note": t[:40], "article": t, "other": t[9:60]} for t in TEXTS]
    path = _write(tmp_path / "t.jsonl", [json.dumps(row) for row in told])
    with pytest.raises(ContractViolation, match="texts that are to be written, add --answers text"):
        _rows(path)
    found = _rows(path, label="note")
    assert (found.answers, found.source["fields"]["text"]) == ("text", "article")
    assert any("the texts in 'note' are to be written" in said for said in found.assumed)
    assert "answer_language" not in found.source
    lengths = sorted(num_tokens(row["note"]) for row in told)
    assert found.long_answer == lengths[int(0.9 * (len(TEXTS) - 1))]
    assert found.long > 2 * found.long_answer
    read = sum(num_tokens(row["note"]) + num_tokens(row["article"]) for row in told)
    assert found.tokens == read
    with pytest.raises(ContractViolation, match="2 columns may be the label: 'note', 'other'"):
        _rows(path, answers="text")
    told = [{"summary" if name == "note" else name: t for name, t in r.items()} for r in told]
    path = _write(tmp_path / "s.jsonl", [json.dumps(row) for row in told])
    assert _rows(path, answers="text").source["fields"]["label"] == "summary"
    few = [{"text": t, "name": f"person {n % 20}"} for n, t in enumerate(TEXTS)]
    path = _write(tmp_path / "few.jsonl", [json.dumps(row) for row in few])
    assert _rows(path, label="name").answers == "label"


def test_the_language_of_answers_is_another_where_their_script_is(tmp_path: Path):
    pairs = zip(TEXTS, chinese(len(TEXTS)), strict=True)
    lines = [json.dumps({"a": text, "b": other["text"]}) for text, other in pairs]
    path = _write(tmp_path / "t.jsonl", lines)
    found = _rows(path, text="a", label="b")
    assert (found.source["language"], found.source["answer_language"]) == ("en", "zh")
    back = _rows(path, text="b", label="a")
    assert (back.source["language"], back.source["answer_language"]) == ("zh", "en")
