"""The Transformer and MASS give the numbers of transformers' classes that were made to be them.

`make_variant_goldens.py` made the numbers and says how.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from models import catalogue
from models import features as keys
from models.layers.loss import cross_entropy
from models.weights import load_weights, named_weights
from tests.parity.test_parity import HIDDEN, LOGITS

ops: Any = keras.ops
GOLDEN = Path(__file__).with_name("variants")
PARTS = {
    "self_attn": "attention",
    "encoder_attn": "cross_attention",
    "self_attn_layer_norm": "attention_norm",
    "encoder_attn_layer_norm": "cross_norm",
    "final_layer_norm": "output_norm",
    "fc1": "intermediate",
    "fc2": "output",
}
PROJECTIONS = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}


def ours(name: str, value: np.ndarray) -> tuple[str, np.ndarray]:
    """Our name of their tensor, and its value as we have it."""
    side = "embeddings" if name.startswith("encoder") else "decoder_embeddings"
    kind = name.rsplit(".", 1)[1]
    if name == "shared.weight":
        return "embeddings/token/embeddings", value
    if "embed_positions" in name:
        return f"{side}/position/embeddings", value[2:]  # two rows that no text reads
    if "layernorm_embedding" in name:
        return f"{side}/norm/{'gamma' if kind == 'weight' else 'beta'}", value
    found = re.fullmatch(r"(encoder|decoder)\.layers\.(\d+)\.(\w+)(?:\.(\w+_proj))?\.\w+", name)
    assert found, name
    which, number, part, inner = found.groups()
    block = f"block_{int(number) + (3 if which == 'decoder' else 0)}/{PARTS[part]}"
    if inner:
        block += f"/{PROJECTIONS[inner]}"
    if part.endswith("norm"):
        return f"{block}/{'gamma' if kind == 'weight' else 'beta'}", value
    return f"{block}/{'kernel' if kind == 'weight' else 'bias'}", value.T


def network(case: str, numbers: Any) -> Any:
    family = case.split("-")[0]
    made = catalogue.find("families", family)(
        vocabulary_size=97,
        num_layers=3,
        num_decoder_layers=2,
        hidden_dim=32,
        num_heads=4,
        intermediate_dim=64,
        max_sequence_length=40,
        dropout=0.0,
        layer_norm_epsilon=1e-5,
    )
    theirs = [name for name in numbers.files if name.startswith("weights/")]
    if family == "transformer":  # of sinusoids nothing is in our files
        theirs = [name for name in theirs if "embed_positions" not in name]
    load_weights(made, dict(ours(name.removeprefix("weights/"), numbers[name]) for name in theirs))
    return made


def batch_of(numbers: Any, side: str) -> dict[str, np.ndarray]:
    """The rows, padded on a side; theirs are padded on the right."""
    batch = {
        name.removeprefix("batch/"): numbers[name].astype(np.int32)
        for name in numbers.files
        if name.startswith("batch/")
    }
    if side == "right":
        return batch
    sizes = {key: batch[key].sum(axis=1) for key in keys.MASKS}
    return {
        key: turned(value, sizes[keys.MASKS[key.startswith("target")]])
        for key, value in batch.items()
    }


def turned(value: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Rows turned until what stood on the left, of these sizes, stands on the right."""
    rows = [np.roll(row, len(row) - size) for row, size in zip(value, sizes, strict=True)]
    return np.stack(rows)


def same(found: Any, numbers: Any, name: str, batch: dict[str, np.ndarray]) -> float:
    """The largest error at real tokens; theirs stand on the left."""
    key = "padding_mask" if name.startswith("encoder") else "target_mask"
    theirs = numbers[f"found/{name}"][numbers[f"batch/{key}"].astype(bool)]
    return float(np.abs(ops.convert_to_numpy(found)[batch[key].astype(bool)] - theirs).max())


@pytest.fixture(params=["transformer-large", "transformer-small", "mass-large", "mass-small"])
def case(request) -> str:
    return request.param


@pytest.mark.parametrize("side", ["right", "left"])
def test_states_logits_loss_and_the_gradient_on_the_table_match(case, side):
    import tensorflow as tf

    with np.load(GOLDEN / f"{case}.npz") as numbers:
        made = network(case, numbers)
        batch = batch_of(numbers, side)
        states = made.encoder_states(batch)
        for layer, state in enumerate(states):
            assert same(state, numbers, f"encoder_{layer}", batch) < HIDDEN, layer
        for layer, state in enumerate(made.decoder_states(batch, states[-1])):
            assert same(state, numbers, f"decoder_{layer}", batch) < HIDDEN, layer
        table = made.token_embedding.embeddings
        with tf.GradientTape() as tape:
            hidden = made(batch)[keys.SEQUENCE_OUTPUT]
            logits = ops.matmul(hidden, ops.transpose(table))
            total, weight = cross_entropy(
                logits, batch[keys.TARGET_LABELS], batch[keys.TARGET_MASK].astype(np.float32)
            )["loss"]
            loss = total / weight
        gradient = tf.convert_to_tensor(tape.gradient(loss, table.value)).numpy()
        assert same(logits, numbers, "token_logits", batch) < LOGITS
        assert abs(float(loss) - float(numbers["found/loss"])) < LOGITS
        expected = numbers["found/table_gradient"]
        excess = np.abs(gradient - expected) - (1e-6 + 1e-5 * np.abs(expected))
        assert excess.max() <= 0, f"gradient: {excess.max()} too much"


@pytest.mark.parametrize("lost", ["target_positions", "attended_mask"])
def test_the_fragments_tell_positions_and_what_is_hidden(lost):
    with np.load(GOLDEN / "mass-large.npz") as numbers:
        made, batch = network("mass", numbers), batch_of(numbers, "right")
        del batch[lost]
        hidden = made(batch)[keys.SEQUENCE_OUTPUT]
        assert same(hidden, numbers, "decoder_2", batch) > 10 * HIDDEN


def test_sinusoids_are_no_weights():
    with np.load(GOLDEN / "transformer-small.npz") as numbers:
        made = network("transformer", numbers)
        assert not [name for name in named_weights(made) if "position" in name]
        theirs = numbers["weights/decoder.embed_positions.weight"]
        assert np.abs(made.decoder_embeddings.position.embeddings - theirs).max() < 1e-7
