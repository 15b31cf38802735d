"""Texts for the rows of a batch."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from fourstage.errors import ContractViolation
from models import features as keys
from models.decoding.generate import Reader, generate
from models.decoding.settings import Generation
from models.protocols import Batch


class Writer:
    """Writes a text for each row: a function from a batch to predictions.

    Args:
        reader: The network.
        settings: How tokens are chosen.
        stop: Id that ends a text.
        never: Ids that are never written.
        pad_id: Id of padding.
    """

    def __init__(
        self,
        reader: Reader,
        settings: Generation,
        stop: int,
        never: Collection[int],
        pad_id: int,
    ):
        self._reader, self._settings = reader, settings
        self._stop, self._never, self._pad_id = stop, tuple(never), pad_id

    def __call__(self, batch: Batch) -> dict[str, np.ndarray]:
        """What follows each row.

        Args:
            batch: token_ids and padding_mask (B, T).

        Returns:
            written_ids (B, S) int32, without the stop token, -1 after the end; log_probability
            (B,) float32.

        Raises:
            ContractViolation: No token at all may follow a row.
        """
        there = batch[keys.PADDING_MASK].astype(bool)
        prompts = [ids[kept] for ids, kept in zip(batch[keys.TOKEN_IDS], there, strict=True)]
        try:
            found = generate(
                self._reader,
                prompts,
                self._settings,
                stops={self._stop},
                never=self._never,
                pad_id=self._pad_id,
                batch_size=len(prompts),
            )
        except ValueError as error:
            raise ContractViolation(f"writing: {error}") from None
        ids = np.full((len(found), self._settings.max_new_tokens), -1, np.int32)
        for row, each in enumerate(found):
            ids[row, : len(each.tokens)] = each.tokens
        nats = np.array([each.log_probability for each in found], np.float32)
        return {keys.WRITTEN_IDS: ids, keys.LOG_PROBABILITY: nats}
