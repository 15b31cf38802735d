"""Word vectors held against similarities and analogies, for the reader and for MLflow."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas
import pytest

from tests.flows.own_project import SENSES, Project, recipe, stages
from tests.flows.person import Listener, Person

pytestmark = pytest.mark.slow

PAIRS = "# two words, a score\nbaba\tbaden\t9\nbaba\tdenko\t5\nkolir\tmusna\t1\nzzz\tbaba\t3\n"
ANALOGIES = ": made up\nbaba baden koba koden\nzzz baba baden bako\n"


def test_vectors_are_scored_beside_what_they_skip(
    person: Callable[..., Person], listener_of: Callable[[Person], Listener], tmp_path: Path
):
    project = Project(tmp_path / "own")
    for name, text in (("pairs", PAIRS), ("analogies", ANALOGIES)):
        (project.folder / "data" / f"{name}.txt").write_text(text, encoding="utf-8")
        project.source(name, files=[f"data/{name}.txt"])
    stage = {
        "stage": "general",
        "corpora": {"notes": 1.0},
        "objectives": {"skip_gram": {}},
        "budget": {"steps": 20},
    }
    project.recipe(
        recipe(
            "words",
            family="word2vec",
            tokenizer={"scheme": "word"},
            stages=[stage],
            evaluate={"word_relations": ["pairs", "analogies"]},
            promote=None,
        )
    )
    somebody = person(project.folder)
    answer = listener_of(somebody).types("run", "words", "--json")
    assert answer.code == 0, answer.told()
    found = answer.json["word_relations"]
    assert (found["pairs"]["asked"], found["pairs"]["skipped"]) == (3, 1)
    assert -1 <= found["pairs"]["metrics"]["spearman"] <= 1
    assert found["analogies"]["sections"] == {"made up": found["analogies"]["metrics"]["accuracy"]}
    assert "on 3 of 4 lines; the others have words without a vector" in answer.err
    with closing(sqlite3.connect(somebody.home / "mlflow.db")) as database:
        logged = dict(
            database.execute("select key, value from latest_metrics where key like 'word_rel%'")
        )
    assert logged == {
        "word_relations/pairs/spearman": found["pairs"]["metrics"]["spearman"],
        "word_relations/analogies/accuracy": found["analogies"]["metrics"]["accuracy"],
    }


def test_chinese_words_have_vectors_that_are_asked_and_looked_up(
    person: Callable[..., Person], listener_of: Callable[[Person], Listener], tmp_path: Path
):
    project = Project(tmp_path / "own")
    lines = [
        "我们在北京的酒店喜欢吃早餐",
        "他们在上海的饭店喜欢吃晚餐",
        "今天天气很好，我们去公园散步",
    ]
    text = "".join(f"{line}{number}。\n" for number in range(60) for line in lines)
    questions = ": places\n北京 酒店 上海 饭店\n北京 酒店 广州 饭店\n"
    for name, content in (("zh", text), ("places", questions)):
        (project.folder / "data" / f"{name}.txt").write_text(content, encoding="utf-8")
    project.source("zh", files=["data/zh.txt"], language="zh", document="line", minimum_words=1)
    project.source("places", files=["data/places.txt"])
    stage = {
        "stage": "general",
        "corpora": {"zh": 1.0},
        "objectives": {"skip_gram": {}},
        "budget": {"steps": 20},
    }
    project.recipe(
        recipe(
            "cut",
            family="word2vec",
            tokenizer={"scheme": "word", "segmenter": "rjieba"},
            stages=[stage],
            evaluate={"word_relations": ["places"]},
            promote=None,
        )
    )
    somebody = person(project.folder)
    listener = listener_of(somebody)
    answer = listener.types("run", "cut", "--json")
    assert answer.code == 0, answer.told()
    found = answer.json["word_relations"]["places"]
    assert (found["asked"], found["skipped"]) == (1, 1)
    (stage,) = (each for each in (somebody.home / "store" / "stage").iterdir() if each.is_dir())
    told = listener.types("nearest", str(stage), "北京", "--count", "3", "--json")
    assert told.code == 0, told.told()
    # Without the segmenter 北京 would have no vector, and no word more than a character.
    assert len(told.json["nearest"]) == 3
    assert any(len(each["word"]) > 1 for each in told.json["nearest"])


def test_words_in_sentences_are_told_apart_by_layers_with_pictures(
    person: Callable[..., Person], listener_of: Callable[[Person], Listener], tmp_path: Path
):
    project = Project(tmp_path / "own")
    project.contexts("contexts")
    (general, *_) = stages(general={"budget": {"steps": 3}})
    evaluate = {"word_in_context": ["contexts"], "polysemy": SENSES}
    evaluate["attention"] = {"texts": ["Baba rain.\tSpoon!", "Kettle baba spoon."], "layers": [2]}
    project.recipe(recipe("senses", stages=[general], evaluate=evaluate, promote=None))
    somebody = person(project.folder)
    answer = listener_of(somebody).types("run", "senses", "--json")
    assert answer.code == 0, answer.told()
    judged = answer.json["word_in_context"]["contexts"]
    assert (judged["split"], judged["chosen_on"], judged["skipped"]) == ("test", "dev", 0)
    by_layer = {layer["layer"]: layer["accuracy"] for layer in judged["layers"]}
    assert judged["metrics"]["accuracy"] == by_layer[judged["layer"]]
    found = answer.json["polysemy"]["baba"]
    assert found["senses"] == ["weather"] * 3 + ["kitchen"] * 3
    assert [layer["layer"] for layer in found["layers"]] == list(by_layer)
    with closing(sqlite3.connect(somebody.home / "mlflow.db")) as database:
        logged = dict(database.execute("select key, value from latest_metrics"))
    assert logged["word_in_context/contexts/accuracy"] == judged["metrics"]["accuracy"]
    assert logged["polysemy/baba/within"] == found["layers"][-1]["within"]
    pictures = {file.name for file in somebody.home.rglob("evaluation/*.png")}
    assert {"word_in_context_contexts.png", "polysemy_1.png"} <= pictures
    assert {f"attention_{number}_self-attention.png" for number in (1, 2)} <= pictures
    (numbers,) = somebody.home.rglob("evaluation/attention.parquet")
    weights = pandas.read_parquet(numbers)
    sums = weights.groupby(["text", "layer", "head", "asking"])["weight"].sum()
    np.testing.assert_allclose(sums, 1.0, atol=1e-5)
    read = [text["tokens"] for text in answer.json["attention"]["texts"]]
    assert weights.groupby("text")["seen"].max().tolist() == read
    assert set(weights["layer"]) == {2}
    with closing(sqlite3.connect(somebody.home / "prefect" / "prefect.db")) as database:
        cards = dict(database.execute("select key, data from artifact"))
    (card,) = (card for key, card in cards.items() if key.endswith("attention"))
    assert "Self-attention, text 2" in card
    assert "data:image/png;base64," in card
