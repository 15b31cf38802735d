"""Every key of a recipe, with its type, its range and its meaning.

An absent key is ``None`` here and gets its value in `fourstage.recipe.resolution`.
"""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    StringConstraints,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

STAGE_KINDS = ("general", "domain", "task", "finetune")

RunName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,99}$")]
StageName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")]
Initial = Annotated[
    str,
    StringConstraints(
        pattern=r"^(hf:[^/@\s]+/[^/@\s]+@[0-9a-f]{7,64}|folder:.+|models:/[^/@\s]+(@[^/@\s]+|/[0-9]+))$"
    ),
]
Count = Annotated[int, Field(gt=0, le=10**15)]
Segmenter = Literal["rjieba"]
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
Length = Annotated[int, Field(ge=4, le=1 << 20, description="Tokens, special tokens counted.")]
Weights = Annotated[dict[str, Annotated[float, Field(ge=0)]], Field(min_length=1)]
Texts = Annotated[tuple[str, ...], Field(strict=False)]


def _plain(value: object, depth: int = 0) -> object:
    """Check that settings of parts are plain; the rest is checked against the part's own file."""
    if isinstance(value, (str, bool, int)) or (isinstance(value, float) and isfinite(value)):
        return value
    if depth < 3 and isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(inner, depth + 1) for key, inner in value.items()}
    if depth < 3 and isinstance(value, list):
        return [_plain(inner, depth + 1) for inner in value]
    raise PydanticCustomError("plain", "expected text, true, false or a finite number")


Setting = Annotated[Any, AfterValidator(_plain)]
Settings = dict[str, Setting]
WrittenValues = Annotated[tuple[Setting, ...], Field(strict=False, min_length=1, max_length=50)]


def _is_mapping(value: object) -> str:
    return "mapping" if isinstance(value, (dict, BaseModel)) else "text"


class Part(BaseModel):
    """A mapping in a recipe: no unknown keys, no type coercion, immutable."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )
    a_key_of: ClassVar[str] = "a recipe"
    exactly_one: ClassVar[bool] = False

    @model_validator(mode="after")
    def _one_key(self) -> Part:
        if self.exactly_one and len(self.model_fields_set) != 1:
            given = " and ".join(sorted(self.model_fields_set)) or "none"
            raise PydanticCustomError(
                "exactly_one",
                "expected exactly one of {known}, got {given}",
                {"known": ", ".join(type(self).model_fields), "given": given},
            )
        return self


class WrittenTokenizer(Part):
    """How text becomes ids."""

    a_key_of = "tokenizer"

    scheme: str | None = None
    """How words are split."""
    vocabulary_size: Annotated[int, Field(ge=64, le=1_000_000)] | None = None
    """Number of token ids, including special ones."""
    lowercase: bool | None = None
    """Whether case and accents are folded; ``byte_bpe`` and ``unigram`` keep them."""
    sentinels: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How many of the token ids stand for hidden spans, for ``span_denoising``; by default none."""
    minimum_count: Annotated[int, Field(ge=1)] | None = None
    """How often a word has to occur to be in the vocabulary, for the scheme ``word``."""
    marks: Annotated[Texts, Field(min_length=1, max_length=100)] | None = None
    """Strings that are one token each wherever a text has them, for the scheme ``wordpiece``:
    names in brackets, such as ``[HD]`` round an entity. By default such marks are split as words
    are."""
    segmenter: Segmenter | None = None
    """Cuts Chinese text into the words of the vocabulary, for the scheme ``word``; texts are then
    read by longest match. By default each Chinese character is a word."""
    learn_from: Annotated[Texts, Field(min_length=1)] | None = None
    """Corpora from which the vocabulary is learned; by default those of all stages."""
    add_words: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Whole words of `learn_from` to add to the vocabulary that comes with `init`."""


class Units(Part):
    """What is a word, a phrase, an entity, for objectives that choose more than single tokens."""

    a_key_of = "units"

    segmenter: Segmenter | None = None
    """Splits text without spaces (Chinese) into words; by default each character is a word."""
    gazetteer: str | None = None
    """File of names, one per line: ``name<TAB>phrase`` or ``name<TAB>entity``."""
    entities: str | None = None
    """File of a knowledge graph's entities, one per line: ``id<TAB>name`` or ``id<TAB>name, what it
    is``. For a network that reads entities, a name that only one entity has is linked with that
    entity. The entities' vectors are those of the stage that ``starts_from`` names."""


