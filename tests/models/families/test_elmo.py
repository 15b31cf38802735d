"""ELMo: words from tokens, the network in NumPy, what each direction sees, its parameters."""

from __future__ import annotations

from functools import cache
from typing import Any

import keras
import numpy as np
import pytest
from scipy.special import expit, log_softmax

from fourstage.errors import RecipeError
from models.families.elmo import SIZES, Elmo
from models.layers.frozen_features import LayerMix
from models.layers.spelling import (
    FILL,
    TEXT_BEGIN,
    TEXT_END,
    WORD_BEGIN,
    WORD_END,
    read_words,
    spelling,
)
from models.objectives.bidirectional_lm import BidirectionalLM
from models.protocols import Context
from models.tokenizers.byte_bpe import ByteBPE
from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece
from models.training.stage_model import StageModel
from models.weights import named_weights
from tests.models.slopes import check_slopes
from tests.models.weightless import weightless

PIECES = ["he", "plays", "play", "##ing", "##s", "é", "##é", "中", "文", "a" * 30, "##b"]
TOKENIZER = WordPiece([*SPECIAL_TOKENS, *PIECES], lowercase=False)
CLS, SEP = TOKENIZER.cls_id, TOKENIZER.sep_id
SIZE: dict[str, Any] = {
    "filters": [[1, 3], [2, 4], [3, 2]],
    "character_dim": 4,
    "max_characters": 12,
    "cell_dim": 6,
    "projection_dim": 5,
}
SIGNS = {TEXT_BEGIN: "[", TEXT_END: "]", WORD_BEGIN: "<", WORD_END: ">", FILL: "", 0: "_"}


def network(**changes: Any) -> Any:
    """A network whose weights are all random, large enough for both clips to act."""
    made = Elmo(vocabulary_size=TOKENIZER.vocabulary_size, **SIZE | changes)
    rng = np.random.default_rng(0)
    for variable in made.trainable_variables:
        variable.assign(rng.normal(0, 0.7, variable.shape))
    made.spell(TOKENIZER)
    return made


def ids(*pieces: str) -> list[int]:
    return [TOKENIZER.vocabulary.index(piece) for piece in pieces]


def text(characters: np.ndarray) -> str:
    """Characters with signs for those that are no bytes."""
    found = "".join(SIGNS.get(i) or (chr(i - 1) if i < FILL and i else "") for i in characters)
    return found.encode("latin-1").decode("utf-8", "replace")


def words(row: list[int], width: int = 11, tokenizer: Any = TOKENIZER) -> list[list[str]]:
    """What the tokens of a row are read as, forwards and backwards."""
    table = spelling(tokenizer, width)
    found = read_words(keras.ops.convert_to_tensor(table[np.array([row])]))
    return [[text(each) for each in keras.ops.convert_to_numpy(way)[0]] for way in found]


def in_numpy(
    made: Any, row: list[int], weights: dict[str, np.ndarray] | None = None
) -> list[np.ndarray]:
    """The layers of one row in float64, (T, 2D) each: token vectors, then each LSTM's."""
    if weights is None:
        weights = {name: np.asarray(v, np.float64) for name, v in named_weights(made).items()}
    ways = _characters(tuple(row))
    halves = [np.stack([_encoded(weights, word) for word in way]) for way in ways]
    layers = [np.concatenate(halves, axis=-1)]
    for number in range(made.num_hidden_states - 1):
        read = [
            _lstm(weights, f"block_{number}/{way}/", half[::turn], made)[::turn]
            for way, half, turn in zip(("forward", "backward"), halves, (1, -1), strict=True)
        ]
        halves = [new + old for new, old in zip(read, halves, strict=True)] if number else read
        layers.append(np.concatenate(halves, axis=-1))
    return layers


@cache
def _characters(row: tuple[int, ...]) -> list[np.ndarray]:
    """The characters of each token's word, forwards and backwards."""
    spelled = spelling(TOKENIZER, SIZE["max_characters"] - 1)[np.array([row])]
    return [keras.ops.convert_to_numpy(way)[0] for way in read_words(spelled)]


