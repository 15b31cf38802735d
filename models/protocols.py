"""The interfaces of the science, and the text they are fed with.

A family is a `Network`, a pre-training objective and a fine-tuning head are an `Objective`, what an
objective makes for one network is its `Scorer`, and what a head answers is scored by its kind of
`Answers`. Nothing else is known between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np


class Capability(StrEnum):
    """What a network provides and an objective may need. A closed list."""

    BIDIRECTIONAL = "bidirectional"  # every position sees every other
    CAUSAL = "causal"  # position t sees 0..t
    ENCODER_DECODER = "encoder_decoder"
    MEMORY = "memory"
    REGIONS = "regions"
    SEGMENTS = "segments"  # reads segment_ids, so pairs can be told apart
    POOLED_OUTPUT = "pooled_output"  # one vector a row
    TOKEN_LOGITS = "token_logits"  # an objective's predictions over the vocabulary


class TokenisedCorpus(Protocol):
    """Tokenised documents, random access, in constant memory."""

    def __len__(self) -> int: ...

    @property
    def num_tokens(self) -> int:
        """Tokens of all documents."""
        ...

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each document, (documents,) int64."""
        ...

    def document(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Document `i`: token ids (n,) int32, sentence lengths (s,) int32, unit starts (n,).

        A unit start is the sum of the kinds of unit that begin there (`models.features`).
        """
        ...


class TokenisedRows(Protocol):
    """Tokenised rows with an answer each, random access."""

    def __len__(self) -> int: ...

    @property
    def answers(self) -> Sequence[str]:
        """(rows,) what is right, as the dataset writes it; empty where a row has no answer."""
        ...

    def texts(self, i: int) -> tuple[np.ndarray, ...]:
        """Token ids of row `i`, (n,) int32 for each of its texts."""
        ...

    def word_lengths(self, i: int) -> np.ndarray:
        """Tokens of each word of row `i`'s first text, (words,) int32; words end at blanks."""
        ...


class Tokenizer(Protocol):
    """Text to ids and back, on tensorflow-text ops, so that the served graph holds it too."""

    vocabulary_size: int
    pad_id: int
    unknown_id: int
    cls_id: int
    sep_id: int
    mask_id: int

    @property
    def special_ids(self) -> tuple[int, ...]:
        """Ids that no text has and no noise may draw."""
        ...

    @property
    def digest(self) -> str:
        """Of everything that decides which ids a text gets."""
        ...

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """One (n,) int32 array of ids a text, with no special tokens added."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of the ids."""
        ...

    def unit_starts(self, ids: np.ndarray) -> np.ndarray:
        """(n,) bool: whether a piece starts a unit (a word; one CJK character)."""
        ...

    def module(self) -> Any:
        """A ``tf.Module`` with ``__call__((B,) string) -> RaggedTensor (B, n) int32``, or None."""
        ...


@dataclass(frozen=True)
class Context:
    """What is fixed for a stage and every objective may know.

    Attributes:
        tokenizer: The recipe's tokenizer.
        sequence_length: Tokens a row holds in this phase, special tokens counted.
        label_names: What answers are made of, in the order of their ids; empty in pre-training.
        rows: The dataset's training rows, where a head is trained on them.
        folders: Project folders, searched before the built-in parts.
        marks: Token ids of each string that marks something in the rows' texts, such as ``<<``
            before an entity; what is cut from a long row lies far from them.
    """

    tokenizer: Tokenizer
    sequence_length: int
    label_names: tuple[str, ...] = ()
    rows: TokenisedRows | None = None
    folders: tuple[Path, ...] = ()
    marks: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Index:
    """Which text makes example `i` of one pass, in terms that the chooser understands.

    Attributes:
        entries: (examples,) of the chooser's own type, structured where it has several fields.
        lengths: Real tokens of each example's row, special tokens counted, (examples,) int64.
        by_length: Whether `segments` pads to the longest row of a batch, so that batches should be
            made of rows of like length.
        details: Counts worth printing, such as the share of padding or of random pairs.
    """

    entries: np.ndarray
    lengths: np.ndarray
    by_length: bool = False
    details: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.entries)


Batch = dict[str, np.ndarray]


class Network(Protocol):
    """A ``keras.Model`` written with ``keras.ops``; one a file in ``models/families``.

    Module-level literals beside it, readable without importing TensorFlow: ``PROVIDES`` (a tuple of
    capability names) and ``SIZES`` ({name: keyword arguments}), ``tiny`` among them.
    """

    provides: frozenset[Capability]
    token_embedding: Any  # a layer; heads that tie weights use its very variable
    row_summary: str  # where the last layer sums a row up: a name in `models.layers.summary`
    # Without ``pooled_output`` also ``pooler_activation``, of the dense layer a head puts there, or
    # None for no such layer, and ``pooler_dropout``: whether dropout comes before it.
    # ``reads_positions = True`` where it heeds ``read_positions`` (`models.reading`).

    def __call__(self, features: Mapping[str, Any], training: bool | None = None) -> dict:
        """Encode a batch; keys that the network does not need are ignored."""
        ...

    def get_config(self) -> dict:
        """Every constructor argument, as plain JSON values."""
        ...


