"""The steps of a resolved recipe, with their inputs and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fourstage.digests import hash_file
from fourstage.errors import RecipeError, located
from fourstage.languages import main_language
from fourstage.recipe.starts import (
    EMBEDDINGS,
    ENTITIES,
    VECTORS_BY,
    families_of_vectors,
    table_width,
)
from models.catalogue import (
    TEACHER,
    TRIGRAM_SHARE,
    answers_name,
    file_of,
    find,
    literals,
    measured_by,
    provided,
    reads_entities,
    saying,
)
from models.evaluation.rivals import KINDS as RIVALS
from models.metrics import of_answers
from models.stage_format import CONFIG, NETWORK
from tasks.planning.drift_references import DriftReferences
from tasks.steps.taken_over import READER
from tasks.store.code import module_file
from tasks.store.step_names import (
    ATTENTION,
    EVALUATION,
    LABELLED,
    PACKAGE,
    POLYSEMY,
    STAGE_BEFORE,
    TOKENIZER,
    WIDE,
    WORD_MAP,
    StepName,
    baseline_step,
    contract_step,
    corpus_step,
    dataset_step,
    earlier,
    few_shot_step,
    links_step,
    measurement_step,
    probe_step,
    prototypes_step,
    stage_step,
    tokenizer_step,
    tokens_step,
    vectors_step,
    whole_step,
    wide_step,
    word_in_context_step,
    word_relations_step,
)
from tasks.store.steps import Step
from tasks.tracking.runs import experiment_of

if TYPE_CHECKING:
    from corpora.snapshot import Snapshot
    from data_contracts.sources import Pictures, Source
    from data_contracts.suite import Suite
    from fourstage.recipe.resolved import ResolvedRecipe, ResolvedStage, ResolvedTokenizer

HELDOUT_SHARE = 0.02  # share of a corpus's documents for held-out loss
# Tokens that word vectors are learned from, at most, and for each that their stage reads: a tenth
# of its time or less. Four times as many made them no better (docs/results.md).
VECTOR_TOKENS, VECTOR_SHARE = 3_000_000, 3


@dataclass(frozen=True)
class Plan:
    """A recipe ready to run.

    Attributes:
        recipe: The recipe with every value explicit.
        steps: Steps by name, each after its inputs.
        folders: Project folders, searched first.
        smoke: Whether it is a smoke run, which must not touch a real model.
    """

    recipe: ResolvedRecipe
    steps: dict[str, Step]
    folders: tuple[Path, ...]
    smoke: bool

    def of_kind(self, *kinds: str) -> list[Step]:
        """Steps of the given kinds, in order."""
        return [step for step in self.steps.values() if step.kind in kinds]


def stage_settings(stage: ResolvedStage) -> dict[str, Any]:
    """Settings of a resolved stage on this machine, for its key."""
    from fourstage.recipe.resolved import stage_spec

    return {
        **stage_spec(stage),
        **_teachers(stage),
        **_starts(stage),
        **arithmetic(stage.precision),
    }


def _tokens_of_vectors(stage: ResolvedStage) -> int:
    """Tokens that a stage's word vectors are learned from."""
    units = {"tokens": 1.0, "steps": stage.tokens_a_step}
    if stage.budget.unit not in units:
        return VECTOR_TOKENS
    own = stage.budget.amount * units[stage.budget.unit]
    return min(VECTOR_TOKENS, max(1, round(VECTOR_SHARE * own)))


def _teachers(stage: ResolvedStage) -> dict[str, Any]:
    """File digests of teacher folders, since a folder's name does not identify its contents.

    A teacher that is a stage of the recipe is an input of the step instead.
    """
    found = {}
    for name, settings in stage.objectives.items():
        if TEACHER in settings and name not in stage.teachers:
            folder = Path(settings[TEACHER])
            if not ((folder / NETWORK).is_file() and (folder / CONFIG).is_file()):
                raise RecipeError(
                    f"objectives.{name}.{TEACHER}: expected the folder of a finished stage, got "
                    f"{settings[TEACHER]!r}"
                )
            found[name] = _files(folder)
    return {"teachers": found} if found else {}


def _starts(stage: ResolvedStage) -> dict[str, Any]:
    """File digests of what parts start from, but of stages of the recipe, as for teachers."""
    found = {
        part: _files(path) if path.is_dir() else hash_file(path)
        for part, said in stage.starts_from.items()
        if (path := Path(said)).is_absolute()
    }
    return {"starts_from": found} if found else {}


def _files(folder: Path) -> dict[str, str]:
    """{name: digest} of the files of a stage's folder that decide what it computes."""
    files = [folder / CONFIG, *sorted(folder.rglob("*.safetensors"))]
    return {file.relative_to(folder).as_posix(): hash_file(file) for file in files}


