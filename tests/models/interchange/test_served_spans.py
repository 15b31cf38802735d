"""The served tagger: raw text in, the very spans of `predict` out, in a fresh process."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from models.evaluation.predict import predict
from models.interchange.saved_model import export_text_model, load_text_model
from models.served.words import word_spans, words_of
from models.training.gradient import train
from models.training.stage import Budget, Phase
from tasks.registry.register_model import save_text_model
from tests.models.clean_process import CleanProcess
from tests.models.training.memory import WORDS, finetuning, tokenizer


class Tagged:
    """Rows from texts with spans, tokenised word by word."""

    def __init__(self, texts: list[str], answers: list[str] | None = None):
        self.passages = texts
        self.answers = answers or [""] * len(texts)
        self._words = [tokenizer().encode(words_of(text)) for text in texts]

    def __len__(self) -> int:
        return len(self.answers)

    def texts(self, i: int) -> tuple[np.ndarray, ...]:
        return (np.concatenate([np.zeros(0, np.int32), *self._words[i]]),)

    def passage(self, i: int) -> str:
        return self.passages[i]

    def word_lengths(self, i: int) -> np.ndarray:
        return np.array([len(ids) for ids in self._words[i]], np.int32)


def texts(seed: int, number: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(2, 70))) for _ in range(number)]


def answered(asked: list[str]) -> Tagged:
    """Each word of the first third of the alphabet is a span, and of the last third another."""
    third = len(WORDS) // 3
    kinds = dict.fromkeys(WORDS[:third], "early") | dict.fromkeys(WORDS[-third:], "late")
    answers = []
    for text in asked:
        places = word_spans(text).tolist()
        answers.append([[a, b, kinds[text[a:b]]] for a, b in places if text[a:b] in kinds])
    return Tagged(asked, [json.dumps(spans) for spans in answers])


HARD = ["", " ", "\u200d", "是 waa,我的 wab。\n wac", "\u0300 waa \u200d wab", "waa" * 300 + " wab"]


FEATURES = {"hidden_dim": 32, "num_layers": 1, "dropout": 0.1}
TAGGERS = {"crf": (True, None), "softmax": (False, None), "frozen": (True, FEATURES)}


@pytest.fixture(scope="module", params=TAGGERS)
def trained(request, tmp_path_factory) -> Path:
    crf, features = TAGGERS[request.param]
    folder = tmp_path_factory.mktemp("tagger")
    rows = {"train": answered(texts(1, 64)), "dev": answered(texts(2, 8))}
    job = finetuning(
        head="token_classification",
        head_settings={"crf": crf, "scheme": "bioes", "stride": 9},
        rows=rows,
        phases=[Phase(24)],
        budget=Budget("steps", 60),
        select={"metric": "entity_f1", "split": "dev"},
        feature_based=features,
    )
    train(job, folder / "stage")
    tokenizer().save(folder / "tokenizer")
    export_text_model(folder / "stage", folder / "tokenizer", folder / "package")
    return folder


def test_the_served_model_answers_as_the_stage_does(
    trained: Path, elsewhere: CleanProcess, tmp_path: Path
):
    asked = [*texts(3, 30), *HARD]
    expected = predict(trained / "stage", tokenizer(), Tagged(asked))
    save_text_model(trained / "package", tmp_path / "model")
    (found,) = elsewhere.predicts(tmp_path / "model", asked)
    assert [answer["answer"] for answer in found] == [answer.text for answer in expected]
    np.testing.assert_allclose(
        [answer["score"] for answer in found], [a.probability for a in expected], rtol=1e-3
    )
    assert sum(len(answer["spans"]) for answer in found) > 30
    for text, answer in zip(asked, found, strict=True):
        for span in answer["spans"]:
            assert span["text"] == text[span["start"] : span["end"]]
    here = load_text_model(trained / "package")(asked)
    assert [answer["answer"] for answer in here] == [answer["answer"] for answer in found]


def test_no_file_of_the_model_names_this_project(trained, tmp_path):
    save_text_model(trained / "package", tmp_path / "model")
    for file in (tmp_path / "model").rglob("*.py"):
        assert "models.served" not in file.read_text("utf-8")