class Objective(Protocol):
    """How examples are made and how they are scored; one a file in ``objectives`` or ``heads``.

    One that starts the network from something else than random weights (distillation, from its
    teacher) has ``initialise(network, scorers)`` too, called once where a first stage begins.

    Built as ``Cls(context, **settings)`` with the recipe's settings. Module-level literals beside
    it: ``NEEDS``, ``PROVIDES`` (tuples of capability names), ``CHOOSES`` (0: never chooses a
    stage's segments, 1: chooses plain windows where no other objective does, 2: must choose) and
    ``PREPARES`` (whether its scorer changes the batch before the network sees it). Where objectives
    take turns, each that can choose has a turn of its own. Optional are ``MEASURED``, the settings
    under which its loss on held-out text says what a stage learned (without it the loss is not
    measured), and ``READS_CASE``, which has text tokenised with the case of its words. A head has
    ``ANSWERS`` among its literals, its kind of `Answers`, and an attribute ``targets``: the names
    of what is right in a batch, which is taken out where it predicts.
    """

    needs: frozenset[Capability]
    provides: frozenset[Capability]
    chooses: int
    prepares: bool

    def index(self, corpus: TokenisedCorpus | TokenisedRows, rng: np.random.Generator) -> Index:
        """Segment chooser only: which text makes which example, for one pass over the corpus."""
        ...

    def segments(self, corpus: Any, entries: np.ndarray, rng: np.random.Generator) -> Batch:
        """Segment chooser only: the clean rows of a batch, (b,) entries → features (b, T).

        Where words are known, ``unit_starts`` is among them; batches leave it out at the end.
        """
        ...

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Add this objective's inputs, targets and weights; chained over a stage's objectives."""
        ...

    def attach(self, network: Any) -> Scorer:
        """Make the head's variables for `network`; called once."""
        ...

    def decode(self, outputs: Mapping[str, np.ndarray]) -> list[Any]:
        """From the scorer's predictions to words; of a head one `Answer` a row."""
        ...


@dataclass(frozen=True)
class Answer:
    """What a head says of a row.

    Attributes:
        text: Written as the dataset writes it: a label's name, or JSON.
        probability: That it is right, by the model, 0-1.
        details: What else there is to say, such as every label's probability.
    """

    text: str
    probability: float
    details: Mapping[str, Any] = field(default_factory=dict)


Column = Sequence[Any] | np.ndarray  # (rows,) of anything
Metric = Callable[[np.ndarray], np.ndarray]  # (..., K) statistics summed over rows → (...) scores


class Answers(Protocol):
    """What a row's answer is, and how answers are scored; one a file in ``models/answers``.

    A head names its kind of answer in the literal ``ANSWERS``. In files an answer is a text: a
    label's name, or JSON. Every metric is a function of sums over rows, so that scores of thousands
    of resampled test sets cost one product of matrices.
    """

    metrics: ClassVar[Mapping[str, Metric]]  # by name; higher is better
    usual: ClassVar[tuple[str, ...]]  # metrics where none are named; the last selects weights
    # Whether an answer is one of a few names, so that a linear model can be its cheap rival, a
    # probe can look for it, and a row's probabilities are a vector that can be served.
    is_class: ClassVar[bool]

    def names(self, answers: Iterable[str]) -> tuple[str, ...]:
        """The names that answers are made of, in the order of a head's outputs."""
        ...

    def statistics(self, true: Column, answers: Sequence[Column]) -> list[Any]:
        """What each row adds to the sums, by model.

        Args:
            true: (rows,) what is right.
            answers: Of each model what it answers, (rows,).

        Returns:
            Of each model (rows, K), sparse; the columns mean the same for all.
        """
        ...


class Scorer(Protocol):
    """The scoring half of an objective, a ``keras.layers.Layer``.

    One that reads the sequence at some positions alone says so in ``reads``: the names of those
    positions in a batch; ``()`` where it reads one vector a row (`models.layers.summary`).
    """

    def prepare(self, batch: dict, training: bool) -> dict:
        """Change the batch before the network sees it; the default returns it as it is."""
        ...

    def __call__(
        self, batch: dict, outputs: dict, training: bool = False
    ) -> tuple[dict[str, tuple[Any, Any]], dict]:
        """Scores as {name: (sum, weight)} with "loss" among them, and predictions by name."""
        ...