class Layout:
    """Builds the steps of a recipe, each after its inputs."""

    def __init__(
        self,
        recipe: ResolvedRecipe,
        sources: Mapping[str, Source],
        snapshots: Mapping[str, Snapshot],
        suites: Mapping[str, Suite],
        folders: tuple[Path, ...],
    ):
        self.recipe = recipe
        self.sources = sources
        self.snapshots = snapshots
        self.suites = suites
        self.folders = folders
        self._references = DriftReferences(recipe)
        self._steps: dict[str, Step] = {}

    def steps(self) -> dict[str, Step]:
        """All steps in order."""
        texts = self.recipe.sources
        datasets = [name for name in texts if self.sources[name].is_dataset]
        datasets.sort(key=lambda name: name in self._beside)  # they must not repeat the others'
        for name in datasets:
            self._dataset(name)
        for name in texts:
            if name not in datasets:
                self._corpus(name, datasets)
        self._tokenizers()
        used = self._used()
        for name in [*used, *(name for name in self._beside if name not in used)]:
            self._tokens(name)
        before: StepName | None = None
        for stage in self.recipe.stages:
            before = self._stage(stage, before)
            self._measurement(stage, self._measured_after(stage, used))
        if self.recipe.pretrained is not None:
            for name in self.recipe.probes:
                self._probe(self.recipe.pretrained, name)
            for name in self.recipe.few_shot:
                self._few_shot(self.recipe.pretrained, name)
            for name in self.recipe.prototypes:
                self._prototypes(self.recipe.pretrained, name)
            for name in self.recipe.links:
                self._links(self.recipe.pretrained, name)
            for name in self.recipe.word_relations:
                self._word_relations(self.recipe.pretrained, name)
            for name in self.recipe.word_in_context:
                self._word_in_context(self.recipe.pretrained, name)
            if self.recipe.polysemy:
                self._polysemy(self.recipe.pretrained)
            if self.recipe.word_map:
                asked = {"words": list(self.recipe.word_map)}
                self._asked_of(self.recipe.pretrained, WORD_MAP, "word_map", asked)
        if self.recipe.attention:
            self._attention()
        if self.recipe.finetune is not None:
            self._evaluation(self.recipe.finetune)
        return self._steps

    def _add(
        self,
        name: StepName,
        kind: str,
        settings: Mapping[str, Any],
        inputs: Mapping[str, StepName] | None = None,
        **more: Any,
    ) -> StepName:
        for needed in (inputs or {}).values():
            assert needed in self._steps, f"{name} before {needed}"
        self._steps[name] = Step(name, kind, settings, inputs or {}, **more)
        return name

    def _asked_of(
        self,
        stage: ResolvedStage,
        name: StepName,
        kind: str,
        settings: Mapping[str, Any],
        inputs: Mapping[str, StepName] | None = None,
        **given: Any,
    ) -> None:
        """Add what is asked of the network of a stage whose vocabulary is the recipe's."""
        self._add(
            name,
            kind,
            settings,
            {"stage": stage_step(stage.name), "tokenizer": TOKENIZER, **(inputs or {})},
            parts=self._parts(stage),
            given={"folders": self.folders, **given},
        )

    def _whole(self, name: StepName) -> StepName:
        """The step that reads all rows of a dataset of which labels are learned from a few.

        It is the step itself where no rows are drawn. What reads text alone reads all rows, so that
        every draw has the same corpora, vocabulary and pre-training.
        """
        step = self._steps[name]
        settings = {key: value for key, value in step.settings.items() if key != "training_rows"}
        inputs = {role: self._whole(each) for role, each in step.inputs.items()}
        if settings == step.settings and inputs == step.inputs:
            return name
        whole, given = whole_step(name), dict(step.given)
        if "reference" in given:
            settings.pop("reference", None)
            if reference := self._references.of(whole):
                settings["reference"] = reference.digest
            given["reference"] = reference
        self._steps[whole] = replace(
            step, name=whole, settings=settings, inputs=inputs, given=given
        )
        return whole

    def _dataset(self, name: str) -> None:
        finetune = self.recipe.finetune
        trained_on = finetune is not None and name in finetune.datasets
        # A dataset listed only for decontamination is read for its evaluation rows alone.
        if finetune is not None and trained_on:
            overlap = finetune.overlap
        else:
            recipe = self.recipe
            scored = any(
                name in each
                for each in (
                    recipe.probes,
                    recipe.few_shot,
                    recipe.prototypes,
                    recipe.links,
                    recipe.word_in_context,
                )
            )
            overlap = "drop_from_train" if scored else "report"
        settings: dict[str, Any] = {**self._source(name), "overlap": overlap}
        if finetune is not None and name == finetune.dataset and (drawn := finetune.training_rows):
            settings["training_rows"] = [drawn.number, drawn.seed]
        inputs: dict[str, StepName] = {}
        if finetune is not None and finetune.dataset is not None and name in self._beside:
            settings["evaluation_markings"] = list(self.sources[finetune.dataset].markings)
            inputs[f"evaluation {finetune.dataset}"] = self._whole(dataset_step(finetune.dataset))
        self._add(dataset_step(name), "dataset", settings, inputs, **self._reading(name))
        allowed = overlap == "report"
        classes = (
            name in self.recipe.probes
            or name in self.recipe.prototypes
            or name in self.recipe.word_in_context
            or self.recipe.few_shot.get(name, {}).get("answers") == "label"
            or (trained_on and self._kind_of_answer() == "label")
        )
        self._contract(name, dataset_step(name), classes, overlap_free=0.0 if allowed else 1.0)

    def _corpus(self, name: str, datasets: Sequence[str]) -> None:
        settings = {**self._source(name), "heldout_share": HELDOUT_SHARE}
        inputs = {f"evaluation {other}": self._whole(dataset_step(other)) for other in datasets}
        marked = [other for other in datasets if self.sources[other].markings]
        if marked:
            settings["evaluation_markings"] = {
                f"evaluation {other}": list(self.sources[other].markings) for other in marked
            }
        self._add(corpus_step(name), "corpus", settings, inputs, **self._reading(name))
        self._contract(name, corpus_step(name))

    def _contract(
        self, name: str, data: StepName, classes: bool = False, **parameters: float
    ) -> None:
        suite, given = self.suites[name], {}
        if suite.reads_reference:
            given["reference"] = self._references.of(contract_step(name))
        self._promises(contract_step(name), suite, data, parameters, given, classes)

    def _promises(
        self,
        name: StepName,
        suite: Suite,
        data: StepName,
        parameters: Mapping[str, float] | None = None,
        given: Mapping[str, Any] | None = None,
        classes: bool = False,
    ) -> None:
        settings = {
            "suite": _suite_digest(suite),
            "subject": data,  # part of the report, which is an output
            "parameters": dict(parameters or {}),
            "classes": classes,
        }
        given = {"suite": suite, **(given or {})}
        if reference := given.get("reference"):
            settings["reference"] = reference.digest
        self._add(name, "contract", settings, {"data": data}, given=given)

    def _tokenizers(self) -> None:
        """Add the recipe's vocabulary, and those of stages that have their own."""
        spec = self.recipe.tokenizer
        if self.recipe.start is not None:
            settings, given = self._start()
            settings |= {"add_words": spec.add_words} if spec.add_words else {}
            self._vocabulary(TOKENIZER, spec, settings, parts=self._reads_start(), given=given)
        else:
            self._vocabulary(TOKENIZER, spec)
        for stage in self.recipe.stages:
            if stage.tokenizer is not None:
                self._vocabulary(tokenizer_step(stage), stage.tokenizer)

    def _vocabulary(
        self,
        name: StepName,
        spec: ResolvedTokenizer,
        settings: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Add a vocabulary; without settings, one that is learned here."""
        from corpora.words import segmenter_settings

        if settings is None:
            cut = spec.segmenter
            settings = {
                "scheme": spec.scheme,
                "vocabulary_size": spec.vocabulary_size,
                "lowercase": spec.lowercase,
                **({"sentinels": spec.sentinels} if spec.sentinels else {}),
                **({"minimum_count": spec.minimum_count} if spec.minimum_count else {}),
                **({"marks": list(spec.marks)} if spec.marks else {}),
                **({"segmenter": segmenter_settings(cut)} if cut else {}),
            }
            more = {"parts": (_scheme(spec),), "given": {}}
        inputs: dict[str, StepName] = {}
        for text in spec.learn_from:
            inputs[f"text {text}"] = self._whole(self._data(text))
            inputs[contract_step(text)] = self._whole(contract_step(text))
        self._add(name, "tokenizer", settings, inputs, **more)

    def _start(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Key settings of an imported network, and its location."""
        from models.interchange.pretrained_network import start_files

        start = self.recipe.start
        assert start is not None, "asked for where a recipe has one"
        return {"start": start_files(start)}, {"start": start}

    def _reads_start(self) -> tuple[Path, ...]:
        names = module_file("models.interchange.families.bert").with_name
        named = names(f"{self.recipe.family}.py")  # of a published network
        scheme = _scheme(self.recipe.tokenizer)
        return (module_file(READER), scheme, *([named] if named.is_file() else []))

    def _tokens(self, name: str) -> None:
        """Add a source's tokens, unless they are there."""
        if tokens_step(name) in self._steps:
            return
        source = self.sources[name]
        units, given = self._units(source.language)
        if source.sentences != "rules":
            units["sentences"] = source.sentences
        if source.markings:
            units["markings"] = list(source.markings)
        if self._reads_words(name):
            units["words"] = True
        vocabulary = self._own(name)
        inputs = {"data": self._data(name), "contract": contract_step(name)}
        inputs["tokenizer"] = vocabulary
        if vocabulary == TOKENIZER:
            given |= self._entities(units, inputs)
        self._add(
            tokens_step(name),
            "rows" if source.is_dataset else "tokens",
            {"language": source.language, **units},
            inputs,
            parts=(self._scheme_of(vocabulary),),
            given=given,
        )
        self._contract_of_tokens(name)

    def _own(self, name: str) -> StepName:
        """The vocabulary of a source: that of a stage which has its own, else the recipe's."""
        return next(
            (
                tokenizer_step(stage)
                for stage in self.recipe.stages
                if stage.tokenizer is not None and name in stage.corpora
            ),
            TOKENIZER,
        )

    def _entities(self, units: dict[str, Any], inputs: dict[str, StepName]) -> dict[str, Any]:
        """Add what links names to settings and inputs of tokens; the list's location."""
        if self.recipe.units.entities is None:
            return {}
        (graph,) = {
            s.starts_from[ENTITIES] for s in self.recipe.stages if ENTITIES in s.starts_from
        }
        inputs["entities"] = next(tokenizer_step(s) for s in self.recipe.stages if s.name == graph)
        path, units["entities"] = self._list_of_entities
        return {"entities": path}

    @cached_property
    def _list_of_entities(self) -> tuple[Path, str]:
        """The file that links names, each line of which is read once, and its digest."""
        from corpora.entities import read_entities
        from corpora.gazetteer_file import find_gazetteer

        path = find_gazetteer(str(self.recipe.units.entities), self.folders, "entities")
        with located("units.entities"):
            read_entities(path)
        return path, hash_file(path)

    def _units(self, language: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Segmenter and gazetteer settings for the key of tokens, and the gazetteer's location."""
        from corpora.gazetteer_file import find_gazetteer
        from corpora.words import LANGUAGES, segmenter_settings

        said = self.recipe.units
        settings: dict[str, Any] = {}
        given: dict[str, Any] = {}
        if said.segmenter and main_language(language) in LANGUAGES:
            settings["segmenter"] = segmenter_settings(said.segmenter)
        if said.gazetteer:
            given["gazetteer"] = find_gazetteer(said.gazetteer, self.folders)
            settings["gazetteer"] = hash_file(given["gazetteer"])
        if self._reads_case():
            settings["case"] = True
        return settings, given

    def _reads_case(self) -> bool:
        """Whether an objective needs to know which words are capitalised."""
        return any(
            literals("objectives", name, self.folders).get("READS_CASE")
            for stage in self.recipe.stages
            for name in stage.objectives
        )

    def _reads_words(self, name: str) -> bool:
        """Whether a dataset's last text is tokenised word by word for the head."""
        finetune = self.recipe.finetune
        if finetune is None or finetune.head is None or finetune.dataset != name:
            return False
        return bool(literals("heads", finetune.head, self.folders).get("READS_WORDS"))

    def _contract_of_tokens(self, name: str) -> None:
        suite = self.suites[tokens_step(self._own(name))]
        self._promises(contract_step(tokens_step(name)), suite, tokens_step(name))

    def _stage(self, stage: ResolvedStage, before: StepName | None) -> StepName:
        given = {
            "stage": stage,
            "recipe": self.recipe.name,
            "experiment": experiment_of(self.recipe),
            "folders": self.folders,
        }
        if stage.init is not None:
            settings, more = self._start()
            return self._add(
                stage_step(stage.name),
                "stage",
                {"stage": stage.kind, "name": stage.name, **settings},
                {"tokenizer": TOKENIZER},
                parts=self._reads_start(),
                given=given | more,
            )
        read = [*stage.corpora, *stage.datasets]
        inputs = {"tokenizer": tokenizer_step(stage)}
        if before is not None and not stage.starts_network:
            inputs[STAGE_BEFORE] = before
        for objective, teacher in stage.teachers.items():
            inputs[f"teacher of {objective}"] = stage_step(teacher)
        inputs |= {
            f"start of {part}": stage_step(said)
            for part, said in stage.starts_from.items()
            if stage_step(said) in self._steps
        }
        learned = stage.starts_from.get(EMBEDDINGS, "")
        if f"start of {EMBEDDINGS}" not in inputs and learned in families_of_vectors(self.folders):
            inputs[f"start of {EMBEDDINGS}"] = self._vectors(stage, learned)
        for name in read:
            tokens = tokens_step(name)
            both = {tokens: tokens, contract_step(name): contract_step(tokens)}
            labelled = name in stage.datasets
            inputs |= {r: of if labelled else self._whole(of) for r, of in both.items()}
        if (stage.heads or {}).get(str(stage.head), {}).get("wide"):
            inputs[WIDE] = self._wide(stage)
        inputs |= {earlier(name): self._whole(tokens_step(name)) for name in stage.earlier}
        return self._add(
            stage_step(stage.name),
            "stage",
            stage_settings(stage),
            inputs,
            parts=self._parts(stage),
            given=given,
        )

    def _wide(self, stage: ResolvedStage) -> StepName:
        """Add what the wide part of a stage's head learns, which no seed or setting changes."""
        assert stage.dataset is not None
        assert stage.head is not None
        tokens = tokens_step(stage.dataset)
        inputs = {"rows": tokens, "contract": contract_step(tokens), "tokenizer": TOKENIZER}
        if self.sources[stage.dataset].fields.group is not None:
            inputs["dataset"] = dataset_step(stage.dataset)  # says which rows are of one group
        return self._add(
            wide_step(stage.dataset),
            "wide",
            {"head": stage.head},
            inputs,
            parts=(
                self._scheme_of(TOKENIZER),
                file_of("heads", stage.head, self.folders),
                *self._answers(),
            ),
            given={"folders": self.folders},
        )

    def _vectors(self, stage: ResolvedStage, family: str) -> StepName:
        """Add the word vectors that a stage's table of tokens starts from."""
        objectives = literals("families", family, self.folders)[VECTORS_BY]
        inputs = {"tokenizer": tokenizer_step(stage)}
        for name in stage.corpora:
            tokens = self._whole(tokens_step(name))
            inputs |= {tokens_step(name): tokens, contract_step(name): contract_step(tokens)}
        parts = [("families", family), *(("objectives", name) for name in objectives)]
        return self._add(
            vectors_step(stage.name),
            "vectors",
            {
                "family": family,
                "network": {"hidden_dim": table_width(stage.network)},
                "objectives": objectives,
                "corpora": {n: round(share, 9) for n, share in sorted(stage.corpora.items())},
                "tokens": _tokens_of_vectors(stage),
                "seed": stage.seed,
            },
            inputs,
            parts=(
                self._scheme_of(tokenizer_step(stage)),
                *(file_of(kind, name, self.folders) for kind, name in parts),
            ),
            given={"folders": self.folders},
        )

    def _measured_after(self, stage: ResolvedStage, used: Sequence[str]) -> list[str]:
        """The texts in a stage's vocabulary whose held-out loss is measured after it.

        A network that has learned labels is no language model any more: what it has forgotten is
        measured where that is asked for. One that writes its answers still is.
        """
        labelled = stage.dataset and self._kind_of_answer() != "text"
        texts = self.recipe.forgetting_on if labelled else used
        return [name for name in texts if self._own(name) == tokenizer_step(stage)]

    def _measurement(self, stage: ResolvedStage, texts: Sequence[str]) -> None:
        """Add the measurement of a stage's network on held-out texts and the labels."""
        inputs = {"stage": stage_step(stage.name), "tokenizer": tokenizer_step(stage)}
        inputs |= {
            tokens: tokens if stage.dataset else self._whole(tokens)
            for tokens in map(tokens_step, texts)
        }
        own = stage.tokenizer is not None
        finetune = None if own else self.recipe.finetune
        if finetune is not None:
            # The linear probe learns from the rows that fine-tuning will learn from.
            inputs[LABELLED] = tokens_step(str(finetune.dataset))
        objective = measured_of(stage, self.folders) if own else self.recipe.measured_by
        settings = {
            "stage": stage.kind,
            "objective": objective,
            "head": finetune.head if finetune else None,
            "metric": self.recipe.metrics[0] if finetune and self.recipe.metrics else None,
            "sequence_length": self._measured_length(),
            **arithmetic(stage.precision),
            **self._counted(stage),
        }
        self._add(
            measurement_step(stage.name),
            "measurement",
            settings,
            inputs,
            parts=(*self._parts(stage, [objective] if objective else []), *self._answers()),
            given={"folders": self.folders},
        )

    def _measurements_of_a_model(self, finetune: ResolvedStage) -> list[StepName]:
        """The measurements that an evaluation names.

        Those after pre-training are its model's history. That after the labels is read for
        forgetting and by the card of a version.
        """
        last = bool(self.recipe.forgetting_on or self.recipe.model)
        stages = [stage for stage in self.recipe.last_network if stage != finetune or last]
        return [measurement_step(stage.name) for stage in stages]

    def _counted(self, stage: ResolvedStage) -> dict[str, Any]:
        """The text that a trigram is counted in, of a network that is mixed with one."""
        if not stage.network.get(TRIGRAM_SHARE):
            return {}
        names: set[str] = set()
        for each in reversed(self.recipe.stages[: stage.index + 1]):
            names |= set(each.corpora)
            if each.starts_network:
                break
        return {"counted": sorted(names)}

    def _measured_length(self) -> int:
        """Tokens per held-out window: one length for all stages, which each was trained on."""
        stages = [s for s in self.recipe.stages if s.init is None and s.tokenizer is None]
        if not stages:  # nothing is trained, so take the imported network's length
            (taken,) = self.recipe.stages
            return taken.network.get("max_sequence_length", taken.sequence_length)
        pretrained = [stage.sequence_length for stage in stages if stage.head is None]
        return min(pretrained or [stage.sequence_length for stage in stages])

    def _evaluation(self, stage: ResolvedStage) -> None:
        assert stage.dataset is not None, "finetune has labelled rows"
        made = {"stage": stage_step(stage.name), "tokenizer": TOKENIZER}
        parts = self._parts(stage)
        beside: dict[str, StepName] = {}
        if self.recipe.model:  # nothing else reads a package
            asked: dict[str, Any] = {"pairs": has_pairs(self.sources[stage.dataset])}
            if most := self._most_regions(stage):
                asked["most_regions"] = most
            inputs, given = dict(made), {"folders": self.folders}
            if self._reads_entities(stage):
                given |= self._entities(asked, inputs)
            beside["package"] = self._add(
                PACKAGE,
                "package",
                asked,
                inputs,
                parts=parts,
                given=given,
            )
        if self._kind_of_answer() in RIVALS:
            beside["baseline"] = self._baseline(stage.dataset)
        self._add(
            EVALUATION,
            "evaluation",
            {
                "head": stage.head,
                "metrics": list(self.recipe.metrics),
                "split": self.recipe.evaluation_split,
                "gate_split": self.recipe.gate_split if self.recipe.model else None,
                "markings": list(self.sources[stage.dataset].markings),
                "slices": list(self.recipe.slices),
                "forgetting_on": list(self.recipe.forgetting_on),
                **arithmetic(stage.precision),
            },
            {
                **made,
                **{step: step for step in self._measurements_of_a_model(stage)},
                "rows": tokens_step(stage.dataset),
                "dataset": dataset_step(stage.dataset),
                **beside,
            },
            parts=parts,
            given={"folders": self.folders},
        )

    def _probe(self, stage: ResolvedStage, name: str) -> None:
        """Add the probe of the pre-trained network on a dataset that it was not trained on."""
        self._tokens(name)
        self._asked_of(
            stage,
            probe_step(name),
            "probe",
            {
                "metric": self.recipe.probes[name],
                "split": self.recipe.evaluation_split,
                "markings": list(self.sources[name].markings),
                **arithmetic("float32"),
            },
            {
                "rows": tokens_step(name),
                "dataset": dataset_step(name),
                "baseline": self._baseline(name),
            },
        )

    def _few_shot(self, stage: ResolvedStage, name: str) -> None:
        """Add the answers of the pre-trained network to a dataset's rows, from its prompt."""
        read = {n: None for each in self.recipe.pretraining for n in each.corpora}
        inputs = {
            "stage": stage_step(stage.name),
            "tokenizer": TOKENIZER,
            "dataset": dataset_step(name),
            "contract": contract_step(name),
        }
        for text in read:
            inputs[f"text {text}"] = self._whole(self._data(text))
            inputs[f"contract of {text}"] = self._whole(contract_step(text))
        self._add(
            few_shot_step(name),
            "few_shot",
            {
                **self.recipe.few_shot[name],
                "split": self.recipe.evaluation_split,
                "seed": stage.seed,
                "markings": list(self.sources[name].markings),
                # Nobody here knows what a network from elsewhere has read.
                "from_elsewhere": any(each.init for each in self.recipe.pretraining),
                **arithmetic("float32"),
            },
            inputs,
            parts=(
                *self._parts(stage, saying("objectives", "ANSWERS_PROMPTS", self.folders)),
                file_of("answers", self.recipe.few_shot[name]["answers"], self.folders),
            ),
            given={"folders": self.folders},
        )

    def _prototypes(self, stage: ResolvedStage, name: str) -> None:
        """Add the episodes in which the pre-trained network tells a dataset's classes."""
        asked, known = self.recipe.prototypes[name], self.sources[name].label_names
        if known and max(asked["ways"]) > len(known):
            raise RecipeError(
                f"{self.recipe.where}: evaluate.prototypes.{name}.ways: expected {len(known)} at"
                f" most, the number of the source's classes, got {max(asked['ways'])}"
            )
        self._tokens(name)
        self._asked_of(
            stage,
            prototypes_step(name),
            "prototypes",
            {
                **asked,
                "split": self.recipe.evaluation_split,
                "markings": list(self.sources[name].markings),
                **arithmetic("float32"),
            },
            {
                "rows": tokens_step(name),
                "dataset": dataset_step(name),
                "contract": contract_step(name),
            },
        )

    def _links(self, stage: ResolvedStage, name: str) -> None:
        """Add the ranks that the pre-trained network gives to a dataset's heads and tails."""
        self._tokens(name)
        asked = {"split": self.recipe.evaluation_split}
        inputs = {"rows": tokens_step(name), "dataset": dataset_step(name)}
        self._asked_of(stage, links_step(name), "links", asked, inputs)

    def _word_relations(self, stage: ResolvedStage, name: str) -> None:
        """Add the test of the pre-trained network's word vectors on a source."""
        if (count := len(self.snapshots[name].files)) != 1:
            raise RecipeError(
                f"evaluate.word_relations: expected a source of one file, got {name} with {count};"
                " make a source of each"
            )
        import numpy as np

        from models.evaluation.word_relations import relations
        from models.vectors.lookup import WordTable

        with located(f"evaluate.word_relations: {name}"):  # each line is read, no word is known
            nothing = WordTable({}, np.zeros((1, 1)), {})
            relations(Path(self.snapshots[name].files[0].path), nothing)
        self._asked_of(
            stage,
            word_relations_step(name),
            "word_relations",
            self._source(name),
            snapshot=self.snapshots[name],
        )

    def _word_in_context(self, stage: ResolvedStage, name: str) -> None:
        """Add the test of the pre-trained network's layers on a word in two sentences."""
        from models.evaluation.marked_words import DIFFERENT, SAME

        source = self.sources[name]
        named = set(source.label_names.values()) or {SAME, DIFFERENT}
        if len(source.markings) != 2 or named != {SAME, DIFFERENT}:
            raise RecipeError(
                "evaluate.word_in_context: expected a source with two markings, before a word and"
                f" after it, and the labels {SAME} and {DIFFERENT} (its label_names); {name} has"
                f" {len(source.markings)} markings and the labels {', '.join(sorted(named))}"
            )
        split = self.recipe.evaluation_split
        self._asked_of(
            stage,
            word_in_context_step(name),
            "word_in_context",
            {
                "split": split,
                # Dev rows choose; if they are what is scored, train rows do.
                "chosen_on": "dev" if split == "test" else "train",
                "markings": list(source.markings),
                **arithmetic("float32"),
            },
            {"dataset": dataset_step(name), "contract": contract_step(name)},
        )

    def _polysemy(self, stage: ResolvedStage) -> None:
        """Add how far the pre-trained network's layers tell the senses of words apart."""
        words = {word: dict(senses) for word, senses in self.recipe.polysemy.items()}
        asked = {"words": words, **arithmetic("float32")}
        self._asked_of(stage, POLYSEMY, "polysemy", asked)

    def _attention(self) -> None:
        """Add what the tokens of texts attend to in a stage's network."""
        asked = dict(self.recipe.attention)
        name = asked.pop("stage")
        stage = next(each for each in self.recipe.stages if each.name == name)
        inputs = {"stage": stage_step(name), "tokenizer": tokenizer_step(stage)}
        if asked["rows"] and stage.dataset:
            inputs["rows"] = tokens_step(stage.dataset)
        self._add(
            ATTENTION,
            "attention",
            {
                **{k: v if k == "rows" else list(v) for k, v in asked.items()},
                **arithmetic("float32"),
            },
            inputs,
            parts=self._parts(stage),
            given={"folders": self.folders},
        )

    def _baseline(self, name: str) -> StepName:
        """Add the baselines of a dataset. The only recipe setting they need is the metric."""
        source, finetune = self.sources[name], self.recipe.finetune
        labelled = finetune is not None and finetune.dataset == name
        kind = self._kind_of_answer() if labelled else "label"  # only labels are probed
        if labelled:  # a baseline has answers, and no probabilities
            metric = of_answers(
                [*self.recipe.metrics, *find("answers", kind, self.folders)().usual]
            )[0]
        else:
            metric = self.recipe.probes[name]
        return self._add(
            baseline_step(name),
            "baseline",
            {
                "metric": metric,
                "markings": list(source.markings),
                **({"answers": kind} if kind != "label" else {}),
            },
            {"data": dataset_step(name), "contract": contract_step(name)},
        )

    def _used(self) -> list[str]:
        """Sources to tokenise: those a stage reads, and those measured after each stage."""
        names = [name for stage in self.recipe.stages for name in stage.corpora]
        names += [stage.dataset for stage in self.recipe.stages if stage.dataset]
        return list(dict.fromkeys([*names, *self.recipe.forgetting_on]))

    @property
    def _beside(self) -> tuple[str, ...]:
        """The datasets that are learnt beside the labelled stage's own."""
        return self.recipe.finetune.datasets[1:] if self.recipe.finetune else ()

    def _data(self, name: str) -> StepName:
        return dataset_step(name) if self.sources[name].is_dataset else corpus_step(name)

    def _source(self, name: str) -> dict[str, Any]:
        return {"source": self.sources[name].settings(), "snapshot": self.snapshots[name].digest}

    def _reading(self, name: str) -> dict[str, Any]:
        from corpora.readers import reader_files

        source, snapshot = self.sources[name], self.snapshots[name]
        return {
            "parts": tuple(reader_files(source, [file.name for file in snapshot.all_files])),
            "given": {"source": source, "snapshot": snapshot},
        }

    def _parts(self, stage: ResolvedStage, also: Sequence[str] = ()) -> tuple[Path, ...]:
        """Files of the parts that a stage names, and of the objectives in `also`."""
        taught_by = [s.family for s in self.recipe.stages if s.name in stage.teachers.values()]
        kinds = [("families", family) for family in dict.fromkeys([stage.family, *taught_by])]
        kinds += [("objectives", name) for name in dict.fromkeys([*stage.objectives, *also])]
        kinds += [("heads", stage.head)] if stage.head else []
        files = [file_of(kind, name, self.folders) for kind, name in kinds]
        scheme = self._scheme_of(tokenizer_step(stage))
        return (scheme, *files, *(self._answers() if stage.head else ()))

    def _kind_of_answer(self) -> str:
        """The kind of answer that the head gives; "" without one."""
        finetune = self.recipe.finetune
        if finetune is None or finetune.head is None:
            return ""
        return answers_name(finetune.head, self.folders)

    def _reads_entities(self, stage: ResolvedStage) -> bool:
        """Whether a stage's head reads rows with the entities that their texts name."""
        return self.recipe.units.entities is not None and reads_entities(
            stage.family, stage.head or "", self.folders
        )

    def _most_regions(self, stage: ResolvedStage) -> int:
        """Regions that a stage's head reads of a row's picture; 0 if it sees none."""
        of_pictures = stage.dataset is not None and self.sources[stage.dataset].pictures is not None
        if not of_pictures or "regions" not in provided(stage.family, self.folders):
            return 0
        reads_texts_alone = literals("heads", stage.head or "", self.folders).get("EMBEDS")
        return 0 if reads_texts_alone else self._pictures(stage).most_regions

    def _pictures(self, stage: ResolvedStage) -> Pictures:
        """The pictures of a stage's rows."""
        assert stage.dataset is not None, "only rows have pictures"
        pictures = self.sources[stage.dataset].pictures
        assert pictures is not None, "asked of rows without pictures"
        return pictures

    def _answers(self) -> tuple[Path, ...]:
        """File of the head's kind of answer; empty without a head."""
        kind = self._kind_of_answer()
        return (file_of("answers", kind, self.folders),) if kind else ()

    def _scheme_of(self, vocabulary: StepName) -> Path:
        """File of a vocabulary's scheme, which is loaded by name rather than imported."""
        own = {tokenizer_step(s): s.tokenizer for s in self.recipe.stages if s.tokenizer}
        return _scheme(own.get(vocabulary, self.recipe.tokenizer))


def _scheme(tokenizer: ResolvedTokenizer) -> Path:
    return module_file(f"models.tokenizers.{tokenizer.scheme}")


def measured_of(stage: ResolvedStage, folders: tuple[Path, ...]) -> str | None:
    """The first of a stage's own objectives whose loss on held-out text can be measured."""
    return measured_by(stage.objectives, folders)


def has_pairs(source: Source) -> bool:
    """Whether the rows of a dataset have two texts."""
    return source.fields.text_pair is not None


def arithmetic(precision: str) -> dict[str, str]:
    """Backend and precision on this machine. Both change bits, so they are part of the key."""
    import os

    from models.training.precision import resolve_precision

    return {
        "backend": os.environ.get("KERAS_BACKEND", "tensorflow"),
        "precision": resolve_precision(precision),
    }


def _suite_digest(suite: Suite) -> str:
    from data_contracts.suite import suite_digest

    return suite_digest(suite)
