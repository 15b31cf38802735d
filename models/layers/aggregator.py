"""A block that fuses tokens with the entities that they name (ERNIE of Tsinghua)."""

from __future__ import annotations

from typing import Any

from models.layers.block import TransformerBlock
from models.layers.projection import projection


class AggregatorBlock(TransformerBlock):
    """A post-LN block with a stream of entities beside the text; each entity stands at one token.

        w ← norm(w + attention(w))            e ← norm(e + attention(e)), where there is one
        h = activation(W w + W′ e + b)        W′ e only where an entity stands
        w ← norm(w + V h + c)                 e ← norm(e + V′ h + c′), but of the last block

    A row without entities is read as by a block of the text alone; so is a batch, by `call`.

    Args:
        entity_dim: E, width of an entity's vector.
        entity_heads: Heads of the attention among entities, a divisor of E; 0 for no attention.
        gives_entities: Whether the block changes entities; the last one does not, for no block
            reads them after it.
        arguments: Those of `TransformerBlock`, without pre-LN.

    Shape:
        x (B, T, D), entities (B, T, E) and aligned (B, T), 1 where an entity stands, bias and
        entity_bias broadcast to (B, H, T, T)
        → (B, T, D) float32, and entities (B, T, E) float32, or None of a block that gives none.

    Reference:
        Zhang et al. 2019, arXiv 1905.07129, 3.4, and `BertLayer` (with attention) and
        `BertLayerMix` (without) of the authors' code, where W′ has a second bias.
    """

    def __init__(
        self, *, entity_dim: int, entity_heads: int, gives_entities: bool, **arguments: Any
    ):
        super().__init__(**arguments)
        self.entity_dim = entity_dim
        dtype = self.dtype_policy.name
        self.entity_attention = self.entity_attention_norm = None
        if entity_heads:
            self.entity_attention = self.attention_of(
                hidden_dim=entity_dim,
                num_heads=entity_heads,
                dropout=arguments["dropout"],
                dtype=dtype,
                name="entity_attention",
            )
            self.entity_attention_norm = self.make_norm("entity_attention_norm")
        self.entity_intermediate = projection(
            self.intermediate_dim, name="entity_intermediate", dtype=dtype, use_bias=False
        )
        self.entity_output = self.entity_output_norm = None
        if gives_entities:
            self.entity_output = projection(entity_dim, name="entity_output", dtype=dtype)
            self.entity_output_norm = self.make_norm("entity_output_norm")

    def build(self, input_shape: Any = None) -> None:
        """Create the variables, in the order in which they are listed."""
        super().build(input_shape)
        stream = (None, None, self.entity_dim)
        for layer in (self.entity_attention, self.entity_attention_norm, self.entity_intermediate):
            if layer is not None:
                layer.build(stream)
        if self.entity_output is not None and self.entity_output_norm is not None:
            self.entity_output.build((None, None, self.intermediate_dim))
            self.entity_output_norm.build(stream)
        self.built = True

    def fuse(
        self,
        x: Any,
        entities: Any,
        aligned: Any,
        bias: Any = None,
        entity_bias: Any = None,
        training: bool | None = None,
    ) -> tuple[Any, Any]:
        """Run the block on a text and its entities."""
        attended = self.attention(x, x, bias=bias, training=training)
        x = self._attended(x, attended, self.attention_norm, training)
        if self.entity_attention is not None:
            seen = self.entity_attention(entities, entities, bias=entity_bias, training=training)
            entities = self._attended(entities, seen, self.entity_attention_norm, training)
        entities = entities * aligned[:, :, None]
        beside = self.entity_intermediate(entities)  # (B, T, F), 0 where no entity stands
        inner = self.intermediate(x, training=training, more=beside)
        x = self._after(
            x, self.dropout(self.output_projection(inner), training=training), self.output_norm
        )
        if self.entity_output is None:
            return x, None
        given = self.dropout(self.entity_output(inner), training=training)
        return x, self._after(entities, given, self.entity_output_norm)
