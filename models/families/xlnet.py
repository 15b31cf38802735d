"""XLNet: Transformer-XL in both directions, with a stream that predicts tokens it does not read.

    token_ids, segment_ids, padding_mask, memory, memory_mask, factorisation, query_positions
      → token vectors → dropout                                        content h (B, T, D)
      → one vector for all, the token's being unknown                  query g   (B, M, D)
      → num_layers × [h: attention to memory and to h of no later place
                      g: attention to memory and to h of earlier places
                      → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D); with query_positions query_output (B, M, D)

Without a factorisation every token sees every other; without query_positions there is no second
stream. Parameters with the published vocabulary of 32,000: base 116,718,336, large 360,268,800.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras

from models import features as keys
from models.keras_ops import ops
from models.layers.attention import NOT_SEEN, Past, bias_from_padding, causal_bias
from models.layers.embedding import own_positions, positions_of_tokens
from models.layers.relative_attention import distance_table
from models.layers.relative_transformer import RelativeConfig, RelativeTransformer
from models.layers.side_by_side import joined, joined_pairs, parted
from models.layers.summary import LAST
from models.protocols import Capability

PROVIDES = ("bidirectional", "segments", "memory", "two_streams", "added_vectors")
SIZES = {
    "tiny": {
        "num_layers": 2,
        "hidden_dim": 128,
        "num_heads": 2,
        "intermediate_dim": 512,
        "memory_length": 32,
    },
    "base": {"num_layers": 12, "hidden_dim": 768, "num_heads": 12, "intermediate_dim": 3072},
    "large": {"num_layers": 24, "hidden_dim": 1024, "num_heads": 16, "intermediate_dim": 4096},
}


@dataclass(frozen=True, kw_only=True)
class _Config(RelativeConfig):
    """Every relative Transformer's arguments, with XLNet's defaults."""

    activation: str = "gelu_tanh"
    memory_length: int = 384


class XLNet(RelativeTransformer):
    """The two-stream network of Yang et al. 2019.

    A row is summarised by its last real token. Rows may be padded on either side.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), padding_mask? (B, T), factorisation? (B, T),
        query_positions? (B, M) with it} → {sequence_output (B, T, D) float32, query_output
        (B, M, D) float32 with query_positions}; with memory (B, L, P, D) and memory_mask (B, P),
        both of the row after it, too

    Differs from the paper:
        The last token of a row is [SEP] and its first [CLS], as in all families here; the paper's
        rows end with [SEP] [CLS]. As in the authors' code, what is remembered counts as segment 0.

    Reference:
        Yang et al. 2019, arXiv 1906.08237, 2.3 to 2.5; the authors' code, zihangdai/xlnet.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    row_summary = LAST
    pooler_activation = "tanh"
    pooler_dropout = False  # it follows the pooler only
    ahead = True
    by_segment = True

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        self.mask_embedding = self.add_weight(
            shape=(self._arguments["hidden_dim"],),
            initializer=keras.initializers.TruncatedNormal(stddev=0.02),
            name="mask_embedding",
            autocast=False,  # else a layer that computes in bfloat16 would round it
        )
        super().build(input_shape)

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encode; other keys of `features` are ignored."""
        if keys.QUERY_POSITIONS not in features:
            return super().call(features, training)
        at = features[keys.QUERY_POSITIONS]
        x = self.embed(features, training)
        query = self._unknown(at)
        query = self.dropout_layer(query, training=training)  # (B, M, D)
        seen = self.seen(features, training)
        asked = self._asked(features, seen, at)
        before = []
        for block, memory in zip(self.blocks, self.memories(features), strict=True):
            before.append(x)
            x, query, _ = block.both_streams(x, query, memory, seen, asked, training)
        return {
            keys.SEQUENCE_OUTPUT: self.dropout_layer(x, training=training),
            keys.QUERY_OUTPUT: self.dropout_layer(query, training=training),
            **self.remembered(before, features),
        }

    def _unknown(self, at: Any) -> Any:
        """What enters the second stream at each place of (B, M), (B, M, D)."""
        vector = ops.cast(self.mask_embedding, "float32")
        return ops.zeros_like(at, dtype="float32")[:, :, None] + vector

    def go_on(
        self, features: Mapping[str, Any], past: Sequence[Past] = (), texts: Any = 1
    ) -> tuple[Any, list[Past]]:
        """Read a text or tokens that follow it, and ask for the token after them.

        The tokens of the first reading share the first place of the factorisation; those after it
        have a place each, in their order. Nothing is remembered of the second stream.

        Args:
            features: token_ids and padding_mask as in `models.layers.causal`; without `past`,
                padding may be on the left.
            past: Keys and values at S places of P rows, by layer; empty for none.
            texts: N, the texts that go on from each row.

        Returns:
            query_output of the place after the new tokens (P · N, 1, D) float32, and the new
            tokens' keys and values by layer, (P, H, N · T, K). Both equal those of one reading of
            all tokens up to rounding.
        """
        mask = features[keys.PADDING_MASK]
        new, total = ops.shape(features[keys.TOKEN_IDS])[1], ops.shape(mask)[1]
        positions, count = positions_of_tokens(mask), ops.sum(mask, axis=1, keepdims=True)
        back = distance_table(total, 0, self.hidden_dim, self.clamp_length)
        bias = bias_from_padding(mask)

        def pairs(x: Any, other: float = 0) -> Any:
            return joined_pairs(x, new, texts, other)

        later = pairs((count - positions)[:, None, None])[:, 0]
        asked = {"table": back, "bias": pairs(bias, NOT_SEEN), "distances": later}
        seen = self.relations(new, total) | {"bias": bias}
        if past:
            apart = own_positions(positions, new)[..., None] - positions[:, None]
            seen["distances"] = pairs(apart[:, None])[:, 0]
            seen["bias"] = pairs(ops.minimum(bias, causal_bias(new, total - new)), NOT_SEEN)
            seen["table"] = back
        x, query = joined(self.embed(features), texts), joined(self._unknown(count), texts)
        kept_by_layer = []
        for number, block in enumerate(self.blocks):
            before = {"past": past[number] if past else None}
            x, query, kept = block.both_streams(x, query, None, seen | before, asked | before)
            kept_by_layer.append(kept)
        return parted(query, 1, texts), kept_by_layer

    def seen(self, features: Mapping[str, Any], training: bool | None) -> dict[str, Any]:
        """Hides padding and tokens of later places; says which keys are of another segment."""
        own, total = self.lengths(features)
        given = self.relations(own, total, training)
        bias, places = self.keys_bias(features), features.get(keys.FACTORISATION)
        if places is not None:
            later = places[:, None, :] > places[:, :, None]  # (B, T, T)
            bias = _joined(bias, self._hidden(later, features))
        segments = features.get(keys.SEGMENT_IDS)
        if segments is not None:
            given["differ"] = self._differ(features, segments)
        return given | {"bias": bias}

    def _asked(
        self, features: Mapping[str, Any], seen: Mapping[str, Any], at: Any
    ) -> dict[str, Any]:
        """As `seen`, for the second stream: it does not see its own place either."""
        own, _ = self.lengths(features)
        places = features[keys.FACTORISATION]
        mine = ops.take_along_axis(places, at, axis=1)
        later = places[:, None, :] >= mine[:, :, None]  # (B, M, T)
        bias = _joined(self.keys_bias(features), self._hidden(later, features))
        given = {**seen, "bias": bias}
        if "differ" in given:
            segments = ops.take_along_axis(features[keys.SEGMENT_IDS], at, axis=1)
            given["differ"] = self._differ(features, segments)
        return given | {"at": at, "queries": own}

    def _hidden(self, hidden: Any, features: Mapping[str, Any]) -> Any:
        """Hides keys of the row, (B, R, T) bool, and none of the memory: (B, 1, R, P + T)."""
        bias = ops.cast(hidden, "float32") * NOT_SEEN
        return self._after_memory(bias, features)[:, None]

    def _differ(self, features: Mapping[str, Any], segments: Any) -> Any:
        """(B, R, P + T) float32, 1 where a key's segment is not the query's, of `segments`."""
        keys_segments = self._after_memory(features[keys.SEGMENT_IDS][:, None], features)
        return ops.cast(keys_segments != segments[:, :, None], "float32")

    def _after_memory(self, values: Any, features: Mapping[str, Any]) -> Any:
        """Values of the row's keys, (B, R, T), behind zeros for those of the memory."""
        if keys.MEMORY not in features:
            return values
        before = ops.shape(features[keys.MEMORY_MASK])[1]
        return ops.pad(values, ((0, 0), (0, 0), (before, 0)))


def _joined(one: Any, other: Any) -> Any:
    """What either of two biases hides."""
    return other if one is None else ops.minimum(one, other)
