"""Every key a recipe may have, with its type, its range and what it means.

The schema is whole from the first day: a key whose machinery comes later is here already and
refused by `fourstage.recipe.support`, because a key added later would be one that old recipes could
not have named. A key that is absent is ``None`` here and gets its value in
`fourstage.recipe.resolution`.
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
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
Length = Annotated[int, Field(ge=4, le=1 << 20, description="Tokens, special tokens counted.")]
Weights = Annotated[dict[str, Annotated[float, Field(ge=0)]], Field(min_length=1)]
Texts = Annotated[tuple[str, ...], Field(strict=False)]


def _plain(value: Any, depth: int = 0) -> Any:
    """Settings of parts are checked against the part's own file; here only that they are plain."""
    if isinstance(value, (str, bool, int)) or (isinstance(value, float) and isfinite(value)):
        return value
    if depth < 3 and isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(inner, depth + 1) for key, inner in value.items()}
    if depth < 3 and isinstance(value, list):
        return [_plain(inner, depth + 1) for inner in value]
    raise PydanticCustomError("plain", "expected text, true, false or a finite number")


Setting = Annotated[Any, AfterValidator(_plain)]
Settings = dict[str, Setting]


def _is_mapping(value: Any) -> str:
    return "mapping" if isinstance(value, (dict, BaseModel)) else "text"


class Part(BaseModel):
    """A mapping in a recipe: no unknown key, no type turned into another, never changed."""

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


class Tokenizer(Part):
    """How text becomes ids."""

    a_key_of = "tokenizer"

    scheme: (
        Literal["wordpiece", "byte_bpe", "sentencepiece", "byte_pair", "words", "characters"] | None
    ) = None
    """How words are cut; ``wordpiece`` unless said otherwise."""
    vocabulary_size: Annotated[int, Field(ge=64, le=1_000_000)] | None = None
    """Number of token ids, the special ones counted."""
    lowercase: bool | None = None
    """Whether case and accents are folded; ``byte_bpe`` keeps them."""
    learn_from: Annotated[Texts, Field(min_length=1)] | None = None
    """Corpora the vocabulary is learned from; those of all stages unless said otherwise."""
    add_words: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Whole words of `learn_from` to add to the vocabulary that comes with `init`."""


class Units(Part):
    """What is a word, a phrase, an entity, for objectives that choose more than single tokens."""

    a_key_of = "units"

    segmenter: Literal["rjieba"] | None = None
    """Cuts text without blanks (Chinese) into words; each character is one unless said so."""
    gazetteer: str | None = None
    """File of names, one a line: ``name<TAB>phrase`` or ``name<TAB>entity``."""


class Seeds(Part):
    """Several seeds from one stage on; the stages before it are shared."""

    a_key_of = "seeds"

    values: Annotated[tuple[Seed, ...], Field(strict=False, min_length=1, max_length=100)]
    """The seeds, in order; ``run`` takes the first, ``compare`` all of them."""
    from_: Annotated[str, Field(alias="from")] = "finetune"
    """Name of the first stage that differs."""
    together: Count | None = None
    """So many values, one after the other, share the stages before `from`, which take the first of
    them for their seed; all of them unless said otherwise."""


class Phase(Part):
    """A part of a stage's budget at one sequence length."""

    a_key_of = "a phase"

    sequence_length: Length
    share: Positive
    """Part of the budget, relative to the other phases."""
    batch_size: Count | None = None
    """Examples a step in this phase; the stage's unless said otherwise."""


class Budget(Part):
    """How long a stage trains, in one unit."""

    a_key_of = "a budget"
    exactly_one = True

    steps: Count | None = None
    """Optimizer updates."""
    tokens: Count | None = None
    """Tokens read, padding not counted."""
    epochs: Positive | None = None
    """Passes over the data; a part of one is allowed."""


class OptimizerGroup(Part):
    """Other settings for the variables whose path matches."""

    a_key_of = "an optimizer group"

    match: str
    """Pattern of variable paths, such as ``embeddings/*``."""
    peak_learning_rate: Positive | None = None
    weight_decay: Share | None = None
    freeze: bool | None = None


