"""What is frozen stays as it is; what thaws begins when its time has come."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from fourstage.errors import RecipeError
from models.training.duration import Duration
from models.training.freezing import freeze, thawing
from models.training.gradient import train
from models.training.optimizer import make_optimizer
from models.training.stage import Budget
from tests.conformance.parts import network
from tests.models.training.memory import (
    NETWORK,
    RULE,
    Recorder,
    cut_off_after,
    finetuning,
    pretraining,
)
from tests.models.training.test_gradient import weights
from tests.untraced import untraced

SHORT = {"network": NETWORK, "budget": Budget("steps", 8), "select": None, "checkpoint_every": 3}


@pytest.fixture(scope="module")
def general(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("general")
    with untraced():
        train(pretraining(network=NETWORK, budget=Budget("steps", 1)), folder)
    return folder


def moved(before: Path, after: Path) -> dict[str, bool]:
    """Whether each of the network's weights differs."""
    old, new = (load_file(folder / "network.safetensors") for folder in (before, after))
    return {name: not np.array_equal(old[name], new[name]) for name in old}


def test_frozen_weights_keep_their_bits_and_the_rest_moves(general, tmp_path):
    report = Recorder()
    job = finetuning(general, freeze=("embeddings/*", "block_0/*"), **SHORT)
    outcome = train(job, tmp_path, report)
    for name, has_moved in moved(general, tmp_path).items():
        # Softmax does not see a key's bias: its gradient is rounding.
        if not name.endswith("key/bias"):
            frozen = name.startswith(("embeddings/", "block_0/"))
            assert has_moved is not frozen, name
    arrays = load_file(tmp_path / "network.safetensors")
    head = load_file(tmp_path / "heads" / "sequence_classification.safetensors")
    free = [a for n, a in arrays.items() if n.startswith(("block_1/", "pooler/"))]
    assert outcome.trained_weights == sum(array.size for array in (*free, *head.values()))
    assert outcome.weights == sum(a.size for a in (*arrays.values(), *head.values()))
    assert report.rows[0]["trained_weights"] == outcome.trained_weights


def test_frozen_weights_have_no_moments():
    net = network("bert")
    freeze("finetune", net, {}, ["embeddings/*"])
    optimizer = make_optimizer({**RULE}, total_steps=5)
    optimizer.build(net.trainable_variables)
    names = {variable.path for variable in optimizer.variables}
    assert not any("embeddings" in name for name in names)
    assert any("block_0" in name for name in names)


def test_layers_thaw_from_the_top_and_a_resume_in_between_ends_with_the_same_bits(
    general, tmp_path
):
    report = Recorder()
    longer = {"budget": Budget("steps", 10), "checkpoint_every": 5}
    job = finetuning(general, gradual_unfreezing={"share": 0.3}, **SHORT | longer)
    outcome = train(job, tmp_path / "whole", report)
    counts = [row["trained_weights"] for row in report.rows]
    assert counts[0] == counts[2] < counts[3] == counts[5] < counts[6] == counts[8] < counts[9]
    assert counts[-1] == outcome.trained_weights
    cut_off_after(5, tmp_path / "whole", tmp_path / "parts")
    reached = tmp_path / "parts" / "checkpoints" / "step-000000005" / "state.safetensors"
    kept = {array.tobytes() for array in load_file(reached).values()}
    for name, array in load_file(general / "network.safetensors").items():
        if array.size > 64:  # some smaller ones are equal from the start
            thawed = name.startswith(("pooler/", "block_1/"))
            assert (array.tobytes() in kept) is not thawed, name
    train(job, tmp_path / "parts")
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")


def test_bias_correction_counts_from_the_first_update():
    """Adam's first step is the learning rate in size, whenever it comes."""
    variables = [keras.Variable([1.0]), keras.Variable([1.0])]
    rule = {**RULE, "weight_decay": 0.0, "clip_norm": 0.0, "warmup": 0, "decay": "constant"}
    optimizer = make_optimizer({**rule, "peak_learning_rate": 0.1}, total_steps=9)
    optimizer.build(variables)
    optimizer.begin_at([(variables[0], 0), (variables[1], 3)])
    for step in range(4):
        optimizer.rest(variables[1:] if step < 3 else [])
        optimizer.apply([keras.ops.ones((1,))] * 2, variables)
    assert float(variables[1][0]) == pytest.approx(0.9, abs=1e-5)


@pytest.mark.parametrize(
    ("setting", "every"), [({"epochs": 1.0}, 5), ({"epochs": 0.4}, 2), ({"share": 0.1}, 2)]
)
def test_epochs_are_passes_and_shares_are_of_the_updates(setting, every):
    net = network("bert")  # two blocks: with pooler and embeddings four layers
    made = thawing("finetune", setting, net.trainable_variables, Duration((20,), 5))
    assert made.every == every
    assert [made.count(step) for step in (0, every - 1, every, 3 * every, 19)] == [1, 1, 2, 4, 4]
    first = {variable.path.split("/")[1]: step for variable, step in made.starts()}
    assert first == {"pooler": 0, "block_1": every, "block_0": 2 * every, "embeddings": 3 * every}


def test_settings_that_mean_nothing_are_refused():
    net = network("bert")
    with pytest.raises(RecipeError, match=r"'block_9/\*'; there are embeddings/\*, block_0/\*, b"):
        freeze("finetune", net, {}, ["block_9/*"])
    with pytest.raises(RecipeError, match="4 layers, one more every 5 updates, take 16 updates"):
        thawing("finetune", {"epochs": 1.0}, net.trainable_variables, Duration((15,), 5))
    with pytest.raises(RecipeError, match="every weight is frozen"):
        freeze("finetune", net, {}, ["*"])
