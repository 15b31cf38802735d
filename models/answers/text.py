"""Answers that are texts of their own: translations, summaries, titles.

An answer is JSON, ``["text", …]``: all references, or the one text that was generated. Of several
references BLEU and chrF use what sacrebleu would, ROUGE and exact match the best.

Where a network has read the reference, too, its answer says how likely it found it, ``{"texts":
["text"], "nats": 7.5, "tokens": 4, "words": 3}``; without ``texts`` if nothing was generated. From
these come the perplexities, of which lower is better: exp of the mean nats, over all tokens with
the one that ends the text, or over all words between blanks. They are not defined for an answer
without, nor the other metrics for an answer without a text.

The scores are those of sacrebleu, divided by 100, and of rouge-score. Both tokenise for languages
that write spaces, so that those in ``_zh`` are there for Chinese: their tokens are its characters
and the words between them. chrF is for any language.

Reference:
    ``bleu``: Papineni et al. 2002 as sacrebleu computes it (Post 2018, arXiv 1804.08771), tokenizer
    13a, exponential smoothing. ``chrf``: Popović 2015, chrF2 of up to six characters. ``rouge1``,
    ``rouge2``, ``rougeL``: Lin 2004 by rouge-score, F1 with Porter's stemmer, which reads nothing
    but a to z and digits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np

from fourstage.errors import ContractViolation
from models.metrics import PERPLEXITY, PERPLEXITY_A_WORD
from models.protocols import Column, Metric

_BLEU_ORDER, _CHRF_ORDER = 4, 6
_SHARES = ("exact_match", "rouge1", "rouge2", "rougeL", "rouge1_zh", "rouge2_zh", "rougeL_zh")
_ROUGES = ("rouge1", "rouge2", "rougeL")
_LIKELIHOOD = ("nats", "tokens", "words")
# The sums: rows, those of `_SHARES`; lengths, matches and n-grams of BLEU, twice; those of chrF;
# those of `_LIKELIHOOD`.
_BLEU = 1 + len(_SHARES)
_BLEU_ZH = _BLEU + 2 + 2 * _BLEU_ORDER
_CHRF = _BLEU_ZH + 2 + 2 * _BLEU_ORDER
_NATS = _CHRF + 3 * _CHRF_ORDER
_TOKENS, _WORDS = _NATS + 1, _NATS + 2
_WIDTH = _NATS + 3


def written(text: str | None, likelihood: tuple[float, float, float] | None = None) -> str:
    """The answer of a network as JSON.

    Args:
        text: What it has generated; None for nothing.
        likelihood: Of the reference, where it was read: nats, minus its log probability summed over
            its tokens; its tokens, with the one that ends it; its words between blanks, of a
            reference that was cut the share of them that its tokens are.
    """
    texts = [] if text is None else [text]
    if likelihood is None:
        return json.dumps(texts, ensure_ascii=False)
    said = dict(zip(_LIKELIHOOD, likelihood, strict=True))
    return json.dumps({**({"texts": texts} if texts else {}), **said}, ensure_ascii=False)


def texts_of(answer: str) -> list[str]:
    """The texts of an answer: its references, or the one that was generated.

    Raises:
        ValueError: It is no JSON list of texts.
    """
    texts = json.loads(answer or "[]")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("no list of texts")
    return texts or [""]


def read_of(answer: str, metric: str) -> float | None:
    """How much of its reference a network has read, in the unit of a perplexity; None for nothing.

    Only perplexities of what was read alike can be compared.

    Args:
        answer: The network's.
        metric: ``perplexity``, of tokens, or ``perplexity_a_word``.
    """
    likelihood = _said(answer)[1]
    return None if likelihood is None else likelihood[1 if metric == PERPLEXITY else 2]


def _share(score: int) -> Metric:
    def metric(sums: np.ndarray) -> np.ndarray:
        return sums[..., 1 + score] / np.maximum(sums[..., 0], 1)

    return metric


def _perplexity(unit: int) -> Metric:
    """Of sums without any token or word, it is not defined."""

    def metric(sums: np.ndarray) -> np.ndarray:
        nats, number = sums[..., _NATS], sums[..., unit]
        return np.exp(np.where(number > 0, nats / np.where(number > 0, number, 1.0), np.nan))

    return metric


def _of_texts(metric: Metric) -> Metric:
    """A metric that is not defined where a text is missing; its first sum, the rows, says so."""

    def of(sums: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(sums[..., 0]), np.nan, metric(np.nan_to_num(sums)))

    return of


def _bleu(first: int) -> Metric:
    def metric(sums: np.ndarray) -> np.ndarray:
        return np.apply_along_axis(_bleu_of, -1, sums[..., first : first + 2 + 2 * _BLEU_ORDER])

    return metric


def _bleu_of(sums: np.ndarray) -> float:
    from sacrebleu.metrics.bleu import BLEU

    said, true, *counts = (int(number) for number in np.rint(sums))
    matches, ngrams = counts[:_BLEU_ORDER], counts[_BLEU_ORDER:]
    return BLEU.compute_bleu(matches, ngrams, said, true, smooth_method="exp").score / 100


def _chrf(sums: np.ndarray) -> np.ndarray:
    """F2 of the mean precision and the mean recall, over the lengths that both sides have."""
    triples = sums[..., _CHRF:_NATS].reshape(*sums.shape[:-1], _CHRF_ORDER, 3)
    said, true, both = np.moveaxis(triples, -1, 0)
    there = (said > 0) & (true > 0)
    lengths = np.maximum(there.sum(-1), 1)
    precision = np.where(there, both / np.maximum(said, 1), 0.0).sum(-1) / lengths
    recall = np.where(there, both / np.maximum(true, 1), 0.0).sum(-1) / lengths
    weighted = 4 * precision + recall
    return 5 * precision * recall / np.where(weighted > 0, weighted, 1.0)


class Text:
    """A kind of answer: a text.

    Attributes:
        metrics: {name: metric of (..., 49) sums}, 0-1, but for the perplexities, from 1; NaN where
            it is not defined.
        usual: Default metrics; the last one selects weights.
        is_class: Whether an answer is one of a few classes.
        is_served: Whether a model that answers so can be packaged and promoted.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {
        "bleu": _of_texts(_bleu(_BLEU)),
        "bleu_zh": _of_texts(_bleu(_BLEU_ZH)),
        "chrf": _of_texts(_chrf),
        **{name: _of_texts(_share(number)) for number, name in enumerate(_SHARES)},
        PERPLEXITY: _perplexity(_TOKENS),
        PERPLEXITY_A_WORD: _perplexity(_WORDS),
    }
    usual: ClassVar[tuple[str, ...]] = ("chrf",)
    is_class: ClassVar[bool] = False
    is_served: ClassVar[bool] = True

    @staticmethod
    def names(answers: Iterable[str]) -> tuple[str, ...]:
        """Texts consist of no names."""
        return ()

    @staticmethod
    def statistics(true: Column, answers: Sequence[Column]) -> list[Any]:
        """Each row's scores, and its counts for the scores of the whole.

        Args:
            true: (rows,) references.
            answers: One (rows,) column of generated texts per model, or of likelihoods, or both.

        Returns:
            One sparse (rows, 49) matrix per model; NaN for what an answer does not say.

        Raises:
            ContractViolation: An answer is no JSON list of texts and has no likelihood.
        """
        from scipy.sparse import csr_array

        references = _each(texts_of, true)
        tables = []
        for column in answers:
            table = np.full((len(references), _WIDTH), np.nan)
            said = _each(_said, column)
            for row, (right, (text, likelihood)) in enumerate(zip(references, said, strict=True)):
                if text is not None:
                    table[row, :_NATS] = [1.0, *_scores(text, right)]
                if likelihood is not None:
                    table[row, _NATS:] = likelihood
            tables.append(csr_array(table))
        return tables


