"""A BERT becomes the start of a UniLM: same outputs, and heads that later stages go on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fourstage.command.verbs.convert import convert
from fourstage.errors import RecipeError
from models.families.bert import Bert
from models.families.gpt2 import Gpt2
from models.families.unilm import Unilm
from models.heads.sequence_to_sequence import SequenceToSequence
from models.interchange.bert_as_unilm import as_unilm
from models.interchange.huggingface import read_checkpoint, save_network
from models.interchange.stage_folder import read_stage
from models.modes import Mode
from models.objectives.masked_lm import MaskedLM
from models.objectives.next_sentence import NextSentence
from models.objectives.unified_lm import UnifiedLM
from models.protocols import Context
from models.training.trained_stage import load_before
from models.weights import named_weights
from tests.models.memory_corpus import PlainTokenizer
from tests.models.training.memory import pretraining

SIZE = {
    "num_layers": 2,
    "hidden_dim": 16,
    "num_heads": 2,
    "intermediate_dim": 32,
    "max_sequence_length": 24,
}
CONTEXT = Context(PlainTokenizer(50), 24, network=Unilm.provides)


def arrays(layer: Any) -> dict[str, np.ndarray]:
    return {name: np.asarray(variable) for name, variable in named_weights(layer).items()}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Bert, dict[str, Any]]:
    """A Hugging Face folder of a BERT, the network, and its two heads."""
    folder = tmp_path_factory.mktemp("bert") / "theirs"
    bert = Bert(**SIZE, vocabulary_size=50)
    scorers = {
        "masked_lm": MaskedLM(CONTEXT).attach(bert),
        "next_sentence": NextSentence(CONTEXT).attach(bert),
    }
    save_network(bert, folder, scorers=scorers, pad_id=0)
    return folder, bert, scorers


def test_it_reads_as_the_bert_did_and_each_mode_begins_as_berts_segments(given):
    folder, bert, _ = given
    network = as_unilm(read_checkpoint(folder)).build()
    ids = np.random.default_rng(0).integers(5, 50, (2, 9)).astype(np.int32)
    batch = {"token_ids": ids, "segment_ids": np.array([[0] * 4 + [1] * 5] * 2, np.int32)}
    one, other = (np.asarray(each(batch)["sequence_output"]) for each in (bert, network))
    np.testing.assert_allclose(one, other, atol=1e-6)
    told = batch | {"modes": np.full(2, Mode.BIDIRECTIONAL, np.int32)}
    np.testing.assert_allclose(one, np.asarray(network(told)["sequence_output"]), atol=1e-6)
    theirs = np.asarray(bert.embeddings.segment.embeddings)
    ours = np.asarray(network.embeddings.segment.embeddings)
    assert np.array_equal(ours, theirs[[0, 1, 0, 0, 0, 1]])


def test_a_converted_bert_is_a_stage_whose_heads_go_on(given, tmp_path):
    folder, _, scorers = given
    told = convert(str(folder), tmp_path / "ours", unilm=True)
    assert (told["family"], told["heads"]) == ("unilm", ["unified_lm"])
    found = read_stage(tmp_path / "ours")
    network = found.build()
    goes_on = {
        "unified_lm": UnifiedLM(CONTEXT).attach(network),
        "sequence_to_sequence": SequenceToSequence(CONTEXT, target_length=5).attach(network),
    }
    load_before(pretraining(initial=tmp_path / "ours"), network, goes_on)
    masked, pairs = (arrays(scorers[name]) for name in ("masked_lm", "next_sentence"))
    expected = {f"tokens/{name}": array for name, array in masked.items()}
    expected |= {f"pairs/{name}": array for name, array in pairs.items()}
    for ours, theirs in (
        (arrays(goes_on["unified_lm"]), expected),
        (arrays(goes_on["sequence_to_sequence"]), masked),
    ):
        assert ours.keys() == theirs.keys()
        assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_another_family_is_refused(tmp_path):
    save_network(Gpt2(**SIZE, vocabulary_size=50), tmp_path / "theirs", pad_id=0)
    with pytest.raises(RecipeError, match="got a gpt2 with no segments"):
        as_unilm(read_checkpoint(tmp_path / "theirs"))
    with pytest.raises(RecipeError, match="as-unilm: expected a Hugging Face folder"):
        convert("models:/writer@champion", tmp_path / "ours", unilm=True)