class Seeds(Part):
    """Several seeds from one stage on; the stages before it are shared."""

    a_key_of = "seeds"

    values: Annotated[tuple[Seed, ...], Field(strict=False, min_length=1, max_length=100)]
    """The seeds, in order; ``run`` takes the first, ``compare`` all of them."""
    from_: Annotated[str, Field(alias="from")] = "finetune"
    """Name of the first stage that is trained anew at each seed."""
    together: Count | None = None
    """How many consecutive values share one training of the stages before `from`; the first of
    them is its seed. By default all."""


class WrittenPhase(Part):
    """A part of a stage's budget at one sequence length."""

    a_key_of = "a phase"

    sequence_length: Length
    share: Positive
    """Part of the budget, relative to the other phases."""
    batch_size: Count | None = None
    """Examples per step in this phase; by default the stage's."""


class WrittenBudget(Part):
    """How long a stage trains, in one unit."""

    a_key_of = "a budget"
    exactly_one = True

    steps: Count | None = None
    """Optimizer updates."""
    tokens: Count | None = None
    """Tokens read, without padding."""
    epochs: Positive | None = None
    """Passes over the data; fractions are allowed."""


class OptimizerSettings(Part):
    """Learning rate over time, decay and moments."""

    a_key_of = "an optimizer"

    peak_learning_rate: Annotated[float, Field(gt=0, le=10)] | None = None
    """Learning rate at the end of the warm-up."""
    warmup: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Share of the steps during which the learning rate rises from zero."""
    decay: (
        Literal["linear", "cosine", "constant", "inverse_square_root", "slanted_triangular"] | None
    ) = None
    """Learning-rate schedule after the warm-up; ``slanted_triangular`` (ULMFiT) also rises from
    peak / `ratio`."""
    ratio: Annotated[float, Field(gt=1)] | None = None
    """Of ``slanted_triangular``: the peak divided by the lowest rate."""
    weight_decay: Share | None = None
    """Decoupled weight decay; LayerNorms and biases are excluded."""
    momentum: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Of ``muon``: share of the momentum of matrices that an update keeps."""
    beta_1: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Share of the mean gradient, the first moment, that an update keeps."""
    beta_2: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Share of the mean squared gradient, the second moment, that an update keeps."""
    epsilon: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Added where an update divides by the root of the second moment."""
    bias_correction: Literal["moments", "rate", "none"] | None = None
    """Bias correction of moments that start at zero: ``moments`` as in Adam's paper and torch,
    ``rate`` as in TensorFlow and fairseq, ``none`` as in Google's code of BERT; they differ where
    gradients are near epsilon."""
    clip_norm: Annotated[float, Field(ge=0)] | None = None
    """Largest norm of the whole gradient; 0 for no clipping."""
    layer_decay: Annotated[float, Field(gt=0, le=1)] | None = None
    """Factor on the learning rate for each layer further from the output: ELECTRA 0.8; ULMFiT's
    discriminative rates 1 / 2.6 = 0.38."""


class WrittenOptimizer(Part):
    """The rule that turns gradients into updates, by name."""

    a_key_of = "an optimizer name"
    exactly_one = True

    adamw: OptimizerSettings | None = None
    """Adam with decoupled weight decay; what a stage has if it names none."""
    adafactor: OptimizerSettings | None = None
    """Adafactor: second moments by row and column, steps in proportion to a variable's size."""
    adagrad: OptimizerSettings | None = None
    """AdaGrad: the rate divided by the root of all squared gradients so far."""
    lamb: OptimizerSettings | None = None
    """LAMB: Adam's step, of a matrix made as long as the matrix."""
    muon: OptimizerSettings | None = None
    """Muon for the matrices of the blocks, Adam for all other weights."""
    sgd: OptimizerSettings | None = None
    """Gradient descent without momentum."""


