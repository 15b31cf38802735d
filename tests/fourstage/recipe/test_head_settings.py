"""Settings of heads that are refused when a recipe is planned, before any training."""

from __future__ import annotations

from pathlib import Path

import pytest

from fourstage.errors import RecipeError
from fourstage.recipe.loading import load_recipe
from fourstage.recipe.resolution import resolve

HEADS_WITH_A_SUMMARY = (
    "sequence_classification",
    "multi_label_classification",
    "sequence_regression",
    "multiple_choice",
)


def recipe(tmp_path: Path, head: str) -> Path:
    file = tmp_path / "x.yaml"
    file.write_text(
        "{name: x, family: bert, size: tiny, tokenizer: {vocabulary_size: 90}, stages: [{stage:"
        f" finetune, dataset: rows, head: {{{head}}}}}]}}",
        encoding="utf-8",
    )
    return file


def fault(tmp_path: Path, head: str) -> str:
    with pytest.raises(RecipeError) as caught:
        resolve(load_recipe(recipe(tmp_path, head)))
    return str(caught.value)


@pytest.mark.parametrize("head", HEADS_WITH_A_SUMMARY)
def test_an_unknown_summary(tmp_path, head):
    said = fault(tmp_path, f"{head}: {{summary: maen}}")
    assert f"{head}.summary: 'maen' is not a value of 'summary'; did you mean 'mean'" in said


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("token_classification: {scheme: iob3}", "'iob3' is not a value of 'scheme'; did you mean"),
        (
            "token_classification: {class_weights: balanced, crf: true}",
            "token_classification: expected class_weights or crf, got both: a CRF's likelihood",
        ),
        (
            "sequence_classification: {wide: true, symmetric: true}",
            "sequence_classification: expected symmetric or wide, got both",
        ),
        (
            "multiple_choice: {class_weights: balanced}",
            "'class_weights' is not a setting of head 'multiple_choice'. Known: dropout, shared_",
        ),
        (
            "multi_label_classification: {threshold: 50}",
            "multi_label_classification.threshold: expected a share, 0 to 1, got 50",
        ),
        (
            "multi_label_classification: {threshold: 1}",
            "threshold: expected a number between 0 and 1, both excluded, got 1",
        ),
        (
            "sentence_embedding: {temperature: 0}",
            "sentence_embedding.temperature: expected a number above 0, got 0",
        ),
        (
            "sequence_to_sequence: {beams: 0}",
            "sequence_to_sequence.beams: expected 1 or more, got 0",
        ),
        (
            "sequence_to_sequence: {label_smoothing: 10}",
            "sequence_to_sequence.label_smoothing: expected a share, 0 to 1, got 10",
        ),
        (
            "sequence_to_sequence: {label_smoothing: 1}",
            "sequence_to_sequence.label_smoothing: expected a share below 1, got 1",
        ),
        (
            "sequence_to_sequence: {target_length: 124}",
            "target_length: expected 2 to 123 tokens, got 124; the stage's rows have 128 tokens",
        ),
        (
            "sequence_to_sequence: {min_tokens: 33}",
            "sequence_to_sequence.min_tokens: expected at most target_length, 32, got 33",
        ),
        (
            "sequence_to_sequence: {mask_rate: 0.5}",
            "sequence_to_sequence.mask_rate: family 'bert' fills in no blanks, which these do: uni",
        ),
        (
            "sentence_embedding: {positive_from: 4}",
            "sentence_embedding.positive_from: expected a share, 0 to 1, got 4",
        ),
        (
            "token_classification: {stride: 0}",
            "token_classification.stride: expected 1 or more, got 0",
        ),
        (
            "span_extraction: {longest_answer: 0}",
            "span_extraction.longest_answer: expected 1 or more, got 0",
        ),
        (
            "span_extraction: {class_weights: balanced}",
            "'class_weights' is not a setting of head 'span_extraction'.",
        ),
    ],
)
def test_what_a_head_has_not_or_not_so(tmp_path, settings, said):
    assert said in fault(tmp_path, settings)


@pytest.mark.parametrize(
    "settings",
    [
        "token_classification: {class_weights: none, crf: true}",
        "token_classification: {class_weights: balanced, crf: false, scheme: bioes}",
        "multi_label_classification: {class_weights: balanced, summary: both}",
    ],
)
def test_what_a_head_has_together(tmp_path, settings):
    assert resolve(load_recipe(recipe(tmp_path, settings))).stages[0].head in settings


def test_targets_fit_in_the_shortest_rows_of_a_stage(tmp_path):
    file = recipe(tmp_path, "sequence_to_sequence: {target_length: 12, min_tokens: 12}")
    both = "[{sequence_length: 16, share: 1}, {sequence_length: 64, share: 1}]"
    overrides = ["family=gpt2", f"stages.finetune.phases={both}"]
    with pytest.raises(RecipeError, match="expected 2 to 11 tokens, got 12; the stage's rows have"):
        resolve(load_recipe(file, overrides))
    fits = ["stages.finetune.head.sequence_to_sequence={target_length: 11, min_tokens: 11}"]
    resolve(load_recipe(file, overrides + fits))
    resolve(load_recipe(file, ["family=unilm", "stages.finetune.head.sequence_to_sequence="
                               "{mask_rate: 0.5}"]))  # fmt: skip
