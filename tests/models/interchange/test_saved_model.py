"""The served model: raw text in, the very probabilities of `predict` out, in a fresh process."""

from __future__ import annotations

import errno
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.evaluation.predict import predict
from models.inputs.rows import framed_rows
from models.interchange.saved_model import (
    _TOLD,
    LABELS,
    SAVED_MODEL,
    export_in_tensorflow,
    export_text_model,
    export_what_is_asked,
    framed,
)
from models.protocols import Capability, Context
from models.saved_tokenizer import SETTINGS, load_tokenizer
from models.tokenizers.word import Word
from models.tokenizers.wordpiece import SPECIAL_TOKENS
from models.training.gradient import train
from models.training.stage import Budget
from models.training.trained_stage import load_stage
from tests.models.clean_process import CleanProcess
from tests.models.training.memory import WORDS, finetuning, tokenizer
from tests.untraced import untraced


class Texts:
    """Rows from texts, tokenised as in preparation."""

    def __init__(self, texts: list[str], seconds: list[str] | None = None, *, made: Any = None):
        made = made or tokenizer()
        self.columns = [made.encode(column) for column in (texts, seconds) if column]
        self.answers = [""] * len(texts)

    def __len__(self) -> int:
        return len(self.answers)

    def texts(self, i: int) -> tuple[np.ndarray, ...]:
        return tuple(column[i] for column in self.columns)


def texts() -> list[str]:
    rng = np.random.default_rng(0)
    made = [" ".join(rng.choice(WORDS, rng.integers(1, 60))) for _ in range(40)]
    return [*made, "", "[MASK] waa\u0000 WAB", "nothing known here", "waa\nwab\u200bwac"]


CHANGES = {
    "tuned": {},
    "frozen": {"feature_based": {"hidden_dim": 12, "num_layers": 2, "dropout": 0.1}},
    "wide": {"head_settings": {"wide": True}},
    "tfidf": {"head_settings": {"wide": True}, "family": "tfidf", "network": {}},
    "fasttext": {
        "family": "fasttext",
        "network": {"hidden_dim": 10, "buckets": 1000, "word_ngrams": 2},
        "tokenizer": Word([*SPECIAL_TOKENS, *WORDS], lowercase=True),
        "optimizer": {"sgd": {"peak_learning_rate": 8.0}},
    },
}


