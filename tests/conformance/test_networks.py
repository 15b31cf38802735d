"""What every family keeps to; a new file in models/families is tested by being there."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import keras
import numpy as np
import pytest
from keras.src.backend.common.global_state import get_global_attribute

from fourstage.errors import RecipeError
from models import catalogue
from models.layers.projection import Projection
from models.layers.summary import LAST, row_vectors
from models.protocols import Capability
from models.signatures import settings_of
from models.training.assembly import weight_names
from models.weights import load_weights, named_weights, save_weights
from tests.conformance.parts import BATCH_SIZE, FAMILIES, LENGTH, VOCABULARY_SIZE, network
from tests.models.families import test_bert, test_gpt3, test_sizes
from tests.models.weightless import weightless

# Sizes whose weights are counted one by one in tests of their own.
COUNTED = {(family, size) for family, size, _ in test_sizes.PUBLISHED}
COUNTED |= {("bert", size) for size in test_bert.PUBLISHED}
COUNTED |= {("gpt3", size) for size in test_gpt3.PUBLISHED}


def features(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = np.array([LENGTH, LENGTH - 3, 5, 2, LENGTH, 9])[:, None]
    mask = (np.arange(LENGTH) < sizes).astype(np.int32)
    ids = rng.integers(5, VOCABULARY_SIZE, (BATCH_SIZE, LENGTH)).astype(np.int32)
    segments = (np.arange(LENGTH) >= sizes // 2).astype(np.int32) * mask
    return {"token_ids": ids * mask, "segment_ids": segments, "padding_mask": mask}


def goes_on(family: str) -> bool:
    """Whether a network writes behind what it reads, whose last token sums it up."""
    kind = catalogue.find("families", family)
    apart = "encoder_decoder" in catalogue.literals("families", family)["PROVIDES"]
    return hasattr(kind, "go_on") and kind.row_summary == LAST and not apart


def numbers(outputs: dict) -> dict[str, np.ndarray]:
    return {key: keras.ops.convert_to_numpy(value) for key, value in outputs.items()}


kept = cache(network)  # nothing may change its weights


@pytest.fixture(scope="module", params=FAMILIES)
def family(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def made(family) -> Any:
    """The network, made once."""
    return kept(family)


@pytest.fixture(scope="module")
def again(made) -> Any:
    """Another network by its configuration, with the weights of another seed."""
    keras.utils.set_random_seed(2)
    return type(made).from_config(json.loads(json.dumps(made.get_config())))


@pytest.fixture(scope="module")
def rounded(family) -> Any:
    """The network once more, of the same seed, in bfloat16."""
    return network(family, dtype="mixed_bfloat16")


@pytest.fixture(scope="module")
def outputs(made) -> dict[str, np.ndarray]:
    """What it gives for `features`."""
    return numbers(made(features()))


def test_outputs_have_their_shapes_and_are_float32(made, outputs):
    shape = (BATCH_SIZE, LENGTH, made.hidden_dim)
    assert outputs["sequence_output"].shape == shape
    if Capability.POOLED_OUTPUT in made.provides:
        width = getattr(made, "pooled_dim", made.hidden_dim)
        assert outputs["pooled_output"].shape == (BATCH_SIZE, width)
    assert all(value.dtype == np.float32 for value in outputs.values())
    assert all(np.isfinite(value).all() for value in outputs.values())


def test_keys_a_network_does_not_need_are_ignored(made, outputs):
    more = numbers(made(features() | {"something_else": np.ones((BATCH_SIZE, 3), np.float32)}))
    assert all(np.array_equal(outputs[key], more[key]) for key in outputs)


def test_what_a_head_adds_to_tokens_enters_the_network_where_it_says_so(made, outputs):
    added = np.zeros((BATCH_SIZE, LENGTH, made.hidden_dim), np.float32)
    same = numbers(made(features() | {"added_vectors": added}))
    assert all(np.array_equal(outputs[key], same[key]) for key in outputs)
    added[0, 1] = np.random.default_rng(0).normal(size=made.hidden_dim)
    other = numbers(made(features() | {"added_vectors": added}))["sequence_output"]
    reads = Capability.ADDED_VECTORS in made.provides
    changed = np.abs(other - outputs["sequence_output"]).max(axis=(1, 2)) > 1e-3
    assert changed.tolist() == [reads] + [False] * (BATCH_SIZE - 1)


def test_its_weights_are_named_without_being_made(family, made):
    arguments = dict(made.get_config())
    size = {name: arguments[name] for name in settings_of(catalogue.file_of("families", family))}
    named = weight_names(family, size, vocabulary_size=VOCABULARY_SIZE)
    assert list(named) == list(named_weights(made))
    # What can be a target of LoRA is known by the names, too.
    layers = {name.split("/")[-2] for name in named if name.endswith("/kernel")}
    flat = made._flatten_layers(include_self=False)
    assert {layer.name for layer in flat if isinstance(layer, Projection)} <= layers
    assert not get_global_attribute("uninitialized_variables")


def test_a_network_is_rebuilt_from_its_configuration(made, again):
    assert again.get_config() == made.get_config()
    assert list(named_weights(again)) == list(named_weights(made))


def test_saved_and_loaded_it_gives_the_same_outputs(made, again, outputs, tmp_path):
    assert not np.array_equal(
        outputs["sequence_output"], numbers(again(features()))["sequence_output"]
    )
    save_weights(made, tmp_path / "network.safetensors")
    load_weights(again, tmp_path / "network.safetensors")
    two = numbers(again(features()))
    assert all(np.array_equal(outputs[key], two[key]) for key in outputs)


def test_the_same_seed_gives_the_same_weights_in_either_precision(made, rounded):
    one, two = named_weights(made), named_weights(rounded)
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_no_two_variables_start_with_the_same_numbers(made):
    """An initializer that two variables share draws the same numbers for both.

    A network whose tables start as others says so: `copies`.
    """
    copies = getattr(made, "copies", ())
    for table, original in copies:
        assert np.array_equal(table.embeddings, original.embeddings)
    copied = {table.embeddings.path for table, _ in copies}
    own = [variable for variable in made.weights if variable.path not in copied]
    firsts = [np.asarray(variable).ravel()[:8] for variable in own]
    firsts = [first.tobytes() for first in firsts if first.std() > 0]  # that are drawn
    assert len(set(firsts)) == len(firsts)


def test_padding_changes_nothing_real(made, outputs):
    batch = features()
    more = {key: np.pad(value, ((0, 0), (0, 7))) for key, value in batch.items()}
    hidden = more["padding_mask"] == 0
    more["token_ids"][hidden] = np.random.default_rng(9).integers(5, VOCABULARY_SIZE, hidden.sum())
    real = batch["padding_mask"].astype(bool)
    long = numbers(made(more))["sequence_output"][:, :LENGTH]
    assert np.abs(outputs["sequence_output"] - long)[real].max() < 1e-5


@pytest.mark.parametrize("family", [f for f in FAMILIES if goes_on(f)])
def test_a_network_that_goes_on_with_prompts_reads_rows_that_are_padded_on_the_left(family):
    """Real tokens, and the row's summary."""
    made, batch = kept(family), features()
    outputs = numbers(made(batch))
    wide = {key: np.zeros((BATCH_SIZE, LENGTH + 5), np.int32) for key in batch}
    for row, length in enumerate(batch["padding_mask"].sum(axis=1)):
        for key, value in batch.items():
            wide[key][row, LENGTH + 5 - length :] = value[row, :length]
    hidden = wide["padding_mask"] == 0
    wide["token_ids"][hidden] = np.random.default_rng(9).integers(5, VOCABULARY_SIZE, hidden.sum())
    found = made(wide)
    one = outputs["sequence_output"][batch["padding_mask"] > 0]
    two = numbers(found)["sequence_output"][wide["padding_mask"] > 0]
    assert np.abs(one - two).max() < 1e-5
    summaries = [row_vectors(LAST, *each) for each in ((batch, outputs), (wide, found))]
    assert np.abs(np.subtract(*map(np.asarray, summaries))).max() < 1e-5


