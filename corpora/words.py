"""Where words begin in a text without blanks, by a segmenter that the recipe names.

One a name; each works offline, writes nothing to disk and says which dictionary it cuts with. Why
these: docs/decisions/0012-words-by-rjieba.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

import numpy as np

from fourstage.digests import digest, hash_file
from fourstage.errors import EnvironmentFault, UnknownNameError

SEGMENTERS = ("rjieba",)
LANGUAGES = ("zh",)  # written without blanks between words


def segmenter_settings(name: str) -> dict[str, str]:
    """What decides a segmenter's cuts: its version and the digest of its dictionary.

    The dictionary of ``rjieba`` is compiled into its library, whose bytes are therefore digested.

    Raises:
        UnknownNameError: There is no such segmenter.
        EnvironmentFault: It is not installed.
    """
    package = _installed(name)
    files = [package.locate_file(file) for file in package.files or () if file.suffix == ".so"]
    dictionary = digest([hash_file(file) for file in sorted(files, key=str)])  # type: ignore[arg-type]
    return {"name": name, "version": package.version, "dictionary": dictionary}


def word_numbers(texts: Sequence[str], name: str) -> list[np.ndarray]:
    """Which word of its text each character is in, blanks counted as words.

    Args:
        texts: Any texts.
        name: Of the segmenter.

    Returns:
        One (characters,) int64 array a text, rising from 0.
    """
    _installed(name)
    cutter = _rjieba()
    found = []
    for text in texts:
        lengths = [len(word) for word in cutter.cut(text, True)]
        assert sum(lengths) == len(text), "the words are the text"
        found.append(np.repeat(np.arange(len(lengths)), lengths))
    return found


def _installed(name: str) -> Any:
    """The package of a segmenter."""
    if name not in SEGMENTERS:
        raise UnknownNameError("units.segmenter", name, "a segmenter", SEGMENTERS)
    try:
        return distribution(name)
    except PackageNotFoundError:
        raise EnvironmentFault(
            f"units.segmenter: {name!r} is not installed; pip install {name}"
        ) from None


@cache
def _rjieba() -> Any:
    """The dictionary, read from the library once."""
    import rjieba  # pyright: ignore[reportMissingImports]

    return rjieba.Jieba()
