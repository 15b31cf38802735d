"""Reading with a cache equals reading everything anew."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from models import catalogue
from models.decoding import cached
from models.decoding.generate import generate
from models.decoding.reader import Reading, cached_reader
from models.decoding.recurrent import reading_apart
from models.decoding.settings import Generation
from models.layers.token_prediction import TokenOutput
from models.protocols import Capability
from tests.conformance.parts import FAMILIES, VOCABULARY_SIZE, network, shallow

APART = [f for f in FAMILIES if {"generation", "encoder_decoder"} <= catalogue.provided(f)]
# A network that fills in blanks is read in test_blanks.py.
GENERATING = [f for f in FAMILIES if {"generation", "causal"} <= catalogue.provided(f)] + APART
BEGIN = (3, 2)
NOTHING = np.zeros((3, 0), "int32")


@pytest.fixture(scope="module", params=GENERATING)
def made(request):
    """A network, whose weights nothing may change."""
    return network(request.param, seed=5)


@pytest.fixture(scope="module")
def read(made):
    """Its reader, for all texts one after the other, because each is traced."""
    return reader(made)


def reader(made, beams=None):
    if Capability.ENCODER_DECODER in made.provides:
        return cached_reader(reading_apart(made, TokenOutput(made), BEGIN), beams)
    return cached_reader(Reading(made, TokenOutput(made)), beams)


def texts(count: int, length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(5, VOCABULARY_SIZE, (count, length)).astype("int32")


def whole(made, ids: np.ndarray, mask: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Logits after the last new token, read from the first."""
    batch = {"token_ids": ids, "padding_mask": mask}
    if Capability.ENCODER_DECODER in made.provides:
        begun = np.tile(np.array(BEGIN, "int32"), (len(new), 1))
        batch["target_ids"] = np.concatenate([begun, new], axis=1)
    else:
        batch["token_ids"] = np.concatenate([ids, new], axis=1)
        batch["padding_mask"] = np.concatenate([mask, np.ones_like(new)], axis=1)
    last = made(batch)["sequence_output"][:, -1]
    return keras.ops.convert_to_numpy(TokenOutput(made).logits(last))


def test_token_by_token_equals_one_reading_with_padding_on_the_left(made, read):
    ids, lengths, new = texts(3, 7), np.array([[7], [4], [1]]), NOTHING
    mask = (np.arange(7) >= 7 - lengths).astype("int32")
    ids *= mask
    np.testing.assert_allclose(read.start(ids, mask), whole(made, ids, mask, new), atol=1e-5)
    for step in range(10):
        new = np.concatenate([new, texts(3, 1, seed=step)], axis=1)
        found = read.step(np.arange(3), new[:, -1])
        np.testing.assert_allclose(found, whole(made, ids, mask, new), atol=1e-5)


def test_texts_may_be_dropped_doubled_and_turned(made, read):
    lengths = np.array([[6], [2], [5]])
    mask = (np.arange(6) >= 6 - lengths).astype("int32")
    ids = texts(3, 6) * mask
    read.start(ids, mask)
    rows, new = np.array([2, 0, 0, 2]), texts(4, 1)
    found = read.step(rows, new[:, 0])
    np.testing.assert_allclose(found, whole(made, ids[rows], mask[rows], new), atol=1e-5)
    row = rows[1:2]
    new = np.concatenate([new[1:2], new[:1]], axis=1)
    found = read.step(np.array([1]), new[:, 1])
    np.testing.assert_allclose(found, whole(made, ids[row], mask[row], new), atol=1e-5)


def test_texts_that_part_and_end_equal_one_reading_whatever_room_there_is(made, read, monkeypatch):
    monkeypatch.setattr(cached, "ROOM", 2)
    rng, lengths = np.random.default_rng(3), np.array([[5], [2], [4]])
    mask = (np.arange(5) >= 5 - lengths).astype("int32")
    ids, new = texts(3, 5) * mask, NOTHING
    read.start(ids, mask)
    for step, count in enumerate((3, 4, 6, 6, 5, 6, 7, 4, 4, 1, 3, 2, 2)):
        rows = rng.integers(0, len(ids), count)
        new = np.concatenate([new[rows], texts(count, 1, seed=step)], axis=1)
        ids, mask = ids[rows], mask[rows]
        found = read.step(rows, new[:, -1])
        np.testing.assert_allclose(found, whole(made, ids, mask, new), atol=1e-5)


def test_a_reader_of_so_many_texts_says_what_one_of_any_number_says(made, read):
    ids, mine, drawn = texts(3, 5), reader(made, beams=3), [(0, 0, 1, 2), (3, 1, 1), (0, 2)]
    np.testing.assert_allclose(
        mine.start(ids, np.ones_like(ids)), read.start(ids, np.ones_like(ids)), atol=1e-5
    )
    for step, rows in enumerate(map(np.array, drawn)):
        new = texts(len(rows), 1, seed=step)[:, 0]
        np.testing.assert_allclose(mine.step(rows, new), read.step(rows, new), atol=1e-5)


def test_two_readings_share_nothing(read):
    one, other = texts(2, 5, seed=1), texts(4, 9, seed=2)
    first = read.start(one, np.ones_like(one))
    read.start(other, np.ones_like(other))
    np.testing.assert_array_equal(read.start(one, np.ones_like(one)), first)


@pytest.mark.parametrize("family", GENERATING)
def test_a_text_does_not_depend_on_those_that_are_written_beside_it(family):
    made = network(family, seed=5, **shallow(family))
    rng = np.random.default_rng(1)
    for variable in made.trainable_variables:
        if len(variable.shape) == 2:  # so large that texts vary, too small to multiply rounding
            scale = made.embeddings.scale if "token" in variable.path else 1.0
            variable.assign(0.2 * rng.normal(size=variable.shape) / scale)
    prompts = [texts(1, length, seed=length)[0].tolist() for length in (9, 2, 5, 2, 7)]
    read = reader(made)  # one for all searches, for each is traced
    searches: list[dict] = [{}, {"beams": 4}, {"sample": True, "seed": 3}]
    for settings in searches:
        asked = Generation(max_new_tokens=8, no_repeat_ngram=1, **settings)
        together = generate(read, prompts, asked, stops={7}, pad_id=0)
        for prompt, found in zip(prompts, together, strict=True):
            (alone,) = generate(read, [prompt], asked, stops={7}, pad_id=0)
            assert alone.tokens == found.tokens, settings
            assert alone.log_probability == pytest.approx(found.log_probability, abs=1e-4)
        assert len({each.tokens for each in together}) > 3, settings


@pytest.mark.parametrize("family", APART)
def test_prompt_and_text_of_an_encoder_decoder_have_room_of_their_own(family):
    made = network(family, max_sequence_length=6, **shallow(family))
    read, most = reader(made), 7 - len(BEGIN)
    (found,) = generate(read, [[5] * 6], Generation(max_new_tokens=most), stops=(), pad_id=0)
    assert len(found.tokens) == most
    with pytest.raises(ValueError, match=rf"max_new_tokens: expected at most {most}, .* got 7"):
        generate(read, [[5]], Generation(max_new_tokens=7), stops=(), pad_id=0)
    with pytest.raises(ValueError, match=r"prompt 1: 7 tokens; the network reads 6 tokens\. Sh"):
        generate(read, [[5], [5] * 7], Generation(max_new_tokens=2), stops=(), pad_id=0)
    cut = Generation(max_new_tokens=2, too_long="cut_left")
    long, short = generate(read, [[9, *range(5, 11)], [*range(5, 11)]], cut, stops=(), pad_id=0)
    assert long.tokens == short.tokens