class OptimizerSettings(Part):
    """Learning rate over time, decay and moments."""

    a_key_of = "an optimizer"

    peak_learning_rate: Annotated[float, Field(gt=0, le=10)] | None = None
    """Learning rate at the end of the warm-up."""
    warmup: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Share of the steps in which the learning rate rises from zero."""
    decay: Literal["linear", "cosine", "constant", "inverse_square_root"] | None = None
    """What the learning rate does after the warm-up."""
    weight_decay: Share | None = None
    """Decoupled; LayerNorms and biases are left out."""
    beta_1: Annotated[float, Field(ge=0, lt=1)] | None = None
    beta_2: Annotated[float, Field(ge=0, lt=1)] | None = None
    epsilon: Annotated[float, Field(gt=0, lt=1)] | None = None
    bias_correction: Literal["moments", "rate", "none"] | None = None
    """Of moments that begin at zero: ``moments`` as in Adam's paper and torch, ``rate`` as in
    TensorFlow and fairseq, ``none`` as in Google's code of BERT; they differ where gradients are
    near epsilon."""
    clip_norm: Annotated[float, Field(ge=0)] | None = None
    """Largest norm of the whole gradient; 0 does not clip."""
    layer_decay: Annotated[float, Field(gt=0, le=1)] | None = None
    """Factor on the learning rate for each layer further from the output."""
    groups: Annotated[tuple[OptimizerGroup, ...], Field(strict=False)] | None = None


class Optimizer(Part):
    """The rule that turns gradients into updates, by name."""

    a_key_of = "an optimizer name"
    exactly_one = True

    adamw: OptimizerSettings | None = None
    adafactor: OptimizerSettings | None = None
    adagrad: OptimizerSettings | None = None
    lamb: OptimizerSettings | None = None
    sgd: OptimizerSettings | None = None


class Penalty(Part):
    """Strength of a pull towards the weights at the start of the stage."""

    a_key_of = "a penalty"

    strength: Positive
    samples: Count | None = None
    """Examples that estimate how much each weight matters (EWC)."""


class Replay(Part):
    """Text of earlier stages mixed into each batch."""

    a_key_of = "replay"

    share: Annotated[float, Field(gt=0, lt=1)]
    corpora: Weights | None = None


class Annealing(Part):
    """RecAdam: the task's gradient grows while the pull to the old weights fades."""

    a_key_of = "rec_adam"

    pull: Positive
    speed: Positive
    midpoint: Count


class Remedies(Part):
    """What is done against forgetting what earlier stages learned."""

    a_key_of = "remedies"

    layer_decay: Annotated[float, Field(gt=0, le=1)] | None = None
    ewc: Penalty | None = None
    l2_sp: Penalty | None = None
    rec_adam: Annealing | None = None
    replay: Replay | None = None
    distillation: Settings | None = None
    mixout: Share | None = None
    adapters: Settings | None = None
    low_rank: Settings | None = None
    freeze: Texts | None = None
    gradual_unfreezing: Settings | None = None
    joint_objectives: Annotated[dict[str, Settings], Field(min_length=1)] | None = None


class Lengths(Part):
    """Longest source and target of an encoder–decoder, in tokens."""

    a_key_of = "lengths"

    source: Length
    target: Length


class Window(Part):
    """Long rows are read in overlapping windows."""

    a_key_of = "a window"

    window: Length
    stride: Count


class Stop(Part):
    """End before the budget where the held-out metric no longer gets better."""

    a_key_of = "stop"

    patience: Count
    """Evaluations in a row without a new best."""
    metric: str | None = None


class Select(Part):
    """Keep the weights of the best evaluation instead of the last ones."""

    a_key_of = "select"

    metric: str
    split: Literal["dev", "heldout"] = "dev"


class Decode(Part):
    """How text is generated."""

    a_key_of = "decode"

    beams: Count | None = None
    length_penalty: Annotated[float, Field(ge=0)] | None = None
    longest: Length | None = None
    temperature: Positive | None = None
    top_k: Count | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    no_repeat: Count | None = None
    """Length of the runs of tokens that may not occur twice."""


