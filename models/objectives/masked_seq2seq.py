"""Masked sequence to sequence: a fragment that the encoder does not see is what the decoder writes.

    text              [CLS]  it   was  the  cat  sat  on   the  mat
    token_ids         [CLS]  it   _    _    _    _    on   the  mat
    attended_mask       1    1    0    0    0    0    1    1    1
    target_positions         1    2    3    4
    target_ids               it   was  the  cat
    target                   was  the  cat  sat

What the decoder reads stands where it stands in the text. But for the token before the fragment it
has nothing that the encoder sees, and it attends to all tokens but [MASK]. The loss is the mean
cross-entropy of the fragment's tokens. The output matrix is the network's token embedding, without
a bias.

Reference:
    Song et al. 2019 (MASS), arXiv 1905.02450, 3.1 and 3.2; ``trainer.py`` of microsoft/MASS, for
    unsupervised translation. Fragments begin anywhere alike; there 20 % begin with the text and
    20 % end with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fourstage.errors import RecipeError
from models import features as keys
from models.decoding.fragment import FragmentReading
from models.decoding.prompting import Prompting
from models.inputs import noise
from models.inputs.blanks import BLANK, around_blanks
from models.inputs.mask_token import check_mask
from models.inputs.windows import Windows
from models.layers.target_scorer import TargetScorer
from models.protocols import (
    Batch,
    Context,
    Index,
    TokenisedCorpus,
    TokenisedRows,
    Tokenizer,
)

NEEDS = ("encoder_decoder",)
PROVIDES = ()
CHOOSES = 1
PREPARES = False
ALONE = True
NEEDS_MASK = ("rate",)
WRITES = True
# Held-out loss is measured with [MASK] only, as that of masked_lm: tokens that stay can be copied.
MEASURED = {"mask_share": 1.0, "random_share": 0.0}
PREDICTS_ENDS = "all"  # a fragment holds them as often as any token


class MaskedSeq2Seq(Windows):
    """Both halves of masked sequence to sequence.

    Rows are full windows over the corpus: [CLS], then the text, with [SEP] after each document and
    nowhere else. A fragment may hold the end of a document, which is written like any token.

    Args:
        context: The stage's constants.
        rate: The fragment's share of a row's tokens after [CLS], 0-1.
        mask_share: Share of the fragment's tokens that become [MASK], 0-1.
        random_share: Share of them that become a random token, 0-1; the rest stay.
        across_documents: Whether a row continues with the next document where one ends.

    Raises:
        RecipeError: A share is out of range, or the tokenizer has no [MASK] of its own.
    """

    chooses = CHOOSES
    closed = False

    def __init__(
        self,
        context: Context,
        *,
        rate: float = 0.5,
        mask_share: float = 0.8,
        random_share: float = 0.1,
        across_documents: bool = True,
    ):
        noise.check_shares("masked_seq2seq", rate, mask_share, random_share)
        check_mask(context.tokenizer, "objectives.masked_seq2seq")
        self.context = context
        self.rate = rate
        self.mask_share = mask_share
        self.random_share = random_share
        self.across_documents = across_documents
        self.num_slots = noise.num_slots(rate, context.sequence_length - 1)
        tokenizer = context.tokenizer
        self._ordinary = noise.ordinary_ids(tokenizer.vocabulary_size, tokenizer.special_ids)

    def index(self, corpus: TokenisedCorpus | TokenisedRows, rng: np.random.Generator) -> Index:
        """Full windows, whose lengths count the fragment twice, as it is read and written."""
        index = super().index(corpus, rng)  # pyright: ignore[reportArgumentType]
        return replace(index, lengths=index.lengths + self._sizes(index.lengths))

    def _sizes(self, lengths: np.ndarray) -> np.ndarray:
        """Tokens of the fragments of rows of these lengths."""
        return noise.budget_of(lengths - 1, self.rate, self.num_slots)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Hide a fragment in ``token_ids``; it becomes the target, (B, S)."""
        tokens, lengths = batch[keys.TOKEN_IDS], batch[keys.PADDING_MASK].sum(axis=1)
        tokenizer = self.context.tokenizer
        chosen = noise.choose_fragment(lengths, self._sizes(lengths), tokens.shape[1], rng)
        positions, labels, weights = noise.slots(tokens, chosen, self.num_slots)
        seen = noise.replace(
            tokens,
            chosen,
            tokenizer.mask_id,
            self._ordinary,
            rng,
            self.mask_share,
            self.random_share,
        )
        written = weights > 0
        before = np.where(written, positions - 1, 0)
        read = np.take_along_axis(tokens, before, axis=1)
        return batch | {
            keys.TOKEN_IDS: seen,
            keys.ATTENDED_MASK: batch[keys.PADDING_MASK] * (seen != tokenizer.mask_id),
            keys.TARGET_IDS: np.where(written, read, tokenizer.pad_id).astype(np.int32),
            keys.TARGET_POSITIONS: before.astype(np.int32),
            keys.TARGET_MASK: written.astype(np.int32),
            keys.TARGET_LABELS: labels,
            keys.TARGET_WEIGHTS: weights,
        }

    def attach(self, network: Any) -> _FragmentScorer:
        """A scorer without variables: the token embedding makes the predictions."""
        return _FragmentScorer(network, self.context.tokenizer)

    def prompting(self, network: Any, scorer: Any) -> Prompting:
        """A run of blanks in a text, a token each, is written.

        Raises:
            RecipeError: The network is recurrent.
        """
        if hasattr(network, "num_states"):
            raise RecipeError(
                "objectives.masked_seq2seq: a recurrent network does not write in the middle of a"
                " text; fine-tune it with the head sequence_to_sequence, which it does write with"
            )
        tokenizer = self.context.tokenizer
        mask_id = tokenizer.mask_id

        def prompt(text: str) -> list[int]:
            first, *between, last = around_blanks(tokenizer, text)
            if any(between):
                raise ValueError(
                    f"the network writes one fragment, a token for each {BLANK}, and there is text"
                    " between them; leave one run of blanks"
                )
            blanks = [mask_id] * (1 + len(between))
            return [tokenizer.cls_id, *first, *blanks, *last, tokenizer.sep_id]

        def whole(prompt: Sequence[int], tokens: Sequence[int]) -> list[int]:
            first = prompt.index(mask_id)
            return [*prompt[1:first], *tokens, *prompt[first + len(tokens) : -1]]

        return Prompting(
            reading=FragmentReading(network, scorer, mask_id),
            prompt=prompt,
            never=tokenizer.special_ids,
            whole=whole,
            exactly=lambda prompt: list(prompt).count(mask_id),
        )


class _FragmentScorer(TargetScorer):
    """A fragment's score; the decoder begins with the token before it, as the batch has it."""

    def __init__(self, network: Any, tokenizer: Tokenizer):
        super().__init__(network, "masked_seq2seq", tokenizer)
        self.begin = ()

    def prepare(self, batch: dict, training: bool) -> dict:
        """Nothing to change."""
        return batch
