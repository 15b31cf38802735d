"""Link prediction: the place of a triple's tail among all entities, and that of its head.

Entities that make another known triple are left out of the ranking, because they are no mistakes
(the paper's "filtered" setting). Of equally distant entities the true one is in the middle, so that
vectors that are all the same have the mean rank of guessing.

Reference:
    Bordes et al. 2013, "Translating Embeddings for Modeling Multi-relational Data", NIPS, 4.2;
    equal distances: Sun et al. 2020, arXiv 1911.03903, section 4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fourstage.errors import ContractViolation
from models import catalogue
from models.protocols import TokenisedRows, Tokenizer
from models.training.trained_stage import load_stage
from models.vectors.translation import L1, L2
from models.vectors.triples import entities_of, known, triples_of
from models.weights import array_of

BLOCK = 64  # questions answered at a time
HITS = (1, 3, 10)
_SCIPY: dict[str, Any] = {L1: "cityblock", L2: "euclidean"}


@dataclass(frozen=True)
class Links:
    """Places of heads and tails.

    Attributes:
        ranks: (n, 2) of each triple's head and tail, from 1.
        entities: Number of entities that were ranked.
        unknown: Number of triples with a name that is not in the vocabulary; their heads and tails
            count as the last.
    """

    ranks: np.ndarray
    entities: int
    unknown: int


def link_ranks(
    folder: Path,
    tokenizer: Tokenizer,
    asked: TokenisedRows,
    every: TokenisedRows,
    folders: Sequence[Path] = (),
) -> Links:
    """Ranks of the heads and tails of rows by a trained stage's vectors.

    Args:
        folder: A stage trained with an objective that has ``READS_TRIPLES``.
        tokenizer: The recipe's tokenizer.
        asked: Rows of triples.
        every: The rows of all splits: their triples are known, their heads and tails are ranked.
        folders: Project folders, searched first.

    Raises:
        ContractViolation: There are no triples that could be ranked.
    """
    stage = load_stage(folder, tokenizer, precision="float32", folders=folders)
    of_triples = catalogue.saying("objectives", "READS_TRIPLES", folders)
    learned = next(name for name in stage.config["objectives"] if name in of_triples)
    settings = stage.objective(learned, folders).settings
    triples, true = _triples(asked), _triples(every)
    has_place = known(triples, tokenizer.unknown_id)
    if not has_place.any():
        raise ContractViolation(
            f"none of {len(triples):,} triples has three names of the vocabulary, so there is"
            " nothing to rank; learn the vocabulary from text with all entities"
        )
    true = true[known(true, tokenizer.unknown_id)]
    entities = entities_of([true])
    ranks = np.full((len(triples), 2), float(len(entities)))
    vectors = array_of(stage.network.token_embedding.embeddings)
    ranks[has_place] = filtered_ranks(
        vectors, triples[has_place], true, entities, settings.distance
    )
    return Links(ranks, len(entities), int((~has_place).sum()))


def filtered_ranks(
    vectors: np.ndarray,
    asked: np.ndarray,
    true: np.ndarray,
    entities: np.ndarray,
    distance: str = L1,
) -> np.ndarray:
    """Ranks of the heads and of the tails of triples, from 1.

    Args:
        vectors: (V, D) of entities and relations.
        asked: (n, 3) triples of known names.
        true: (m, 3) all known triples: training, held-out and asked ones.
        entities: (E,) ids that are ranked, ascending; all heads and tails of known triples.
        distance: ``l1`` or ``l2``, that of training.

    Returns:
        (n, 2): of the head, given relation and tail, and of the tail, given head and relation.
    """
    from scipy.spatial.distance import cdist

    vectors = vectors.astype(np.float64)
    table = vectors[entities]
    ranks = np.empty((len(asked), 2))
    for side, (given, wanted, sign) in enumerate(((2, 0, -1.0), (0, 2, 1.0))):
        others = _answers(true, given, wanted)
        for first in range(0, len(asked), BLOCK):
            some = asked[first : first + BLOCK]
            places = vectors[some[:, given]] + sign * vectors[some[:, 1]]  # (b, D)
            apart = cdist(places, table, _SCIPY[distance])  # (b, E)
            for row, triple in enumerate(some):
                place = np.searchsorted(entities, triple[wanted])
                own = apart[row, place]
                answers = others[triple[given], triple[1]]
                apart[row, np.searchsorted(entities, answers)] = np.inf
                nearer, alike = (apart[row] < own).sum(), (apart[row] == own).sum()
                # The true one itself was left out among the known ones.
                ranks[first + row, side] = 1.0 + nearer + alike / 2.0
    return ranks


def link_scores(ranks: np.ndarray) -> dict[str, float]:
    """Scores of ranks (…): ``mean_rank``, ``mrr`` and ``hits_at_1``, ``_3`` and ``_10``, 0-1."""
    return {
        "mean_rank": float(ranks.mean()),
        "mrr": float((1.0 / ranks).mean()),
        **{f"hits_at_{most}": float((ranks <= most).mean()) for most in HITS},
    }


def _triples(rows: TokenisedRows) -> np.ndarray:
    """The triples of rows, (n, 3)."""
    texts = (np.concatenate(rows.texts(i)) for i in range(len(rows)))
    return triples_of("rows whose ends are to be ranked", texts)


def _answers(triples: np.ndarray, given: int, wanted: int) -> dict[tuple[int, int], np.ndarray]:
    """{(entity, relation): the entities at the other end of known triples}."""
    found: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for triple in triples.tolist():
        found[triple[given], triple[1]].add(triple[wanted])
    return {key: np.array(sorted(ends)) for key, ends in found.items()}
