"""From a recipe to its resolved form: sizes, inheritance, defaults, and what can't be.

Inherited from the stage before: network, tokenizer, sequence length, precision; objectives only
from one pre-training stage to the next, less those the data can't feed. Never inherited: corpora,
budget, optimizer, batch size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fourstage.errors import RecipeError, UnknownNameError
from fourstage.settings import search_folders
from models import catalogue
from models.recipe import defaults, gate, parts
from models.recipe.messages import kind_of, raise_all
from models.recipe.paths import path_text
from models.recipe.resolved import (
    ResolvedBudget,
    ResolvedOptimizer,
    ResolvedPhase,
    ResolvedRecipe,
    ResolvedStage,
    ResolvedTokenizer,
)
from models.recipe.schema import STAGE_KINDS, Recipe, Stage
from models.recipe.support import check_supported
from models.signatures import Setting, settings_of

PRETRAINING = ("general", "domain", "task")


@dataclass(frozen=True)
class SourceFacts:
    """What a recipe has to know of a source.

    Attributes:
        labelled: Whether it is a dataset; else it is a corpus.
    """

    labelled: bool


def resolve(
    recipe: Recipe,
    sources: Mapping[str, SourceFacts | None] | None = None,
    folders: Sequence[Path] | None = None,
    seed: int | None = None,
) -> ResolvedRecipe:
    """Make every value explicit and refuse what can't be, before any work.

    Args:
        recipe: As `load_recipe` returns it.
        sources: Every known source by name, with what is known of those the recipe uses; None
            leaves the names of sources unchecked.
        folders: Project folders searched before the built-in ones; those of the recipe's file
            unless given.
        seed: In place of the recipe's; where it has several, of the stages they differ in.

    Raises:
        RecipeError: Everything that is wrong, a line each.
    """
    folders = search_folders(recipe.path) if folders is None else folders
    check_supported(recipe, folders)
    return _Resolution(recipe, sources, folders).resolved(seed)


class _Resolution:
    """The faults, notes and origins gathered on the way."""

    def __init__(
        self,
        recipe: Recipe,
        sources: Mapping[str, SourceFacts | None] | None,
        folders: Sequence[Path],
    ):
        self.recipe = recipe
        self.sources = sources
        self.folders = folders
        self.faults: list[RecipeError] = []
        self.notes: list[str] = []
        self.origins = {
            path_text(path): self.said(source)
            for path, source in recipe.origins.items()
            if source != recipe.where
        }

    def fault(self, place: str, message: str) -> None:
        self.faults.append(RecipeError(f"{self.recipe.where}: {place}: {message}"))

    def said(self, source: str) -> str:
        if source == self.recipe.where:
            return "recipe"
        if source in ("--set", "smoke"):
            return source
        return f"extends {self.recipe.extends}"

    def resolved(self, seed: int | None) -> ResolvedRecipe:
        recipe = self.recipe
        network, network_defaults = self.network()
        first, seeds, seeds_from = self.seeds(seed)
        names = self.names()
        stages: list[ResolvedStage] = []
        before: ResolvedStage | None = None
        current = first
        for i, stage in enumerate(recipe.stages):
            if seeds_from == names[i]:
                current = seeds[0]
            before = self.stage(i, stage, names[i], before, network, network_defaults, current)
            stages.append(before)
        finetune = next((stage for stage in stages if stage.kind == "finetune"), None)
        tokenizer = self.tokenizer(stages)
        metrics, split, slices, forgetting_on = self.evaluation(finetune)
        model, require = self.promotion(finetune, metrics, slices, forgetting_on)
        for i, name in enumerate(recipe.decontaminate or ()):
            self.source(f"decontaminate[{i}]", name, labelled=True)
        raise_all(self.faults)
        return ResolvedRecipe(
            name=recipe.name,
            path=recipe.path,
            where=recipe.where,
            family=recipe.family,
            size=recipe.size if isinstance(recipe.size, str) else None,
            network=network,
            tokenizer=tokenizer,
            seed=first,
            seeds=seeds,
            seeds_from=seeds_from,
            stages=tuple(stages),
            skipped=tuple(k for k in STAGE_KINDS if all(k != stage.kind for stage in stages)),
            limits=recipe.limits.model_dump(exclude_none=True) if recipe.limits else {},
            decontaminate=recipe.decontaminate or (),
            metrics=metrics,
            evaluation_split=split,
            slices=slices,
            forgetting_on=forgetting_on,
            model=model,
            require=require,
            notes=tuple(self.notes),
            origins=self.origins,
        )

    # The whole recipe

    def network(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The network's arguments, and the defaults in its file."""
        recipe = self.recipe
        known = settings_of(parts.file_of("families", recipe.family, self.folders))
        sizes = catalogue.literals("families", recipe.family, self.folders).get("SIZES", {})
        fallback = {s.name: s.default for s in known.values() if not s.required}
        if isinstance(recipe.size, str):
            if recipe.size not in sizes:
                self.faults.append(
                    UnknownNameError(
                        f"{recipe.where}: size",
                        recipe.size,
                        f"a size of family {recipe.family!r}",
                        sizes,
                        "A mapping of the network's own arguments is allowed too.",
                    )
                )
                return fallback, fallback
            given, origin = sizes[recipe.size], f"size {recipe.size} of {recipe.family}"
        else:
            given, origin = recipe.size, "recipe"
            self.settings("size", given, known, f"an argument of family {recipe.family!r}")
        for name in known:
            self.origins[f"size.{name}"] = (
                origin if name in given else f"default of {recipe.family}"
            )
        heads, width = given.get("num_heads"), given.get("hidden_dim")
        if isinstance(heads, int) and isinstance(width, int) and heads > 0 and width % heads:
            self.fault(
                "size", f"expected a hidden_dim that num_heads divides, got {width} and {heads}"
            )
        return {**fallback, **_as_declared(given, known)}, fallback

    def seeds(self, seed: int | None) -> tuple[int, tuple[int, ...], str | None]:
        """The seed of the first stages, all seeds of the last ones, and where these begin."""
        recipe = self.recipe
        if recipe.seed is not None and recipe.seeds is not None:
            self.fault("seeds", "expected seed or seeds, got both")
        if recipe.seeds is None:
            if recipe.seed is None:
                self.origins["seed"] = "default"
            value = defaults.SEED if recipe.seed is None else recipe.seed
            value = value if seed is None else seed
            return value, (value,), None
        values, start = recipe.seeds.values, recipe.seeds.from_
        if len(set(values)) < len(values):
            self.fault("seeds.values", "expected different seeds, got one twice")
        names = self.names()
        if start not in names:
            self.faults.append(
                UnknownNameError(f"{recipe.where}: seeds.from", start, "the name of a stage", names)
            )
        return values[0], values if seed is None else (seed,), start

    def names(self) -> list[str]:
        return [stage.name or stage.stage for stage in self.recipe.stages]

    def tokenizer(self, stages: Sequence[ResolvedStage]) -> ResolvedTokenizer:
        said = self.recipe.tokenizer
        scheme = said.scheme if said and said.scheme else "wordpiece"
        size = said.vocabulary_size if said else None
        lowercase = said.lowercase if said else None
        learn_from = said.learn_from if said else None
        for key, value in (
            ("scheme", said and said.scheme),
            ("vocabulary_size", size),
            ("lowercase", lowercase),
        ):
            if value is None:
                self.origins[f"tokenizer.{key}"] = "default"
        if learn_from is None:
            self.origins["tokenizer.learn_from"] = "the corpora of all stages"
            dataset = next((stage.dataset for stage in stages if stage.dataset), None)
            names = dict.fromkeys(name for stage in stages for name in stage.corpora)
            learn_from = tuple(
                name for name in names if name != dataset and not self.is_labelled(name)
            )
            if not learn_from and dataset:
                self.origins["tokenizer.learn_from"] = "the dataset, for no stage has a corpus"
                learn_from = (dataset,)
        else:
            for i, name in enumerate(learn_from):
                self.source(f"tokenizer.learn_from[{i}]", name, labelled=None)
        return ResolvedTokenizer(
            scheme,
            size or defaults.VOCABULARY_SIZE,
            True if lowercase is None else lowercase,
            tuple(dict.fromkeys(learn_from)),
        )

    def evaluation(
        self, finetune: ResolvedStage | None
    ) -> tuple[tuple[str, ...], str, tuple[str, ...], tuple[str, ...]]:
        said = self.recipe.evaluate
        metrics = said.metrics if said else None
        if metrics is None:
            self.origins["evaluate.metrics"] = "default"
            metrics = defaults.METRICS if finetune else ()
        elif finetune is None:
            self.fault("evaluate.metrics", "there is no finetune stage to compute them on")
        else:
            for i, name in enumerate(metrics):
                self.metric(f"evaluate.metrics[{i}]", name)
        split = said.split if said else None
        if split is None:
            self.origins["evaluate.split"] = "default"
        for i, name in enumerate((said.slices if said else None) or ()):
            if name not in gate.slice_names():
                self.faults.append(
                    UnknownNameError(
                        f"{self.recipe.where}: evaluate.slices[{i}]",
                        name,
                        "a slice",
                        gate.slice_names(),
                    )
                )
        for i, name in enumerate((said.forgetting_on if said else None) or ()):
            self.source(f"evaluate.forgetting_on[{i}]", name, labelled=False)
        return (
            tuple(dict.fromkeys(metrics)),
            split or "test",
            (said.slices if said else None) or (),
            (said.forgetting_on if said else None) or (),
        )

    def promotion(
        self,
        finetune: ResolvedStage | None,
        metrics: tuple[str, ...],
        slices: tuple[str, ...],
        forgetting_on: tuple[str, ...],
    ) -> tuple[str | None, dict[str, dict[str, Any]]]:
        said = self.recipe.promote
        if said is None:
            return None, {}
        if finetune is None:
            self.fault("promote", "there is no finetune stage whose model could be promoted")
        computed = gate.Computed(metrics, slices, forgetting_on)
        self.faults += gate.faults(self.recipe.where, said, computed)
        return said.model, gate.explicit(said)

    # One stage

    def stage(
        self,
        i: int,
        stage: Stage,
        name: str,
        before: ResolvedStage | None,
        network: Mapping[str, Any],
        network_defaults: Mapping[str, Any],
        seed: int,
    ) -> ResolvedStage:
        at = f"stages[{i}]"
        kind = stage.stage
        default = defaults.STAGES[kind]
        self.order(i, at)
        if stage.name is None:
            self.origins[f"{at}.name"] = "default"
        for key in ("dataset", "overlap", "head") if kind != "finetune" else (
            "corpora",
            "objectives",
        ):  # fmt: skip
            if getattr(stage, key) is not None:
                hint = (
                    "; `corpora: {name: 1.0}` names the text of a dataset"
                    if key == "dataset"
                    else ""
                )
                self.fault(f"{at}.{key}", f"stage {kind} has no {key!r}{hint}")
        corpora = self.corpora(at, stage)
        objectives, weights, part_defaults = self.objectives(at, stage, before)
        head, head_settings, head_defaults = self.head(at, stage)
        if head:
            part_defaults[head] = head_defaults
        batch_size = self.value(f"{at}.batch_size", stage.batch_size, default.batch_size, kind)
        phases = self.phases(at, stage, before, batch_size, network)
        micro_batches = self.value(f"{at}.micro_batches", stage.micro_batches, 1, kind)
        for phase in phases:
            if phase.batch_size % micro_batches:
                self.fault(
                    f"{at}.micro_batches",
                    f"expected a divisor of the batch size {phase.batch_size}, got {micro_batches}",
                )
        if objectives or head:
            self.compatible(at, objectives, head)
        return ResolvedStage(
            index=i,
            name=name,
            kind=kind,
            family=self.recipe.family,
            network=network,
            corpora=corpora,
            dataset=self.dataset(at, stage),
            overlap=self.value(f"{at}.overlap", stage.overlap, "drop_from_train", kind)
            if kind == "finetune"
            else None,
            objectives=objectives,
            weights=weights,
            head=head,
            head_settings=head_settings,
            phases=phases,
            long_rows=str(self.value(f"{at}.long_rows", stage.long_rows, "head", kind)),
            batch_size=batch_size,
            micro_batches=micro_batches,
            budget=self.budget(at, stage),
            optimizer=self.optimizer(at, stage),
            precision=self.inherited(
                f"{at}.precision",
                stage.precision,
                before and (before.precision, before.name),
                defaults.PRECISION,
            ),
            refresh=self.value(f"{at}.refresh", stage.refresh, default.refresh, kind),
            stop=self.watch(f"{at}.stop", stage.stop, kind),
            select=self.watch(f"{at}.select", stage.select, kind),
            seed=seed,
            part_defaults={"network": network_defaults, **part_defaults},
        )

    def value(self, path: str, said: Any, default: Any, kind: str) -> Any:
        """The value given, or the default of the kind of stage."""
        if said is None:
            self.origins[path] = f"default for {kind}"
            return default
        return said

    def inherited(self, path: str, said: Any, before: tuple[Any, str] | None, default: Any) -> Any:
        """The value given, or that of the stage before, or the first stage's default."""
        if said is not None:
            return said
        if before is not None:
            self.origins[path] = f"inherited from stage {before[1]}"
            return before[0]
        self.origins[path] = "default"
        return default

    def order(self, i: int, at: str) -> None:
        stages, names = self.recipe.stages, self.names()
        if names[i] in names[:i]:
            first = names.index(names[i])
            self.fault(
                at,
                f"the name {names[i]!r} is taken by stages[{first}]; give this one a `name`",
            )
        here = STAGE_KINDS.index(stages[i].stage)
        if i and here < STAGE_KINDS.index(stages[i - 1].stage):
            self.fault(
                at,
                f"expected the order {', '.join(STAGE_KINDS)}; got {stages[i].stage} after "
                f"{stages[i - 1].stage}",
            )
        if i and stages[i].stage == stages[i - 1].stage != "domain":
            self.fault(at, f"not supported yet: a second {stages[i].stage} stage")

    def corpora(self, at: str, stage: Stage) -> dict[str, float]:
        if stage.stage == "finetune":
            return {}
        if stage.corpora is None:
            dataset = next((s.dataset for s in self.recipe.stages if s.dataset), None)
            if stage.stage == "task" and dataset:
                self.origins[f"{at}.corpora"] = "the text of the finetune dataset"
                return {dataset: 1.0}
            if stage.stage == "task":
                self.fault(at, "the key 'corpora' is missing, and no finetune stage has a dataset")
            else:
                self.fault(at, "the key 'corpora' is missing: {source: share of the tokens}")
            return {}
        total = sum(stage.corpora.values())
        if total <= 0:
            self.fault(f"{at}.corpora", f"expected shares with a sum above 0, got a sum of {total}")
            return {}
        for name in stage.corpora:
            # The task stage may read a dataset's text; its labels are dropped.
            self.source(f"{at}.corpora", name, None if stage.stage == "task" else False)
        return {name: share / total for name, share in sorted(stage.corpora.items()) if share > 0}

    def dataset(self, at: str, stage: Stage) -> str | None:
        if stage.stage != "finetune":
            return None
        if stage.dataset is None:
            self.fault(at, "the key 'dataset' is missing: the name of a labelled source")
            return None
        self.source(f"{at}.dataset", stage.dataset, labelled=True)
        return stage.dataset

    def objectives(
        self, at: str, stage: Stage, before: ResolvedStage | None
    ) -> tuple[dict[str, dict[str, Any]], dict[str, float], dict[str, dict[str, Any]]]:
        """Settings, weights and file defaults by objective, in the order of their names."""
        if stage.stage == "finetune":
            return {}, {}, {}
        if stage.objectives is None:
            if before is None:
                known = ", ".join(parts.available("objectives", self.folders))
                self.fault(at, f"the key 'objectives' is missing. Known: {known}")
                return {}, {}, {}
            kept = {n: dict(s) for n, s in before.objectives.items() if self.feeds(n, stage)}
            self.origins[f"{at}.objectives"] = f"inherited from stage {before.name}"
            for name in before.objectives:
                if name not in kept:
                    self.notes.append(
                        f"{at}: {name!r} is not inherited from stage {before.name}: it needs text "
                        "that follows on, and rows stand alone"
                    )
            if before.objectives and not kept:
                self.fault(at, "no objective of the stage before can be fed; give `objectives`")
            weights = {name: before.weights[name] for name in kept}
            return kept, weights, {name: dict(before.part_defaults[name]) for name in kept}
        found: dict[str, dict[str, Any]] = {}
        weights: dict[str, float] = {}
        file_defaults: dict[str, dict[str, Any]] = {}
        for name, said in sorted(stage.objectives.items()):
            path = f"{at}.objectives.{name}"
            weight = said.get("weight", 1.0)
            if isinstance(weight, bool) or not isinstance(weight, (int, float)) or weight < 0:
                self.fault(f"{path}.weight", f"expected a number from 0, got {kind_of(weight)}")
                weight = 1.0
            if "weight" not in said:
                self.origins[f"{path}.weight"] = "default"
            settings = {key: value for key, value in said.items() if key != "weight"}
            found[name], file_defaults[name] = self.part("objectives", name, path, settings)
            weights[name] = float(weight)
        if not any(weights.values()):
            self.fault(f"{at}.objectives", "expected weights with a sum above 0, got 0")
        return found, weights, file_defaults

    def feeds(self, objective: str, stage: Stage) -> bool:
        """Whether a stage's data can feed an inherited objective.

        The task stage reads rows, each a text of its own: nothing follows one, so that pairs of
        consecutive segments can't be made.
        """
        needs = catalogue.literals("objectives", objective, self.folders).get("NEEDS", ())
        return stage.stage != "task" or "segments" not in needs

    def head(self, at: str, stage: Stage) -> tuple[str | None, dict[str, Any], dict[str, Any]]:
        if stage.stage != "finetune":
            return None, {}, {}
        if not stage.head:
            known = ", ".join(parts.available("heads", self.folders))
            self.fault(at, f"the key 'head' is missing. Known: {known}")
            return None, {}, {}
        name, said = next(iter(stage.head.items()))
        settings, file_defaults = self.part("heads", name, f"{at}.head.{name}", said)
        return name, settings, file_defaults

    def part(
        self, kind: str, name: str, path: str, said: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """All settings of an objective or a head, and the defaults in its file."""
        known = settings_of(parts.file_of(kind, name, self.folders))
        article = parts.ARTICLES[kind].split()[-1]
        self.settings(path, said, known, f"a setting of {article} {name!r}")
        fallback = {s.name: s.default for s in known.values() if not s.required}
        for key in known:
            if key not in said:
                self.origins[f"{path}.{key}"] = f"default of {name}"
        return {**fallback, **_as_declared(said, known)}, fallback

    def settings(
        self, path: str, said: Mapping[str, Any], known: Mapping[str, Setting], kind: str
    ) -> None:
        """Check the names, types and ranges of a part's settings."""
        where = self.recipe.where
        for key, value in said.items():
            if key not in known:
                self.faults.append(UnknownNameError(f"{where}: {path}", key, kind, known))
                continue
            setting = known[key]
            reason = _misfit(setting, value)
            if reason:
                self.fault(f"{path}.{key}", reason)
            elif setting.choices and value not in setting.choices:
                self.faults.append(
                    UnknownNameError(
                        f"{where}: {path}.{key}", str(value), f"a value of {key!r}", setting.choices
                    )
                )
        missing = [s.name for s in known.values() if s.required and s.name not in said]
        if missing:
            self.fault(path, f"missing: {', '.join(missing)}")

    def phases(
        self,
        at: str,
        stage: Stage,
        before: ResolvedStage | None,
        batch_size: int,
        network: Mapping[str, Any],
    ) -> tuple[ResolvedPhase, ...]:
        if stage.phases is not None and stage.sequence_length is not None:
            self.fault(f"{at}.phases", "expected sequence_length or phases, got both")
        longest = network.get("max_sequence_length")
        if stage.phases is not None:
            total = sum(phase.share for phase in stage.phases)
            phases = tuple(
                ResolvedPhase(
                    phase.sequence_length, phase.share / total, phase.batch_size or batch_size
                )
                for phase in stage.phases
            )
            for k, phase in enumerate(stage.phases):
                self.room(f"{at}.phases[{k}].sequence_length", phase.sequence_length, longest)
            return phases
        length = self.inherited(
            f"{at}.phases",
            stage.sequence_length,
            before and (before.sequence_length, before.name),
            min(defaults.SEQUENCE_LENGTH, longest or defaults.SEQUENCE_LENGTH),
        )
        if stage.sequence_length is not None:
            self.origins[f"{at}.phases"] = self.origins.get(f"{at}.sequence_length", "recipe")
            self.room(f"{at}.sequence_length", length, longest)
        return (ResolvedPhase(length, 1.0, batch_size),)

    def room(self, path: str, length: int, longest: Any) -> None:
        if isinstance(longest, int) and length > longest:
            self.fault(
                path,
                f"{length} tokens are longer than the position table of {self.recipe.family} "
                f"({longest}); shorten it, or give `size` as a mapping with max_sequence_length",
            )

    def budget(self, at: str, stage: Stage) -> ResolvedBudget:
        if stage.budget is None:
            unit, amount = defaults.STAGES[stage.stage].budget
            self.origins[f"{at}.budget"] = f"default for {stage.stage}"
            return ResolvedBudget(unit, amount)
        unit, amount = next(iter(stage.budget.model_dump(exclude_none=True).items()))
        return ResolvedBudget(unit, amount)

    def optimizer(self, at: str, stage: Stage) -> ResolvedOptimizer:
        default = defaults.STAGES[stage.stage].adamw
        said: dict[str, Any] = {}
        if stage.optimizer is not None and stage.optimizer.adamw is not None:
            said = stage.optimizer.adamw.model_dump(exclude_none=True)
        remedy = stage.remedies.layer_decay if stage.remedies else None
        if remedy is not None:
            if said.get("layer_decay", remedy) != remedy:
                self.fault(
                    f"{at}.remedies.layer_decay",
                    f"expected one layer_decay, got {remedy} here and {said['layer_decay']} in "
                    "the optimizer",
                )
            said["layer_decay"] = remedy
        for key in default:
            if key not in said:
                self.origins[f"{at}.optimizer.adamw.{key}"] = f"default for {stage.stage}"
        return ResolvedOptimizer("adamw", {**default, **said})

    def watch(self, path: str, said: Any, kind: str) -> dict[str, Any] | None:
        """`stop` or `select`, its metric checked; text has its held-out loss, rows have metrics."""
        if said is None:
            return None
        values = said.model_dump(exclude_none=True)
        labelled = kind == "finetune"
        for key, default in (
            ("metric", defaults.METRICS[-1] if labelled else "heldout_loss"),
            ("split", "dev" if labelled else "heldout"),
        ):
            if key not in type(said).model_fields:
                continue
            if key not in values:
                self.origins[f"{path}.{key}"] = f"default for {kind}"
                values[key] = default
            elif key == "metric" and labelled:
                self.metric(f"{path}.metric", values[key])
            elif values[key] != default:
                self.fault(
                    f"{path}.{key}", f"expected {default!r} in stage {kind}, got {values[key]!r}"
                )
        return values

    # Names

    def metric(self, path: str, name: str) -> None:
        if name not in gate.metric_names():
            self.faults.append(
                UnknownNameError(
                    f"{self.recipe.where}: {path}", name, "a metric", gate.metric_names()
                )
            )

    def compatible(self, at: str, objectives: Iterable[str], head: str | None) -> None:
        try:
            catalogue.check_compatible(
                self.recipe.family,
                list(objectives),
                head,
                self.folders,
                f"{self.recipe.where}: {at}",
            )
        except RecipeError as error:
            self.faults.append(error)

    def is_labelled(self, name: str) -> bool:
        facts = self.sources.get(name) if self.sources else None
        return bool(facts and facts.labelled)

    def source(self, path: str, name: str, labelled: bool | None) -> None:
        """Check that a source is known and of the right kind (None: either)."""
        if self.sources is None:
            return
        if name not in self.sources:
            self.faults.append(
                UnknownNameError(
                    f"{self.recipe.where}: {path}",
                    name,
                    "a source",
                    self.sources,
                    "`fourstage list sources` shows them; yours go into sources/ beside recipes/.",
                )
            )
            return
        facts = self.sources[name]
        if facts is None or labelled is None or facts.labelled == labelled:
            return
        if labelled:
            self.fault(path, f"{name!r} is a corpus: its source names no label field")
        else:
            self.fault(
                path,
                f"{name!r} is a dataset; only stage task reads a dataset's text. A second source "
                "on the same files without a label field is a corpus",
            )


def _as_declared(said: Mapping[str, Any], known: Mapping[str, Setting]) -> dict[str, Any]:
    """Known settings, whole numbers as floats where the file wants floats: 1 and 1.0 are one key."""
    return {
        name: float(value)
        if type(value) is int and "float" in known[name].types and "int" not in known[name].types
        else value
        for name, value in said.items()
        if name in known
    }


def _misfit(setting: Setting, value: Any) -> str:
    """What is wrong with the type or the range of a setting's value."""
    types = {
        "int": (int, "a whole number"),
        "float": ((int, float), "a number"),
        "str": (str, "text"),
        "bool": (bool, "true or false"),
        "Sequence": (list, "a list"),
        "list": (list, "a list"),
        "tuple": (list, "a list"),
        "Mapping": (dict, "a mapping"),
        "dict": (dict, "a mapping"),
    }
    wanted = [types[name] for name in setting.types if name in types]
    if not wanted:
        return ""
    fits = any(isinstance(value, kind) for kind, _ in wanted) and (
        "bool" in setting.types or not isinstance(value, bool)
    )
    if not fits:
        return f"expected {' or '.join(words for _, words in wanted)}, got {kind_of(value)}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if setting.is_share and not 0 <= value <= 1:
            return f"expected a share, 0 to 1, got {value}"
        if "float" not in setting.types and value < 0:
            return f"expected 0 or more, got {value}"
        if setting.is_count and value < 1:
            return f"expected 1 or more, got {value}"
    return ""


def with_seed(resolved: ResolvedRecipe, seed: int) -> ResolvedRecipe:
    """The same recipe at another seed; stages before `seeds_from` stay and are shared."""
    names = [stage.name for stage in resolved.stages]
    start = names.index(resolved.seeds_from) if resolved.seeds_from else 0
    stages = tuple(
        replace(stage, seed=seed) if stage.index >= start else stage for stage in resolved.stages
    )
    first = resolved.seed if start else seed
    return replace(resolved, seed=first, seeds=(seed,), stages=stages)
