"""The text that vectors are learned from: how often its words are there, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fourstage.errors import ContractViolation, RecipeError
from models.inputs.randomness import generator
from models.protocols import TokenisedCorpus, Tokenizer

PORTION = 20_000  # tokens read at a time, or one document
COUNTED = 100  # documents counted at a time

Corpora = Mapping[str, tuple[TokenisedCorpus, float]]  # {source: (documents, share of the tokens)}


@dataclass(frozen=True)
class Portion:
    """Consecutive documents of a corpus.

    Attributes:
        source: Name of the corpus.
        number: Its place in the order of reading, from 0.
        first: Its first document.
        end: The document after its last.
        most: Tokens that are read of it.
    """

    source: str
    number: int
    first: int
    end: int
    most: int


def frequencies(corpora: Corpora, tokenizer: Tokenizer) -> np.ndarray:
    """The share of each word in the text, 0 for special tokens.

    Args:
        corpora: The corpora; the share of each counts, however long it is.
        tokenizer: The recipe's tokenizer.

    Returns:
        (V,) float64 with the sum 1.

    Raises:
        ContractViolation: There are no words that the tokenizer knows.
    """
    found = np.zeros(tokenizer.vocabulary_size)
    for corpus, share in corpora.values():
        counts = np.zeros_like(found)
        for first in range(0, len(corpus), COUNTED):
            documents = range(first, min(first + COUNTED, len(corpus)))
            ids = np.concatenate([corpus.document(i)[0] for i in documents])
            counts += np.bincount(ids, minlength=len(counts))
        counts[[*tokenizer.special_ids]] = 0.0
        found += share * counts / max(1.0, counts.sum())
    if not found.any():
        raise ContractViolation(
            "word vectors: no word of the text is in the tokenizer's vocabulary; learn the"
            " vocabulary from this text, or ask for a larger one"
        )
    return found / found.sum()


def check_window(corpora: Corpora, window: int, where: str) -> None:
    """Check that a window fits in a document.

    Raises:
        RecipeError: No document is longer than the window.
    """
    longest = max((int(corpus.lengths.max(initial=0)) for corpus, _ in corpora.values()), default=0)
    if longest <= window:
        raise RecipeError(
            f"{where}.window: {window} words to each side, but the longest document has {longest};"
            f" expected {max(1, longest - 1)} or less"
        )


def kept_shares(frequencies: np.ndarray, threshold: float) -> np.ndarray:
    """The probability with which each word stays in the text, (V,) float32; special tokens never.

    Args:
        frequencies: (V,) share of each word.
        threshold: Share t above which words are thinned out; 0 keeps all of them.

    Reference:
        √(t/f) + t/f of word2vec.c and fastText. Mikolov et al. 2013, arXiv 1310.4546, 2.3, has
        √(t/f).
    """
    there = frequencies > 0
    if not threshold:
        return there.astype(np.float32)
    ratio = threshold / np.where(there, frequencies, 1.0)
    return (there * np.minimum(1.0, np.sqrt(ratio) + ratio)).astype(np.float32)


def portions(corpora: Corpora, tokens: int, seed: int) -> Iterator[Portion]:
    """The order in which a stage reads its text.

    Corpora take turns by their shares. Each pass over a corpus reads all portions in another order.

    Args:
        corpora: The corpora.
        tokens: Tokens to read; the last portion is cut there.
        seed: The stage's seed.
    """
    cuts = {name: _cut(corpus.lengths) for name, (corpus, _) in corpora.items()}
    orders = {name: _order(name, cut, seed) for name, cut in cuts.items()}
    given = dict.fromkeys(corpora, 0)
    number = read = 0
    while read < tokens:
        # The corpus that is furthest behind its share; the first by name among equals.
        name = min(sorted(corpora), key=lambda each: given[each] - corpora[each][1] * read)
        first, end, size = next(orders[name])
        most = min(size, tokens - read)
        yield Portion(name, number, first, end, most)
        given[name] += most
        read += most
        number += 1


def kept_words(
    portion: Portion, corpora: Corpora, kept: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """A portion's words after thinning out, and the document of each, (n,) int32 both.

    Words are thinned out before windows are cut, so that windows reach further.
    """
    corpus, _ = corpora[portion.source]
    texts = [corpus.document(i)[0] for i in range(portion.first, portion.end)]
    ids = np.concatenate(texts)[: portion.most]
    documents = np.repeat(np.arange(len(texts), dtype=np.int32), [len(text) for text in texts])
    stays = rng.random(len(ids), dtype=np.float32) < kept[ids]
    return ids[stays], documents[: portion.most][stays]


def _cut(lengths: np.ndarray) -> np.ndarray:
    """(first, end, tokens) of portions of `PORTION` tokens or more, the last one less."""
    ends = np.cumsum(lengths)
    if not len(ends) or not ends[-1]:
        raise ContractViolation("word vectors: a corpus has no tokens")
    borders = np.searchsorted(ends, np.arange(PORTION, ends[-1], PORTION), side="left") + 1
    borders = np.unique([0, *borders.tolist(), len(ends)])
    before = np.concatenate(([0], ends))[borders]
    found = np.stack([borders[:-1], borders[1:], np.diff(before)], axis=1)
    return found[found[:, 2] > 0]


def _order(name: str, cut: np.ndarray, seed: int) -> Iterator[tuple[int, int, int]]:
    """Its portions again and again, each pass in another order."""
    number = 0
    while True:
        for place in generator(seed, "portions", name, number).permutation(len(cut)):
            first, end, size = cut[place].tolist()
            yield first, end, size
        number += 1
