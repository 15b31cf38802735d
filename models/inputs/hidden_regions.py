"""Regions that objectives hide and predict: one choice for all objectives of a batch."""

from __future__ import annotations

import numpy as np

from fourstage.errors import ContractViolation
from models import features as keys
from models.protocols import Batch


def hide(
    objective: str,
    batch: Batch,
    rng: np.random.Generator,
    rate: float,
    mask_share: float,
    random_share: float,
) -> Batch:
    """Hide some regions of each row, at least one of a row that has any.

    Where another objective has hidden regions of the batch already, these are the ones.

    Args:
        objective: Name of the objective.
        batch: With regions.
        rng: Random generator.
        rate: Share of regions that are chosen, 0-1.
        mask_share: Share of the chosen ones whose features become 0.
        random_share: Share that get the features of a region of the batch.

    Returns:
        The batch, with ``masked_regions`` (B, O), 1 where features are 0 now, ``region_labels``
        (B, O, E), the features as they were, and ``region_weights`` (B, O), 1 where chosen.

    Raises:
        ContractViolation: The rows have no regions.
    """
    if keys.REGION_LABELS in batch:
        return batch
    if keys.REGION_FEATURES not in batch:
        raise ContractViolation(
            f"objectives.{objective}: its rows have no regions; name a dataset with pictures among"
            " the corpora of the stage"
        )
    features, there = batch[keys.REGION_FEATURES], batch[keys.REGION_MASK] > 0
    order = np.where(there, rng.random(there.shape), 2.0)
    chosen = order < rate
    first = np.argmin(order, axis=1)
    chosen[np.arange(len(order)), first] = there.any(axis=1)  # the lowest, if none was below
    dice = rng.random(there.shape)
    masked = chosen & (dice < mask_share)
    swapped = chosen & (dice >= mask_share) & (dice < mask_share + random_share)
    after = np.where(masked[:, :, None], np.float32(0.0), features)
    real = features[there]
    after[swapped] = real[rng.integers(0, max(len(real), 1), int(swapped.sum()))]
    return batch | {
        keys.REGION_FEATURES: after,
        keys.MASKED_REGIONS: masked.astype(np.int32),
        keys.REGION_LABELS: features,
        keys.REGION_WEIGHTS: chosen.astype(np.float32),
    }
