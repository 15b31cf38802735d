"""Hugging Face's names for what we have: one table an architecture, read in both directions.

A row is (their module, our layer, shape). The letters of a shape: V vocabulary, P rows of the
position table, S segments, K tasks, E width of the tables, D width, F feed-forward width, N labels,
2 and 1 themselves. One letter is a LayerNorm, two are a table where our layer is one, else a dense
layer, whose matrix lies the other way round there.

Names and defaults: transformers 5.23, ``modeling_*.py`` and ``configuration_*.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Rows = tuple[tuple[str, str, str], ...]

ACTIVATIONS = {  # theirs: ours
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}
THEIR_ACTIVATION = {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu"}
TABLES = ("token", "position", "segment", "task")


@dataclass(frozen=True)
class Link:
    """One tensor under both names.

    Attributes:
        theirs: Name in a checkpoint of theirs, with the prefix.
        ours: ``network/`` or an objective's name, then the path below it.
        shape: As it lies in their file.
        transposed: Whether ours lies the other way round.
        rows_before: Rows at the start of theirs that ours has not.
        rows: Rows that ours has; None for all that follow.
    """

    theirs: str
    ours: str
    shape: tuple[int, ...]
    transposed: bool = False
    rows_before: int = 0
    rows: int | None = None


@dataclass(frozen=True)
class Architecture:
    """How an architecture of theirs is one of our families.

    Attributes:
        family: Ours.
        model_type: Theirs; also the prefix of the tensors' names.
        arguments: Their key: (our argument, their default).
        demanded: Their key: the one value that our network can be.
        fixed: Our argument: the one value that their class can be.
        embeddings: Rows of the tables and what stands round them.
        block_prefix: Of a block's modules; {n} its number, {g} its group, {j} its place there.
        block: Rows of a block.
        pooler: Rows of the pooler; empty where ours has none.
        ignored: Beginnings of names of theirs that ours has no place for.
        heads: Rows of each head of ours.
        parameters: Their single parameter: (our name with its head, letter).
        copies: Their second copy of a tensor: the tensor.
        classes: Their class: the heads it has; the first that has all of ours is written.
        offset_positions: Whether the position table starts with unused rows, pad id + 1 of them.
        switch: (their key, our argument that counts for nothing where it is false).
        always_projects: Whether tables are projected even where the widths are equal.
        attention_dropout: Their key of the share of attention weights dropped; ours has one share.
        head_activation: What their class computes the masked-token head with, where that is not
            the activation of the blocks.
        pad_id: Their default.
    """

    family: str
    model_type: str
    arguments: Mapping[str, tuple[str, Any]]
    embeddings: Rows
    block: Rows
    heads: Mapping[str, Rows]
    classes: Mapping[str, tuple[str, ...]]
    parameters: Mapping[str, tuple[str, str]]
    copies: Mapping[str, str]
    demanded: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    block_prefix: str = "encoder.layer.{n}."
    pooler: Rows = ()
    ignored: tuple[str, ...] = ()
    switch: tuple[str, str] | None = None
    always_projects: bool = False
    attention_dropout: str = "attention_probs_dropout_prob"
    head_activation: str | None = None
    offset_positions: bool = False
    pad_id: int = 0

    @property
    def prefix(self) -> str:
        """Of the network's tensors in a file that holds a head, too."""
        return f"{self.model_type}."

    def sizes(self, settings: Mapping[str, Any], num_labels: int = 0) -> dict[str, int]:
        """What each letter stands for in a network with these arguments of ours."""
        return {
            "V": settings["vocabulary_size"],
            "P": settings["max_sequence_length"],
            "S": settings.get("num_segments", 1),
            "K": settings.get("num_tasks", 0),
            "E": settings.get("embedding_dim", settings["hidden_dim"]),
            "D": settings["hidden_dim"],
            "F": settings["intermediate_dim"],
            "N": num_labels,
            "1": 1,
            "2": 2,
        }

    def network_links(
        self, settings: Mapping[str, Any], pad_id: int, their_segments: int | None = None
    ) -> Iterator[Link]:
        """Every tensor of the network but the pooler, in the order of our making.

        Args:
            settings: Our arguments.
            pad_id: Of the padding token; only an offset of the positions depends on it.
            their_segments: Rows of their segment table, where it may have more than ours.
        """
        sizes = self.sizes(settings)
        before = pad_id + 1 if self.offset_positions else 0
        for theirs, ours, letters in self.embeddings:
            if ours == "embeddings/task" and not sizes["K"]:
                continue
            equal = sizes["E"] == sizes["D"]
            if ours == "embedding_projection" and equal and not self.always_projects:
                continue
            for link in _links(self.prefix + theirs, f"network/{ours}", letters, sizes):
                if ours == "embeddings/position":
                    shape = (link.shape[0] + before, link.shape[1])
                    link = Link(link.theirs, link.ours, shape, rows_before=before)
                if ours == "embeddings/segment" and their_segments is not None:
                    shape = (their_segments, link.shape[1])
                    link = Link(link.theirs, link.ours, shape, rows=link.shape[0])
                yield link
        inner = settings.get("num_inner_blocks", 1)
        count = settings.get("num_groups", settings["num_layers"]) * inner
        for n in range(count):
            start = self.prefix + self.block_prefix.format(n=n, g=n // inner, j=n % inner)
            for theirs, ours, letters in self.block:
                yield from _links(start + theirs, f"network/block_{n}/{ours}", letters, sizes)

    def pooler_links(self, settings: Mapping[str, Any]) -> list[Link]:
        """Tensors of the pooler; a checkpoint of theirs may be without."""
        sizes = self.sizes(settings)
        return [
            link
            for theirs, ours, letters in self.pooler
            for link in _links(self.prefix + theirs, f"network/{ours}", letters, sizes)
        ]

    def head_links(self, head: str, settings: Mapping[str, Any], num_labels: int = 0) -> list[Link]:
        """Tensors of one head."""
        sizes = self.sizes(settings, num_labels)
        found = [
            link
            for theirs, ours, letters in self.heads[head]
            for link in _links(theirs, f"{head}/{ours}", letters, sizes)
        ]
        for theirs, (ours, letter) in self.parameters.items():
            if ours.startswith(f"{head}/"):
                found.append(Link(theirs, ours, (sizes[letter],)))
        return found


def _links(theirs: str, ours: str, letters: str, sizes: Mapping[str, int]) -> list[Link]:
    """The tensors of one module."""
    shape = tuple(sizes[letter] for letter in letters)
    if len(letters) == 1:
        return [
            Link(f"{theirs}.weight", f"{ours}/gamma", shape),
            Link(f"{theirs}.bias", f"{ours}/beta", shape),
        ]
    if ours.rsplit("/", 1)[-1] in TABLES:
        return [Link(f"{theirs}.weight", f"{ours}/embeddings", shape)]
    return [
        Link(f"{theirs}.weight", f"{ours}/kernel", shape[::-1], transposed=True),
        Link(f"{theirs}.bias", f"{ours}/bias", shape[1:]),
    ]


_EMBEDDINGS: Rows = (
    ("embeddings.word_embeddings", "embeddings/token", "VE"),
    ("embeddings.position_embeddings", "embeddings/position", "PE"),
    ("embeddings.token_type_embeddings", "embeddings/segment", "SE"),
    ("embeddings.LayerNorm", "embeddings/norm", "E"),
)
_BLOCK: Rows = (
    ("attention.self.query", "attention/query", "DD"),
    ("attention.self.key", "attention/key", "DD"),
    ("attention.self.value", "attention/value", "DD"),
    ("attention.output.dense", "attention/output", "DD"),
    ("attention.output.LayerNorm", "attention_norm", "D"),
    ("intermediate.dense", "intermediate", "DF"),
    ("output.dense", "output", "FD"),
    ("output.LayerNorm", "output_norm", "D"),
)
_POOLER: Rows = (("pooler.dense", "pooler", "DD"),)
_ARGUMENTS: dict[str, tuple[str, Any]] = {
    "vocab_size": ("vocabulary_size", 30522),
    "hidden_size": ("hidden_dim", 768),
    "num_hidden_layers": ("num_layers", 12),
    "num_attention_heads": ("num_heads", 12),
    "intermediate_size": ("intermediate_dim", 3072),
    "max_position_embeddings": ("max_sequence_length", 512),
    "type_vocab_size": ("num_segments", 2),
    "hidden_act": ("activation", "gelu"),
    "hidden_dropout_prob": ("dropout", 0.1),
    "layer_norm_eps": ("layer_norm_epsilon", 1e-12),
}
_DEMANDED = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
    "pruned_heads": {},
}
_MASKED_LM: Rows = (
    ("cls.predictions.transform.dense", "transform", "DE"),
    ("cls.predictions.transform.LayerNorm", "norm", "E"),
)
_CLASSIFICATION: Rows = (("classifier", "output", "DN"),)