def _each(read: Callable[[str], Any], column: Column) -> list[Any]:
    found = []
    for row, answer in enumerate(column):
        try:
            found.append(read(answer))
        except (KeyError, TypeError, ValueError):
            raise ContractViolation(
                f"answers: expected a JSON list of texts for each of {len(column)} rows, got "
                f"something else for row {row + 1}"
            ) from None
    return found


def _said(answer: str) -> tuple[str | None, list[float] | None]:
    """The text that was generated, and nats, tokens and words of the reference; None for each."""
    said = json.loads(answer or "[]")
    if not isinstance(said, dict):
        return texts_of(answer)[0], None
    likelihood = [float(said[name]) for name in _LIKELIHOOD]
    return (said["texts"][0] if "texts" in said else None), likelihood


def _scores(said: str, references: Sequence[str]) -> Iterator[float]:
    """The sums of a row, without the first."""
    yield float(any(said.split() == reference.split() for reference in references))
    for scorer in (_rouge(), _rouge_zh()):
        found = scorer.score_multi(references, said)
        yield from (found[name].fmeasure for name in _ROUGES)
    for tokenize in ("13a", "zh"):
        found = _sacrebleu(tokenize).sentence_score(said, references)
        yield from (found.sys_len, found.ref_len, *found.counts, *found.totals)
    yield from _character_counts(said, references)


def _character_counts(said: str, references: Sequence[str]) -> np.ndarray:
    """(18,) n-grams of the text, of the reference with the best chrF, and of both, by length."""
    from sacrebleu.metrics.helpers import extract_all_char_ngrams

    own = extract_all_char_ngrams(said, _CHRF_ORDER)
    counts = np.zeros((len(references), _WIDTH))
    for number, reference in enumerate(references):
        others = extract_all_char_ngrams(reference, _CHRF_ORDER)
        counts[number, _CHRF:_NATS] = [
            count
            for one, other in zip(own, others, strict=True)
            # What is too long for the reference isn't counted against the text.
            for count in ((one.total() if other else 0), other.total(), (one & other).total())
        ]
    return counts[np.argmax(_chrf(counts)), _CHRF:_NATS]


@cache
def _sacrebleu(tokenize: str) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    # Only counts are read; with `effective_order` scores of single rows are no matter for warnings.
    return BLEU(tokenize=tokenize, effective_order=True)


@cache
def _rouge() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(_ROUGES, use_stemmer=True)


@cache
def _rouge_zh() -> Any:
    from rouge_score.rouge_scorer import RougeScorer
    from rouge_score.tokenizers import Tokenizer
    from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

    class Characters(Tokenizer):
        def __init__(self):
            self._split = TokenizerZh()

        def tokenize(self, text: str) -> list[str]:
            return self._split(text.lower()).split()

    return RougeScorer(_ROUGES, tokenizer=Characters())
