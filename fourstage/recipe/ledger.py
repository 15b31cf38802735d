"""Collects faults, notes and the origin of each value while a recipe is resolved."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fourstage.errors import RecipeError, UnknownNameError
from fourstage.recipe import part_settings
from fourstage.recipe.paths import path_text
from fourstage.recipe.schema import Evaluate, Part, Recipe
from models import catalogue
from models.metrics import OF_LIKELIHOOD, PERPLEXITY, PERPLEXITY_A_WORD
from models.signatures import Setting, settings_of

T = TypeVar("T")


@dataclass(frozen=True)
class SourceFacts:
    """What a recipe has to know about a source.

    Attributes:
        labelled: Whether it is a dataset; otherwise it is a corpus.
        answers: What a dataset's rows are answered by: a name of ``models/answers``.
        pairs: Whether its rows have two texts.
        region_dim: Numbers of each region of its rows' pictures; 0 for rows without pictures.
        detected: Whether a detector found these regions, and there are no pictures.
        asks: Whether its rows are questions about their pictures: their labels differ.
        classes: Numbers of classes that the detector tells of each region: of objects, then of
            attributes.
        spaced: Whether blanks stand between the words of its answers.
    """

    labelled: bool
    answers: str = "label"
    pairs: bool = False
    region_dim: int = 0
    detected: bool = False
    asks: bool = False
    classes: tuple[int, ...] = ()
    spaced: bool = True


class Ledger:
    """Faults, notes and origins of one recipe, and the look-ups that may add to them.

    Args:
        recipe: The recipe as given.
        sources: Every known source, with facts about those the recipe uses; None for unchecked.
        folders: Project folders searched before the built-in ones.
        registered: Folder of each registered version that the recipe names, by address.
    """

    def __init__(
        self,
        recipe: Recipe,
        sources: Mapping[str, SourceFacts | None] | None,
        folders: Sequence[Path],
        registered: Mapping[str, Path],
    ):
        self.recipe = recipe
        self.sources = sources
        self.folders = folders
        self.registered = registered
        self.faults: list[RecipeError] = []
        self.notes: list[str] = []
        self.origins = {
            path_text(path): self.said(source)
            for path, source in recipe.origins.items()
            if source != recipe.where
        }

    def fault(self, place: str, message: str) -> None:
        """Record what is wrong at a place."""
        self.faults.append(RecipeError(f"{self.recipe.where}: {place}: {message}"))

    def said(self, source: str) -> str:
        """The name, for people, of the file or option that a value came from."""
        if source == self.recipe.where:
            return "recipe"
        if source in ("--set", "smoke"):
            return source
        return f"extends {self.recipe.extends}"

    def names(self) -> list[str]:
        """Names of the stages."""
        return [stage.name or stage.stage for stage in self.recipe.stages]

    def value(self, path: str, said: T | None, default: T, kind: str) -> T:
        """The given value, or the default of the kind of stage."""
        if said is None:
            self.origins[path] = f"default for {kind}"
            return default
        return said

    def inherited(self, path: str, said: T | None, before: tuple[T, str] | None, default: T) -> T:
        """The given value, or that of the stage before, or the default for the first stage."""
        if said is not None:
            return said
        if before is not None:
            self.origins[path] = f"inherited from stage {before[1]}"
            return before[0]
        self.origins[path] = "default"
        return default

    def part(
        self, kind: str, name: str, path: str, said: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """All settings of an objective or a head, and the defaults in its file."""
        known = settings_of(catalogue.file_of(kind, name, self.folders))
        article = catalogue.KINDS[kind].split()[-1]
        self.settings(path, said, known, f"a setting of {article} {name!r}")
        fallback = {s.name: s.default for s in known.values() if not s.required}
        for key in known:
            if key not in said:
                self.origins[f"{path}.{key}"] = f"default of {name}"
        return {**fallback, **part_settings.as_declared(said, known)}, fallback

    def settings(
        self, path: str, said: Mapping[str, Any], known: Mapping[str, Setting], kind: str
    ) -> None:
        """Check names, types and ranges of a part's settings."""
        where = self.recipe.where
        for key, value in said.items():
            if key not in known:
                self.faults.append(UnknownNameError(f"{where}: {path}", key, kind, known))
                continue
            setting = known[key]
            reason = part_settings.misfit(setting, value)
            if reason:
                self.fault(f"{path}.{key}", reason)
            elif setting.choices and isinstance(value, str) and value not in setting.choices:
                self.faults.append(
                    UnknownNameError(
                        f"{where}: {path}.{key}", str(value), f"a value of {key!r}", setting.choices
                    )
                )
        missing = [s.name for s in known.values() if s.required and s.name not in said]
        if missing:
            self.fault(path, f"missing: {', '.join(missing)}")

    def metric(
        self, path: str, name: str, known: Collection[str], dataset: str | None = None
    ) -> None:
        """Check the name of a metric of rows.

        Args:
            path: Place of the name.
            name: The metric.
            known: Those that there are of such answers.
            dataset: The rows' dataset.
        """
        if name not in known:
            hint = ""
            if name in OF_LIKELIHOOD:
                able = ", ".join(catalogue.saying("heads", "READS_TARGETS", self.folders))
                hint = f"Only a head that writes has perplexities, of its own rows: {able}."
            where = f"{self.recipe.where}: {path}"
            self.faults.append(UnknownNameError(where, name, "a metric here", known, hint))
        if name == PERPLEXITY_A_WORD and not self.facts(dataset).spaced:
            self.fault(
                path,
                f"the answers of {dataset} have no blanks between words, so that"
                f" {PERPLEXITY_A_WORD} is not defined; take {PERPLEXITY}",
            )

    def filled(self, path: str, said: Part, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """What a recipe says at a place, and the defaults of what it leaves out."""
        given = said.model_dump(exclude_none=True, mode="json")
        self.origins |= {f"{path}.{key}": "default" for key in defaults if key not in given}
        return {**defaults, **given}

    @property
    def evaluate(self) -> Evaluate:
        """What the recipe measures."""
        return self.recipe.evaluate or Evaluate()

    def facts(self, name: str | None) -> SourceFacts:
        """What is known of a source; of one that is not known, that it has no labels."""
        return (self.sources or {}).get(name or "") or SourceFacts(labelled=False)

    def answers(self, path: str, dataset: str, wanted: str, by: str) -> None:
        """Check that a dataset's rows have the kind of answer that `by` needs."""
        facts = self.facts(dataset)
        if not facts.labelled or facts.answers == wanted:
            return
        heads = [
            name
            for name in catalogue.names("heads", self.folders)
            if catalogue.answers_name(name, self.folders) == facts.answers
        ]
        able = f" For {facts.answers} there is {', '.join(heads)}." if heads else ""
        self.fault(
            path,
            f"{by} needs rows answered by {wanted}; those of source {dataset} are answered by"
            f" {facts.answers} (its key 'answers').{able}",
        )

    def pairs(self, path: str, dataset: str, by: str) -> None:
        """Check that a dataset's rows have the two texts that `by` needs."""
        facts = self.facts(dataset)
        if facts.labelled and not facts.pairs:
            self.fault(
                path,
                f"{by} needs rows of two texts; those of source {dataset} have one (its 'fields'"
                " have no 'text_pair')",
            )

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
            self.fault(
                path,
                f"{name!r} is a corpus: its source names no label field; name a dataset, or the"
                " column of the answers as 'label' in the source's 'fields'",
            )
        else:
            self.fault(
                path,
                f"{name!r} is a dataset; only stage task reads a dataset's text. A second source "
                "on the same files without a label field is a corpus",
            )
