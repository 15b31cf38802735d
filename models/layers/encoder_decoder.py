"""What encoder–decoders share: a Transformer reads a text, another one writes the target.

    token_ids, padding_mask                          target_ids, target_mask
      → embeddings                                     → embeddings, with the same token table
      → num_layers × block             (B, T, D)       → num_decoder_layers × block    (B, S, D)
                               └────────────────────────┘ each attends to the text
                                                       → sequence_output (B, S, D)

A token of the target sees itself, the tokens before it, and the whole text. Positions count real
tokens on both sides, so rows may be padded on either side.

A batch may say otherwise, as MASS needs it: ``target_positions`` are the target's, and it attends
to the tokens of ``attended_mask`` only.

A batch without a target is read by both: the decoder reads the text moved right by one, the last
token first (`last_token_first`). So position t of sequence_output has seen the whole text as the
encoder does, and the text before t again. A row is summarised where the decoder stands at the
text's last token, which is [SEP].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models import features as keys
from models.keras_ops import ops
from models.layers.attention import NOT_SEEN, Past, bias_from_padding, causal_bias
from models.layers.decoder_block import DecoderBlock
from models.layers.embedding import own_positions, positions_of_tokens
from models.layers.side_by_side import joined, joined_pairs, parted
from models.layers.summary import LAST
from models.layers.transformer import TextTransformer, TransformerConfig


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderConfig(TransformerConfig):
    """What it has beside every Transformer's arguments.

    Attributes:
        num_layers: Blocks of the encoder.
        num_decoder_layers: Blocks of the decoder.
        max_sequence_length: Longest text, and longest target, in tokens.
    """

    num_decoder_layers: int


class EncoderDecoder(TextTransformer):
    """An encoder, which is a `TextTransformer`, and a decoder.

    The decoder's blocks are numbered after the encoder's, so that depth, freezing and decay of the
    learning rate by layer go through both.

    Attributes:
        target_begin: Special tokens with which a target begins, such as ``sep``; whoever makes
            batches knows their ids (`models.layers.target_scorer`).

    Shape:
        {token_ids (B, T), padding_mask? (B, T), target_ids (B, S), target_mask? (B, S),
        target_positions? (B, S), attended_mask? (B, T)} →
        {sequence_output (B, S, D) float32}; without target_ids {sequence_output (B, T, D) float32}

    Reference:
        Vaswani et al. 2017, arXiv 1706.03762, 3.1. Texts without a target: Lewis et al. 2020,
        arXiv 1910.13461, 3.1 and figure 3a.
    """

    config_class = EncoderDecoderConfig
    row_summary = LAST
    reads_positions = False
    target_begin = ("sep",)

    def make_more(self, config: Any) -> None:
        """The decoder."""
        self.decoder_embeddings = self.make_embeddings(
            config, config.hidden_dim, token=self.embeddings.token, name="decoder_embeddings"
        )
        first = len(self.blocks)
        self.decoder_blocks = [
            self.make_block(DecoderBlock, config, first + i)
            for i in range(config.num_decoder_layers)
        ]
        self.decoder_norm = self.make_final_norm(config, "decoder_norm")

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        super().build(input_shape)
        self.decoder_embeddings.build((None, None))
        for block in self.decoder_blocks:
            block.build()
        if self.decoder_norm is not None:
            self.decoder_norm.build((None, None, self.hidden_dim))

    def position_ids(self, features: Mapping[str, Any]) -> Any:
        """Number of real tokens before each one of the text; 0 for padding."""
        return positions_of_tokens(features.get(keys.PADDING_MASK))

    def target_position_ids(self, features: Mapping[str, Any], mask: Any) -> Any:
        """Which row of the decoder's position table each token gets; None: as they stand."""
        if keys.TARGET_POSITIONS in features:
            return features[keys.TARGET_POSITIONS]
        return positions_of_tokens(mask)

    def target_bias(self, length: Any, positions: Any = None) -> Any:
        """What is added to the scores of the decoder's self-attention.

        Args:
            length: N, the tokens that attend.
            positions: (B, S + N) positions of the places that are attended to, of which the last N
                attend; None for N tokens as they stand.

        Returns:
            (B or 1, 1 or H, N, S + N) float32.
        """
        before = 0 if positions is None else ops.shape(positions)[1] - length
        return causal_bias(length, before)

    def memory_bias(self, features: Mapping[str, Any]) -> Any:
        """What is added to the scores of the target's attention to the text, (B, 1, 1, T)."""
        mask = features.get(keys.ATTENDED_MASK, features.get(keys.PADDING_MASK))
        return None if mask is None else bias_from_padding(mask)

    def encode(self, features: Mapping[str, Any], training: bool | None = None) -> Any:
        """What the decoder attends to: the encoder's last states, (B, T, D) float32."""
        return super().call(features, training=training)[keys.SEQUENCE_OUTPUT]

    def encoder_states(
        self, features: Mapping[str, Any], training: bool | None = None
    ) -> list[Any]:
        """What enters the encoder's first block, and what each of them gives: (B, T, D) each."""
        return super().hidden_states(features, training=training)

    def decoder_states(
        self, features: Mapping[str, Any], memory: Any, training: bool | None = None
    ) -> list[Any]:
        """What enters the decoder's first block, and what each of them gives: (B, S, D) each."""
        ids, mask = target_of(features)
        states = [
            self.decoder_embeddings(
                ids, position_ids=self.target_position_ids(features, mask), training=training
            )
        ]
        bias, memory_bias = self.target_bias(ops.shape(ids)[1]), self.memory_bias(features)
        if mask is not None:
            bias = bias + bias_from_padding(mask)
        for block in self.decoder_blocks:
            states.append(block(states[-1], memory, bias, memory_bias, training=training))
        if self.decoder_norm is not None:
            states[-1] = self.decoder_norm(states[-1])
        return states

    @property
    def num_hidden_states(self) -> int:
        """Of the encoder L + 1, and of the decoder."""
        return super().num_hidden_states + len(self.decoder_blocks) + 1

    def hidden_states(self, features: Mapping[str, Any], training: bool | None = None) -> list[Any]:
        """The encoder's states, then the decoder's."""
        states = self.encoder_states(features, training)
        return states + self.decoder_states(features, states[-1], training)

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Read the text, then the target; other keys of `features` are ignored."""
        memory = self.encode(features, training)
        return {keys.SEQUENCE_OUTPUT: self.decoder_states(features, memory, training)[-1]}

    def memorised(self, features: Mapping[str, Any]) -> list[Past]:
        """Keys and values of the text for each block of the decoder; made once a text."""
        memory = self.encode(features)
        return [block.memorised(memory) for block in self.decoder_blocks]

    def go_on(
        self,
        features: Mapping[str, Any],
        past: Sequence[Past],
        memorised: Sequence[Past],
        texts: Any = 1,
    ) -> tuple[Any, list[Past]]:
        """Read tokens that continue targets, without reading those before them again.

        Args:
            features: target_ids (P · N, T) of the new tokens; target_mask (P · N, S + T) as
                padding_mask in `models.layers.causal`; padding_mask (P, …) of the sources;
                target_positions? (P · N, T).
            past: Keys and values at S places of P rows, by block; empty for none.
            memorised: What `memorised` gives for the sources.
            texts: N, the targets that go on from each row.

        Returns:
            sequence_output of the new tokens (P · N, T, D) float32, and their keys and values by
            block, (P, H, N · T, K). Both equal those of one reading of all tokens up to rounding.
        """
        ids, mask = features[keys.TARGET_IDS], features[keys.TARGET_MASK]
        new, positions = ops.shape(ids)[1], positions_of_tokens(mask)
        own = features.get(keys.TARGET_POSITIONS, own_positions(positions, new))
        x = joined(self.decoder_embeddings(ids, position_ids=own), texts)
        bias = self.target_bias(new, positions) + bias_from_padding(mask)
        bias = joined_pairs(bias, new, texts, NOT_SEEN)
        memory_bias = self.memory_bias(features)
        seen: list[Past] = []
        for number, block in enumerate(self.decoder_blocks):
            before = past[number] if past else None
            x, kept = block.go_on(x, before, memorised[number], bias, memory_bias)
            seen.append(kept)
        x = x if self.decoder_norm is None else self.decoder_norm(x)
        return parted(x, new, texts), seen


def target_of(features: Mapping[str, Any]) -> tuple[Any, Any]:
    """What the decoder reads: token ids (B, S), and a mask (B, S) or None for no padding."""
    if keys.TARGET_IDS in features:
        return features[keys.TARGET_IDS], features.get(keys.TARGET_MASK)
    mask = features.get(keys.PADDING_MASK)
    return last_token_first(features[keys.TOKEN_IDS], mask), mask


def last_token_first(token_ids: Any, padding_mask: Any) -> Any:
    """Each row moved right by one token, the last one first.

        [CLS] the cat [SEP] 0    →    [SEP] [CLS] the cat 0

    Args:
        token_ids: (B, T).
        padding_mask: (B, T), padding on one side; or None for no padding.

    Returns:
        (B, T), real tokens where the row has them.

    Reference:
        Lewis et al. 2020, arXiv 1910.13461, by the authors' code: the decoder begins with the token
        that ends the text.
    """
    turned = ops.concatenate([token_ids[:, -1:], token_ids[:, :-1]], axis=1)
    if padding_mask is None:
        return turned
    real = ops.cast(padding_mask, token_ids.dtype)
    counted = ops.cumsum(real, axis=1) * real  # 1, 2, 3… at the real tokens
    size = ops.sum(real, axis=1, keepdims=True)
    last = ops.sum(ops.where(counted == size, token_ids * real, 0), axis=1, keepdims=True)
    return ops.where(counted == 1, last, turned)
