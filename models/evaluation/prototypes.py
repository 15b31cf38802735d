"""Few-shot classification by prototypes, of a network that has learned nothing about the classes.

An episode draws N classes, K rows of each as support and one more row of each as a query. The mean
of the support's vectors is a class's prototype, and the nearest prototype is the answer. Nothing is
trained: the authors train the network on episodes of other classes.

References:
    Snell et al. 2017, arXiv 1703.05175 (2.3, prototypes and Euclidean distance); Han et al. 2018,
    arXiv 1810.10147 (N-way K-shot classification of relations).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fourstage.errors import ContractViolation, listed
from fourstage.label_order import in_order
from models.evaluation.ngram_features import PARTS, Columns, Grams, stacked
from models.evaluation.probe import RowVectors, features_of
from models.inputs.rows import mark_ids
from models.protocols import Context, TokenisedRows, Tokenizer
from models.training.trained_stage import load_stage

MOST_ROWS = 4000  # more take longer and need memory by their square; the scores hardly change
SEED = 0  # one for all networks, so that all are asked the same
ALIKE = 1e-9  # of the largest squared length: distances that differ by less are rounded, not told
NORMAL = 1.96  # standard errors to the ends of a 95 % interval


@dataclass(frozen=True)
class Episode:
    """Row numbers of an episode.

    Attributes:
        support: (N, K), a row of numbers for each class.
        queries: (N,), one of each class.
    """

    support: np.ndarray
    queries: np.ndarray


@dataclass(frozen=True)
class Share:
    """Share of queries that were answered right.

    Attributes:
        accuracy: Mean over episodes, 0-1.
        reach: From it to either end of its 95 % interval over episodes of these rows.
    """

    accuracy: float
    reach: float


def drawn_rows(labels: Sequence[str]) -> np.ndarray:
    """(n,) ascending numbers of the rows that episodes are drawn from.

    All with a label, but of many rows `MOST_ROWS` at most, and as many of each class.

    Args:
        labels: (rows,) labels, "" for none.
    """
    every, names = np.asarray(labels, object), in_order(label for label in labels if label)
    rng = np.random.default_rng([SEED, len(every)])
    found = [rng.permutation(np.flatnonzero(every == name)) for name in names]
    if sum(map(len, found)) > MOST_ROWS:
        found = [rows[: MOST_ROWS // len(names)] for rows in found]
    return np.sort(np.concatenate(found or [np.zeros(0, int)]))


def rows_by_class(labels: Sequence[str], ways: int, shots: int) -> list[np.ndarray]:
    """Numbers of the rows of each class.

    Args:
        labels: (rows,) labels.
        ways: N, classes in an episode.
        shots: K, rows that represent each.

    Raises:
        ContractViolation: There are too few classes, or too few rows of one.
    """
    every = np.asarray(labels, object)
    names = in_order(labels)
    if len(names) < ways:
        raise ContractViolation(
            f"evaluate.prototypes: expected {ways} classes or more for {ways} ways, got"
            f" {len(names)} in these rows; ask for fewer ways"
        )
    found = [np.flatnonzero(every == name) for name in names]
    few = [name for name, rows in zip(names, found, strict=True) if len(rows) <= shots]
    if few:
        raise ContractViolation(
            f"evaluate.prototypes: expected {shots + 1} rows or more of each class, {shots} shots"
            f" and a query, got fewer of {listed(few, 5)}; ask for fewer shots"
        )
    return found


def draw(classes: Sequence[np.ndarray], ways: int, shots: int, number: int) -> Episode:
    """An episode; the same arguments always give the same one.

    Args:
        classes: Row numbers of each class, more than `shots`.
        ways: N, classes to draw.
        shots: K, rows of support to draw of each, beside the query.
        number: The episode's number.
    """
    rng = np.random.default_rng([SEED, ways, shots, number])
    drawn = rng.choice(len(classes), ways, replace=False)
    rows = np.array([rng.choice(classes[each], shots + 1, replace=False) for each in drawn])
    return Episode(rows[:, 1:], rows[:, 0])


def inner_products(vectors: Any) -> np.ndarray:
    """(rows, rows) float64 of vectors (rows, D), dense or sparse."""
    products = vectors @ vectors.T
    return products if isinstance(products, np.ndarray) else products.toarray()


def nearest(products: np.ndarray, episode: Episode) -> np.ndarray:
    """The class of the prototype nearest to each query, (N,) numbers from 0.

    Of prototypes equally near, the first one: vectors that tell nothing apart answer one query in
    N right.

    Args:
        products: (rows, rows) inner products of the rows' vectors.
        episode: An episode of these rows.
    """
    support, queries = episode.support, episode.queries
    # |q - p|² is |q|² - 2 q·p + |p|², and products with a mean are means of products.
    lengths = products[support[:, :, None], support[:, None, :]].mean((1, 2))  # (N,) |p|²
    apart = lengths - 2.0 * products[queries[:, None, None], support].mean(2)  # (N queries, N)
    largest = products[queries, queries].max()
    return (apart <= apart.min(1, keepdims=True) + ALIKE * largest).argmax(1)


def answered(products: np.ndarray, episodes: Sequence[Episode]) -> np.ndarray:
    """`nearest` of each episode, (episodes, N)."""
    return np.array([nearest(products, episode) for episode in episodes])


def share(said: np.ndarray) -> Share:
    """The share of right answers; of query i, class i is right.

    Args:
        said: (episodes, N) classes, of two episodes or more.
    """
    right = (said == np.arange(said.shape[1])).mean(1)
    return Share(float(right.mean()), NORMAL * float(right.std(ddof=1) / np.sqrt(len(right))))


def network_vectors(
    folder: Path,
    tokenizer: Tokenizer,
    rows: TokenisedRows,
    numbers: np.ndarray,
    markings: Sequence[str] = (),
    folders: Sequence[Path] = (),
) -> np.ndarray:
    """(n, D) float64: the mean of each row's token vectors by a finished stage.

    Rows are framed as for fine-tuning, and entities that they name are given to a network that
    reads them.

    Args:
        folder: The stage's folder.
        tokenizer: The recipe's tokenizer.
        rows: The rows.
        numbers: (n,) numbers of those that are read.
        markings: Marker strings in their texts.
        folders: Project folders, searched first.
    """
    stage = load_stage(folder, tokenizer, precision="float32", folders=folders)
    context = Context(
        tokenizer,
        stage.config["sequence_length"],
        marks=mark_ids(tokenizer, markings),
        network=stage.network.provides,
    )
    model = RowVectors(stage.network)
    model.ready()
    return features_of(model, rows, numbers, context).astype(np.float64)


def counted_vectors(train: Columns, asked: Columns, markings: Sequence[str]) -> Any:
    """(rows, D) sparse: TF-IDF of words and characters, the cheap baseline's vectors.

    Args:
        train: Texts of which n-grams and weights are learned, without labels.
        asked: Texts of the rows.
        markings: Marker strings in them.
    """
    grams = [Grams(of, markings) for of in PARTS["both"]]
    for each in grams:
        each.fit(train)
    return stacked([each.of(asked) for each in grams])
