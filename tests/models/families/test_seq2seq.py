"""Recurrent encoder–decoders in NumPy: cells, scores, input feeding; and what they write."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import keras
import numpy as np
import pytest
from scipy.special import expit, softmax

from fourstage.errors import RecipeError, UnknownNameError
from models.decoding.reader import cached_reader
from models.decoding.recurrent import RecurrentReading, reading_apart
from models.evaluation.predict import RowPredictor
from models.families.seq2seq import ATTENTIONS, CELLS, DIRECTIONS, SIZES, Seq2Seq
from models.heads.sequence_to_sequence import SequenceToSequence
from models.inputs.batches import batches
from models.layers import recurrent, recurrent_decoder
from models.layers.attention_weights import alignment_weights
from models.layers.token_prediction import TokenOutput
from models.protocols import Context
from models.training.optimizer import make_optimizer
from models.training.stage_model import StageModel
from models.weights import named_weights
from tests.models.memory_corpus import MemoryRows, PlainTokenizer
from tests.models.slopes import check_slopes
from tests.models.training.memory import RULE
from tests.models.weightless import weightless

VOCABULARY_SIZE = 30
E, D = 5, 6
# Every attention, cell and direction, one layer or two, with input feeding and without.
KINDS: dict[str, dict[str, Any]] = {
    "sutskever": {"attention": "none", "direction": "backward", "num_layers": 2},
    "sutskever-gru": {"attention": "none", "cell": "gru"},
    "bahdanau": {"attention": "bahdanau", "direction": "both", "cell": "gru"},
    "bahdanau-deep": {"attention": "bahdanau", "num_layers": 2},
    "dot": {"attention": "luong_dot", "direction": "backward"},
    "dot-fed": {"attention": "luong_dot", "input_feeding": True, "cell": "gru"},
    "general": {"attention": "luong_general", "direction": "both", "num_layers": 2},
    "general-fed": {"attention": "luong_general", "input_feeding": True, "num_layers": 2},
    "concat": {"attention": "luong_concat", "direction": "both"},
    "concat-fed": {"attention": "luong_concat", "input_feeding": True},
    "ramachandran": {
        "attention": "luong_general",
        "num_layers": 2,
        "multi_layer_attention": True,
        "residual": True,
        "target_table": True,
    },
    "bahdanau-two-layers": {
        "attention": "bahdanau",
        "num_layers": 2,
        "multi_layer_attention": True,
        "residual": True,
    },
}


def network(seed: int = 0, **changes: Any) -> Any:
    """A network whose weights are all random, so that none is without effect."""
    keras.utils.set_random_seed(seed)
    size = {"num_layers": 1, "embedding_dim": E, "hidden_dim": D}
    made = Seq2Seq(vocabulary_size=VOCABULARY_SIZE, **size | changes)
    rng = np.random.default_rng(seed)
    for variable in made.trainable_variables:
        variable.assign(rng.normal(0, 0.5, variable.shape))
    return made


def rows() -> dict[str, np.ndarray]:
    """Three texts and targets, padded on the right."""
    rng = np.random.default_rng(1)
    texts, targets = np.array([[6], [2], [4]]), np.array([[5], [3], [1]])
    mask, target_mask = np.arange(6) < texts, np.arange(5) < targets
    return {
        "token_ids": (rng.integers(5, VOCABULARY_SIZE, (3, 6)) * mask).astype("int32"),
        "padding_mask": mask.astype("int32"),
        "target_ids": (rng.integers(5, VOCABULARY_SIZE, (3, 5)) * target_mask).astype("int32"),
        "target_mask": target_mask.astype("int32"),
    }


def states(made: Any, batch: dict[str, np.ndarray]) -> np.ndarray:
    return keras.ops.convert_to_numpy(made(batch)["sequence_output"])


class InNumPy:
    """The papers' equations for one text and one target, in float64."""

    def __init__(self, made: Any):
        self.made = made
        named = named_weights(made)
        self.weights = {name: np.asarray(value, np.float64) for name, value in named.items()}
        self.layers = made.num_layers
        self.weighed: list[np.ndarray] = []  # (T,) weights, each time that it attends

    def of(self, name: str) -> np.ndarray:
        return self.weights[name]

    def cell(self, name: str, x: np.ndarray, state: list[np.ndarray]) -> list[np.ndarray]:
        kernel, own, bias = (self.of(f"{name}/{w}") for w in ("kernel", "recurrent_kernel", "bias"))
        h, width = state[0], len(state[0])
        parts = [slice(n * width, (n + 1) * width) for n in range(kernel.shape[1] // width)]
        if self.made.cell == "lstm":  # Sutskever et al. by Graves 2013, equations 7 to 11
            i, f, c, o = (x @ kernel[:, p] + h @ own[:, p] + bias[p] for p in parts)
            memory = expit(f) * state[1] + expit(i) * np.tanh(c)
            return [expit(o) * np.tanh(memory), memory]
        z, r, new = parts  # Cho et al. 2014, equations 5 to 8
        update = expit(x @ kernel[:, z] + h @ own[:, z] + bias[z])
        reset = expit(x @ kernel[:, r] + h @ own[:, r] + bias[r])
        proposed = np.tanh(x @ kernel[:, new] + (reset * h) @ own[:, new] + bias[new])
        return [update * h + (1 - update) * proposed]

    def nothing(self) -> list[np.ndarray]:
        return [np.zeros(self.made.hidden_dim)] * (2 if self.made.cell == "lstm" else 1)

    def encoded(self, ids: list[int]) -> tuple[np.ndarray, list[list[np.ndarray]]]:
        """What is attended to, (T, M), and the last state of each layer."""
        x, last, first = self.of("embeddings/token/embeddings")[ids], [], None
        for number in range(self.layers):
            sides, state = [], self.nothing()
            for side in ("forward", "backward"):
                if self.made.direction not in (side, "both"):
                    continue
                state, found = self.nothing(), []
                for each in x if side == "forward" else x[::-1]:
                    state = self.cell(f"block_{number}/{side}", each, state)
                    found.append(state[0])
                sides.append(np.array(found if side == "forward" else found[::-1]))
            x = np.concatenate(sides, axis=1)
            first = x if first is None else first
            last.append(state)
        if self.made.direction == "both":  # Bahdanau et al., A.2.2
            per = len(last[0])
            last = [
                [
                    np.tanh(each @ self.of(f"decoder/start_{number * per + n}/kernel"))
                    for n, each in enumerate(state)
                ]
                for number, state in enumerate(last)
            ]
        if self.made.multi_layer_attention:  # Ramachandran et al. 2017, 2.3
            x = np.concatenate([first, x], axis=1)  # pyright: ignore
        return x, last

    def context(self, state: np.ndarray, seen: np.ndarray) -> np.ndarray:
        kind, name = self.made.attention, "decoder/attention"
        memory = seen[:, -seen.shape[1] // 2 :] if self.made.multi_layer_attention else seen
        if kind == "luong_dot":
            scores = memory @ state
        elif kind == "luong_general":
            scores = np.array([state @ self.of(f"{name}/key/kernel").T @ m for m in memory])
        else:
            # One matrix for [h; m], as in Luong's concat, is the two of Bahdanau's.
            both = np.concatenate([self.of(f"{name}/query/kernel"), self.of(f"{name}/key/kernel")])
            inside = np.array([np.tanh(np.concatenate([state, m]) @ both) for m in memory])
            scores = inside @ self.of(f"{name}/vector")
        self.weighed.append(softmax(scores))
        return self.weighed[-1] @ seen

    def outputs(self, ids: list[int], target: list[int]) -> np.ndarray:
        """(S, D): what predicts the token after each of the target."""
        memory, cells = self.encoded(ids)
        width = self.made.hidden_dim
        output, found = np.zeros(width), []
        table = "target_embeddings" if self.made.target_table else "embeddings"
        for y in self.of(f"{table}/token/embeddings")[target]:
            x = y
            if self.made.attention == "bahdanau":
                context = self.context(cells[-1][0], memory)
                x = np.concatenate([y, context])
            elif self.made.input_feeding:
                x = np.concatenate([y, output])
            for number in range(self.layers):
                name = f"decoder/block_{self.layers + number}"
                cells[number] = self.cell(name, x, cells[number])
                x = cells[number][0]
            added = cells[0][0] if self.made.residual else 0.0
            if self.made.attention == "none":
                output = x
            elif self.made.attention == "bahdanau":
                parts = np.concatenate([x, y, context]) @ self.of("decoder/mix/kernel")
                output = np.array([max(parts[2 * j], parts[2 * j + 1]) for j in range(width)])
            else:
                context = self.context(x, memory)
                mixed = np.concatenate([context, x]) @ self.of("decoder/mix/kernel")
                output = np.tanh(mixed)
            output = output + added
            found.append(output)
        return np.array(found)


@pytest.mark.parametrize("kind", KINDS)
def test_the_network_is_the_papers_equations_whatever_padding_there_is(kind):
    made, batch = network(**KINDS[kind]), rows()
    oracle, found = InNumPy(made), states(made, batch)
    for row in range(3):
        ids = batch["token_ids"][row][batch["padding_mask"][row] == 1].tolist()
        target = batch["target_ids"][row][batch["target_mask"][row] == 1].tolist()
        expected = oracle.outputs(ids, target)
        np.testing.assert_allclose(found[row, : len(target)], expected, atol=1e-5)


@pytest.mark.parametrize("kind", [name for name in KINDS if "sutskever" not in name])
def test_the_alignment_is_what_the_equations_weigh_the_text_by(kind):
    made, batch = network(**KINDS[kind]), rows()
    for row in range(3):
        one = {key: value[row : row + 1] for key, value in batch.items()}
        ids = one["token_ids"][one["padding_mask"] == 1].tolist()
        target = one["target_ids"][one["target_mask"] == 1].tolist()
        memory = made.memorised(one)
        _, after = made.go_on(one, keras.ops.stack(memory.states), memory)
        found = alignment_weights(made.decoder, after, memory, one["padding_mask"])
        found = keras.ops.convert_to_numpy(found)[: len(target)]
        oracle = InNumPy(made)
        oracle.outputs(ids, target)
        np.testing.assert_allclose(found[:, : len(ids)], oracle.weighed, atol=1e-5)
        assert not found[:, len(ids) :].any()


def test_what_attended_mask_hides_is_not_attended_to():
    made, batch = network(attention="luong_general"), rows()
    oracle = InNumPy(made)
    memory, cells = oracle.encoded(batch["token_ids"][0].tolist())
    seen = [0, 2, 3]
    oracle.encoded = lambda ids: (memory[seen], cells)  # pyright: ignore
    hidden = np.isin(np.arange(6), seen).astype("int32") * batch["padding_mask"]
    found = states(made, batch | {"attended_mask": hidden})[0]
    np.testing.assert_allclose(found, oracle.outputs([], batch["target_ids"][0]), atol=1e-5)


@pytest.mark.parametrize(
    "kind", ["sutskever", "bahdanau", "dot-fed", "general", "concat-fed", "ramachandran"]
)
def test_token_by_token_equals_one_reading_in_texts_that_part(kind):
    made, batch = network(**KINDS[kind]), rows()
    text = {key: batch[key] for key in ("token_ids", "padding_mask")}
    reading = reading_apart(made, TokenOutput(made), (3,))
    assert type(reading) is RecurrentReading
    read = cached_reader(reading)
    read.start(*text.values())
    new = np.full((3, 1), 3, "int32")
    rng = np.random.default_rng(0)
    for picked in ([0, 1, 2], [2, 0, 0, 1, 1], [4, 1, 2, 2], [3, 0]):
        new = np.concatenate([new[picked], rng.integers(5, 30, (len(picked), 1))], axis=1)
        text = {key: value[picked] for key, value in text.items()}
        found = read.step(np.array(picked), new[:, -1])
        whole = states(made, text | {"target_ids": new.astype("int32")})[:, -1]
        np.testing.assert_allclose(found, TokenOutput(made).logits(whole), atol=1e-5)


@pytest.mark.parametrize(
    "kind", ["bahdanau", "dot-fed", "general-fed", "concat-fed", "ramachandran"]
)
def test_gradients_are_finite_differences(kind):
    import tensorflow as tf

    made, batch = network(**KINDS[kind]), rows()
    weights = np.random.default_rng(2).normal(size=(3, 5, D)) * batch["target_mask"][..., None]

    with tf.GradientTape() as tape:
        total = tf.reduce_sum(made(batch)["sequence_output"] * weights.astype("float32"))
    named = {name: v for name, v in named_weights(made).items() if name != "output_table"}
    found = tape.gradient(total, {name: v.value for name, v in named.items()})
    texts = [
        (
            batch["token_ids"][row][batch["padding_mask"][row] == 1].tolist(),
            batch["target_ids"][row][batch["target_mask"][row] == 1].tolist(),
        )
        for row in range(3)
    ]
    oracle = InNumPy(made)

    def summed() -> float:
        each = [oracle.outputs(*text) for text in texts]
        return sum((e * weights[row, : len(e)]).sum() for row, e in enumerate(each))

    for name, gradient in found.items():
        check_slopes(np.array(tf.convert_to_tensor(gradient)), oracle.weights[name], summed, name)


def test_cells_begin_as_keras_says_and_states_stay_float32_in_bfloat16():
    keras.utils.set_random_seed(0)
    made = Seq2Seq(vocabulary_size=30, **SIZES["tiny"] | {"num_layers": 2}, dtype="mixed_bfloat16")
    named = named_weights(made)
    bias = np.asarray(named["block_0/forward/bias"])
    assert bias.tolist() == [0.0] * 128 + [1.0] * 128 + [0.0] * 256  # the forget gate is open
    own = np.asarray(named["decoder/block_3/recurrent_kernel"])
    np.testing.assert_allclose(own @ own.T, np.eye(128), atol=1e-5)
    batch = rows()
    found = made.memorised(batch)
    assert {keras.backend.standardize_dtype(x.dtype) for x in found.states} == {"float32"}


def test_dropout_in_training_takes_what_is_passed_from_cell_to_cell_and_the_outputs():
    made, batch = network(attention="none", num_layers=2, dropout=0.9999), rows()
    memory, x = made.memorised(batch), made.embeddings(batch["target_ids"])
    states = made.decoder(x, memory.states, memory, training=True)
    *_, second, _, output = (keras.ops.convert_to_numpy(each) for each in states)
    assert not output.any()  # with this seed, nothing is kept of anything
    oracle = InNumPy(made)
    for row in range(3):
        state = [np.asarray(each[row], np.float64) for each in memory.states[2:4]]
        for place in range(5):
            state = oracle.cell("decoder/block_3", np.zeros(D), state)
            np.testing.assert_allclose(second[row, place], state[0], atol=1e-6)


def test_sutskevers_cells_have_the_papers_64_million_weights():
    with weightless():
        made = Seq2Seq(vocabulary_size=80_000, **SIZES["sutskever"])
    kernels = sum(int(np.prod(v.shape)) for v in made.variables if v.path.endswith("kernel"))
    assert kernels == 64_000_000  # 32 million a side, section 3.4
    assert made.count_params() == 64_000_000 + 8 * 4000 + 2 * 80_000 * 1000
    # The paper's source has 160,000 words and a table of its own: 384 million in all.
    assert kernels + (160_000 + 2 * 80_000) * 1000 == 384_000_000


def test_settings_name_what_the_layers_have():
    assert CELLS == (recurrent.LSTM, recurrent.GRU)
    assert DIRECTIONS == (recurrent.FORWARD, recurrent.BACKWARD, recurrent.BOTH)
    assert ATTENTIONS == (*recurrent_decoder.SCORES, recurrent_decoder.NONE)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"cell": "lstn"}, UnknownNameError, "lstm"),
        ({"direction": "up"}, UnknownNameError, "direction"),
        ({"attention": "luong"}, UnknownNameError, "luong_dot"),
        ({"attention": "none", "input_feeding": True}, RecipeError, "attention is none, got true"),
        ({"attention": "luong_dot", "direction": "both"}, RecipeError, "take luong_general"),
        ({"tied_output": True}, RecipeError, "equal to hidden_dim, got 5 and 6"),
        ({"multi_layer_attention": True}, RecipeError, "attention luong_general and 1 layers"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        network(**changes)


def test_what_is_learnt_by_heart_is_written():
    """Bahdanau's network, from rows of pairs to the texts that it writes."""
    rng = np.random.default_rng(1)
    pairs = [rng.integers(5, 50, (2, 3)).tolist() for _ in range(12)]
    table = MemoryRows([(text, json.dumps([" ".join(map(str, said))])) for text, said in pairs])
    context = Context(PlainTokenizer(50), 12, (), table)
    head = SequenceToSequence(context, target_length=5, beams=3)
    keras.utils.set_random_seed(0)
    size = SIZES["rnnsearch"] | {"embedding_dim": 24, "hidden_dim": 32}
    made = Seq2Seq(vocabulary_size=50, **size)
    scorer = head.attach(made)
    model = StageModel(made, {"s2s": scorer})
    batch = batches({"rows": (table, 1.0)}, [head], context, 12, 0).batch(0)
    rule = {**RULE, "peak_learning_rate": 1e-2, "warmup": 0, "decay": "constant"}
    model.compile(optimizer=make_optimizer(rule, total_steps=120), jit_compile=False)
    model.optimizer.build(model.trainable_variables)  # else the step is traced twice
    for _ in range(120):
        model.train_on_batch(batch)
    blind = MemoryRows([(text, "") for text, _ in pairs])
    found = RowPredictor(made, head, scorer, blind, replace(context, rows=None)).answers()
    assert [each.text for each in found] == table.answers
    for (text, said), each in zip(pairs, found, strict=True):
        hidden = InNumPy(made).outputs([2, *text, 3], [3, *said])
        logits = hidden @ np.asarray(made.output_table, np.float64).T
        log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        whole = log_p[np.arange(4), [*said, 3]].sum()
        assert each.probability == pytest.approx(np.exp(whole), rel=1e-4)
