"""Interfaces between families, objectives, heads, answers, tokenizers and corpora.

A family implements `Network`. A pre-training objective or a fine-tuning head implements
`Objective`; attached to a network, it makes a `Scorer`. `Answers` computes the metrics of a head's
answers. The parts know each other through these interfaces only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

if TYPE_CHECKING:
    from models.linear_machine import Machine


class Capability(StrEnum):
    """A feature that networks and objectives provide and objectives need. A closed list."""

    BIDIRECTIONAL = "bidirectional"  # every position attends to every other
    CAUSAL = "causal"  # position t attends to 0..t
    GENERATION = "generation"  # writes token by token and keeps what it has read
    ENCODER_DECODER = "encoder_decoder"
    TWO_LANGUAGE_MODELS = "two_language_models"  # each side's first layer reads alone, too
    MEMORY = "memory"  # remembers the rows before
    TWO_DIRECTIONS = "two_directions"  # reads forwards and backwards apart, half of its width each
    TWO_STREAMS = "two_streams"  # predicts a token from its position and those of earlier places
    REGIONS = "regions"
    ENTITIES = "entities"  # reads entity_ids, which say what a text's names mean
    STATIC = "static"  # a word's vector is the same whatever stands around it
    SEGMENTS = "segments"  # reads segment_ids, which tell the two texts of a pair apart
    ADDED_VECTORS = "added_vectors"  # reads added_vectors, which a head adds to its tokens' own
    MODES = "modes"  # reads modes, which say of each row what sees what (`models.modes`)
    POOLED_OUTPUT = "pooled_output"  # one vector per row
    MATCHED_PAIRS = "matched_pairs"  # an objective's rows say whose picture is their caption's own
    WRITTEN_TARGETS = "written_targets"  # a head's rows have targets for a decoder to write
    TOKEN_LOGITS = "token_logits"  # an objective's predictions over the vocabulary


class TokenisedCorpus(Protocol):
    """Tokenised documents with random access in constant memory."""

    def __len__(self) -> int: ...

    @property
    def num_tokens(self) -> int:
        """Number of tokens in all documents."""
        ...

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens in each document, (documents,) int64."""
        ...

    def document(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Document `i`: token ids (n,) int32, sentence lengths (s,) int32, unit starts (n,).

        A unit start is the sum of the flags of the units that begin at that token, such as
        ``WORD + ENTITY``, and ENTITY_UNIT times the entity named (`models.features`).
        """
        ...


class TokenisedRows(Protocol):
    """Tokenised rows of a labelled dataset, each with its answer, with random access."""

    def __len__(self) -> int: ...

    @property
    def ids(self) -> Sequence[str]:
        """(rows,) ids of the rows in the dataset."""
        ...

    @property
    def answers(self) -> Sequence[str]:
        """(rows,) correct answers as the dataset writes them; "" for a row without one."""
        ...

    def texts(self, i: int) -> tuple[np.ndarray, ...]:
        """Token ids of row `i`: one (n,) int32 array per text.

        Of a row with choices, the text comes first, then each choice.
        """
        ...

    def passage(self, i: int) -> str:
        """Row `i`'s last text as written; only if the head has ``READS_WORDS``."""
        ...

    def word_lengths(self, i: int) -> np.ndarray:
        """Number of tokens in each word of `passage`, (words,) int32 (`models.served.words`).

        Their sum is the length of the last of `texts`; only if the head has ``READS_WORDS``.
        """
        ...

    @property
    def most_regions(self) -> int:
        """The most regions that a row of the dataset has, of any split; 0 without pictures."""
        ...

    def entities(self, i: int) -> tuple[np.ndarray, ...]:
        """The entity named from each token of each of `texts` on, 0 for none; (0,) each without."""
        ...

    def regions(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Boxes (n, 4) and features (n, E) float32 of the regions of row `i`'s picture."""
        ...

    @property
    def has_classes(self) -> bool:
        """Whether a detector told the classes of any picture's regions."""
        ...

    def classes(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Classes (n, 2) int32 of these regions, of objects and attributes, and confidences.

        (n, 2) float32, 0-1, 0 where a detector tells none; n is 0 where it tells nothing.
        """
        ...


class Tokenizer(Protocol):
    """Text to token ids and back.

    Built on tensorflow-text ops, so that the tokenizer can be part of the served graph.
    """

    vocabulary_size: int
    pad_id: int
    unknown_id: int
    cls_id: int
    sep_id: int
    mask_id: int
    sentinel_ids: tuple[int, ...]  # the first one first; () for none (`models.sentinels`)

    @property
    def special_ids(self) -> tuple[int, ...]:
        """Ids that no word of a text gives and that are never drawn as random replacements."""
        ...

    @property
    def digest(self) -> str:
        """Hash of everything that affects which ids a text gets."""
        ...

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """One (n,) int32 array of ids per text, without special tokens."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids."""
        ...

    def unit_starts(self, ids: np.ndarray) -> np.ndarray:
        """(n,) bool: whether a token starts a unit (a word, or one CJK character)."""
        ...

    def save(self, folder: Path) -> None:
        """Write the tokenizer's files to `folder`, from which its class's ``load`` reads them."""
        ...

    def served(self) -> dict[str, Any]:
        """What a served model needs to turn ids into text (`models.served.texts`)."""
        ...

    def module(self) -> Any:
        """A ``tf.Module`` with ``__call__((B,) string) -> RaggedTensor (B, n) int32``, or None."""
        ...


@dataclass(frozen=True)
class Context:
    """The constants of a stage that every objective can read.

    Attributes:
        tokenizer: The recipe's tokenizer.
        sequence_length: Tokens per row in this phase, including special tokens.
        label_names: Names that answers consist of, ordered by label id; empty in pre-training.
        rows: The dataset's training rows, for a head.
        folders: Project folders, searched before the built-in parts.
        marks: Token ids of each marker string in the rows' texts, such as ``<<`` before an entity.
            A row that is too long is cut away from its markers.
        network: Names of the capabilities of the stage's network, where it is known.
        remembers: Whether the network remembers the rows before. Row b of a batch then goes on from
            row b of the batch before, so the rows of an index should follow one another as the
            text does, and read no token twice.
        answers: The answers of the stage's captions, ordered by id, for an objective that asks.
        machine: What a head's wide part has learned from the training rows, where it has already.
    """

    tokenizer: Tokenizer
    sequence_length: int
    label_names: tuple[str, ...] = ()
    rows: TokenisedRows | None = None
    folders: tuple[Path, ...] = ()
    marks: tuple[tuple[int, ...], ...] = ()
    network: frozenset[str] = frozenset()
    remembers: bool = False
    answers: tuple[str, ...] = ()
    machine: Machine | None = None


@dataclass(frozen=True)
class Index:
    """The examples of one pass over a corpus, made by the objective that chooses the segments.

    Attributes:
        entries: (examples,) locations of each example's text. The chooser decides the dtype, a
            structured one where a location has several fields.
        lengths: Tokens in each example's row, with special tokens, without padding, (examples,)
            int64.
        by_length: Whether `segments` pads to the longest row of a batch. Batches are then made of
            rows of similar length.
        details: Statistics for display, such as the share of padding or of random pairs.
    """

    entries: np.ndarray
    lengths: np.ndarray
    by_length: bool = False
    details: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.entries)


Batch = dict[str, np.ndarray]


class Network(Protocol):
    """A ``keras.Model`` written with ``keras.ops``; one per file in ``models/families``.

    The file also defines two module-level literals, which are read without importing TensorFlow:
    ``PROVIDES`` (a tuple of capability names) and ``SIZES`` ({name: keyword arguments}, with
    ``tiny`` among the names). With ``EVEN_HEADS`` (optional) the width per head has to be even.
    """

    provides: frozenset[Capability]
    token_embedding: Any  # a layer; heads that tie weights share its variable
    row_summary: str  # how a row's last hidden states become one vector (`models.layers.summary`)
    # Optional attributes:
    # - `pooler_activation`, only without `pooled_output`: activation of the dense layer that a head
    #   adds to the summary; None for no such layer.
    # - `pooler_dropout`, only without `pooled_output`: whether dropout precedes that layer.
    # - `memory`: {feature: shape without the batch's} of what a network remembers of the batch
    #   before. It comes in as a feature; what to remember next goes out under the same name. Row b
    #   of a batch then continues row b of the batch before. All zeros mean nothing remembered.
    #   Heads read rows that continue nothing: they get no memory.
    # - `evaluation_memory`: as `memory`, on held-out text; by default the same.
    # - `target_begin`, of an encoder–decoder: special tokens with which a target begins.
    # - `num_states`, of a recurrent encoder–decoder: vectors that it keeps of what it has written,
    #   in place of keys and values (`models.decoding.recurrent`).
    # - `output_scale`: factor on the states with which the token embedding predicts tokens.
    # - `output_table`: (V, D) that predicts tokens in place of the token embedding; None for none.
    # - `output_bias`: (V,) that is added to the logits of what is written; None for none.
    # - `reads_positions = True`: the network uses `read_positions` (`models.scored_positions`).
    # - `counts_only = True`, with the literal ``COUNTS``: there is no network, only zeros; a head
    #   answers by its wide part. `token_embedding` is None.
    # - `copies`: (table, the table whose numbers it starts with) each, layers of embeddings.
    # - `starts`, with the literal ``STARTS``: by part, the names of its weights and theirs in the
    #   network that the part may start from (`models.training.starts`). A scorer may have it, too.
    # - `spell(tokenizer)`, of a network that reads characters: called where its training begins.
    # - `num_hidden_states` and `hidden_states(features, training)`: what enters the first layer and
    #   what each one gives, (B, T, D) each. Without them `feature_based` has the last layer alone.

    def __call__(self, features: Mapping[str, Any], training: bool | None = None) -> dict:
        """Encode a batch; features that the network does not need are ignored."""
        ...

    def get_config(self) -> dict:
        """Every constructor argument, as plain JSON values."""
        ...


class Objective(Protocol):
    """How examples are made and scored; one per file in ``objectives``, or in ``heads`` (`Head`).

    Built as ``Cls(context, **settings)`` with the recipe's settings. The file also defines
    module-level literals:

    - ``NEEDS`` and ``PROVIDES``: tuples of capability names.
    - ``CHOOSES``: whether it chooses the stage's segments. 0: never; 1: plain windows, where no
      other objective chooses; 2: always. Where objectives alternate, each that can choose has its
      own turn.
    - ``PREPARES``: whether its scorer changes the batch before the network sees it.
    - ``MEASURED`` (optional): the settings for measuring its loss on held-out text. Without it, the
      held-out loss is not measured.
    - ``PER_TOKEN = False`` (optional): the held-out loss is no cross-entropy of tokens, so it
      is not compared with guessing by frequency.
    - ``PREDICTS_ENDS`` (optional): the held-out loss is the mean over tokens and ends of documents:
      ``"all"`` of them, or those ``"between"`` documents, one fewer.
    - ``KEEPS_INPUT`` (optional): `examples` leaves what the network reads as it is. Beside a head,
      the objective then scores the head's own pass; any other one reads a copy of the rows.
    - ``ALONE`` (optional): its scorer reads what no other objective's can, such as a target that a
      decoder writes. No other objective has its rows; they may take turns.
    - ``HIDES_TOKENS`` (optional): it hides some of a row's tokens and learns what they were, so no
      other such objective has its rows; they may take turns.
    - ``NEEDS_MASK`` (optional): names of its settings of which one above 0 hides tokens behind
      [MASK], so that the tokenizer must have one of its own (`models.inputs.mask_token`).
    - ``HIDES_SPANS`` (optional): names of its settings for the share of hidden tokens and the mean
      length of a span, each of which needs a sentinel of the tokenizer (`models.inputs.spans`).
    - ``TRAINS`` (optional): it trains the network itself, not by the loop of gradient descent, and
      is an `OwnTrainer` (`models.training.own_trainer`) in place of `index` to `attach`.
    - ``READS_TRIPLES`` (optional): its texts are triples of three names (`models.vectors.triples`),
      so that the corpora of a stage may be datasets, and a dataset's links can be ranked.
    - ``ANSWERS_PROMPTS`` (optional): by its scorer's ``logits`` a network answers rows from
      examples in its prompt (`models.evaluation.few_shot`).
    - ``WRITES`` (optional): its network writes from raw text: `prompting(network, scorer)` says how
      (`models.decoding.prompting`).
    - ``CONTINUES`` (optional): ``fourstage new --init`` proposes it for a network that suits it,
      whether or not its head came with the network.
    - ``ASKS`` (optional): name of its setting for how many answers it learns, the commonest of the
      stage's captions. The context then has them, and plain windows and `image_text_match` say
      which one each row has.
    - ``PAIRS_CAPTIONS`` (optional): name of its setting for how many captions a row has. From two
      on, the stage's captions must all be true of their pictures.
    - ``LEARNS_CLASSES`` (optional): name of its setting for the numbers of classes that a detector
      tells, of objects and attributes. All pictures of the stage must have these.
    - ``READS_CASE`` (optional): text is tokenised together with the case of its words.

    An objective that does not start from random weights (distillation
    starts from its teacher) also has ``initialise(network, scorers)``, called once at the start of
    a first stage. One whose batches have ``<name>_labels`` (B,), a class of each row, may have
    ``decode(outputs)``: what the classes with the highest ``<name>_logits`` (B, classes) mean.
    ``show`` then says it of the labels. A chooser that reads how often words are there may have
    ``weigh(corpora)``: it is told the stage's (corpus, share) pairs before its `index` is asked.
    """

    chooses: int

    def index(self, corpus: TokenisedCorpus | TokenisedRows, rng: np.random.Generator) -> Index:
        """Segment chooser only: the examples of one pass over the corpus."""
        ...

    def segments(self, corpus: Any, entries: np.ndarray, rng: np.random.Generator) -> Batch:
        """Segment chooser only: the rows of a batch before noise, (b,) entries → features (b, T).

        Includes ``unit_starts`` where words are known; it is removed before the network.
        """
        ...

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Add this objective's inputs, targets and loss weights; called for each in turn."""
        ...

    def attach(self, network: Any) -> Scorer:
        """Make the scorer, with its variables, for `network`; called once."""
        ...


class Head(Objective, Protocol):
    """An objective of fine-tuning, which answers rows; one per file in ``heads``.

    It has two more literals: ``ANSWERS``, its kind of `Answers`, and ``READS_WORDS`` (optional):
    the last text of each row is tokenised word by word. With ``WIDE`` (optional) it can answer by
    counted n-grams alone, if its setting ``wide`` is true. With ``EMBEDS`` (optional) rows are
    pairs whose texts are read alone; the scorer has ``vectors(batch, outputs)``, one of length 1
    for each text, and ``numbers(first, second)``, the cosines and the answers of pairs of them.
    With ``READS_TARGETS`` (optional) its answers have a likelihood, so that there is a perplexity.
    ``ANSWER_SETTINGS`` (optional) are settings on which no weight depends, such as a threshold.
    ``EXCLUSIVE`` (optional), {two settings: reason}: one at most may be not its default.
    With ``MIXES`` (optional) it also learns from rows of other datasets, which are written as texts
    (`models.inputs.mixture.PrefixedRows`). The entries of its index are row numbers, or structured
    with a field ``row``.
    """

    targets: tuple[str, ...]  # batch keys of the correct answers, which are removed for prediction

    # If it learns something from the training rows before any update: `learns_first = True`, and
    # `learn(scorer)`, called once where a stage begins. Selection then measures step 0, too.
    # With `WIDE`: `wide`, the `WideRows` it learns from, or None.
    # If its kind of answer is served: `served() -> dict`, what a served model has to know of it.
    # If it predicts otherwise than by one reading: `predicting(network, scorer)`, a function from a
    # batch without targets to {name: (B, …) predictions}; and `reading(network, scorer)`, how a
    # served model reads (`models.decoding.reader.Reading`).
    # If its answers have a likelihood (`models.metrics.OF_LIKELIHOOD`): `readings(batch)`, batches
    # with their targets that are read in turn; each token with a weight is a part of its target,
    # and has one in a single reading. Its scorer has `nats(batch, outputs)` (`TargetScores`), and
    # `answer` gets the sums over the readings.

    def answer(
        self, rows: TokenisedRows, row: int, outputs: Sequence[Mapping[str, np.ndarray]]
    ) -> Answer:
        """The answer to a row.

        Args:
            rows: Tokenised rows; their correct answers are not used.
            row: The row's number.
            outputs: The scorer's predictions for each entry of the row, in the index's order.
        """
        ...


@dataclass(frozen=True)
class Answer:
    """A head's prediction for one row.

    Attributes:
        text: The answer as the dataset writes it: a label's name, or JSON.
        probability: The model's probability that the answer is correct, 0-1; NaN where it has
            none, as for a number.
        details: Further values, such as the probability of every label.
    """

    text: str
    probability: float
    details: Mapping[str, Any] = field(default_factory=dict)


Column = Sequence[Any] | np.ndarray  # (rows,) of any type
Metric = Callable[[np.ndarray], np.ndarray]  # (..., K) statistics summed over rows → (...) scores


class Answers(Protocol):
    """A kind of answer and its metrics; one per file in ``models/answers``.

    A head names its kind of answer in the literal ``ANSWERS``. In files, an answer is a string: a
    label's name, or JSON. Every metric is a function of sums over rows, so that the scores of
    thousands of resampled test sets cost one matrix product.
    """

    metrics: ClassVar[Mapping[str, Metric]]  # by name; what is better: `models.metrics`
    usual: ClassVar[tuple[str, ...]]  # the default metrics; the last one selects weights
    # Whether an answer is one of a few classes. Only then are there a probe and slices by class.
    is_class: ClassVar[bool]
    is_served: ClassVar[bool]  # whether a model that answers so can be packaged and promoted

    def names(self, answers: Iterable[str]) -> tuple[str, ...]:
        """The names that answers consist of, in the order of a head's outputs."""
        ...

    def statistics(self, true: Column, answers: Sequence[Column]) -> list[Any]:
        """Each row's contribution to the sums behind the metrics, per model.

        Args:
            true: (rows,) correct answers.
            answers: One (rows,) column of answers per model.

        Returns:
            One sparse (rows, K) matrix per model, with the same columns for all models.
        """
        ...


class Scorer(Protocol):
    """The scoring half of an objective, a ``keras.layers.Layer``.

    A scorer that reads the network's output at a few positions only has the attribute ``reads``:
    the batch keys of these positions, ``()`` if it reads only the row summary
    (`models.layers.summary`).

    A scorer that goes on with another's weights has ``starts_as``: {objective of a previous stage:
    the part of its weights' names before those of this scorer}, the first that is there.

    A head's scorer may have ``divergence(batch, first, second)``: how far two predictions for the
    same batch are apart, as (sum, weight). Without it the head can't be trained with R-Drop.
    """

    def prepare(self, batch: dict, training: bool) -> dict:
        """Change the batch before the network sees it; by default, return it unchanged."""
        ...

    def __call__(
        self, batch: dict, outputs: dict, training: bool = False
    ) -> tuple[dict[str, tuple[Any, Any]], dict]:
        """Scores as {name: (sum, weight)}, including "loss", and predictions by name."""
        ...
