"""Columns computed from a profile's own, for use in suites.

- `label_share` (from `label`, `split`): share of the training rows with this row's label, 0-1.
- `label_rows` (from `label`, `split`): number of training rows with this row's label.
- `splits_without_label` (from `label`, `split`): in how many of the table's splits no row has this
  row's label.
- `label_spellings` (from `label`): number of its spellings (case, width, spaces) in the table.
- `duplicate_share` (from `num_duplicates`): share of the documents that were removed as duplicates
  of a kept one, 0-1; the same in every row.
- `empty_text_pair` (from `text_pair_chars`): whether the row has an empty second text.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import pandas as pd

DERIVED = {
    "label_share": ("label", "split"),
    "label_rows": ("label", "split"),
    "splits_without_label": ("label", "split"),
    "label_spellings": ("label",),
    "duplicate_share": ("num_duplicates",),
    "empty_text_pair": ("text_pair_chars",),
}


def with_derived(profile: pd.DataFrame, needed: tuple[str, ...]) -> pd.DataFrame:
    """The profile with the derived columns that are needed, missing and computable.

    Args:
        profile: One row per document or labelled row.
        needed: Columns that a suite reads.

    Returns:
        The profile itself, or a copy with more columns; the input is never changed.
    """
    columns = {}
    for name, of in DERIVED.items():
        if name in needed and name not in profile and all(column in profile for column in of):
            columns[name] = _COMPUTE[name](profile)
    return profile.assign(**columns) if columns else profile


def _label_share(profile: pd.DataFrame) -> pd.Series:
    return _column(profile, "label").map(_in_train(profile, normalize=True))


def _label_rows(profile: pd.DataFrame) -> pd.Series:
    return _column(profile, "label").map(_in_train(profile))


def _in_train(profile: pd.DataFrame, normalize: bool = False) -> dict[str, float]:
    """The number of training rows, or their share, by label; 0 of one that other rows alone have.

    Were it missing, every promise about it would be kept.
    """
    label = _column(profile, "label")
    found = label.loc[_column(profile, "split") == "train"].value_counts(normalize=normalize)
    return dict.fromkeys(label.dropna(), 0) | found.to_dict()


def _splits_without_label(profile: pd.DataFrame) -> pd.Series:
    label, split = _column(profile, "label"), _column(profile, "split")
    return label.map((split.nunique() - split.groupby(label).nunique()).to_dict())


def _label_spellings(profile: pd.DataFrame) -> pd.Series:
    label = _column(profile, "label")
    labels = [str(value) for value in label.dropna().unique()]
    spellings = Counter(fold(value) for value in labels)
    return label.map({value: spellings[fold(value)] for value in labels})


def _duplicate_share(profile: pd.DataFrame) -> pd.Series:
    num_duplicates = _column(profile, "num_duplicates")
    removed = num_duplicates.sum()
    return num_duplicates * 0.0 + removed / max(1, removed + len(profile))


def _empty_text_pair(profile: pd.DataFrame) -> pd.Series:
    return _column(profile, "text_pair_chars") == 0


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    return cast("pd.Series", table[name])


_COMPUTE = {
    "label_share": _label_share,
    "label_rows": _label_rows,
    "splits_without_label": _splits_without_label,
    "label_spellings": _label_spellings,
    "duplicate_share": _duplicate_share,
    "empty_text_pair": _empty_text_pair,
}


def fold(label: str) -> str:
    """A label without differences that people overlook: width, case, outer and repeated spaces."""
    return " ".join(unicodedata.normalize("NFKC", label).casefold().split())
