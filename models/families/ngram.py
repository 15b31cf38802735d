"""N-grams: the next token's probability, from how often it followed the tokens before it.

It trains itself: a stage counts its corpora, once each, and adds what the stages before have
counted. Budget, shares and optimizer have no meaning for it. A document has `order` - 1 begin
tokens ([CLS]) before it, which are never predicted, and an end ([SEP]), which is.

    text → keys of n-grams → sorted and summed, on disk where they do not fit → counts by order
                                                          → smoothing → log probabilities

[UNK] is a token like any other: what it stands for is predicted together. So losses can be compared
between models with one vocabulary, or per character if no text is unknown.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from fourstage.errors import ContractViolation, Interrupted, RecipeError
from fourstage.terminal import say
from models.counting.ngram_model import (
    KNESER_NEY,
    NGramModel,
    Smoothing,
    discounts_of,
    map_orders,
    num_events,
    save_orders,
)
from models.counting.ngrams import orders, texts
from models.counting.packing import Packing
from models.counting.sums import summed
from models.evaluation.resampling import ratio_error
from models.protocols import Capability, TokenisedCorpus, Tokenizer
from models.stage_format import NETWORK
from models.training.interruption import Interruption
from models.training.job import Outcome, Silence, TrainingJob, TrainingListener
from models.training.trained_stage import config_of, write_settings

PROVIDES = ("causal",)
TRAINS = True
SMOOTHINGS = (
    "maximum_likelihood",
    "add_k",
    "interpolated",
    "interpolated_kneser_ney",
    "modified_kneser_ney",
)
SIZES = {
    "tiny": {"order": 3},
    "bigram": {"order": 2},
    "trigram": {"order": 3},
    "five": {"order": 5},
}
WORK = "counting"  # folder for what does not fit in memory, in that of the stage


class NGram:
    """An n-gram language model.

    Args:
        vocabulary_size: Number of token ids.
        order: Tokens in an n-gram, from 1: the predicted one and those it is predicted from.
        smoothing: One of `SMOOTHINGS` (`models.counting.smoothing`).
        k: What ``add_k`` adds to each count, above 0.
        longer_share: λ of ``interpolated``, 0-1: weight of the longer history at each order.
        discounts: Of Kneser-Ney: one from 0 to 1, or for ``modified_kneser_ney`` three, the i-th
            from 0 to i. By default each order's are estimated from its counts of counts; where
            these give none, they are 0.75, or 0.5, 1 and 1.5, and ``metrics.json`` names the order.

    Raises:
        RecipeError: A setting is out of range.

    Reference:
        Chen and Goodman 1998, TR-10-98, Harvard University. Begin tokens are as many as a history
        has, and count as what is before an n-gram.
    """

    provides = frozenset(Capability(name) for name in PROVIDES)

    def __init__(
        self,
        *,
        vocabulary_size: int,
        order: int = 3,
        smoothing: str = "modified_kneser_ney",
        k: float = 1.0,
        longer_share: float = 0.5,
        discounts: Sequence[float] | None = None,
    ):
        needed = 3 if smoothing == "modified_kneser_ney" else 1
        for wrong, name, expected, got in (
            (order < 1, "order", "1 or more", order),
            (
                smoothing not in SMOOTHINGS,
                "smoothing",
                "one of " + ", ".join(SMOOTHINGS),
                smoothing,
            ),
            (k <= 0, "k", "a number above 0", k),
            (not 0 <= longer_share <= 1, "longer_share", "a share, 0 to 1", longer_share),
            (
                discounts is not None
                and (
                    len(discounts) != needed
                    or not all(0 <= d <= i for i, d in enumerate(discounts, 1))
                ),
                "discounts",
                "three numbers, the i-th from 0 to i" if needed == 3 else "a number from 0 to 1",
                discounts,
            ),
        ):
            if wrong:
                raise RecipeError(f"ngram: size.{name}: expected {expected}, got {got}")
        self.packing = Packing(order, vocabulary_size)
        self.smoothing = smoothing
        self.k = k
        self.longer_share = longer_share
        self.discounts = discounts

    @classmethod
    def train(
        cls, job: TrainingJob, folder: Path, listener: TrainingListener | None = None
    ) -> Outcome:
        """Count a stage's corpora, beside what the stages before have counted.

        A stage that was interrupted counts from its start again.

        Raises:
            Interrupted: A signal or the deadline stopped it.
            RecipeError: A setting is out of range, or the stage before has another order.
            ContractViolation: There is no text, or an n-gram is longer than every document.
        """
        settings = cls(vocabulary_size=job.tokenizer.vocabulary_size, **job.stage.network)
        folder.mkdir(parents=True, exist_ok=True)
        work = folder / WORK
        shutil.rmtree(work, ignore_errors=True)
        with Interruption(job.deadline_seconds) as interruption:
            counting = _Counting(job, settings.packing, listener or Silence(), interruption)
            longest = summed(counting.blocks(), work / "longest")
            tables = orders(
                longest,
                settings.packing,
                work,
                continuations=settings.smoothing in KNESER_NEY,
            )
        found, without = discounts_of(tables, settings.smoothing, settings.discounts)
        save_orders(folder / NETWORK, tables, found)
        metrics = {
            "ngrams": [len(each.ngrams) for each in tables],
            "discounts": found.tolist(),
            "orders_without_estimated_discounts": without,
        }
        shutil.rmtree(work, ignore_errors=True)
        write_settings(job, folder, precision="float32", tasks={}, history=[], metrics=metrics)
        seconds = time.perf_counter() - counting.started
        return Outcome(
            1,
            counting.tokens,
            seconds,
            counting.tokens / seconds,
            metrics,
            dict.fromkeys(job.corpora, 1.0),
        )

    @classmethod
    def heldout_losses(
        cls, folder: Path, tokenizer: Tokenizer, corpora: Mapping[str, TokenisedCorpus]
    ) -> dict[str, dict[str, float]]:
        """Loss of every token and end of a document, each predicted once; no accuracy.

        Returns:
            {corpus: {"loss": nats per token, "error": its standard error over documents}}. A corpus
            with a token of no probability, whose loss is infinite, is left out with a message.
        """
        config = config_of(folder)
        settings = cls(vocabulary_size=config["vocabulary_size"], **config["network"])
        model = settings._model(folder, tokenizer)
        found: dict[str, dict[str, float]] = {}
        for name, corpus in corpora.items():
            scores, impossible, tokens = _scores(model, corpus, tokenizer)
            if not impossible:
                found[name] = scores
                continue
            say(
                f"ngram: {settings.smoothing} gives {impossible:,} of {tokens:,} held-out tokens of"
                f" {name} no probability: its loss is infinite and left out; choose another"
                " smoothing to compare"
            )
        return found

    def _model(self, folder: Path, tokenizer: Tokenizer) -> NGramModel:
        """The model that a stage has counted."""
        tables, discounts = map_orders(folder / NETWORK, self.packing.order)
        smoothing = Smoothing(self.smoothing, self.k, self.longer_share, discounts)
        return NGramModel(tables, self.packing, smoothing, num_events(tokenizer))


class _Counting:
    """The n-grams of a stage's corpora and of the stage before, a block at a time."""

    def __init__(
        self,
        job: TrainingJob,
        packing: Packing,
        listener: TrainingListener,
        interruption: Interruption,
    ):
        self.job = job
        self.packing = packing
        self.listener = listener
        self.interruption = interruption
        self.tokens = 0
        self.started = time.perf_counter()
        lengths = [corpus.lengths.max(initial=0) for corpus, _ in job.corpora.values()]
        longest = int(max(lengths, default=0))
        if not longest:
            raise ContractViolation(f"{job.stage.kind}: ngram: the corpora have no tokens to count")
        if longest + 1 < packing.order:
            raise ContractViolation(
                f"{job.stage.kind}: ngram: order {packing.order} is longer than every document; the"
                f" longest has {longest + 1} tokens with its end. Give longer documents, or an"
                f" order up to {longest + 1}"
            )

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(n,) keys of the longest n-grams and their (n, 1) counts."""
        yield from self._before()
        total = sum(corpus.num_tokens for corpus, _ in self.job.corpora.values())
        tokenizer = self.job.tokenizer
        for corpus, _ in self.job.corpora.values():
            for text in texts(corpus, self.packing.order, tokenizer.cls_id, tokenizer.sep_id):
                keys = text.ngrams(self.packing)
                yield keys, np.ones((len(keys), 1), np.int64)
                self.tokens += len(keys) - len(text.lengths)
                speed = self.tokens / (time.perf_counter() - self.started)
                self.listener.progress(self.tokens, total, {"tokens_per_second": speed})
                if self.interruption.asked:
                    raise Interrupted(
                        f"{self.job.stage.kind}: stopped by {self.interruption.cause} after"
                        f" {self.tokens:,} of {total:,} tokens; the same command counts again",
                        self.interruption.signal_number,
                    )

    def _before(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if self.job.initial is None:
            return
        config = config_of(self.job.initial)
        before = NGram(vocabulary_size=config["vocabulary_size"], **config["network"])
        order = before.packing.order
        if order != self.packing.order:
            raise RecipeError(
                f"{self.job.stage.kind}: ngram: expected a stage before of order"
                f" {self.packing.order}, got {order}; counts of one order can be added"
            )
        tables, _ = map_orders(self.job.initial / NETWORK, order)
        yield from tables[-1].ngrams.blocks()


def _scores(
    model: NGramModel, corpus: TokenisedCorpus, tokenizer: Tokenizer
) -> tuple[dict[str, float], int, int]:
    """Loss and standard error, the number of tokens without probability, and that of all."""
    impossible = 0
    sums: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    for text in texts(corpus, model.packing.order, tokenizer.cls_id, tokenizer.sep_id):
        found = model.probabilities(text.ngrams(model.packing))
        impossible += int((found == 0).sum())
        nats = -np.log(np.maximum(found, np.finfo(float).tiny))
        sums.append(np.add.reduceat(nats, np.cumsum(text.lengths) - text.lengths))
        weights.append(text.lengths)
    if not sums:
        raise ContractViolation("ngram: the held-out text has no tokens")
    total, count = np.concatenate(sums), np.concatenate(weights)
    scores = {"loss": float(total.sum() / count.sum())}
    if len(total) > 1:
        scores["error"] = ratio_error(total, count)
    return scores, impossible, int(count.sum())
