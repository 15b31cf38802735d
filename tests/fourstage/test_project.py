"""A new project: for one's own files or an example, valid as it stands, never over something."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from corpora.answer_shapes import KINDS
from corpora.survey import survey
from data_contracts.sources import load_source
from data_contracts.suite import load_suite
from fourstage.command import main
from fourstage.command.example_data import CHAPTERS
from fourstage.command.first_recipe import HEADS, LEAST_GENERAL, SMALL, budgets
from fourstage.command.project import FOLDERS, make_project
from fourstage.command.proposal import other_columns, propose
from fourstage.errors import ContractViolation, RecipeError
from fourstage.recipe.from_nothing import vocabulary_size
from fourstage.recipe.ledger import SourceFacts
from fourstage.recipe.loading import load_recipe
from fourstage.recipe.resolution import resolve
from fourstage.settings import search_folders
from models.catalogue import answers_name
from models.tokenizers.byte_bpe import learn
from tasks.planning.layout import has_pairs
from tests.corpora.made_up import chinese, documents


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FOURSTAGE_DATA", raising=False)


def _new(folder: Path, *words: str) -> Path:
    assert main(["new", str(folder), *words]) == 0
    return folder


def _resolved(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """The first recipe, its sources checked."""
    monkeypatch.chdir(folder)
    assert search_folders() == [folder]
    names = [path.stem for path in (folder / "sources").iterdir()]
    sources = [load_source(name, [folder]) for name in names]
    facts = {
        each.name: SourceFacts(each.is_dataset, answers=each.answers, pairs=has_pairs(each))
        for each in sources
    }
    facts["python_infrastructure"] = SourceFacts(labelled=False)
    return resolve(load_recipe("recipes/first.yaml"), facts)


def _rows_file(folder: Path, records: list[dict], name: str = "rows.jsonl") -> str:
    rows = [{"body": r["text"], "queue": "ab"[n % 2]} for n, r in enumerate(records)]
    path = folder / name
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return str(path)


def _texts(folder: Path, records: list[dict]) -> str:
    for number, record in enumerate(records):
        (folder / f"{number}.txt").write_text(record["text"], encoding="utf-8")
    return str(folder / "*.txt")


def test_the_example_has_every_folder_and_its_recipe_and_sources_are_valid(tmp_path, monkeypatch):
    folder = _new(tmp_path / "mine")
    assert all((folder / name).is_dir() for name in FOLDERS)
    resolved = _resolved(folder, monkeypatch)
    assert [stage.kind for stage in resolved.stages] == ["general", "domain", "task", "finetune"]
    assert load_source("my_text", [folder]).files == {"all": ("data/text.jsonl",)}
    first = resolved.stages[0]
    assert first.phases[0].sequence_length == 16
    assert first.budget.amount >= LEAST_GENERAL
    assert first.network["dropout"] == 0.0
    assert set(resolved.require) == {"macro_f1"}
    assert resolved.require["macro_f1"]["above"] == "cheap_baseline"


def test_rows_are_split_without_overlap_and_every_label_is_in_every_split(tmp_path):
    data = _new(tmp_path / "mine") / "data"
    rows = {
        split: [json.loads(line) for line in (data / f"{split}.jsonl").read_text().splitlines()]
        for split in ("train", "dev", "test")
    }
    texts = [row["text"] for split in rows.values() for row in split]
    assert len(texts) == len(set(texts)) > 300
    for split in rows.values():
        assert {row["label"] for row in split} == set(CHAPTERS.values())
    ids = [row["id"] for split in rows.values() for row in split]
    assert len(ids) == len(set(ids))


def test_two_projects_of_one_name_are_equal(tmp_path):
    first, second = _new(tmp_path / "a" / "mine"), _new(tmp_path / "b" / "mine")
    files = [path.relative_to(first) for path in first.rglob("*") if path.is_file()]
    assert len(files) == 11
    for file in files:
        assert (first / file).read_bytes() == (second / file).read_bytes()


def test_files_of_ones_own_become_sources_and_a_recipe_for_the_minutes(
    tmp_path, monkeypatch, capsys
):
    rows = _rows_file(tmp_path, documents(300, seed=3))
    texts = _texts(tmp_path, documents(30))
    folder = _new(tmp_path / "mine", "--corpus", texts, "--rows", rows, "--minutes", "30")
    told = capsys.readouterr().out
    assert "text in 'body', label in 'queue': a 150, b 150" in told
    resolved = _resolved(folder, monkeypatch)
    assert load_source("my_text", [folder]).files == {"all": (texts,)}
    assert [stage.kind for stage in resolved.stages] == ["general", "domain", "task", "finetune"]
    assert resolved.limits["minutes"] == 60
    starts = [stage.starts_from for stage in resolved.stages]
    assert starts == [{"embeddings": "word2vec"}, {}, {}, {}]
    assert resolved.stages[1].budget.amount < 80_000  # 20 passes, whatever the minutes
    shorter = _new(tmp_path / "short", "--corpus", texts, "--rows", rows, "--minutes", "2")
    assert "such a network needs 1,000,000" in capsys.readouterr().out
    budget = _resolved(shorter, monkeypatch).stages[0].budget.amount
    assert budget < resolved.stages[0].budget.amount


def test_chinese_without_general_text_begins_with_its_own(tmp_path, monkeypatch, capsys):
    rows = _rows_file(tmp_path, chinese(200, seed=3))
    texts = _texts(tmp_path, chinese(40))
    folder = _new(tmp_path / "mine", "--corpus", texts, "--rows", rows)
    assert "general text: none in 'zh'" in capsys.readouterr().out
    resolved = _resolved(folder, monkeypatch)
    assert [stage.kind for stage in resolved.stages] == ["general", "task", "finetune"]
    assert dict(resolved.stages[0].corpora) == {"my_text": 1.0}
    assert resolved.tokenizer.vocabulary_size == 8000  # of which 4,000 may be characters
    assert load_source("my_rows", [folder]).language == "zh"


@pytest.mark.parametrize("given", ["corpus", "rows"])
@pytest.mark.parametrize("make", [documents, chinese])
def test_text_alone_and_rows_alone_are_recipes_too(tmp_path, monkeypatch, given, make):
    file = _rows_file(tmp_path, make(100))
    folder = _new(tmp_path / "mine", f"--{given}", file)
    kinds = [stage.kind for stage in _resolved(folder, monkeypatch).stages]
    assert ("finetune" in kinds) == (given == "rows")


_TEXTS = [record["text"] for record in documents(60)]
_TAGGED = "Ada B-person\nmet O\nBob B-person\n\n" * 60
_QUESTIONS = [
    {"id": str(n), "question": "When?", "answers": [{"text": "trial", "answer_start": -1}]}
    for n in range(60)
]
_SQUAD = [
    {"paragraphs": [{"context": f"{text} {n} only", "qas": [question]}]}
    for n, (text, question) in enumerate(zip(_TEXTS, _QUESTIONS, strict=True))
]


@pytest.mark.parametrize(
    ("name", "content", "head", "metric"),
    [
        ("t.txt", _TAGGED, "token_classification", "entity_f1"),
        ("t.json", json.dumps({"data": _SQUAD}), "span_extraction", "f1"),
        (
            "t.csv",
            "".join(f"{t},{_TEXTS[-n]},{n % 12 / 4}\n" for n, t in enumerate(_TEXTS)),
            "sequence_regression",
            "spearman",
        ),
        (
            "t.jsonl",
            "".join(
                json.dumps({"text": t, "topics": ["a", "b"][n % 2 :]}) + "\n"
                for n, t in enumerate(_TEXTS)
            ),
            "multi_label_classification",
            "micro_f1",
        ),
    ],
)
def test_each_kind_of_answer_has_its_head_metrics_and_gate(
    tmp_path, monkeypatch, name, content, head, metric
):
    (tmp_path / name).write_text(content)
    resolved = _resolved(_new(tmp_path / "mine", "--rows", str(tmp_path / name)), monkeypatch)
    finetune = resolved.stages[-1]
    assert finetune.head == head
    assert finetune.select["metric"] == resolved.metrics[0] == metric
    assert set(resolved.require) == {metric}
    settings = finetune.head_settings
    counted, told = settings.get("wide", False), settings.get("shared_tokens", False)
    assert counted == (head in ("sequence_regression", "multi_label_classification"))
    assert told == (head == "sequence_regression")  # the only rows of two texts


def test_a_column_is_not_named_for_two_roles(tmp_path, capsys):
    file = _rows_file(tmp_path, documents(60))
    named = ["--text", "body", "--label", "body"]
    assert main(["new", str(tmp_path / "mine"), "--rows", file, *named]) == 3
    said = "rows.jsonl: --text and --label both name 'body'; expected a column for each."
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("named", [("--label", "note"), ("--answers", "text")])
def test_texts_that_are_to_be_written_get_a_network_that_writes(
    tmp_path, monkeypatch, capsys, named
):
    rows = [{"note": t[:60], "n": n, "article": t} for n, t in enumerate(_TEXTS)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder = _new(tmp_path / "mine", "--rows", str(tmp_path / "t.jsonl"), *named)
    told = capsys.readouterr().out
    assert "answers (text) in 'note': nine of ten have up to about" in told
    assert "learns to write the answers only; with --corpus it reads text first" in told
    assert "general text" not in told  # no stage reads it
    resolved = _resolved(folder, monkeypatch)
    (finetune,) = resolved.stages
    assert (finetune.family, finetune.head) == ("transformer", "sequence_to_sequence")
    length = finetune.phases[0].sequence_length
    assert length == 128 + finetune.head_settings["target_length"]
    assert finetune.select["metric"] == "perplexity"
    assert resolved.metrics == ("chrf",)
    assert set(resolved.require) == {"chrf"}
    texts = _texts(tmp_path, documents(30))
    more = _new(tmp_path / "more", "--rows", str(tmp_path / "t.jsonl"), "--corpus", texts, *named)
    general, finetune = _resolved(more, monkeypatch).stages
    assert (general.kind, set(general.corpora)) == ("general", {"my_text"})
    assert set(general.objectives) == {"text_infilling"}
    assert not general.starts_from
    assert general.phases[0].sequence_length == 128 < finetune.phases[0].sequence_length


def test_of_few_chinese_rows_no_piece_is_a_clause_that_one_row_has(tmp_path, monkeypatch):
    def clause(n: int) -> str:
        return "".join(chr(0x4E00 + (n * step) % 97) for step in range(3, 15))

    rows = [{"text": f"{clause(n)}，{clause(7 * n + 1)}。", "title": clause(n)} for n in range(60)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder = _new(tmp_path / "mine", "--rows", str(tmp_path / "t.jsonl"), "--label", "title")
    size = _resolved(folder, monkeypatch).tokenizer.vocabulary_size
    assert size == 410
    made = learn([text for row in rows for text in row.values()], vocabulary_size=size)
    assert min(map(len, made.encode([row["title"] for row in rows]))) > 3
    found = survey("r", [str(tmp_path / "t.jsonl")], labelled=True, label="title")
    many = replace(found, tokens=300_000)
    for language in ("en", "zh"):
        planned = budgets(None, many, None, language, 10.0, tmp_path)
        assert planned.shape.vocabulary == vocabulary_size(language)
    # Words of English end at blanks.
    assert budgets(None, found, None, "en", 10.0, tmp_path).shape.vocabulary == 4000


def test_a_network_that_cannot_write_is_refused_for_texts_that_are_to_be_written(tmp_path):
    rows = [{"note": t[:60], "article": t} for t in _TEXTS]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = survey("r", [str(tmp_path / "t.jsonl")], labelled=True, label="note")
    reads = replace(SMALL, init="folder:somewhere")
    with pytest.raises(
        RecipeError, match=r"--init: expected a network that writes.*roformer does not"
    ):
        budgets(None, found, None, "en", 10.0, tmp_path, reads)


def test_the_speed_told_is_that_of_the_vocabulary_written(tmp_path):
    said = {
        language: budgets(None, None, None, language, 10.0, tmp_path) for language in ("en", "zh")
    }
    assert {name: each.shape.vocabulary for name, each in said.items()} == {
        name: vocabulary_size(name) for name in said
    }
    assert said["en"].told != said["zh"].told


def test_counting_many_rows_takes_minutes_that_are_told_and_not_spent_twice(tmp_path):
    (tmp_path / "t.csv").write_text("text,label\n" + "".join(f"{t},a\n{t},b\n" for t in _TEXTS))
    few = survey("r", [str(tmp_path / "t.csv")], labelled=True)
    many = replace(few, tokens=8_000_000, records=100_000)
    of_labels = replace(many, labels={f"{n}": 10_000 for n in range(10)})
    of_spans = replace(of_labels, answers="spans")  # beside which nothing is counted
    few, many, spans, labels = (
        budgets(None, rows, None, "en", 60.0, tmp_path) for rows in (few, many, of_spans, of_labels)
    )
    assert not any("counting" in line for each in (few, many, spans) for line in each.told)
    assert "counting n-grams of 80,000 rows takes about 26 minutes, once; " in labels.told[1]
    assert labels.tokens["task"] < 0.8 * spans.tokens["task"]


def test_the_margin_is_that_of_the_dev_rows_that_training_rows_become(tmp_path, monkeypatch):
    for name in ("train", "test"):
        rows = "".join(f"{text} {n} {name},{n % 2}\n" for n in range(10) for text in _TEXTS)
        (tmp_path / f"{name}.csv").write_text("text,label\n" + rows)
    mine = _new(tmp_path / "mine", "--rows", str(tmp_path / "*.csv"))
    # So few rows: more than a tenth, so that about 200 decide, or else the most there may be.
    share = min(round(200 / (10 * len(_TEXTS)), 2), 0.3)
    assert f"\nset_aside: {share:g} " in (mine / "sources" / "my_rows.yaml").read_text()
    deciding = share * 10 * len(_TEXTS)
    resolved = _resolved(mine, monkeypatch)
    margin = resolved.require["accuracy"]["not_below_champion_by"]["margin"]
    assert margin == pytest.approx(1 / deciding**0.5, abs=0.01)


@pytest.mark.parametrize(
    ("count", "share", "told"),
    [(120, "0.2", "20%"), (300, "0.17", "17%"), (600, None, "a tenth")],
)
def test_of_few_rows_more_are_set_aside_for_dev_and_test(tmp_path, capsys, count, share, told):
    rows = "".join(f"{_TEXTS[n % len(_TEXTS)]} {n},{'ab'[n % 2]}\n" for n in range(count))
    (tmp_path / "t.csv").write_text("text,label\n" + rows)
    mine = _new(tmp_path / "mine", "--rows", str(tmp_path / "t.csv"))
    written = (mine / "sources" / "my_rows.yaml").read_text()
    expected = f"\nset_aside: {share}      # share of train set aside for dev, and again for test"
    assert (expected in written) == bool(share)
    assert ("set_aside" in written) == bool(share)
    said = " ".join(capsys.readouterr().out.split())
    assert f"not split yet: {told} each goes to dev and test" in said


def test_where_only_train_is_named_both_others_are_drawn_from_it(tmp_path, capsys):
    rows = "".join(f"{_TEXTS[n % len(_TEXTS)]} {n},{'ab'[n % 2]}\n" for n in range(120))
    (tmp_path / "train.csv").write_text("text,label\n" + rows)
    mine = _new(tmp_path / "mine", "--rows", str(tmp_path / "train.csv"))
    assert "\nset_aside: 0.2 " in (mine / "sources" / "my_rows.yaml").read_text()
    said = " ".join(capsys.readouterr().out.split())
    assert "train 120; 20% of train becomes dev, and again for test" in said


def test_training_rows_without_a_label_are_told(tmp_path):
    (tmp_path / "train.jsonl").write_text('{"text": "a b"}\n')
    (tmp_path / "test.jsonl").write_text('{"text": "a b", "label": "x"}\n')
    rows = str(tmp_path / "train.jsonl"), str(tmp_path / "test.jsonl")
    with pytest.raises(ContractViolation, match="not one training row can be read: 1 × "):
        propose([], rows, text="text", label="label")


def test_rows_that_will_stop_a_run_are_told(tmp_path, capsys):
    def told(without: int) -> str:
        labels = ["" if n < without else "ab"[n % 2] for n in range(100)]
        rows = "".join(f"{_TEXTS[n % len(_TEXTS)]} {n},{label}\n" for n, label in enumerate(labels))
        (tmp_path / "t.csv").write_text("text,label\n" + rows)
        _new(tmp_path / f"mine{without}", "--rows", str(tmp_path / "t.csv"))
        return capsys.readouterr().out

    stop = "a run will stop: 3 of 100 records would be quarantined (3 × no label), where the"
    assert stop in " ".join(told(3).split())
    assert "will stop" not in told(2)


def test_rows_without_text_stop_no_run(tmp_path, capsys):
    texts = ["" if n % 5 < 2 else f"{_TEXTS[n % len(_TEXTS)]} {n}" for n in range(100)]
    file = _rows_file(tmp_path, [{"text": text} for text in texts])
    _new(tmp_path / "mine", "--rows", file)
    assert "will stop" not in capsys.readouterr().out


@pytest.mark.parametrize(("rows", "expected"), [(5, 2), (10, 4), (20, 8), (40, 16)])
def test_a_batch_has_no_more_rows_than_may_be_drawn_for_training(
    tmp_path, monkeypatch, rows, expected
):
    file = _rows_file(tmp_path, [{"text": f"{text} {n}"} for n, text in enumerate(_TEXTS[:rows])])
    assert len(_TEXTS) >= rows
    resolved = _resolved(_new(tmp_path / "mine", "--rows", file), monkeypatch)
    assert resolved.stages[-1].batch_size == expected  # about a tenth each is for dev and test


def test_where_files_have_all_splits_a_batch_may_have_all_rows(tmp_path, monkeypatch):
    parts = {"train": _TEXTS[:10], "dev": _TEXTS[10:20], "test": _TEXTS[20:30]}
    named = [
        _rows_file(tmp_path, [{"text": text} for text in rows], f"{name}.jsonl")
        for name, rows in parts.items()
    ]
    resolved = _resolved(_new(tmp_path / "mine", "--rows", *named), monkeypatch)
    assert resolved.stages[-1].batch_size == 10


def test_the_heads_of_first_recipes_answer_what_they_are_listed_under():
    for kind, (head, _) in HEADS.items():
        assert answers_name(head) == kind
    assert set(HEADS) == set(KINDS)


@pytest.mark.parametrize("as_list", [False, True])
def test_rows_with_choices_become_a_recipe_that_chooses(tmp_path, monkeypatch, as_list):
    ends = [[f"{text[:20]} {word}" for word in ("goes", "stays", "falls")] for text in _TEXTS]
    rows = [
        {"opening": t, "answerKey": "ABC"[n % 3], "note": n}
        | ({"endings": ends[n]} if as_list else dict(zip(("x", "y", "z"), ends[n], strict=True)))
        for n, t in enumerate(_TEXTS)
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = ["endings"] if as_list else ["x", "y", "z"]
    words = ("--rows", str(tmp_path / "t.jsonl"), "--choices", *columns)
    folder = _new(tmp_path / "mine", *words)
    source = load_source("my_rows", [folder])
    assert source.answers == "choice"
    assert (source.fields.text, source.fields.label) == ("opening", "answerKey")
    assert source.fields.choices == ("endings" if as_list else tuple(columns))
    assert _resolved(folder, monkeypatch).stages[-1].head == "multiple_choice"


def test_choices_without_a_column_that_tells_the_right_one_are_refused(tmp_path, capsys):
    rows = [{"text": t, "a": "one end", "b": "another end"} for t in _TEXTS]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["new", str(tmp_path / "mine"), "--rows", str(tmp_path / "t.jsonl"), "--choices"]
    assert main([*words, "a", "b"]) == 3
    assert "0 columns may tell the right choice" in capsys.readouterr().err
    assert main([*words, "a", "c"]) == 2
    assert "--choices" in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()


def test_text_that_breaks_the_default_contract_gets_one_that_tolerates_it(tmp_path, monkeypatch):
    texts = [*chinese(90), *documents(10)]
    folder = _new(tmp_path / "mine", "--corpus", _texts(tmp_path, texts), "--language", "zh")
    assert load_source("my_text", [folder]).suites == ("my_text",)
    assert 0.1 < load_suite("my_text", [folder]).tolerance < 0.2


def test_a_language_whose_code_yaml_reads_as_a_boolean_is_quoted(tmp_path):
    texts = _texts(tmp_path, documents(40))
    folder = _new(tmp_path / "mine", "--corpus", texts, "--language", "no")
    assert load_source("my_text", [folder]).language == "no"


def test_files_that_cannot_be_used_leave_no_folder_behind(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("body\n" + "a line of text\n" * 9)
    assert main(["new", str(tmp_path / "mine"), "--rows", str(tmp_path / "t.csv")]) == 3
    assert "no label column found" in capsys.readouterr().err
    assert main(["new", str(tmp_path / "mine"), "--rows", str(tmp_path / "none.csv")]) == 3
    assert main(["new", str(tmp_path / "mine"), "--label", "x"]) == 2
    assert not (tmp_path / "mine").exists()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    assert main(["new", str(tmp_path)]) == 2
    assert "got one with files; nothing was changed" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert main(["new", str(tmp_path / "notes.txt")]) == 2
    assert "got a file" in capsys.readouterr().err


def test_new_says_what_to_type_next(tmp_path, capsys):
    _new(tmp_path / "mine")
    assert "fourstage run first" in capsys.readouterr().out


def test_a_choice_of_files_keeps_standard_output_for_its_one_object(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = _rows_file(tmp_path, documents(100))
    asked = ("choose", "--rows", rows, "--json", "--without", "nobody")  # refused after that
    for made in ("about", "goes on with this project"):
        monkeypatch.chdir(tmp_path)
        assert main(list(asked)) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert made in told.err


def test_columns_may_be_named_for_a_choice_and_are_the_same_when_it_goes_on(
    tmp_path, monkeypatch, capsys
):
    rows = tmp_path / "rows.csv"
    lines = [f"a dog number {n} runs,ein Hund Nummer {n} läuft,{n}" for n in range(60)]
    rows.write_text("\n".join(["english,german,size", *lines]) + "\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    named = ["--rows", str(rows), "--text", "english", "--label", "german", "--answers", "text"]
    stop = ["--without", "nobody"]  # what goes on is refused later, for another reason
    assert main(["choose", *named, *stop]) == 2
    assert "'nobody' is not a candidate" in capsys.readouterr().err
    source = tmp_path / "choice" / "sources" / "my_rows.yaml"
    assert "label: german" in source.read_text("utf-8")
    assert "answers: text" in source.read_text("utf-8")
    before = source.read_bytes()
    for words, said in {
        tuple(named): "'nobody' is not a candidate",
        ("--rows", str(rows)): "'nobody' is not a candidate",
        ("--rows", str(rows), "--label", "size"): "--label size, but in choice it is german;",
        ("--rows", str(rows), "--answers", "label"): "--answers label, but in choice it is text;",
        ("--rows", str(rows), "--pair", "size"): "--pair size, but in choice it is not set;",
        ("quickstart", "--label", "size"): "--label goes with --rows",
    }.items():
        monkeypatch.chdir(tmp_path)
        assert main(["choose", *words, *stop]) == 2, words
        assert said in capsys.readouterr().err, words
    assert source.read_bytes() == before


def test_a_column_without_a_header_keeps_its_number_when_a_choice_goes_on(tmp_path, monkeypatch):
    rows = tmp_path / "rows.tsv"
    lines = (f"{('good', 'bad')[n % 2]}\tfilm {n} with a long text\t{n % 3}" for n in range(60))
    rows.write_text("\n".join(lines) + "\n", "utf-8")
    propose_given = {"text": "2", "label": "1"}
    made = propose([], [str(rows)], **propose_given)
    make_project(tmp_path / "own", made.files)
    assert other_columns(tmp_path / "own", propose_given) == {}
    assert other_columns(tmp_path / "own", {"label": "3"}) == {"label": ("column3", "label")}


def test_a_choice_goes_on_only_with_the_files_of_its_project(tmp_path, monkeypatch, capsys):
    rows = _rows_file(tmp_path, documents(60))
    other = _rows_file(tmp_path, documents(60, seed=5), "other.jsonl")
    texts = _texts(tmp_path, documents(30, seed=7))
    folder = _new(tmp_path / "choice", "--rows", rows, "--corpus", texts)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    capsys.readouterr()
    named = str(tmp_path / "0.txt")
    # What goes on is refused later, for another reason.
    for words, told in {
        ("--rows", other, "--corpus", texts): f"my_rows: named, but not the project's: {other};",
        ("--rows", rows, other, "--corpus", texts): f"named, but not the project's: {other}.",
        ("--rows", rows): "my_text: the project's, but not named: ",
        ("--rows", rows, "--corpus", named): "1.txt",
        ("--rows", rows, "--corpus", str(tmp_path / "none.txt")): "matches nothing",
        ("--rows", rows, "--corpus", texts): "'nobody' is not a candidate",
        ("--rows", "rows.jsonl", "--corpus", *sorted(map(str, tmp_path.glob("*.txt")))): "nobody",
    }.items():
        monkeypatch.chdir(tmp_path)
        code = main(["choose", *words, "--without", "nobody"])
        said = capsys.readouterr().err
        assert told in said, words
        assert code in (2, 3)
        if "nobody" not in told and "nothing" not in told:
            assert f"{folder.name} is a project of other files; nothing was started" in said
            assert "--project DIR" in said
        else:
            assert "other files" not in said
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