def _like_bert(name: str, model_type: str, **changes: Any) -> Architecture:
    """BERT and what has its names."""
    word_table = f"{model_type}.embeddings.word_embeddings.weight"
    settings: dict[str, Any] = {
        "family": model_type,
        "model_type": model_type,
        "arguments": _ARGUMENTS,
        "demanded": _DEMANDED,
        "embeddings": _EMBEDDINGS,
        "block": _BLOCK,
        "pooler": _POOLER,
        "heads": {
            "masked_lm": _MASKED_LM,
            "next_sentence": (("cls.seq_relationship", "output", "D2"),),
            "sequence_classification": _CLASSIFICATION,
        },
        "parameters": {"cls.predictions.bias": ("masked_lm/output_bias", "V")},
        "copies": {
            "cls.predictions.decoder.weight": word_table,
            "cls.predictions.decoder.bias": "cls.predictions.bias",
        },
        "classes": {
            f"{name}Model": (),
            f"{name}ForMaskedLM": ("masked_lm",),
            f"{name}ForNextSentencePrediction": ("next_sentence",),
            f"{name}ForPreTraining": ("masked_lm", "next_sentence"),
            f"{name}ForSequenceClassification": ("sequence_classification",),
        },
    }
    return Architecture(**(settings | changes))


BERT = _like_bert("Bert", "bert")

