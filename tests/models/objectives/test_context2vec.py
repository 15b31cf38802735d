"""context2vec in NumPy: what a context is, what a place is asked, and every gradient."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from scipy.special import expit, log_expit

from fourstage.errors import ContractViolation, RecipeError
from models import catalogue
from models.evaluation.heldout import HeldOut
from models.families.context2vec import Context2Vec as Network
from models.inputs.batches import batches
from models.objectives.context2vec import NOISE_IDS, WORD_SCORES, Context2Vec
from models.protocols import Context
from models.training.stage_model import StageModel
from models.vectors.outputs import NegativeSampling
from models.weights import named_weights
from tests.models.memory_corpus import MemoryCorpus, MemoryRows, PlainTokenizer, random_corpus

V, E, D = 20, 3, 4
CONTEXT = Context(PlainTokenizer(V), 8)
ROWS = np.array([[2, 9, 7, 3, 7, 12, 3], [2, 6, 15, 3, 0, 0, 0]], "int32")


@pytest.fixture(scope="module")
def made() -> tuple[Any, Any, StageModel]:
    network = Network(vocabulary_size=V, embedding_dim=E, state_dim=D, num_layers=2)
    scorer = Context2Vec(CONTEXT).attach(network)
    model = StageModel(network, {"c2v": scorer})
    rng = np.random.default_rng(1)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(0, 0.6, variable.shape))
    return network, scorer, model


def batch() -> dict[str, np.ndarray]:
    given = {"token_ids": ROWS, "padding_mask": (ROWS > 0).astype("int32")}
    objective = Context2Vec(CONTEXT, noise_words=3)
    objective.index(MemoryCorpus([[[9, 7, 7, 12, 6, 15]]]), np.random.default_rng(0))
    return objective.examples(given, np.random.default_rng(2))


def weights_of(layer: Any) -> dict[str, np.ndarray]:
    return {n: np.array(v.numpy(), np.float64) for n, v in named_weights(layer).items()}


def side(weights: dict[str, np.ndarray], ids: list[int], direction: str) -> np.ndarray:
    """(T, D): an LSTM's states, those of the last token first if it reads backwards."""
    table = "embeddings" if direction == "forward" else "backward_embeddings"
    x = weights[f"{table}/token/embeddings"][ids]
    for number in (0, 1):
        name = f"block_{number}_{direction}/{direction}"
        h = c = np.zeros(D)
        found = []
        for each in x if direction == "forward" else x[::-1]:
            gates = each @ weights[f"{name}/kernel"] + h @ weights[f"{name}/recurrent_kernel"]
            i, f, g, o = np.split(gates + weights[f"{name}/bias"], 4)
            c = expit(f) * c + expit(i) * np.tanh(g)
            h = expit(o) * np.tanh(c)
            found.append(h)
        x = np.array(found if direction == "forward" else found[::-1])
    return x


def loss(network: dict[str, np.ndarray], scorer: dict[str, np.ndarray], rows: Any) -> float:
    total = 0.0
    for ids, mask, noise in zip(
        rows["token_ids"], rows["padding_mask"], rows[NOISE_IDS], strict=True
    ):
        row = ids[mask > 0].tolist()
        forward, backward = (side(network, row, each) for each in ("forward", "backward"))
        for place in range(1, len(row) - 1):
            if row[place] < 5:
                continue
            around = np.concatenate([forward[place - 1], backward[place + 1]])
            hidden = np.maximum(around @ scorer["hidden/kernel"] + scorer["hidden/bias"], 0)
            context = hidden @ scorer["output/kernel"] + scorer["output/bias"]
            total -= log_expit(context @ scorer["word_table"][row[place]])
            for word in noise[place - 1]:
                if word != row[place]:
                    total -= log_expit(-context @ scorer["word_table"][word])
    return total


def test_loss_and_gradients_are_the_papers(made):
    import tensorflow as tf

    network, scorer, model = made
    rows = batch()
    with tf.GradientTape() as tape:
        scores, outputs = model.outputs(rows, training=False)
        total, weight = scores["c2v"]["loss"]
    parts = weights_of(network), weights_of(scorer)
    assert float(weight) == 6  # four words and two; the [SEP] between is none
    assert float(total) == pytest.approx(loss(*parts, rows), rel=1e-5)
    assert outputs[WORD_SCORES].shape == (2, 5, V)
    variables = model.trainable_variables
    gradients = tape.gradient(total, [variable.value for variable in variables])
    for variable, gradient in zip(variables, gradients, strict=True):
        found = tf.convert_to_tensor(gradient).numpy()
        layer = scorer if variable.path.startswith(f"{scorer.path}/") else network
        of = parts[1] if layer is scorer else parts[0]
        value = of[variable.path.removeprefix(f"{layer.path}/")]
        place = np.unravel_index(np.abs(found).argmax(), found.shape)
        before, sides = value[place], []
        for change in (1e-5, -1e-5):
            value[place] = before + change
            sides.append(loss(*parts, rows))
        value[place] = before
        expected = (sides[0] - sides[1]) / 2e-5
        assert found[place] == pytest.approx(expected, rel=1e-3, abs=1e-4), variable.path


