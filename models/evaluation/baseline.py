"""The cheap rivals of every model: TF-IDF with logistic regression, and the majority class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.evaluation.linear import fit_and_predict

_CJK = r"[\u3400-\u9fff\uf900-\ufaff]"


def tfidf_predictions(
    train_texts: Sequence[str],
    train_labels: Sequence[int] | np.ndarray,
    texts: Sequence[str],
    *,
    pairs: tuple[Sequence[str], Sequence[str]] | None = None,
) -> np.ndarray:
    """Label ids from TF-IDF of words and word pairs, and logistic regression.

    Each CJK character counts as a word, so that Chinese needs no segmenter.

    Args:
        train_texts: Texts of the training rows.
        train_labels: Their label ids.
        texts: Texts of the rows to predict.
        pairs: Second texts of both, where rows have two.

    Returns:
        (rows,) int64 label ids.
    """
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    columns = [(train_texts, texts), *([pairs] if pairs else [])]
    train_parts, parts = [], []
    for seen, asked in columns:
        words = TfidfVectorizer(
            token_pattern=rf"{_CJK}|(?:(?!{_CJK})\w)+", ngram_range=(1, 2), sublinear_tf=True
        )
        train_parts.append(words.fit_transform(seen))
        parts.append(words.transform(asked))
    train, asked_rows = hstack(train_parts).tocsr(), hstack(parts).tocsr()
    # The default penalty underfits TF-IDF; 10 is a common choice, not tuned on any test rows.
    regression = LogisticRegression(C=10.0, max_iter=1000)
    return fit_and_predict(regression, train, np.asarray(train_labels), asked_rows)


def majority_predictions(train_labels: Sequence[int] | np.ndarray, rows: int) -> np.ndarray:
    """(rows,) int64: the most frequent training label, the lowest id of several."""
    counts = np.bincount(np.asarray(train_labels, dtype=np.int64))
    return np.full(rows, counts.argmax(), dtype=np.int64)
