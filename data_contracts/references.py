"""Replaces ``$REFERENCE`` in a suite by statistics of the source in an earlier run.

    "quantile_ranges": {"$REFERENCE": {"quantiles": [0.1, 0.5, 0.9], "within": 0.3, "margin": 20}}
    "partition_object": {"$REFERENCE": {"bins": 10}}

The first becomes ranges around the quantiles of the reference. `within` is a share of each
quantile, `margin` an absolute number; the wider of the two applies. The second becomes the
distribution of the reference, over that many bins of equal weight or, without `bins`, over the
values themselves, such as labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from data_contracts.strict import Strict

if TYPE_CHECKING:
    import pandas as pd

REFERENCE = "$REFERENCE"


class QuantilesOfReference(Strict):
    """Ranges around the quantiles of the reference."""

    quantiles: Annotated[
        tuple[Annotated[float, Field(ge=0, le=1)], ...], Field(strict=False, min_length=1)
    ]
    within: Annotated[float, Field(ge=0)] = 0.0
    margin: Annotated[float, Field(ge=0)] = 0.0

    @model_validator(mode="after")
    def _check(self) -> QuantilesOfReference:
        if list(self.quantiles) != sorted(set(self.quantiles)):
            raise PydanticCustomError("reference", "expected 'quantiles' in ascending order")
        if not self.within and not self.margin:
            raise PydanticCustomError("reference", "expected 'within', 'margin' or both")
        return self

    def of(self, column: pd.Series) -> dict[str, Any]:
        """Great Expectations' ``quantile_ranges``."""
        found = [float(column.quantile(q, interpolation="nearest")) for q in self.quantiles]
        slack = [max(self.within * abs(value), self.margin) for value in found]
        ranges = [[value - s, value + s] for value, s in zip(found, slack, strict=True)]
        return {"quantiles": list(self.quantiles), "value_ranges": ranges}


class PartitionOfReference(Strict):
    """The distribution of the reference."""

    bins: Annotated[int, Field(ge=2, le=100)] | None = None

    def of(self, column: pd.Series) -> dict[str, Any]:
        """Great Expectations' ``partition_object``."""
        if self.bins is None:
            shares = column.value_counts(normalize=True).sort_index()
            return {"values": shares.index.tolist(), "weights": shares.tolist()}
        import numpy as np

        # At values that are there: no bin is empty, in which one value would be infinitely far.
        shares = np.linspace(0, 1, self.bins + 1)
        edges = np.unique(np.quantile(column.to_numpy(float), shares, method="nearest"))
        if len(edges) < 2:  # a single value
            edges = np.array([edges[0] - 0.5, edges[0] + 0.5])
        counts, _ = np.histogram(column, edges)
        return {"bins": edges.tolist(), "weights": (counts / counts.sum()).tolist()}


# The form of `$REFERENCE` for each argument that allows one.
OF_REFERENCE: Mapping[str, type[QuantilesOfReference] | type[PartitionOfReference]] = {
    "quantile_ranges": QuantilesOfReference,
    "partition_object": PartitionOfReference,
}


def reads_reference(kwargs: Mapping[str, Any]) -> bool:
    """Whether a promise compares with a reference."""
    return any(isinstance(value, dict) and REFERENCE in value for value in kwargs.values())


def with_reference(kwargs: Mapping[str, Any], reference: pd.DataFrame | None) -> dict[str, Any]:
    """The arguments of an expectation with every ``$REFERENCE`` replaced.

    Args:
        kwargs: The checked arguments of the suite.
        reference: The rows kept in the earlier run.

    Returns:
        The arguments; unchanged if there is no reference, or it has no value in the column.
    """
    filled = dict(kwargs)
    for name, kind in OF_REFERENCE.items():
        value = kwargs.get(name)
        if not isinstance(value, dict) or REFERENCE not in value:
            continue
        if reference is None or kwargs["column"] not in reference:
            return dict(kwargs)
        column = cast("pd.Series", reference[kwargs["column"]]).dropna()
        if column.empty:
            return dict(kwargs)
        filled[name] = kind.model_validate(value[REFERENCE]).of(column)
    return filled
