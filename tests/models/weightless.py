"""Networks of any size without memory for their weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import keras


@contextmanager
def weightless() -> Iterator[None]:
    """What is built inside has shapes and no values.

    Keras keeps such variables waiting, and the next training anywhere in the process would give
    them all their values: 8 GB for the published sizes. So they are forgotten afterwards.
    """
    with keras.StatelessScope(initialize_variables=False):
        yield
    keras.utils.clear_session(free_memory=False)
