"""fastText's classifier: its hashes by hand, its equations against NumPy, and what it can tell."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from fourstage.errors import RecipeError
from models.families.fasttext import FastText
from models.heads.sequence_classification import SequenceClassification
from models.layers.word_ngrams import END, ngram_rows, word_hashes
from models.protocols import Context
from models.tokenizers.word import Word
from models.tokenizers.wordpiece import SPECIAL_TOKENS
from models.training.gradient import train
from models.training.stage import Budget, Phase
from models.training.trainer import train as train_any
from tests.models.training.memory import Corpus, Rows, finetuning, pretraining

WORDS = ("the", "saw", "中", "国", "é", "müde")
TOKENS = (*SPECIAL_TOKENS, *WORDS)
# A trigram's hash is of the words' own hashes as signed numbers. By arithmetic apart from the code;
# with 1,000 buckets and these words the original tool (fasttext-wheel 0.9.2) was trained, and what
# it predicts is the softmax of the mean of its words' rows and these.
HASHES = {
    "the saw": 18298884952514002526,
    "the saw 中": 411823573849558366,
    "中 国": 18404449340023569232,
    "é müde": 118723585185616623,
    "müde </s>": 18256342143444565173,
    "é müde </s>": 16468722431114457294,
}
SETTINGS = {"hidden_dim": 4, "buckets": 1000, "word_ngrams": 3}


def words() -> Word:
    return Word(list(TOKENS), lowercase=False)


def rows_of(ids: Sequence[int], longest: int = 3, buckets: int = 1000) -> dict[str, int]:
    """{n-gram: its row} of a row of tokens."""
    hashes = tf.gather(word_hashes(words(), longest), [list(ids)])
    mask = tf.cast(hashes[:, :, 0, 0] >= 0, tf.int32)
    rows, there = (np.array(each)[0] for each in ngram_rows(hashes, mask, buckets))
    said = [END if i == 3 else TOKENS[i] for i in ids]
    return {
        " ".join(said[place : place + 2 + more]): int(rows[place, more])
        for place, more in np.argwhere(there)
    }


@pytest.mark.parametrize("buckets", [1, 1000, 1_000_003, 1 << 23])
def test_hashes_of_word_ngrams_are_those_of_the_original_tool(buckets: int) -> None:
    found = rows_of([2, 5, 6, 7, 8, 3], buckets=buckets)
    found |= rows_of([2, 9, 10, 3, 0, 0], buckets=buckets)
    for ngram, value in HASHES.items():
        assert found[ngram] == value % buckets, ngram


def test_an_ngram_is_of_words_that_stand_together() -> None:
    assert list(rows_of([2, 5, 6, 1, 7, 3, 0])) == ["the saw", "中 </s>"]
    assert list(rows_of([2, 3])) == []
    assert list(rows_of([5])) == []


def network(tables: dict[str, np.ndarray]) -> FastText:
    made = FastText(vocabulary_size=len(TOKENS), **SETTINGS)
    made.spell(words())
    made.token_embedding.embeddings.assign(tables["words"])
    made.ngram_embedding.embeddings.assign(tables["ngrams"])
    return made


def test_loss_and_gradients_equal_numpy_and_finite_differences() -> None:
    rng = np.random.default_rng(0)
    tables = {"words": rng.normal(size=(len(TOKENS), 4)), "ngrams": rng.normal(size=(1000, 4))}
    tables |= {"kernel": rng.normal(size=(4, 2)), "bias": rng.normal(size=2)}
    ids = np.array([[2, 5, 6, 7, 8, 3], [2, 6, 1, 9, 3, 0]], np.int32)
    labels = np.array([1, 0], np.int32)

    def loss() -> float:
        """Of Joulin et al. 2016, section 2: softmax of a linear layer on the mean of features."""
        total = 0.0
        for row, label in zip(ids, labels, strict=True):
            own = [tables["words"][i] for i in row if i == 3 or i >= 5]
            own += [tables["ngrams"][i] for i in rows_of(row).values()]
            logits = np.mean(own, axis=0) @ tables["kernel"] + tables["bias"]
            total += np.log(np.exp(logits).sum()) - logits[label]
        return total / len(ids)

    made = network(tables)
    head = SequenceClassification(Context(words(), 6, ("a", "b")), dropout=0.0)
    scorer: Any = head.attach(made)
    scorer.output_projection.kernel.assign(tables["kernel"])
    scorer.output_projection.bias.assign(tables["bias"])
    batch = {"token_ids": ids, "padding_mask": (ids > 0).astype(np.int32), "labels": labels}
    batch["row_weights"] = np.ones(2, np.float32)
    variables = {
        "words": made.token_embedding.embeddings,
        "ngrams": made.ngram_embedding.embeddings,
        "kernel": scorer.output_projection.kernel,
        "bias": scorer.output_projection.bias,
    }
    with tf.GradientTape() as tape:
        scores, _ = scorer(batch, made(batch))
        total, weight = scores["loss"]
        found = total / weight
    assert float(found) == pytest.approx(loss(), rel=1e-5)
    gradients = tape.gradient(found, {name: v.value for name, v in variables.items()})
    assert isinstance(gradients["ngrams"], tf.IndexedSlices)  # what was not read is not touched
    touched = list(rows_of(ids[0]).values())[:3]
    places = {"words": range(len(TOKENS)), "ngrams": [*touched, 1], "kernel": range(4)}
    for name, gradient in gradients.items():
        dense, table = np.array(tf.convert_to_tensor(gradient)), tables[name]
        for place in np.ndindex(table.shape):
            if place[0] not in places.get(name, range(2)):
                continue
            before, step = table[place], 1e-5
            table[place] = before + step
            above = loss()
            table[place] = before - step
            slope = (above - loss()) / (2 * step)
            table[place] = before
            assert dense[place] == pytest.approx(slope, rel=1e-3, abs=1e-6), (name, place)


def test_one_word_ngrams_is_the_network_of_vectors_alone() -> None:
    made = FastText(vocabulary_size=9, hidden_dim=4)
    made.spell(words())
    assert [v.path.split("/")[-2:] for v in made.variables] == [["token", "embeddings"]]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"word_ngrams": 0}, "size.word_ngrams: expected 1 or more, got 0"),
        ({"word_ngrams": 2, "buckets": 10_000_000}, "size.buckets: expected 1 to 8,388,608"),
        ({"word_ngrams": 2, "buckets": 0}, "got 0"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, int], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        FastText(vocabulary_size=9, hidden_dim=4, **settings)


class Orders(Rows):
    """Two labels, told by the order of each two words alone: which words there are says nothing."""

    def __init__(self, rows: int, seed: int):
        super().__init__(rows, seed)
        rng = np.random.default_rng(seed)
        pairs = 5 + 2 * rng.integers(0, 10, (rows, 4, 1)) + np.arange(2)
        self.ids_of = [
            (own if answer == "high" else own[:, ::-1]).ravel().astype(np.int32)
            for own, answer in zip(pairs, self.answers, strict=True)
        ]


@pytest.mark.parametrize("before", [None, "skip_gram", "glove"])
def test_bigrams_tell_what_words_alone_do_not(tmp_path: Path, before: str | None) -> None:
    network = {"hidden_dim": 10, "buckets": 5000, "word_ngrams": 2}
    initial = None
    if before is not None:
        initial = tmp_path / before
        vectors: dict[str, Any] = {
            "family": "fasttext",
            "network": network,
            "objectives": {before: {"window": 3}},
            "phases": [Phase(16)],
            "budget": Budget("epochs", 1),
            "corpora": {"a": (Corpus(20, 1), 1.0)},
            "heldout": {},
        }
        train_any(pretraining(**vectors), initial)
    given: dict[str, Any] = {
        "family": "fasttext",
        "network": network,
        "initial": initial,
        "rows": {"train": Orders(200, 1), "dev": Orders(100, 2)},
        "optimizer": {"sgd": {"peak_learning_rate": 4.0}},
        "head_settings": {"dropout": 0.0},
        "phases": [Phase(16)],
        "budget": Budget("epochs", 10),
        "select": {"metric": "accuracy", "split": "dev"},
    }
    train(finetuning(**given), tmp_path / "tuned")
    assert json.loads((tmp_path / "tuned/metrics.json").read_text())["selection"]["value"] == 1.0
