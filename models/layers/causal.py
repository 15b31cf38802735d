"""What decoders share: a Transformer in which each token sees itself and the tokens before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from models import features as keys
from models.keras_ops import ops
from models.layers.attention import NOT_SEEN, Past, bias_from_padding, causal_bias
from models.layers.embedding import own_positions, positions_of_tokens
from models.layers.side_by_side import joined, joined_pairs, parted
from models.layers.summary import LAST
from models.layers.transformer import TextTransformer


class CausalTransformer(TextTransformer):
    """Embeddings without LayerNorm → causal blocks → (LayerNorm).

    A row is summarised by its last real token, the only one that has seen the whole row. Positions
    count real tokens, so rows may be padded on either side.

    Shape:
        {token_ids (B, T), padding_mask? (B, T)} → {sequence_output (B, T, D) float32};
        with read_positions (B, R), the summary's first: {sequence_output (B, R, D)}
    """

    embedding_norm = False
    row_summary = LAST

    def position_ids(self, features: Mapping[str, Any]) -> Any:
        """Number of real tokens before each one; 0 for padding."""
        return positions_of_tokens(features.get(keys.PADDING_MASK))

    def go_on(
        self, features: Mapping[str, Any], past: Sequence[Past] = (), texts: Any = 1
    ) -> tuple[Any, list[Past]]:
        """Read tokens that continue sequences, without reading those before them again.

        Args:
            features: token_ids (P · N, T) of the new tokens; padding_mask (P · N, S + T), 1 = a
                token that the text sees: of the S places before, its own so far, in their order.
            past: Keys and values at S places of P rows, by layer; empty for none.
            texts: N, the texts that go on from each row.

        Returns:
            sequence_output of the new tokens (P · N, T, D) float32, and their keys and values by
            layer, (P, H, N · T, K). Both equal those of one reading of all tokens up to rounding.
        """
        mask = features[keys.PADDING_MASK]
        new = ops.shape(features[keys.TOKEN_IDS])[1]
        positions = own_positions(positions_of_tokens(mask), new)
        x = self.embeddings(features[keys.TOKEN_IDS], position_ids=positions)
        x, seen = joined(x, texts), []
        for number, bias in enumerate(self.attention_biases(features)):
            bias = joined_pairs(bias, new, texts, NOT_SEEN)
            x, kept = self.blocks[number].go_on(x, past[number] if past else None, bias=bias)
            seen.append(kept)
        x = x if self.final_norm is None else self.final_norm(x)
        return parted(x, new, texts), seen

    def attention_bias(self, features: Mapping[str, Any]) -> Any:
        """Hides later tokens and padding, (B or 1, 1, N, S + N) where S tokens came before."""
        new, mask = ops.shape(features[keys.TOKEN_IDS])[1], features.get(keys.PADDING_MASK)
        if mask is None:
            return causal_bias(new)
        return ops.minimum(causal_bias(new, ops.shape(mask)[1] - new), bias_from_padding(mask))
