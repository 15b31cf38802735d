"""Candidates of a choice: a recipe, and what one would try beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fourstage.errors import RecipeError, UnknownNameError
from fourstage.recipe.search import in_yaml
from models.catalogue import literals
from tasks.comparison.participants import pretraining_stages
from tasks.comparison.variants import parse_variants, variant_overrides
from tasks.planning.plan import resolve_recipe

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedRecipe, ResolvedStage

AS_WRITTEN, LABELS_ONLY, LARGER = "as-written", "labels-only", "larger"
COUNTING, WIDE, WIDE_LABELS_ONLY = "counting", "wide", "wide-labels-only"
NO_WIDE, FASTTEXT = "no-wide", "fasttext"
# Settings of fine-tuning that are about the recipe's own network.
OF_THE_NETWORK = ("freeze", "gradual_unfreezing", "lora", "r_drop", "fgm", "remedies", "objectives")
SCALED = ("hidden_dim", "num_layers", "intermediate_dim", "num_heads")  # of the larger network


@dataclass(frozen=True)
class Candidate:
    """One way to answer the rows.

    Attributes:
        name: Its name on the page.
        about: What it is, in a sentence without its full stop.
        overrides: ``a.b=c`` settings of the recipe that make it.
    """

    name: str
    about: str
    overrides: tuple[str, ...]


def candidates_of(
    recipe: str,
    overrides: Sequence[str] = (),
    smoke: bool = False,
    more: Sequence[str] = (),
    without: Sequence[str] = (),
    unmade: Callable[[str, str], object] | None = None,
) -> list[Candidate]:
    """The recipe as written, parts of it, counted n-grams, a larger network, and yours.

    A usual candidate that can't be made of this recipe, such as one without a network of a recipe
    whose labels train a language model, too, is left out.

    Args:
        recipe: Name or path of a recipe with labels.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to keep only its structure, at size tiny, on embedded data.
        more: ``NAME:a.b=c``, further candidates; a name that comes again adds a setting.
        without: Names of candidates to leave out.
        unmade: Receives the name of each that can't be made, and why.

    Raises:
        RecipeError: The recipe has no labels or a search, a setting is invalid, or nothing is left.
        UnknownNameError: `without` names no candidate.
    """
    whole, _, folders = resolve_recipe(recipe, overrides, smoke)
    if whole.finetune is None:
        raise RecipeError(f"{whole.where}: choose needs a stage finetune: labelled rows decide")
    if not whole.metrics:
        raise RecipeError(f"{whole.where}: choose needs evaluate.metrics: the first decides")
    if whole.search is not None:
        raise RecipeError(
            f"{whole.where}: choose spends its minutes on whole recipes, and this one has a search"
            " of its own; add --set search="
        )
    yours = parse_variants(more, "--candidate")
    settings = {**_usual(whole, folders, smoke), **{n: ("yours", s) for n, s in yours.items()}}
    for name in without:
        if name not in (AS_WRITTEN, *settings):
            known = (AS_WRITTEN, *settings)
            raise UnknownNameError("--without", name, "a candidate", known)
    found = [Candidate(AS_WRITTEN, "the recipe as it is", tuple(overrides))]
    for name, (about, said) in settings.items():
        made = (*overrides, *variant_overrides(whole, name, said))
        try:
            resolve_recipe(recipe, made, smoke)  # an invalid setting is refused before any work
        except RecipeError as error:
            if name in yours:
                raise
            if unmade and name not in without:
                (first, *_) = str(error).splitlines()
                unmade(name, first)
            continue
        found.append(Candidate(name, about, made))
    found = [each for each in found if each.name not in without]
    if not found:
        raise RecipeError("choose: every candidate is left out; leave out fewer with --without")
    return found


def _usual(
    whole: ResolvedRecipe, folders: Sequence[Path], smoke: bool
) -> dict[str, tuple[str, tuple[str, ...]]]:
    """{name: (what it is, settings)} of the candidates that every recipe has."""
    before = pretraining_stages(whole)
    started = any(stage.init for stage in whole.stages)
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    left_out = tuple(f"stages.{stage.name}=" for stage in before)
    if before:
        network = "the network as it came" if started else "the same network"
        found[LABELS_ONLY] = (f"{network}, trained on the labels alone", left_out)
    if len(before) > 1:
        for stage in before:
            name = f"no-{stage.name}"
            found[name] = (f"without the stage {stage.name}", (f"stages.{stage.name}=",))
    found |= _counting(whole, folders, left_out) | _fasttext(whole, folders)
    one_network = not any(stage.starts_network for stage in whole.stages[1:])
    if before and not started and not smoke and one_network and set(SCALED) <= set(whole.network):
        found[LARGER] = ("twice the width and depth, half the learning rates", _larger(whole))
    return found


def _counting(
    whole: ResolvedRecipe, folders: Sequence[Path], left_out: tuple[str, ...]
) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Counted n-grams alone and beside the network, where the head can count.

    Args:
        whole: The recipe.
        folders: Project folders, searched first.
        left_out: Settings that leave out the stages before the labels.
    """
    finetune = whole.finetune
    assert finetune is not None
    assert finetune.head is not None
    if not _words_may_answer(finetune, folders) or finetune.family == "tfidf":
        return {}
    place = f"stages.{finetune.name}.head.{finetune.head}.wide"
    # The weights before the first update are one choice.
    wide = [f"{place}=true", *_selecting(whole, finetune)]
    alone = (*_labels_alone(whole), "family=tfidf", "size=tiny", *wide)
    found = {COUNTING: ("counted n-grams with linear SVMs, without a network", alone)}
    if finetune.head_settings.get("wide"):
        return {**found, NO_WIDE: ("without the counted n-grams", (f"{place}=false",))}
    if left_out:
        about = "counted n-grams beside the network, from the labels alone"
        found[WIDE_LABELS_ONLY] = (about, (*left_out, *wide))
    return {**found, WIDE: ("the recipe with counted n-grams beside the network", tuple(wide))}


