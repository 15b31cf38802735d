"""Top layers that begin at random again: which ones, with which numbers, and where not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from fourstage.errors import RecipeError
from fourstage.recipe.loading import load_recipe
from fourstage.recipe.resolution import resolve
from models.families.bert import Bert
from models.training.gradient import _seeded, train
from models.training.reinitialisation import fresh_layers
from models.training.stage import Budget
from models.weights import named_weights
from tests.conformance.parts import network
from tests.models.training.memory import NETWORK, finetuning, pretraining, tokenizer

STILL = {"adamw": {"peak_learning_rate": 1e-12, "warmup": 0.0}}


@pytest.mark.usefixtures("untraced")
def test_the_top_block_and_the_pooler_begin_as_drawn_by_the_seed_and_the_rest_as_before(
    tmp_path: Path,
) -> None:
    train(pretraining(network=NETWORK, budget=Budget("steps", 1)), tmp_path / "general")
    job = finetuning(
        tmp_path / "general",
        network=NETWORK,
        reinitialise=1,
        budget=Budget("steps", 1),
        optimizer=STILL,
        select=None,
        seed=9,
    )
    train(job, tmp_path / "finetune")
    before, after = (
        load_file(tmp_path / stage / "network.safetensors") for stage in ("general", "finetune")
    )
    with _seeded(9):
        drawn = named_weights(Bert(vocabulary_size=tokenizer().vocabulary_size, **NETWORK))
    anew = {path for path in before if path.startswith(("block_1/", "pooler/"))}
    assert len(anew) == 18
    for path, value in after.items():
        expected = drawn[path].numpy() if path in anew else before[path]
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-9, err_msg=path)
    kernels = [path for path in anew if path.endswith("kernel")]
    assert not any(np.allclose(after[path], before[path]) for path in kernels)


def test_every_layer_can_begin_anew_but_no_more():
    bert = Bert(vocabulary_size=50, **NETWORK)
    named = named_weights(bert)
    fresh = {id(variable) for variable, _ in fresh_layers("finetune", bert, 2)}
    rest = {path for path, variable in named.items() if id(variable) not in fresh}
    assert rest == {path for path in named if path.startswith("embeddings/")}
    with pytest.raises(RecipeError, match="reinitialise: expected at most 2 layers, got 3"):
        fresh_layers("finetune", bert, 3)
    frozen = next(path for path in named if path.startswith("block_1/"))
    named[frozen].trainable = False
    with pytest.raises(RecipeError, match=f"freeze keeps {frozen} from training"):
        fresh_layers("finetune", bert, 1)


@pytest.mark.parametrize("family", ["albert", "t5", "lxmert", "word2vec"])
def test_networks_without_a_block_of_its_own_for_each_layer_are_refused(family: str):
    with pytest.raises(RecipeError, match="reinitialise: expected an encoder or decoder in which"):
        fresh_layers("finetune", network(family), 1)


@pytest.mark.parametrize("family", ["gpt2", "xlnet"])
def test_other_families_have_top_layers_too(family: str):
    made = network(family)
    fresh = {id(variable) for variable, _ in fresh_layers("finetune", made, 1)}
    top = f"block_{made.num_layers - 1}/"
    paths = {path for path, variable in named_weights(made).items() if id(variable) in fresh}
    assert paths == {path for path in named_weights(made) if path.startswith((top, "pooler/"))}
    assert len(paths) > 5


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("stages.finetune.reinitialise=3", "expected at most the network's 2 layers, got 3"),
        ("stages.general.reinitialise=1", "stage general has no 'reinitialise'"),
        ("stages.finetune.lora={}", "with lora the network's own layers never train"),
        (
            "stages.finetune.remedies={l2_sp: {strength: 0.1}}",
            "remedies.l2_sp: with reinitialise the top layers would be pulled to random weights",
        ),
    ],
)
def test_settings_that_mean_nothing_are_refused(setting: str, message: str):
    with pytest.raises(RecipeError, match=message):
        resolve(load_recipe("quickstart", ["stages.finetune.reinitialise=1", setting]))


@pytest.mark.parametrize("recipe", ["albert", "bart", "lxmert"])
def test_networks_without_top_layers_of_their_own_are_refused_when_planned(recipe: str):
    with pytest.raises(RecipeError, match=f"expected an encoder or decoder in which.*{recipe}"):
        resolve(load_recipe(f"papers/{recipe}", ["stages.finetune.reinitialise=1"]))
