"""BERT: published parameter counts, and the names its weights are stored under."""

from __future__ import annotations

import numpy as np
import pytest

from fourstage.errors import RecipeError, UnknownNameError
from models import catalogue
from models.families.bert import SIZES, Bert
from models.interchange.architecture import THEIR_ACTIVATION
from models.weights import named_weights
from tests.models.weightless import weightless

# With the vocabulary of the release, 30,522. 110 M and 340 M in the paper's section 3 are rounded;
# base is 109,482,240 in the checkpoint.
PUBLISHED = {
    "tiny": 4_385_920,
    "mini": 11_170_560,
    "small": 28_763_648,
    "medium": 41_373_184,
    "base": 109_482_240,
    "large": 335_141_888,
}


@pytest.mark.parametrize("size", PUBLISHED)
def test_parameter_counts_are_the_published_ones(size):
    with weightless():
        network = Bert(vocabulary_size=30_522, **SIZES[size])
    assert network.count_params() == PUBLISHED[size]


def test_norms_that_precede_add_one_behind_the_blocks():
    size = SIZES["tiny"] | {"num_layers": 1, "hidden_dim": 8, "intermediate_dim": 16}
    network = Bert(vocabulary_size=50, **size, norm_first=True)
    usual = Bert(vocabulary_size=50, **size)
    added = named_weights(network).keys() - named_weights(usual).keys()
    assert added == {"final_norm/gamma", "final_norm/beta"}
    assert network.count_params() == usual.count_params() + 2 * 8
    assert Bert.from_config(network.get_config()).norm_first

    def norm(x: np.ndarray) -> np.ndarray:
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)

    # Without attention and with gains of 1: x → N(x + W GELU(V N(x))), all biases being 0.
    weights = {path: variable.numpy() for path, variable in named_weights(network).items()}
    output = named_weights(network)["block_0/attention/output/kernel"]
    output.assign(np.zeros(output.shape))
    ids = np.array([[2, 7, 9, 3]])
    found = np.array(network({"token_ids": ids})["sequence_output"])
    x = weights["embeddings/token/embeddings"][ids] + weights["embeddings/segment/embeddings"][0]
    x = norm(x + weights["embeddings/position/embeddings"][:4])
    inner = norm(x) @ weights["block_0/intermediate/kernel"]
    inner = inner * (1 + np.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * inner**3))) / 2
    np.testing.assert_allclose(
        found, norm(x + inner @ weights["block_0/output/kernel"]), rtol=1e-4, atol=1e-5
    )


def test_weights_have_names_that_can_be_read():
    network = Bert(vocabulary_size=50, **(SIZES["tiny"] | {"num_layers": 1}))
    assert list(named_weights(network)) == [
        "embeddings/token/embeddings",
        "embeddings/position/embeddings",
        "embeddings/segment/embeddings",
        "embeddings/norm/gamma",
        "embeddings/norm/beta",
        "block_0/attention/query/kernel",
        "block_0/attention/query/bias",
        "block_0/attention/key/kernel",
        "block_0/attention/key/bias",
        "block_0/attention/value/kernel",
        "block_0/attention/value/bias",
        "block_0/attention/output/kernel",
        "block_0/attention/output/bias",
        "block_0/attention_norm/gamma",
        "block_0/attention_norm/beta",
        "block_0/intermediate/kernel",
        "block_0/intermediate/bias",
        "block_0/output/kernel",
        "block_0/output/bias",
        "block_0/output_norm/gamma",
        "block_0/output_norm/beta",
        "pooler/kernel",
        "pooler/bias",
    ]


def test_blocks_have_the_activations_that_others_have_too():
    size = SIZES["tiny"]
    for name in THEIR_ACTIVATION:
        assert Bert(vocabulary_size=50, **size, activation=name).activation == name
    with pytest.raises(UnknownNameError, match="'tanh' is not an activation of blocks"):
        Bert(vocabulary_size=50, **size, activation="tanh")


@pytest.mark.parametrize(("family", "least"), [("bert", 2), ("vilbert", 2), ("unilm", 6)])
def test_a_table_without_a_row_for_each_segment_is_refused(family, least):
    size = {**catalogue.literals("families", family)["SIZES"]["tiny"], "num_segments": least - 1}
    said = f"num_segments: expected at least {least}, .* a row of {family} may .* got {least - 1}"
    with pytest.raises(RecipeError, match=said):
        catalogue.find("families", family)(vocabulary_size=50, **size)


def test_a_text_longer_than_the_position_table_is_refused_with_the_numbers():
    network = Bert(vocabulary_size=50, **SIZES["tiny"], max_sequence_length=8)
    with pytest.raises(RecipeError, match="9 tokens, but the network's position table has 8"):
        network({"token_ids": np.ones((1, 9), "int32")})


def test_segments_and_padding_may_be_left_out():
    network = Bert(vocabulary_size=50, **SIZES["tiny"])
    ids = np.ones((2, 5), "int32")
    short = network({"token_ids": ids})["sequence_output"]
    full = network(
        {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}
    )["sequence_output"]
    assert np.array_equal(short, full)