def _fasttext(
    whole: ResolvedRecipe, folders: Sequence[Path]
) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The classifier of ``papers/fasttext-classifier``, with its settings; see `_counting`."""
    finetune = whole.finetune
    assert finetune is not None
    tuned = any(getattr(finetune, key) for key in OF_THE_NETWORK)
    if tuned or not _words_may_answer(finetune, folders) or finetune.family == "fasttext":
        return {}
    at = f"stages.{finetune.name}"
    words = {"scheme": "word", "vocabulary_size": 200_000, "minimum_count": 1}
    words["lowercase"] = whole.tokenizer.lowercase
    head = {**finetune.head_settings, "dropout": 0.0, "wide": False}
    settings = (
        *_labels_alone(whole),
        "family=fasttext",
        "size=classifier",
        f"tokenizer={in_yaml(words)}",
        f"{at}.head={in_yaml({finetune.head: head})}",
        f"{at}.batch_size=16",
        f"{at}.budget={in_yaml({'epochs': 10})}",
        f"{at}.optimizer={in_yaml({'sgd': {'peak_learning_rate': 8.0}})}",
        *_selecting(whole, finetune),
    )
    return {FASTTEXT: ("fastText: words and pairs of words, averaged, from labels alone", settings)}


def _labels_alone(whole: ResolvedRecipe) -> tuple[str, ...]:
    """Settings that leave out all other stages, also a teacher and the network it starts from."""
    return tuple(f"stages.{stage.name}=" for stage in whole.stages if stage.kind != "finetune")


def _words_may_answer(finetune: ResolvedStage, folders: Sequence[Path]) -> bool:
    """Whether words alone may answer: the head can count, and nothing else stands in its way."""
    head = str(finetune.head)
    return literals("heads", head, folders).get("WIDE", False) and not finetune.feature_based


def _selecting(whole: ResolvedRecipe, finetune: ResolvedStage) -> tuple[str, ...]:
    """The setting that keeps the weights that are best on dev, unless the recipe has one."""
    if finetune.select is not None:
        return ()
    return (f"stages.{finetune.name}.select.metric={whole.metrics[0]}",)


def _larger(whole: ResolvedRecipe) -> tuple[str, ...]:
    size = {name: value for name, value in whole.network.items() if value is not None}
    size |= {name: 2 * whole.network[name] for name in SCALED}
    return (f"size={in_yaml(size)}", *map(_slower, whole.stages))


def _slower(stage: ResolvedStage) -> str:
    """Half the peak learning rate: a wider network takes smaller steps."""
    name, settings = stage.optimizer.name, stage.optimizer.settings
    half = settings["peak_learning_rate"] / 2
    return f"stages.{stage.name}.optimizer.{name}.peak_learning_rate={in_yaml(half)}"
