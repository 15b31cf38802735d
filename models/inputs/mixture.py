"""A mixture of tasks: rows of other datasets as texts to write, each behind a prefix of its own.

    dataset     reads                                                   writes
    multi30k    translate English to German: A plane lands.             Ein Flugzeug landet.
    sst2        sst2 sentence: A gripping film.                         positive
    stsb_en     stsb: A plane lands. [SEP] A plane is landing.          4.8

A dataset of n rows is read in proportion to min(n, K)^(1/T): with T = 1 as often as it has rows, up
to the artificial limit K; the higher the temperature T, the more alike are the rates. A limit of 1
mixes all of them equally.

Reference:
    Raffel et al. 2020, arXiv 1910.10683, 2.4 for prefixes and numbers, 3.5.2 for rates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from models.protocols import TokenisedRows, Tokenizer
from models.stage_format import MIXTURE

# Kinds of answers that can be written as a text.
WRITTEN = ("label", "number", "text")


def written(kind: str, answer: str) -> str:
    """An answer as one of the kind ``text``: a JSON array of texts; "" stays, for a row without.

    Args:
        kind: One of `WRITTEN`. A label is its name, a number is rounded to steps of 0.2.
        answer: As the dataset writes it.

    Example:
        >>> written("number", "2.57")
        '["2.6"]'
    """
    if kind == "text" or not answer:
        return answer
    text = f"{round(5 * float(answer)) / 5:.1f}" if kind == "number" else answer
    return json.dumps([text], ensure_ascii=False)


def rates(
    sizes: Mapping[str, int], limit: int | None = None, temperature: float = 1.0
) -> dict[str, float]:
    """{dataset: its share of the examples}, summing to 1.

    Args:
        sizes: {dataset: number of its rows}, from 1.
        limit: K, the artificial limit on a dataset's size; None for none.
        temperature: T, from 1.
    """
    # Relative to the largest, so that no power is out of range.
    counted = {name: min(size, limit or size) for name, size in sizes.items()}
    largest = max(counted.values())
    powers = {name: (size / largest) ** (1 / temperature) for name, size in counted.items()}
    total = sum(powers.values())
    return {name: power / total for name, power in powers.items()}


class PrefixedRows:
    """Training rows of another dataset as texts to write.

    Attributes:
        where: Place of the prefix in a stage, for messages.
        prefix: (n,) int32 token ids of the text before each row's first.
        answers: (rows,) answers of the kind ``text``.

    Args:
        rows: The rows.
        kind: Their kind of answer, one of `WRITTEN`.
        where: Place of the prefix in a stage.
        prefix: Token ids of the prefix.
    """

    most_regions = 0  # pictures are not seen

    def __init__(self, rows: TokenisedRows, kind: str, where: str, prefix: np.ndarray):
        self._rows = rows
        self.where = where
        self.prefix = prefix
        self.answers: Sequence[str] = [written(kind, answer) for answer in rows.answers]

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def ids(self) -> Sequence[str]:
        """(rows,) ids of the rows in the dataset."""
        return self._rows.ids

    def texts(self, i: int) -> tuple[np.ndarray, ...]:
        """Token ids of row `i`, without the prefix."""
        return self._rows.texts(i)


def tasks_beside(
    mixture: Mapping[str, Any], rows: Mapping[str, TokenisedRows], tokenizer: Tokenizer
) -> dict[str, PrefixedRows]:
    """{dataset: its rows as texts to write} of the datasets beside a stage's own.

    Args:
        mixture: The stage's settings (`models.training.stage.StageSettings.mixture`).
        rows: {dataset: its training rows}.
        tokenizer: The recipe's.
    """
    beside = mixture["beside"]
    prefixes = tokenizer.encode([said["prefix"] for said in beside.values()])
    return {
        name: PrefixedRows(rows[name], said["answers"], f"mixture.beside.{name}", prefix)
        for (name, said), prefix in zip(beside.items(), prefixes, strict=True)
    }


def known_prefixes(config: Mapping[str, Any]) -> list[str]:
    """The prefixes of all tasks that a stage's head has learned, that of its own dataset first.

    Args:
        config: The stage's ``config.json``.
    """
    own = [settings.get("prefix") for settings in (config["head"] or {}).values()]
    beside = config.get(MIXTURE, {}).get("beside", {}).values()
    return [
        prefix
        for prefix in (*own, *(said["prefix"] for said in beside))
        if prefix and prefix.strip()
    ]


def mixed(
    own: str,
    rows: TokenisedRows,
    beside: Mapping[str, PrefixedRows],
    mixture: Mapping[str, Any],
) -> dict[str, tuple[Any, float]]:
    """{dataset: (its rows, its share of the examples)}, as `models.inputs.batches` takes it.

    Args:
        own: Name of the stage's dataset.
        rows: Its training rows.
        beside: Those of the others, by name.
        mixture: The stage's settings.
    """
    every: dict[str, Any] = {own: rows, **beside}
    sizes = {name: len(each) for name, each in every.items()}
    shares = rates(sizes, mixture["limit"], mixture["temperature"])
    return {name: (each, shares[name]) for name, each in every.items()}
