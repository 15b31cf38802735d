"""Plan a recipe: resolve its values, snapshot its sources, lay out its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fourstage.activity import activity
from fourstage.errors import RecipeError
from fourstage.languages import main_language
from fourstage.recipe.search import overrides_of, told
from fourstage.settings import search_folders
from models.catalogue import literals
from tasks.planning.layout import Layout, Plan, has_pairs
from tasks.registry.stage_files import by_number
from tasks.store.step_names import TOKENIZER, tokenizer_step, tokens_step

if TYPE_CHECKING:
    from data_contracts.sources import Source
    from data_contracts.suite import Suite
    from fourstage.recipe.resolved import ResolvedRecipe, ResolvedStage


def resolve_recipe(
    recipe: str, overrides: Sequence[str] = (), smoke: bool = False, seed: int | None = None
) -> tuple[ResolvedRecipe, dict[str, Source], tuple[Path, ...]]:
    """Load a recipe and make every value explicit, without touching data files.

    This takes less than a second and imports neither Prefect nor TensorFlow, unless the recipe has
    `freeze`, for which the weights of a network are named. MLflow is needed only by a recipe that
    starts from a registered version.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to keep only its structure, at size tiny, on embedded data.
        seed: Replaces the recipe's seed; with several seeds, that of the stages they differ in.

    Returns:
        The recipe, its sources, and the project folders, which are searched first.

    Raises:
        RecipeError: The recipe is invalid; the message lists every error, one per line.
    """
    from corpora.tags import UNSPACED
    from data_contracts.sources import load_source, source_names
    from fourstage.recipe.ledger import SourceFacts
    from fourstage.recipe.loading import find_recipe, load_recipe
    from fourstage.recipe.resolution import resolve

    folders = tuple(search_folders(find_recipe(recipe)))
    known = source_names(folders)  # only sources that the recipe names are loaded

    def pictured(name: str) -> bool:
        return name in known and load_source(name, folders).pictures is not None

    loaded, registered = by_number(load_recipe(recipe, overrides, smoke, folders, pictured))
    sources = {name: load_source(name, folders) for name in known if name in loaded.source_names}
    facts = {
        n: SourceFacts(
            s.is_dataset,
            s.answers,
            has_pairs(s),
            *_regions(s),
            asks(s),
            s.pictures.classes if s.pictures else (),
            main_language(s.answer_language or s.language) not in UNSPACED,
        )
        if (s := sources.get(n))
        else None
        for n in known
    }
    resolved = resolve(loaded, facts, folders, seed, registered)
    if resolved.search is not None:
        for point in resolved.search.points():
            tried_stage(recipe, overrides, smoke, resolved, point)
    read = dict.fromkeys([*resolved.sources, *resolved.word_relations])
    return resolved, {name: sources[name] for name in read}, folders


def _regions(source: Source) -> tuple[int, bool]:
    """Numbers of each region of a source's pictures, 0 without; whether a detector found them."""
    from corpora.regions import NUM_FEATURES

    if source.pictures is None:
        return 0, False
    return source.pictures.region_dim or NUM_FEATURES, source.pictures.region_dim is not None


def asks(source: Source) -> bool:
    """Whether a source's rows are questions about their pictures, with one label each as answer."""
    pictured = source.pictures is not None and source.answers == "label"
    return pictured and not source.has_captions


def tried_stage(
    recipe: str,
    overrides: Sequence[str],
    smoke: bool,
    resolved: ResolvedRecipe,
    point: Mapping[str, Any],
) -> ResolvedStage:
    """The finetune stage with the settings that a search tries.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to keep only its structure, at size tiny, on embedded data.
        resolved: The same recipe, resolved.
        point: Values by place in the stage.

    Raises:
        RecipeError: A place or a value is invalid, or the stage would read other datasets.
    """
    assert resolved.finetune is not None, "a recipe with a search has labels"
    more = overrides_of(point, resolved.finetune.name)
    where = f"{resolved.where}: search.grid: {told(point)}"
    try:
        tried, _, _ = resolve_recipe(recipe, (*overrides, *more), smoke)
    except RecipeError as error:
        raise RecipeError(f"{where}: {error}") from error
    assert tried.finetune is not None
    named, there = tried.finetune.datasets, resolved.finetune.datasets
    if set(named) != set(there):
        raise RecipeError(
            f"{where}: expected the datasets that the recipe reads, {', '.join(there)}, got"
            f" {', '.join(named)}: no corpus may hold their evaluation rows, so the stages before"
            " would be others, too; to compare mixtures, `fourstage compare` takes several recipes"
        )
    return tried.finetune


def plan_recipe(
    recipe: str, overrides: Sequence[str] = (), smoke: bool = False, seed: int | None = None
) -> Plan:
    """Resolve a recipe, find its sources' files and lay out its steps.

    Args:
        recipe: Name or path of a recipe.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to keep only its structure, at size tiny, on embedded data.
        seed: Replaces the recipe's seed; with several seeds, that of the stages they differ in.

    Raises:
        RecipeError: The recipe is invalid; raised before any data file is touched.
        ContractViolation: A source's files can't be found or read.
    """
    return lay_out(*resolve_recipe(recipe, overrides, smoke, seed), smoke)


def _of_tokens(suite: Suite) -> Suite:
    """A suite about tokens, of which stages read every document, quarantined or not.

    Raises:
        RecipeError: It would quarantine documents that have a token.
    """
    for promise in suite.expectations:
        empty = promise.kwargs == {"column": "num_tokens", "min_value": 1}
        if promise.level == "row" and promise.severity == "critical" and not empty:
            raise RecipeError(
                f"suites/{suite.name}.json: expectation {promise.id!r}: a document can't be "
                'quarantined once it is tokens; expected "level": "table", with a "mostly" if some '
                'may break it, or "severity": "warning".'
            )
    return suite


def lay_out(
    resolved: ResolvedRecipe,
    sources: Mapping[str, Source],
    folders: tuple[Path, ...],
    smoke: bool = False,
) -> Plan:
    """Find the files of a resolved recipe's sources and lay out its steps.

    Args:
        resolved: The recipe.
        sources: The sources it reads.
        folders: Project folders, searched first.
        smoke: Whether it is a smoke run.

    Raises:
        ContractViolation: A source's files can't be found or read.
    """
    from corpora.snapshot import take_snapshot
    from data_contracts.suite import joined, load_suite

    with activity("reading the recipe"):
        suites = {
            name: joined([load_suite(suite, folders) for suite in source.suites])
            for name, source in sources.items()
        }
        schemes = {TOKENIZER: resolved.tokenizer.scheme} | {
            tokenizer_step(s): s.tokenizer.scheme for s in resolved.stages if s.tokenizer
        }
        for name, scheme in schemes.items():
            suite = literals("tokenizers", scheme).get("SUITE", "tokens")
            suites[tokens_step(name)] = _of_tokens(load_suite(suite, folders))
        snapshots = {name: take_snapshot(source, folders) for name, source in sources.items()}
        layout = Layout(resolved, sources, snapshots, suites, folders)
        return Plan(resolved, layout.steps(), folders, smoke)
