"""A recipe with every value explicit, and the part of a stage that decides its weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fourstage.recipe.search import ResolvedSearch
from models.catalogue import TEACHER
from models.training.stage import StageSettings

# A key added to the schema later goes here with the value that means "as before", so that the keys
# of recipes written before it stay what they were. Never change or remove a line.
NEUTRAL: Mapping[str, Any] = {
    "micro_batches": 1,
    "stop": None,
    "select": None,
    "alternate": False,
    "reinitialise": 0,
    "freeze": (),
    "gradual_unfreezing": None,
    "lora": None,
    "r_drop": None,
    "fgm": None,
    "feature_based": None,
    "average": None,
    "mixture": None,
    "remedies": {},
    "earlier": {},
}
NEUTRAL_OPTIMIZER: Mapping[str, Any] = {
    "bias_correction": "moments",
    "layer_decay": 1.0,
}
# What is asked of the pre-trained network: keys of `evaluate`, which are left out where empty.
OF_PRETRAINED = (
    "probes",
    "few_shot",
    "prototypes",
    "links",
    "word_relations",
    "word_in_context",
    "polysemy",
    "word_map",
)


@dataclass(frozen=True)
class ResolvedTokenizer:
    """How the vocabulary is made.

    Attributes:
        learn_from: Names of corpora, in order.
        add_words: Words to add to the vocabulary of a network trained elsewhere.
        sentinels: Tokens that stand for hidden spans.
        minimum_count: Smallest count of a word; 0 where the scheme has no such setting.
        marks: Strings that are one token each wherever a text has them.
        segmenter: Who cuts Chinese text into the words of the vocabulary, or None.
    """

    scheme: str
    vocabulary_size: int
    lowercase: bool
    learn_from: tuple[str, ...]
    add_words: int = 0
    sentinels: int = 0
    minimum_count: int = 0
    marks: tuple[str, ...] = ()
    segmenter: str | None = None


@dataclass(frozen=True)
class ResolvedUnits:
    """What is a word, a phrase, an entity.

    Attributes:
        segmenter: Who cuts text without blanks into words, or None.
        gazetteer: File of names as the recipe has it, or None.
        entities: File of a knowledge graph's entities as the recipe has it, or None.
    """

    segmenter: str | None = None
    gazetteer: str | None = None
    entities: str | None = None


@dataclass(frozen=True)
class TrainingDraw:
    """Which of a dataset's training rows are used.

    Attributes:
        number: How many.
        seed: Seed that draws them.
        each_seed: Whether it is that of the stage, so that each of the recipe's seeds has its own.
    """

    number: int
    seed: int
    each_seed: bool = False

    @property
    def written(self) -> dict[str, int]:
        """The key of a recipe with every value."""
        seed = {} if self.each_seed else {"seed": self.seed}
        return {"number": self.number, **seed, "each_seed": self.each_seed}


@dataclass(frozen=True, kw_only=True)
class ResolvedStage(StageSettings):
    """One trained part of a recipe, nothing left to guess.

    Attributes:
        index: Place in the recipe's list.
        name: Unique in the recipe.
        corpora: Share of tokens by source name, summing to 1; empty for ``finetune``. A dataset
            here means the text of its training rows.
        overlap: What happens to training rows that are evaluation rows; ``finetune`` only.
        training_rows: Which of the dataset's training rows are used; None: all of them.
        earlier: The corpora of the stage before, where a remedy reads them; else empty.
        refresh: What new data do: ``never``, ``on_change`` or ``continue``.
        continuations: How often in a row they may continue it; None: without end.
        part_defaults: Defaults in the files of the network (``network``), the objectives (by name)
            and the head (by name).
        starts_network: Whether it has a family or size of its own, and so random weights instead of
            those of the stage before.
        tokenizer: Its own vocabulary, or None: the recipe's.
        teachers: The earlier stage that an objective learns from, by objective.
        starts_from: What parts of its network start from: an earlier stage, the folder of one, or a
            file of word vectors.
        versions: The registered version whose folder that is, as ``models:/NAME/3``, by part.
        init: Where the network comes from that takes the place of training; None: it is trained.
        trains_itself: Whether its objective or family trains the network, with no optimizer.
    """

    index: int
    name: str
    corpora: Mapping[str, float]
    overlap: str | None
    training_rows: TrainingDraw | None = None
    refresh: str
    continuations: int | None = None
    part_defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    starts_network: bool = False
    tokenizer: ResolvedTokenizer | None = None
    teachers: Mapping[str, str] = field(default_factory=dict)
    starts_from: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    earlier: Mapping[str, float] = field(default_factory=dict)
    init: str | None = None
    trains_itself: bool = False

    @property
    def datasets(self) -> tuple[str, ...]:
        """Its dataset, and those that are learnt beside it."""
        return (*([self.dataset] if self.dataset else []), *(self.mixture or {}).get("beside", ()))

    @property
    def tokens_a_step(self) -> float:
        """Tokens that an update reads, on average over the phases."""
        return sum(
            phase.share * (phase.batch_size or self.batch_size) * phase.sequence_length
            for phase in self.phases
        )


@dataclass(frozen=True)
class ResolvedRecipe:
    """A recipe with every value explicit.

    Attributes:
        name: Its name; of its MLflow experiment too, where it registers no model.
        path: The file it came from.
        where: Its name in messages.
        family: Name of the network's file.
        size: Name of the size, or None where the recipe gives the network's arguments.
        network: The network's arguments but the size of the vocabulary and the dtype.
        tokenizer: How the vocabulary is made.
        units: What is a word, a phrase, an entity.
        seed: Seed of the stages before `seeds_from`.
        seeds: All seeds; one unless the recipe has several.
        seeds_from: Name of the first stage they differ in.
        seeds_together: How many of them share the stages before that one; None: all.
        stages: In order.
        skipped: Kinds of stages the recipe leaves out.
        limits: ``minutes`` and ``disk_gb``, where given.
        decontaminate: Datasets besides its own whose evaluation rows no corpus may contain.
        metrics: What is computed on the finetune stage; empty without one.
        evaluation_split: ``test`` or ``dev``.
        slices: Groups of rows with a score of their own.
        forgetting_on: Corpora measured after every stage.
        probes: Metric by dataset of the linear probes on the pre-trained network.
        few_shot: By dataset, how the pre-trained network answers it from its prompt.
        prototypes: By dataset, the episodes in which the pre-trained network tells its classes.
        links: Datasets of triples whose heads and tails the pre-trained network ranks.
        word_relations: Sources of similarities and analogies that the pre-trained network's word
            vectors are held against.
        word_in_context: Datasets of a word in two sentences, for the cosines of each layer.
        polysemy: By word and sense, sentences with the word.
        word_map: Words whose vectors are drawn.
        attention: Texts, rows and layers of a stage whose attention is drawn; empty for none.
        search: What is tried in the finetune stage, where the recipe has a search.
        measured_by: The objective whose loss on held-out text says what every stage learned; None
            where the recipe has none that can be measured.
        model: Name in the registry; None: nothing is registered.
        require: What the gate asks, by metric; under ``slices`` by slice and metric.
        gate_split: ``dev`` or ``test``: the rows that decide about a promotion.
        approve: ``by_hand`` where somebody has to agree to a promotion.
        notes: What was decided for the user and has to be said.
        start: Folder of the network that the first stage is, where that is not trained here.
        origins: Where each value came from, by its path as text: ``recipe``, ``extends …``,
            ``--set``, ``smoke``, ``inherited from stage …``, ``default for …``, ``size mini``….
    """

    name: str
    path: Path | None
    where: str
    family: str
    size: str | None
    network: Mapping[str, Any]
    tokenizer: ResolvedTokenizer
    seed: int
    seeds: tuple[int, ...]
    seeds_from: str | None
    stages: tuple[ResolvedStage, ...]
    skipped: tuple[str, ...]
    limits: Mapping[str, float]
    decontaminate: tuple[str, ...]
    metrics: tuple[str, ...]
    evaluation_split: str
    slices: tuple[str, ...]
    forgetting_on: tuple[str, ...]
    model: str | None
    require: Mapping[str, Mapping[str, Any]]
    notes: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    units: ResolvedUnits = ResolvedUnits()
    start: Path | None = None
    seeds_together: int | None = None
    approve: str | None = None
    gate_split: str = "dev"
    probes: Mapping[str, str] = field(default_factory=dict)
    measured_by: str | None = None
    search: ResolvedSearch | None = None
    few_shot: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    prototypes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    links: tuple[str, ...] = ()
    word_relations: tuple[str, ...] = ()
    word_in_context: tuple[str, ...] = ()
    polysemy: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    word_map: tuple[str, ...] = ()
    attention: Mapping[str, Any] = field(default_factory=dict)

    @property
    def finetune(self) -> ResolvedStage | None:
        """The labelled stage, where there is one."""
        return next((stage for stage in self.stages if stage.kind == "finetune"), None)

    @property
    def last_network(self) -> tuple[ResolvedStage, ...]:
        """The stages that trained the last one's network, in order; no teacher is among them."""
        return of_last_network(self.stages)

    @property
    def pretraining(self) -> tuple[ResolvedStage, ...]:
        """The stages of the last network before the labels, in order."""
        return pretraining_of(self.stages)

    @property
    def pretrained(self) -> ResolvedStage | None:
        """The last network's last stage before the labels, where there is one."""
        return self.pretraining[-1] if self.pretraining else None

    @property
    def sources(self) -> tuple[str, ...]:
        """Every corpus and dataset it names, each once, in order of first use."""
        names: list[str] = list(self.tokenizer.learn_from)
        for stage in self.stages:
            names += stage.tokenizer.learn_from if stage.tokenizer else ()
            names += [*stage.corpora, *stage.datasets]
        names += [*self.probes, *self.few_shot, *self.prototypes, *self.word_in_context]
        names += [*self.links, *self.forgetting_on, *self.decontaminate]
        return tuple(dict.fromkeys(names))

    def origin(self, path: str) -> str:
        """Where the value at a path such as ``stages[0].batch_size`` came from."""
        while path:
            for place in (path, f"{path}[0]"):  # a list comes from where its values come from
                if place in self.origins:
                    return self.origins[place]
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return "recipe"

    def rows(self) -> list[tuple[str, Any, str]]:
        """(path, value, origin) of every single value, in the order of the schema."""
        found = [(path, value, self.origin(path)) for path, value in _leaves(as_recipe(self), "")]
        return [
            (path, value, "default" if value in ([], {}) and origin == "recipe" else origin)
            for path, value, origin in found
        ]