@pytest.fixture(scope="module", params=CHANGES)
def stage(request, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    job = finetuning(budget=Budget("steps", 4), select=None, **CHANGES[request.param])
    with untraced():
        train(job, folder / "stage")
    job.tokenizer.save(folder / "tokenizer")
    places = (folder / "stage", folder / "tokenizer", folder / "package")
    if request.param == "wide":  # as a stage of JAX is written
        export_in_tensorflow(*places, pairs=False, most_regions=0, entities=None)
    else:
        export_text_model(*places)
    return folder


@pytest.mark.parametrize("pairs", [False, True])
def test_a_fresh_process_without_this_project_gives_the_probabilities_of_predict(
    stage: Path, elsewhere: CleanProcess, pairs: bool, tmp_path: Path
):
    columns = [texts(), texts()[::-1]][: 1 + pairs]
    package = stage / "package"
    if pairs:
        package = tmp_path / "package"
        export_text_model(stage / "stage", stage / "tokenizer", package, pairs=True)
    found = elsewhere.serves(package / SAVED_MODEL, columns)
    made = load_tokenizer(stage / "tokenizer")
    expected = predict(stage / "stage", made, Texts(*columns, made=made))
    expected = [list(answer.details.values()) for answer in expected]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_package_holds_every_weight_once(stage: Path):
    import tensorflow as tf

    loaded = load_stage(stage / "stage", load_tokenizer(stage / "tokenizer"), precision="float32")
    (name,) = loaded.config["head"]
    parts = loaded.under_head, loaded.scorer(name, loaded.objective(name))
    held = {id(variable): variable for part in parts for variable in part.variables}
    kept = tf.train.list_variables(str(stage / "package" / SAVED_MODEL / "variables" / "variables"))
    shapes = [shape for name, shape in kept if name.endswith("VARIABLE_VALUE")]
    assert sorted(shapes) == sorted(list(variable.shape) for variable in held.values())


def test_label_names_lie_beside_the_model(stage):
    assert json.loads((stage / "package" / LABELS).read_text("utf-8")) == ["high", "low"]


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("length", [5, 8, 32])
def test_rows_are_cut_and_framed_as_in_training(pairs, length, marked):
    import tensorflow as tf

    class Named(Texts):
        def entities(self, i: int) -> tuple[np.ndarray, ...]:
            return tuple(np.where(ids % 3, 0, ids * 1000) for ids in self.texts(i))

    rows = Named(texts(), texts()[::-1] if pairs else None)
    long = max((row.tolist() for row in rows.columns[0]), key=len)
    marks = ((long[-3],), tuple(long[4:6])) if marked else ()
    reads = frozenset({Capability.ENTITIES})
    context = Context(tokenizer(), length, marks=marks, network=reads)
    expected = framed_rows(rows, np.arange(len(rows)), context)
    first, second = [
        tf.ragged.constant([row.tolist() for row in column], tf.int32) for column in rows.columns
    ] + [None] * (not pairs)

    # In a graph, as it is served: there TensorFlow joins no types that it would join outside.
    @tf.function
    def graph(*texts: Any) -> dict[str, Any]:
        there = [text for text in texts if text is not None]
        named = [
            text.with_values(text.values * 1000 * text_is_named(text.values)) for text in there
        ]
        return framed(tokenizer(), *texts, length, marks, named)

    def text_is_named(ids: Any) -> Any:
        return tf.cast(ids % 3 == 0, tf.int32)

    found = graph(first, second)
    assert set(found) == set(expected)
    for key, value in found.items():
        width = value.shape[1]
        np.testing.assert_array_equal(value.numpy(), expected[key][:, :width], err_msg=key)
        assert not expected[key][:, width:].any()


def test_byte_bpe_is_served_as_it_predicts_and_without_the_package_that_learned_it(
    elsewhere: CleanProcess, tmp_path: Path
):
    from models.tokenizers.byte_bpe import learn
    from tasks.registry.register_model import save_text_model

    asked = [*texts(), "It's naïve:  WAA\n\n是我的书。 <mask></s> "]
    made = learn(asked * 3, vocabulary_size=400)
    with untraced():
        job = finetuning(tokenizer=made, budget=Budget("steps", 4), select=None)
        train(job, tmp_path / "stage")
    made.save(tmp_path / "tokenizer")
    export_text_model(tmp_path / "stage", tmp_path / "tokenizer", tmp_path / "package")
    save_text_model(tmp_path / "package", tmp_path / "model")
    before = elsewhere.said.stat().st_size
    (answers,) = elsewhere.predicts(tmp_path / "model", asked)
    assert b"normalizer.cc" not in elsewhere.said.read_bytes()[before:]
    found = [[answer["probabilities"][name] for name in ("high", "low")] for answer in answers]
    expected = predict(tmp_path / "stage", made, Texts(asked, made=made))
    expected = [list(answer.details.values()) for answer in expected]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_an_error_of_the_system_is_that_of_the_process_that_writes(tmp_path, monkeypatch, capsys):
    question = {"places": [str(tmp_path / each) for each in "abc"], "folders": []}
    question["asked"] = {"pairs": False, "most_regions": 0, "entities": None}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(question)))
    with pytest.raises(SystemExit) as left:
        export_what_is_asked()
    number, said, path = json.loads(capsys.readouterr().out)
    assert (left.value.code, number, path) == (_TOLD, errno.ENOENT, str(tmp_path / "b" / SETTINGS))
    assert said == "No such file or directory"
