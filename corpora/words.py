"""Word boundaries in text without spaces, found by the segmenter that the recipe names.

Each segmenter works offline, writes nothing to disk and identifies its dictionary. Why these:
docs/decisions/0012-words-by-rjieba.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

import numpy as np

from fourstage.digests import digest, hash_file
from fourstage.errors import EnvironmentFault, UnknownNameError

SEGMENTERS = ("rjieba",)
LANGUAGES = ("zh",)  # written without spaces between words


def segmenter_settings(name: str) -> dict[str, str]:
    """What determines a segmenter's output: its version and the digest of its dictionary.

    The dictionary of ``rjieba`` is compiled into its library, so the library is digested.

    Raises:
        UnknownNameError: There is no such segmenter.
        EnvironmentFault: It is not installed.
    """
    package = _installed(name)
    files = [package.locate_file(file) for file in package.files or () if file.suffix == ".so"]
    dictionary = digest([hash_file(file) for file in sorted(files, key=str)])  # type: ignore[arg-type]
    return {"name": name, "version": package.version, "dictionary": dictionary}


def word_numbers(texts: Sequence[str], name: str) -> list[np.ndarray]:
    """The number of the word that contains each character; spaces count as words.

    Args:
        texts: Any texts.
        name: Name of the segmenter.

    Returns:
        One (characters,) int64 array per text, ascending from 0.
    """
    cut = segmenter(name)
    found = []
    for text in texts:
        lengths = [len(word) for word in cut(text)]
        assert sum(lengths) == len(text), "the words are the text"
        found.append(np.repeat(np.arange(len(lengths)), lengths))
    return found


def segmenter(name: str) -> Callable[[str], list[str]]:
    """What cuts a text into its words, which joined are the text.

    Raises:
        UnknownNameError: There is no such segmenter.
        EnvironmentFault: It is not installed.
    """
    _installed(name)
    cutter = _rjieba()
    return lambda text: cutter.cut(text, True)


def _installed(name: str) -> Any:
    """The package of a segmenter."""
    if name not in SEGMENTERS:
        raise UnknownNameError("segmenter", name, "a segmenter", SEGMENTERS)
    try:
        return distribution(name)
    except PackageNotFoundError:
        raise EnvironmentFault(
            f"segmenter: {name!r} is not installed; pip install {name}"
        ) from None


@cache
def _rjieba() -> Any:
    """The segmenter; its dictionary is loaded from the library once."""
    import rjieba  # pyright: ignore[reportMissingImports]

    return rjieba.Jieba()
