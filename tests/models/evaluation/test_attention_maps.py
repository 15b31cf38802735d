"""What tokens attend to, against NumPy from the layers' own weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from scipy.special import softmax

from fourstage.errors import RecipeError
from models import features as keys
from models.evaluation import attention_maps as maps
from models.evaluation.attention_maps import attention_maps, sentences
from models.families.seq2seq import Seq2Seq
from models.heads.sequence_regression import SequenceRegression
from models.heads.sequence_to_sequence import SequenceToSequence
from models.layers.attention_weights import watched_attention
from models.protocols import Context
from models.training.trained_stage import TrainedStage
from models.weights import save_weights
from tests.conformance.parts import network
from tests.models.training.memory import tokenizer

VALUE = keras.ops.convert_to_numpy
# One of each structure.
HEADS = (
    "albert",
    "bart",
    "ernie_tsinghua",
    "gpt3",
    "lxmert",
    "transformer_xl",
    "vilbert",
    "visualbert",
    "xlnet",
)
TEXTS = ("waa wab wac\twbc wca", "wab wac")


def stage(made: Any, folder: Path = Path(), length: int = 40, **head: Any) -> TrainedStage:
    config = {"head": head or None, "objectives": {}}
    context = Context(tokenizer(), length, network=made.provides)
    return TrainedStage(folder, config, made, context, made)


def drawn(family: str, **changes: Any) -> Any:
    """A network whose weights are random and large, so that attention is uneven."""
    made = network(family, vocabulary_size=tokenizer().vocabulary_size, **changes)
    rng = np.random.default_rng(0)
    for variable in made.trainable_variables:
        variable.assign(VALUE(variable) + rng.normal(0, 0.1, variable.shape))
    return made


@pytest.mark.parametrize("family", HEADS)
def test_each_row_sums_to_one_in_every_layer_and_head(family: str):
    made = drawn(family)
    pair, one = attention_maps(stage(made), sentences(TEXTS, tokenizer()))
    assert [(each.id, each.tokens, each.left_out) for each in (pair, one)] == [
        ("1", 8, 0),
        ("2", 4, 0),
    ]
    kinds = {maps.SELF: len(made.order)}
    if hasattr(made, "decoder_blocks"):
        kinds = {maps.ENCODER: made.num_layers}
        kinds |= {kind: made.num_decoder_layers for kind in (maps.DECODER, maps.CROSS)}
    for text in (pair, one):
        own = [(kind, n + 1) for kind, count in kinds.items() for n in range(count)]
        assert sorted((each.kind, each.layer) for each in text.maps) == sorted(own)
        for each in text.maps:
            assert each.weights.shape == (made.num_heads, text.tokens, text.tokens)
            np.testing.assert_allclose(each.weights.sum(axis=-1), 1.0, atol=1e-5)
            later = np.triu(np.ones((text.tokens, text.tokens), bool), 1)
            if "causal" in made.provides or each.kind == maps.DECODER:
                assert not each.weights[:, later].any()
            else:
                assert each.weights[:, later].all()
    # A text beside another one, with padding, has the weights that it has alone.
    read = [[*map(int, tokenizer().encode([t])[0])] for t in ("waa wab wac wad", "wab wac")]
    ids = np.zeros((2, 6), np.int32)
    for row, tokens in enumerate(read):
        ids[row, : len(tokens) + 2] = [tokenizer().cls_id, *tokens, tokenizer().sep_id]
    batch = {keys.TOKEN_IDS: ids, keys.PADDING_MASK: (ids > 0).astype(np.int32)}
    with watched_attention(made) as found:
        before = VALUE(made(batch)[keys.SEQUENCE_OUTPUT])
    assert len(found) == len(one.maps)
    for (_, weights), each in zip(found, one.maps, strict=True):
        own = VALUE(weights)[1]
        assert not own[:, :, 4:].any()
        np.testing.assert_allclose(own[:, :4, :4], each.weights, atol=1e-5)
    np.testing.assert_array_equal(VALUE(made(batch)[keys.SEQUENCE_OUTPUT]), before)
    assert len(found) == len(one.maps)  # nothing is kept any more


def by_head(rows: np.ndarray, layer: Any) -> np.ndarray:
    return rows.reshape(len(rows), layer.num_heads, layer.head_dim).transpose(1, 0, 2)


def dense(x: np.ndarray, layer: Any) -> np.ndarray:
    bias = 0.0 if layer.bias is None else VALUE(layer.bias)
    return x.astype(np.float64) @ VALUE(layer.kernel) + bias


def in_numpy(layer: Any, x: np.ndarray, memory: np.ndarray, bias: Any = 0.0) -> np.ndarray:
    """Vaswani et al., equation 1, without the values: (H, T, S)."""
    query, key = by_head(dense(x, layer.query), layer), by_head(dense(memory, layer.key), layer)
    scale = np.sqrt(layer.head_dim) if layer.scaled else 1.0
    return softmax(query @ key.transpose(0, 2, 1) / scale + bias, axis=-1)


def hidden(length: int) -> np.ndarray:
    return np.triu(np.full((length, length), -np.inf), 1)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_self_attention_is_the_equation_of_the_layers_own_weights(family: str):
    made = drawn(family)
    (text,) = attention_maps(stage(made), sentences(["waa wab wac wbb"], tokenizer()))
    (ids,) = tokenizer().encode(["waa wab wac wbb"])
    framed = np.array([[tokenizer().cls_id, *ids, tokenizer().sep_id]], np.int32)
    states = made.hidden_states({keys.TOKEN_IDS: framed})
    for each, block, x in zip(text.maps, made.blocks, states[:-1], strict=True):
        seen = VALUE(block.attention_norm(x) if family == "gpt2" else x)[0]
        bias = hidden(6) if family == "gpt2" else 0.0
        expected = in_numpy(block.attention, seen, seen, bias)
        np.testing.assert_allclose(each.weights, expected, atol=1e-5)
        assert each.weights.max() > 0.3  # uneven


def test_attention_of_a_target_is_to_itself_and_to_the_text():
    made = drawn("t5", num_layers=1, num_decoder_layers=1)  # unscaled, with relative positions
    (text,) = attention_maps(stage(made), sentences(["waa wab wac wbb"], tokenizer()))
    encoder, decoder, cross = text.maps
    (ids,) = tokenizer().encode(["waa wab wac wbb"])
    framed = np.array([[tokenizer().cls_id, *ids, tokenizer().sep_id]], np.int32)
    (x, *_), block = made.encoder_states({keys.TOKEN_IDS: framed}), made.blocks[0]
    seen, bias = VALUE(block.attention_norm(x))[0], VALUE(made.relative_bias(length=6))[0]
    expected = in_numpy(block.attention, seen, seen, bias)
    np.testing.assert_allclose(encoder.weights, expected, atol=1e-5)

    memory = VALUE(made.encode({keys.TOKEN_IDS: framed}))[0]
    x, _ = made.decoder_states({keys.TOKEN_IDS: framed}, memory[None])
    block = made.decoder_blocks[0]
    seen = VALUE(block.attention_norm(x))[0]
    bias = VALUE(made.decoder_relative_bias(length=6))[0] + hidden(6)
    own = in_numpy(block.attention, seen, seen, bias)
    np.testing.assert_allclose(decoder.weights, own, atol=1e-5)
    value = by_head(dense(seen, block.attention.value), block.attention)
    mixed = (own @ value).transpose(1, 0, 2).reshape(6, -1)
    x = VALUE(x)[0] + dense(mixed, block.attention.output_projection)
    asking = VALUE(block.cross_norm(x.astype(np.float32)[None]))[0]
    expected = in_numpy(block.cross_attention, asking, memory)
    np.testing.assert_allclose(cross.weights, expected, atol=1e-4)
    # The decoder reads the text again, one token behind; from each it goes on as the text does.
    assert decoder.asking == ["[SEP]", "[CLS]", "waa", "wab", "wac", "wbb"]
    assert cross.asking == cross.seen == ["[CLS]", "waa", "wab", "wac", "wbb", "[SEP]"]


def test_attention_by_relative_positions_is_that_of_each_pair_of_tokens():
    made = drawn("transformer_xl", num_layers=1)
    (text,) = attention_maps(stage(made), sentences(["waa wab wac"], tokenizer()))
    (ids,) = tokenizer().encode(["waa wab wac"])
    framed = np.array([[tokenizer().cls_id, *ids, tokenizer().sep_id]], np.int32)
    layer, x = made.blocks[0].attention, VALUE(made.embed({keys.TOKEN_IDS: framed}))[0]
    biases = layer.biases or made.biases
    u, v = (VALUE(each)[:, None] for each in biases.values)
    query, key = by_head(dense(x, layer.query), layer), by_head(dense(x, layer.key), layer)
    scores = (query + u) @ key.transpose(0, 2, 1)
    width = made.hidden_dim
    for i, j in np.ndindex(5, 5):
        angles = (i - j) / 10000 ** (np.arange(0, width, 2) / width)
        far = np.concatenate([np.sin(angles), np.cos(angles)])[None]
        scores[:, i, j] += (
            (query + v)[:, i] * by_head(dense(far, layer.relative), layer)[:, 0]
        ).sum(axis=-1)
    expected = softmax(scores / np.sqrt(layer.head_dim) + hidden(5), axis=-1)
    np.testing.assert_allclose(text.maps[0].weights, expected, atol=1e-5)


def test_what_is_written_attends_to_the_text(tmp_path: Path):
    words = tokenizer()
    made = Seq2Seq(
        vocabulary_size=words.vocabulary_size, num_layers=1, embedding_dim=8, hidden_dim=8
    )
    rng = np.random.default_rng(0)
    for variable in made.trainable_variables:
        variable.assign(rng.normal(0, 0.5, variable.shape))
    said = stage(made, tmp_path, sequence_to_sequence={"target_length": 9})
    scorer = SequenceToSequence(Context(words, 40), target_length=9).attach(made)
    (tmp_path / "heads").mkdir()
    save_weights(scorer, tmp_path / "heads" / "sequence_to_sequence.safetensors")
    (text,) = attention_maps(said, sentences(["waa wab wac"], words))
    (alignment,) = text.maps
    assert alignment.seen == ["[CLS]", "waa", "wab", "wac", "[SEP]"]
    written = words.encode([" ".join(alignment.asking).replace("[SEP]", "")])[0].tolist()
    count = len(alignment.asking)
    assert count == len(written) == 9 or alignment.asking[len(written) :] == ["[SEP]"]
    assert (alignment.kind, alignment.weights.shape) == (maps.ALIGNMENT, (1, count, 5))
    np.testing.assert_allclose(alignment.weights.sum(axis=-1), 1.0, atol=1e-5)
    # Each token is the likeliest one after those before it.
    ids = [words.cls_id, *words.encode(["waa wab wac"])[0], words.sep_id]
    batch = {
        keys.TOKEN_IDS: np.array([ids], np.int32),
        keys.PADDING_MASK: np.ones((1, 5), np.int32),
        keys.TARGET_IDS: np.array([[words.sep_id, *written][:count]], np.int32),
    }
    logits = VALUE(scorer.logits(made(batch)[keys.SEQUENCE_OUTPUT]))[0].copy()
    logits[:, sorted({*words.special_ids} - {words.sep_id})] = -np.inf
    assert alignment.asking == [words.decode([token]) for token in logits.argmax(axis=-1)]


def test_where_the_head_tells_of_shared_tokens_the_network_is_told(tmp_path: Path):
    made, words = drawn("bert"), tokenizer()
    said = stage(made, tmp_path, sequence_regression={"shared_tokens": True})
    scorer = SequenceRegression(Context(words, 40), shared_tokens=True).attach(made)
    (tmp_path / "heads").mkdir()
    save_weights(scorer, tmp_path / "heads" / "sequence_regression.safetensors")
    (text,) = attention_maps(said, sentences(["waa wab\twab wac"], words))
    first, second = (list(map(int, ids)) for ids in words.encode(["waa wab", "wab wac"]))
    ids = [words.cls_id, *first, words.sep_id, *second, words.sep_id]
    batch = {
        keys.TOKEN_IDS: np.array([ids], np.int32),
        keys.SEGMENT_IDS: np.array([[0] * 4 + [1] * 3], np.int32),
        keys.PADDING_MASK: np.ones((1, 7), np.int32),
    }
    for read, told in ((scorer.prepare(batch, False), True), (batch, False)):
        with watched_attention(made) as found:
            made(read)
        for (_, weights), each in zip(found, text.maps, strict=True):
            assert np.allclose(VALUE(weights)[0], each.weights, atol=1e-5) is told


def test_long_texts_are_read_in_part_and_layers_are_picked():
    made = drawn("bert", max_sequence_length=100)
    long = sentences([" ".join(["waa"] * 90), "waa"], tokenizer())
    cut, whole = attention_maps(stage(made, length=100), long, layers=[2])
    assert (cut.tokens, cut.left_out, whole.left_out) == (maps.MOST_TOKENS, 28, 0)
    assert [each.layer for each in cut.maps] == [2]
    (cut,) = attention_maps(
        stage(made, length=16), sentences([" ".join(["waa"] * 20)], tokenizer())
    )
    assert (cut.tokens, cut.left_out) == (16, 6)


def test_a_network_without_attention_is_refused():
    made = network("recurrent", vocabulary_size=tokenizer().vocabulary_size)
    with pytest.raises(RecipeError, match="has no MultiHeadAttention"):
        list(attention_maps(stage(made), sentences(["waa"], tokenizer())))