def of_last_network(stages: Sequence[ResolvedStage]) -> tuple[ResolvedStage, ...]:
    """The stages that trained the last one's network, in order."""
    start = max((stage.index for stage in stages if stage.starts_network), default=0)
    return tuple(stages[start:])


def pretraining_of(stages: Sequence[ResolvedStage]) -> tuple[ResolvedStage, ...]:
    """The stages of the last network before the labels, in order."""
    return tuple(stage for stage in of_last_network(stages) if stage.kind != "finetune")


def as_recipe(resolved: ResolvedRecipe) -> dict[str, Any]:
    """The resolved recipe as a recipe: what one would write to leave nothing to defaults."""
    recipe: dict[str, Any] = {
        "name": resolved.name,
        "family": resolved.family,
        "size": _given(resolved.network),
        "tokenizer": _as_tokenizer(resolved.tokenizer),
    }
    units = {name: value for name, value in vars(resolved.units).items() if value is not None}
    if units:
        recipe["units"] = units
    if resolved.seeds_from:
        recipe["seeds"] = {"values": list(resolved.seeds), "from": resolved.seeds_from}
        if resolved.seeds_together:
            recipe["seeds"]["together"] = resolved.seeds_together
    else:
        recipe["seed"] = resolved.seed
    recipe["stages"] = [_as_stage(stage) for stage in resolved.stages]
    recipe["limits"] = dict(resolved.limits)
    recipe["decontaminate"] = list(resolved.decontaminate)
    asked: dict[str, Any] = {"metrics": resolved.metrics} if resolved.metrics else {}
    if resolved.finetune:
        asked |= {"split": resolved.evaluation_split, "slices": resolved.slices}
    asked["forgetting_on"] = resolved.forgetting_on
    asked |= {name: said for name in OF_PRETRAINED if (said := getattr(resolved, name))}
    if resolved.attention:
        asked["attention"] = {name: said for name, said in resolved.attention.items() if said}
    recipe["evaluate"] = _plain(asked)
    if search := resolved.search:
        recipe["search"] = {
            **(
                {"grid": {place: list(v) for place, v in search.grid.items()}}
                if search.grid
                else {}
            ),
            "metric": search.metric,
            "seeds": list(search.seeds),
            **({"folds": search.folds} if search.folds else {}),
        }
    if resolved.model:
        recipe["promote"] = {
            "model": resolved.model,
            "split": resolved.gate_split,
            "require": {n: dict(rule) for n, rule in resolved.require.items() if n != "slices"},
        }
        if "slices" in resolved.require:
            recipe["promote"]["require_slices"] = dict(resolved.require["slices"])
        if resolved.approve:
            recipe["promote"]["approve"] = resolved.approve
    return recipe


