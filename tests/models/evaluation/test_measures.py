"""Held-out loss, probe and predictions of a stage's folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from fourstage.errors import RecipeError
from models import features as keys
from models.evaluation.heldout import HeldOut, heldout_losses
from models.evaluation.marked_words import Occurrence, WordInContext
from models.evaluation.predict import predict
from models.evaluation.probe import probe
from models.evaluation.word_in_context import word_in_context
from models.families.unilm import Unilm
from models.objectives.unified_lm import UnifiedLM
from models.protocols import Context
from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece
from models.training.gradient import train
from models.training.stage import Budget
from models.training.trained_stage import load_stage
from tests.models.training.memory import (
    ONE_LAYER,
    Corpus,
    Rows,
    finetuning,
    pretraining,
    tokenizer,
)
from tests.untraced import untraced


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("measured")
    with untraced():
        train(pretraining(heldout={}, budget=Budget("steps", 2)), folder / "general")
        job = finetuning(folder / "general", budget=Budget("steps", 3), select=None)
        train(job, folder / "finetune")
    return folder / "general", folder / "finetune"


def test_heldout_loss_is_the_same_number_each_time_and_near_ln_v_at_first(folders):
    corpora = {"a": Corpus(20, 3), "b": Corpus(20, 4)}
    one, two = (
        heldout_losses(folders[0], tokenizer(), corpora, objective="masked_lm") for _ in range(2)
    )
    assert one == two
    assert one["a"]["loss"] == pytest.approx(np.log(205), rel=0.1)
    assert (
        heldout_losses(folders[0], tokenizer(), {"a": corpora["a"]}, objective="masked_lm")["a"]
        == one["a"]
    )


def test_text_of_which_an_objective_makes_no_row_is_left_out_with_the_reason():
    """Labelled rows are often single sentences, and unified_lm reads two after each other."""
    network = Unilm(vocabulary_size=205, **ONE_LAYER)
    scorer = UnifiedLM(Context(tokenizer(), 32)).attach(network)
    texts, rows = Corpus(20, 3), Corpus(20, 4)
    rows.texts = [(ids, np.array([len(ids)], np.int32)) for ids, _ in rows.texts]
    given = {"texts": texts, "rows": rows}
    measured = HeldOut(network, "unified_lm", scorer, given, tokenizer(), 32)
    assert list(measured.losses()) == list(measured.feeds) == ["texts"]
    assert "needs documents of two sentences or more" in measured.left_out["rows"]


@pytest.mark.usefixtures("untraced")
def test_an_objective_of_stages_before_is_measured_with_the_settings_that_it_had(tmp_path):
    """Without rows in both directions `unified_lm` has no weights for pairs."""
    mixture = {"bidirectional": 0, "left_to_right": 1, "sequence_to_sequence": 1}
    changes: dict = {"family": "unilm", "budget": Budget("steps", 2)}
    objectives = {"unified_lm": mixture}
    train(pretraining(heldout={}, objectives=objectives, **changes), tmp_path / "general")
    for stage, before in (("task", "general"), ("finetune", "task")):
        initial = tmp_path / before
        job = (
            finetuning(initial, select=None, **changes)
            if stage == "finetune"
            else pretraining(
                heldout={}, initial=initial, kind=stage, objectives={"masked_lm": {}}, **changes
            )
        )
        train(job, tmp_path / stage)
        found = heldout_losses(
            tmp_path / stage, tokenizer(), {"a": Corpus(9)}, objective="unified_lm"
        )
        assert found["a"]["loss"] == pytest.approx(np.log(205), rel=0.2)


def test_a_stage_without_the_head_says_which_it_has(folders, tmp_path):
    headless = shutil.copytree(folders[0], tmp_path / "general")
    (headless / "heads" / "next_sentence.safetensors").unlink()
    with pytest.raises(RecipeError, match=r"no head 'next_sentence'.*it has masked_lm"):
        heldout_losses(headless, tokenizer(), {"a": Corpus(9)}, objective="next_sentence")


def test_another_tokenizer_is_refused(folders):
    other = WordPiece([*SPECIAL_TOKENS, "x"], lowercase=True)
    with pytest.raises(RecipeError, match="trained with tokenizer"):
        predict(folders[1], other, Rows(5))


def test_predictions_are_in_the_order_of_the_rows_and_do_not_depend_on_their_neighbours(folders):
    rows = Rows(150, 9)
    found = predict(folders[1], tokenizer(), rows)
    assert len(found) == 150
    assert {answer.text for answer in found} <= {"low", "high"}
    assert all(answer.details[answer.text] == answer.probability for answer in found)
    assert all(answer.probability >= 0.5 for answer in found)

    class Some:
        answers = rows.answers[40:60]

        def __len__(self):
            return 20

        def texts(self, i):
            return rows.texts(40 + i)

    some = [answer.probability for answer in predict(folders[1], tokenizer(), Some())]
    expected = [answer.probability for answer in found[40:60]]
    np.testing.assert_allclose(some, expected, atol=1e-6)


def test_a_probe_tells_labels_apart_and_is_reproducible(folders):
    asked = Rows(100, 2)
    said = [probe(folders[0], tokenizer(), Rows(200, 1), asked) for _ in range(2)]
    np.testing.assert_array_equal(said[0], said[1])
    # Mean vectors of a random network tell bags of words apart.
    assert np.mean(said[0] == asked.answers) > 0.8


def test_held_out_text_is_measured_with_masks_alone(folders):
    """Tokens that stay are guessed by copying them."""
    stage = load_stage(folders[0], tokenizer())
    scorer = stage.scorer("masked_lm", stage.objective("masked_lm"))
    corpora = {"a": Corpus(20, 3)}
    measured = HeldOut(stage.network, "masked_lm", scorer, corpora, tokenizer(), 16)
    batch = measured.feeds["a"].batch(0)
    seen = np.take_along_axis(batch[keys.TOKEN_IDS], batch[keys.MASK_POSITIONS], axis=1)
    assert set(seen[batch[keys.MASK_WEIGHTS] > 0]) == {tokenizer().mask_id}


def test_a_loss_has_a_standard_error_where_there_is_more_than_one_batch(folders):
    found = heldout_losses(
        folders[0], tokenizer(), {"a": Corpus(200, 3), "b": Corpus(2, 4)}, objective="masked_lm"
    )
    assert 0 < found["a"]["error"] < 0.2
    assert "error" not in found["b"]


def test_words_in_context_are_judged_by_the_stages_own_vectors(folders):
    words = [Occurrence("waa wab wac", 4, 7), Occurrence("wad wab wae waf", 4, 7)]
    pairs = [
        WordInContext("a", words[0], words[0], True),
        WordInContext("b", words[0], words[1], False),
    ]
    found = word_in_context(folders[0], tokenizer(), pairs, pairs)
    assert found.cosines[0].tolist() == [1.0] * len(found.layers)
    assert (found.cosines[1, 1:] < 1).all()
    assert found.layers[-1].accuracy == 1.0
