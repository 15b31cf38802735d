"""Unified language modelling: masked tokens, predicted under several attention masks.

    bidirectional           [CLS] a [MASK] c [SEP] d e f [SEP]     from all tokens; also: is the
                                                                   second text the next one?
    sequence_to_sequence    [CLS] a [MASK] c [SEP] d [MASK] f [SEP]   in the first text from the
                                                                   first, in the second from both
    left_to_right           [CLS] a b [MASK] d e f [SEP]           from those before
    right_to_left           [CLS] a b [MASK] d e f [SEP]           from those after

A share of a row's tokens is chosen; 80 % become [MASK], 10 % a random token, and 10 % stay. One
head predicts them in every mode. With `sequence_to_sequence` alone it is a prefix language model,
with `left_to_right` alone a decoder, with `bidirectional` alone BERT.

Reference:
    Dong et al. 2019 (UniLM), arXiv 1905.03197, 2.2 and 2.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fourstage.errors import ContractViolation, RecipeError
from models import features as keys
from models.decoding.prompting import Prompting, going_on
from models.decoding.reader import Reading
from models.inputs import noise
from models.inputs.mask_token import check_mask
from models.inputs.pairs import PAIR, Relation, lengths_of, pack
from models.inputs.segments import Chance, empty_rows, room_for, several_documents, write_row
from models.layers.masked_tokens import MaskedTokens
from models.layers.pooled_classifier import PooledClassifier
from models.layers.scorer import Scored, ScorerLayer
from models.modes import Mode
from models.protocols import Batch, Context, Index, TokenisedCorpus

NEEDS = ("modes", "segments", "pooled_output")
PROVIDES = ()
CHOOSES = 2
PREPARES = False
HIDES_TOKENS = True
NEEDS_MASK = ("rate",)
WRITES = True
# As masked_lm is measured; held-out text may be a single document, which has no pairs to tell.
MEASURED = {"mask_share": 1.0, "random_share": 0.0, "next_sentence": False}
CONTINUES = True

NEXT_LABELS = "next_sentence_labels"  # (B,) int32, 0 = next, 1 = random
NEXT_WEIGHTS = "next_sentence_weights"  # (B,) float32, 1 for bidirectional rows
NEXT_LOGITS = "next_sentence_logits"  # (B, 2)
ENTRY = np.dtype([*PAIR.descr, ("mode", np.int64)])
ONE_WAY = (Mode.LEFT_TO_RIGHT, Mode.RIGHT_TO_LEFT)


class UnifiedLM:
    """Both halves of unified language modelling, with next sentence prediction.

    Rows are pairs of segments that follow each other, as for next sentence prediction; half of the
    bidirectional ones have a second segment from elsewhere instead. A row that is read in one
    direction has the same text as one segment. The numbers of modes are relative: 2, 2, 1 and 1 are
    a third, a third, a sixth and a sixth of the rows, over a pass exactly.

    Each row has a mode of its own, because its text depends on it, and so that a batch trains every
    mode and the classifier of pairs; the paper mixes within a batch, too.

    Args:
        context: The stage's constants.
        bidirectional: Relative number of rows in which each token sees all.
        sequence_to_sequence: Of rows whose second text is read from left to right.
        left_to_right: Of rows in which each token sees those before it.
        right_to_left: Of rows in which each token sees those after it.
        next_sentence: Whether bidirectional rows are also classified as next or random.
        rate: Share of a row's ordinary tokens to predict, 0-1.
        ngram_share: Share of draws that choose two or three tokens in a row, equally often, 0-1.
        mask_share: Share of the chosen tokens that become [MASK], 0-1.
        random_share: Share of the chosen tokens that become a random token, 0-1.

    Raises:
        RecipeError: A number is out of range, or the tokenizer has no [MASK] of its own.

    Differs from the paper:
        Special tokens are not masked in pre-training; that [SEP] ends a text is learnt in
        fine-tuning. A sentence that fills a row alone is joined by a neighbour, and a document of
        one sentence is left out, so that every pair can be of either kind; BERT's code makes random
        pairs of them.
    """

    chooses = CHOOSES

    def __init__(
        self,
        context: Context,
        *,
        bidirectional: float = 2.0,
        sequence_to_sequence: float = 2.0,
        left_to_right: float = 1.0,
        right_to_left: float = 1.0,
        next_sentence: bool = True,
        rate: float = 0.15,
        ngram_share: float = 0.2,
        mask_share: float = 0.8,
        random_share: float = 0.1,
    ):
        where = "objectives.unified_lm"
        numbers = {
            Mode.BIDIRECTIONAL: bidirectional,
            Mode.LEFT_TO_RIGHT: left_to_right,
            Mode.RIGHT_TO_LEFT: right_to_left,
            Mode.SEQUENCE_TO_SEQUENCE: sequence_to_sequence,
        }
        if min(numbers.values()) < 0 or not sum(numbers.values()):
            told = ", ".join(f"{mode.name.lower()} {n}" for mode, n in numbers.items())
            raise RecipeError(f"{where}: expected numbers from 0 with a sum above 0, got {told}")
        noise.check_shares("unified_lm", rate, mask_share, random_share)
        if not 0.0 <= ngram_share <= 1.0:
            raise RecipeError(f"{where}.ngram_share: expected 0 to 1, got {ngram_share}")
        check_mask(context.tokenizer, where)
        self.context = context
        self.shares = np.array([numbers[mode] for mode in Mode]) / sum(numbers.values())
        self.next_sentence = next_sentence and bidirectional > 0
        self.rate = rate
        self.run_lengths = np.array([1.0 - ngram_share, ngram_share / 2, ngram_share / 2])
        self.mask_share = mask_share
        self.random_share = random_share
        self.num_slots = noise.num_slots(rate, context.sequence_length)
        tokenizer = context.tokenizer
        self._ordinary = noise.ordinary_ids(tokenizer.vocabulary_size, tokenizer.special_ids)

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """Rows with their modes; the details are the shares of padding and of each mode.

        Raises:
            ContractViolation: The corpus lacks a second document (for random segments) or a
                document of two sentences.
        """
        usable = np.flatnonzero(corpus.lengths > 0)
        if self.next_sentence:
            usable = several_documents(corpus, "unified_lm")
        length = self.context.sequence_length
        pairs = pack(corpus, usable, length, rng, self._relation, alone=False)
        if not len(pairs):
            raise ContractViolation(
                "unified_lm: needs documents of two sentences or more; the corpus has none"
            )
        entries = np.empty(len(pairs), ENTRY)
        for name in PAIR.names or ():
            entries[name] = pairs[name]
        entries["mode"] = self._modes(pairs["relation"] == Relation.RANDOM, rng)
        alone = np.isin(entries["mode"], ONE_WAY)
        lengths = np.where(
            alone, self._ends(pairs) - pairs["first"]["start"] + 2, lengths_of(pairs)
        )
        shares = np.bincount(entries["mode"], minlength=len(Mode)) / len(entries)
        details = {f"{mode.name.lower()}_rows": float(shares[mode]) for mode in Mode}
        padding = 1.0 - float(lengths.mean()) / length
        return Index(entries, lengths, details={"padding": padding, **details})

    def _relation(self, collected: int, chance: Chance) -> Relation:
        """`RANDOM` for half of the bidirectional rows, else `NEXT`."""
        share = self.shares[Mode.BIDIRECTIONAL] / 2 if self.next_sentence else 0.0
        return Relation.RANDOM if chance.uniform() < share else Relation.NEXT

    def _modes(self, is_random: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Each row's mode: bidirectional for random pairs, others as `shares` leaves room for."""
        modes = np.full(len(is_random), Mode.BIDIRECTIONAL, np.int64)
        wanted = self.shares * len(is_random)
        wanted[Mode.BIDIRECTIONAL] = max(wanted[Mode.BIDIRECTIONAL] - is_random.sum(), 0.0)
        count = int((~is_random).sum())
        places = (rng.permutation(count) + 0.5) / max(count, 1)
        bounds = np.cumsum(wanted[:-1] / max(wanted.sum(), 1e-9))
        modes[~is_random] = np.searchsorted(bounds, places, side="right")
        return modes

    def _ends(self, pairs: np.ndarray) -> np.ndarray:
        """End of the text of rows that are one segment: as much of the pair as fits."""
        room = room_for(self.context.sequence_length, 2)
        return np.minimum(pairs["second"]["end"], pairs["first"]["start"] + room)

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """[CLS] A [SEP] B [SEP], or [CLS] text [SEP] in one direction, with modes and labels."""
        batch = empty_rows(len(entries), self.context)
        ends = self._ends(entries).tolist()
        for row, (first, second, _, mode) in enumerate(entries.tolist()):
            if mode in ONE_WAY:
                write_row(batch, row, corpus, [(*first[:2], ends[row])], self.context)
                continue
            end = write_row(batch, row, corpus, [first, second], self.context)
            batch[keys.SEGMENT_IDS][row, 2 + first[2] - first[1] : end] = 1
        batch[keys.MODES] = entries["mode"].astype(np.int32)
        if self.next_sentence:
            batch[NEXT_LABELS] = (entries["relation"] == Relation.RANDOM).astype(np.int32)
            batch[NEXT_WEIGHTS] = (entries["mode"] == Mode.BIDIRECTIONAL).astype(np.float32)
        return batch

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Corrupt ``token_ids``; add mask positions, labels and loss weights, (B, M)."""
        tokens, tokenizer = batch[keys.TOKEN_IDS], self.context.tokenizer
        may_choose = noise.candidates(tokens, batch[keys.PADDING_MASK], tokenizer.special_ids)
        wanted = noise.budget(may_choose, self.rate, self.num_slots)
        every = np.ones(tokens.shape, bool)  # runs are of tokens, not of words
        chosen = noise.choose_ngrams(may_choose, every, wanted, rng, self.run_lengths)
        positions, labels, weights = noise.slots(tokens, chosen, self.num_slots)
        shares = (self.mask_share, self.random_share)
        return batch | {
            keys.TOKEN_IDS: noise.replace(
                tokens, chosen, tokenizer.mask_id, self._ordinary, rng, *shares
            ),
            keys.MASK_POSITIONS: positions,
            keys.MASK_LABELS: labels,
            keys.MASK_WEIGHTS: weights,
        }

    def attach(self, network: Any) -> _UnifiedLMScorer:
        """One head for masked tokens, and one for pairs."""
        return _UnifiedLMScorer(network, self.next_sentence)

    def prompting(self, network: Any, scorer: Any) -> Prompting:
        """A text gets a second one that follows it; no special token was ever predicted.

        Raises:
            RecipeError: No row was read from one text to another.
        """
        if not self.shares[Mode.SEQUENCE_TO_SEQUENCE]:
            raise RecipeError(
                "objectives.unified_lm.sequence_to_sequence: 0, so that the network has not learned"
                " to write after a text; train with some such rows, or fine-tune with the head"
                " sequence_to_sequence"
            )
        tokenizer = self.context.tokenizer
        reading = Reading(network, scorer.tokens, tokenizer.mask_id)
        return going_on(reading, tokenizer, closed=True)


class _UnifiedLMScorer(ScorerLayer):
    """Masked tokens of all rows, and the relation of the pairs in bidirectional ones."""

    reads = MaskedTokens.reads

    def __init__(self, network: Any, next_sentence: bool):
        super().__init__(name="unified_lm", dtype=network.dtype_policy.name, autocast=False)
        self.tokens = MaskedTokens(network, name="tokens")
        self.pairs = None
        if next_sentence:
            self.pairs = PooledClassifier(network, "pairs", 2, NEXT_LABELS, NEXT_LOGITS)
        self.built = True

    @property
    def tied_embedding(self) -> Any:
        """The network's token embedding, used as the output matrix, (V, E)."""
        return self.tokens.tied_embedding

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """``loss``, the sum of both means, for each masked token; accuracy of masked tokens.

        ``token_loss``, ``next_sentence_loss`` and ``next_sentence_accuracy`` are exact means of
        their own.
        """
        scores, predictions = self.tokens(batch, outputs, training=training)
        if self.pairs is None:
            return scores, predictions
        rows = batch
        if NEXT_WEIGHTS in batch:
            rows = {**batch, keys.ROW_WEIGHTS: self.weighted(batch, batch[NEXT_WEIGHTS])}
        told, logits = self.pairs(rows, outputs, training=training)
        predictions = {**predictions, **logits}
        if not scores or not told:
            return scores, predictions
        nats, tokens = scores["loss"]
        of_pairs = self.mean_beside(batch, "next_sentence_loss", told["loss"], tokens)
        return {
            **scores,
            "loss": (nats + of_pairs, tokens),
            "token_loss": (nats, tokens),
            **{f"next_sentence_{name}": pair for name, pair in told.items()},
        }, predictions
