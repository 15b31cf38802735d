"""Our searches write the tokens that transformers' ``generate`` writes, with the same weights.

`make_goldens.py` and `make_writing_goldens.py` made what theirs writes.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from models import features as keys
from models.decoding.generate import generate
from models.decoding.reader import Reading, ReadingApart, cached_reader
from models.decoding.settings import Generation
from models.heads.sequence_to_sequence import SequenceToSequence
from models.inputs.rows import framed_texts
from models.interchange.huggingface import read_checkpoint
from models.layers.token_prediction import TokenOutput
from models.protocols import Context
from tests.parity.writing_heads import GENERATION, HEADS, LENGTH, texts, writing_head

SEARCHES = {
    "greedy": {},
    "beams": {"beams": 4},
    "short": {"beams": 4, "length_penalty": 0.0},
    "long": {"beams": 3, "length_penalty": 2.0, "min_new_tokens": 5},
    "no_repeat": {"beams": 4, "no_repeat_ngram": 2},
}
NEW_TOKENS = 16


@pytest.fixture(scope="module", params=sorted(path.name for path in GENERATION.iterdir()))
def of(request):
    """A reader of the weights, and what transformers wrote with them."""
    folder = GENERATION / request.param
    network = read_checkpoint(folder).build()
    config = json.loads((folder / "config.json").read_text("utf-8"))
    reading = Reading(network, TokenOutput(network))
    if config.get("is_encoder_decoder"):
        begin = (config["decoder_start_token_id"],)
        reading = ReadingApart(network, TokenOutput(network), begin)
    with np.load(folder / "generated.npz") as numbers:
        return cached_reader(reading), dict(numbers)


@pytest.mark.parametrize("search", SEARCHES)
def test_the_same_tokens_follow(of, search):
    reader, golden = of
    stop = int(golden["stop"])
    prompts = [
        row[real > 0].tolist() for row, real in zip(golden["ids"], golden["mask"], strict=True)
    ]
    settings = Generation(max_new_tokens=NEW_TOKENS, **SEARCHES[search])
    said = generate(reader, prompts, settings, stops={stop}, pad_id=0, batch_size=3)
    ours = [[*each.tokens, *[stop] * each.stopped] for each in said]
    assert [row + [0] * (NEW_TOKENS - len(row)) for row in ours] == golden[search].tolist()


def test_the_texts_differ_and_some_are_stopped(of):
    _, golden = of
    lengths = (golden["beams"] > 0).sum(axis=1)
    assert lengths.min() < NEW_TOKENS
    assert len({tuple(text) for text in golden["beams"].tolist()}) > 4
    assert all((golden["greedy"] != golden[name]).any() for name in SEARCHES if name != "greedy")


@pytest.mark.parametrize("name", HEADS)
def test_a_head_writes_what_theirs_writes_with_the_folder_of_it(name):
    network, tokenizer = (ours := writing_head(name)).build(), ours.tokenizer
    context = Context(tokenizer, LENGTH, network=network.provides)
    head = SequenceToSequence(context, **HEADS[name])
    source = Context(tokenizer, LENGTH - HEADS[name]["target_length"])
    rows = framed_texts([(ids,) for ids in tokenizer.encode(texts())], source)
    found = head.predicting(network, head.attach(network))(rows)[keys.WRITTEN_IDS]
    expected = json.loads((GENERATION / name / "written.json").read_text("utf-8"))
    assert [[i for i in row if i >= 0] for row in found.tolist()] == expected
