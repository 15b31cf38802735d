"""The tagging head: tags of words, spans from logits, windows, a CRF on top."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fourstage.errors import RecipeError, UnknownNameError
from models.families.bert import SIZES, Bert
from models.heads.token_classification import TokenClassification
from models.layers.crf import FORBIDDEN
from models.protocols import Context
from models.scored_positions import where_read
from tests.models.inputs.test_passages import Rows
from tests.models.memory_corpus import PlainTokenizer

TYPES = ("loc", "per")  # tags: O, B-loc, I-loc, B-per, I-per


class Texts(Rows):
    """Rows with a text of their own."""

    def passage(self, i):
        return TEXTS[i]


TEXTS = ["Ada saw New York", "\u200d Ada", "a b c d e f g h"]
ROWS = Texts(
    [
        ([11, 12, 13, 14, 15, 16], json.dumps([[0, 3, "per"], [8, 14, "loc"]])),
        ([11], json.dumps([[0, 5, "per"]])),
        (range(20, 28), json.dumps([[2, 11, "loc"]])),
    ],
    [[1, 2, 1, 2], [0, 1], [1] * 8],
)
CONTEXT = Context(PlainTokenizer(50), 8, TYPES, ROWS)
RNG = np.random.default_rng(0)


def batch(head: TokenClassification) -> dict:
    return head.segments(ROWS, head.index(ROWS, RNG).entries, RNG)


def test_a_tag_is_read_at_the_first_token_of_a_word_and_a_span_takes_whole_words():
    made = batch(TokenClassification(CONTEXT))
    assert made["word_starts"][0, :5].tolist() == [1, 2, 4, 5, 0]
    assert made["tag_labels"][0, :5].tolist() == [3, 0, 1, 2, -1]  # "New Yo" is all of "New York"
    assert made["tag_labels"][1, :2].tolist() == [3, -1]  # the word without tokens has no tag


def test_a_span_that_reaches_beyond_a_window_is_cut_and_legal():
    head = TokenClassification(CONTEXT)
    entries = head.index(ROWS, RNG).entries
    assert entries[2:].tolist() == [(2, 0, 6), (2, 3, 8)]
    labels = batch(head)["tag_labels"]
    assert labels[2, :6].tolist() == [0, 1, 2, 2, 2, 2]
    assert labels[3, :6].tolist() == [1, 2, 2, 0, 0, -1]
    bioes = batch(TokenClassification(CONTEXT, scheme="bioes"))["tag_labels"]
    assert bioes[2, :6].tolist() == [0, 1, 2, 2, 2, 3]


def said(head: TokenClassification, row: int, *windows: list[int], rate: float = 20.0):
    tags = len(head.tags)
    outputs = []
    for window in windows:
        logits = np.zeros((8, tags), np.float32)
        logits[: len(window)] = rate * np.eye(tags)[window]
        table = np.zeros((tags + 2, tags), np.float32)
        outputs.append({"tag_logits": logits, "tag_transitions": table})
    return head.answer(ROWS, row, outputs)


def test_tags_become_spans_of_the_text_as_written():
    answer = said(TokenClassification(CONTEXT), 0, [3, 0, 1, 2])
    assert json.loads(answer.text) == [[0, 3, "per"], [8, 16, "loc"]]
    assert answer.probability == pytest.approx(1, abs=1e-6)
    unsure = said(TokenClassification(CONTEXT), 0, [3, 0, 0, 0], rate=np.log(4))
    assert unsure.probability == pytest.approx((4 / 8) ** 4, rel=1e-5)
    assert json.loads(said(TokenClassification(CONTEXT), 1, [3]).text) == [[2, 5, "per"]]


def test_each_word_is_tagged_in_the_window_where_it_has_the_most_context():
    # Words 3 and 4 have two words after them in the first window and more in the second.
    answer = said(TokenClassification(CONTEXT), 2, [0, 1, 2, 2, 4, 4], [1, 4, 2, 2, 0])
    assert json.loads(answer.text) == [[2, 7, "loc"], [8, 9, "per"], [10, 13, "loc"]]


def test_with_a_crf_the_best_legal_sequence_counts():
    head = TokenClassification(CONTEXT, crf=True)
    scorer = head.attach(Bert(vocabulary_size=50, **SIZES["tiny"]))
    pairs, first, last = (np.asarray(part) for part in scorer.crf.scores())
    table = np.concatenate([pairs, first[None], last[None]])
    logits = np.zeros((8, 5), np.float32)
    logits[[0, 1, 2, 3], [4, 4, 0, 2]] = [5, 5, 1, 2]  # I-per I-per O I-loc is not legal
    answer = head.answer(ROWS, 0, [{"tag_logits": logits, "tag_transitions": table}])
    assert json.loads(answer.text) == [[0, 7, "per"], [8, 16, "loc"]]
    assert (pairs[0] == np.array([0, 0, FORBIDDEN, 0, FORBIDDEN])).all()


def test_the_loss_of_a_crf_without_transitions_is_that_of_legal_sequences():
    head = TokenClassification(CONTEXT, crf=True, dropout=0.0)
    network = Bert(vocabulary_size=50, **SIZES["tiny"])
    scorer = head.attach(network)
    made = batch(head)
    scores, _ = scorer(made, network(made))
    words = int((made["tag_labels"] >= 0).sum())
    assert float(scores["loss"][1]) == words
    assert 0 < float(scores["loss"][0]) / words < np.log(5)
    fillers = made | {"row_weights": np.zeros(4, np.float32)}
    scores, _ = scorer(fillers, network(made))
    assert [float(part) for part in scores["loss"]] == [0, 0]


def test_balanced_weighs_the_loss_of_each_tag_by_its_frequency_in_the_windows():
    import tensorflow as tf

    head = TokenClassification(CONTEXT, class_weights="balanced", dropout=0.0)
    scorer = head.attach(Bert(vocabulary_size=50, **SIZES["tiny"]))
    scorer.output_projection.kernel.assign(np.eye(128, 5, dtype=np.float32))
    made = batch(head)
    states = np.random.default_rng(0).normal(size=(4, 8, 128)).astype(np.float32)
    with tf.GradientTape() as tape:
        scores, _ = scorer(made, {"sequence_output": states})
        total, weight = scores["loss"]
    gradient = tape.gradient(total, scorer.output_projection.bias.value)
    # The four windows have four times O, three times B-loc, seven I-loc, two B-per and no I-per.
    tag_weights = 16 / 5 / np.array([4, 3, 7, 2, 1])
    labels = made["tag_labels"]
    own = np.where(labels >= 0, tag_weights[labels], 0.0)
    logits = np.take_along_axis(states[:, :, :5], made["word_starts"][:, :, None], axis=1)
    shares = np.exp(logits)
    shares /= shares.sum(axis=-1, keepdims=True)
    hot = np.eye(5)[labels]
    assert float(total) == pytest.approx(-(own * np.log((shares * hot).sum(-1))).sum(), rel=1e-5)
    assert float(weight) == pytest.approx(own.sum())
    expected = (own[:, :, None] * (shares - hot)).sum(axis=(0, 1))
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-5)
    hits = (logits.argmax(-1) == labels)[labels >= 0].sum()
    assert [float(part) for part in scores["accuracy"]] == [hits, (labels >= 0).sum()]


def test_class_weights_of_a_crf_are_refused():
    with pytest.raises(RecipeError, match="class_weights: expected none with crf, got balanced"):
        TokenClassification(CONTEXT, class_weights="balanced", crf=True)


def test_what_cannot_be_tagged_is_refused():
    with pytest.raises(UnknownNameError, match=r"iob3.*iob2"):
        TokenClassification(CONTEXT, scheme="iob3")
    with pytest.raises(RecipeError, match="no spans at all"):
        TokenClassification(Context(PlainTokenizer(50), 8))


def test_the_last_layer_is_computed_once_for_each_token():
    head = TokenClassification(CONTEXT)
    network = Bert(vocabulary_size=50, **SIZES["tiny"])
    made = batch(head)
    assert where_read(network, [head.attach(network)], made) == made