class Distance(Part):
    """L2-SP: a penalty on the squared distance from the weights at the start of the stage."""

    a_key_of = "l2_sp"

    strength: Positive
    """Half of it is the factor of the penalty in the loss."""


class Consolidation(Part):
    """EWC: L2-SP's penalty, times how much each weight matters for the text of the stage before."""

    a_key_of = "ewc"

    strength: Positive
    """Half of it is the factor of the penalty in the loss."""
    samples: Count | None = None
    """Rows of that text from which the weights' importance is estimated; its mean is 1."""


class Annealing(Part):
    """RecAdam: the optimizer's step grows while a pull to the old weights fades."""

    a_key_of = "rec_adam"

    pull: Positive
    """Strength of the pull; multiplied by the learning rate, it has to stay below 1."""
    speed: Positive
    """Slope of the sigmoid by which the step grows, per update."""
    midpoint: Count
    """Update at which step and pull have half of their strength."""


class Remedies(Part):
    """Remedies against forgetting; at most one of ``l2_sp``, ``ewc`` and ``rec_adam``."""

    a_key_of = "remedies"

    layer_decay: Annotated[float, Field(gt=0, le=1)] | None = None
    """The optimizer's setting of the same name, which may be given here instead."""
    l2_sp: Distance | None = None
    ewc: Consolidation | None = None
    rec_adam: Annealing | None = None


class GradualUnfreezing(Part):
    """Layers begin to train one after another: first heads and pooler, last the embeddings."""

    a_key_of = "gradual_unfreezing"
    exactly_one = True

    epochs: Positive | None = None
    """Passes over the data from one layer to the next; ULMFiT has 1."""
    share: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Share of the stage's steps from one layer to the next."""


class LowRank(Part):
    """LoRA: low-rank updates of projections are trained in place of the network's weights."""

    a_key_of = "lora"

    rank: Count | None = None
    """Width of the updates."""
    alpha: Positive | None = None
    """The updates are scaled by alpha / rank."""
    targets: Annotated[Texts, Field(min_length=1)] | None = None
    """Names of the projections."""
    dropout: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Dropout rate of the updates' input."""


class FeatureBased(Part):
    """The network stays frozen; a mix of all its layers and a BiLSTM are trained below the head."""

    a_key_of = "feature_based"

    hidden_dim: Count | None = None
    """Width of the LSTM in each direction."""
    num_layers: Count | None = None
    """BiLSTMs on top of each other."""
    dropout: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Dropout rate of each BiLSTM's input."""


class RDrop(Part):
    """Each row is read twice with different dropout masks; the head's predictions should agree."""

    a_key_of = "r_drop"

    alpha: Positive | None = None
    """Factor of the symmetric divergence of the two predictions in the loss."""


class Fgm(Part):
    """A second gradient, taken with the token embeddings moved to where the loss grows fastest."""

    a_key_of = "fgm"

    epsilon: Positive | None = None
    """Norm of the perturbation."""


class Average(Part):
    """The average of the weights over the updates, in place of the last ones."""

    a_key_of = "average"

    decay: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Share of the average that an update keeps: 0.99 averages about the last hundred."""


class Mixture(Part):
    """Text-to-text tasks that are learned together, each with a prefix of its own."""

    a_key_of = "a mixture"

    beside: Annotated[dict[str, str], Field(min_length=1)]
    """Prefix by dataset: ``{sst2: "sst2 sentence:"}``. Their training rows are mixed with those of
    the stage's dataset, labels and numbers written as texts."""
    limit: Count | None = None
    """K: a dataset with more rows is read as often as one with K; 1 for equal rates; by default no
    limit."""
    temperature: Annotated[float, Field(ge=1, le=1e6)] | None = None
    """T: rates are in proportion to min(rows, K)^(1/T)."""


