"""GloVe: counts against brute force, gradients against finite differences, AdaGrad by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from fourstage.errors import ContractViolation, Interrupted
from models.stage_format import NETWORK, head_file
from models.training.stage import Budget, Phase
from models.training.trainer import train
from models.vectors.cooccurrence import counted
from models.vectors.squares import COUNTS, Squares, descend, squares
from tests.models.memory_corpus import MemoryCorpus, random_corpus
from tests.models.training.memory import Corpus, Recorder, finetuning, pretraining

V = 30
KEPT = (np.arange(V) >= 5).astype(np.float32)


@pytest.mark.parametrize("run", [50, 10**9])
def test_pairs_are_counted_by_one_over_their_distance_on_both_sides(tmp_path: Path, run) -> None:
    corpus = random_corpus(12, V, seed=1)
    expected = np.zeros((V, V))
    for i in range(len(corpus)):
        ids = corpus.document(i)[0]
        for a in range(len(ids)):
            for b in range(max(0, a - 4), min(len(ids), a + 5)):
                if a != b:
                    expected[ids[a], ids[b]] += 1 / abs(a - b)
    found = counted({"a": (corpus, 1.0)}, KEPT, 4, tmp_path, seed=3, run=run)
    words, others, counts = found.part(0, len(found))
    table = np.zeros((V, V))
    table[words, others] = counts
    assert len(found) == np.count_nonzero(expected)
    assert np.abs(table - expected).max() < 1e-9
    assert not (np.diff(words * V + others) > 0).all(), "in random order"
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.npy"]


def test_text_without_pairs_is_refused(tmp_path: Path) -> None:
    corpus = MemoryCorpus([[[7]], [[8]]])
    with pytest.raises(ContractViolation, match="no document has two words"):
        counted({"a": (corpus, 1.0)}, KEPT, 4, tmp_path, seed=0)


def test_gradients_are_those_of_the_weighted_squares() -> None:
    rng = np.random.default_rng(0)
    parts = {
        "words": rng.normal(size=(6, 3)),
        "context": rng.normal(size=(6, 3)),
        "words_bias": rng.normal(size=(6, 1)),
        "context_bias": rng.normal(size=(6, 1)),
    }
    words, others = np.array([0, 2, 2, 5]), np.array([1, 2, 4, 5])
    counts, settings = np.array([0.5, 12.0, 3.0, 200.0]), Squares(5, 100.0, 0.75, 0.05)

    def loss() -> float:
        total = 0.0
        for i, j, x in zip(words, others, counts, strict=True):
            product = parts["words"][i] @ parts["context"][j]
            missing = product + parts["words_bias"][i, 0] + parts["context_bias"][j, 0] - np.log(x)
            total += min(1.0, (x / 100) ** 0.75) * missing**2
        return total

    found, gradients = squares(parts, words, others, counts, settings)
    assert found == pytest.approx(loss(), rel=1e-12)
    for name, array in parts.items():
        rows, whole = (words if name.startswith("words") else others), np.zeros_like(array)
        np.add.at(whole, rows, gradients[name])
        for place in np.ndindex(array.shape):
            kept, losses = array[place], []
            for step in (1e-6, -1e-6):
                array[place] = kept + step
                losses.append(loss())
            array[place] = kept
            slope = (losses[0] - losses[1]) / 2e-6
            assert 2 * whole[place] == pytest.approx(slope, abs=1e-6)


def test_adagrad_divides_by_the_root_of_all_squares_so_far() -> None:
    array, squared = np.zeros((3, 2)), np.ones((3, 2))
    gradients = np.array([[1.0, 2.0], [3.0, 0.0], [1.0, 1.0]])
    descend(array, squared, np.array([2, 2, 0]), gradients, 0.5)
    assert np.allclose(squared, [[2.0, 2.0], [1.0, 1.0], [11.0, 5.0]])
    expected = [[-0.5 / 2**0.5, -0.5 / 2**0.5], [0, 0], [-2 / 11**0.5, -1 / 5**0.5]]
    assert np.allclose(array, expected)


def test_a_stage_killed_before_it_reports_its_rows_reports_them_when_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(Recorder):
        def metrics(self, rows: Any) -> None:
            if rows:
                raise KeyboardInterrupt

    monkeypatch.setattr("models.vectors.squares.LOGS", 3)  # rows of several updates each
    job = {
        "family": "glove",
        "network": {"hidden_dim": 4},
        "phases": [Phase(32)],
        "objectives": {"glove": {"window": 3}},
        "budget": Budget("epochs", 24),
        "corpora": {"a": (Corpus(20, 1), 1.0)},
    }
    train(pretraining(**job), tmp_path / "whole", whole := Recorder())
    with pytest.raises(Interrupted):  # after the first update
        train(pretraining(**job, deadline_seconds=0.0), tmp_path / "parts", Recorder())
    with pytest.raises(KeyboardInterrupt):
        train(pretraining(**job), tmp_path / "parts", Killed())
    train(pretraining(**job), tmp_path / "parts", rest := Recorder())
    assert len(whole.rows) >= 3
    assert rest.rows == whole.rows


def test_a_stage_learns_resumes_with_the_same_bits_and_is_fine_tuned(tmp_path: Path) -> None:
    given = {
        "family": "glove",
        "network": {"hidden_dim": 16},
        "phases": [Phase(32)],
        "objectives": {"glove": {"window": 3}},
        "budget": Budget("epochs", 12),
        "corpora": {"a": (Corpus(60, 1), 1.0)},
    }
    outcome = train(pretraining(**given), tmp_path / "whole")
    with pytest.raises(Interrupted):
        train(pretraining(**given, deadline_seconds=0.0), tmp_path / "parts")
    resumed = train(pretraining(**given), tmp_path / "parts")
    assert (tmp_path / "whole" / NETWORK).read_bytes() == (
        tmp_path / "parts" / NETWORK
    ).read_bytes()
    assert outcome.steps == resumed.steps
    assert not (tmp_path / "whole" / COUNTS).exists()
    rows = load_file(head_file(tmp_path / "whole", "glove"))
    table = load_file(tmp_path / "whole" / NETWORK)["token/embeddings"]
    assert np.array_equal(table, rows["words"] + rows["context"])
    second = train(pretraining(**given, initial=tmp_path / "whole"), tmp_path / "second")
    losses = [each.metrics["last"]["loss"] for each in (outcome, second)]
    assert losses[1] < losses[0]
    train(
        finetuning(tmp_path / "second", family="glove", network={"hidden_dim": 16}),
        tmp_path / "tuned",
    )
