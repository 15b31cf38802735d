"""Texts that are written: rows by hand, the loss in NumPy, and what training makes them be."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fourstage.errors import ContractViolation, RecipeError
from models import features as keys
from models.answers.text import Text
from models.evaluation.predict import RowPredictor
from models.evaluation.resampling import scores
from models.families.bart import Bart
from models.families.gpt2 import Gpt2
from models.families.transformer import Transformer
from models.heads.sequence_to_sequence import SequenceToSequence
from models.inputs.batches import batches
from models.inputs.mixture import PrefixedRows
from models.protocols import Context
from models.training.optimizer import make_optimizer
from models.training.stage_model import StageModel
from tests.models.memory_corpus import MemoryRows, PlainTokenizer
from tests.models.training.memory import RULE

ROWS = MemoryRows(
    [
        ([10, 11], '["20 21 22"]'),
        ([12, 13, 14, 15, 16, 17, 18, 19], '["23", "not learnt from: 24"]'),
        ([12], [13, 14], ""),
    ]
)
CONTEXT = Context(PlainTokenizer(50), 12, (), ROWS)
RNG = np.random.default_rng(0)


def head(**settings) -> SequenceToSequence:
    return SequenceToSequence(CONTEXT, **{"target_length": 5, **settings})


def network(family: type = Gpt2, seed: int = 0) -> Any:
    import keras

    keras.utils.set_random_seed(seed)
    decoder = {} if family is Gpt2 else {"num_decoder_layers": 1}
    return family(
        vocabulary_size=50,
        num_layers=1,
        hidden_dim=32,
        num_heads=2,
        intermediate_dim=64,
        max_sequence_length=12,
        dropout=0.0,
        **decoder,
    )


FAMILIES = pytest.mark.parametrize("family", [Gpt2, Bart, Transformer])


def batch_of(made: SequenceToSequence, rows: MemoryRows = ROWS) -> dict[str, np.ndarray]:
    return made.segments(rows, made.index(rows, RNG).entries, RNG)


def test_a_prefix_stands_before_the_first_text_and_is_kept_where_a_text_is_cut():
    made = head(prefix="30 31")
    batch = batch_of(made)
    assert batch[keys.TOKEN_IDS][:, :7].tolist() == [
        [2, 30, 31, 10, 11, 3, 0],
        [2, 30, 31, 12, 13, 14, 3],
        [2, 30, 31, 3, 13, 14, 3],  # of a pair the longer text is cut first
    ]
    with pytest.raises(RecipeError, match="prefix: 3 tokens leave no room for the row's text"):
        head(prefix="30 31 32")


@pytest.mark.parametrize("beside", [False, True])
def test_a_prefix_that_most_training_rows_bring_along_is_refused_with_their_number(beside):
    def given(*texts: list[int]) -> SequenceToSequence | None:
        rows = MemoryRows([(text, '["20"]') for text in texts])
        if not beside:
            return SequenceToSequence(replace(CONTEXT, rows=rows), target_length=5, prefix="30 31")
        other = PrefixedRows(rows, "text", "mixture.beside.other", np.array([30, 31], np.int32))
        head(prefix="32").index(other, RNG)
        return None

    where = "mixture.beside.other" if beside else "head.sequence_to_sequence.prefix"
    doubled, bare, near = [30, 31, 10], [10, 30, 31], [30]
    with pytest.raises(RecipeError, match=rf"^{where}: expected .* got 2 of 3 that begin with it;"):
        given(doubled, [30, 31], bare)
    given(doubled, near, bare)
    given(doubled, doubled, near, bare)  # half of them: by chance, for all we know


def test_rows_by_hand():
    made = head()
    index = made.index(ROWS, RNG)
    # [CLS] 10 11 [SEP] and 20 21 22 [SEP]; a text of 5 tokens between [CLS] and [SEP]; no target.
    assert index.lengths.tolist() == [8, 9, 7]
    assert index.details["truncated_rows"] == 1
    assert index.details["truncated_targets"] == 0
    batch = batch_of(made)
    assert batch[keys.TOKEN_IDS][:2, :7].tolist() == [
        [2, 10, 11, 3, 0, 0, 0],
        [2, 12, 13, 14, 15, 16, 3],
    ]
    assert batch[keys.TARGET_IDS].tolist() == [
        [3, 20, 21, 22, 0],
        [3, 23, 0, 0, 0],
        [3, 0, 0, 0, 0],
    ]
    assert batch[keys.TARGET_LABELS].tolist() == [
        [20, 21, 22, 3, 0],
        [23, 3, 0, 0, 0],
        [3, 0, 0, 0, 0],
    ]
    assert batch[keys.TARGET_MASK].sum(axis=1).tolist() == [4, 2, 1]
    assert batch[keys.TARGET_WEIGHTS].sum(axis=1).tolist() == [4, 2, 0]  # nothing is known


def test_a_target_that_is_too_long_is_cut_and_counted():
    made = head(target_length=3)
    index = made.index(ROWS, RNG)
    assert index.details["truncated_targets"] == 1
    assert index.details["longest_target"] == 4
    assert index.lengths.tolist() == [4 + 3, 9 + 2, 6 + 1]  # the texts have more room
    batch = made.segments(ROWS, index.entries, RNG)
    assert batch[keys.TARGET_IDS][0].tolist() == [3, 20, 21]
    assert batch[keys.TARGET_LABELS][0].tolist() == [20, 21, 3]


def test_a_causal_network_reads_text_and_target_as_one_row():
    made = head()
    scorer = made.attach(network())
    joined = scorer.prepare(batch_of(made), False)
    ids, mask = (np.asarray(joined[key]) for key in (keys.TOKEN_IDS, keys.PADDING_MASK))
    assert ids[0][mask[0] == 1].tolist() == [2, 10, 11, 3, 20, 21, 22]
    assert ids[1][mask[1] == 1].tolist() == [2, 12, 13, 14, 15, 16, 3, 23]


def test_an_encoder_decoder_reads_text_and_target_apart():
    made = head()
    batch = batch_of(made)
    read = made.attach(network(Bart)).prepare(batch, False)
    assert read[keys.TOKEN_IDS] is batch[keys.TOKEN_IDS]
    assert np.asarray(read[keys.TARGET_IDS]).tolist() == [
        [3, 2, 20, 21, 22, 0],
        [3, 2, 23, 0, 0, 0],
        [3, 2, 0, 0, 0, 0],
    ]
    assert np.asarray(read[keys.TARGET_MASK]).sum(axis=1).tolist() == [5, 3, 2]


def log_probabilities(made_network: Any, text: list[int], target: list[int]) -> np.ndarray:
    """(S, V) of each token of the target and of its end, in NumPy, of a row without padding."""
    begin = {Bart: [3, 2], Transformer: [3]}
    if type(made_network) in begin:
        begun = [*begin[type(made_network)], *target]
        batch = {"token_ids": [[2, *text, 3]], "target_ids": [begun]}
    else:
        batch = {"token_ids": [[2, *text, 3, *target]]}
    found = made_network({key: np.array(ids) for key, ids in batch.items()})["sequence_output"]
    hidden = np.asarray(found[0])[-len(target) - 1 :]
    logits = hidden.astype(np.float64) @ np.asarray(made_network.token_embedding.embeddings).T
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


@FAMILIES
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_that_of_each_row_alone(smoothing, family):
    made, read = head(label_smoothing=smoothing), network(family)
    model = StageModel(read, {"s2s": made.attach(read)})
    batch = batch_of(made) | {keys.ROW_WEIGHTS: np.ones(3, np.float32)}
    found, _ = model.outputs(batch, training=True)
    nats = 0.0
    for text, target in (([10, 11], [20, 21, 22]), ([12, 13, 14, 15, 16], [23])):
        log_p = log_probabilities(read, text, target)
        right = log_p[np.arange(len(target) + 1), [*target, 3]]
        spread = np.delete(log_p, CONTEXT.tokenizer.pad_id, axis=1).mean(axis=-1)
        nats -= ((1 - smoothing) * right + smoothing * spread).sum()
    total, weight = found["s2s"]["loss"]
    assert float(weight) == 6
    assert float(total) == pytest.approx(nats, rel=1e-6)
    if smoothing:  # the measured loss is not smoothed
        plain, _ = model.outputs(batch, training=False)
        assert float(plain["s2s"]["loss"][0]) != pytest.approx(nats, rel=1e-4)


@FAMILIES
def test_perplexities_are_of_the_likelihood_of_each_target_alone(family):
    made, read = head(), network(family)
    scorer = made.attach(read)
    rows = MemoryRows(ROWS.rows[:2])
    metrics = ["perplexity", "perplexity_a_word"]
    found = RowPredictor(read, made, scorer, rows, CONTEXT, metrics).answers()
    nats = [
        -log_probabilities(read, text, target)[np.arange(len(target) + 1), [*target, 3]].sum()
        for text, target in (([10, 11], [20, 21, 22]), ([12, 13, 14, 15, 16], [23]))
    ]
    for each, expected, tokens in zip(found, nats, (4, 2), strict=True):
        told = {"nats": pytest.approx(expected, rel=1e-5), "tokens": tokens, "words": tokens - 1}
        assert json.loads(each.text) == told  # and no text, which nothing asks for
        assert np.isnan(each.probability)
    said = [each.text for each in found]
    expected = {"perplexity": np.exp(sum(nats) / 6), "perplexity_a_word": np.exp(sum(nats) / 4)}
    assert scores(Text(), rows.answers, said, metrics) == pytest.approx(expected, rel=1e-5)

    written = RowPredictor(read, made, scorer, rows, CONTEXT).answers()
    both = RowPredictor(read, made, scorer, rows, CONTEXT, ["perplexity", "chrf"]).answers()
    for alone, likely, each in zip(written, found, both, strict=True):
        told = {"texts": json.loads(alone.text), **json.loads(likely.text)}
        assert json.loads(each.text) == told
        assert each.probability == alone.probability


def test_of_a_target_that_is_cut_the_words_are_counted_in_proportion_and_of_none_nothing():
    made, read = head(target_length=3), network()
    found = RowPredictor(read, made, made.attach(read), ROWS, CONTEXT, ["perplexity"]).answers()
    first, *_, last = (json.loads(each.text) for each in found)
    log_p = log_probabilities(read, [10, 11], [20, 21])
    assert first["nats"] == pytest.approx(-log_p[np.arange(3), [20, 21, 3]].sum(), rel=1e-5)
    assert (first["tokens"], first["words"]) == (3, 3 * 3 / 4)
    assert last == {"nats": 0, "tokens": 0, "words": 0}


@FAMILIES
def test_what_is_learnt_by_heart_is_written(family):
    rng = np.random.default_rng(1)
    pairs = [rng.integers(5, 50, (2, 3)).tolist() for _ in range(16)]
    rows = MemoryRows([(text, json.dumps([" ".join(map(str, said))])) for text, said in pairs])
    context = replace(CONTEXT, rows=rows)
    made, read = SequenceToSequence(context, target_length=5), network(family)
    scorer = made.attach(read)
    model = StageModel(read, {"s2s": scorer})
    batch = batches({"rows": (rows, 1.0)}, [made], context, 16, 0).batch(0)
    rule = {**RULE, "peak_learning_rate": 1e-2, "warmup": 0, "decay": "constant"}
    model.compile(optimizer=make_optimizer(rule, total_steps=200), jit_compile=False)
    model.optimizer.build(model.trainable_variables)  # else the step is traced twice
    for _ in range(200):
        model.train_on_batch(batch)
    blind = MemoryRows([(text, "") for text, _ in pairs])
    found = RowPredictor(read, made, scorer, blind, context).answers()
    assert [each.text for each in found] == rows.answers
    for (text, said), each in zip(pairs, found, strict=True):
        log_p = log_probabilities(read, text, said)
        whole = log_p[np.arange(4), [*said, 3]].sum()
        assert each.probability == pytest.approx(np.exp(whole), rel=1e-4)


def test_no_special_token_is_written():
    made, read = head(), network()
    table = read.token_embedding.embeddings
    table.assign(np.asarray(table) * (np.arange(50) < 5)[:, None] * 50)  # all others are unlikely
    found = RowPredictor(read, made, made.attach(read), ROWS, CONTEXT).answers()
    for each in found:
        (text,) = json.loads(each.text)
        assert all(int(token) >= 5 for token in text.split())


def test_a_text_to_write_from_is_no_longer_than_those_that_were_learnt_from():
    made = head(target_length=5)  # of 12 tokens in all
    for family, longest in ((Transformer, 7), (Gpt2, None)):
        of = network(family)
        assert made.prompting(of, made.attach(of)).longest_prompt == longest


def test_settings_out_of_range_are_told_with_the_numbers():
    with pytest.raises(
        RecipeError, match=r"target_length: expected 2 to 7 tokens, got 8.*12 token"
    ):
        head(target_length=8)
    with pytest.raises(RecipeError, match=r"label_smoothing: .* got 1\.0"):
        head(label_smoothing=1.0)
    with pytest.raises(
        RecipeError, match=r"\.min_tokens: expected at most target_length, 5, got 6"
    ):
        head(min_tokens=6)
    rows = MemoryRows([([10], "positive")])
    with pytest.raises(ContractViolation, match=r"expected a list of texts as answer.*r0"):
        SequenceToSequence(replace(CONTEXT, rows=rows), target_length=5)
