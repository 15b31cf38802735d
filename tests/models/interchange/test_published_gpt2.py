"""GPT-2's published files, whose one token plays every role: it trains, is measured and writes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fourstage.errors import RecipeError
from models import catalogue
from models.decoding.prompting import write
from models.evaluation.heldout import HeldOut
from models.inputs.batches import batches
from models.interchange.huggingface import read_checkpoint, write_checkpoint
from models.interchange.pretrained_network import read_start
from models.protocols import Capability, Context
from models.training.optimizer import make_optimizer
from models.training.stage_model import StageModel
from tests.models.memory_corpus import MemoryCorpus
from tests.models.published_gpt2 import published
from tests.models.training.memory import RULE

LENGTH = 24
TEXTS = ["the Network learned naïve words", "isn't 3.14 (of) them", "的一是不了人我在有"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("published") / "gpt2"
    published(made)
    return made


@pytest.fixture(scope="module")
def start(folder) -> Any:
    return read_start(folder)


def corpus(tokenizer: Any) -> MemoryCorpus:
    return MemoryCorpus([[ids.tolist()] for ids in tokenizer.encode(TEXTS)] * 8)


def beginning(tokenizer: Any, text: str) -> str:
    """About the first half of a text: as much as its first tokens spell."""
    cuts = [text[:end] for end in range(len(text) // 2, len(text))]
    whole, *ids = (found.tolist() for found in tokenizer.encode([text, *cuts]))
    return next(c for c, i in zip(cuts, ids, strict=True) if i == whole[: len(i)])


@pytest.fixture(scope="module")
def trained(start) -> tuple[Any, Any, Any, list[float]]:
    """The network after some updates, its objective, its scorer, and the held-out loss."""
    network = start.build()
    context = Context(start.tokenizer, LENGTH, network=network.provides)
    # A row a document, so that most are padded.
    objective = catalogue.find("objectives", "causal_lm")(context, across_documents=False)
    scorer = objective.attach(network)
    held = HeldOut(
        network, "causal_lm", scorer, {"all": corpus(start.tokenizer)}, start.tokenizer, LENGTH
    )
    losses = [held.losses()["all"]["loss"]]
    fed = batches({"all": (corpus(start.tokenizer), 1.0)}, [objective], context, 6, seed=5)
    model = StageModel(network, {"causal_lm": scorer})
    rule = {**RULE, "peak_learning_rate": 1e-2, "warmup": 0.1, "decay": "linear"}
    model.compile(optimizer=make_optimizer(rule, total_steps=100), jit_compile=False)
    model.trace_for(fed.batch(0), lengths_vary=False)
    for step in range(100):
        model.train_on_batch(fed.batch(step))
    return network, objective, scorer, [*losses, held.losses()["all"]["loss"]]


def test_the_folder_is_read_and_written_back(folder, start, tmp_path):
    end = start.tokenizer.vocabulary_size - 1
    assert (start.family, start.pad_id, start.tokenizer.sep_id) == ("gpt2", end, end)
    write_checkpoint(start, tmp_path / "ours")
    again = read_checkpoint(tmp_path / "ours")
    assert again.tokenizer.digest == start.tokenizer.digest
    assert (again.settings, again.pad_id) == (start.settings, end)
    for name, value in start.network.items():
        np.testing.assert_array_equal(again.network[name], value)


def test_it_learns_texts_by_heart_and_writes_them_to_their_end(start, trained):
    network, objective, scorer, (before, after) = trained
    assert before == pytest.approx(math.log(start.tokenizer.vocabulary_size), rel=0.25)
    assert after < before / 3  # its windows begin within texts, which no row learned here does
    prompting = objective.prompting(network, scorer)
    firsts = [beginning(start.tokenizer, text) for text in TEXTS]
    assert len({len(ids) for ids in start.tokenizer.encode(firsts)}) > 1
    given = {"max_new_tokens": 20}
    found = write(prompting, start.tokenizer, 40, firsts, given)
    assert [each["whole"] for each in found] == TEXTS
    assert all(each["ended"] for each in found)
    # Alone, without the padding on its left.
    shortest = min(range(len(firsts)), key=lambda n: len(start.tokenizer.encode(firsts)[n]))
    (alone,) = write(prompting, start.tokenizer, 40, [firsts[shortest]], given)
    assert alone["whole"] == found[shortest]["whole"]
    nats = found[shortest]["log_probability"]
    assert alone["log_probability"] == pytest.approx(nats, abs=1e-4)


def test_padding_is_never_read_though_its_id_is_the_end_of_a_text(start, trained):
    network, objective, scorer, _ = trained
    fed = batches(
        {"all": (corpus(start.tokenizer), 1.0)}, [objective], objective.context, 6, seed=5
    )
    batch = fed.batch(0)
    assert 0 < batch["padding_mask"].mean() < 1
    weights = batch["next_weights"]
    ends = (batch["next_labels"] == start.tokenizer.sep_id) & (weights > 0)
    assert ends.sum() == len(weights), "each row's own end is predicted, and no padding"
    other = dict(batch)
    other["token_ids"] = np.where(batch["padding_mask"] > 0, batch["token_ids"], 7)
    losses = [
        StageModel(network, {"causal_lm": scorer}).outputs(each)[0]["causal_lm"]["loss"]
        for each in (batch, other)
    ]
    assert float(losses[0][0]) == pytest.approx(float(losses[1][0]), rel=1e-6)


@pytest.mark.parametrize(
    "objective",
    ["masked_lm", "replaced_token_detection", "unified_lm", "masked_seq2seq", "text_infilling"],
)
def test_an_objective_that_hides_tokens_wants_a_mask_of_its_own(objective, start):
    context = Context(start.tokenizer, LENGTH)
    said = rf"objectives\.{objective}: expected a tokenizer with a \[MASK\] of its own, got one"
    with pytest.raises(RecipeError, match=said):
        catalogue.find("objectives", objective)(context)


def test_blanks_want_a_mask_and_an_objective_that_hides_nothing_does_not(start):
    context = Context(start.tokenizer, LENGTH, network=frozenset({Capability.MODES}))
    with pytest.raises(RecipeError, match=r"head\.sequence_to_sequence: expected a tokenizer"):
        catalogue.find("heads", "sequence_to_sequence")(context, target_length=8)
    catalogue.find("objectives", "text_infilling")(context, infill_rate=0.0, delete_rate=0.1)
    catalogue.find("objectives", "masked_lm")(context, mask_share=0.0)
