"""Denoising entity auto-encoder: which of the batch's entities does a name mean?

Of the names that a text has, 5 % are read with another entity of the batch, 15 % with none, and the
rest with their own. What each one means is predicted from its first token, over the entities of the
batch alone: softmax of the products of the token's projected state with the fixed vectors.

Reference:
    Zhang et al. 2019, arXiv 1905.07129, 3.5, and the authors' code (`run_pretrain.py`), which may
    draw the entity itself as the other one, and has "no entity" among what can be predicted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fourstage.errors import ContractViolation, RecipeError
from models import features as keys
from models.inputs.noise import slots
from models.inputs.windows import Windows
from models.keras_ops import ops
from models.layers.attention import NOT_SEEN
from models.layers.gather import gather_positions
from models.layers.loss import cross_entropy
from models.layers.norm import norm_layer
from models.layers.projection import ActivatedProjection
from models.layers.scorer import Scored, ScorerLayer
from models.protocols import Batch, Context

NEEDS = ("entities",)
PROVIDES = ()
CHOOSES = 1
PREPARES = False
SHARE = 4  # one slot for so many tokens of a row


class EntityDenoising(Windows):
    """Both halves of the denoising entity auto-encoder.

    A row has slots for as many names as a quarter of its tokens; of more, some are drawn. With
    micro-batches, what can be predicted are the entities of each.

    Args:
        context: The stage's constants.
        replaced: Share of names that are read with another entity of the batch, 0-1.
        unaligned: Share of names that are read with none, 0-1.

    Raises:
        RecipeError: A share is out of range.
    """

    chooses = CHOOSES

    def __init__(self, context: Context, *, replaced: float = 0.05, unaligned: float = 0.15):
        if min(replaced, unaligned) < 0.0 or replaced + unaligned > 1.0:
            raise RecipeError(
                "objectives.entity_denoising: replaced and unaligned must not be negative nor"
                f" exceed 1 together, got {replaced} and {unaligned}"
            )
        self.context = context
        self.replaced, self.unaligned = replaced, unaligned
        self.num_slots = -(-context.sequence_length // SHARE)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Corrupt ``entity_ids``; add positions, candidates, labels and loss weights, (B, K).

        Raises:
            ContractViolation: The rows have no entities.
        """
        if keys.ENTITY_IDS not in batch:
            raise ContractViolation(
                "objectives.entity_denoising: its rows name no entities; say `units: {entities:"
                " FILE}` in the recipe"
            )
        ids = batch[keys.ENTITY_IDS]
        named = ids > 0
        order = np.argsort(np.where(named, rng.random(ids.shape), 2.0), axis=1)
        chosen = named & (np.argsort(order, axis=1) < self.num_slots)
        positions, labels, weights = slots(ids, chosen, self.num_slots)
        return batch | {
            keys.ENTITY_IDS: corrupted(ids, self.replaced, self.unaligned, rng),
            keys.ENTITY_POSITIONS: positions,
            keys.ENTITY_CANDIDATES: labels,
            keys.ENTITY_LABELS: labels.copy(),
            keys.ENTITY_WEIGHTS: weights,
        }

    def attach(self, network: Any) -> _EntityScorer:
        """The head: dense → activation → LayerNorm → products with the entities' vectors."""
        return _EntityScorer(network)


def corrupted(
    ids: np.ndarray, replaced: float, unaligned: float, rng: np.random.Generator
) -> np.ndarray:
    """Entities with some of them another of the batch, and some none.

    Args:
        ids: (B, T), 0 for none.
        replaced: Share that become another one; where the batch has no other, they stay.
        unaligned: Share that become 0.
        rng: Random generator.

    Returns:
        (B, T) int32.
    """
    dice, named = rng.random(ids.shape), ids > 0
    known = np.unique(ids[named])
    swapped = named & (dice < replaced) & (len(known) > 1)
    after = np.where((dice >= replaced) & (dice < replaced + unaligned), 0, ids).astype(np.int32)
    own = np.searchsorted(known, ids[swapped])
    other = rng.integers(0, max(len(known) - 1, 1), len(own))
    after[swapped] = known[other + (other >= own)]
    return after


class _EntityScorer(ScorerLayer):
    """Scores which entity of the batch each name means."""

    def __init__(self, network: Any):
        dtype = network.dtype_policy.name
        super().__init__(name="entity_denoising", dtype=dtype, autocast=False)
        # Wrapped in a function, so that Keras does not track the network's table here.
        self._table = lambda: network.entities.embeddings
        self.transform = ActivatedProjection(
            network.entity_dim, activation=network.activation, name="transform", dtype=dtype
        )
        self.norm = norm_layer("norm", network.layer_norm_epsilon)
        self.transform.build((None, None, network.hidden_dim))
        self.norm.build((None, None, network.entity_dim))
        self.built = True

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss and accuracy over the entities of the batch, and their logits, (B, K, B · K)."""
        if keys.ENTITY_POSITIONS not in batch:
            return {}, {}
        hidden = gather_positions(outputs[keys.SEQUENCE_OUTPUT], batch[keys.ENTITY_POSITIONS])
        hidden = self.norm(self.transform(hidden, training=training))  # (B, K, E)
        candidates = ops.reshape(batch[keys.ENTITY_CANDIDATES], (-1,))  # (B·K,)
        vectors = ops.take(ops.convert_to_tensor(self._table()), candidates, axis=0)
        logits = ops.matmul(ops.cast(hidden, "float32"), ops.transpose(vectors))  # (B, K, B·K)
        first = first_of_each(candidates)
        logits = logits + (1.0 - first) * NOT_SEEN
        predictions = {"entity_logits": logits}
        if keys.ENTITY_LABELS not in batch:
            return {}, predictions
        same = ops.equal(batch[keys.ENTITY_LABELS][:, :, None], candidates[None, None])
        labels = ops.argmax(ops.cast(same, "float32") * first, axis=-1)
        weights = batch[keys.ENTITY_WEIGHTS]
        weights = self.weighted(batch, weights)
        return cross_entropy(logits, labels, weights), predictions


def first_of_each(numbers: Any) -> Any:
    """1 where a number above 0 stands for the first time, else 0; (n,) int32 → (n,) float32."""
    place = ops.arange(ops.shape(numbers)[0], dtype="int32")
    same = ops.equal(numbers[:, None], numbers[None, :])
    before = ops.logical_and(same, place[None, :] < place[:, None])
    seen = ops.cast(ops.any(before, axis=1), "float32")
    return (1.0 - seen) * ops.cast(numbers > 0, "float32")