def test_the_order_of_rows_is_nothing(made, outputs):
    turned = numbers(made({key: value[::-1].copy() for key, value in features().items()}))
    assert all(np.abs(turned[key][::-1] - outputs[key]).max() < 1e-5 for key in outputs)


def test_without_a_padding_mask_all_tokens_are_real(made):
    batch = features() | {"padding_mask": np.ones((BATCH_SIZE, LENGTH), np.int32)}
    batch["token_ids"] = np.maximum(batch["token_ids"], 5)
    whole = numbers(made(batch))
    del batch["padding_mask"]
    bare = numbers(made(batch))
    assert all(np.array_equal(whole[key], bare[key]) for key in whole)


def test_what_a_position_sees_is_what_the_family_provides(made, outputs):
    """A causal network whose tokens see a few before them says how many: `context_length`."""
    batch = features()
    changed = {key: value.copy() for key, value in batch.items()}
    changed["token_ids"][0, 10] = 5 + (changed["token_ids"][0, 10] - 4) % 100
    one, two = (each["sequence_output"][0] for each in (outputs, numbers(made(changed))))
    moved = np.abs(one - two).max(axis=-1) > 1e-7
    if Capability.BIDIRECTIONAL in made.provides:
        assert moved.all()
    elif Capability.TWO_DIRECTIONS in made.provides:
        forward, backward = np.split(np.abs(one - two) > 1e-7, 2, axis=-1)
        assert forward.any(axis=-1).tolist() == [False] * 10 + [True] * (LENGTH - 10)
        assert backward.any(axis=-1).tolist() == [True] * 11 + [False] * (LENGTH - 11)
    elif Capability.CAUSAL in made.provides:
        end = 10 + getattr(made, "context_length", LENGTH)
        assert not moved[:10].any()
        assert moved[10:end].all()
        assert not moved[end:].any()