def test_a_context_has_not_read_its_own_place(made):
    network, scorer, _ = made
    turned = ROWS.copy()
    turned[0, 2] = 18

    def contexts(ids: np.ndarray) -> np.ndarray:
        states = network({"token_ids": ids})["sequence_output"]
        return keras.ops.convert_to_numpy(scorer.contexts(states))[0]

    moved = np.abs(contexts(turned) - contexts(ROWS)).max(axis=-1) > 1e-6
    assert moved.tolist() == [True, False, True, True, True]


def test_noise_is_drawn_by_the_power_of_the_frequency_without_special_tokens():
    objective = Context2Vec(CONTEXT, noise_words=4000, noise_power=0.5)
    objective.index(MemoryCorpus([[[9] * 9 + [7] * 4 + [12, 3, 1]]]), np.random.default_rng(0))
    rows = {"token_ids": ROWS[:1], "padding_mask": np.ones_like(ROWS[:1])}
    noise = objective.examples(rows, np.random.default_rng(0))[NOISE_IDS]
    shares = np.bincount(noise.ravel(), minlength=V) / noise.size
    assert set(np.flatnonzero(shares)) == {7, 9, 12}
    np.testing.assert_allclose(shares[[9, 7, 12]], np.array([3, 2, 1]) / 6, atol=0.01)


def test_beside_a_head_noise_is_of_the_rows():
    rows = MemoryRows([([9, 9], "a"), ([7], "b")])
    objective = Context2Vec(Context(PlainTokenizer(V), 8, (), rows))
    given = {"token_ids": ROWS, "padding_mask": (ROWS > 0).astype("int32")}
    noise = objective.examples(given, np.random.default_rng(0))[NOISE_IDS]
    assert set(np.unique(noise)) == {7, 9}


def test_what_means_nothing_is_refused():
    with pytest.raises(RecipeError, match="noise_words: expected 1 or more, got 0"):
        Context2Vec(CONTEXT, noise_words=0)
    with pytest.raises(RecipeError, match="'context2vec' shares its rows with no other objective"):
        catalogue.check_compatible("context2vec", ["bidirectional_lm", "context2vec"])


def test_noise_does_not_depend_on_how_often_a_corpus_is_read():
    corpora = [MemoryCorpus([[[word] * 12]]) for word in (9, 15)]
    given = {"token_ids": ROWS, "padding_mask": (ROWS > 0).astype("int32")}

    def noise(passes: int) -> np.ndarray:
        objective = Context2Vec(CONTEXT, noise_words=50)
        for corpus in (*corpora, *[corpora[0]] * passes):
            objective.index(corpus, np.random.default_rng(0))
        return objective.examples(given, np.random.default_rng(2))[NOISE_IDS]

    assert np.array_equal(noise(0), noise(9))
    assert 0.4 < (noise(9) == 9).mean() < 0.6


def test_a_held_out_text_is_measured_alike_whatever_is_measured_beside_it(made):
    network, scorer, _ = made
    texts = {name: MemoryCorpus([[[word] * 30]]) for name, word in (("a", 9), ("b", 15))}
    for corpora in (["a"], ["a", "b"]):
        given = {name: texts[name] for name in corpora}
        heldout = HeldOut(network, "context2vec", scorer, given, CONTEXT.tokenizer, 8)
        assert set(np.unique(heldout.feeds["a"].batch(0)[NOISE_IDS])) == {9}


def test_noise_is_of_each_corpus_by_its_share_however_long_it_is():
    texts = {"long": MemoryCorpus([[[9] * 900]]), "short": MemoryCorpus([[[15] * 60]])}
    corpora = {"long": (texts["long"], 1.0), "short": (texts["short"], 3.0)}
    objective = Context2Vec(CONTEXT, noise_words=500, noise_power=1.0)
    fed = batches(corpora, [objective], CONTEXT, 8, 1)
    assert (fed.batch(0)[NOISE_IDS] == 15).mean() == pytest.approx(0.75, abs=0.02)


def test_noise_of_one_corpus_has_the_bits_of_its_counts():
    text = random_corpus(20, V)
    counts = sum(np.bincount(text.document(i)[0], minlength=V) for i in range(20))
    objective = Context2Vec(CONTEXT)
    fed = batches({"one": (text, 0.3)}, [objective], CONTEXT, 8, 1)
    assert len(fed.feeds[0].index) > 8
    expected = NegativeSampling(np.array(counts), 10, 0.75)
    assert np.array_equal(objective._noise()._cumulative, expected._cumulative)


def test_text_of_unknown_words_only_is_refused_where_its_index_is_made():
    unknown = MemoryCorpus([[[1] * 30]])
    with pytest.raises(ContractViolation, match="no word of the text is in the tokenizer's"):
        batches({"one": (unknown, 1.0)}, [Context2Vec(CONTEXT)], CONTEXT, 1, 1)
    beside = {"one": (unknown, 1.0), "two": (MemoryCorpus([[[9] * 30]]), 1.0)}
    fed = batches(beside, [Context2Vec(CONTEXT)], CONTEXT, 4, 1)
    assert (fed.batch(0)[NOISE_IDS] == 9).all()