Size = Annotated[
    Annotated[str, Tag("text")] | Annotated[dict[str, Setting], Tag("mapping")],
    Discriminator(_is_mapping),
]


class Stage(Part):
    """One trained part of a recipe."""

    a_key_of = "a stage"

    stage: Literal["general", "domain", "task", "finetune"]
    name: StageName | None = None
    """Unique; the kind of the stage unless said otherwise."""
    family: str | None = None
    """With a family or size of its own a stage starts a new network; later stages inherit it."""
    size: Size | None = None
    """Of the new network: a name in the family's file, or the network's own arguments."""
    init: Initial | None = None
    """In place of training stage general: ``hf:owner/name@commit``, ``folder:path``, or
    ``models:/name@alias`` (or ``models:/name/3``) for what a registered version was pre-trained
    to."""
    corpora: Weights | None = None
    """A source's name and its share of the tokens."""
    dataset: str | None = None
    """Labelled source of the finetune stage."""
    overlap: Literal["drop_from_train", "refuse", "report"] | None = None
    """What happens to training rows that are also evaluation rows."""
    objectives: Annotated[dict[str, Settings], Field(min_length=1)] | None = None
    """Objectives with their settings; ``weight`` is an objective's factor in the loss."""
    alternate: bool | None = None
    """Whether objectives take turns: each update trains one of those that choose segments, with
    its ``weight`` as its share of the updates."""
    head: Annotated[dict[str, Settings], Field(min_length=1, max_length=1)] | None = None
    """The head of the finetune stage with its settings."""
    sequence_length: Length | None = None
    phases: Annotated[tuple[Phase, ...], Field(strict=False, min_length=1)] | None = None
    """Sequence lengths one after the other, one optimizer through all."""
    lengths: Lengths | None = None
    long_rows: (
        Annotated[
            Annotated[Literal["head", "head_tail", "error"], Tag("text")]
            | Annotated[Window, Tag("mapping")],
            Discriminator(_is_mapping),
        ]
        | None
    ) = None
    """What happens to rows longer than a sequence: ``head`` keeps their beginning."""
    batch_size: Annotated[int, Field(gt=0, le=1 << 20)] | None = None
    """Examples a step, that is an optimizer update."""
    micro_batches: Annotated[int, Field(gt=0, le=1 << 16)] | None = None
    """Parts a batch is cut into to save memory; their gradients are added up."""
    budget: Budget | None = None
    optimizer: Optimizer | None = None
    precision: Literal["auto", "float32", "bfloat16"] | None = None
    """Of the matrix products; ``auto`` takes bfloat16 where the processor is faster so."""
    remedies: Remedies | None = None
    refresh: Literal["never", "on_change", "continue"] | None = None
    """What new data do to a finished stage."""
    stop: Stop | None = None
    select: Select | None = None
    decode: Decode | None = None

    @property
    def starts_network(self) -> bool:
        """Whether it trains another network than the stage before."""
        return self.family is not None or self.size is not None


class Limits(Part):
    """What a run may use up; it stops with a checkpoint, or before it starts."""

    a_key_of = "limits"

    minutes: Positive | None = None
    """Of one run; the stage under way writes a checkpoint."""
    disk_gb: Positive | None = None
    """Gigabytes (10⁹ bytes) that what one run makes may take in the store."""


class Evaluate(Part):
    """What is measured on the last stage, and on the way."""

    a_key_of = "evaluate"

    metrics: Annotated[Texts, Field(min_length=1)] | None = None
    split: Literal["dev", "test"] | None = None
    """The rows that scores are reported on; left out, ``test``."""
    slices: Texts | None = None
    """Groups of rows with a score of their own."""
    forgetting_on: Texts | None = None
    """Corpora whose held-out loss is measured after every stage."""
    probes: Annotated[dict[str, str], Field(min_length=1)] | None = None
    """Datasets on which a linear probe tells what the network knows after pre-training, each with
    its metric: ``{chemprot: micro_f1, sst2: accuracy}``."""


