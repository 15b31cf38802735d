"""Ranks of heads and tails, against a search through all entities one by one."""

from __future__ import annotations

import numpy as np
import pytest

from models.evaluation.link_prediction import filtered_ranks, link_scores
from models.vectors.translation import DISTANCES

ENTITIES = [3, 4, 6, 7, 8, 11, 12]  # of which ids are entities; 5 and 9 are relations


def graph(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors on a grid, so that distances are often equal, and triples with common ends."""
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-1, 2, (13, 2)).astype(np.float32)
    every = [(h, r, t) for h in ENTITIES for r in (5, 9) for t in ENTITIES]
    chosen = rng.choice(len(every), 40, replace=False)
    return vectors, np.array([every[i] for i in sorted(chosen)], np.int32)


def brute_force(vectors: np.ndarray, asked, true, distance: str) -> np.ndarray:
    """Every entity in the place of the head and of the tail, unless that makes a known triple."""
    known = set(map(tuple, true.tolist()))
    order = 1 if distance == "l1" else 2

    def apart(h: int, r: int, t: int) -> float:
        return float(np.linalg.norm(vectors[h] + vectors[r] - vectors[t], ord=order))

    found = []
    for triple in map(tuple, asked.tolist()):
        ranks = []
        for side in (0, 2):
            better = alike = 0
            for entity in ENTITIES:
                other = list(triple)
                other[side] = entity
                if tuple(other) in known:
                    continue
                better += apart(*other) < apart(*triple)
                alike += apart(*other) == apart(*triple)
            ranks.append(1 + better + alike / 2)
        found.append(ranks)
    return np.array(found)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("distance", DISTANCES)
def test_ranks_are_those_of_a_search_through_all_entities(distance, seed):
    vectors, true = graph(seed)
    asked = true[::3]
    found = filtered_ranks(vectors, asked, true, np.array(ENTITIES), distance)
    expected = brute_force(vectors, asked, true, distance)
    assert (found == expected).all()
    assert len(np.unique(expected)) > 3


def test_a_known_answer_that_is_nearer_costs_no_rank():
    vectors = np.array([[0.0], [1.0], [1.0], [1.1], [5.0]])  # entity, relation, three entities
    asked, other = np.array([[0, 1, 3]]), np.array([[0, 1, 2]])
    entities = np.array([0, 2, 3, 4])
    assert filtered_ranks(vectors, asked, asked, entities)[0, 1] == 2
    assert filtered_ranks(vectors, asked, np.concatenate([asked, other]), entities)[0, 1] == 1


def test_vectors_that_are_all_the_same_have_the_mean_rank_of_guessing():
    vectors, true = graph(0)
    one = true[:1]
    ranks = filtered_ranks(np.ones_like(vectors), one, one, np.array(ENTITIES))
    assert (ranks == (1 + len(ENTITIES)) / 2).all()


def test_scores_are_means_over_heads_and_tails():
    found = link_scores(np.array([[1.0, 2.0], [10.0, 11.5]]))
    assert found == {
        "mean_rank": 6.125,
        "mrr": pytest.approx((1 + 1 / 2 + 1 / 10 + 1 / 11.5) / 4),
        "hits_at_1": 0.25,
        "hits_at_3": 0.5,
        "hits_at_10": 0.75,
    }
