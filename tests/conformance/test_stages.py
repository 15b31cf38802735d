"""What every objective and head keeps to, on every family that can carry it."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import keras
import numpy as np
import pytest

from fourstage.errors import RecipeError
from models import catalogue
from models.evaluation.predict import RowPredictor
from models.evaluation.resampling import scores
from models.protocols import Capability
from models.weights import load_weights, named_weights, save_weights
from tests.conformance.parts import (
    BATCH_SIZE,
    FAMILIES,
    OBJECTIVES,
    Stage,
    shallow,
    stage,
    stages,
)


def name_of(case: tuple) -> str:
    family, objectives, head = case
    return "-".join([family, *objectives, *([head] if head else [])])


# Each objective on bert, what a paper brings together, and masked_lm on each other family; the rest
# of the matrix takes half an hour and is `slow`.
TOGETHER = {
    ("albert", "sentence_order"),
    ("bart", "text_infilling"),
    ("distilbert", "distillation"),
    ("electra", "replaced_token_detection"),
    ("ernie", "sentence_reordering"),
    ("unilm", "unified_lm"),
    ("unilm", "sequence_to_sequence"),
    ("mass", "masked_seq2seq"),
    ("t5", "span_denoising"),
    ("transformer_xl", "causal_lm"),
    ("xlnet", "permutation_lm"),
    ("seq2seq", "sequence_to_sequence"),
    ("nnlm", "causal_lm"),
    ("recurrent", "causal_lm"),
    ("elmo", "bidirectional_lm"),
    ("context2vec", "context2vec"),
    ("lxmert", "region_regression"),
    ("lxmert", "image_question_answering"),
    ("ernie_tsinghua", "entity_denoising"),
    ("vilbert", "word_region_alignment"),
    ("vl_bert", "region_class"),
}
LIKE_VL_BERT = ("unicoder_vl", "uniter")  # but for the embedding, which test_networks.py reads
# What an objective does without: XLNet's second stream predicts, and its segments differ in pairs;
# the output of NNLM predicts tokens, and only they ask for it.
UNASKED = {
    "permutation_lm": ("mask_embedding", "segment_bias", "segment_vectors"),
    "causal_lm": ("nnlm/output_table", "nnlm/output_bias"),
}


# Weights that a batch without regions does not reach.
ONLY_REGIONS = re.compile("/(region|cross_)")

# Families whose table alone makes logits of variance 1, half a nat more than guessing. That is much
# beside the few tokens here; at the published size: tests/models/families/test_transformer.py.
TOO_WIDE = {"transformer"}


def marked(case: tuple) -> Any:
    family, objectives, head = case
    usual = family == "bert" or any((family, name) in TOGETHER for name in (*objectives, head))
    apart = (*dict(TOGETHER), *LIKE_VL_BERT)
    usual = usual or (objectives == ("masked_lm",) and family not in apart)
    return pytest.param(case, id=name_of(case), marks=() if usual else pytest.mark.slow)


@pytest.fixture(scope="module", params=map(marked, stages()))
def case(request) -> tuple:
    return request.param


def staged(case: tuple, seed: int = 0, **changes: Any) -> Stage:
    """A case's stage; bert has one layer but with masked_lm alone, which tests the family."""
    family, objectives, _ = case
    if family == "bert" and objectives != ("masked_lm",):
        changes["num_layers"] = 1
    return stage(*case, seed=seed, **changes)


@pytest.fixture(scope="module")
def still(case) -> Stage:
    """The stage without dropout, made once: nothing may be changed but a copy."""
    return staged(case, dropout=0.0)


@pytest.fixture(scope="module")
def measured(still) -> tuple[dict, dict, dict[str, np.ndarray]]:
    """Its scores, predictions and gradients."""
    return measure(still)


@pytest.fixture(scope="module")
def scored(measured) -> tuple[dict, dict]:
    """Its scores and predictions."""
    scores, predictions, _ = measured
    return scores, predictions


@pytest.fixture(scope="module")
def slopes(measured) -> dict[str, np.ndarray]:
    """Its gradients."""
    *_, gradients = measured
    return gradients


def learnable(case: tuple) -> bool:
    """Whether a batch can be learned by heart: where no token sees another, a word has one role."""
    family, _, head = case
    return not ("static" in catalogue.provided(family) and head == "token_classification")


@pytest.fixture(scope="module")
def learned(case) -> tuple[Stage, list[float]]:
    """Another such stage, trained, and the losses of its updates."""
    family, *_ = case
    # A table of vectors learns from each word's gradient alone, in small steps.
    steps = 300 if family == "recurrent" else 150
    if "static" in catalogue.provided(family):
        steps = 3000 if learnable(case) else 1
    trained = staged(case, dropout=0.0, **shallow(family))
    return trained, trained.train(steps, until=0.15)


@pytest.fixture(scope="module")
def other(case, still, learned) -> Stage:
    """A stage of the same layers as `still`, with other weights."""
    trained, _ = learned
    same = trained.network.get_config() == still.network.get_config()
    return trained if same else staged(case, seed=1, dropout=0.0)


