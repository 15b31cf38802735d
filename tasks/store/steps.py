"""The steps of a recipe: their inputs, their order and their cache keys.

One list of `Step` describes the way from files to a model version. The flows run it, ``plan`` and
``explain`` compare it with the store, ``trace`` reads it back. A step's key is the digest of its
preimage: its settings, the digests of its inputs' *outputs*, its code and the versions of the
packages that it computes with. So if an input is made again with the same outputs, the later steps
are reused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fourstage.digests import DigestCache, digest, hash_file
from fourstage.errors import listed
from fourstage.settings import home
from models.evaluation.rivals import KINDS as RIVALS
from tasks.store.artifacts import Artifact, Input, Missing, Store
from tasks.store.code import closure_digest, module_file, project_digest
from tasks.store.step_names import WIDE, StepName

WAITS = "waits for "  # prefix of the reason of a step whose inputs have to be made first
MOST_NAMED = 12  # inputs named in a message; a recipe may have hundreds
NUMERIC = ("numpy",)
TEXT = ("pyarrow", *NUMERIC)
JAX = ("jax", "jaxlib")
TENSOR = ("tensorflow", "keras", "tensorflow-text", "grain", "tokenizers", *NUMERIC)
SCORES = ("scikit-learn", "scipy", "sacrebleu", "rouge-score")
VERSIONS = {
    "corpus": TEXT,
    "dataset": (*TEXT, "pillow", "scipy"),
    "contract": ("great-expectations", "pandas"),
    "baseline": (*SCORES, *TEXT),
    "tokenizer": ("tokenizers",),
    "tokens": ("tensorflow-text", "tokenizers", "pyarrow"),
    "rows": ("tensorflow-text", "tokenizers", "pyarrow"),
    "wide": ("scikit-learn", "scipy", *TENSOR),
    "vectors": TENSOR,
    "stage": TENSOR,
    "measurement": (*TENSOR, *SCORES),
    "evaluation": (*TENSOR, *SCORES),
    "probe": (*TENSOR, "scikit-learn"),
    "few_shot": (*TENSOR, *SCORES, "pyarrow"),
    "prototypes": (*TENSOR, "pyarrow", "scikit-learn", "scipy"),
    "links": (*TENSOR, "pyarrow", "scipy"),
    "word_relations": ("scipy", *NUMERIC),
    "word_in_context": (*TENSOR, "pyarrow"),
    "polysemy": (*TENSOR, "scikit-learn"),
    "word_map": ("scikit-learn", *NUMERIC),
    "attention": (*TENSOR, "pyarrow"),
    "package": TENSOR,
}
# Kinds that say what the pre-trained network knows.
BEFORE_LABELS = (
    "probe",
    "few_shot",
    "prototypes",
    "links",
    "word_relations",
    "word_in_context",
    "polysemy",
    "word_map",
)
LOADING = "models.saved_tokenizer"  # loads a step's input tokenizer
TOKENISING = (
    "tasks.steps.tokenize_corpus",
    "tasks.steps.tokens",
    "tasks.store.kept",
    "corpora.shards",
)
# Entry points of each kind's code: the task's own file, and the modules that its work calls.
CODE = {
    "corpus": ("tasks.steps.prepare_corpus", "corpora.preparation"),
    "dataset": ("tasks.steps.prepare_corpus", "corpora.preparation"),
    "contract": ("data_contracts.check",),  # without the wording of reports
    "baseline": (
        "tasks.steps.fit_baseline",
        "tasks.store.kept",
        "models.evaluation.seen_words",
        *(f"models.evaluation.rivals.{kind}" for kind in RIVALS),
    ),
    "tokenizer": ("tasks.steps.train_tokenizer", "tasks.store.kept"),
    "tokens": TOKENISING,
    "rows": TOKENISING,
    "wide": ("tasks.steps.learn_wide", "models.inputs.wide_rows", "corpora.shards", LOADING),
    "vectors": (
        "tasks.steps.learn_vectors",
        "tasks.steps.tokens",
        "models.vectors.training",
        "corpora.shards",
        LOADING,
    ),
    "stage": (
        "tasks.steps.training_job",
        "tasks.steps.tokens",
        "models.training.trainer",
        "models.training.gradient",
        "corpora.shards",
        LOADING,
    ),
    "measurement": (
        "tasks.steps.measure_stage",
        "tasks.steps.heldout_losses",
        "tasks.steps.tokens",
        "models.evaluation.heldout",
        "corpora.shards",
        LOADING,
    ),
    "evaluation": (
        "tasks.steps.evaluate_model",
        "tasks.steps.prediction_columns",
        "tasks.store.predictions",
        "models.evaluation.predict",
        LOADING,
    ),
    "probe": (
        "tasks.steps.probe_network",
        "tasks.steps.prediction_columns",
        "models.evaluation.probe",
        LOADING,
    ),
    "few_shot": (
        "tasks.steps.ask_in_context",
        "tasks.steps.prediction_columns",
        "tasks.store.kept",
        "tasks.store.predictions",
        "models.evaluation.few_shot.protocol",
        "models.evaluation.resampling",
        "corpora.contamination",
        LOADING,
    ),
    "prototypes": (
        "tasks.steps.compare_prototypes",
        "tasks.steps.prediction_columns",
        "tasks.store.kept",
        "tasks.store.predictions",
        "models.evaluation.prototypes",
        "corpora.shards",
        LOADING,
    ),
    "links": (
        "tasks.steps.rank_links",
        "tasks.store.predictions",
        "models.evaluation.link_prediction",
        "corpora.shards",
        LOADING,
    ),
    "word_relations": (
        "tasks.steps.relate_words",
        "tasks.steps.tokens",
        "models.evaluation.word_relations",
        LOADING,
    ),
    "word_in_context": (
        "tasks.steps.compare_contexts",
        "tasks.steps.tokens",
        "tasks.store.kept",
        "tasks.store.predictions",
        "models.evaluation.word_in_context",
        LOADING,
    ),
    "polysemy": (
        "tasks.steps.tell_senses",
        "tasks.steps.tokens",
        "models.evaluation.polysemy",
        LOADING,
    ),
    "word_map": (
        "tasks.steps.map_words",
        "tasks.steps.tokens",
        "models.evaluation.word_map",
        LOADING,
    ),
    "attention": (
        "tasks.steps.map_attention",
        "tasks.steps.tokens",
        "tasks.store.attention_file",
        "models.evaluation.attention_maps",
        "corpora.shards",
        LOADING,
    ),
    "package": (
        "tasks.steps.package_model",
        "tasks.steps.tokens",
        "models.interchange.saved_model",
    ),
}


@dataclass(frozen=True)
class Step:
    """A step of a recipe; it makes one artifact.

    Attributes:
        name: Unique in the recipe: ``corpus trial_reports``, ``stage domain``.
        kind: Kind of the artifact it makes.
        settings: Plain JSON; with inputs and code, it determines the outputs.
        inputs: Name of the step that makes each input, by role.
        parts: Files of parts named in the recipe (family, objectives, head, tokenizer's scheme),
            for the code digest.
        given: Arguments of the work that are not part of the key, such as file locations.
    """

    name: str
    kind: str
    settings: Mapping[str, Any]
    inputs: Mapping[str, StepName] = field(default_factory=dict)
    parts: tuple[Path, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Bound:
    """A step whose inputs are finished, so its key is known.

    Attributes:
        step: The step.
        made_from: Its input artifacts by role, for lineage.
    """

    step: Step
    made_from: Mapping[str, Artifact]

    @cached_property
    def inputs(self) -> dict[str, Input]:
        """Its inputs by role, limited to what the key covers, for its work to read."""
        return {role: artifact.as_input() for role, artifact in self.made_from.items()}

    @cached_property
    def preimage(self) -> dict[str, Any]:
        """The JSON whose digest is the key."""
        step = self.step
        return {
            "kind": step.kind,
            "settings": dict(step.settings),
            "inputs": {role: artifact.digest for role, artifact in self.inputs.items()},
            "code": code_digest(step.kind, step.parts),
            "versions": _versions(
                *VERSIONS[step.kind],
                *(VERSIONS[WIDE] if WIDE in step.inputs else ()),
                *(JAX if step.settings.get("backend") == "jax" else ()),
            ),
        }

    @cached_property
    def key(self) -> str:
        """Name of the entry in the store, 64 hex digits."""
        return digest(self.preimage)

    @property
    def label(self) -> str:
        """Name of the task run: step name and short key."""
        return f"{self.step.name.replace(' ', '-')}-{self.key[:7]}"


@dataclass(frozen=True)
class Unbound:
    """A step without a key yet, and the names of the missing inputs."""

    step: Step
    waits_for: tuple[str, ...]


def bind(step: Step, made: Mapping[str, Artifact]) -> Bound | Unbound:
    """Bind a step to its inputs, given the artifacts made so far by step name."""
    waits_for = tuple(sorted({name for name in step.inputs.values() if name not in made}))
    if waits_for:
        return Unbound(step, waits_for)
    return Bound(step, {role: made[name] for role, name in step.inputs.items()})


@dataclass(frozen=True)
class Prospect:
    """A step and its state in the store: would it be reused or made if the recipe ran now?"""

    step: Step
    bound: Bound | Unbound
    found: Artifact | Missing | None

    @property
    def reused(self) -> bool:
        """Whether the store has an intact entry."""
        return isinstance(self.found, Artifact)


def look_ahead(steps: Sequence[Step], store: Store) -> Iterator[Prospect]:
    """Look up each step in the store, in order. Makes nothing."""
    made: dict[str, Artifact] = {}
    for step in steps:
        bound = bind(step, made)
        if isinstance(bound, Unbound):
            yield Prospect(step, bound, None)
            continue
        found = store.find(step.kind, bound.key)
        if isinstance(found, Artifact):
            made[step.name] = found
        yield Prospect(step, bound, found)


def finished(steps: Iterable[Step], store: Store) -> dict[str, Artifact]:
    """The artifacts of those steps that the store has, by step name."""
    return {
        prospect.step.name: prospect.found
        for prospect in look_ahead([*steps], store)
        if isinstance(prospect.found, Artifact)
    }


@dataclass(frozen=True)
class Change:
    """A difference between two mappings; None stands for a missing value."""

    at: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.at}: {_shown(self.before)} → {_shown(self.after)}"


def changes(old: Mapping[str, Any], new: Mapping[str, Any], at: str = "") -> Iterator[Change]:
    """The differences between two nested mappings, sorted by place."""
    for name in sorted({*old, *new}):
        place = f"{at}.{name}" if at else str(name)
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from changes(before, after, place)
        else:
            yield Change(place, before, after)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The differences between two preimages, such as ``settings.seed: 17 → 5``."""
    return [str(change) for change in changes(old, new)]


class PreviousArtifacts:
    """Finished entries by kind and step name. Manifests are read once, on demand.

    Args:
        store: The store to read.
    """

    def __init__(self, store: Store):
        self.store = store
        self._kinds: dict[str, list[Artifact]] = {}
        self._names: dict[tuple[str, str], list[Artifact]] = {}

    def of_kind(self, kind: str) -> list[Artifact]:
        """Entries of a kind, oldest first."""
        if kind not in self._kinds:
            self._kinds[kind] = list(self.store.entries(kind))
            for entry in self._kinds[kind]:
                self._names.setdefault((kind, entry.name), []).append(entry)
        return self._kinds[kind]

    def of(self, step: Step) -> list[Artifact]:
        """Entries with a step's kind and name, oldest first."""
        self.of_kind(step.kind)
        return self._names.get((step.kind, step.name), [])


def why(prospect: Prospect, previous: PreviousArtifacts) -> list[str]:
    """Why a step would be made: the differences from the most similar earlier entry."""
    if isinstance(prospect.bound, Unbound):
        return [WAITS + listed(prospect.bound.waits_for, MOST_NAMED)]
    if isinstance(prospect.found, Artifact):
        return [f"made {prospect.found.created}, unchanged since"]
    assert prospect.found is not None
    if prospect.found.reason != "never made":
        return [prospect.found.reason]
    preimage = prospect.bound.preimage
    earlier = previous.of(prospect.step)
    if not earlier:
        return ["never made"]
    return min((differences(entry.preimage, preimage) for entry in reversed(earlier)), key=len)


def made_by_other_code(bound: Bound, store: Store) -> Artifact | None:
    """The newest intact entry that differs from a step only in its code digest."""
    wanted = {name: part for name, part in bound.preimage.items() if name != "code"}
    for entry in reversed(list(store.entries(bound.step.kind))):
        if wanted == {name: part for name, part in entry.preimage.items() if name != "code"}:
            found = store.find(entry.kind, entry.key)
            if isinstance(found, Artifact):
                return found
    return None


def code_digest(kind: str, parts: Sequence[Path] = ()) -> str:
    """Digest of the code that makes artifacts of a kind, including the recipe's parts.

    It is kept in the home until any file of the code changes: parsing the files that a recipe's
    steps reach takes a second or two, reading all files a twentieth of one.
    """
    starts = (*(module_file(name) for name in CODE[kind]), *parts)
    # A project's own parts lie outside this code.
    state = digest([project_digest(), *map(hash_file, parts)])
    known = _code_digests(home() / "code-digests.jsonl")
    return known.remembered(" ".join(map(str, starts)), state, lambda: closure_digest(*starts))


_code_digests = cache(DigestCache)


@cache
def _versions(*packages: str) -> dict[str, str]:
    return {name: version(name) for name in packages}


def _shown(value: object) -> str:
    text = "–" if value is None else str(value)
    return text[:12] + "…" if len(text) == 64 else text[:80]
