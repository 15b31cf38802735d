"""ERNIE of Tsinghua: a BERT whose upper layers also read the entities that its text names.

    token_ids, segment_ids, padding_mask                     entity_ids (B, T), 0 for none
      → token + position + segment vectors → LayerNorm         → fixed vectors of a knowledge graph
      → num_text_layers × [attention → feed-forward]
      → num_mix_layers × [attention → fusion]           ←→   (B, T, E), at a name's first token
      → the others × [attention → fusion]               ←→     attention among the row's entities
      → sequence_output (B, T, D)
      → first position → dense → tanh → pooled_output (B, D)

A batch without entity_ids is read as by the text's layers alone; so is a row that names none, in
any batch. The vectors of entities come from another stage (`starts_from: {entities: STAGE}`) and
are never trained. An entity's number is that of its id in that stage's vocabulary.

Parameters with the published vocabulary of 30,522, without the vectors of entities: base
113,721,240; the paper says about 114 million.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras

from fourstage.errors import RecipeError
from models import features as keys
from models.keras_ops import ops
from models.layers.aggregator import AggregatorBlock
from models.layers.attention import bias_from_padding
from models.layers.transformer import TextTransformer, TransformerConfig
from models.protocols import Capability

PROVIDES = ("bidirectional", "segments", "pooled_output", "entities", "added_vectors")
TABLES = {"entities": ("num_entities", "entity_dim")}  # starts from a stage's vectors: rows, width
SIZES = {
    "tiny": {
        "num_layers": 3,
        "num_text_layers": 1,
        "hidden_dim": 128,
        "num_heads": 2,
        "intermediate_dim": 512,
        "num_entities": 2000,
        "entity_dim": 32,
    },
    "base": {
        "num_layers": 12,
        "num_text_layers": 5,
        "hidden_dim": 768,
        "num_heads": 12,
        "intermediate_dim": 3072,
        "num_entities": 41000,
        "entity_dim": 100,
    },
}


@dataclass(frozen=True, kw_only=True)
class _Config(TransformerConfig):
    """What it has beside every encoder's arguments.

    Attributes:
        num_text_layers: Layers before the first entity is read, below `num_layers`.
        num_mix_layers: How many of the others, the first of them, have no attention among entities.
        num_entities: Rows of the table of entities, with the one for none.
        entity_dim: E, width of an entity's vector.
        entity_heads: Heads of the attention among entities; divides `entity_dim`.
        num_segments: Number of segment ids.
    """

    num_text_layers: int
    num_mix_layers: int = 1
    num_entities: int
    entity_dim: int = 100
    entity_heads: int = 4
    num_segments: int = 2


class ErnieTsinghua(TextTransformer):
    """The encoder of Zhang et al. with its pooler; heads bring their own variables.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), padding_mask? (B, T), entity_ids? (B, T)} →
        {sequence_output (B, T, D) float32, pooled_output (B, D) float32}

    Raises:
        RecipeError: No layer is left to read entities.

    Reference:
        Zhang et al. 2019, arXiv 1905.07129, 3; layers as in the authors' released configuration:
        five of the text, one without attention among entities, six with.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    pooled = True
    reads_positions = False  # the last layer, too, fuses at tokens that no scorer reads

    def make_block(self, kind: Any, config: Any, number: int) -> Any:
        """A block of the text, or one that fuses it with entities."""
        above = number - config.num_text_layers
        if above < 0:
            return super().make_block(kind, config, number)
        return AggregatorBlock(
            **self.block_arguments(config),
            entity_dim=config.entity_dim,
            entity_heads=0 if above < config.num_mix_layers else config.entity_heads,
            gives_entities=number + 1 < config.num_layers,
            name=f"block_{number}",
        )

    def make_more(self, config: Any) -> None:
        """The table of entities."""
        if not 0 <= config.num_text_layers < config.num_layers:
            raise RecipeError(
                f"size.num_text_layers: expected 0 to {config.num_layers - 1}, fewer than"
                f" num_layers, got {config.num_text_layers}"
            )
        initializer: Any = keras.initializers.TruncatedNormal(stddev=0.1)
        self.entities = keras.layers.Embedding(
            config.num_entities,
            config.entity_dim,
            embeddings_initializer=initializer,
            name="entities",
            dtype="float32",
        )
        self.entities.trainable = False

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        super().build(input_shape)
        self.entities.build((None, None))

    def hidden_states(self, features: Mapping[str, Any], training: bool | None = None) -> list[Any]:
        """What enters the first block, and what each layer gives: L + 1 of (B, T, D) float32."""
        ids = features.get(keys.ENTITY_IDS)
        if ids is None:
            return super().hidden_states(features, training)
        x, bias = self.embed(features, training=training), self.attention_bias(features)
        aligned = ops.cast(ids > 0, "float32")  # (B, T)
        entities, entity_bias = self.entities(ids), bias_from_padding(aligned)
        states = [x]
        for block in self.blocks:
            if isinstance(block, AggregatorBlock):
                x, entities = block.fuse(x, entities, aligned, bias, entity_bias, training)
            else:
                x = block(x, bias=bias, training=training)
            states.append(x)
        return states

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encode; other keys of `features` are ignored."""
        if features.get(keys.ENTITY_IDS) is None:
            return super().call(features, training)
        x = self.hidden_states(features, training)[-1]
        assert self.pooler is not None, "it has one"
        pooled = ops.tanh(ops.cast(self.pooler(x[:, 0]), "float32"))  # (B, D)
        return {keys.SEQUENCE_OUTPUT: x, keys.POOLED_OUTPUT: pooled}
