"""Writing a text: a translation, a summary or a title of the row's text.

A causal network reads both texts as one; each token of the second is predicted from those before
it:

    token_ids   [CLS]  the  cat  [SEP]  die  Katze
    target                        die  Katze [SEP]

An encoder–decoder reads the first with its encoder and the second with its decoder, begun as it has
learned to, BART with [SEP] [CLS]:

    token_ids   [CLS]  the  cat  [SEP]          target_ids  [SEP]  [CLS]   die  Katze
                                                target              die   Katze [SEP]

Predictions are written token by token (`models.decoding`). The output matrix is the network's token
embedding, without a bias.

A network with modes (UniLM) fills in blanks: the target's tokens see the text and the tokens before
them; some are hidden, and predicted at their own positions by the head that was pre-trained with
masked tokens:

    token_ids   [CLS]  the  cat  [SEP]  die  [MASK]  [MASK]
    target                                   Katze   [SEP]

It writes into one [MASK] after another.

Reference:
    Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", 3.6 and 3.7, for one
    network that continues the text it has read; label smoothing: Vaswani et al. 2017,
    arXiv 1706.03762, 5.4. Blanks: Dong et al. 2019, arXiv 1905.03197, 2.5 and 3.1. Prefixes:
    Raffel et al. 2020, arXiv 1910.10683, 2.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from fourstage.errors import RecipeError
from models import features as keys
from models.answers.text import texts_of, written
from models.decoding.prompting import Prompting
from models.decoding.reader import Reading, cached_reader
from models.decoding.recurrent import reading_apart
from models.decoding.settings import Generation
from models.decoding.writer import Writer
from models.inputs import noise
from models.inputs.mask_token import check_mask
from models.inputs.mixture import PrefixedRows
from models.inputs.rows import check_answers, framed_texts, text_index
from models.keras_ops import ops
from models.layers.divergence import symmetric_kl
from models.layers.target_scorer import TargetScorer, TargetScores
from models.layers.token_prediction import TokenPrediction
from models.modes import Mode
from models.protocols import (
    Answer,
    Batch,
    Capability,
    Context,
    Index,
    TokenisedRows,
    Tokenizer,
)

NEEDS = ("generation",)
PROVIDES = ("written_targets",)
CHOOSES = 2
PREPARES = True
ANSWERS = "text"
WRITES = True
MIXES = True
READS_TARGETS = True
ANSWER_SETTINGS = ("beams", "length_penalty", "no_repeat_ngram", "min_tokens")

MASK_RATE = 0.7  # as in the paper, but for dialogue


class SequenceToSequence:
    """Both halves of writing texts.

    A row's text is cut to leave room for `target_length` tokens (`framed_texts`), and its target is
    cut to them. The index's details count both. Of several references, the first is learnt from.
    Rows of other datasets may be mixed with those of its own (`models.inputs.mixture`).

    Args:
        context: The stage's constants.
        target_length: Most tokens of a target, [SEP] included, and of a text that is written.
        label_smoothing: Share of the probability that is spread over the vocabulary but [PAD], 0-1.
        mask_rate: Share of a target's tokens that is hidden in training, 0-1, [SEP] among them; for
            a network with modes only, where it is 0.7 by default.
        beams: Hypotheses kept at each step of writing; 1 for greedy search.
        length_penalty: A hypothesis of n tokens scores Σ log p / n^length_penalty; only with beams.
        no_repeat_ngram: Length of token sequences that appear at most once; 0 for no limit.
        min_tokens: Tokens before which no text ends.
        prefix: Text before each row's text that says what to do with it (T5), such as "summarize:".

    Raises:
        RecipeError: A setting is out of range, leaves no room for the row's text, or needs a [MASK]
            that the tokenizer does not have of its own; or most training rows begin with the prefix
            already.
        ContractViolation: The training rows' answers are not texts.
    """

    chooses = CHOOSES
    targets = (keys.TARGET_IDS, keys.TARGET_MASK, keys.TARGET_LABELS, keys.TARGET_WEIGHTS)

    def __init__(
        self,
        context: Context,
        *,
        target_length: int = 32,
        label_smoothing: float = 0.0,
        mask_rate: float | None = None,
        beams: int = 1,
        length_penalty: float = 1.0,
        no_repeat_ngram: int = 0,
        min_tokens: int = 0,
        prefix: str = "",
    ):
        where = "head.sequence_to_sequence"
        most = context.sequence_length - 5
        if not 2 <= target_length <= most:
            raise RecipeError(
                f"{where}.target_length: expected 2 to {most} tokens, got {target_length}; the"
                f" stage's rows have {context.sequence_length} tokens, text and target together"
            )
        if not 0.0 <= label_smoothing < 1.0:
            raise RecipeError(
                f"{where}.label_smoothing: expected a share from 0 to below 1, got"
                f" {label_smoothing}"
            )
        if min_tokens > target_length:
            raise RecipeError(
                f"{where}.min_tokens: expected at most target_length, {target_length}, got"
                f" {min_tokens}"
            )
        self.fills_blanks = Capability.MODES in context.network
        if mask_rate is not None and not self.fills_blanks:
            raise RecipeError(
                f"{where}.mask_rate: only a network with modes, such as unilm, fills in blanks;"
                " leave it out"
            )
        self.mask_rate = MASK_RATE if mask_rate is None else mask_rate
        if not 0.0 < self.mask_rate <= 1.0:
            raise RecipeError(f"{where}.mask_rate: expected a number in (0, 1], got {mask_rate}")
        if self.fills_blanks:
            check_mask(context.tokenizer, where)
        self.context = context
        self.target_length = target_length
        self.label_smoothing = label_smoothing
        try:
            self.generation = Generation(
                max_new_tokens=target_length,
                min_new_tokens=min_tokens,
                beams=beams,
                length_penalty=length_penalty,
                no_repeat_ngram=no_repeat_ngram,
            )
        except ValueError as error:
            raise RecipeError(f"{where}: {error}") from None
        tokenizer = context.tokenizer
        self._never = sorted({*tokenizer.special_ids} - {tokenizer.sep_id})
        (self._prefix,) = tokenizer.encode([prefix]) if prefix else (np.zeros(0, np.int32),)
        self._source = replace(context, sequence_length=context.sequence_length - target_length)
        self._check_room(f"{where}.prefix", self._prefix)
        # By dataset: batches of a mixture have rows of several, and a thread makes them ahead.
        self._encoded: WeakKeyDictionary[Any, list[np.ndarray]] = WeakKeyDictionary()
        if context.rows is not None:
            right = [_first_text(answer) is not None for answer in context.rows.answers]
            check_answers("sequence_to_sequence", context.rows, right, "a list of texts")
            _check_bare(f"{where}.prefix", context.rows, self._prefix)

    def _check_room(self, where: str, prefix: np.ndarray) -> None:
        length = self._source.sequence_length
        if len(prefix) > length - 5:
            raise RecipeError(
                f"{where}: {len(prefix)} tokens leave no room for the row's text; the"
                f" stage's rows have {length} tokens beside the target"
            )

    def index(self, corpus: TokenisedRows | PrefixedRows, rng: np.random.Generator) -> Index:
        """Every row once, in order."""
        if isinstance(corpus, PrefixedRows):
            self._check_room(corpus.where, corpus.prefix)
            _check_bare(corpus.where, corpus, corpus.prefix)
        texts = (self._texts(corpus, row) for row in range(len(corpus)))
        sources = text_index(texts, self._source.sequence_length)
        lengths = np.array([len(target) + 1 for target in self._targets(corpus)], np.int64)
        return Index(
            sources.entries,
            sources.lengths + np.minimum(lengths, self.target_length),
            by_length=True,
            details={
                **sources.details,
                "truncated_targets": int((lengths > self.target_length).sum()),
                "longest_target": int(lengths.max()),
            },
        )

    def segments(
        self, corpus: TokenisedRows | PrefixedRows, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """Texts and targets; the targets of rows without answers have no weight."""
        rows = entries.tolist()
        batch = framed_texts([self._texts(corpus, row) for row in rows], self._source)
        tokenizer, all_targets = self.context.tokenizer, self._targets(corpus)
        targets = [all_targets[row][: self.target_length - 1] for row in rows]
        width = 1 + max(map(len, targets))
        width = min(-(-width // 8) * 8, self.target_length)  # few lengths, of which all are traced
        ids = np.full((len(rows), width), tokenizer.pad_id, np.int32)
        labels, mask = ids.copy(), np.zeros_like(ids)
        weights = np.zeros(ids.shape, np.float32)
        for row, target in enumerate(targets):
            end = len(target)
            ids[row, 0], ids[row, 1 : end + 1] = tokenizer.sep_id, target
            labels[row, :end], labels[row, end] = target, tokenizer.sep_id
            mask[row, : end + 1] = 1
            weights[row, : end + 1] = bool(corpus.answers[rows[row]])
        values = (ids, mask, labels, weights)
        return batch | dict(zip(self.targets, values, strict=True))

    def _texts(self, rows: TokenisedRows | PrefixedRows, row: int) -> tuple[np.ndarray, ...]:
        """Token ids of a row's texts, the prefix before the first."""
        prefix = rows.prefix if isinstance(rows, PrefixedRows) else self._prefix
        first, *more = rows.texts(row)
        return (np.concatenate([prefix, first]), *more)

    def _targets(self, rows: TokenisedRows | PrefixedRows) -> list[np.ndarray]:
        """Token ids of each row's first reference."""
        if rows not in self._encoded:
            texts = [_first_text(answer) or "" for answer in rows.answers]
            self._encoded[rows] = self.context.tokenizer.encode(texts)
        return self._encoded[rows]

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Blanks, for a network that fills them in.

        80 % of the hidden tokens become [MASK], 10 % a random one, as in pre-training and the
        authors' code; the others have no weight.
        """
        if not self.fills_blanks:
            return batch
        tokenizer, labels = self.context.tokenizer, batch[keys.TARGET_LABELS]
        there = batch[keys.TARGET_MASK] > 0
        chosen = noise.choose_tokens(
            there, noise.budget(there, self.mask_rate, labels.shape[1]), rng
        )
        ordinary = noise.ordinary_ids(tokenizer.vocabulary_size, tokenizer.special_ids)
        return batch | {
            keys.TARGET_IDS: noise.replace(labels, chosen, tokenizer.mask_id, ordinary, rng),
            keys.TARGET_WEIGHTS: batch[keys.TARGET_WEIGHTS] * chosen,
        }

    def attach(self, network: Any) -> _Compared:
        """A scorer; without blanks it has no variables, as the token embedding predicts."""
        kind = _BlankScorer if self.fills_blanks else _SequenceToSequenceScorer
        return kind(network, self.context.tokenizer, self.label_smoothing)

    def predicting(self, network: Any, scorer: Any) -> Callable[[Batch], dict[str, np.ndarray]]:
        """What writes a text for each row of a batch."""
        tokenizer = self.context.tokenizer
        reader = cached_reader(self.reading(network, scorer), self.generation.beams)
        return Writer(reader, self.generation, tokenizer.sep_id, self._never, tokenizer.pad_id)

    def readings(self, batch: Batch) -> Iterator[Batch]:
        """A batch as it has to be read for the likelihood of each target (`Head`).

        Once, but of a network that fills in blanks one token is hidden at a time, of which it sees
        none that come later.
        """
        if not self.fills_blanks:
            yield batch
            return
        labels, there = batch[keys.TARGET_LABELS], batch[keys.TARGET_MASK]
        for place in range(labels.shape[1]):
            ids, weights = labels.copy(), np.zeros(labels.shape, np.float32)
            ids[:, place], weights[:, place] = self.context.tokenizer.mask_id, there[:, place]
            yield batch | {keys.TARGET_IDS: ids, keys.TARGET_WEIGHTS: weights}

    def reading(self, network: Any, scorer: Any) -> Reading:
        """How the network reads what it has written."""
        if scorer.begin:
            return reading_apart(network, scorer, scorer.begin)
        blank = self.context.tokenizer.mask_id if self.fills_blanks else None
        return Reading(network, scorer, blank)

    def prompting(self, network: Any, scorer: Any) -> Prompting:
        """A text, or two with a tab between them, is what a row has; its target is written."""
        tokenizer = self.context.tokenizer

        def prompt(text: str) -> list[int]:
            ids = [tokenizer.cls_id, *self._prefix.tolist()]
            for part in tokenizer.encode(text.split("\t", 1)):
                ids += [*part.tolist(), tokenizer.sep_id]
            return ids

        return Prompting(
            reading=self.reading(network, scorer),
            prompt=prompt,
            never=self._never,
            whole=lambda _, tokens: tokens,
            defaults=self.generation,
            kept=1 + len(self._prefix),
            longest_prompt=self._source.sequence_length if scorer.begin else None,
        )

    def served(self) -> dict[str, Any]:
        """What a served model has to know of the head."""
        tokenizer = self.context.tokenizer
        return {
            "prefix": self._prefix.tolist(),
            "source_length": self._source.sequence_length,
            "longest": self.context.sequence_length,
            "generation": asdict(self.generation),
            "stop": tokenizer.sep_id,
            "never": self._never,
            "pad": tokenizer.pad_id,
            **tokenizer.served(),
        }

    def answer(
        self, rows: TokenisedRows, row: int, outputs: Sequence[Mapping[str, np.ndarray]]
    ) -> Answer:
        """The text as JSON, with the probability of it as a whole; the target's likelihood."""
        (entry,) = outputs
        text, probability = None, math.nan
        if keys.WRITTEN_IDS in entry:
            ids = [int(token) for token in entry[keys.WRITTEN_IDS] if token >= 0]
            text = self.context.tokenizer.decode(ids).strip()
            probability = math.exp(entry[keys.LOG_PROBABILITY])
        likelihood = self._likelihood(rows, row, entry) if keys.TARGET_NATS in entry else None
        return Answer(written(text, likelihood), probability)

    def _likelihood(
        self, rows: TokenisedRows, row: int, entry: Mapping[str, np.ndarray]
    ) -> tuple[float, float, float]:
        """Nats, tokens and words of a row's target, as far as it was read; 0 without an answer."""
        text = _first_text(rows.answers[row]) if rows.answers[row] else None
        if text is None:
            return 0.0, 0.0, 0.0
        read = float(entry[keys.TARGET_TOKENS])
        share = read / (len(self._targets(rows)[row]) + 1)
        return float(entry[keys.TARGET_NATS]), read, share * len(text.split())


