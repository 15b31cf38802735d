"""What an encoder–decoder's sides see of each other, and what it reads where there is no target."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from fourstage.errors import RecipeError
from models.layers.decoder_block import DecoderBlock
from models.layers.encoder_decoder import EncoderDecoder, last_token_first
from models.protocols import Capability

VOCABULARY_SIZE = 60


class PreNorm(EncoderDecoder):
    """As T5 and later ones are made: LayerNorm first."""

    provides = frozenset([Capability.ENCODER_DECODER, Capability.GENERATION])
    norm_first = True
    embedding_norm = False


class PostNorm(EncoderDecoder):
    """As the Transformer and BART are made."""

    provides = PreNorm.provides


@pytest.fixture(params=[PreNorm, PostNorm])
def made(request):
    keras.utils.set_random_seed(3)
    network = request.param(
        vocabulary_size=VOCABULARY_SIZE,
        num_layers=3,
        num_decoder_layers=2,
        hidden_dim=32,
        num_heads=4,
        intermediate_dim=64,
        max_sequence_length=20,
        layer_norm_epsilon=1e-5,
    )
    rng = np.random.default_rng(3)
    for variable in network.trainable_variables:
        variable.assign(rng.normal(0, 0.3, variable.shape))
    return network


def rows(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    text, target = np.array([9, 6, 3])[:, None], np.array([4, 7, 1])[:, None]
    mask, target_mask = (np.arange(9) < text), (np.arange(7) < target)
    return {
        "token_ids": (rng.integers(5, VOCABULARY_SIZE, (3, 9)) * mask).astype("int32"),
        "padding_mask": mask.astype("int32"),
        "target_ids": (rng.integers(5, VOCABULARY_SIZE, (3, 7)) * target_mask).astype("int32"),
        "target_mask": target_mask.astype("int32"),
    }


def states(made, batch) -> np.ndarray:
    return keras.ops.convert_to_numpy(made(batch)["sequence_output"])


def test_a_target_token_sees_those_before_it_and_the_whole_text(made):
    batch = rows()
    before = states(made, batch)
    turned = {**batch, "target_ids": batch["target_ids"].copy()}
    turned["target_ids"][1, 3] += 1
    moved = np.abs(states(made, turned) - before)[1].max(axis=-1) > 1e-6
    assert moved.tolist() == [False] * 3 + [True] * 4
    for place in range(6):
        turned = {**batch, "token_ids": batch["token_ids"].copy()}
        turned["token_ids"][1, place] += 1
        moved = np.abs(states(made, turned) - before).max(axis=-1) > 1e-6
        assert moved[1, :7].all()
        assert not moved[[0, 2]].any()


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_of_either_side_changes_nothing(made, side):
    batch = rows()
    before = states(made, batch)
    wide = {}
    for name, value in batch.items():
        wide[name] = np.zeros((3, value.shape[1] + 4), "int32")
        mask = batch["target_mask" if "target" in name else "padding_mask"]
        for row, real in enumerate(mask.astype(bool)):
            kept = value[row][real]
            place = slice(-len(kept), None) if side == "left" else slice(len(kept))
            wide[name][row, place] = kept
    hidden = wide["padding_mask"] == 0
    wide["token_ids"][hidden] = np.random.default_rng(1).integers(5, 60, hidden.sum())
    after = states(made, wide)
    for row in range(3):
        one = before[row][batch["target_mask"][row] == 1]
        two = after[row][wide["target_mask"][row] == 1]
        np.testing.assert_allclose(one, two, atol=1e-5)


def test_a_text_without_a_target_is_read_again_its_last_token_first(made):
    batch = {key: value for key, value in rows().items() if "target" not in key}
    again = batch | {
        "target_ids": np.asarray(last_token_first(batch["token_ids"], batch["padding_mask"])),
        "target_mask": batch["padding_mask"],
    }
    np.testing.assert_array_equal(states(made, batch), states(made, again))


def test_the_last_token_goes_first_by_hand():
    ids = np.array([[2, 10, 11, 3], [2, 12, 3, 0], [0, 2, 13, 3], [0, 0, 0, 0]], "int32")
    found = np.asarray(last_token_first(ids, (ids > 0).astype("int32")))
    assert found[0].tolist() == [3, 2, 10, 11]
    assert found[1, :3].tolist() == [3, 2, 12]
    assert found[2, 1:].tolist() == [3, 2, 13]
    assert np.asarray(last_token_first(ids[:1], None)).tolist() == [[3, 2, 10, 11]]


def test_all_states_end_with_what_the_network_gives(made):
    batch = {key: value for key, value in rows().items() if "target" not in key}
    found = made.hidden_states(batch)
    assert len(found) == made.num_hidden_states == 4 + 3
    np.testing.assert_array_equal(np.asarray(found[-1]), states(made, batch))
    assert {tuple(each.shape) for each in found} == {(3, 9, 32)}


def test_a_target_longer_than_the_decoder_is_told_with_both_numbers(made):
    with pytest.raises(RecipeError, match="21 tokens, but the network's position table has 20"):
        made(rows() | {"target_ids": np.zeros((3, 21), "int32"), "target_mask": np.ones((3, 21))})


def test_one_table_of_tokens_serves_both_sides_and_blocks_are_counted_through(made):
    assert made.decoder_embeddings.token is made.token_embedding
    paths = [variable.path for variable in made.variables if "seed" not in variable.path]
    assert len(paths) == len(set(paths))
    assert sum(path.endswith("token/embeddings") for path in paths) == 1
    found = {path.split("/")[1] for path in paths if "/block_" in path}
    assert found == {f"block_{number}" for number in range(5)}


@pytest.mark.parametrize("first", [False, True], ids=["post-LN", "pre-LN"])
def test_a_block_in_numpy(first):
    rng = np.random.default_rng(0)
    x, memory = rng.normal(size=(1, 3, 8)), rng.normal(size=(1, 5, 8))
    block = DecoderBlock(
        hidden_dim=8,
        num_heads=1,
        intermediate_dim=16,
        dropout=0.0,
        activation="relu",
        layer_norm_epsilon=1e-5,
        norm_first=first,
        name="block",
    )
    block.build()
    weights = {}
    for variable in block.trainable_variables:
        weights[variable.path.split("block/")[1]] = value = rng.normal(size=variable.shape)
        variable.assign(value)
    own = np.where(np.tril(np.ones((3, 3))) > 0, 0.0, -1e9)
    there = np.array([0, 0, 0, 0, -1e9])
    found = block(
        x.astype("float32"),
        memory.astype("float32"),
        own[None, None].astype("float32"),
        there[None, None, None].astype("float32"),
    )

    def dense(name, rows):
        return rows @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]

    def norm(name, rows):
        rows = rows - rows.mean(axis=-1, keepdims=True)
        rows = rows / np.sqrt((rows**2).mean(axis=-1, keepdims=True) + 1e-5)
        return rows * weights[f"{name}/gamma"] + weights[f"{name}/beta"]

    def attended(name, asking, asked, bias):
        scores = dense(f"{name}/query", asking) @ dense(f"{name}/key", asked).T / 8**0.5 + bias
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return dense(f"{name}/output", shares @ dense(f"{name}/value", asked))

    def part(name, rows, f):
        return rows + f(norm(name, rows)) if first else norm(name, rows + f(rows))

    y = part("attention_norm", x[0], lambda a: attended("attention", a, a, own))
    y = part("cross_norm", y, lambda a: attended("cross_attention", a, memory[0], there))
    y = part("output_norm", y, lambda a: dense("output", np.maximum(dense("intermediate", a), 0)))
    np.testing.assert_allclose(np.asarray(found)[0], y, rtol=1e-4, atol=1e-4)
