"""Texts that are written: a fresh process without the project writes what `predict` does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.evaluation.predict import predict
from models.interchange.saved_model import export_text_model, load_text_model
from models.training.gradient import train
from models.training.stage import Budget, Phase
from tasks.registry.register_model import save_text_model
from tests.models.clean_process import CleanProcess
from tests.models.training.memory import ONE_LAYER, WORDS, finetuning, tokenizer

LONG = " ".join(WORDS * 5)
HARD = [
    "",
    " ",
    "[MASK] waa\u0000 WAB",
    "nothing, known: 你好",
    "waa\nwab\u200bwac",
    "x" * 900,
    LONG,
]


class Rows:
    """Texts and what to write for them."""

    def __init__(self, texts: list[Any], answers: list[str] | None = None, made: Any = None):
        self.answers = answers or [""] * len(texts)
        self.ids = [str(i) for i in range(len(texts))]
        self._ids = [tuple(made.encode([row] if isinstance(row, str) else row)) for row in texts]

    def __len__(self) -> int:
        return len(self.answers)

    def texts(self, i: int) -> tuple[np.ndarray, ...]:
        return self._ids[i]


def words(seed: int, count: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 9))) for _ in range(count)]


def byte_bpe() -> Any:
    from models.tokenizers.byte_bpe import learn

    return learn([*words(5, 50), "naïve 是我的书"], vocabulary_size=320)


CASES = {
    "greedy": ("gpt2", tokenizer, {"min_tokens": 3}, False),
    "beams-of-bytes": ("gpt2", byte_bpe, {"beams": 3, "no_repeat_ngram": 2}, False),
    "pairs": ("gpt2", tokenizer, {"min_tokens": 2}, True),
    "blanks": ("unilm", tokenizer, {"beams": 2, "min_tokens": 2}, True),
    "encoder-decoder": ("bart", tokenizer, {"min_tokens": 2, "beams": 2, "prefix": "wab"}, False),
    "recurrent": ("seq2seq", tokenizer, {"min_tokens": 2, "beams": 2}, False),
}
NETWORKS = {
    "gpt2": ONE_LAYER,
    "unilm": ONE_LAYER,
    "bart": {**ONE_LAYER, "num_decoder_layers": 1},
    "seq2seq": {"num_layers": 1, "embedding_dim": 32, "hidden_dim": 32, "attention": "bahdanau"},
}
# Updates and learning rate after which different texts are written.
TRAINED = {"gpt2": (150, 1e-2), "unilm": (150, 1e-2), "bart": (300, 3e-3), "seq2seq": (100, 1e-2)}


# Reading with what is kept is tested at less cost in tests/models/decoding/test_reader.py; a single
# text is also written by beams, and greedily a pair's.
SLOW = ("recurrent", "greedy")


@pytest.fixture(
    scope="module",
    params=[pytest.param(c, marks=pytest.mark.slow if c in SLOW else ()) for c in CASES],
)
def written(request, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, bool]:
    """A stage, its package and the model that MLflow loads; its tokenizer; whether of pairs."""
    folder = tmp_path_factory.mktemp("writes")
    family, make, settings, pairs = CASES[request.param]
    made, texts = make(), words(1, 64)
    learnt: list[Any] = list(zip(texts, texts[::-1], strict=True)) if pairs else texts
    steps, rate = TRAINED[family]
    targets = [json.dumps([" ".join(reversed(text.split()[:3]))]) for text in texts]
    job = finetuning(
        family=family,
        network=NETWORKS[family],
        tokenizer=made,
        head="sequence_to_sequence",
        head_settings={"target_length": 10, **settings},
        rows={"train": Rows(learnt, targets, made)},
        phases=[Phase(32)],
        budget=Budget("steps", steps),
        optimizer={"adamw": {"peak_learning_rate": rate, "warmup": 0.1}},
        select=None,
    )
    train(job, folder / "stage")
    made.save(folder / "tokenizer")
    export_text_model(folder / "stage", folder / "tokenizer", folder / "package", pairs=pairs)
    save_text_model(folder / "package", folder / "model")
    return folder, made, pairs


def test_a_fresh_process_without_the_project_writes_what_predict_does(
    written: tuple[Path, Any, bool], elsewhere: CleanProcess
):
    folder, made, pairs = written
    asked = [*words(7, 40), *HARD]  # more than are read at once
    columns = [asked, asked[::-1]][: 1 + pairs]
    rows = [
        dict(zip(("text", "text_pair"), row, strict=False)) for row in zip(*columns, strict=True)
    ]
    given: list[Any] = rows if pairs else asked
    found, alone, nothing = elsewhere.predicts(folder / "model", given, given[3:4], [])
    listed: list[Any] = list(zip(*columns, strict=True)) if pairs else asked
    expected = predict(folder / "stage", made, Rows(listed, None, made))
    assert [each["answer"] for each in found] == [each.text for each in expected]
    assert [json.loads(each["answer"]) for each in found] == [[each["text"]] for each in found]
    scores = [each.probability for each in expected]
    np.testing.assert_allclose([each["score"] for each in found], scores, rtol=1e-4)
    # Two texts are read of a pair, in as much room; [CLS] and a [SEP] after each come on top.
    room = json.loads((folder / "package" / "head.json").read_text("utf-8"))
    lengths = [
        sum(1 + len(ids) for ids in made.encode(list(row))) for row in zip(*columns, strict=True)
    ]
    most = room["source_length"] - 1 - len(room["prefix"])
    assert [each["cut"] for each in found] == [length > most for length in lengths]
    assert 0 < sum(each["cut"] for each in found) < len(found)
    if made is tokenizer():  # a word is a token
        written_tokens = [len(each["text"].split()) for each in found]
        assert [each["ended"] for each in found] == [count < 10 for count in written_tokens]
    assert any(each["ended"] for each in found)
    assert (alone[0]["answer"], nothing) == (found[3]["answer"], [])
    assert len({each["text"] for each in found}) > 3

    loaded = load_text_model(folder / "package")
    assert [each["text"] for each in loaded(*columns)] == [each["text"] for each in found]