def total(scores: dict) -> float:
    """The loss of all that scores."""
    return sum(float(each["loss"][0]) / float(each["loss"][1]) for each in scores.values())


def loss(made: Stage) -> float:
    return total(made.scores()[0])


def measure(made: Stage) -> tuple[dict, dict, dict[str, np.ndarray]]:
    """Scores, predictions, and the loss's gradients, by path, of every variable it depends on."""
    import tensorflow as tf

    with tf.GradientTape() as tape:
        scores, predictions = made.scores()
        summed = sum(each["loss"][0] / each["loss"][1] for each in scores.values())
    variables = made.model.trainable_variables
    found = tape.gradient(summed, [variable.value for variable in variables])
    gradients = {
        variable.path: tf.convert_to_tensor(gradient).numpy()
        for variable, gradient in zip(variables, found, strict=True)
        if gradient is not None
    }
    return scores, predictions, gradients


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_pair_is_tested_here_or_refused_with_what_it_lacks(family, objective):
    made = [each for each in stages() if each[0] == family and each[1][-1:] == (objective,)]
    if made:
        catalogue.check_compatible(family, made[0][1])
        return
    lacking = set(catalogue.literals("objectives", objective)["NEEDS"])
    lacking -= set(catalogue.literals("families", family)["PROVIDES"])
    with pytest.raises(RecipeError) as refused:
        catalogue.check_compatible(family, (objective,))
    assert any(need in str(refused.value) for need in lacking)
    assert f"{objective!r} needs" in str(refused.value)


def test_scores_are_sums_with_weights_and_predictions_are_float32(still, scored):
    scores, predictions = scored
    # A row with choices is read as several.
    read = int(np.prod(still.batch["token_ids"].shape[:-1]))
    for each in scores.values():
        assert "loss" in each
        for sums, weight in each.values():
            assert sums.shape == weight.shape == ()
            assert float(weight) > 0
    for key, value in predictions.items():
        assert keras.backend.standardize_dtype(value.dtype) == "float32", key
        assert len(value) == (read if key in ("sequence_output", "pooled_output") else BATCH_SIZE)


def test_rows_that_only_fill_the_batch_change_no_score(still, scored):
    before, _ = scored
    batch = {key: np.concatenate([value, value[:2]]) for key, value in still.batch.items()}
    batch["row_weights"][BATCH_SIZE:] = 0.0
    after, _ = replace(still, batch=batch).scores()
    for name, each in before.items():
        for score, pair in each.items():
            assert np.allclose(pair, after[name][score], rtol=1e-5), (name, score)


def test_the_first_loss_is_that_of_guessing(case, still, scored):
    scores, _ = scored
    batch = dict(still.batch)
    for scorer in still.scorers.values():
        batch = scorer.prepare(batch, False)
    outputs = dict(still.network(batch))
    for name, scorer in still.scorers.items():
        _, own = scorer(batch, outputs)
        outputs |= own
        if case[0] in TOO_WIDE and "token_logits" in own and not scorer.variables:
            continue
        if len(own) != 1 or "logits" not in next(iter(own)):
            continue  # not a softmax over classes
        logits = np.asarray(next(iter(own.values())))
        guess = np.log((logits > -1e8).sum(axis=-1)).mean()  # some rows have fewer choices
        found = [scores[name]["loss"]]
        if name == "sequence_classification":  # six rows have two of three labels: give each all
            turned = [(batch["labels"] + k) % logits.shape[-1] for k in range(logits.shape[-1])]
            found = [scorer(batch | {"labels": ids}, outputs)[0]["loss"] for ids in turned]
        first = np.mean([float(sums) / float(weight) for sums, weight in found])
        assert first == pytest.approx(guess, rel=0.1), name


def test_every_trainable_weight_gets_a_gradient(still, slopes):
    heads = catalogue.names("heads")
    needs = catalogue.needed(name for name in still.objectives if name not in heads)
    for name in set(heads) & set(still.objectives):
        needs |= {*catalogue.literals("heads", name)["NEEDS"]}
    unread = re.compile("$^")
    if needs == {Capability.REGIONS} and hasattr(still.network, "streams"):
        unread = re.compile(rf"/block_{still.network.order[-1]}/(?!regions)")
    for variable in still.model.trainable_variables:
        if "/pooler/" in f"/{variable.path}" and Capability.POOLED_OUTPUT not in needs:
            continue  # nobody reads the pooled vector in this stage
        if Capability.REGIONS in still.network.provides and ONLY_REGIONS.search(variable.path):
            continue  # these rows may have no regions
        if "/entity_" in variable.path and "entity_positions" not in still.batch:
            continue  # rows may name no entities, and the last layer's do not reach the summary
        if unread.search(variable.path):
            continue  # of two streams, the last block's text is read by nobody
        if any(
            variable.path.endswith(unasked) and asker not in still.objectives
            for asker, unasked in UNASKED.items()
        ):
            continue
        assert variable.path in slopes
        # A key's bias moves all scores of a query alike, and that of the head which scores choices
        # all choices, which softmax does not see.
        if not variable.path.endswith(("key/bias", "multiple_choice/output/bias")):
            assert np.abs(slopes[variable.path]).max() > 0, variable.path