def _encoded(weights: dict[str, np.ndarray], word: np.ndarray) -> np.ndarray:
    vectors = weights["embeddings/characters/embeddings"][word]
    found = []
    for width, _ in SIZE["filters"]:
        kernel = weights[f"embeddings/convolution_{width}/kernel"]
        bias = weights[f"embeddings/convolution_{width}/bias"]
        places = range(len(word) - width + 1)
        each = [vectors[p : p + width].ravel() for p in places]
        values = np.stack(each) @ kernel.reshape(-1, kernel.shape[-1]) + bias
        found.append(np.maximum(np.max(values, axis=0), 0))
    x = np.concatenate(found)

    def dense(name: str) -> np.ndarray:
        return x @ weights[f"embeddings/{name}/kernel"] + weights[f"embeddings/{name}/bias"]

    for i in range(2):
        gate = expit(dense(f"gate_{i}"))
        x = gate * np.maximum(dense(f"transform_{i}"), 0) + (1 - gate) * x
    return dense("output")


def _lstm(weights: dict[str, np.ndarray], at: str, x: np.ndarray, made: Any) -> np.ndarray:
    config = made.get_config()
    largest, projected = config["cell_clip"], config["projection_clip"]
    output, cell, each = np.zeros(SIZE["projection_dim"]), np.zeros(SIZE["cell_dim"]), []
    for given in x:
        gates = given @ weights[f"{at}input/kernel"] + weights[f"{at}input/bias"]
        gates = gates + output @ weights[f"{at}recurrent_kernel"]
        i, f, g, o = np.split(gates, 4)
        cell = np.clip(expit(f) * cell + expit(i) * np.tanh(g), -largest, largest)
        output = (expit(o) * np.tanh(cell)) @ weights[f"{at}projection_kernel"]
        output = np.clip(output, -projected, projected)
        each.append(output)
    return np.stack(each)


def values(made: Any, rows: list[list[int]]) -> list[np.ndarray]:
    longest = max(map(len, rows))
    mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in rows], "int32")
    padded = np.array([row + [0] * (longest - len(row)) for row in rows], "int32")
    found = made.hidden_states({"token_ids": padded, "padding_mask": mask})
    return [keras.ops.convert_to_numpy(layer) for layer in found]


ROW = [CLS, *ids("he", "play", "##ing", "##s", "é", "##é", "中", "文"), SEP]


def test_a_token_is_read_as_its_word_so_far_and_from_there_on():
    forward, backward = words(ROW, width=12)
    assert forward == "<[> <he> <play> <playing> <playings> <é> <éé> <中> <文> <]>".split()
    assert backward == "<[> <he> <playings> ings> s> <éé> é> <中> <文> <]>".split()


def test_of_a_long_word_what_is_next_to_the_token_is_kept():
    forward, backward = words([CLS, *ids("a" * 30, "##b", "##ing")], width=6)
    assert forward[1:] == ["<aaaaa>", "aaaaab>", "aabing>"]
    assert backward[1:] == ["<aaaaa>", "bing>", "ing>"]


def test_a_row_that_begins_within_a_word_does_not_go_on_with_its_first_sign():
    forward, backward = words([CLS, *ids("##ing", "##s"), SEP])
    assert forward == ["<[>", "ing>", "ings>", "<]>"]
    assert backward == ["<[>", "ings>", "s>", "<]>"]


def test_words_of_bytes_begin_at_blanks():
    tokenizer = ByteBPE.learned(["he plays, she plays"] * 9, vocabulary_size=300, lowercase=False)
    (row,) = tokenizer.encode(["he plays"])
    forward, backward = words(row.tolist(), 20, tokenizer)
    assert forward[-1] == "<plays>"
    assert "<plays>" in backward


def test_padding_is_no_character():
    table = spelling(TOKENIZER, 11)[np.array([ROW])]
    mask = np.array([[0, *[1] * 8, 0]])
    for way in read_words(table, mask):
        found = keras.ops.convert_to_numpy(way)[0]
        assert not found[[0, -1]].any()
        assert found[1:-1].all()


@pytest.mark.parametrize("clip", [0.4, 3.0])
def test_every_layer_is_that_of_the_equations_in_a_padded_batch(clip):
    made = network(num_layers=3, cell_clip=clip, projection_clip=clip)
    short = [CLS, *ids("plays", "he"), SEP]
    found = values(made, [ROW, short])
    for number, row in enumerate((ROW, short)):
        for ours, theirs in zip(found, in_numpy(made, row), strict=True):
            np.testing.assert_allclose(ours[number, : len(row)], theirs, atol=2e-5)
    if clip < 1:  # both clips act: without them the numbers are others
        assert np.abs(found[1]).max() == np.float32(clip)