class TrainingRows(Part):
    """Some of a dataset's training rows, drawn by a seed."""

    a_key_of = "training_rows"

    number: Count
    """How many rows."""
    seed: Seed | None = None
    """Seed of the draw; the seeds of training do not change it."""
    each_seed: bool | None = None
    """Whether each of the recipe's seeds draws rows of its own, so that scores over seeds vary as
    they do for somebody who labels other rows; the cheap baseline is one for each draw."""


class Stop(Part):
    """End before the budget if the held-out metric no longer improves; the best weights stay."""

    a_key_of = "stop"

    patience: Count
    """Consecutive evaluations without a new best."""
    metric: str | None = None
    """What should improve: ``heldout_loss`` of text; in stage finetune a metric of the rows, by
    default that of `select`, else the last of the usual ones of the head. Where `select` is given,
    both have the same metric."""


class Select(Part):
    """Keep the weights of the best evaluation instead of the last ones."""

    a_key_of = "select"

    metric: str
    """What decides: ``heldout_loss`` of text; in stage finetune a metric of the rows."""
    split: Literal["dev", "heldout"] | None = None
    """What it is measured on: ``heldout`` text, or the ``dev`` rows in stage finetune."""


Size = Annotated[
    Annotated[str, Tag("text")] | Annotated[dict[str, Setting], Tag("mapping")],
    Discriminator(_is_mapping),
]


