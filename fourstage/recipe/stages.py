"""Resolves one stage from its own values, what it inherits, and the defaults of its kind.

Inherited from the stage before: network, tokenizer, sequence length, precision; objectives only
from one pre-training stage to the next, except those that the data cannot feed. Never inherited:
corpora, budget, optimizer, batch size, a head's auxiliary objectives. A stage with its own family
or size starts a new network, which the stages after it inherit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fourstage.errors import RecipeError, UnknownNameError
from fourstage.recipe import defaults
from fourstage.recipe.ledger import Ledger
from fourstage.recipe.mixture import resolve_mixture
from fourstage.recipe.networks import ResolvedNetwork, resolve_network
from fourstage.recipe.resolved import ResolvedStage, TrainingDraw
from fourstage.recipe.schema import STAGE_KINDS, Select, Stage, Stop, TrainingRows
from fourstage.recipe.starts import resolve_starts
from fourstage.recipe.tuning import (
    check_gradual_unfreezing,
    check_r_drop,
    check_reinitialise,
    resolve_remedy,
    resolve_tuning,
)
from fourstage.strict_yaml import kind_of, number_hint
from models import catalogue
from models.training.stage import Budget, Optimizer, Phase

# Keys that only some kinds of stage have.
KINDS_WITH: Mapping[str, tuple[str, ...]] = {
    "init": ("general",),
    **dict.fromkeys(("corpora", "alternate", "continuations"), ("general", "domain", "task")),
    **dict.fromkeys(("dataset", "mixture", "overlap", "training_rows", "head"), ("finetune",)),
    **dict.fromkeys(("reinitialise", "feature_based", "r_drop", "fgm"), ("finetune",)),
}
# Without effect where an objective trains the network itself.
_OF_GRADIENT_DESCENT = (
    "starts_from",
    "optimizer",
    "remedies",
    "reinitialise",
    "freeze",
    "gradual_unfreezing",
    "lora",
    "average",
    "stop",
    "select",
)


class StageResolution:
    """Resolves the stages of one recipe, in order.

    Args:
        ledger: Collects faults, notes and origins.
        network: The recipe's network, which the first stage trains unless it has its own.
        heads: The objectives whose heads come with a network trained elsewhere.
    """

    def __init__(self, ledger: Ledger, network: ResolvedNetwork, heads: Sequence[str] = ()):
        self.ledger = ledger
        self.network = network
        self.brought = heads
        self._heads: dict[str, set[str]] = {}  # by stage, the objectives whose heads exist after it
        self._networks: dict[str, ResolvedNetwork] = {}  # by stage

    def stage(
        self,
        i: int,
        stage: Stage,
        before: ResolvedStage | None,
        seed: int,
    ) -> ResolvedStage:
        """Resolve stage `i`, given the one before it."""
        name = self.ledger.names()[i]
        at = f"stages[{i}]"
        kind = stage.stage
        default = defaults.STAGES[kind]
        self._order(i, at)
        if stage.name is None:
            self.ledger.origins[f"{at}.name"] = "default"
        if stage.starts_network:
            self._start_network(at, stage, before)
        if kind == "finetune" and stage.refresh == "continue":
            self.ledger.fault(
                f"{at}.refresh",
                "'continue' trains on new documents, and stage finetune reads rows;"
                " expected on_change or never",
            )
        refresh = self.ledger.value(f"{at}.refresh", stage.refresh, default.refresh, kind)
        if stage.continuations is not None and refresh != "continue":
            self.ledger.fault(
                f"{at}.continuations", f"expected with refresh: continue, got refresh: {refresh}"
            )
        for key, kinds in KINDS_WITH.items():
            if kind not in kinds and getattr(stage, key) is not None:
                hint = (
                    "`corpora: {name: 1.0}` names the text of a dataset"
                    if key == "dataset"
                    else f"expected in {', '.join(kinds)}"
                )
                self.ledger.fault(f"{at}.{key}", f"stage {kind} has no {key!r}; {hint}")
        corpora = self._corpora(at, stage, before)
        objectives, weights, part_defaults = self._objectives(at, stage, before)
        alternate = self._alternate(at, stage, before, weights)
        head, head_settings, head_defaults = self._head(at, stage)
        if head:
            part_defaults[head] = head_defaults
        batch_size = self.ledger.value(
            f"{at}.batch_size", stage.batch_size, default.batch_size, kind
        )
        rates = (self.network.arguments.get("dropout"), head_settings.get("dropout"))
        check_r_drop(self.ledger, at, stage, *rates)
        check_reinitialise(self.ledger, at, stage, self.network)
        budget = self._budget(at, stage)
        check_gradual_unfreezing(self.ledger, at, stage, self.network, budget)
        phases = self._phases(at, stage, before, batch_size)
        micro_batches = self.ledger.value(f"{at}.micro_batches", stage.micro_batches, 1, kind)
        for phase in phases:
            size = phase.batch_size or batch_size
            if size % micro_batches:
                self.ledger.fault(
                    f"{at}.micro_batches",
                    f"expected a divisor of the batch size {size}, got {micro_batches}",
                )
        if objectives:
            sizes = {phase.batch_size or batch_size for phase in phases}
            self._check_memory(at, sizes, micro_batches, alternate)
        if objectives or head:
            self._compatible(at, objectives, head, alternate)
        if head:
            self._check_wide(at, stage, head, head_settings)
            if head_settings.get("shared_tokens"):
                self._check_shared_tokens(f"{at}.head.{head}.shared_tokens", stage)
            self._check_exclusive(f"{at}.head.{head}", head, head_settings, head_defaults)
            shortest = min(phase.sequence_length for phase in phases)
            self._check_targets(f"{at}.head.{head}", head, head_settings, shortest)
        trains_itself = self._trains_itself(at, stage, objectives)
        dataset = self._dataset(at, stage)
        if head and dataset:
            wanted = catalogue.answers_name(head, self.ledger.folders)
            self.ledger.answers(f"{at}.head", dataset, wanted, head)
            embeds = catalogue.literals("heads", head, self.ledger.folders).get("EMBEDS")
            shares = head_settings.get("shared_tokens") and wanted in ("label", "number")
            if embeds or shares:
                self.ledger.pairs(f"{at}.head", dataset, "shared_tokens" if shares else head)
        teachers = self._teachers(at, objectives)
        starts_from = resolve_starts(self.ledger, i, stage, self.network, self._networks)
        self._networks[name] = self.network
        kept = self._heads[before.name] if before and not stage.starts_network else ()
        self._heads[name] = {*objectives, *kept, *(self.brought if stage.init else ())}
        optimizer = self._optimizer(at, stage)
        goes_on = None if stage.starts_network else before
        rate = optimizer.settings["peak_learning_rate"]
        return ResolvedStage(
            index=i,
            name=name,
            kind=kind,
            family=self.network.family,
            network=self.network.arguments,
            corpora=corpora,
            dataset=dataset,
            mixture=resolve_mixture(self.ledger, at, stage, head, head_settings.get("prefix")),
            overlap=self.ledger.value(f"{at}.overlap", stage.overlap, "drop_from_train", kind)
            if kind == "finetune"
            else None,
            training_rows=self._training_rows(at, stage, seed),
            objectives=objectives,
            weights=weights,
            head=head,
            head_settings=head_settings,
            phases=phases,
            batch_size=batch_size,
            micro_batches=micro_batches,
            budget=budget,
            optimizer=optimizer,
            precision=self.ledger.inherited(
                f"{at}.precision",
                stage.precision,
                before and (before.precision, before.name),
                defaults.PRECISION,
            ),
            refresh=refresh,
            continuations=stage.continuations,
            seed=seed,
            part_defaults={"network": self.network.defaults, **part_defaults},
            alternate=alternate,
            starts_network=stage.starts_network,
            teachers=teachers,
            starts_from=starts_from,
            versions={
                part: said
                for part, said in (stage.starts_from or {}).items()
                if said in self.ledger.registered
            },
            init=stage.init,
            trains_itself=trains_itself,
            **self._watched(at, stage, head),
            **resolve_tuning(
                self.ledger, at, stage, goes_on is None, {*objectives, *(stage.head or ())}
            ),
            **resolve_remedy(self.ledger, at, stage, goes_on, rate),
        )

    def _order(self, i: int, at: str) -> None:
        stages, names = self.ledger.recipe.stages, self.ledger.names()
        if names[i] in names[:i]:
            first = names.index(names[i])
            self.ledger.fault(
                at,
                f"the name {names[i]!r} is taken by stages[{first}]; give this one a `name`",
            )
        here = STAGE_KINDS.index(stages[i].stage)
        if i and here < STAGE_KINDS.index(stages[i - 1].stage):
            self.ledger.fault(
                at,
                f"expected the order {', '.join(STAGE_KINDS)}; got {stages[i].stage} after "
                f"{stages[i - 1].stage}",
            )
        if i and stages[i].stage == stages[i - 1].stage and here >= STAGE_KINDS.index("task"):
            self.ledger.fault(at, f"expected one {stages[i].stage} stage, got a second")

    def _start_network(self, at: str, stage: Stage, before: ResolvedStage | None) -> None:
        """Start a network with random weights from the stage's own family and size."""
        if stage.family is None:
            self.ledger.origins[f"{at}.family"] = (
                f"inherited from stage {before.name}" if before else "recipe"
            )
        family = stage.family or self.network.family
        if stage.size is None:
            self.ledger.fault(
                at,
                "the key 'size' is missing: a stage with a family of its own starts a new network; "
                f"give the name of a size of {family}, or the network's arguments",
            )
        else:
            self.network = resolve_network(self.ledger, family, stage.size, f"{at}.size")

    def _corpora(self, at: str, stage: Stage, before: ResolvedStage | None) -> dict[str, float]:
        if stage.stage == "finetune" or stage.init is not None:
            return {}
        if stage.corpora is None:
            dataset = next((s.dataset for s in self.ledger.recipe.stages if s.dataset), None)
            if stage.stage == "task" and dataset:
                self.ledger.origins[f"{at}.corpora"] = "the text of the finetune dataset"
                return {dataset: 1.0}
            if stage.stage == "task":
                self.ledger.fault(
                    at, "the key 'corpora' is missing, and no finetune stage has a dataset"
                )
            else:
                self.ledger.fault(at, "the key 'corpora' is missing: {source: share of the tokens}")
            return {}
        total = sum(stage.corpora.values())
        if total <= 0:
            self.ledger.fault(
                f"{at}.corpora", f"expected shares with a sum above 0, got a sum of {total}"
            )
            return {}
        # The task stage may read a dataset's text, without its labels; so may triples be rows, and
        # captions that come with pictures.
        either = stage.stage == "task" or self._reads_triples(stage, before)
        sees = "regions" in catalogue.provided(self.network.family, self.ledger.folders)
        for name in stage.corpora:
            captions = sees and self.ledger.facts(name).region_dim > 0
            self.ledger.source(f"{at}.corpora", name, None if either or captions else False)
        return {name: share / total for name, share in sorted(stage.corpora.items()) if share > 0}

    def _reads_triples(self, stage: Stage, before: ResolvedStage | None) -> bool:
        """Whether a stage's texts are the triples of a knowledge graph."""
        named = stage.objectives or (before.objectives if before else {})
        known = catalogue.names("objectives", self.ledger.folders)
        return any(
            catalogue.literals("objectives", name, self.ledger.folders).get("READS_TRIPLES")
            for name in named
            if name in known
        )

    def _dataset(self, at: str, stage: Stage) -> str | None:
        if stage.stage != "finetune":
            return None
        if stage.dataset is None:
            self.ledger.fault(at, "the key 'dataset' is missing: the name of a labelled source")
            return None
        self.ledger.source(f"{at}.dataset", stage.dataset, labelled=True)
        return stage.dataset

    def _training_rows(self, at: str, stage: Stage, seed: int) -> TrainingDraw | None:
        said = stage.training_rows
        if said is None or stage.stage != "finetune":
            return None
        said = TrainingRows(number=said) if isinstance(said, int) else said
        place = f"{at}.training_rows"
        each = self.ledger.value(f"{place}.each_seed", said.each_seed, False, "finetune")
        if not each:
            return TrainingDraw(
                said.number, self.ledger.value(f"{place}.seed", said.seed, 0, "finetune")
            )
        if said.seed is not None:
            self.ledger.fault(f"{place}.seed", "expected seed or each_seed, got both")
        return TrainingDraw(said.number, seed, each_seed=True)

    def _objectives(
        self, at: str, stage: Stage, before: ResolvedStage | None
    ) -> tuple[dict[str, dict[str, Any]], dict[str, float], dict[str, dict[str, Any]]]:
        """Settings, weights and file defaults by objective, in the order of their names."""
        given = stage.objectives
        if stage.stage == "finetune":
            given = self._auxiliary(at, given or {})
        if stage.init is not None:  # what later stages go on with
            known = catalogue.names("objectives", self.ledger.folders)
            given = {head: {} for head in self.brought if head in known}
        if given is None:
            if before is None or (before.init and not before.objectives):
                known = ", ".join(catalogue.names("objectives", self.ledger.folders))
                self.ledger.fault(at, f"the key 'objectives' is missing. Known: {known}")
                return {}, {}, {}
            kept = {n: dict(s) for n, s in before.objectives.items() if self._feeds(n, stage)}
            self.ledger.origins[f"{at}.objectives"] = f"inherited from stage {before.name}"
            for name in before.objectives:
                if name not in kept:
                    self.ledger.notes.append(
                        f"{at}: {name!r} is not inherited from stage {before.name}: it needs text "
                        "that follows on, and rows stand alone"
                    )
            if before.objectives and not kept:
                self.ledger.fault(
                    at, "no objective of the stage before can learn from rows; give `objectives`"
                )
            weights = {name: before.weights[name] for name in kept}
            return kept, weights, {name: dict(before.part_defaults[name]) for name in kept}
        found: dict[str, dict[str, Any]] = {}
        weights: dict[str, float] = {}
        file_defaults: dict[str, dict[str, Any]] = {}
        for name, said in sorted(given.items()):
            path = f"{at}.objectives.{name}"
            weight = said.get("weight", 1.0)
            if isinstance(weight, bool) or not isinstance(weight, (int, float)) or weight < 0:
                hint = number_hint(weight, whole=False) if isinstance(weight, str) else ""
                self.ledger.fault(
                    f"{path}.weight", f"expected a number from 0, got {kind_of(weight)}{hint}"
                )
                weight = 1.0
            if "weight" not in said:
                self.ledger.origins[f"{path}.weight"] = "default"
            settings = {key: value for key, value in said.items() if key != "weight"}
            found[name], file_defaults[name] = self.ledger.part("objectives", name, path, settings)
            weights[name] = float(weight)
        if weights and not any(weights.values()):
            self.ledger.fault(f"{at}.objectives", "expected weights with a sum above 0, got 0")
        return found, weights, file_defaults

    def _auxiliary(self, at: str, given: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """The objectives beside a head that rows can feed."""
        known = catalogue.names("objectives", self.ledger.folders)
        for name in given:
            parts = (
                catalogue.literals("objectives", name, self.ledger.folders) if name in known else {}
            )
            reason = ""
            if parts.get("CHOOSES", 0) > 1:
                reason = "it needs text that follows on, and rows stand alone"
            elif parts.get("READS_CASE"):
                reason = "it reads the case of words, which rows are tokenised without"
            elif given[name].get("unit") in ("phrase", "entity"):
                reason = "rows are tokenised without names, so it can't find phrases or entities"
            if reason:
                self.ledger.fault(
                    f"{at}.objectives.{name}", f"not beside a head: {reason}; omit it"
                )
        return dict(given)

    def _alternate(
        self, at: str, stage: Stage, before: ResolvedStage | None, weights: Mapping[str, float]
    ) -> bool:
        """Whether objectives take turns; inherited together with them."""
        if stage.stage == "finetune":
            return False
        if stage.alternate is None and stage.objectives is None and before and before.alternate:
            self.ledger.origins[f"{at}.alternate"] = f"inherited from stage {before.name}"
            return True
        if stage.alternate:
            for name, weight in weights.items():
                if not weight:
                    self.ledger.fault(
                        f"{at}.objectives.{name}.weight",
                        "expected a number above 0: where objectives alternate it is a share of "
                        "the updates",
                    )
        return bool(stage.alternate)

    def _feeds(self, objective: str, stage: Stage) -> bool:
        """Whether a stage's data can feed an inherited objective.

        The task stage reads rows, each a separate text, so objectives that must choose segments
        from longer text cannot be fed.
        """
        literals = catalogue.literals("objectives", objective, self.ledger.folders)
        return stage.stage != "task" or literals.get("CHOOSES", 0) < 2

    def _head(self, at: str, stage: Stage) -> tuple[str | None, dict[str, Any], dict[str, Any]]:
        if stage.stage != "finetune":
            return None, {}, {}
        if not stage.head:
            known = ", ".join(catalogue.names("heads", self.ledger.folders))
            self.ledger.fault(at, f"the key 'head' is missing. Known: {known}")
            return None, {}, {}
        name, said = next(iter(stage.head.items()))
        settings, file_defaults = self.ledger.part("heads", name, f"{at}.head.{name}", said)
        return name, settings, file_defaults

    def _phases(
        self,
        at: str,
        stage: Stage,
        before: ResolvedStage | None,
        batch_size: int,
    ) -> tuple[Phase, ...]:
        if stage.phases is not None and stage.sequence_length is not None:
            self.ledger.fault(f"{at}.phases", "expected sequence_length or phases, got both")
        longest = self.network.arguments.get("max_sequence_length")
        if stage.phases is not None:
            total = sum(phase.share for phase in stage.phases)
            phases = tuple(
                Phase(phase.sequence_length, phase.share / total, phase.batch_size or batch_size)
                for phase in stage.phases
            )
            for k, phase in enumerate(stage.phases):
                self._room(f"{at}.phases[{k}].sequence_length", phase.sequence_length, longest)
            return phases
        length = self.ledger.inherited(
            f"{at}.phases",
            stage.sequence_length,
            before and (before.sequence_length, before.name),
            min(defaults.SEQUENCE_LENGTH, longest or defaults.SEQUENCE_LENGTH),
        )
        if stage.sequence_length is not None:
            self.ledger.origins[f"{at}.phases"] = self.ledger.origins.get(
                f"{at}.sequence_length", "recipe"
            )
        self._room(f"{at}.sequence_length", length, longest)
        return (Phase(length, 1.0, batch_size),)

    def _room(self, path: str, length: int, longest: object) -> None:
        if isinstance(longest, int) and length > longest:
            self.ledger.fault(
                path,
                f"{length} tokens are longer than the position table of {self.network.family} "
                f"({longest}); shorten it, or give `size` as a mapping with max_sequence_length",
            )

    def _budget(self, at: str, stage: Stage) -> Budget:
        if stage.init is not None:
            return Budget("steps", 0)
        if stage.budget is None:
            unit, amount = defaults.STAGES[stage.stage].budget
            self.ledger.origins[f"{at}.budget"] = f"default for {stage.stage}"
            return Budget(unit, amount)
        unit, amount = next(iter(stage.budget.model_dump(exclude_none=True).items()))
        return Budget(unit, amount)

    def _optimizer(self, at: str, stage: Stage) -> Optimizer:
        written = dict(stage.optimizer.model_dump(exclude_none=True) if stage.optimizer else {})
        name, said = next(iter(written.items()), ("adamw", {}))
        default = defaults.OPTIMIZERS.get(name) or defaults.STAGES[stage.stage].adamw
        for key in sorted(said.keys() - default.keys() - {"ratio"}):
            self.ledger.fault(
                f"{at}.optimizer.{name}.{key}",
                f"{name} has no such setting. Known: {', '.join(default)}",
            )
        remedy = stage.remedies.layer_decay if stage.remedies else None
        if remedy is not None:
            if said.get("layer_decay", remedy) != remedy:
                self.ledger.fault(
                    f"{at}.remedies.layer_decay",
                    f"expected one layer_decay, got {remedy} here and {said['layer_decay']} in "
                    "the optimizer",
                )
            said["layer_decay"] = remedy
        slanted = said.get("decay", default["decay"]) == "slanted_triangular"
        if slanted:
            default = {**default, **defaults.SLANTED}
        elif "ratio" in said:
            self.ledger.fault(
                f"{at}.optimizer.{name}.ratio", "only `decay: slanted_triangular` has a ratio"
            )
        for key in default:
            if key not in said:
                self.ledger.origins[f"{at}.optimizer.{name}.{key}"] = f"default for {stage.stage}"
        return Optimizer(name, {**default, **said})

    def _watched(self, at: str, stage: Stage, head: str | None) -> dict[str, Any]:
        """`stop` and `select`, which have one metric: they look at the same evaluations."""
        select = self._watch(f"{at}.select", stage.select, stage, head)
        chosen = select["metric"] if select and head else None
        stop = self._watch(f"{at}.stop", stage.stop, stage, head, chosen)
        if stop and chosen not in (None, stop["metric"]):
            self.ledger.fault(
                f"{at}.stop.metric",
                f"expected {chosen!r}, by which `select` keeps weights, got {stop['metric']!r};"
                " leave it out, or give both the same metric",
            )
        return {"stop": stop, "select": select}

    def _watch(
        self,
        path: str,
        said: Stop | Select | None,
        stage: Stage,
        head: str | None,
        metric: str | None = None,
    ) -> dict[str, Any] | None:
        """`stop` or `select` with its metric checked: held-out loss of text, metrics of rows.

        Without a metric it has `metric`, or else the usual one.
        """
        if said is None:
            return None
        values = said.model_dump(exclude_none=True)
        answers = catalogue.answers_of(head, self.ledger.folders) if head else None
        for key, default in (
            ("metric", metric or (answers.usual[-1] if answers else "heldout_loss")),
            ("split", "dev" if answers else "heldout"),
        ):
            if key not in type(said).model_fields:
                continue
            if key not in values:
                self.ledger.origins[f"{path}.{key}"] = f"default for {stage.stage}"
                values[key] = default
            elif key == "metric" and head:
                known = catalogue.metrics_of(head, self.ledger.folders)
                self.ledger.metric(f"{path}.metric", values[key], known, stage.dataset)
            elif values[key] != default:
                self.ledger.fault(
                    f"{path}.{key}",
                    f"expected {default!r} in stage {stage.stage}, got {values[key]!r}",
                )
        return values

    def _teachers(self, at: str, objectives: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
        """The earlier stage that each objective learns from, unless it is a folder."""
        found: dict[str, str] = {}
        for name, settings in objectives.items():
            said = settings.get(catalogue.TEACHER)
            if not isinstance(said, str):
                continue
            place = f"{at}.objectives.{name}.{catalogue.TEACHER}"
            if said not in self._heads:
                if not Path(said).is_dir():
                    self.ledger.faults.append(
                        UnknownNameError(
                            f"{self.ledger.recipe.where}: {place}",
                            said,
                            "an earlier stage of the recipe",
                            self._heads,
                            "The folder of a finished stage is allowed too; a registered version is"
                            " a stage by `init: models:/name@alias`.",
                        )
                    )
                continue
            literals = catalogue.literals("objectives", name, self.ledger.folders)
            for head in literals.get("TEACHER_HEADS", ()):
                if head not in self._heads[said]:
                    there = ", ".join(sorted(self._heads[said])) or "no objective"
                    self.ledger.fault(
                        place, f"expected a stage that was trained with {head}; {said} has {there}"
                    )
            found[name] = said
        return found

    def _compatible(
        self, at: str, objectives: Iterable[str], head: str | None, alternate: bool
    ) -> None:
        family, folders = self.network.family, self.ledger.folders
        where = f"{self.ledger.recipe.where}: {at}"
        try:
            if alternate:
                catalogue.check_turns(family, list(objectives), folders, where)
            else:
                catalogue.check_compatible(family, list(objectives), head, folders, where)
        except RecipeError as error:
            self.ledger.faults.append(error)

    def _check_wide(self, at: str, stage: Stage, head: str, settings: Mapping[str, Any]) -> None:
        """Refuse what a family that only counts lacks: a head that counts, a network."""
        family, folders = self.network.family, self.ledger.folders
        if not catalogue.literals("families", family, folders).get("COUNTS"):
            return
        for key in ("r_drop", "fgm"):
            if getattr(stage, key) is not None:
                self.ledger.fault(f"{at}.{key}", f"family {family!r} has no network; leave it out")
        could = catalogue.literals("heads", head, folders).get("WIDE")
        if could and not settings.get("wide"):
            self.ledger.fault(
                f"{at}.head.{head}.wide",
                f"expected true, got false: family {family!r} has no network, so nothing else"
                f" could tell rows apart. Write head: {{{head}: {{wide: true}}}}",
            )

    def _check_shared_tokens(self, place: str, stage: Stage) -> None:
        """Refuse to add vectors to a network that reads none, or that is not trained."""
        folders, need = self.ledger.folders, "added_vectors"
        if need not in catalogue.provided(self.network.family, folders):
            able = ", ".join(catalogue.providing(need, folders=folders))
            self.ledger.fault(
                place,
                f"expected false, got true: family {self.network.family!r} can't be told which"
                f" tokens two texts share. These can: {able}",
            )
        if stage.feature_based is not None:
            self.ledger.fault(
                place,
                "expected false with feature_based, got true: a frozen network does not learn what"
                " shared tokens mean; leave one of them out",
            )

    def _check_exclusive(
        self, place: str, head: str, settings: Mapping[str, Any], defaults: Mapping[str, Any]
    ) -> None:
        """Refuse settings of a head of which only one may be other than its default."""
        exclusive = catalogue.literals("heads", head, self.ledger.folders).get("EXCLUSIVE", {})
        for pair, reason in exclusive.items():
            if all(settings.get(key) != defaults.get(key) for key in pair):
                self.ledger.fault(place, f"expected {' or '.join(pair)}, got both: {reason}")

    def _check_targets(
        self, place: str, head: str, settings: Mapping[str, Any], shortest: int
    ) -> None:
        """Refuse what a head that writes would refuse once the stages before it are trained."""
        if not catalogue.literals("heads", head, self.ledger.folders).get("READS_TARGETS"):
            return
        length, least = settings.get("target_length"), settings.get("min_tokens")
        smoothing, rate = settings.get("label_smoothing"), settings.get("mask_rate")
        most = shortest - 5  # beside [CLS], [SEP] and some of the row's text
        if isinstance(length, int) and not 2 <= length <= most:
            self.ledger.fault(
                f"{place}.target_length",
                f"expected 2 to {most} tokens, got {length}; the stage's rows have {shortest}"
                " tokens, text and target together",
            )
        if isinstance(length, int) and isinstance(least, int) and least > length:
            self.ledger.fault(
                f"{place}.min_tokens", f"expected at most target_length, {length}, got {least}"
            )
        if smoothing == 1:
            self.ledger.fault(
                f"{place}.label_smoothing", f"expected a share below 1, got {smoothing}"
            )
        family = self.network.family
        if rate is not None and "modes" not in catalogue.provided(family, self.ledger.folders):
            able = ", ".join(catalogue.providing("modes", folders=self.ledger.folders))
            self.ledger.fault(
                f"{place}.mask_rate",
                f"family {family!r} fills in no blanks, which these do: {able}; leave it out",
            )

    def _trains_itself(self, at: str, stage: Stage, objectives: Iterable[str]) -> bool:
        """Whether an objective or the family trains; refuses settings of gradient descent then."""
        folders, family = self.ledger.folders, self.network.family
        by = [o for o in objectives if catalogue.literals("objectives", o, folders).get("TRAINS")]
        if catalogue.literals("families", family, folders).get("TRAINS"):
            by.append(family)
        for key in _OF_GRADIENT_DESCENT if by else ():
            if getattr(stage, key) is not None:
                self.ledger.fault(
                    f"{at}.{key}",
                    f"{by[0]} trains the network itself and has its own settings; leave it out",
                )
        phases = stage.phases or ()
        unread = {
            "phases": len(phases) > 1 or any(phase.batch_size is not None for phase in phases),
            "micro_batches": (stage.micro_batches or 1) > 1,
        }
        for key in (key for key, said in unread.items() if by and said):
            self.ledger.fault(
                f"{at}.{key}",
                f"{by[0]} trains the network itself, with one sequence_length and one batch_size"
                " throughout; leave it out",
            )
        return bool(by)

    def _check_memory(
        self, at: str, sizes: Collection[int], micro_batches: int, alternate: bool
    ) -> None:
        """Refuse batches that don't follow one another row by row, where memory is carried."""
        family = self.network.family
        remembers = "memory" in catalogue.provided(family, self.ledger.folders)
        if not remembers or not self.network.arguments.get("memory_length"):
            return
        if len(sizes) > 1 or micro_batches > 1 or alternate:
            self.ledger.fault(
                at,
                f"a {family} network carries memory from batch to batch, so expected one batch_size"
                " in all phases, micro_batches 1, and objectives that don't take turns; got"
                f" batch_size {', '.join(map(str, sorted(sizes)))}, micro_batches {micro_batches},"
                f" alternate {str(alternate).lower()}. Change these, or set size.memory_length: 0",
            )