def _as_tokenizer(tokenizer: ResolvedTokenizer) -> dict[str, Any]:
    """The vocabulary as a recipe has it, without what has no effect."""
    said = {**vars(tokenizer), "learn_from": list(tokenizer.learn_from)}
    said["marks"] = list(tokenizer.marks)
    usual = ("scheme", "vocabulary_size", "lowercase")
    return {name: value for name, value in said.items() if name in usual or value}


def _given(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a recipe has them: none without a value."""
    return {name: value for name, value in settings.items() if value is not None}


def _as_stage(stage: ResolvedStage) -> dict[str, Any]:
    written: dict[str, Any] = {"stage": stage.kind, "name": stage.name}
    if stage.init is not None:
        return {**written, "init": stage.init}
    if stage.starts_network:
        written |= {"family": stage.family, "size": _given(stage.network)}
    if stage.tokenizer is not None:
        written["tokenizer"] = _as_tokenizer(stage.tokenizer)
    if stage.starts_from:
        written["starts_from"] = {**stage.starts_from, **stage.versions}
    if stage.kind == "finetune":
        written["dataset"] = stage.dataset
        if stage.mixture is not None:
            beside = {name: said["prefix"] for name, said in stage.mixture["beside"].items()}
            written["mixture"] = {**_given(stage.mixture), "beside": beside}
        written["overlap"] = stage.overlap
        if stage.training_rows is not None:
            written["training_rows"] = stage.training_rows.written
        written["head"] = {stage.head: _given(stage.head_settings)}
    else:
        written["corpora"] = dict(stage.corpora)
    if stage.objectives or stage.kind != "finetune":
        written["objectives"] = {
            name: {**_given(settings), "weight": stage.weights[name]}
            for name, settings in stage.objectives.items()
        }
    if stage.alternate:
        written["alternate"] = True
    written["phases"] = [
        {
            "sequence_length": phase.sequence_length,
            "share": phase.share,
            **({"batch_size": phase.batch_size} if phase.batch_size != stage.batch_size else {}),
        }
        for phase in stage.phases
    ]
    written |= {
        "batch_size": stage.batch_size,
        "micro_batches": stage.micro_batches,
        "budget": {stage.budget.unit: stage.budget.amount},
        "precision": stage.precision,
        "refresh": stage.refresh,
    }
    if stage.continuations is not None:
        written["continuations"] = stage.continuations
    if not stage.trains_itself:
        optimizer = stage.optimizer
        written["optimizer"] = {optimizer.name: _without(optimizer.settings, NEUTRAL_OPTIMIZER)}
    if stage.reinitialise:
        written["reinitialise"] = stage.reinitialise
    if stage.freeze:
        written["freeze"] = list(stage.freeze)
    for key in (
        "gradual_unfreezing",
        "lora",
        "feature_based",
        "r_drop",
        "fgm",
        "average",
        "stop",
        "select",
    ):
        value = getattr(stage, key)
        if value is not None:
            written[key] = dict(value)
    if stage.remedies:
        written["remedies"] = {name: dict(said) for name, said in stage.remedies.items()}
    return written


def stage_spec(stage: ResolvedStage) -> dict[str, Any]:
    """What of a stage's recipe decides its weights, as plain JSON with a stable order.

    It enters the stage key beside the digests of the inputs, the code and the resolved precision,
    which are not in it. Neither are names and paths, a teacher's among them, nor `refresh` and the
    gate: they change no weight. A key with its neutral value is left out (`NEUTRAL`), and so are
    settings of network, objectives and head that equal the default in their file, because the code
    digest holds that file.
    """
    defaults = stage.part_defaults
    spec: dict[str, Any] = {
        "stage": stage.kind,
        "family": stage.family,
        "network": _without(stage.network, defaults.get("network", {})),
        "phases": [
            [phase.sequence_length, round(phase.share, 9), phase.batch_size]
            for phase in stage.phases
        ],
        "budget": {stage.budget.unit: stage.budget.amount},
        "optimizer": {stage.optimizer.name: _without(stage.optimizer.settings, NEUTRAL_OPTIMIZER)},
        "seed": stage.seed,
    }
    if stage.kind == "finetune":
        head = str(stage.head)
        spec["head"] = {head: _without(stage.head_settings, defaults.get(head, {}))}
    else:
        spec["corpora"] = {n: round(share, 9) for n, share in sorted(stage.corpora.items())}
    if stage.objectives or stage.kind != "finetune":
        spec["objectives"] = {
            name: {
                **_without(settings, {**defaults.get(name, {}), TEACHER: settings.get(TEACHER)}),
                **_weight(stage.weights[name]),
            }
            for name, settings in sorted(stage.objectives.items())
        }
    for key, neutral in NEUTRAL.items():
        value = getattr(stage, key)
        if value != neutral:
            spec[key] = _plain(value)
    return dict(sorted(spec.items()))


def _plain(value: object) -> object:
    """A setting as JSON has it."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, tuple) else value


def _weight(weight: float) -> dict[str, float]:
    return {} if weight == 1.0 else {"weight": weight}


def _without(settings: Mapping[str, Any], neutral: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in sorted(settings.items())
        if name not in neutral or value != neutral[name]
    }


def _leaves(value: object, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        for i, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{i}]")
    else:
        yield path, value
