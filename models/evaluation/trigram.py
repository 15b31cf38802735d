"""Held-out loss of a network that is mixed with a trigram of the text it learned from.

P(w | h) = (1 - α) P_network(w | h) + α P_trigram(w | the two tokens before w)

The trigram is counted where the loss is measured and changes no weight. α is a family's setting
`trigram_share`; a family without it is not mixed.

Reference:
    Bengio et al. 2003, Journal of Machine Learning Research 3, 4: both have a half.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.special import log_softmax

from models import features as keys
from models.counting.ngram_model import NGramModel, Smoothing, num_events
from models.counting.ngrams import orders, texts
from models.counting.packing import Packing
from models.counting.sums import summed
from models.evaluation.resampling import ratio_error
from models.protocols import Batch, TokenisedCorpus, Tokenizer

ORDER = 3
LONGER_SHARE = 0.5  # of a longer history, as of family ngram's `interpolated`


def mixed_losses(
    network: Any,
    scorer: Any,
    windows: Mapping[str, Iterable[Batch]],
    counted: Mapping[str, TokenisedCorpus],
    tokenizer: Tokenizer,
    share: float,
) -> dict[str, dict[str, float]]:
    """{source: {"loss": nats per predicted token, "error": its standard error over batches}}.

    Args:
        network: The network, which predicts each token from those before it.
        scorer: Has its logits.
        windows: {source: batches of held-out windows}.
        counted: {source: training documents} of the text that the network learned from.
        tokenizer: The recipe's tokenizer.
        share: α, the trigram's share.
    """
    found: dict[str, dict[str, float]] = {}
    with TemporaryDirectory() as folder:
        trigram = trigram_of(counted, tokenizer, Path(folder))
        for source, batches in windows.items():
            nats = [_nats(network, scorer, b, trigram, tokenizer, share) for b in batches]
            sums = np.array(nats)
            total, weight = sums.sum(axis=0).tolist()
            found[source] = {"loss": total / weight}
            if len(sums) > 1:
                found[source]["error"] = ratio_error(*sums.T)
    return found


def trigram_of(
    corpora: Mapping[str, TokenisedCorpus], tokenizer: Tokenizer, folder: Path
) -> NGramModel:
    """Trigrams, bigrams and single tokens in fixed shares, counted in each text once.

    Args:
        corpora: {source: training documents}.
        tokenizer: The recipe's tokenizer.
        folder: For counts that do not fit in memory; the model is good as long as it is there.
    """
    packing = Packing(ORDER, tokenizer.vocabulary_size)

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for corpus in corpora.values():
            for text in texts(corpus, ORDER, tokenizer.cls_id, tokenizer.sep_id):
                ngrams = text.ngrams(packing)
                yield ngrams, np.ones((len(ngrams), 1), np.int64)

    longest = summed(blocks(), folder / "longest")
    tables = orders(longest, packing, folder, continuations=False)
    smoothing = Smoothing("interpolated", 1.0, LONGER_SHARE, np.zeros((0, 3)))
    return NGramModel(tables, packing, smoothing, num_events(tokenizer))


def trigrams(batch: Batch, tokenizer: Tokenizer, packing: Packing) -> np.ndarray:
    """(B, T - 1) keys of the trigram that ends at each token after a row's first.

    Before a document, and before a row, there are begin tokens, as where trigrams are counted.
    """
    ids, real = batch[keys.TOKEN_IDS], batch[keys.PADDING_MASK]
    begin = tokenizer.cls_id
    inside = np.where((ids == tokenizer.sep_id) | (real == 0), begin, ids)
    last = inside[:, :-1]
    before = np.pad(inside[:, :-2], ((0, 0), (1, 0)), constant_values=begin)
    before = np.where(last == begin, begin, before)
    each = np.stack([before, last, ids[:, 1:]], axis=-1)  # (B, T - 1, 3)
    return packing.ngrams(each.reshape(-1))[::ORDER].reshape(each.shape[:-1])


def _nats(
    network: Any,
    scorer: Any,
    batch: Batch,
    trigram: NGramModel,
    tokenizer: Tokenizer,
    share: float,
) -> tuple[float, float]:
    """A batch's sum of nats, and how many tokens it is of."""
    counted = trigrams(batch, tokenizer, trigram.packing)
    read = {key: batch[key] for key in (keys.TOKEN_IDS, keys.PADDING_MASK)}
    hidden = network(read)[keys.SEQUENCE_OUTPUT]
    total = count = 0.0
    every = batch[keys.NEXT_WEIGHTS] * batch[keys.ROW_WEIGHTS][:, None]
    for row, weights in enumerate(every):
        places = np.flatnonzero(weights)
        if not len(places):
            continue
        labels = batch[keys.NEXT_LABELS][row, places]
        logits = np.asarray(scorer.logits(hidden[row, :-1]), np.float64)[places]
        own = np.exp(log_softmax(logits, axis=-1)[np.arange(len(places)), labels])
        mixed = (1.0 - share) * own + share * trigram.probabilities(counted[row, places])
        total -= float(weights[places] @ np.log(mixed))
        count += float(weights[places].sum())
    return total, count