# Networks from before LayerNorm.
FLOAT32 = ("context2vec", "recurrent")  # a cell's states would drift, and there is nothing else
WITHOUT_NORMS = ("context2vec", "elmo", "nnlm", "recurrent", "seq2seq")
WITH_TARGET = pytest.mark.parametrize(
    "family",
    [f for f in FAMILIES if "encoder_decoder" in catalogue.literals("families", f)["PROVIDES"]],
)


def with_target() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    mask = (np.arange(9) < np.array([[7], [9], [1], [4], [9], [2]])).astype(np.int32)
    ids = rng.integers(5, VOCABULARY_SIZE, mask.shape).astype(np.int32) * mask
    return features() | {"target_ids": ids, "target_mask": mask}


@WITH_TARGET
def test_a_target_sees_what_is_before_it_and_the_whole_text(family):
    made, batch = kept(family), with_target()
    before = numbers(made(batch))["sequence_output"]
    for key, place, first in (("target_ids", 4, 4), ("token_ids", 10, 0)):
        changed = batch | {key: batch[key].copy()}
        changed[key][0, place] = 5 + (changed[key][0, place] - 4) % 100
        moved = np.abs(numbers(made(changed))["sequence_output"] - before).max(axis=-1) > 1e-7
        assert not moved[0, :first].any(), key
        assert moved[0, first:7].all(), key
        assert not moved[1:].any(), key


@WITH_TARGET
@pytest.mark.parametrize("before", [0, 5])
def test_padding_on_either_side_of_text_and_target_changes_nothing(family, before):
    made, batch = kept(family), with_target()
    wide = {
        key: np.zeros((BATCH_SIZE, value.shape[1] + 5), np.int32) for key, value in batch.items()
    }
    for key, value in batch.items():
        wide[key][:, before : before + value.shape[1]] = value
    hidden = wide["padding_mask"] == 0
    wide["token_ids"][hidden] = np.random.default_rng(9).integers(5, VOCABULARY_SIZE, hidden.sum())
    one = numbers(made(batch))["sequence_output"]
    two = numbers(made(wide))["sequence_output"][:, before : before + one.shape[1]]
    assert np.abs(one - two)[batch["target_mask"] > 0].max() < 1e-5


