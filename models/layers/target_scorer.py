"""Scores of a target that is written: the cross-entropy of each of its tokens."""

from __future__ import annotations

from typing import Any

from models import features as keys
from models.keras_ops import ops
from models.layers.scorer import Scored, ScorerLayer
from models.layers.slices import part
from models.layers.token_prediction import TokenOutput
from models.protocols import Capability, Tokenizer


def begin_of(network: Any, tokenizer: Tokenizer) -> tuple[int, ...]:
    """The ids with which a network begins a text that it writes apart from what it has read.

    Args:
        network: The network; an encoder–decoder names them as ``target_begin``.
        tokenizer: The recipe's tokenizer.

    Returns:
        The ids; empty for a causal network, which continues what it has read.
    """
    if Capability.ENCODER_DECODER not in network.provides:
        return ()
    return tuple(getattr(tokenizer, f"{name}_id") for name in network.target_begin)


class TargetScores(ScorerLayer):
    """Cross-entropy of the target's tokens; the mean is over all tokens of a batch.

    Attributes:
        begin: The ids with which a target begins that is read apart from the text; empty for none.
        label_smoothing: Probability that a label gives to the other tokens in training, 0-1.
        pad_id: [PAD], which is never written and gets none of it.
    """

    begin: tuple[int, ...] = ()
    label_smoothing: float = 0.0
    pad_id: int = 0

    def logits(self, hidden: Any) -> Any:
        """(…, D) hidden states → (…, V) float32 logits."""
        raise NotImplementedError

    def token_scores(
        self, hidden: Any, labels: Any, weights: Any, training: bool | None, **smoothing: Any
    ) -> dict[str, tuple[Any, Any]]:
        """Cross-entropy and accuracy of (B, S) labels (`models.layers.token_scores`)."""
        raise NotImplementedError

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss and accuracy of the target's tokens, and their logits (B, S, V)."""
        hidden = self._of_target(batch, outputs)
        predicted = {keys.TOKEN_LOGITS: self.logits(hidden)}
        if keys.TARGET_LABELS not in batch:
            return {}, predicted
        labels, weights = batch[keys.TARGET_LABELS], self.weights_of(batch)
        smoothing = {"spread": self.label_smoothing if training else 0.0, "never": self.pad_id}
        return self.token_scores(hidden, labels, weights, training, **smoothing), predicted

    def nats(self, batch: dict, outputs: dict) -> Any:
        """Minus the log probability of each row's target, (B,), over its tokens with a weight.

        Row by row, so that the logits of few rows are there at a time.
        """

        def of_row(row: tuple[Any, Any, Any]) -> Any:
            hidden, labels, weights = row
            log_p = ops.log_softmax(self.logits(hidden[None]), axis=-1)[0]  # (S, V)
            own = ops.take_along_axis(log_p, labels[:, None], axis=-1)[:, 0]  # (S,)
            return -ops.sum(own * weights)

        hidden = self._of_target(batch, outputs)
        labels, weights = batch[keys.TARGET_LABELS], batch[keys.TARGET_WEIGHTS]
        return ops.map(of_row, (hidden, labels, weights))

    def _of_target(self, batch: dict, outputs: dict) -> Any:
        """What predicts the target's tokens, (B, S, D)."""
        # Before the target a joined row's output has the text, another one's more beginnings.
        more = max(len(self.begin) - 1, 0)
        size = ops.shape(batch[keys.TARGET_IDS])[1] - more
        hidden = outputs[keys.SEQUENCE_OUTPUT]
        return part(hidden, ops.shape(hidden)[1] - size)

    def weights_of(self, batch: dict) -> Any:
        """Loss weights of the target's tokens, (B, S)."""
        return self.weighted(batch, batch[keys.TARGET_WEIGHTS])


class TargetScorer(TargetScores):
    """Scores of a target whose tokens are predicted where those before them are read.

    A batch has the target begun with one token. An encoder–decoder reads it beside the text, begun
    as the network has learned to (`begin_of`). A causal network reads text and target as one row.

    Args:
        network: The network, whose output matrix makes the predictions, without a bias.
        name: Name of the objective or head.
        tokenizer: The recipe's tokenizer.
    """

    def __init__(self, network: Any, name: str, tokenizer: Tokenizer):
        super().__init__(name=name, dtype=network.dtype_policy.name, autocast=False)
        self.begin = begin_of(network, tokenizer)
        self._output = TokenOutput(network)
        self.built = True

    def logits(self, hidden: Any, kernel: Any = None) -> Any:
        """(…, D) hidden states → (…, V) float32 logits, with `kernel` where it is at hand."""
        return self._output.logits(hidden, kernel)

    def kernel(self) -> Any:
        """The output matrix, (D, V)."""
        return self._output.kernel()

    def token_scores(
        self, hidden: Any, labels: Any, weights: Any, training: bool | None, **smoothing: Any
    ) -> dict[str, tuple[Any, Any]]:
        """Cross-entropy and accuracy of (B, S) labels (`models.layers.token_scores`)."""
        return self._output.scores(hidden, labels, weights, training, **smoothing)

    def prepare(self, batch: dict, training: bool) -> dict:
        """Text and target as the network reads them."""
        if keys.TARGET_IDS not in batch:
            return batch
        return _begun(batch, self.begin) if self.begin else _joined(batch)


def _begun(batch: dict, begin: tuple[int, ...]) -> dict:
    """The target begun with these ids in place of its first one."""
    ids, mask = batch[keys.TARGET_IDS], batch[keys.TARGET_MASK]
    first = ops.zeros_like(ids[:, :1])
    return batch | {
        keys.TARGET_IDS: ops.concatenate([*(first + each for each in begin), ids[:, 1:]], axis=1),
        keys.TARGET_MASK: ops.concatenate([first + 1 for _ in begin] + [mask[:, 1:]], axis=1),
    }


def _joined(batch: dict) -> dict:
    """Text and target in one row: the target's first token takes the place of the text's last."""
    mask = batch[keys.PADDING_MASK]
    shorter = ops.concatenate([mask[:, 1:], ops.zeros_like(mask[:, :1])], axis=1)
    joined = {
        keys.TOKEN_IDS: ops.concatenate([batch[keys.TOKEN_IDS], batch[keys.TARGET_IDS]], 1),
        keys.PADDING_MASK: ops.concatenate([shorter, batch[keys.TARGET_MASK]], axis=1),
    }
    return {name: value for name, value in batch.items() if name != keys.SEGMENT_IDS} | joined
