"""Transformer-XL: a decoder with relative positions that remembers the rows before.

    token_ids, padding_mask, memory, memory_mask
      → token vectors · √D → dropout                                          (B, T, D)
      → num_layers × [causal attention to memory and row → +, LayerNorm → feed-forward → +,
        LayerNorm]
      → sequence_output (B, T, D), memory of the last P tokens

Parameters with the vocabulary of WikiText-103, 267,735: base 150,838,570, of which 41,066,400 are
in the layers and 820 are u and v. The authors' 151,107,538 has the 268,968 of the output's bias and
clusters, which are no part of a network here. large with the same: 519,695,360.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fourstage.errors import UnknownNameError
from models import features as keys
from models.keras_ops import ops
from models.layers.attention import (
    NOT_SEEN,
    Past,
    as_past,
    banded_bias,
    bias_from_padding,
    causal_bias,
)
from models.layers.embedding import own_positions, positions_of_tokens
from models.layers.gather import gather_positions
from models.layers.relative_transformer import RelativeConfig, RelativeTransformer
from models.layers.side_by_side import joined, joined_pairs, parted
from models.layers.summary import LAST
from models.protocols import Capability

PROVIDES = ("causal", "generation", "memory", "added_vectors")
SIZES = {
    "tiny": {
        "num_layers": 2,
        "hidden_dim": 128,
        "num_heads": 2,
        "intermediate_dim": 512,
        "memory_length": 32,
        "evaluation_memory_length": 64,
    },
    "base": {"num_layers": 16, "hidden_dim": 410, "num_heads": 10, "intermediate_dim": 2100},
    "large": {
        "num_layers": 18,
        "hidden_dim": 1024,
        "num_heads": 16,
        "intermediate_dim": 4096,
        "dropout": 0.2,
        "attention_dropout": 0.2,
        "memory_length": 384,
        "evaluation_memory_length": 1600,
        "clamp_length": 1000,
    },
}
SAME_LENGTH = ("never", "evaluation", "always")


@dataclass(frozen=True, kw_only=True)
class _Config(RelativeConfig):
    """What it has beside every relative Transformer's arguments; WikiText-103's defaults.

    Attributes:
        same_length: When a token sees itself and as many tokens before it as are remembered and no
            more: ``never``, in ``evaluation`` (whatever is no training), ``always``. Else it sees
            all of memory and of the row before it, so that later tokens of a row see more.
        attention_dropout: Dropout rate of the attention weights, 0-1.
        tied_biases: Whether all layers share one pair of biases u and v.
        norm_first: Whether LayerNorms precede (pre-LN) instead of following (post-LN); as in the
            authors' code, there is then none after the last block.
    """

    activation: str = "relu"
    layer_norm_epsilon: float = 1e-5
    memory_length: int = 150
    evaluation_memory_length: int | None = 640
    clamp_length: int = 400
    same_length: str = "evaluation"
    attention_dropout: float = 0.0
    tied_biases: bool = True
    norm_first: bool = False


class TransformerXL(RelativeTransformer):
    """The decoder of Dai et al. 2019.

    A row is summarised by its last real token. Distances count real tokens, so rows may have
    padding anywhere.

    Shape:
        {token_ids (B, T), padding_mask? (B, T)} → {sequence_output (B, T, D) float32};
        with memory (B, L, P, D) and memory_mask (B, P), both of the row after it, too

    Differs from the paper:
        Words are pieces of words, so that the output needs no adaptive softmax (4.1 and table 1)
        and no table in clusters: one table is read and, without a bias, predicts. With
        `same_length` a token sees P + 1 tokens, itself included, as in the authors' TensorFlow code
        and in XLNet; their PyTorch code has it see P.

    Raises:
        UnknownNameError: `same_length` is none of its values.

    Reference:
        Dai et al. 2019, arXiv 1901.02860, 3; the authors' code, kimiyoung/transformer-xl.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    row_summary = LAST
    pooler_activation = None  # heads read the vector of the last token as it is

    def __init__(self, **arguments: Any):
        super().__init__(**arguments)
        said = self._arguments["same_length"]
        if said not in SAME_LENGTH:
            raise UnknownNameError("size.same_length", str(said), "a time", SAME_LENGTH)

    def embedding_scale(self, config: Any) -> float:
        """√D."""
        return config.hidden_dim**0.5

    def hidden_states(self, features: Mapping[str, Any], training: bool | None = None) -> list[Any]:
        """As in `RelativeTransformer`, with every token where it stands in the row."""
        packed, back = _packed(features)
        states = super().hidden_states(packed, training)
        return states if back is None else [gather_positions(state, back) for state in states]

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encode; other keys of `features` are ignored."""
        packed, back = _packed(features)
        *before, x = super().hidden_states(packed, training)
        x = self.dropout_layer(x, training=training)
        if back is not None:
            x = gather_positions(x, back)
        return {keys.SEQUENCE_OUTPUT: x, **self.remembered(before, packed)}

    def seen(self, features: Mapping[str, Any], training: bool | None) -> dict[str, Any]:
        """Hides later tokens, padding, and what is too far back."""
        own, total = self.lengths(features)
        memory = features.get(keys.MEMORY)
        most = None if memory is None else memory.shape[2]
        bias = self._before(own, total, most, training)
        hidden = self.keys_bias(features)
        bias = bias if hidden is None else ops.minimum(bias, hidden)
        return self.relations(own, total, training) | {"bias": bias}

    def _before(
        self,
        own: Any,
        total: Any,
        most: int | None = None,
        training: bool | None = None,
        positions: Any = None,
    ) -> Any:
        """Hides later tokens, and those more than `most` before, (B or 1, 1, T, S).

        Without a memory they are as many as one would have.

        Args:
            own: T, the tokens that attend.
            total: S, of which they are the last.
            most: Tokens of the memory; None without one.
            training: Whether it is training.
            positions: (B, S); None for tokens as they stand.
        """
        bias = causal_bias(own, total - own)
        said, longer = (
            self._arguments[name] for name in ("same_length", "evaluation_memory_length")
        )
        if most is None:
            most = self._arguments["memory_length"]
            most = most if training or longer is None else longer
        if most and (said == "always" or (said == "evaluation" and not training)):
            if positions is None:
                positions = ops.arange(total, dtype="int32")[None]
            asking = positions[:, total - own :]
            bias = ops.minimum(bias, banded_bias(asking, positions, most + 1))
        return bias

    # Reading token by token

    def past_of(self, memory: Any) -> list[Past]:
        """Keys and values of a memory (B, L, P, D), as `go_on` takes them."""
        blocks = enumerate(self.blocks)
        return [as_past(*block.seen(memory[:, number])[1:]) for number, block in blocks]

    def go_on(
        self, features: Mapping[str, Any], past: Sequence[Past] = (), texts: Any = 1
    ) -> tuple[Any, list[Past]]:
        """Read tokens that continue sequences, without reading those before them again.

        Args:
            features: token_ids and padding_mask as in `models.layers.causal`; without `past`,
                padding may be on the left.
            past: Keys and values at S places of P rows, by layer, of other readings or of `past_of`
                a memory; empty for none.
            texts: N, the texts that go on from each row.

        Returns:
            sequence_output of the new tokens (P · N, T, D) float32, and their keys and values by
            layer, (P, H, N · T, K). Both equal those of one reading of all tokens up to rounding.
        """
        mask = features[keys.PADDING_MASK]
        new, total = ops.shape(features[keys.TOKEN_IDS])[1], ops.shape(mask)[1]
        seen, positions = self.relations(new, total), positions_of_tokens(mask)
        if past:  # else tokens stand one after another, and the shift needs no look-up
            back = own_positions(positions, new)[..., None] - positions[:, None]
            seen["distances"] = joined_pairs(back[:, None], new, texts)[:, 0]
        bias = self._before(new, total, positions=positions)
        bias = ops.minimum(bias, bias_from_padding(mask))
        bias = joined_pairs(bias, new, texts, NOT_SEEN)
        x = joined(self.embed(features), texts)
        kept_by_layer = []
        for number, block in enumerate(self.blocks):
            x, kept = block.go_on(x, past[number] if past else None, bias=bias, **seen)
            kept_by_layer.append(kept)
        return parted(x, new, texts), kept_by_layer


def _packed(features: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any]:
    """The rows with all padding at their end, and where each token is then, (B, T) int32.

    Distances are of places in a row, so that padding between two tokens would part them.
    """
    mask = features.get(keys.PADDING_MASK)
    if mask is None:
        return features, None
    place = ops.arange(ops.shape(mask)[1], dtype="int32")[None]
    order = ops.argsort(place + (1 - ops.cast(mask, "int32")) * ops.shape(mask)[1], axis=1)
    order = ops.cast(order, "int32")
    packed = {
        key: ops.take_along_axis(features[key], order, axis=1)
        for key in (keys.TOKEN_IDS, keys.PADDING_MASK)
    }
    if keys.ADDED_VECTORS in features:
        packed[keys.ADDED_VECTORS] = gather_positions(features[keys.ADDED_VECTORS], order)
    return {**features, **packed}, ops.cast(ops.argsort(order, axis=1), "int32")
