"""Replaced token detection: a small generator replaces tokens, the network detects them.

    original tokens → some become [MASK] → generator → a sample at each chosen position
                    → text with replacements → network → was this token replaced?

The generator is a smaller network of the same family, trained jointly as a masked language model.
No gradient flows through the samples. The generator is not needed after training.

Reference:
    Clark et al. 2020 (ELECTRA), arXiv 2003.10555; ``run_pretraining.py`` of
    google-research/electra.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fourstage.errors import RecipeError, UnknownNameError
from models import features as keys
from models.inputs import noise
from models.inputs.mask_token import check_mask
from models.inputs.windows import Windows
from models.keras_ops import ops
from models.layers.gather import gather_positions
from models.layers.loss import binary_cross_entropy, cross_entropy
from models.layers.projection import ActivatedProjection, projection
from models.layers.scorer import Scored, ScorerLayer
from models.layers.token_prediction import TokenPrediction
from models.protocols import Batch, Context

NEEDS = ("bidirectional",)
PROVIDES = ()
CHOOSES = 1
PREPARES = True
HIDES_TOKENS = True
NEEDS_MASK = ("mask_share",)
PREDICT = ("replacement", "token")
LOSS_ON = ("all", "chosen")

GENERATOR_TOKEN_IDS = "generator_token_ids"  # (B, T) int32, what the generator sees
CHOSEN_POSITIONS = "chosen_positions"  # (B, M) int32
CHOSEN_LABELS = "chosen_labels"  # (B, M) int32, the original tokens
CHOSEN_WEIGHTS = "chosen_weights"  # (B, M) float32
DRAWS = "draws"  # (B, M) float32 in [0, 1), random numbers for sampling from the generator
# Added by `prepare`:
ORIGINAL_TOKEN_IDS = "original_token_ids"  # (B, T) int32
GENERATOR_LOGITS = "generator_logits"  # (B, M, V)
REPLACED_SCORES = "replaced_scores"  # (B, T), log odds that a token is a replacement
NEW_TOKEN_LOGITS = "new_token_logits"  # (B, T, V), for ``predict: token``


class ReplacedTokenDetection(Windows):
    """Both halves of replaced token detection, with its generator.

    A position counts as replaced only if the sample differs from the original token.

    Args:
        context: The stage's constants.
        rate: Share of a row's ordinary tokens that the generator predicts, 0-1.
        mask_share: Share of these that the generator sees as [MASK], 0-1; it sees the rest as they
            are.
        generator_share: Width of the generator's blocks as a share of the network's, 0-1. The depth
            is the same. If the embeddings have the same width (a family with an ``embedding_dim``,
            or a share of 1), both networks share the embeddings and their LayerNorm.
        predict: ``replacement``, or ``token`` for the paper's ablations that predict the original
            token.
        loss_on: ``all`` tokens, or only the ``chosen`` ones. With `predict`, this gives the paper's
            four systems: ELECTRA, ELECTRA 15 % (``chosen``), Replace MLM (``token``, ``chosen``)
            and All-Tokens MLM (``token``, ``all``, with the paper's copy mechanism).
        network_weight: Factor of the network's loss relative to the generator's; the paper's 50 is
            for ``replacement``.

    Differs from the paper's code:
        Positions are drawn without repetition. The paper's code may draw a position twice and then
        averages the ids.

    Raises:
        RecipeError: A share is out of range, or the tokenizer has no [MASK] of its own.
        UnknownNameError: `predict` or `loss_on` is unknown.
    """

    chooses = CHOOSES

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
        check_mask(context.tokenizer, where)
        self.context = context
        self.rate = rate
        self.mask_share = mask_share
        self.generator_share = generator_share
        self.predict = predict
        self.loss_on = loss_on
        self.network_weight = network_weight
        self.num_slots = noise.num_slots(rate, context.sequence_length)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Add the generator's input and targets; ``token_ids`` is unchanged until `prepare`."""
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
        """The generator with its head, and the network's head."""
        return _ReplacedTokenScorer(network, self)


class _ReplacedTokenScorer(ScorerLayer):
    """Replaces tokens by the generator's samples, and scores both networks."""

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
        """Create the variables."""
        for layer in (self.transform, self.score):
            if layer is not None:
                layer.build((None, None, self.hidden_dim))
        self.built = True

    def prepare(self, batch: dict, training: bool) -> dict:
        """Put the generator's samples into ``token_ids``; without targets, change nothing."""
        if CHOSEN_LABELS not in batch:
            return batch
        clean, positions = batch[keys.TOKEN_IDS], batch[CHOSEN_POSITIONS]
        seen = batch | {keys.TOKEN_IDS: batch[GENERATOR_TOKEN_IDS]}
        states = self.generator(seen, training=training)[keys.SEQUENCE_OUTPUT]
        logits = self.generator_head.logits(gather_positions(states, positions), training=training)
        sampled = _sample(ops.stop_gradient(logits), batch[DRAWS])  # (B, M)
        moved = (sampled - batch[CHOSEN_LABELS]) * ops.cast(batch[CHOSEN_WEIGHTS], "int32")
        # The sampled ids are written by adding their differences from the original ids. An unused
        # slot adds 0 at position 0.
        at = ops.one_hot(positions, clean.shape[1], dtype="int32")  # (B, M, T)
        return batch | {
            keys.TOKEN_IDS: clean + ops.sum(at * moved[:, :, None], axis=1),
            ORIGINAL_TOKEN_IDS: clean,
            GENERATOR_LOGITS: logits,
        }

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Both losses and ``loss``, their weighted sum per token that the network is scored on.

        Over batches of uneven size, the generator's part of ``loss`` is therefore weighted by
        these tokens; ``generator_loss`` is its exact mean.
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
        chosen = self.weighted(batch, batch[CHOSEN_WEIGHTS])
        made = cross_entropy(batch[GENERATOR_LOGITS], batch[CHOSEN_LABELS], chosen)
        original, shown = batch[ORIGINAL_TOKEN_IDS], batch[keys.TOKEN_IDS]
        weights = ops.cast(batch[keys.PADDING_MASK], "float32")
        if self.loss_on == "chosen":
            at = ops.one_hot(batch[CHOSEN_POSITIONS], original.shape[1], dtype="float32")
            weights = ops.sum(at * batch[CHOSEN_WEIGHTS][:, :, None], axis=1)  # (B, T)
        weights = self.weighted(batch, weights)
        if self.predict == "replacement":
            replaced = ops.cast(ops.not_equal(shown, original), "float32")
            found = binary_cross_entropy(scores, replaced, weights)
        else:
            found = cross_entropy(logits, original, weights)
            if self.copies:
                found = {**found, "loss": _copied(logits, scores, shown, original, weights)}
        total, count = found["loss"]
        more = self.mean_beside(batch, "generator_loss", made["loss"], count)
        return {
            **found,
            "loss": (self.network_weight * total + more, count),
            "network_loss": (total, count),
            "generator_loss": made["loss"],
            "generator_accuracy": made["accuracy"],
        }, predictions


def _generator(network: Any, share: float) -> Any:
    """A narrower network of the same class; it shares the network's embeddings if they fit.

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
        # Bypass Keras's tracking, so that the shared embeddings belong to the network only.
        generator._tracker.unlock()
        generator._tracker.untrack(own)
        object.__setattr__(generator, "embeddings", tables)
    return generator


def _sample(logits: Any, draws: Any) -> Any:
    """Sample one token per position from the softmax, by inverse transform sampling.

    Probabilities 0.2, 0.5, 0.3 have the running sums 0.2, 0.7, 1; a draw of 0.6 gives token 1.

    Args:
        logits: (B, M, V) float32.
        draws: (B, M) in [0, 1).

    Returns:
        (B, M) int32.
    """
    running = ops.cumsum(ops.softmax(logits), axis=-1)
    # The last sum may differ slightly from 1.
    below = running <= draws[..., None] * running[..., -1:]
    found = ops.sum(ops.cast(below, "int32"), axis=-1)
    return ops.minimum(found, logits.shape[-1] - 1)


def _copied(logits: Any, scores: Any, shown: Any, original: Any, weights: Any) -> tuple[Any, Any]:
    """Loss with a copy mechanism: p = copy · [token is the shown one] + (1 - copy) · softmax.

    Reference:
        Clark et al. 2020, 3.4, All-Tokens MLM.
    """
    nats = ops.sparse_categorical_crossentropy(original, logits, from_logits=True)
    same = ops.cast(ops.equal(shown, original), "float32")
    predicted = ops.log_sigmoid(-scores) - nats
    # log(copy + (1 - copy) · p) where the shown token is the original, else log((1 - copy) · p).
    both = ops.logaddexp(ops.log_sigmoid(scores), predicted)
    gained = same * both + (1.0 - same) * predicted
    return ops.sum(-gained * weights), ops.sum(weights)