ERNIE = _like_bert(
    "Ernie",
    "ernie",
    arguments={**_ARGUMENTS, "task_type_vocab_size": ("num_tasks", 3)},
    switch=("use_task_id", "num_tasks"),
    embeddings=(
        *_EMBEDDINGS[:3],
        ("embeddings.task_type_embeddings", "embeddings/task", "KE"),
        _EMBEDDINGS[3],
    ),
)

ROBERTA = Architecture(
    family="roberta",
    model_type="roberta",
    arguments={
        **{key: value for key, value in _ARGUMENTS.items() if key != "type_vocab_size"},
        "vocab_size": ("vocabulary_size", 50265),
    },
    demanded=_DEMANDED,
    embeddings=_EMBEDDINGS,
    block=_BLOCK,
    ignored=("roberta.pooler.",),
    heads={
        "masked_lm": (("lm_head.dense", "transform", "DE"), ("lm_head.layer_norm", "norm", "E"))
    },
    parameters={"lm_head.bias": ("masked_lm/output_bias", "V")},
    copies={
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    classes={"RobertaModel": (), "RobertaForMaskedLM": ("masked_lm",)},
    head_activation="gelu",
    offset_positions=True,
    pad_id=1,
)

ALBERT = Architecture(
    family="albert",
    model_type="albert",
    arguments={
        **_ARGUMENTS,
        "vocab_size": ("vocabulary_size", 30000),
        "embedding_size": ("embedding_dim", 128),
        "hidden_size": ("hidden_dim", 4096),
        "num_hidden_groups": ("num_groups", 1),
        "inner_group_num": ("num_inner_blocks", 1),
        "num_attention_heads": ("num_heads", 64),
        "intermediate_size": ("intermediate_dim", 16384),
        "hidden_act": ("activation", "gelu_new"),
        "hidden_dropout_prob": ("dropout", 0.0),
    },
    demanded=_DEMANDED,
    embeddings=(
        *_EMBEDDINGS,
        ("encoder.embedding_hidden_mapping_in", "embedding_projection", "ED"),
    ),
    always_projects=True,
    block_prefix="encoder.albert_layer_groups.{g}.albert_layers.{j}.",
    block=(
        ("attention.query", "attention/query", "DD"),
        ("attention.key", "attention/key", "DD"),
        ("attention.value", "attention/value", "DD"),
        ("attention.dense", "attention/output", "DD"),
        ("attention.LayerNorm", "attention_norm", "D"),
        ("ffn", "intermediate", "DF"),
        ("ffn_output", "output", "FD"),
        ("full_layer_layer_norm", "output_norm", "D"),
    ),
    pooler=(("pooler", "pooler", "DD"),),
    heads={
        "masked_lm": (
            ("predictions.dense", "transform", "DE"),
            ("predictions.LayerNorm", "norm", "E"),
        ),
        "sentence_order": (("sop_classifier.classifier", "output", "D2"),),
        "sequence_classification": _CLASSIFICATION,
    },
    parameters={"predictions.bias": ("masked_lm/output_bias", "V")},
    copies={
        "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    },
    classes={
        "AlbertModel": (),
        "AlbertForMaskedLM": ("masked_lm",),
        "AlbertForPreTraining": ("masked_lm", "sentence_order"),
        "AlbertForSequenceClassification": ("sequence_classification",),
    },
)

ELECTRA = Architecture(
    family="electra",
    model_type="electra",
    arguments={
        **_ARGUMENTS,
        "embedding_size": ("embedding_dim", 128),
        "hidden_size": ("hidden_dim", 256),
        "num_attention_heads": ("num_heads", 4),
        "intermediate_size": ("intermediate_dim", 1024),
    },
    demanded=_DEMANDED,
    embeddings=(*_EMBEDDINGS, ("embeddings_project", "embedding_projection", "ED")),
    block=_BLOCK,
    heads={
        "masked_lm": (
            ("generator_predictions.dense", "transform", "DE"),
            ("generator_predictions.LayerNorm", "norm", "E"),
        ),
        "replaced_token_detection": (
            ("discriminator_predictions.dense", "transform", "DD"),
            ("discriminator_predictions.dense_prediction", "score", "D1"),
        ),
    },
    parameters={"generator_lm_head.bias": ("masked_lm/output_bias", "V")},
    copies={"generator_lm_head.weight": "electra.embeddings.word_embeddings.weight"},
    classes={
        "ElectraModel": (),
        "ElectraForMaskedLM": ("masked_lm",),
        "ElectraForPreTraining": ("replaced_token_detection",),
    },
    head_activation="gelu",
)

DISTILBERT = Architecture(
    family="distilbert",
    model_type="distilbert",
    arguments={
        "vocab_size": ("vocabulary_size", 30522),
        "dim": ("hidden_dim", 768),
        "n_layers": ("num_layers", 6),
        "n_heads": ("num_heads", 12),
        "hidden_dim": ("intermediate_dim", 3072),
        "max_position_embeddings": ("max_sequence_length", 512),
        "activation": ("activation", "gelu"),
        "dropout": ("dropout", 0.1),
    },
    demanded={"tie_word_embeddings": True, "pruned_heads": {}},
    fixed={"layer_norm_epsilon": 1e-12},
    attention_dropout="attention_dropout",
    embeddings=(*_EMBEDDINGS[:2], _EMBEDDINGS[3]),
    block_prefix="transformer.layer.{n}.",
    block=(
        ("attention.q_lin", "attention/query", "DD"),
        ("attention.k_lin", "attention/key", "DD"),
        ("attention.v_lin", "attention/value", "DD"),
        ("attention.out_lin", "attention/output", "DD"),
        ("sa_layer_norm", "attention_norm", "D"),
        ("ffn.lin1", "intermediate", "DF"),
        ("ffn.lin2", "output", "FD"),
        ("output_layer_norm", "output_norm", "D"),
    ),
    heads={
        "masked_lm": (("vocab_transform", "transform", "DE"), ("vocab_layer_norm", "norm", "E"))
    },
    parameters={"vocab_projector.bias": ("masked_lm/output_bias", "V")},
    copies={"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"},
    classes={"DistilBertModel": (), "DistilBertForMaskedLM": ("masked_lm",)},
)

ARCHITECTURES = {
    each.model_type: each for each in (ALBERT, BERT, DISTILBERT, ELECTRA, ERNIE, ROBERTA)
}