def test_the_mix_of_layers_is_the_papers_equation_1():
    made, mix = network(), LayerMix(3)
    mix.build()
    mix.w.assign([0.3, -1.0, 0.7])
    mix.scale.assign(1.4)
    s = np.exp([0.3, -1.0, 0.7]) / np.exp([0.3, -1.0, 0.7]).sum()
    expected = 1.4 * sum(share * h for share, h in zip(s, in_numpy(made, ROW), strict=True))
    found = keras.ops.convert_to_numpy(mix(values(made, [ROW])))[0]
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_no_direction_sees_a_token_that_it_predicts_not_even_in_its_own_word():
    made = network()
    before = values(made, [ROW])[-1]
    for place in range(1, len(ROW) - 1):
        for other in ids("he", "##ing", "中", "##b"):
            changed = [*ROW[:place], other, *ROW[place + 1 :]]
            moved = np.abs(values(made, [changed])[-1] - before)[0]
            forward, backward = np.split(moved, 2, axis=-1)
            assert not forward[:place].any()
            assert not backward[place + 1 :].any()


def test_rows_know_nothing_of_each_other_or_of_the_batch_before():
    made = network()
    alone = values(made, [ROW])[-1][0]
    beside = values(made, [ROW, ROW[::-1]])[-1]
    np.testing.assert_allclose(beside[0], alone, atol=1e-6)
    np.testing.assert_array_equal(values(made, [ROW])[-1][0], alone)


def test_words_that_are_no_token_have_vectors_of_their_own():
    made = network()
    unseen = [[CLS, *ids(*pieces), SEP] for pieces in (("he", "##é"), ("he", "##b"), ("é", "##s"))]
    last = [values(made, [row])[0][0, 2, :5] for row in unseen]
    whole = [values(made, [row])[0][0, 1, 5:] for row in unseen]
    for vectors in (last, whole):
        assert len({vector.tobytes() for vector in vectors}) == 3
    np.testing.assert_allclose(last, whole, atol=1e-6)  # both have read the word as a whole


def test_original_has_the_papers_parameters():
    characters = 262 * 16
    pairs = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    convolutions = sum(16 * width * number + number for width, number in pairs)
    highways = 2 * 2 * (2048 * 2048 + 2048)
    lstm = (512 + 512) * 4 * 4096 + 4 * 4096 + 4096 * 512
    expected = characters + convolutions + highways + 2048 * 512 + 512 + 2 * 2 * lstm
    assert expected == 93_600_864
    with weightless():
        made = Elmo(vocabulary_size=100, **SIZES["original"])
        trained = sum(int(np.prod(v.shape)) for v in made.trainable_variables)
    assert trained == expected


def test_bidirectional_lm_is_the_mean_of_both_directions_and_gradients_finite_differences():
    import tensorflow as tf

    made = network()
    objective = BidirectionalLM(Context(TOKENIZER, len(ROW)))
    scorer = objective.attach(made)
    rng = np.random.default_rng(2)
    for variable in scorer.trainable_variables:
        variable.assign(rng.normal(0, 0.7, variable.shape))
    model = StageModel(made, {"lm": scorer})
    short = [CLS, *ids("plays", "he"), SEP]
    rows = np.array([ROW, short + [0] * (len(ROW) - len(short))], "int32")
    mask = np.ones_like(rows)
    mask[1, len(short) :] = 0
    batch = {"token_ids": rows, "padding_mask": mask}
    batch = objective.examples(batch, np.random.default_rng(0))
    with tf.GradientTape() as tape:
        scores, outputs = model.outputs(batch, training=False)
        total, weight = scores["lm"]["loss"]
    named = named_weights(made) | {"table": scorer.output_table, "bias": scorer.output_bias}
    weights = {name: np.array(value, np.float64) for name, value in named.items()}

    def nats() -> float:
        total = 0.0
        for row in (ROW, short):
            forward, backward = np.split(in_numpy(made, row, weights)[-1], 2, axis=-1)
            for place in range(1, len(row) - 1):
                for state in (forward[place - 1], backward[place + 1]):
                    logits = weights["table"] @ state + weights["bias"]
                    total -= log_softmax(logits)[row[place]] / 2
        return total

    assert float(weight) == len(ROW) + len(short) - 4
    assert float(total) == pytest.approx(nats(), rel=1e-5)
    assert outputs["token_logits"].shape == (2, 2, len(ROW) - 2, TOKENIZER.vocabulary_size)
    trained = {name: v.value for name, v in named.items() if v.trainable}
    assert len(trained) == len(model.trainable_variables)
    gradients = tape.gradient(total, trained)
    for name, gradient in gradients.items():
        check_slopes(np.array(tf.convert_to_tensor(gradient)), weights[name], nats, name)


def test_words_shorter_than_a_convolution_are_refused():
    with pytest.raises(RecipeError, match=r"max_characters: expected at least 4, .*, got 2"):
        network(max_characters=2)