def test_a_last_layer_only_where_it_is_read_changes_no_loss_and_no_gradient(still, scored, slopes):
    if not getattr(still.network, "reads_positions", False):
        pytest.skip("the last layer is everywhere")
    still.network.reads_positions = False
    try:
        scores, _, whole = measure(still)
    finally:
        still.network.reads_positions = True
    assert total(scored[0]) == pytest.approx(total(scores), rel=1e-6)
    assert slopes.keys() == whole.keys()
    for path, gradient in whole.items():
        np.testing.assert_allclose(slopes[path], gradient, rtol=1e-5, atol=1e-6)


def test_it_learns_one_batch_by_heart(case, learned):
    if not learnable(case):
        pytest.skip("a word in two roles has one answer")
    _, losses = learned
    assert losses[-1] < 0.15 * losses[0], (losses[0], losses[-1])


@pytest.mark.usefixtures("untraced")
def test_the_same_seed_trains_to_the_same_bits(case):
    family, *_ = case
    one, two = (staged(case, seed=4, **shallow(family)) for _ in range(2))
    assert one.train(1) == two.train(1)
    for layer, other in zip(
        (one.network, *one.scorers.values()), (two.network, *two.scorers.values()), strict=True
    ):
        theirs = named_weights(other)
        for name, variable in named_weights(layer).items():
            assert np.array_equal(variable, theirs[name]), name


def test_bfloat16_runs_and_agrees_with_float32(case, scored):
    rounded = staged(case, dropout=0.0, dtype="mixed_bfloat16")
    scores, _, gradients = measure(rounded)
    assert total(scores) == pytest.approx(total(scored[0]), rel=0.02)
    for gradient in gradients.values():
        assert gradient.dtype == np.float32
        assert np.isfinite(gradient).all()


def test_a_head_is_saved_apart_and_holds_only_its_own(still, scored, other, tmp_path):
    assert total(scored[0]) != loss(other)
    own = {id(variable) for variable in still.network.weights}
    for name, scorer in still.scorers.items():
        assert not own & {id(variable) for variable in scorer.weights}, "the network's own"
        save_weights(scorer, tmp_path / f"{name}.safetensors")
        load_weights(other.scorers[name], tmp_path / f"{name}.safetensors")
    save_weights(still.network, tmp_path / "network.safetensors")
    load_weights(other.network, tmp_path / "network.safetensors")
    assert total(scored[0]) == loss(other)


def test_tied_weights_are_one_variable(still):
    for scorer in still.scorers.values():
        tied = getattr(scorer, "tied_embedding", None)
        if tied is not None:
            assert tied is still.network.token_embedding.embeddings


def test_without_targets_there_are_predictions_and_no_scores(still, scored):
    # What is right, and what it weighs, by the rule for its names.
    targets = {key for key in still.batch if key.endswith(("labels", "weights"))} - {"row_weights"}
    bare = {key: value for key, value in still.batch.items() if key not in targets}
    scores, predictions = still.model.outputs(bare, training=False)
    assert all(not each for each in scores.values())
    assert set(predictions) == set(scored[1])


def test_predictions_can_be_decoded(still, scored):
    _, predictions = scored
    arrays = {key: keras.ops.convert_to_numpy(value) for key, value in predictions.items()}
    for name, objective in still.objectives.items():
        if name in catalogue.names("heads"):
            metrics = catalogue.metrics_of(name)
            found = RowPredictor(
                still.network, objective, still.scorers[name], still.data, still.context, metrics
            ).answers()
            answers = catalogue.answers_of(name)
            said = [answer.text for answer in found]
            # Untrained, it finds about as many tokens equally likely as there are.
            values = scores(answers, still.data.answers, said, metrics)
            assert all(math.isfinite(value) for value in values.values())
            assert values.get("perplexity", 2.0) > 1.0
            numeric = catalogue.answers_name(name) == "number"
            assert all(
                math.isnan(a.probability) if numeric else 0 <= a.probability <= 1 for a in found
            )
        elif hasattr(objective, "decode"):
            assert len(objective.decode(arrays)) == BATCH_SIZE


def test_examples_need_no_network_and_leave_the_clean_batch_alone(still):
    rng = np.random.default_rng(0)
    assert all(objective.context is still.context for objective in still.objectives.values())
    batch = still.batch | {"unit_starts": np.ones(still.batch["token_ids"].shape, np.uint8)}
    for objective in still.objectives.values():
        before = {key: value.copy() for key, value in batch.items()}
        objective.examples(batch, rng)
        assert all(np.array_equal(before[key], batch[key]) for key in before)