@WITH_TARGET
def test_both_sides_have_one_table_of_tokens_unless_two_are_asked_for(family):
    made = kept(family)
    paths = [variable.path for variable in made.variables]
    wanted = 2 if getattr(made, "target_table", False) else 1
    assert sum(path.endswith("token/embeddings") for path in paths) == wanted


WITH_REGIONS = pytest.mark.parametrize(
    "family", [f for f in FAMILIES if "regions" in catalogue.literals("families", f)["PROVIDES"]]
)
REGIONS = 5


@cache
def opened(family: str, **changes: Any) -> Any:
    """A network in which gains that start at 0 are 1; nothing may change its weights."""
    made = network(family, **changes)
    for variable in made.weights:
        if variable.path.endswith("gamma") and not np.any(variable):
            variable.assign(np.ones(variable.shape))
    return made


def with_regions(made: Any) -> dict[str, np.ndarray]:
    """Rows with 5, 3, 1, 0, 4 and 5 regions."""
    rng = np.random.default_rng(8)
    shape = (BATCH_SIZE, REGIONS)
    boxes = np.sort(rng.random((*shape, 2, 2)), axis=2).reshape(*shape, 4)
    return features() | {
        "region_features": rng.normal(0, 1, (*shape, made.region_dim)).astype(np.float32),
        "region_boxes": boxes.astype(np.float32),
        "region_mask": (np.arange(REGIONS) < [[5], [3], [1], [0], [4], [5]]).astype(np.int32),
        "masked_regions": rng.integers(0, 2, shape).astype(np.int32),
    }


@WITH_REGIONS
def test_every_position_of_a_row_sees_its_regions_and_every_region_the_text(family):
    made = opened(family)
    batch = with_regions(made)
    before = numbers(made(batch))
    assert before["region_output"].shape == (BATCH_SIZE, REGIONS, made.region_output_dim)
    changed = batch | {"region_features": batch["region_features"].copy()}
    changed["region_features"][0, 2] += 1.0
    after = numbers(made(changed))
    moved = np.abs(after["sequence_output"] - before["sequence_output"]).max(axis=-1) > 1e-7
    assert moved[0].all()
    assert not moved[1:].any()
    changed = batch | {"token_ids": batch["token_ids"].copy()}
    changed["token_ids"][0, 10] = 5 + (changed["token_ids"][0, 10] - 4) % 100
    after = numbers(made(changed))
    moved = np.abs(after["region_output"] - before["region_output"]).max(axis=-1) > 1e-7
    assert moved[0].all()
    assert not moved[1:].any()


@WITH_REGIONS
def test_masked_regions_change_nothing(family):
    made = opened(family)
    batch = with_regions(made)
    wide = {
        key: np.pad(value, ((0, 0), (0, 4), (0, 0))[: value.ndim]) if "region" in key else value
        for key, value in batch.items()
    }
    wide["region_features"][wide["region_mask"] == 0] = 9.0
    one, two = numbers(made(batch)), numbers(made(wide))
    real = batch["padding_mask"].astype(bool)
    assert np.abs(one["sequence_output"] - two["sequence_output"])[real].max() < 1e-5
    assert np.abs(one["pooled_output"] - two["pooled_output"]).max() < 1e-5
    there = batch["region_mask"].astype(bool)
    apart = np.abs(one["region_output"] - two["region_output"][:, :REGIONS])[there]
    assert apart.max() < 1e-5


