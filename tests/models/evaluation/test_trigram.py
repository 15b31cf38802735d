"""A network mixed with a trigram: its loss by hand, from counts and the network's own logits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from fourstage.errors import RecipeError
from models.evaluation.heldout import heldout_losses
from models.evaluation.trigram import trigram_of, trigrams
from models.families.nnlm import Nnlm
from models.layers.token_prediction import TokenOutput
from models.objectives.causal_lm import CausalLM
from models.protocols import Context
from models.training.job import TrainingJob
from models.training.stage import Budget, Optimizer, Phase, StageSettings
from models.training.trained_stage import write_settings, write_weights
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer

V, LENGTH = 12, 8
TOKENIZER = PlainTokenizer(V)
CLS, SEP, UNK = TOKENIZER.cls_id, TOKENIZER.sep_id, TOKENIZER.unknown_id
EVENTS = [SEP, UNK, *range(5, V)]  # what can be next
SIZE: dict[str, Any] = {"order": 4, "embedding_dim": 3, "intermediate_dim": 4, "direct": True}
READ = [[[5, 6, 7, 5, 6]], [[8, 6, 7]], [[5, 6, UNK, 9]]]
HELD_OUT = [[[5, 6, 7, 9]], [[8]], [[10, 5, 6, 7, 5, 6, 8]]]


def counted(*documents: list[list[int]]) -> list[Counter[tuple[int, ...]]]:
    """By order from 1, how often each n-gram is there; a document begins with two begin tokens."""
    found: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(3)]
    for document in documents:
        text = [CLS, CLS, *document[0], SEP]
        for end in range(2, len(text)):
            for order in (1, 2, 3):
                found[order - 1][tuple(text[end - order + 1 : end + 1])] += 1
    return found


def by_hand(counts: list[Counter[tuple[int, ...]]], history: list[int], token: int) -> float:
    """Half of the longer history at each order that has seen it; below all, every event alike."""
    p = 1 / len(EVENTS)
    for order, table in enumerate(counts, 1):
        before = tuple([CLS, CLS, *history][len(history) + 3 - order :])
        total = sum(count for ngram, count in table.items() if ngram[:-1] == before)
        if total:
            p = 0.5 * table[(*before, token)] / total + 0.5 * p
    return p


@pytest.fixture
def stage(tmp_path: Path) -> tuple[Path, Any]:
    """The folder of a network whose weights are all random, and the network."""
    made = Nnlm(vocabulary_size=V, trigram_share=0.3, **SIZE)
    rng = np.random.default_rng(0)
    for variable in made.trainable_variables:
        variable.assign(rng.normal(0, 0.7, variable.shape))
    settings = StageSettings(
        kind="general",
        family="nnlm",
        network=SIZE | {"trigram_share": 0.3},
        phases=(Phase(LENGTH),),
        batch_size=2,
        budget=Budget("steps", 1),
        optimizer=Optimizer("adamw", {}),
        objectives={"causal_lm": {}},
    )
    job = TrainingJob(settings, TOKENIZER)
    write_weights(job, tmp_path, made, {"causal_lm": CausalLM(Context(TOKENIZER, 8)).attach(made)})
    write_settings(job, tmp_path, precision="float32", tasks={}, history=[], metrics={})
    return tmp_path, made


def test_the_loss_is_that_of_mixed_probabilities(stage: tuple[Path, Any]):
    folder, made = stage
    text = {"a": MemoryCorpus(HELD_OUT)}
    read = {"a": MemoryCorpus(READ[:2]), "b": MemoryCorpus(READ[2:])}
    (found,) = heldout_losses(folder, TOKENIZER, text, objective="causal_lm", counted=read).values()
    # Windows of 8: [CLS], then the stream; the last one repeats tokens, to be full.
    stream = [token for document in HELD_OUT for token in (*document[0], SEP)]
    starts = [0, LENGTH - 1, len(stream) - (LENGTH - 1)]
    counts, nats = counted(*READ), []
    for start in starts:
        row = [CLS, *stream[start : start + LENGTH - 1]]
        hidden = made({"token_ids": np.array([row], "int32")})["sequence_output"]
        logits = np.asarray(TokenOutput(made).logits(hidden), np.float64)[0]
        for place in range(1, LENGTH):
            history = row[1:place]
            if SEP in history:
                history = history[len(history) - history[::-1].index(SEP) :]
            own = softmax(logits[place - 1])[row[place]]
            nats.append(-np.log(0.7 * own + 0.3 * by_hand(counts, history, row[place])))
    assert found["loss"] == pytest.approx(np.mean(nats), rel=1e-5)
    plain = heldout_losses(folder, TOKENIZER, text, objective="causal_lm")["a"]["loss"]
    assert abs(found["loss"] - plain) > 0.01


@pytest.mark.parametrize("history", [[], [5], [5, 6], [9, 9], [UNK, 9]])
def test_probabilities_of_the_trigram_sum_to_1(history: list[int], tmp_path: Path):
    trigram = trigram_of({"a": MemoryCorpus(READ)}, TOKENIZER, tmp_path)
    rows = np.array([[CLS, *history, token] for token in EVENTS], "int32")
    batch = {"token_ids": rows, "padding_mask": np.ones_like(rows)}
    keys = trigrams(batch, TOKENIZER, trigram.packing)[:, -1]
    found = trigram.probabilities(keys)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    expected = [by_hand(counted(*READ), history, token) for token in EVENTS]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_is_no_share_is_refused():
    with pytest.raises(RecipeError, match=r"size\.trigram_share: expected a share, 0 to 1, got 2"):
        Nnlm(vocabulary_size=V, trigram_share=2, **SIZE)
