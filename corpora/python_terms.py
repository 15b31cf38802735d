"""Makes a gazetteer of the names and terms in the documentation of installed packages.

``python -m corpora.python_terms`` regenerates `FILE`. Entities are names of documented objects that
consist of several words (``train_test_split``, ``Series.drop``) and occur in the documentation.
Phrases are words that occur together more often than their frequencies predict.

Reference:
    Phrases: Mikolov et al. 2013, arXiv 1310.4546, section 4, equation 6.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from corpora.reading import read_documents
from corpora.snapshot import take_snapshot
from data_contracts.records import Document
from data_contracts.sources import load_source
from fourstage.digests import write_atomically

FILE = Path(__file__).parent / "gazetteers" / "python_terms.tsv"
SOURCES = ("python_infrastructure", "python_scientific", "smoke_general", "smoke_domain")
DISCOUNT = 4  # occurrences subtracted to suppress rare pairs, the equation's δ
THRESHOLD = 20.0
LONGEST = 40  # characters

_NAME = re.compile(r"[A-Za-z]\w*(?:\.[A-Za-z]\w*)*", re.ASCII)
_RUN = re.compile(r"[a-z]{3,}(?: [a-z]{3,})+")  # words with only a space between them


def entities(documentation: Mapping[str, str]) -> set[str]:
    """Documented names of several words that occur in some text.

    Args:
        documentation: Texts by ``library:module.object``, as `corpora.readers.python_docs` reads
            them.

    Example:
        >>> sorted(entities({"a:io.Reader.read_all": "Reader.read_all, read_all, read_none"}))
        ['Reader.read_all', 'read_all']
    """
    known: set[str] = set()
    for identity in documentation:
        path = identity.partition(":")[2].partition("~")[0].split(".")
        known.update(".".join(path[k:]) for k in range(len(path)))
    return {
        name
        for text in documentation.values()
        for name in _NAME.findall(text)
        if name in known and ("." in name or "_" in name.strip("_")) and len(name) <= LONGEST
    }


def phrases(texts: Iterable[str], stop_words: Iterable[str] = ()) -> set[str]:
    """Two or three words that occur together more often than their frequencies predict.

    Args:
        texts: Any texts.
        stop_words: Words that phrases must not contain.

    Example:
        >>> sorted(phrases(["latent variable"] * 10 + ["these words stand apart"] * 100))
        ['latent variable']
    """
    stopped = frozenset(stop_words)
    words, pairs, triples = Counter[str](), Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for text in texts:
        for run in _runs(text):
            words.update(run)
            pairs.update(pairwise(run))
            triples.update(zip(run, run[1:], run[2:], strict=False))
    total = sum(words.values())

    def together(pair: tuple[str, ...]) -> bool:
        first, second = pair
        score = (pairs[pair] - DISCOUNT) / (words[first] * words[second]) * total
        return score > THRESHOLD and not stopped & {first, second}

    found = {pair for pair in pairs if together(pair)}
    found |= {
        triple
        for triple, times in triples.items()
        if times > DISCOUNT and {triple[:2], triple[1:]} <= found
    }
    return {phrase for group in found if len(phrase := " ".join(group)) <= LONGEST}


def _runs(text: str) -> Iterator[list[str]]:
    for run in _RUN.findall(" ".join(text.lower().split())):
        yield run.split()


def _documentation() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in SOURCES:
        source = load_source(name)
        for document in read_documents(source, take_snapshot(source)):
            if isinstance(document, Document):
                found[document.id] = document.text
    return found


def _write() -> None:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    documentation = _documentation()
    lines = [f"{name}\tentity" for name in entities(documentation)]
    lines += [f"{name}\tphrase" for name in phrases(documentation.values(), ENGLISH_STOP_WORDS)]
    FILE.parent.mkdir(exist_ok=True)
    write_atomically(FILE, "\n".join(sorted(lines)) + "\n")


if __name__ == "__main__":
    _write()
