"""Joint language modelling: both sides of an encoder–decoder stay the language models they were.

    token_ids   [CLS]  the  cat  [SEP]      target_ids  [SEP]  die  Katze
    predicted    the   cat  [SEP]           predicted    die  Katze  [SEP]

Each side's first layer reads its own text from zeros and knows nothing of the other side. The
target's tokens are predicted by what predicts them in the network, the source's by a table of the
scorer, which starts from the source's language model; where the network ties its output, by the
source's token table.

Reference:
    Ramachandran et al. 2017, arXiv 1611.02683, 2.2: the losses of both language models beside the
    network's own, with equal weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import keras
import numpy as np

from fourstage.errors import RecipeError
from models import features as keys
from models.keras_ops import ops
from models.layers.recurrent import FORWARD
from models.layers.scorer import Scored, ScorerLayer
from models.layers.slices import part
from models.layers.token_prediction import TokenOutput
from models.layers.token_scores import tied_logits, token_scores
from models.protocols import Batch, Context

NEEDS = ("two_language_models", "written_targets")
PROVIDES = ()
CHOOSES = 0
PREPARES = False
KEEPS_INPUT = True

SOURCE_LOGITS = "source_logits"


class JointLM:
    """Both halves of joint language modelling, beside a head that writes.

    Its loss is the sum of both sides' mean cross-entropies, so that weight 1 gives each the weight
    of the head's.

    Args:
        context: The stage's constants.

    Raises:
        RecipeError: On attaching, the encoder also reads backwards, and so what it would predict.
    """

    chooses = CHOOSES

    def __init__(self, context: Context):
        self.context = context

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """The rows as they are: the head has both texts."""
        return batch

    def attach(self, network: Any) -> _JointLMScorer:
        """The scorer, with the table that predicts the source's tokens."""
        return _JointLMScorer(network)


class _JointLMScorer(ScorerLayer):
    """Scores each side's own text."""

    starts: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "encoder": {"source_table": "output_table"}
    }

    def __init__(self, network: Any):
        super().__init__(name="joint_lm", dtype=network.dtype_policy.name, autocast=False)
        if network.direction != FORWARD:
            raise RecipeError(
                f"objectives.joint_lm: expected size.direction {FORWARD}, got {network.direction}:"
                " an encoder that reads backwards has read what it would predict"
            )
        self._read_alone, self._output = network.read_alone, TokenOutput(network)
        self._tied = (lambda: network.token_embedding.embeddings) if network.tied_output else None
        self._shape = (network.vocabulary_size, network.hidden_dim)
        self.source_table: Any = None
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Make the source's table, unless the network's own predicts."""
        if self._tied is None:
            initializer: Any = keras.initializers.TruncatedNormal(stddev=0.1)
            self.source_table = self.add_weight(
                shape=self._shape, initializer=initializer, name="source_table", autocast=False
            )
        self.built = True

    def source_logits(self, states: Any) -> Any:
        """(…, D) states of the encoder's first layer → (…, V) float32 logits."""
        return tied_logits(states, self._source_table(), None, self.compute_dtype)

    def _source_table(self) -> Any:
        return self.source_table if self._tied is None else self._tied()

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss of both sides together, and of each; logits of the source (B, T - 1, V)."""
        if keys.TARGET_LABELS not in batch:
            return {}, {}
        source, target = self._read_alone(batch, training)
        states = part(source, 0, ops.shape(source)[1] - 1)
        real = ops.cast(batch[keys.PADDING_MASK], "float32")
        of_source = token_scores(
            states,
            self._source_table(),
            None,
            batch[keys.TOKEN_IDS][:, 1:],
            self.weighted(batch, real[:, 1:] * real[:, :-1]),
            self.compute_dtype,
            training=training,
        )
        of_target = self._output.scores(
            target,
            batch[keys.TARGET_LABELS],
            self.weighted(batch, batch[keys.TARGET_WEIGHTS]),
            training,
        )
        nats, count = of_source["loss"]
        more = self.mean_beside(batch, "target_loss", of_target["loss"], count)
        return {
            "loss": (nats + more, count),
            "source_loss": of_source["loss"],
            "target_loss": of_target["loss"],
        }, {SOURCE_LOGITS: self.source_logits(states)}
