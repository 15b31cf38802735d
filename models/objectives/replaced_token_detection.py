"""Replaced token detection: a small generator fills gaps, the network says which tokens are new.

    clean tokens → some become [MASK] → generator → a sample at each chosen position
                 → text with replacements → network → was this token replaced?

The generator is the family's own class at a smaller size and is trained beside the network as a
masked language model; no gradient goes through the samples. After training it is not needed.

Reference:
    Clark et al. 2020 (ELECTRA), arXiv 2003.10555; ``run_pretraining.py`` of
    google-research/electra.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from fourstage.errors import RecipeError, UnknownNameError
from models import features as keys
from models.inputs import noise
from models.inputs.windows import Windows
from models.layers.gather import gather_positions
from models.layers.loss import binary_cross_entropy, cross_entropy
from models.layers.projection import ActivatedProjection, projection
from models.layers.scorer import ScorerLayer
from models.layers.token_prediction import TokenPrediction
from models.protocols import Batch, Capability, Context

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops

NEEDS = ("bidirectional",)
PROVIDES = ()
CHOOSES = 1
PREPARES = True
PREDICT = ("replacement", "token")
LOSS_ON = ("all", "chosen")

GENERATOR_TOKEN_IDS = "generator_token_ids"  # (B, T) int32, what the generator sees
CHOSEN_POSITIONS = "chosen_positions"  # (B, M) int32
CHOSEN_LABELS = "chosen_labels"  # (B, M) int32, the tokens that stand there
CHOSEN_WEIGHTS = "chosen_weights"  # (B, M) float32
DRAWS = "draws"  # (B, M) float32 in [0, 1), which sample of the generator to take
# Made in `prepare`:
ORIGINAL_TOKEN_IDS = "original_token_ids"  # (B, T) int32
GENERATOR_LOGITS = "generator_logits"  # (B, M, V)
REPLACED_SCORES = "replaced_scores"  # (B, T), the log odds that a token is a replacement
NEW_TOKEN_LOGITS = "new_token_logits"  # (B, T, V), for ``predict: token``


class ReplacedTokenDetection(Windows):
    """Both halves of replaced token detection, with its generator.

    A position counts as replaced only where the sample differs from the token that stood there.

    Args:
        context: What is fixed for the stage.
        rate: Share of the tokens of a row that the generator fills in, 0-1.
        mask_share: Share of those that it sees as [MASK]; the rest it sees as they are, 0-1.
        generator_share: Width of the generator's blocks as a share of the network's, 0-1. Its
            depth is the same. Where its tables then are as wide as the network's (a family with an
            ``embedding_dim``, or a share of 1), the two share token, position and segment tables
            and their LayerNorm.
        predict: ``replacement``; or ``token`` for the paper's ablations that predict the token
            that stood there.
        loss_on: ``all`` real tokens, or only the ``chosen`` ones. With ``predict`` this gives the
            paper's four systems: ELECTRA, ELECTRA 15 % (``chosen``), Replace MLM (``token``,
            ``chosen``) and All-Tokens MLM (``token``, ``all``, with the paper's copy mechanism).
        network_weight: Factor of the network's loss beside the generator's; the paper's 50 is
            for ``replacement``.

    Differs from the paper's code:
        Positions are drawn without repetition; its code draws some twice and then averages ids.

    Raises:
        RecipeError: If a share is out of range.
        UnknownNameError: If `predict` or `loss_on` is unknown.
    """

    needs = frozenset(Capability(name) for name in NEEDS)
    provides = frozenset(Capability(name) for name in PROVIDES)
    chooses = CHOOSES
    prepares = PREPARES

    def __init__(
        self,
        context: Context,
        *,
        rate: float = 0.15,
        mask_share: float = 0.85,
        generator_share: float = 0.25,
        predict: str = "replacement",
        loss_on: str = "all",
        network_weight: float = 50.0,
    ):
        where = "objectives.replaced_token_detection"
        if not 0.0 < rate < 1.0:
            raise RecipeError(f"{where}.rate: expected a number in (0, 1), got {rate}")
        for name, share in (("mask_share", mask_share), ("generator_share", generator_share)):
            if not 0.0 < share <= 1.0:
                raise RecipeError(f"{where}.{name}: expected a number in (0, 1], got {share}")
        if predict not in PREDICT:
            raise UnknownNameError(f"{where}.predict", predict, "a prediction", PREDICT)
        if loss_on not in LOSS_ON:
            raise UnknownNameError(f"{where}.loss_on", loss_on, "a choice of tokens", LOSS_ON)
        self.context = context
        self.rate = rate
        self.mask_share = mask_share
        self.generator_share = generator_share
        self.predict = predict
        self.loss_on = loss_on
        self.network_weight = network_weight
        self.num_slots = noise.num_slots(rate, context.sequence_length)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """The generator's input and targets; ``token_ids`` stays clean until `prepare`."""
        tokens = batch[keys.TOKEN_IDS]
        tokenizer = self.context.tokenizer
        may_choose = noise.candidates(tokens, batch[keys.PADDING_MASK], tokenizer.special_ids)
        wanted = noise.budget(may_choose, self.rate, self.num_slots)
        chosen = noise.choose_tokens(may_choose, wanted, rng)
        positions, labels, weights = noise.slots(tokens, chosen, self.num_slots)
        masked = chosen & (rng.random(tokens.shape) < self.mask_share)
        return batch | {
            GENERATOR_TOKEN_IDS: np.where(masked, tokenizer.mask_id, tokens).astype(np.int32),
            CHOSEN_POSITIONS: positions,
            CHOSEN_LABELS: labels,
            CHOSEN_WEIGHTS: weights,
            DRAWS: rng.random(positions.shape).astype(np.float32),
        }

    def attach(self, network: Any) -> _ReplacedTokenScorer:
        """The generator with its head, and the head on the network."""
        return _ReplacedTokenScorer(network, self)

    def decode(self, outputs: Mapping[str, np.ndarray]) -> list[Any]:
        """Whether each token is a replacement; or the likeliest token of each position."""
        if self.predict == "token":
            return np.asarray(outputs[NEW_TOKEN_LOGITS]).argmax(axis=-1).tolist()
        return (np.asarray(outputs[REPLACED_SCORES]) > 0).tolist()


class _ReplacedTokenScorer(ScorerLayer):
    """Fills in the gaps before the network sees the text, and scores both."""

    def __init__(self, network: Any, objective: ReplacedTokenDetection):
        dtype = network.dtype_policy.name
        super().__init__(name="replaced_token_detection", dtype=dtype, autocast=False)
        self.hidden_dim = network.hidden_dim
        self.predict, self.loss_on = objective.predict, objective.loss_on
        self.network_weight = objective.network_weight
        self.generator = _generator(network, objective.generator_share)
        self.generator_head = TokenPrediction(self.generator, name="generator_head")
        self.token_head = self.transform = None
        if self.predict == "token":
            self.token_head = TokenPrediction(network, name="token_head")
        else:
            self.transform = ActivatedProjection(
                self.hidden_dim, activation=network.activation, name="transform", dtype=dtype
            )
        self.copies = self.predict == "token" and self.loss_on == "all"
        self.score = None
        if self.copies or self.predict == "replacement":
            self.score = projection(1, name="score", dtype=dtype)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Make the variables."""
        for layer in (self.transform, self.score):
            if layer is not None:
                layer.build((None, None, self.hidden_dim))
        self.built = True

    def prepare(self, batch: dict, training: bool) -> dict:
        """Put the generator's samples into the text; nothing where there are no gaps."""
        if CHOSEN_LABELS not in batch:
            return batch
        clean, positions = batch[keys.TOKEN_IDS], batch[CHOSEN_POSITIONS]
        seen = batch | {keys.TOKEN_IDS: batch[GENERATOR_TOKEN_IDS]}
        states = self.generator(seen, training=training)[keys.SEQUENCE_OUTPUT]
        logits = self.generator_head.logits(gather_positions(states, positions), training=training)
        sampled = _sample(ops.stop_gradient(logits), batch[DRAWS])  # (B, M)
        moved = (sampled - batch[CHOSEN_LABELS]) * ops.cast(batch[CHOSEN_WEIGHTS], "int32")
        # An unused slot moves position 0 by nothing.
        at = ops.one_hot(positions, clean.shape[1], dtype="int32")  # (B, M, T)
        return batch | {
            keys.TOKEN_IDS: clean + ops.sum(at * moved[:, :, None], axis=1),
            ORIGINAL_TOKEN_IDS: clean,
            GENERATOR_LOGITS: logits,
        }

    def call(
        self, batch: dict, outputs: dict, training: bool | None = None
    ) -> tuple[dict[str, tuple[Any, Any]], dict]:
        """Both losses; ``loss`` is their sum, weighted by the tokens the network is scored on.

        So over batches (or parts of one) of uneven size the generator's share of it is a mean by
        real tokens; ``generator_loss`` has its exact mean.
        """
        states = outputs[keys.SEQUENCE_OUTPUT]
        scores = logits = None
        if self.score is not None:
            hidden = ops.cast(states, self.compute_dtype)
            if self.transform is not None:
                hidden = self.transform(hidden, training=training)
            scores = ops.cast(self.score(hidden), "float32")[..., 0]  # (B, T)
        if self.token_head is not None:
            logits = self.token_head.logits(states, training=training)  # (B, T, V)
        predictions = {REPLACED_SCORES: scores} if logits is None else {NEW_TOKEN_LOGITS: logits}
        if ORIGINAL_TOKEN_IDS not in batch:
            return {}, predictions
        rows = batch.get(keys.ROW_WEIGHTS)
        rows = 1.0 if rows is None else rows[:, None]
        made = cross_entropy(
            batch[GENERATOR_LOGITS], batch[CHOSEN_LABELS], batch[CHOSEN_WEIGHTS] * rows
        )
        original, shown = batch[ORIGINAL_TOKEN_IDS], batch[keys.TOKEN_IDS]
        weights = ops.cast(batch[keys.PADDING_MASK], "float32")
        if self.loss_on == "chosen":
            at = ops.one_hot(batch[CHOSEN_POSITIONS], original.shape[1], dtype="float32")
            weights = ops.sum(at * batch[CHOSEN_WEIGHTS][:, :, None], axis=1)  # (B, T)
        weights = weights * rows
        if self.predict == "replacement":
            replaced = ops.cast(ops.not_equal(shown, original), "float32")
            found = binary_cross_entropy(scores, replaced, weights)
        else:
            found = cross_entropy(logits, original, weights)
            if self.copies:
                found = {**found, "loss": _copied(logits, scores, shown, original, weights)}
        (total, count), (filled, gaps) = found["loss"], made["loss"]
        return {
            **found,
            "loss": (self.network_weight * total + count * ops.divide_no_nan(filled, gaps), count),
            "network_loss": (total, count),
            "generator_loss": (filled, gaps),
            "generator_accuracy": made["accuracy"],
        }, predictions


def _generator(network: Any, share: float) -> Any:
    """The network's class at a smaller width, its tables the network's own where they fit.

    Reference:
        Clark et al. 2020, table 6: heads of 64, the same depth; 3.2 on sharing.
    """
    config = network.get_config()
    width = max(1, round(share * config["hidden_dim"]))
    if "num_heads" in config:
        heads = max(1, width // 64)
        width -= width % heads
        config["num_heads"] = heads
    if "intermediate_dim" in config:
        config["intermediate_dim"] = max(1, round(share * config["intermediate_dim"]))
    generator = type(network)(**config | {"hidden_dim": width, "name": "generator"})
    tables: Any = getattr(network, "embeddings", None)
    own: Any = getattr(generator, "embeddings", None)
    if tables is not None and tables.token.output_dim == own.token.output_dim:
        # Out of Keras's sight, so that the network's tables stay the network's alone.
        generator._tracker.unlock()
        generator._tracker.untrack(own)
        object.__setattr__(generator, "embeddings", tables)
    return generator


def _sample(logits: Any, draws: Any) -> Any:
    """One token a position by the softmax of its scores: where the draw falls in the running sum.

    Args:
        logits: (B, M, V) float32.
        draws: (B, M) in [0, 1).

    Returns:
        (B, M) int32.
    """
    running = ops.cumsum(ops.softmax(logits), axis=-1)
    # The sum may end a little beside 1.
    below = running <= draws[..., None] * running[..., -1:]
    found = ops.sum(ops.cast(below, "int32"), axis=-1)
    return ops.minimum(found, logits.shape[-1] - 1)


def _copied(logits: Any, scores: Any, shown: Any, original: Any, weights: Any) -> tuple[Any, Any]:
    """Loss where a share of the probability is the shown token's, the rest the softmax's.

    Reference:
        Clark et al. 2020, 3.4, All-Tokens MLM.
    """
    nats = ops.sparse_categorical_crossentropy(original, logits, from_logits=True)
    same = ops.cast(ops.equal(shown, original), "float32")
    predicted = ops.log_sigmoid(-scores) - nats
    # log(copy + (1 - copy) · p) where the token is the same, log((1 - copy) · p) where not.
    both = ops.logaddexp(ops.log_sigmoid(scores), predicted)
    gained = same * both + (1.0 - same) * predicted
    return ops.sum(-gained * weights), ops.sum(weights)
