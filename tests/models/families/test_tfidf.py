"""The family without a network: its answers are those of counting, and what does not go with it."""

from __future__ import annotations

import numpy as np
import pytest

from fourstage.errors import RecipeError
from models import catalogue
from models.evaluation.predict import predict
from models.heads.sequence_classification import SequenceClassification
from models.protocols import Context
from models.training.gradient import train
from models.training.stage import Budget, Phase
from models.weights import named_weights
from tests.models.training.memory import Rows, finetuning, tokenizer
from tests.models.training.test_wide import DEV, counting_alone, macro_f1

TFIDF = {"family": "tfidf", "network": {}, "budget": Budget("steps", 3)}


def test_a_stage_of_it_answers_as_counting_does(tmp_path):
    rows = {"train": Rows(100, 1), "dev": DEV}
    job = finetuning(**TFIDF, rows=rows, head_settings={"wide": True}, phases=[Phase(16)])
    outcome = train(job, tmp_path)
    found = predict(tmp_path, tokenizer(), DEV)
    assert macro_f1([each.text for each in found]) >= macro_f1(counting_alone())
    # Updates move the bias of both labels (and a kernel that reads zeros).
    assert outcome.trained_weights == 2 + 2
    assert np.isfinite([each.probability for each in found]).all()
    # Counting reads whole rows; what a network would not have read is said.
    lengths = 2 + rows["train"].lengths
    cut = {"count": np.count_nonzero(lengths > 16), "longest": lengths.max()}
    assert outcome.metrics["cut"] == {"row": cut}


def test_it_has_no_weights_and_gives_every_row_the_same():
    made = catalogue.find("families", "tfidf")(vocabulary_size=50)
    assert not named_weights(made)
    assert type(made).from_config(made.get_config()).get_config() == made.get_config()
    outputs = made({"token_ids": np.arange(12, dtype=np.int32).reshape(3, 4)})
    assert {name: value.shape for name, value in outputs.items()} == {"sequence_output": (3, 4, 1)}
    assert not np.asarray(outputs["sequence_output"]).any()


@pytest.mark.parametrize(
    ("objectives", "head"), [(["masked_lm"], None), ([], "token_classification")]
)
def test_what_has_to_read_a_network_is_refused_before_any_work(objectives, head):
    with pytest.raises(RecipeError, match="has no network, so expected a head that counts n-grams"):
        catalogue.check_compatible("tfidf", objectives, head)


def test_a_head_that_does_not_count_is_refused():
    context = Context(tokenizer(), 16, ("high", "low"))
    network = catalogue.find("families", "tfidf")(vocabulary_size=205)
    with pytest.raises(RecipeError, match="wide: expected true"):
        SequenceClassification(context).attach(network)
