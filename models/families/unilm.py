"""UniLM: BERT's network, in which each row of a batch says which of its tokens see which.

    token_ids, segment_ids, padding_mask, modes
      → token + position + segment vectors, segments of their own for each mode → LayerNorm
      → num_layers × [attention, as the row's mode allows → +, LayerNorm → feed-forward → +, …]
      → sequence_output (B, T, D)
      → first position → dense → tanh → pooled_output (B, D)

Without modes it is a bidirectional encoder. It writes by filling in one [MASK] after another.

Parameters with BERT's cased vocabulary of 28,996 and the pooler: base 108,313,344, large
333,583,360.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models import features as keys
from models.keras_ops import ops
from models.layers.attention import NOT_SEEN, Past, bias_from_padding, causal_bias
from models.layers.embedding import own_positions, positions_of_tokens
from models.layers.modes import mode_bias, segment_rows
from models.layers.side_by_side import joined, joined_pairs, parted
from models.layers.transformer import TextTransformer, TransformerConfig
from models.modes import SEGMENT_ROWS, Mode
from models.protocols import Capability

PROVIDES = ("bidirectional", "segments", "pooled_output", "modes", "generation", "added_vectors")
SIZES = {
    "tiny": {"num_layers": 2, "hidden_dim": 128, "num_heads": 2, "intermediate_dim": 512},
    "base": {"num_layers": 12, "hidden_dim": 768, "num_heads": 12, "intermediate_dim": 3072},
    "large": {"num_layers": 24, "hidden_dim": 1024, "num_heads": 16, "intermediate_dim": 4096},
}


@dataclass(frozen=True, kw_only=True)
class _Config(TransformerConfig):
    """What it has beside every encoder's arguments.

    Attributes:
        num_segments: Rows of the segment table (`models.modes.SEGMENT_ROWS`).
    """

    num_segments: int = 6
    activation: str = "gelu_tanh"


class Unilm(TextTransformer):
    """The network of Dong et al. with its pooler; heads bring their own variables.

    Positions count real tokens, so padding may stand anywhere.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), padding_mask? (B, T), modes? (B,)} →
        {sequence_output (B, T, D) float32, pooled_output (B, D) float32}

    Reference:
        Dong et al. 2019, arXiv 1905.03197, 2.1 and 2.2. The rows of the segment table are those of
        microsoft/unilm.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    pooled = True
    least_segments = 1 + max(map(max, SEGMENT_ROWS))

    def position_ids(self, features: Mapping[str, Any]) -> Any:
        """Number of real tokens before each one; 0 for padding."""
        return positions_of_tokens(features.get(keys.PADDING_MASK))

    def attention_bias(self, features: Mapping[str, Any]) -> Any:
        """Hides what a row's mode hides, and padding, (B, 1, 1 or T, T)."""
        padding = super().attention_bias(features)
        if keys.MODES not in features:
            return padding
        hidden = mode_bias(features[keys.MODES], _segments(features))
        return hidden if padding is None else ops.minimum(hidden, padding)

    def embed(self, features: Mapping[str, Any], training: bool | None = None) -> Any:
        """What enters the first block, (B, T, D) float32."""
        if keys.MODES in features:
            rows = segment_rows(features[keys.MODES], _segments(features))
            features = {**features, keys.SEGMENT_IDS: rows}
        return super().embed(features, training=training)

    def go_on(
        self, features: Mapping[str, Any], past: Sequence[Past] = (), texts: Any = 1, *, blank: int
    ) -> tuple[Any, list[Past]]:
        """Read a text or tokens that follow it, and fill in the [MASK] after them.

        The first reading is the text, whose tokens all see each other; all later tokens are of the
        second text in mode sequence-to-sequence. The [MASK] is not remembered.

        Args:
            features: token_ids and padding_mask as in `models.layers.causal`.
            past: Keys and values at S places of P rows, by layer; empty for none.
            texts: N, the texts that go on from each row.
            blank: Id of [MASK].

        Returns:
            sequence_output of the new tokens and of the [MASK] (P · N, T + 1, D) float32, and keys
            and values of the new tokens by layer, (P, H, N · T, K). Both equal those of one reading
            of all tokens up to rounding.
        """
        one = ops.ones_like(features[keys.TOKEN_IDS][:, :1])
        ids = ops.concatenate([features[keys.TOKEN_IDS], one * blank], axis=1)
        mask = ops.concatenate([features[keys.PADDING_MASK], one], axis=1)
        new = ops.shape(ids)[1]
        before = ops.shape(mask)[1] - new
        positions = own_positions(positions_of_tokens(mask), new)
        second = ops.ones_like(ids)
        if not past:
            second = ops.concatenate([ops.zeros_like(ids[:, 1:]), one], axis=1)
        modes = one[:, 0] * int(Mode.SEQUENCE_TO_SEQUENCE)
        x = self.embeddings(ids, segment_rows(modes, second), position_ids=positions)
        x = joined(x, texts)
        hidden = causal_bias(new, before) if past else mode_bias(modes, second)
        bias = joined_pairs(ops.minimum(hidden, bias_from_padding(mask)), new, texts, NOT_SEEN)
        kept = []
        for number, block in enumerate(self.blocks):
            x, read = block.go_on(x, past[number] if past else None, bias=bias)
            kept.append(tuple(_without_blanks(each, new, texts) for each in read))
        return parted(x, new, texts), kept


def _without_blanks(kept: Any, new: Any, texts: Any) -> Any:
    """(P, H, N · T, K) without the last token of each text."""
    _, heads, _, width = ops.shape(kept)
    by_text = ops.reshape(kept, (-1, heads, texts, new, width))[:, :, :, :-1]
    return ops.reshape(by_text, (-1, heads, texts * (new - 1), width))


def _segments(features: Mapping[str, Any]) -> Any:
    """segment_ids (B, T), all 0 where a batch has none."""
    if keys.SEGMENT_IDS in features:
        return features[keys.SEGMENT_IDS]
    return ops.zeros_like(features[keys.TOKEN_IDS])