class Stage(Part):
    """One trained part of a recipe."""

    a_key_of = "a stage"

    stage: Literal["general", "domain", "task", "finetune"]
    """What it learns from: general text, text of the domain, text of the task, or labelled rows.
    The kinds stand in this order; each may be left out."""
    name: StageName | None = None
    """Unique name of lower-case letters, digits, ``_`` and ``-``; by default the kind of the
    stage."""
    family: str | None = None
    """With its own family or size a stage starts a new network; later stages inherit it."""
    size: Size | None = None
    """Size of the new network: a name in the family's file, or the network's own arguments."""
    init: Initial | None = None
    """A network to use instead of training stage general: ``hf:owner/name@commit``,
    ``folder:path``, or ``models:/name@alias`` (or ``models:/name/3``) for a registered version as
    it was before fine-tuning."""
    tokenizer: WrittenTokenizer | None = None
    """A vocabulary of its own, such as the names of a knowledge graph, for a stage whose table of
    vectors another network starts from."""
    starts_from: Annotated[dict[str, str], Field(min_length=1)] | None = None
    """What parts of a new network start from, in place of random weights. ``encoder``,
    ``decoder`` and ``embeddings``: the name of an earlier stage, the folder of one, or
    ``models:/name@alias``. ``embeddings`` also a file of word vectors, ``.vec``, ``.txt`` or
    ``.bin``, or ``word2vec``: vectors that are learned from the stage's own text first, in seconds.
    ``entities``: a knowledge graph's stage."""
    corpora: Weights | None = None
    """Share of the tokens by name of the source; in stage task by default the text of the dataset
    of stage finetune."""
    dataset: str | None = None
    """Labelled source, which stage finetune has to name."""
    mixture: Mixture | None = None
    """Datasets that a head which writes texts learns from beside its own."""
    overlap: Literal["drop_from_train", "refuse", "report"] | None = None
    """What happens to training rows that are also evaluation rows; ``report`` keeps them."""
    training_rows: (
        Annotated[
            Annotated[Count, Tag("text")] | Annotated[TrainingRows, Tag("mapping")],
            Discriminator(_is_mapping),
        ]
        | None
    ) = None
    """How many of the dataset's training rows are used, for learning curves; by default all. In a
    draw every label has a row, and a smaller draw is part of a larger one."""
    objectives: Annotated[dict[str, Settings], Field(min_length=1)] | None = None
    """Objectives with their settings, by default those of the stage before; ``weight`` is an
    objective's factor in the loss. In stage finetune they are auxiliary, by default none: the loss
    is that of the head + weight · that of the objective on the rows' texts."""
    alternate: bool | None = None
    """Whether objectives take turns: each update trains one of those that choose segments, with
    its ``weight`` as its share of the updates."""
    head: Annotated[dict[str, Settings], Field(min_length=1, max_length=1)] | None = None
    """The head with its settings, which stage finetune has to name."""
    sequence_length: Length | None = None
    """Tokens of a row, special tokens counted; by default as in the stage before."""
    phases: Annotated[tuple[WrittenPhase, ...], Field(strict=False, min_length=1)] | None = None
    """Sequence lengths in order, with one optimizer throughout."""
    batch_size: Annotated[int, Field(gt=0, le=1 << 20)] | None = None
    """Examples per step, that is, per optimizer update."""
    micro_batches: Annotated[int, Field(gt=0, le=1 << 16)] | None = None
    """Parts into which a batch is split to save memory; their gradients are accumulated."""
    budget: WrittenBudget | None = None
    optimizer: WrittenOptimizer | None = None
    precision: Literal["auto", "float32", "bfloat16"] | None = None
    """Precision of the matrix products; ``auto`` chooses bfloat16 where it is faster."""
    remedies: Remedies | None = None
    reinitialise: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Number of top layers that begin fine-tuning with random weights, the pooler with them."""
    freeze: Annotated[Texts, Field(min_length=1)] | None = None
    """Patterns of weights that stay as they are: ``[embeddings/*, block_0/*]``."""
    gradual_unfreezing: GradualUnfreezing | None = None
    lora: LowRank | None = None
    feature_based: FeatureBased | None = None
    r_drop: RDrop | None = None
    fgm: Fgm | None = None
    average: Average | None = None
    refresh: Literal["never", "on_change", "continue"] | None = None
    """What new data do to a finished stage: ``never``, nothing; ``on_change``, train it anew;
    ``continue``, train it further on the new documents (not for rows)."""
    continuations: Count | None = None
    """How often in a row ``refresh: continue`` may train it further; after that, the next refresh
    with new text trains it anew on all its text. By default no limit."""
    stop: Stop | None = None
    select: Select | None = None

    @property
    def starts_network(self) -> bool:
        """Whether it trains a different network from the stage before."""
        return self.family is not None or self.size is not None


class Limits(Part):
    """What a run may use before it is stopped; finished work is kept."""

    a_key_of = "limits"

    minutes: Positive | None = None
    """Minutes of one run; the current stage writes a checkpoint before it stops."""
    disk_gb: Positive | None = None
    """Gigabytes (10⁹ bytes) that the results of one run may take in the store."""


class FewShot(Part):
    """How the pre-trained network answers a dataset's rows from examples in its prompt."""

    a_key_of = "few_shot"

    answers: Literal["label", "choice", "text"] | None = None
    """Kind of the answers of the dataset's rows."""
    metric: str | None = None
    """The metric; for texts by default ``chrf``."""
    shots: (
        Annotated[
            tuple[Annotated[int, Field(ge=0, le=1000)], ...],
            Field(strict=False, min_length=1, max_length=50),
        ]
        | None
    ) = None
    """Numbers of examples, each asked for by itself."""
    template: str | None = None
    """A row as text, with the fields ``{text}``, ``{text_pair}`` and, at its end, ``{answer}``; for
    choices by default the text and the answer alone."""
    instruction: str | None = None
    """A text before the examples."""
    separator: str | None = None
    """What stands between examples."""
    verbalisers: dict[str, str] | None = None
    """Words for labels: ``{pos: great, neg: terrible}``; by default labels as they are."""
    score: Literal["per_token", "over_neutral", "free_form"] | None = None
    """What decides: ``per_token``, the mean log probability of an answer's tokens;
    ``over_neutral``, P(answer | prompt) / P(answer | `neutral`); ``free_form``, the text that beam
    search writes, the default for texts."""
    neutral: str | None = None
    """Of ``over_neutral``: the prompt that says nothing."""
    balanced: bool | None = None
    """Whether examples are drawn from the labels in turn; else every row is equally likely."""
    rows: Count | None = None
    """Most rows that are asked, drawn by the seed; by default all."""
    too_long: Literal["refuse", "fewer"] | None = None
    """A prompt that is too long: refused, or with the examples that fit."""
    beams: Count | None = None
    """Of ``free_form``: beams of the search."""
    length_penalty: Annotated[float, Field(ge=0)] | None = None
    """Of ``free_form``: exponent of (5 + length)."""
    answer_length: Count | None = None
    """Of ``free_form``: most tokens of an answer."""
    overlap_words: Count | None = None
    """Consecutive words in common with the pre-training text that make a row count as seen
    before."""


class Prototypes(Part):
    """Episodes in which the pre-trained network tells classes by the mean vectors of a few rows."""

    a_key_of = "prototypes"

    ways: (
        Annotated[
            tuple[Annotated[int, Field(ge=2, le=1000)], ...],
            Field(strict=False, min_length=1, max_length=20),
        ]
        | None
    ) = None
    """Numbers of classes in an episode, each asked for by itself."""
    shots: (
        Annotated[
            tuple[Annotated[int, Field(ge=1, le=1000)], ...],
            Field(strict=False, min_length=1, max_length=20),
        ]
        | None
    ) = None
    """Numbers of rows that represent a class, each asked for by itself."""
    episodes: Annotated[int, Field(ge=2, le=100_000)] | None = None
    """Episodes for each number of ways and shots."""


# Sentences by sense, from which cosines within a sense and between senses can be taken.
Senses = Annotated[dict[str, Annotated[Texts, Field(min_length=2)]], Field(min_length=2)]


class AttentionTexts(Part):
    """Texts, and what their tokens attend to in a stage's network."""

    a_key_of = "attention"

    texts: Annotated[Texts, Field(min_length=1, max_length=20)] | None = None
    """Sentences of yours; what follows a tab is the second text of a pair."""
    rows: Annotated[int, Field(ge=1, le=20)] | None = None
    """How many dev rows of the stage's dataset are read, from the first."""
    layers: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)] | None = None
    """Layers that are drawn, from 1; by default all."""
    stage: StageName | None = None
    """The stage whose network reads; default: the last one."""

    @model_validator(mode="after")
    def _reads_something(self) -> AttentionTexts:
        if self.texts is None and self.rows is None:
            raise PydanticCustomError(
                "nothing_to_read", "expected texts or rows: what should be read"
            )
        return self


class Evaluate(Part):
    """What is measured on the last stage and along the way."""

    a_key_of = "evaluate"

    metrics: Annotated[Texts, Field(min_length=1)] | None = None
    """Metrics of the finetune stage's rows; by default the usual ones of the head."""
    split: Literal["dev", "test"] | None = None
    """The rows on which scores are reported."""
    slices: Texts | None = None
    """Groups of rows with their own score."""
    forgetting_on: Texts | None = None
    """Corpora whose held-out loss is measured after every stage."""
    probes: Annotated[dict[str, str], Field(min_length=1)] | None = None
    """Datasets on which a linear probe measures what the network knows after pre-training, each
    with its metric: ``{chemprot: micro_f1, sst2: accuracy}``."""
    few_shot: Annotated[dict[str, FewShot], Field(min_length=1)] | None = None
    """Datasets whose rows the network answers after pre-training, from examples in its prompt."""
    prototypes: Annotated[dict[str, Prototypes], Field(min_length=1)] | None = None
    """Datasets whose rows the network classifies after pre-training from a few rows of each class,
    by the nearest mean of their vectors: ``{fewrel: {ways: [5], shots: [1, 5]}}``."""
    links: Annotated[Texts, Field(min_length=1)] | None = None
    """Datasets of triples, whose heads and tails are ranked among all entities after
    pre-training."""
    word_relations: Annotated[Texts, Field(min_length=1)] | None = None
    """Sources of word pairs with a similarity, or of analogies, that word vectors are tested on
    after pre-training: ``[wordsim353, simlex999, google_analogies]``."""
    word_in_context: Annotated[Texts, Field(min_length=1)] | None = None
    """Datasets of a word in two sentences; after pre-training, the cosine of its vectors says
    whether it means the same, by a threshold for each layer."""
    polysemy: Annotated[dict[str, Senses], Field(min_length=1)] | None = None
    """Words with sentences by sense, ``{apple: {fruit: [Apples are red., …], company: […]}}``;
    after pre-training, how far apart the word's vectors are within a sense and between senses."""
    word_map: Annotated[Texts, Field(min_length=1, max_length=200)] | None = None
    """Words whose vectors are drawn in the plane after pre-training, with their neighbours."""
    attention: AttentionTexts | None = None
    """Texts for which a picture shows what each token attends to: every head of a Transformer, or
    how a recurrent encoder–decoder aligns what it writes with the text."""


class Search(Part):
    """Fine-tuning with several settings; the best by the dev rows goes on to the test rows."""

    a_key_of = "search"

    grid: Annotated[dict[str, WrittenValues], Field(min_length=1)] | None = None
    """Values by place in the finetune stage, such as ``optimizer.adamw.peak_learning_rate: [1.0e-4,
    3.0e-4]``; every combination is tried."""
    metric: str | None = None
    """What chooses; default: the first of ``evaluate.metrics``."""
    seeds: Annotated[tuple[Seed, ...], Field(strict=False, min_length=1, max_length=100)] | None = (
        None
    )
    """Seeds at which each combination is fine-tuned; default: the recipe's own."""
    folds: Annotated[int, Field(ge=2, le=50)] | None = None
    """Cross-validation: parts of the training rows, each predicted by a network fine-tuned on the
    others. They decide instead of the dev rows."""

    @model_validator(mode="after")
    def _tries_something(self) -> Search:
        if self.grid is None and self.folds is None and self.seeds is None:
            raise PydanticCustomError(
                "empty_search", "expected grid, seeds or folds: what should be tried"
            )
        return self


class NonInferiority(Part):
    """A paired-bootstrap test of non-inferiority: no worse than the champion, within a margin."""

    a_key_of = "not_below_champion_by"

    margin: Annotated[float, Field(ge=0, le=1)]
    """Largest loss of score that counts as not worse."""
    confidence: Annotated[float, Field(gt=0.5, lt=1)] | None = None
    """Confidence of the one-sided test."""
    resamples: Annotated[int, Field(ge=100, le=1_000_000)] | None = None
    """How often the rows are drawn anew."""
    seed: Seed | None = None
    """Seed of these draws."""


class NotAbove(NonInferiority):
    """The test of non-inferiority for a metric of which lower is better."""

    a_key_of = "not_above_champion_by"

    margin: Annotated[float, Field(ge=0)]
    """Largest rise that counts as not worse, in the metric's unit."""


class Requirement(Part):
    """What a model version must reach to be promoted."""

    a_key_of = "a requirement"

    at_least: float | None = None
    """Smallest value."""
    at_most: float | None = None
    """Largest value."""
    above: Literal["cheap_baseline"] | None = None
    """Beats TF-IDF of words and characters with a linear SVM by more than chance."""
    not_below: Literal["cheap_baseline"] | None = None
    """Has a score no lower than that baseline's; chance is not considered."""
    not_below_champion_by: (
        Annotated[
            Annotated[float, Field(ge=0, le=1), Tag("text")]
            | Annotated[NonInferiority, Tag("mapping")],
            Discriminator(_is_mapping),
        ]
        | None
    ) = None
    """How far below the champion's the score may be: a margin, or the settings of the test."""
    not_above_champion_by: (
        Annotated[
            Annotated[float, Field(ge=0), Tag("text")] | Annotated[NotAbove, Tag("mapping")],
            Discriminator(_is_mapping),
        ]
        | None
    ) = None
    """How far above it may be, for a metric of which lower is better, such as ``perplexity``."""
    p50_at_most: Positive | None = None
    """Of ``latency_ms``: largest median, in ms."""
    p95_at_most: Positive | None = None
    """Of ``latency_ms``: largest 95th percentile, in ms."""

    @model_validator(mode="after")
    def _says_something(self) -> Requirement:
        if not self.model_fields_set:
            raise PydanticCustomError(
                "empty_requirement",
                "expected one of {known}, got an empty mapping",
                {"known": ", ".join(type(self).model_fields)},
            )
        return self


class Promote(Part):
    """The name under which the last stage is registered, and the requirements of the gate."""

    a_key_of = "promote"

    model: RunName
    """Name in the registry, of lower-case letters, digits, ``.``, ``_`` and ``-``."""
    require: dict[str, Requirement] | None = None
    """Requirements by metric, or for ``forgetting``, ``latency_ms``, ``size_mb``."""
    require_slices: dict[str, dict[str, Requirement]] | None = None
    """Requirements by slice: ``{length: {macro_f1: {at_least: 0.4}}}``."""
    split: Literal["dev", "test"] | None = None
    """The rows on which the gate decides; by default ``dev``, so that ``test`` chooses nothing."""
    approve: Literal["by_hand"] | None = None
    """Whether somebody has to approve after the gate; by default the gate alone decides."""


class Recipe(Part):
    """One YAML file that describes a whole run.

    Attributes:
        path: The file it was read from.
        origins: The origin of each value, by path: a file, ``--set`` or ``smoke``.
    """

    name: RunName
    """Name of the recipe, of lower-case letters, digits, ``.``, ``_`` and ``-``."""
    extends: str | None = None
    """Another recipe, such as ``papers/bert``, whose values apply unless this one has its own."""
    family: str
    """Network: the name of a file in ``models/families``."""
    size: Size | None = None
    """Name of a size in the family's file, or the network's own arguments; omit with `init`."""
    tokenizer: WrittenTokenizer | None = None
    units: Units | None = None
    seed: Seed | None = None
    """Seed of weights, batches and dropout."""
    seeds: Seeds | None = None
    stages: Annotated[tuple[Stage, ...], Field(strict=False, min_length=1, max_length=20)]
    """The trained parts, in order; each goes on with the network of the one before."""
    limits: Limits | None = None
    decontaminate: Texts | None = None
    """Datasets, besides the recipe's own, whose evaluation rows no corpus may contain."""
    evaluate: Evaluate | None = None
    search: Search | None = None
    promote: Promote | None = None

    _path: Path | None = PrivateAttr(default=None)
    _where: str = PrivateAttr(default="recipe")
    _origins: dict[tuple[str | int, ...], str] = PrivateAttr(default_factory=dict)

    @property
    def source_names(self) -> tuple[str, ...]:
        """The distinct sources that it names."""
        names: list[str] = [*(self.decontaminate or ())]
        names += (self.tokenizer and self.tokenizer.learn_from) or ()
        names += (self.evaluate and self.evaluate.forgetting_on) or ()
        names += (self.evaluate and self.evaluate.probes) or ()
        names += (self.evaluate and self.evaluate.few_shot) or ()
        names += (self.evaluate and self.evaluate.prototypes) or ()
        names += (self.evaluate and self.evaluate.links) or ()
        names += (self.evaluate and self.evaluate.word_relations) or ()
        names += (self.evaluate and self.evaluate.word_in_context) or ()
        for stage in self.stages:
            names += (stage.tokenizer and stage.tokenizer.learn_from) or ()
            names += [*(stage.corpora or ()), *([stage.dataset] if stage.dataset else [])]
            names += (stage.mixture and stage.mixture.beside) or ()
        return tuple(dict.fromkeys(names))

    @property
    def path(self) -> Path | None:
        """The file the recipe was read from."""
        return self._path

    @property
    def where(self) -> str:
        """The name of the recipe in messages."""
        return self._where

    @property
    def origins(self) -> dict[tuple[str | int, ...], str]:
        """The origin of each given value, by its path of keys and indices."""
        return self._origins