def _check_bare(where: str, rows: TokenisedRows | PrefixedRows, prefix: np.ndarray) -> None:
    """Refuse a prefix that most training rows bring along: they would have it twice.

    A text that is written later comes without it, and would be of another kind. Fewer rows may well
    begin with its words by chance.
    """
    firsts = (rows.texts(row)[0][: len(prefix)] for row in range(len(rows)))
    there = sum(np.array_equal(first, prefix) for first in firsts) if len(prefix) else 0
    if 2 * there > len(rows):
        raise RecipeError(
            f"{where}: expected training rows without their prefix, which is added to each, got"
            f" {there} of {len(rows)} that begin with it; take it out of their texts"
        )


def _first_text(answer: str) -> str | None:
    """The text to learn, or None if the answer is no list of texts."""
    try:
        return texts_of(answer)[0]
    except ValueError:
        return None


class _Compared(TargetScores):
    """A target's score, whose predictions R-Drop compares."""

    def divergence(self, batch: dict, first: dict, second: dict) -> tuple[Any, Any]:
        """Symmetric divergence of the next token's distributions."""
        return symmetric_kl(
            first[keys.TOKEN_LOGITS], second[keys.TOKEN_LOGITS], self.weights_of(batch)
        )


class _SequenceToSequenceScorer(_Compared, TargetScorer):
    """Each token of the target is predicted where the one before it is read."""

    def __init__(self, network: Any, tokenizer: Tokenizer, label_smoothing: float):
        super().__init__(network, "sequence_to_sequence", tokenizer)
        self.label_smoothing, self.pad_id = label_smoothing, tokenizer.pad_id


