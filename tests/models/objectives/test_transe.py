"""TransE from triples to ranks: what it learns, how it goes on, and what it refuses."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from fourstage.errors import ContractViolation, Interrupted, RecipeError
from models.catalogue import check_compatible, literals
from models.evaluation.heldout import has_objective, heldout_losses
from models.evaluation.link_prediction import link_ranks, link_scores
from models.stage_format import NETWORK
from models.tokenizers.name import Name
from models.tokenizers.wordpiece import SPECIAL_TOKENS
from models.training.job import TrainingJob
from models.training.stage import Budget, Phase
from models.training.trainer import train
from models.vectors.graph import batches_of
from models.vectors.translation import DISTANCES
from tests.models.memory_corpus import MemoryCorpus, MemoryRows
from tests.models.training.memory import Recorder, pretraining

MEMBERS, GROUPS = 40, 8
NAMES = [*(f"m/{i}" for i in range(MEMBERS)), *(f"g/{i}" for i in range(GROUPS))]
TOKENIZER = Name([*SPECIAL_TOKENS, *NAMES, "_in", "_with"], lowercase=False)
FIRST = len(SPECIAL_TOKENS)  # the first entity
IN, WITH = FIRST + len(NAMES), FIRST + len(NAMES) + 1


def clubs() -> np.ndarray:
    """Who is in which group, and who is with whom there."""
    group = np.arange(MEMBERS) % GROUPS
    pairs = [
        (i, WITH - FIRST, j) for i in range(MEMBERS) for j in range(i % GROUPS, MEMBERS, GROUPS)
    ]
    found = [(i, IN - FIRST, MEMBERS + group[i]) for i in range(MEMBERS)]
    found += [pair for pair in pairs if pair[0] != pair[2]]
    return FIRST + np.array(found, np.int32)


def graph(triples: Any) -> MemoryCorpus:
    """Triples as documents."""
    return MemoryCorpus([[list(triple)] for triple in triples])


ORDER = np.random.default_rng(0).permutation(len(clubs()))
TRAIN, TEST = clubs()[ORDER[8:]], clubs()[ORDER[:8]]


def a_job(**changes: Any) -> TrainingJob:
    settings: dict[str, Any] = {
        "family": "transe",
        "network": {"hidden_dim": 12},
        "tokenizer": TOKENIZER,
        "phases": [Phase(8)],
        "batch_size": 8,
        "objectives": {"transe": {"distance": "l2", "learning_rate": 0.05}},
        "budget": Budget("epochs", 20),
        "corpora": {"clubs": (graph(TRAIN), 1.0)},
        "heldout": {},
        "checkpoint_every": None,
    }
    return pretraining(**(settings | changes))


def rows(triples: np.ndarray) -> MemoryRows:
    return MemoryRows([(triple.tolist(), "-") for triple in triples])


def ranks(folder: Path, asked: np.ndarray = TEST) -> dict[str, float]:
    return link_scores(link_ranks(folder, TOKENIZER, rows(asked), rows(clubs())).ranks)


def test_a_stage_learns_and_ranks_what_it_has_not_seen(tmp_path: Path) -> None:
    told = Recorder()
    done = train(a_job(budget=Budget("epochs", 60)), tmp_path / "long", told)
    train(a_job(budget=Budget("steps", 1)), tmp_path / "short")
    assert done.steps == 60 * -(-len(TRAIN) // 8)
    assert done.tokens == 60 * 3 * len(TRAIN)
    assert done.passes == {"clubs": pytest.approx(60)}
    assert done.metrics["triples"] == {"clubs": len(TRAIN)}
    assert [row["step"] for row in told.rows] == sorted(row["step"] for row in told.rows)
    assert told.rows[-1]["loss"] < told.rows[0]["loss"] / 3
    assert told.rows[-1]["tokens"] == done.tokens

    table = load_file(tmp_path / "long" / NETWORK)["token/embeddings"]
    assert np.linalg.norm(table[FIRST:IN], axis=1) == pytest.approx(1.0, abs=1e-5)
    after, before = ranks(tmp_path / "long"), ranks(tmp_path / "short")
    assert after["hits_at_3"] > 0.9 > 0.3 > before["hits_at_3"]
    assert after["mean_rank"] < 3 < 10 < before["mean_rank"]

    assert has_objective(tmp_path / "long", "transe")
    heldout = {"clubs": graph(TEST)}
    losses = [
        heldout_losses(tmp_path / name, TOKENIZER, heldout, objective="transe")["clubs"]
        for name in ("long", "short")
    ]
    assert losses[0]["loss"] < losses[1]["loss"]
    assert losses[0]["accuracy"] > 0.8


def test_a_stopped_stage_ends_with_the_same_bits(tmp_path: Path) -> None:
    train(a_job(), tmp_path / "whole", whole := Recorder())

    class Stops(Recorder):
        def progress(self, step: int, total: int, scalars: dict) -> None:
            if step > total // 2:
                os.kill(os.getpid(), signal.SIGTERM)

    told = Stops()
    with pytest.raises(Interrupted, match="stopped by SIGTERM at step"):
        train(a_job(), tmp_path / "stopped", told)
    again = Recorder()
    train(a_job(), tmp_path / "stopped", again)
    files = [(tmp_path / name / NETWORK).read_bytes() for name in ("whole", "stopped")]
    assert files[0] == files[1]
    steps = [row["step"] for row in told.rows + again.rows]
    assert steps == [row["step"] for row in whole.rows]


def test_rows_that_a_killed_stage_had_not_reported_are_reported_when_it_goes_on(
    tmp_path: Path,
) -> None:
    class Killed(Recorder):
        def metrics(self, rows: Any) -> None:
            raise KeyboardInterrupt

    train(a_job(), tmp_path / "whole", whole := Recorder())
    with pytest.raises(KeyboardInterrupt):
        train(a_job(), tmp_path / "killed", Killed())
    train(a_job(), tmp_path / "killed", again := Recorder())
    assert [row["step"] for row in again.rows] == [row["step"] for row in whole.rows]
    assert [row["loss"] for row in again.rows] == [row["loss"] for row in whole.rows]


def test_a_further_stage_goes_on_with_its_vectors(tmp_path: Path) -> None:
    train(a_job(), tmp_path / "first")
    some = {"row": (graph(TRAIN[TRAIN[:, 1] == IN]), 1.0)}
    train(a_job(initial=tmp_path / "first", corpora=some), tmp_path / "second")
    first, second = (
        load_file(tmp_path / name / NETWORK)["token/embeddings"] for name in ("first", "second")
    )
    assert (first[WITH] == second[WITH]).all()  # no triple of the second stage has it
    assert (first[IN] != second[IN]).any()


def test_names_that_are_not_in_the_vocabulary_leave_their_triples_out(tmp_path: Path) -> None:
    strange = TRAIN.copy()
    strange[:5, 0] = TOKENIZER.unknown_id
    done = train(a_job(corpora={"clubs": (graph(strange), 1.0)}), tmp_path)
    assert done.metrics["triples_with_unknown_names"] == 5
    asked = TEST.copy()
    asked[2, 2] = TOKENIZER.unknown_id
    found = link_ranks(tmp_path, TOKENIZER, rows(asked), rows(np.concatenate([strange, asked])))
    assert found.unknown == 1
    assert found.ranks[2].tolist() == [found.entities] * 2


@pytest.mark.parametrize(
    ("triples", "error", "told"),
    [
        ([*TRAIN, [5, 6]], ContractViolation, r"text number \d+ has 2 tokens.*`scheme: name`"),
        ([[1, IN, 6]], ContractViolation, "none of 1 triples has three names of the voc"),
        ([*TRAIN, [5, 6, 7]], ContractViolation, "1 names are entities of some triples and rel"),
    ],
    ids=["two names", "nothing known", "both roles"],
)
def test_what_is_no_graph_is_refused(tmp_path: Path, triples, error, told) -> None:
    with pytest.raises(error, match=told):
        train(a_job(corpora={"clubs": (graph(triples), 1.0)}), tmp_path)


def test_a_budget_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="1 tokens are less than one update"):
        train(a_job(budget=Budget("tokens", 1)), tmp_path)


def test_graphs_take_turns_by_their_shares() -> None:
    graphs = {"a": np.zeros((10, 3)), "b": np.zeros((4, 3))}
    order = batches_of(graphs, {"a": 0.25, "b": 0.75}, 2, 7)
    taken = [next(order) for _ in range(80)]
    assert 0.7 < sum(name == "b" for name, _ in taken) / 80 < 0.8
    read = [numbers for name, numbers in taken if name == "b"]
    for first in range(0, len(read) - 1, 2):  # two batches are a pass
        assert sorted(np.concatenate(read[first : first + 2])) == [0, 1, 2, 3]
    again = batches_of(graphs, {"a": 0.25, "b": 0.75}, 2, 7)
    assert all(
        name == other and (numbers == same).all()
        for (name, numbers), (other, same) in zip(taken, again, strict=False)
    )


def test_a_recipe_knows_its_distances() -> None:
    assert literals("objectives", "transe")["DISTANCES"] == DISTANCES


def test_it_trains_alone_and_any_table_of_vectors() -> None:
    check_compatible("transe", ["transe"])
    check_compatible("word2vec", ["transe"])
    with pytest.raises(RecipeError, match="'transe' trains the network itself"):
        check_compatible("transe", ["transe", "skip_gram"])
    with pytest.raises(RecipeError, match="needs static"):
        check_compatible("bert", ["transe"])
