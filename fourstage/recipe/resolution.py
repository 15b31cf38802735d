"""Resolves a recipe: makes every value explicit, and refuses what cannot run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from fourstage.errors import RecipeError, UnknownNameError, listed, located
from fourstage.recipe import defaults, gate_rules
from fourstage.recipe.attention import resolve_attention
from fourstage.recipe.few_shot import resolve_few_shot
from fourstage.recipe.init_setting import Start, resolve_start
from fourstage.recipe.ledger import Ledger, SourceFacts
from fourstage.recipe.links import resolve_links
from fourstage.recipe.messages import raise_all
from fourstage.recipe.networks import ResolvedNetwork, resolve_network
from fourstage.recipe.paths import exclude_each_other, parse_path
from fourstage.recipe.prototypes import resolve_prototypes
from fourstage.recipe.resolved import (
    ResolvedRecipe,
    ResolvedStage,
    ResolvedTokenizer,
    ResolvedUnits,
    of_last_network,
)
from fourstage.recipe.schema import STAGE_KINDS, Recipe, WrittenTokenizer
from fourstage.recipe.search import FIXED, MOST_TRIALS, ResolvedSearch
from fourstage.recipe.stages import StageResolution
from fourstage.recipe.starts import ENTITIES
from fourstage.recipe.tuning import check_freeze, check_lora
from fourstage.recipe.word_in_context import resolve_polysemy, resolve_word_in_context
from fourstage.recipe.word_relations import resolve_word_map, resolve_word_relations
from fourstage.settings import search_folders
from models import catalogue
from models.answers.label import Label
from models.inputs.mask_token import check_mask
from models.inputs.spans import longest_text
from models.marks import is_mark
from models.metrics import OF_LIKELIHOOD
from models.protocols import Answers


def resolve(
    recipe: Recipe,
    sources: Mapping[str, SourceFacts | None] | None = None,
    folders: Sequence[Path] | None = None,
    seed: int | None = None,
    registered: Mapping[str, Path] | None = None,
) -> ResolvedRecipe:
    """Make every value explicit and refuse what cannot run, before any work.

    Args:
        recipe: A recipe from `load_recipe`.
        sources: Every known source by name, with facts about those the recipe uses; None leaves the
            names of sources unchecked.
        folders: Project folders searched before the built-in ones; by default those of the recipe's
            file.
        seed: A seed instead of the recipe's; if it has several, for the stages that differ by seed.
        registered: Folders of the registered versions that it starts from, by address.

    Raises:
        RecipeError: The recipe is invalid; the message lists every error, one per line.
    """
    folders = search_folders(recipe.path) if folders is None else folders
    return _Resolution(Ledger(recipe, sources, folders, registered or {})).resolved(seed)


class _Resolution:
    """Resolves what applies to the whole recipe."""

    def __init__(self, ledger: Ledger):
        self.ledger = ledger

    def resolved(self, seed: int | None) -> ResolvedRecipe:
        recipe = self.ledger.recipe
        start = resolve_start(self.ledger)
        network = start.network if start else self._network()
        first, seeds, seeds_from = self._seeds(seed)
        names = self.ledger.names()
        resolution = StageResolution(self.ledger, network, start.heads if start else ())
        stages: list[ResolvedStage] = []
        before: ResolvedStage | None = None
        current = first
        for i, stage in enumerate(recipe.stages):
            if seeds_from == names[i]:
                current = seeds[0]
            before = resolution.stage(i, stage, before, current)
            stages.append(before)
        finetune = next((stage for stage in stages if stage.kind == "finetune"), None)
        self._tasks(stages)
        shared = [stage for stage in stages if recipe.stages[stage.index].tokenizer is None]
        stages = [self._with_tokenizer(stage, stages) for stage in stages]
        tokenizer = (
            self._brought(start.tokenizer, stages)
            if start
            else self._tokenizer(recipe.tokenizer, shared, "tokenizer")
        )
        self._sentinels(tokenizer, stages)
        self._named_weights(tokenizer, stages)
        if start:
            self._masks(start, stages)
        units = self._units(stages)
        metrics, split, slices, forgetting_on = self._evaluation(finetune)
        probes = self._probes()
        few_shot = resolve_few_shot(self.ledger, stages, start.heads if start else ())
        prototypes = resolve_prototypes(self.ledger, stages)
        links = resolve_links(self.ledger, stages)
        word_relations = resolve_word_relations(self.ledger, stages, tokenizer.scheme)
        word_in_context = resolve_word_in_context(self.ledger, stages)
        polysemy = resolve_polysemy(self.ledger, stages)
        word_map = resolve_word_map(self.ledger, stages, tokenizer.scheme)
        attention = resolve_attention(self.ledger, stages)
        search = self._search(finetune, metrics)
        model, require = self._promotion(finetune, tokenizer.scheme, metrics, slices, forgetting_on)
        self._pictures(stages)
        for i, name in enumerate(recipe.decontaminate or ()):
            self.ledger.source(f"decontaminate[{i}]", name, labelled=True)
        raise_all(self.ledger.faults)
        return ResolvedRecipe(
            name=recipe.name,
            path=recipe.path,
            where=recipe.where,
            family=recipe.family,
            size=recipe.size if isinstance(recipe.size, str) else None,
            network=network.arguments,
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
            probes=probes,
            few_shot=few_shot,
            prototypes=prototypes,
            links=links,
            word_relations=word_relations,
            word_in_context=word_in_context,
            polysemy=polysemy,
            word_map=word_map,
            attention=attention,
            search=search,
            measured_by=self._measured_by(stages, start.heads if start else ()),
            model=model,
            require=require,
            notes=tuple(self.ledger.notes),
            origins=self.ledger.origins,
            units=units,
            start=start.folder if start else None,
            seeds_together=recipe.seeds and recipe.seeds.together,
            approve=recipe.promote and recipe.promote.approve,
            gate_split=(recipe.promote and recipe.promote.split) or "dev",
        )

    def _measured_by(self, stages: Sequence[ResolvedStage], heads: Iterable[str]) -> str | None:
        """The first measurable objective, the last network's if it has one.

        It is one for all stages, so that they can be compared.
        """
        named = (name for s in (*of_last_network(stages), *stages) for name in s.objectives)
        return catalogue.measured_by(chain(named, heads), self.ledger.folders)

    def _network(self) -> ResolvedNetwork:
        """The network that the recipe describes, with random weights."""
        recipe = self.ledger.recipe
        if recipe.size is None:
            self.ledger.fault("size", "the key is missing: the name of a size, or a mapping")
            return ResolvedNetwork(recipe.family, {}, {})
        return resolve_network(self.ledger, recipe.family, recipe.size, "size")

    def _seeds(self, seed: int | None) -> tuple[int, tuple[int, ...], str | None]:
        """The seed of the shared stages, all seeds, and the first stage that differs by seed."""
        recipe = self.ledger.recipe
        if recipe.seed is not None and recipe.seeds is not None:
            self.ledger.fault("seeds", "expected seed or seeds, got both")
        if recipe.seeds is None:
            if recipe.seed is None:
                self.ledger.origins["seed"] = "default"
            value = defaults.SEED if recipe.seed is None else recipe.seed
            value = value if seed is None else seed
            return value, (value,), None
        values, start = recipe.seeds.values, recipe.seeds.from_
        if "from_" not in recipe.seeds.model_fields_set:
            self.ledger.origins["seeds.from"] = "default"
        if len(set(values)) < len(values):
            self.ledger.fault("seeds.values", "expected different seeds, got one twice")
        names = self.ledger.names()
        if start not in names:
            self.ledger.faults.append(
                UnknownNameError(f"{recipe.where}: seeds.from", start, "the name of a stage", names)
            )
        together = recipe.seeds.together or len(values)
        place = values.index(seed) if seed in values else 0
        first = values[place // together * together]
        return first, values if seed is None else (seed,), start

    def _with_tokenizer(
        self, stage: ResolvedStage, stages: Sequence[ResolvedStage]
    ) -> ResolvedStage:
        """A stage with its own vocabulary, where it has one."""
        said, at = self.ledger.recipe.stages[stage.index].tokenizer, f"stages[{stage.index}]"
        if said is None:
            return stage
        behind = stages[stage.index + 1 :]
        if not (behind and behind[0].starts_network) or (stage.index and not stage.starts_network):
            self.ledger.fault(
                f"{at}.tokenizer",
                "a vocabulary of its own is for a stage with a network of its own that the next"
                " stage does not go on with; give both a family and a size, or leave it out",
            )
        others = {
            n for each in stages if each is not stage for n in (*each.corpora, *each.datasets)
        }
        evaluate = self.ledger.evaluate
        others |= {*(evaluate.probes or ()), *(evaluate.prototypes or ())}
        others |= {*(evaluate.forgetting_on or ())}
        for name in (name for name in stage.corpora if name in others):
            self.ledger.fault(
                f"{at}.corpora",
                f"{name} is read with another vocabulary, too, by another stage or by evaluate;"
                " give this stage a source of its own",
            )
        for each in behind:
            uses = {
                f"objectives.{n}.{catalogue.TEACHER}": name for n, name in each.teachers.items()
            }
            starts = {f"starts_from.{part}": name for part, name in each.starts_from.items()}
            starts.pop(f"starts_from.{ENTITIES}", None)
            for where in (w for w, name in (uses | starts).items() if name == stage.name):
                self.ledger.fault(
                    f"stages[{each.index}].{where}",
                    f"stage {stage.name} reads with a vocabulary of its own; the same token has to"
                    " have the same number in both networks",
                )
        return replace(stage, tokenizer=self._tokenizer(said, [stage], f"{at}.tokenizer"))

    def _tokenizer(
        self, said: WrittenTokenizer | None, stages: Sequence[ResolvedStage], at: str
    ) -> ResolvedTokenizer:
        scheme = said.scheme if said and said.scheme else defaults.SCHEME
        facts = self._scheme(scheme)
        size = said.vocabulary_size if said else None
        lowercase = said.lowercase if said else None
        for key, value in (
            ("scheme", said and said.scheme),
            ("vocabulary_size", size),
            ("lowercase", lowercase),
        ):
            if value is None:
                self.ledger.origins[f"{at}.{key}"] = "default"
        if said and said.add_words:
            self.ledger.fault(
                f"{at}.add_words", "the vocabulary is learned here; ask for a larger one"
            )
        size = size or defaults.VOCABULARY_SIZE
        if facts["KEEPS_CASE"] and lowercase:
            self.ledger.fault(
                f"{at}.lowercase",
                f"{scheme} keeps case and accents; leave it out, or say false",
            )
        sentinels = (said.sentinels if said else None) or 0
        if size - sentinels < (smallest := facts.get("SMALLEST", 0)):
            beside = f" beside {sentinels} sentinels" if sentinels else ""
            self.ledger.fault(
                f"{at}.vocabulary_size",
                f"{scheme} has {smallest} ids or more{beside}; got {size}",
            )
        return ResolvedTokenizer(
            scheme,
            size,
            not facts["KEEPS_CASE"] if lowercase is None else lowercase,
            self._learn_from(said, stages, at),
            sentinels=sentinels,
            minimum_count=self._minimum_count(said, scheme, at),
            marks=self._marks(said, scheme, at),
            segmenter=self._segmenter(said, scheme, at),
        )

    def _minimum_count(self, said: WrittenTokenizer | None, scheme: str, at: str) -> int:
        """Smallest count of a word of the vocabulary; 0 for a scheme without this setting."""
        usual = self._scheme(scheme).get("MINIMUM_COUNT", 0)
        if said is None or said.minimum_count is None:
            self.ledger.origins[f"{at}.minimum_count"] = "default"
            return usual
        if not usual:
            self._lacking(scheme, "MINIMUM_COUNT", f"{at}.minimum_count")
        return said.minimum_count

    def _segmenter(self, said: WrittenTokenizer | None, scheme: str, at: str) -> str | None:
        """Who cuts Chinese text into the words of the vocabulary; None: nobody."""
        if said is None or said.segmenter is None:
            return None
        if "SEGMENTED" not in self._scheme(scheme):
            self._lacking(scheme, "SEGMENTED", f"{at}.segmenter")
        return said.segmenter

    def _lacking(self, scheme: str, literal: str, place: str) -> None:
        """Refuse a setting that the file of the tokenizer's scheme does not name."""
        having = ", ".join(catalogue.saying("tokenizers", literal))
        self.ledger.fault(place, f"{scheme} has no such setting; schemes with it: {having}")

    def _marks(self, said: WrittenTokenizer | None, scheme: str, at: str) -> tuple[str, ...]:
        """Strings of a text that are tokens of their own."""
        if said is None or said.marks is None:
            return ()
        special = self._scheme(scheme).get("SPECIAL_TOKENS", ())
        if "MARKS" not in self._scheme(scheme):
            self._lacking(scheme, "MARKS", f"{at}.marks")
        for i, mark in enumerate(said.marks):
            if not is_mark(mark):
                wrong = (
                    "expected capitals in brackets, such as [HD]; others could be words of a text"
                )
            elif mark in special:
                wrong = "the name of a special token; choose another"
            elif mark in said.marks[:i]:
                wrong = "it is there already; a mark before and behind a word is named once"
            else:
                continue
            self.ledger.fault(f"{at}.marks[{i}]", f"{mark[:40]!r}: {wrong}")
        return said.marks

    def _sentinels(self, tokenizer: ResolvedTokenizer, stages: Sequence[ResolvedStage]) -> None:
        """Check that there is a sentinel for each span that an objective hides in a row."""
        if self.ledger.faults:  # a setting may be of another type
            return
        lengths = [stage.sequence_length for stage in stages if stage.head is None]
        shortest = min(lengths, default=0)  # at which all stages' held-out loss is measured
        for stage in stages:
            length = max(phase.sequence_length for phase in stage.phases)
            sentinels = (stage.tokenizer or tokenizer).sentinels
            for name, settings in stage.objectives.items():
                parts = catalogue.literals("objectives", name, self.ledger.folders)
                if "HIDES_SPANS" not in parts:
                    continue
                # A stage that is selected or stopped is measured as it trains.
                own = length if stage.select or stage.stop else shortest
                for rows, hides, why in (
                    (length, settings, ""),
                    (own, settings | parts.get("MEASURED", {}), ", as held-out text is measured,"),
                ):
                    rate, mean_length = (hides[each] for each in parts["HIDES_SPANS"])
                    needed = longest_text(rows - 2, rate, mean_length).spans
                    if needed > sentinels:
                        self.ledger.fault(
                            f"stages[{stage.index}].objectives.{name}",
                            f"a row of {rows} tokens has{why} {needed} hidden spans, but the"
                            f" tokenizer has {sentinels} sentinels; say"
                            f" `tokenizer: {{sentinels: {needed}}}` or more, or shorten the rows",
                        )
                        break

    def _masks(self, start: Start, stages: Sequence[ResolvedStage]) -> None:
        """Check that a tokenizer from elsewhere has the [MASK] that objectives hide tokens behind.

        One that is learned here always has.
        """
        folders, measured = self.ledger.folders, self._measured_by(stages, start.heads)
        for stage in (s for s in stages if s.tokenizer is None and s.init is None):
            watched = catalogue.measured_by(stage.objectives, folders)
            for name, settings in stage.objectives.items():
                parts = catalogue.literals("objectives", name, folders)
                asked = [settings]
                if name == measured or (name == watched and (stage.select or stage.stop)):
                    # Held-out text is measured with the defaults, whatever is trained.
                    asked.append({**stage.part_defaults[name], **parts.get("MEASURED", {})})
                needs = parts.get("NEEDS_MASK", ())
                if any(each.get(setting) for each in asked for setting in needs):
                    at = f"{self.ledger.recipe.where}: stages[{stage.index}].objectives.{name}"
                    try:
                        check_mask(start.special, at)
                    except RecipeError as error:
                        self.ledger.faults.append(error)

    def _named_weights(self, tokenizer: ResolvedTokenizer, stages: Sequence[ResolvedStage]) -> None:
        """Check that a stage has the weights that it names, before an earlier one is trained."""
        for stage in () if self.ledger.faults else stages:
            with located(f"{self.ledger.recipe.where}: stages[{stage.index}]"):
                pieces = (stage.tokenizer or tokenizer).vocabulary_size
                check_freeze(self.ledger, stage, pieces)
                check_lora(self.ledger, stage, pieces)

    def _scheme(self, name: str) -> dict[str, Any]:
        """What the file of a tokenizer's scheme says of it."""
        return catalogue.literals("tokenizers", name)

    def _brought(
        self, tokenizer: ResolvedTokenizer, stages: Sequence[ResolvedStage]
    ) -> ResolvedTokenizer:
        """The tokenizer that comes with a network, and the text from which words are added."""
        said = self.ledger.recipe.tokenizer
        if said is None or said.add_words is None:
            return tokenizer
        if not self._scheme(tokenizer.scheme)["ADDS_WORDS"]:
            able = catalogue.saying("tokenizers", "ADDS_WORDS")
            self.ledger.fault(
                "tokenizer.add_words",
                f"{tokenizer.scheme}, the scheme of `init`, takes no more words. Schemes that do:"
                f" {', '.join(able)}",
            )
        return replace(
            tokenizer,
            learn_from=self._learn_from(said, stages, "tokenizer"),
            add_words=said.add_words,
        )

    def _learn_from(
        self, said: WrittenTokenizer | None, stages: Sequence[ResolvedStage], at: str
    ) -> tuple[str, ...]:
        """Names of the texts from which the vocabulary is learned."""
        if said is not None and said.learn_from is not None:
            for i, name in enumerate(said.learn_from):
                self.ledger.source(f"{at}.learn_from[{i}]", name, labelled=None)
            return tuple(dict.fromkeys(said.learn_from))
        origin = "the corpora of all stages"
        dataset = next((stage.dataset for stage in stages if stage.dataset), None)
        names = dict.fromkeys(name for stage in stages for name in stage.corpora)
        found = tuple(n for n in names if n != dataset and not self.ledger.facts(n).labelled)
        if not found and dataset:
            origin = "the dataset, for no stage has a corpus"
            found = (dataset,)
        elif not found:
            origin = "the datasets whose text the stages read"
            found = tuple(names)
        self.ledger.origins[f"{at}.learn_from"] = origin
        return found

    def _tasks(self, stages: Sequence[ResolvedStage]) -> None:
        """Check that a network with task ids has one for each objective that takes turns."""
        tasks: dict[str, None] = {}
        for stage in stages:
            if stage.starts_network:
                tasks = {}
            if stage.alternate:
                turns = catalogue.turns(list(stage.objectives), self.ledger.folders)
                tasks |= dict.fromkeys(turns)
            rows = stage.network.get("num_tasks")
            if isinstance(rows, int) and 0 < rows < len(tasks):
                self.ledger.fault(
                    "size",
                    f"num_tasks: {rows}, but {len(tasks)} objectives take turns:"
                    f" {', '.join(tasks)}; give `size` as a mapping with num_tasks",
                )
                return

    def _units(self, stages: Sequence[ResolvedStage]) -> ResolvedUnits:
        """Segmenter and gazetteer; a stage that masks phrases or entities needs a gazetteer."""
        said = self.ledger.recipe.units
        units = ResolvedUnits(
            said and said.segmenter, said and said.gazetteer, said and said.entities
        )
        self._entities(units, stages)
        for stage in stages:
            for name, settings in stage.objectives.items():
                if settings.get("unit") in ("phrase", "entity") and not units.gazetteer:
                    self.ledger.fault(
                        f"stages[{stage.index}].objectives.{name}.unit",
                        f"{settings['unit']!r} needs a file of names: `units: {{gazetteer: FILE}}`",
                    )
        return units

    def _entities(self, units: ResolvedUnits, stages: Sequence[ResolvedStage]) -> None:
        """Check that names are linked where, and only where, a table of their entities is read."""
        graphs = {stage.starts_from[ENTITIES] for stage in stages if ENTITIES in stage.starts_from}
        if units.entities and len(graphs) != 1:
            self.ledger.fault(
                "units.entities",
                "expected one stage of a knowledge graph that a table of entities starts from, got"
                f" {len(graphs)}; say `starts_from: {{entities: STAGE}}` in the stage that reads"
                " entities",
            )
        if units.entities:
            return
        for stage in stages:
            needing = [
                f"objectives.{name}"
                for name in stage.objectives
                if ENTITIES in catalogue.literals("objectives", name, self.ledger.folders)["NEEDS"]
            ]
            needing += [f"starts_from.{ENTITIES}"] if ENTITIES in stage.starts_from else []
            for where in needing:
                self.ledger.fault(
                    f"stages[{stage.index}].{where}",
                    "nothing says which entities a text names; say `units: {entities: FILE}`",
                )

    def _evaluation(
        self, finetune: ResolvedStage | None
    ) -> tuple[tuple[str, ...], str, tuple[str, ...], tuple[str, ...]]:
        said = self.ledger.evaluate
        scored = (
            said.probes or said.few_shot or said.prototypes or said.links or said.word_in_context
        )
        needs_labels = ["metrics", "slices", *([] if scored else ["split"])]
        for key in needs_labels if finetune is None else ():
            if getattr(said, key) is not None:
                self.ledger.fault(
                    f"evaluate.{key}", "there is no finetune stage whose rows could be measured"
                )
        metrics = said.metrics
        answers = self._answers(finetune)
        if metrics is None:
            self.ledger.origins["evaluate.metrics"] = "default"
            metrics = answers.usual if answers else ()
        elif answers:
            for i, name in enumerate(metrics):
                self._check_metric(f"evaluate.metrics[{i}]", name, finetune)
        if said.split is None:
            self.ledger.origins["evaluate.split"] = "default"
        for i, name in enumerate(said.slices or ()):
            if name not in gate_rules.slice_names():
                self.ledger.faults.append(
                    UnknownNameError(
                        f"{self.ledger.recipe.where}: evaluate.slices[{i}]",
                        name,
                        "a slice",
                        gate_rules.slice_names(),
                    )
                )
        for i, name in enumerate(said.forgetting_on or ()):
            self.ledger.source(f"evaluate.forgetting_on[{i}]", name, labelled=False)
        return (
            tuple(dict.fromkeys(metrics)),
            said.split or "test",
            said.slices or (),
            said.forgetting_on or (),
        )

    def _search(
        self, finetune: ResolvedStage | None, metrics: tuple[str, ...]
    ) -> ResolvedSearch | None:
        """What is tried in the finetune stage. Its places are checked as each is tried."""
        said = self.ledger.recipe.search
        if said is None:
            return None
        answers = self._answers(finetune)
        if finetune is None or answers is None:
            self.ledger.fault("search", "there is no finetune stage whose settings could be tried")
            return None
        if said.metric is None:
            self.ledger.origins["search.metric"] = "default"
        else:
            self._check_metric("search.metric", said.metric, finetune)
        search_metric = said.metric or metrics[0]
        for place in said.grid or {}:
            if place.partition(".")[0] in FIXED:
                self.ledger.fault(
                    f"search.grid: {place}",
                    f"expected a setting of stage {finetune.name}, such as batch_size or"
                    " optimizer.adamw.peak_learning_rate; to compare stages, `fourstage compare`"
                    " takes several recipes",
                )
            if place.endswith(".target_length") and search_metric in OF_LIKELIHOOD:
                self.ledger.fault(
                    f"search.grid: {place}",
                    f"{search_metric} measures only the part of each target that is read, so it"
                    " can't choose how long that is; take a metric of texts, such as chrf",
                )
        places = {place: parse_path(place, "search.grid") for place in said.grid or {}}
        for place, other in combinations(places, 2):
            if exclude_each_other(places[place], places[other]):
                self.ledger.fault(
                    f"search.grid: {place}", f"expected one of it and {other}, which replaces it"
                )
        if said.seeds is None:
            self.ledger.origins["search.seeds"] = "default"
        for place, values in (*(said.grid or {}).items(), ("seeds", said.seeds or ())):
            if any(value in values[:i] for i, value in enumerate(values)):
                self.ledger.fault(f"search: {place}", "expected different values, got one twice")
        seeds = self.ledger.recipe.seeds
        own = seeds.values if seeds else (finetune.seed,)
        search = ResolvedSearch(said.grid or {}, search_metric, said.seeds or own, said.folds)
        if search.trials > MOST_TRIALS:
            self.ledger.fault(
                "search", f"expected {MOST_TRIALS:,} trials or fewer, got {search.trials:,}"
            )
        return search

    def _answers(self, finetune: ResolvedStage | None) -> Answers | None:
        """What its head answers; None where there is none, or no head is named."""
        head = finetune and finetune.head
        return catalogue.answers_of(head, self.ledger.folders) if head else None

    def _metrics(self, finetune: ResolvedStage | None) -> tuple[str, ...]:
        """The metrics of its head's rows; none where no head is named."""
        head = finetune and finetune.head
        return catalogue.metrics_of(head, self.ledger.folders) if head else ()

    def _check_metric(self, path: str, name: str, finetune: ResolvedStage | None) -> None:
        dataset = finetune and finetune.dataset
        self.ledger.metric(path, name, self._metrics(finetune), dataset)

    def _is_known_everywhere(self, finetune: ResolvedStage | None) -> bool:
        """Whether its answers are built in: a gate may decide where no project folder is."""
        assert finetune is not None
        assert finetune.head is not None
        name = catalogue.answers_name(finetune.head, self.ledger.folders)
        return name in catalogue.names("answers")

    def _pictures(self, stages: Sequence[ResolvedStage]) -> None:
        """Check that what sees reads regions of its width, and has some; note a blind network."""
        for stage in stages:
            read = [*stage.corpora, *([stage.dataset] if stage.dataset else [])]
            pictured = [name for name in read if self.ledger.facts(name).region_dim]
            for name in pictured:
                self._picture(stage, name, self.ledger.facts(name).region_dim)
            blind = [name for name in stage.corpora if name not in pictured]
            for objective in stage.objectives if self.ledger.sources is not None else ():
                said = catalogue.literals("objectives", objective, self.ledger.folders)
                where = f"stages[{stage.index}].objectives.{objective}"
                captions, learned = (
                    stage.objectives[objective].get(said.get(literal, ""))
                    for literal in ("PAIRS_CAPTIONS", "LEARNS_CLASSES")
                )
                if said.get("READS_CASE") and stage.corpora and not blind and self._sees(stage):
                    self.ledger.fault(
                        where,
                        "it reads the case of words, which captions are tokenised without; name a"
                        " text among the corpora of the stage, or omit it",
                    )
                elif "regions" in said["NEEDS"] and not pictured:
                    self.ledger.fault(
                        where,
                        "it predicts something of pictures, but no source of the stage has any;"
                        " name a dataset with pictures among its corpora",
                    )
                elif "regions" in said["NEEDS"] and said["CHOOSES"] == 2 and blind:
                    self.ledger.fault(
                        where,
                        f"it chooses a picture for each text, but {listed(blind, 5)}"
                        f" {'has' if len(blind) == 1 else 'have'} none;"
                        " name only datasets with pictures among the corpora of the stage",
                    )
                elif (isinstance(captions, int) and captions > 1) and (
                    asking := [name for name in stage.corpora if self.ledger.facts(name).asks]
                ):
                    self.ledger.fault(
                        where,
                        "its rows have two captions of one picture, but a text of"
                        f" {listed(asking, 5)} may be a question or false of its picture; name only"
                        " datasets whose texts are all true of their pictures (`where`) among the"
                        " corpora of the stage",
                    )
                elif learned:
                    self._classes(f"{where}.{said['LEARNS_CLASSES']}", learned, pictured)
                elif "ASKS" in said and not any(self.ledger.facts(n).asks for n in stage.corpora):
                    self.ledger.fault(
                        where,
                        "it asks questions about pictures, but no source among the corpora of the"
                        " stage has answers; name a dataset with pictures whose rows have labels"
                        " (`answers: label`), and let more than one label through its `where`",
                    )

    def _classes(self, where: str, learned: object, pictured: Sequence[str]) -> None:
        """Check that the pictures of a stage have the classes that are learned of a detector."""
        for name in pictured:
            classes = self.ledger.facts(name).classes
            if isinstance(learned, list | tuple) and tuple(learned) == classes[: len(learned)]:
                continue
            kinds = " and ".join(
                f"{number} {kind}"
                for number, kind in zip(classes, ("object classes", "attributes"), strict=False)
            )
            self.ledger.fault(
                where,
                f"it learns {learned} classes, of objects and of attributes, that a detector"
                f" gives each region; the pictures of {name} have {kinds or 'none'}; give"
                " the numbers of the source (its pictures.object_classes and attribute_classes),"
                " or leave it out, to learn the shares with which features begin",
            )

    def _picture(self, stage: ResolvedStage, name: str, width: int) -> None:
        """The same of one source of a stage, whose regions have `width` numbers."""
        if not self._sees(stage):
            self.ledger.notes.append(
                f"the rows of {name} have pictures, which family {stage.family} does"
                " not see: it reads their texts alone"
            )
            return
        reads = stage.network.get("region_dim")
        if isinstance(reads, int) and reads != width:
            key = "dataset" if name == stage.dataset else "corpora"
            self.ledger.fault(
                f"stages[{stage.index}].{key}",
                f"expected regions of {reads} numbers, which is the network's region_dim, got"
                f" {name}, whose regions have {width}; give `size` as a mapping with"
                f" region_dim: {width}",
            )

    def _sees(self, stage: ResolvedStage) -> bool:
        """Whether a stage's network reads pictures."""
        return "regions" in catalogue.provided(stage.family, self.ledger.folders)

    def _probes(self) -> dict[str, str]:
        probes = self.ledger.evaluate.probes or {}
        for dataset, metric in probes.items():
            self.ledger.source("evaluate.probes", dataset, labelled=True)
            self.ledger.answers("evaluate.probes", dataset, "label", "a probe")
            self.ledger.metric(f"evaluate.probes.{dataset}", metric, Label.metrics)
        return dict(probes)

    def _promotion(
        self,
        finetune: ResolvedStage | None,
        scheme: str,
        metrics: tuple[str, ...],
        slices: tuple[str, ...],
        forgetting_on: tuple[str, ...],
    ) -> tuple[str | None, dict[str, dict[str, Any]]]:
        said = self.ledger.recipe.promote
        if said is None:
            return None, {}
        if finetune is None:
            self.ledger.fault("promote", "there is no finetune stage whose model could be promoted")
        answers = self._answers(finetune)
        known = self._metrics(finetune)
        if answers and not (answers.is_served and self._is_known_everywhere(finetune)):
            self.ledger.fault(
                "promote",
                f"a model with head {finetune and finetune.head} can't be served and judged yet;"
                " leave promote out",
            )
        if finetune and self.ledger.facts(finetune.dataset).detected and self._sees(finetune):
            self.ledger.fault(
                "promote",
                f"a model of family {finetune.family} that reads {finetune.dataset} can't be"
                " served: it needs the detector that found these regions; leave promote out",
            )
        units, folders = self.ledger.recipe.units, self.ledger.folders
        linked = units is not None and units.entities is not None
        if (
            finetune
            and finetune.head
            and linked
            and catalogue.reads_entities(finetune.family, finetune.head, folders)
            and "PLACED_IN_GRAPH" not in self._scheme(scheme)
        ):
            able = catalogue.saying("tokenizers", "PLACED_IN_GRAPH")
            self.ledger.fault(
                "promote",
                "a model that reads the entities that texts name can't be served with the tokenizer"
                f" {scheme}, whose graph doesn't say where tokens lie; of those here"
                f" {', '.join(able)} does; take it, or leave promote out",
            )
        computed = gate_rules.Computed(metrics, known, slices, forgetting_on)
        self.ledger.faults += gate_rules.faults(self.ledger.recipe.where, said, computed)
        if said.split is None:
            self.ledger.origins["promote.split"] = "default"
        left_out = gate_rules.defaults_of_tests(said)
        self.ledger.origins |= {f"promote.require.{place}": "default" for place in left_out}
        return said.model, gate_rules.explicit(said)