class _BlankScorer(TokenPrediction, _Compared):
    """Hidden tokens of the target are predicted at their own positions, as masked ones are."""

    starts_as: ClassVar[Mapping[str, str]] = {"unified_lm": "tokens/", "masked_lm": ""}

    def __init__(self, network: Any, tokenizer: Tokenizer, label_smoothing: float):
        super().__init__(network, name="sequence_to_sequence")
        self.label_smoothing, self.pad_id = label_smoothing, tokenizer.pad_id

    def prepare(self, batch: dict, training: bool) -> dict:
        """Text and target in one row, the target as its second text."""
        if keys.TARGET_IDS not in batch:
            return batch
        text, target = batch[keys.TOKEN_IDS], batch[keys.TARGET_IDS]
        parts = {
            keys.TOKEN_IDS: [text, target],
            keys.SEGMENT_IDS: [ops.zeros_like(text), ops.ones_like(target)],
            keys.PADDING_MASK: [batch[keys.PADDING_MASK], batch[keys.TARGET_MASK]],
        }
        joined = {name: ops.concatenate(both, axis=1) for name, both in parts.items()}
        modes = ops.zeros_like(text[:, 0]) + int(Mode.SEQUENCE_TO_SEQUENCE)
        return {**batch, **joined, keys.MODES: modes}
