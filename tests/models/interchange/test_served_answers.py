"""Every kind of answer that is served: a fresh process answers as `predict` does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from corpora.linking import Entities, linker
from corpora.pieces import Pieces, as_read
from models.answers.label_set import written
from models.evaluation.predict import predict
from models.interchange.saved_model import export_text_model, load_text_model
from models.served.words import words_of
from models.training.gradient import train
from models.training.stage import Budget, Phase
from tasks.registry.register_model import save_text_model
from tests.models.clean_process import CleanProcess
from tests.models.interchange.test_served_spans import HARD, texts
from tests.models.training.memory import NETWORK, WORDS, finetuning, tokenizer
from tests.untraced import untraced

# Names of a word, of two, written otherwise than they are read, of several entities, of none.
ENTITIES = [(word, 1 + number) for number, word in enumerate(WORDS[3:120:3])]
ENTITIES += [("Wáa WAB", 50), ("wac", 51), ("wac", 52), ("wad", 0), ("waa", 53), ("我的", 54)]
ENTITIES += [(f"{one} {other}", 60) for one in WORDS[:40] for other in WORDS[150:]]
READER = {
    **{"family": "ernie_tsinghua", "markings": (WORDS[5], f"{WORDS[6]} {WORDS[7]}")},
    "network": {
        **{**NETWORK, "num_text_layers": 0, "num_mix_layers": 0},
        **{"num_entities": 64, "entity_dim": 16, "entity_heads": 2},
    },
}


class Rows:
    """Rows of one text or two, the last tokenised word by word if asked."""

    def __init__(self, columns: list[list[str]], answers: list[str], by_words: bool = False):
        self.columns, self.answers = columns, answers
        self.ids = [str(i) for i in range(len(answers))]
        self._ids = [tokenizer().encode(column) for column in columns]
        self._words = [tokenizer().encode(words_of(text)) for text in columns[-1]]
        if by_words:
            none = np.zeros(0, np.int32)
            self._ids[-1] = [np.concatenate([none, *words]) for words in self._words]

    def __len__(self) -> int:
        return len(self.answers)

    def texts(self, i: int) -> tuple[np.ndarray, ...]:
        return tuple(column[i] for column in self._ids)

    def entities(self, i: int) -> tuple[np.ndarray, ...]:
        pieces = Pieces(tokenizer(), "en", entities=ENTITIES)
        return tuple(pieces.named([column[i] for column in self.columns]))

    def passage(self, i: int) -> str:
        return self.columns[-1][i]

    def word_lengths(self, i: int) -> np.ndarray:
        return np.array([len(ids) for ids in self._words[i]], np.int32)


def number(first: str, second: str = "") -> str:
    return json.dumps(float(len(first) - len(second)))


def closeness(first: str, second: str) -> str:
    return json.dumps(len({*first.split()} & {*second.split()}) / 2)


def labels(first: str, second: str = "") -> str:
    return written(f"has {word}" for word in WORDS[:3] if word in f"{first} {second}")


def part(first: str, second: str) -> str:
    """The first word of the question, where it is in the passage."""
    word = first.split(" ")[0]
    return json.dumps([[second.index(word), word]] if word in second else [])


def longer(first: str, second: str) -> str:
    return "first" if len(first) > len(second) else "second"


def length(text: str) -> str:
    return "long" if len(text) > 100 else "short"


CASES = {
    "number": (
        "sequence_regression",
        {"symmetric": True, "shared_tokens": True, "wide": True},
        number,
        2,
    ),
    "embedding": ("sentence_embedding", {}, closeness, 2),
    "label_set": ("multi_label_classification", {"threshold": 0.3, "wide": True}, labels, 1),
    "label": ("sequence_classification", {"symmetric": True}, longer, 2),
    "entities": ("sequence_classification", {}, length, 1),
    "entities of pairs": ("sequence_regression", {"symmetric": True}, number, 2),
    "extract": (
        "span_extraction",
        {"stride": 7, "longest_answer": 4, "no_answer_threshold": 2.0, "shared_tokens": True},
        part,
        2,
    ),
}
SHARED = "shared_tokens/vectors"
READING = ("entities", "entities of pairs")
ASKED = [[*texts(5, 20), *HARD], [*texts(6, 20), *HARD[::-1]]]


def meanings() -> dict[str, int]:
    names, numbers = zip(*ENTITIES, strict=True)
    return Entities(as_read(tokenizer(), names), numbers).numbers


def strengthen(stage: Path) -> None:
    """Larger weights: barely trained, names and shared tokens hardly change an answer."""
    for path in stage.rglob("*.safetensors"):
        weights = load_file(path)
        larger = {name: 8 * value for name, value in weights.items() if value.ndim > 1}
        larger |= {name: 20 * weights[name] for name in weights if name.startswith("entities/")}
        save_file(weights | larger, path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> dict[str, Path]:
    """A stage and a package of each kind."""
    folders = {}
    for kind, (head, settings, rule, number_of_texts) in CASES.items():
        folders[kind] = folder = tmp_path_factory.mktemp(kind)
        columns = [texts(seed, 48) for seed in range(number_of_texts)]
        answers = [rule(*row) for row in zip(*columns, strict=True)]
        rows = Rows(columns, answers, by_words=kind == "extract")
        job = finetuning(
            head=head,
            head_settings=settings,
            rows={"train": rows},
            phases=[Phase(24)],
            budget=Budget("steps", 4),
            select=None,
            **(READER if kind in READING else {}),
        )
        with untraced():
            train(job, folder / "stage")
        if kind in (*READING, "number"):
            strengthen(folder / "stage")
        tokenizer().save(folder / "tokenizer")
        export_text_model(
            folder / "stage",
            folder / "tokenizer",
            folder / "package",
            pairs=number_of_texts == 2,
            entities=meanings() if kind in READING else None,
        )
        save_text_model(folder / "package", folder / "model")
    return folders


@pytest.fixture(scope="module")
def served(
    trained: dict[str, Path], elsewhere: CleanProcess, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[dict[str, Any]]]:
    """What a fresh process answers."""
    pairs = [{"text": a, "text_pair": b} for a, b in zip(*ASKED, strict=True)]
    singles = [{"text": text} for column in ASKED for text in column]
    said = {}
    for kind, folder in trained.items():
        asked: list[Any] = pairs if CASES[kind][3] == 2 else ASKED[0]
        # Each from a copy that is gone when the next is asked, as files of a registry are.
        place = tmp_path_factory.mktemp("registry") / "model"
        shutil.copytree(folder / "model", place)
        (said[kind],) = elsewhere.predicts(
            place, [*asked, *(singles if kind == "embedding" else [])]
        )
        shutil.rmtree(place)
    return said


@pytest.mark.parametrize("kind", CASES)
def test_the_served_model_answers_as_the_stage_does(trained, served, kind):
    columns = ASKED[: CASES[kind][3]]
    rows = Rows(columns, [""] * len(ASKED[0]), by_words=kind == "extract")
    expected = predict(trained[kind] / "stage", tokenizer(), rows)
    found = served[kind][: len(expected)]
    assert len(found) == len(expected)
    if "number" in found[0]:
        numbers = [float(answer.text) for answer in expected]
        np.testing.assert_allclose([each["number"] for each in found], numbers, rtol=1e-4)
        assert [json.loads(each["answer"]) for each in found] == [each["number"] for each in found]
        return
    said = [each["label"] if "label" in each else each["answer"] for each in found]
    assert said == [answer.text for answer in expected]
    np.testing.assert_allclose(
        [each["score"] for each in found], [a.probability for a in expected], rtol=2e-3
    )
    if kind == "extract":
        assert any(each["text"] for each in found)
        for passage, each in zip(ASKED[1], found, strict=True):
            assert each["text"] in (None, passage[each["start"] or 0 : each["end"]])


def test_a_number_depends_on_the_tokens_that_two_texts_share(trained, tmp_path):
    shutil.copytree(trained["number"] / "stage", tmp_path / "stage")
    (head,) = (tmp_path / "stage" / "heads").glob("*.safetensors")
    weights = load_file(head)
    save_file(weights | {SHARED: np.zeros_like(weights[SHARED])}, head)
    rows = Rows(ASKED, [""] * len(ASKED[0]))
    told, untold = (
        [float(answer.text) for answer in predict(stage, tokenizer(), rows)]
        for stage in (trained["number"] / "stage", tmp_path / "stage")
    )
    assert max(abs(one - other) for one, other in zip(told, untold, strict=True)) > 1e-2


def test_a_single_text_is_answered_with_its_vector_and_a_pair_with_that_of_both(served, trained):
    pairs, singles = np.split(served["embedding"], [len(ASKED[0])])
    first, second = np.split(np.array([each["vector"] for each in singles]), 2)
    np.testing.assert_allclose(np.linalg.norm(first, axis=-1), 1, rtol=1e-5)
    numbers = [float(closeness(*row)) for row in zip(texts(0, 48), texts(1, 48), strict=True)]
    low, high = min(numbers), max(numbers)
    expected = low + (high - low) * (first * second).sum(axis=-1)
    np.testing.assert_allclose([each["number"] for each in pairs], expected, rtol=1e-4)


@pytest.mark.parametrize("kind", CASES)
def test_in_this_process_it_answers_the_same(trained, served, kind):
    answers = load_text_model(trained[kind] / "package", linker)(*ASKED[: CASES[kind][3]])
    if kind == "extract":
        assert [each["answer"] for each in answers] == [each["answer"] for each in served[kind]]
    else:
        assert len(answers) == len(ASKED[0])


def test_answers_depend_on_what_names_mean_and_texts_without_names_need_none(trained):
    package = trained["entities"] / "package"
    named = [f"{WORDS[9]} {WORDS[1]}", "waa wab", "", "wac wad"]
    found = load_text_model(package, linker)(named)
    none = load_text_model(package, lambda numbers: linker(dict.fromkeys(numbers, 0)))(named)
    gaps = abs(found - none).max(axis=-1)
    assert (gaps[:2] > 1e-3).all()
    np.testing.assert_allclose(found[2:], none[2:], atol=1e-6)
    assert load_text_model(package, linker)([""])[0] == pytest.approx(found[2], abs=1e-6)
    with pytest.raises(TypeError, match="reads entities; give what links them"):
        load_text_model(package)
    head = json.loads((package / "head.json").read_text("utf-8"))
    assert head["reads_entities"]
    said = json.loads((package / "entities.json").read_text("utf-8"))
    assert (said["waa wab"], said["wac"], said["wad"]) == (50, 0, 0)
    required = (trained["entities"] / "model" / "requirements.txt").read_text("utf-8")
    assert "ahocorasick_rs" in {line.split("==")[0] for line in required.splitlines()}


def test_a_package_made_before_such_models_is_registered_as_it_was(trained, tmp_path):
    for kind in ("label", "number"):
        package = tmp_path / kind
        shutil.copytree(trained[kind] / "package", package)
        head = json.loads((package / "head.json").read_text("utf-8"))
        del head["reads_entities"], head["most_regions"]
        (package / "head.json").write_text(json.dumps(head), "utf-8")
        assert len(load_text_model(package)(*ASKED)) == len(ASKED[0])
        save_text_model(package, tmp_path / f"{kind} model")
        code = (tmp_path / f"{kind} model" / "pairs_model.py").read_text("utf-8")
        assert code == (trained[kind] / "model" / "pairs_model.py").read_text("utf-8")