class Comparison(Part):
    """A paired-bootstrap test of non-inferiority against the champion."""

    a_key_of = "not_below_champion_by"

    margin: Annotated[float, Field(ge=0, le=1)]
    """Largest loss that counts as not worse."""
    confidence: Annotated[float, Field(gt=0.5, lt=1)] | None = None
    resamples: Annotated[int, Field(ge=100, le=1_000_000)] | None = None
    seed: Seed | None = None


class Requirement(Part):
    """What a model version must reach to be promoted."""

    a_key_of = "a requirement"

    at_least: float | None = None
    at_most: float | None = None
    above: Literal["cheap_baseline"] | None = None
    """TF-IDF of words and characters with a linear SVM, by more than chance explains."""
    not_below_champion_by: (
        Annotated[
            Annotated[float, Field(ge=0, le=1), Tag("text")]
            | Annotated[Comparison, Tag("mapping")],
            Discriminator(_is_mapping),
        ]
        | None
    ) = None
    """Margin against the champion, or the whole test."""
    p50_at_most: Positive | None = None
    p95_at_most: Positive | None = None

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
    """Under which name the last stage is registered, and what the gate asks of it."""

    a_key_of = "promote"

    model: RunName
    require: dict[str, Requirement] | None = None
    """By metric, or ``forgetting``, ``latency_ms``, ``size_mb``."""
    require_slices: dict[str, dict[str, Requirement]] | None = None
    """Floors of slices: ``{length: {macro_f1: {at_least: 0.4}}}``."""
    split: Literal["dev", "test"] | None = None
    """The rows the gate decides on; left out, ``dev``, so that ``test`` chooses nothing."""
    approve: Literal["by_hand"] | None = None
    """Whether somebody has to agree, after the gate; left out, the gate alone decides."""


class Recipe(Part):
    """One YAML that says everything about a run.

    Attributes:
        path: The file it was read from.
        origins: Where each value came from, by path: a file, ``--set`` or ``smoke``.
    """

    name: RunName
    """Names the experiment; lower-case letters, digits, ``.``, ``_`` and ``-``."""
    extends: str | None = None
    """Another recipe, such as ``papers/bert``, whose values hold where this one has none."""
    family: str
    """Network: the name of a file in ``models/families``."""
    size: Size | None = None
    """Name of a size in the family's file, or the network's own arguments; left out with `init`."""
    tokenizer: Tokenizer | None = None
    units: Units | None = None
    seed: Seed | None = None
    seeds: Seeds | None = None
    stages: Annotated[tuple[Stage, ...], Field(strict=False, min_length=1, max_length=20)]
    limits: Limits | None = None
    decontaminate: Texts | None = None
    """Datasets, besides the recipe's own, whose evaluation rows no corpus may contain."""
    evaluate: Evaluate | None = None
    promote: Promote | None = None

    _path: Path | None = PrivateAttr(default=None)
    _where: str = PrivateAttr(default="recipe")
    _origins: dict[tuple[str | int, ...], str] = PrivateAttr(default_factory=dict)

    @property
    def source_names(self) -> tuple[str, ...]:
        """Every source it names, each once."""
        names: list[str] = [*(self.decontaminate or ())]
        names += (self.tokenizer and self.tokenizer.learn_from) or ()
        names += (self.evaluate and self.evaluate.forgetting_on) or ()
        names += (self.evaluate and self.evaluate.probes) or ()
        for stage in self.stages:
            names += [*(stage.corpora or ()), *([stage.dataset] if stage.dataset else [])]
        return tuple(dict.fromkeys(names))

    @property
    def path(self) -> Path | None:
        """The file the recipe was read from."""
        return self._path

    @property
    def where(self) -> str:
        """How messages call the recipe."""
        return self._where

    @property
    def origins(self) -> dict[tuple[str | int, ...], str]:
        """Where each given value came from, by its path of keys and indices."""
        return self._origins