@WITH_REGIONS
def test_no_regions_are_as_regions_that_are_all_masked(family):
    made = opened(family)
    batch = with_regions(made)
    plain = numbers(made(features()))
    none = {key: value[:, :0] if "region" in key else value for key, value in batch.items()}
    masked = batch | {"region_mask": np.zeros_like(batch["region_mask"])}
    for each in (none, masked):
        found = numbers(made(each))
        assert all(np.isfinite(value).all() for value in found.values())
        for key, value in plain.items():
            assert np.abs(found[key] - value).max() < 1e-6, key
    row = numbers(made(batch))["sequence_output"][3]  # it has none, others have
    assert np.abs(row - plain["sequence_output"][3]).max() < 1e-6


@WITH_REGIONS
def test_every_weight_gets_a_finite_gradient_from_rows_with_and_without_regions(family):
    import tensorflow as tf

    made = opened(family)
    rng = np.random.default_rng(3)
    with tf.GradientTape() as tape:
        outputs = made(with_regions(made))
        drawn = {key: rng.normal(size=value.shape) for key, value in outputs.items()}
        total = sum(tf.reduce_sum(value * drawn[key]) for key, value in outputs.items())
    variables = made.trainable_variables
    found = tape.gradient(total, [variable.value for variable in variables])
    for variable, gradient in zip(variables, found, strict=True):
        values = tf.convert_to_tensor(gradient).numpy()
        assert np.isfinite(values).all(), variable.path
        if not variable.path.endswith("key/bias"):  # softmax does not see it
            assert np.abs(values).max() > 0, variable.path


@WITH_REGIONS
def test_bfloat16_reads_regions_nearly_as_float32(family):
    made, rounded = opened(family), opened(family, dtype="mixed_bfloat16")
    batch = with_regions(made)
    there = batch["region_mask"].astype(bool)
    one, two = (numbers(network(batch))["region_output"][there] for network in (made, rounded))
    assert two.dtype == np.float32
    assert np.abs(one - two).max() < 0.1
    assert not np.array_equal(one, two)


@WITH_REGIONS
def test_regions_of_another_width_are_refused(family):
    made = opened(family)
    batch = with_regions(made)
    batch["region_features"] = batch["region_features"][:, :, :-1]
    with pytest.raises(RecipeError, match=r"region_features: .* size\.region_dim"):
        made(batch)


def test_dropout_acts_in_training_only(made, outputs):
    batch = features()
    still = numbers(made(batch, training=False))["sequence_output"]
    moving = [numbers(made(batch, training=True))["sequence_output"] for _ in range(2)]
    assert np.array_equal(still, outputs["sequence_output"])
    assert not np.array_equal(*moving)


def test_xla_compiles_nothing_that_predicts(made):
    """It compiles each shape anew, and a served model meets new shapes for ever."""
    import tensorflow as tf

    batch = {key: tf.TensorSpec((None, None), tf.int32) for key in features()}
    traced = tf.function(lambda batch: made(batch, training=False)).get_concrete_function(batch)
    parts = traced.graph.as_graph_def().library.function
    assert [part.signature.name for part in parts if part.attr["_XlaMustCompile"].b] == []


def test_bfloat16_keeps_its_variables_and_norms_in_float32(family, rounded, outputs):
    if "static" in catalogue.literals("families", family)["PROVIDES"]:
        pytest.skip("a table has neither products nor norms")
    assert {str(v.dtype) for v in rounded.trainable_variables} == {"float32"}
    norms = [
        layer
        for layer in rounded._flatten_layers()
        if isinstance(layer, keras.layers.LayerNormalization | keras.layers.RMSNormalization)
    ]
    assert bool(norms) != (family in WITHOUT_NORMS)
    assert all(layer.compute_dtype == "float32" for layer in norms)
    two = numbers(rounded(features()))
    assert all(value.dtype == np.float32 for value in two.values())
    difference = np.abs(outputs["sequence_output"] - two["sequence_output"]).max()
    assert (difference == 0) == (family in FLOAT32)
    assert difference < 0.1


def test_every_published_size_is_complete(family):
    for size, settings in catalogue.literals("families", family)["SIZES"].items():
        if (family, size) in COUNTED:
            continue
        with weightless():
            made = catalogue.find("families", family)(vocabulary_size=100, **settings)
        assert made.count_params() > 0, size
