"""Candidates of a choice: a recipe, and what one would try beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fourstage.errors import RecipeError, UnknownNameError
from fourstage.recipe.from_nothing import (
    BETA_2,
    FAMILY,
    FINETUNE_RATE,
    GENERAL_RATE,
    MASK_RATE,
    NETWORK,
    SLOWER,
    SUMMARY,
    VECTORS,
    phases,
    told_what_texts_share,
    vocabulary_size,
)
from fourstage.recipe.search import in_yaml
from models.catalogue import answers_name, literals
from models.metrics import OF_LIKELIHOOD, PERPLEXITY, PERPLEXITY_A_WORD
from tasks.comparison.choice_gate import COUNTED, without_lead
from tasks.comparison.participants import pretraining_stages
from tasks.comparison.variants import parse_variants, variant_overrides
from tasks.planning.layout import has_pairs
from tasks.planning.plan import resolve_recipe

if TYPE_CHECKING:
    from data_contracts.sources import Source
    from fourstage.recipe.resolved import ResolvedRecipe, ResolvedStage

SEEDS = ("seed", "seeds")
AS_WRITTEN, LABELS_ONLY, LARGER = "as-written", "labels-only", "larger"
COUNTING, WIDE, WIDE_LABELS_ONLY = "counting", "wide", "wide-labels-only"
NO_WIDE, FASTTEXT, FROM_SCRATCH = "no-wide", "fasttext", "from-scratch"
# Beside these there are no-STAGE, one for each stage before the labels, and yours.
USUAL = (
    *(AS_WRITTEN, LABELS_ONLY, FROM_SCRATCH, COUNTING, FASTTEXT),
    *(WIDE, WIDE_LABELS_ONLY, NO_WIDE, LARGER),
)
# Settings of fine-tuning that are about the recipe's own network.
OF_THE_NETWORK = (
    "reinitialise",
    "freeze",
    "gradual_unfreezing",
    "lora",
    "r_drop",
    "fgm",
    "remedies",
    "objectives",
    "feature_based",
)
SCALED = ("hidden_dim", "num_layers", "intermediate_dim", "num_heads")  # of the larger network

# What decides of which rows, and what, a score is.
_ASKED: Mapping[str, Callable[[ResolvedRecipe], str]] = {
    "the dataset": lambda recipe: (recipe.finetune and recipe.finetune.dataset) or "",
    "as the first metric": lambda recipe: next(iter(recipe.metrics), ""),
    "as evaluate.split": lambda recipe: recipe.evaluation_split,
}

Settings = dict[str, tuple[str, tuple[str, ...]]]  # {name: (what it is, settings)}
Reasons = dict[str, str]  # {name: why there is no such candidate}


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
    whose labels train a language model, too, is left out. One that would be the recipe as written,
    or another candidate, is none: `labels-only` of a recipe with one stage.

    Args:
        recipe: Name or path of a recipe with labels.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to keep only its structure, at size tiny, on embedded data.
        more: ``NAME:a.b=c``, further candidates; a name that comes again adds a setting.
        without: Names of candidates to leave out, also of usual ones that can't be made.
        unmade: Receives the name of each that can't be made, and why.

    Raises:
        RecipeError: The recipe has no labels or a search, a setting is invalid, or nothing is left.
        UnknownNameError: `without` names no candidate.
    """
    whole, sources, folders = resolve_recipe(recipe, overrides, smoke)
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
    if AS_WRITTEN in yours:
        raise RecipeError(
            f"--candidate {AS_WRITTEN}: the recipe as it is has this name; expected another one"
        )
    for name, said in yours.items():
        if any(setting.partition("=")[0].strip().split(".")[0] in SEEDS for setting in said):
            raise RecipeError(
                f"--candidate {name}: a choice tries all candidates at the same seeds; give them to"
                " all with --set"
            )
    usual, why_not = _usual(whole, folders, smoke, sources[str(whole.finetune.dataset)])
    settings = {**usual, **{name: ("yours", said) for name, said in yours.items()}}
    known = tuple(dict.fromkeys((*USUAL, *settings)))
    for name in without:
        if name not in known:
            raise UnknownNameError("--without", name, "a candidate", known)
    found = [Candidate(AS_WRITTEN, "the recipe as it is", tuple(overrides))]
    for name, (about, said) in settings.items():
        made = (*overrides, *variant_overrides(whole, name, said))
        try:
            # An invalid setting is refused before any work.
            _check_comparable(name, whole, resolve_recipe(recipe, made, smoke)[0])
        except RecipeError as error:
            if name in yours:
                raise
            (why_not[name], *_) = str(error).splitlines()
            continue
        found.append(Candidate(name, about, made))
    for name, why in why_not.items():
        if unmade and name not in (*without, *yours):
            unmade(name, why)
    found = [each for each in found if each.name not in without]
    if not found:
        raise RecipeError("choose: every candidate is left out; leave out fewer with --without")
    return found


def _check_comparable(name: str, whole: ResolvedRecipe, other: ResolvedRecipe) -> None:
    """Refuse a candidate whose score is of something else than that of the recipe as written.

    It is of other rows, of another metric, or a perplexity of other tokens or of more or less of
    each target. A search would change it after it was chosen.
    """
    for place, asks in _ASKED.items():
        if (asked := asks(other)) != (own := asks(whole)):
            raise RecipeError(
                f"choose: {name} has {place} {asked or 'none'} and {whole.name} {own or 'none'}, so"
                f" that their scores can't be compared; to choose by another, give it to all with"
                " --set"
            )
    if other.search is not None:
        raise RecipeError(
            f"choose: {name} has a search, which would change what was scored; name one candidate"
            " for each setting"
        )
    metric = whole.metrics[0]
    if metric not in OF_LIKELIHOOD:
        return
    lengths = [
        each.finetune and each.finetune.head_settings.get("target_length")
        for each in (whole, other)
    ]
    if lengths[0] != lengths[1]:
        raise RecipeError(
            f"choose: {name} reads up to {lengths[1]} tokens of a target and {whole.name}"
            f" {lengths[0]}, so that {metric} can't choose; put a metric of texts such as chrf"
            " first in evaluate.metrics"
        )
    if metric == PERPLEXITY and whole.tokenizer != other.tokenizer:
        raise RecipeError(
            f"choose: {name} has other tokens than {whole.name}, so that {metric} can't choose; put"
            f" {PERPLEXITY_A_WORD} first in evaluate.metrics, or a metric of texts such as chrf"
        )


def _usual(
    whole: ResolvedRecipe, folders: Sequence[Path], smoke: bool, source: Source
) -> tuple[Settings, Reasons]:
    """The candidates that every recipe has, and why those are missing that this one lacks."""
    before = pretraining_stages(whole)
    started = any(stage.init for stage in whole.stages)
    found: Settings = {}
    left_out = tuple(f"stages.{stage.name}=" for stage in before)
    if before:
        network = "the network as it came" if started else "the same network"
        found[LABELS_ONLY] = (f"{network}, trained on the labels alone", left_out)
    if len(before) > 1:
        for stage in before:
            name = f"no-{stage.name}"
            found[name] = (f"without the stage {stage.name}", (f"stages.{stage.name}=",))
    if started:
        found[FROM_SCRATCH] = _from_scratch(whole, source)
    found |= _counting(whole, left_out) | _fasttext(whole)
    why_not = {name: why for name in found if (why := _no_words(whole, folders, name))}
    if why := _no_scratch(whole) if started else "":
        why_not[FROM_SCRATCH] = why
    if why := _no_larger(whole, smoke):
        why_not[LARGER] = why
    else:
        found[LARGER] = ("twice the width and depth, half the learning rates", _larger(whole))
    return {name: of for name, of in found.items() if name not in why_not}, why_not


def _from_scratch(whole: ResolvedRecipe, source: Source) -> tuple[str, tuple[str, ...]]:
    """A small network in the place of the one that came trained; it reads the recipe's text."""
    finetune, before = whole.finetune, pretraining_stages(whole)
    assert finetune is not None
    words = {
        "scheme": "wordpiece",
        "vocabulary_size": vocabulary_size(source.language),
        "lowercase": True,
    }
    settings = [
        *(f"stages.{stage.name}=" for stage in whole.stages if stage.init),
        f"family={FAMILY}",
        f"size={in_yaml(dict(NETWORK))}",
        f"tokenizer={in_yaml(words)}",
    ]
    for stage in before:
        at = f"stages.{stage.name}"
        rate = GENERAL_RATE / (1 if stage is before[0] else SLOWER[stage.kind])
        adamw = {"peak_learning_rate": rate, "beta_2": BETA_2}
        settings += [
            f"{at}.objectives={in_yaml({'masked_lm': {'rate': MASK_RATE}})}",
            f"{at}.optimizer={in_yaml({'adamw': adamw})}",
        ]
        if stage is before[0]:
            if stage.kind != "task":  # rows may be too short to learn vectors from
                settings.append(f"{at}.starts_from={in_yaml({'embeddings': VECTORS})}")
            settings.append(f"{at}.phases={in_yaml(phases(stage.sequence_length))}")
    adamw, at = {"peak_learning_rate": FINETUNE_RATE, "warmup": 0.1}, f"stages.{finetune.name}"
    settings.append(f"{at}.optimizer={in_yaml({'adamw': adamw})}")
    if "summary" in finetune.head_settings:
        settings.append(f"{at}.head.{finetune.head}.summary={SUMMARY}")
    if told_what_texts_share(source.answers, has_pairs(source)):
        settings.append(f"{at}.head.{finetune.head}.shared_tokens=true")
    about = "a small network from random weights, which reads the recipe's text before the labels"
    return about, tuple(settings)


def _no_scratch(whole: ResolvedRecipe) -> str:
    """Why there is no network from scratch beside one that came trained; empty if there is."""
    finetune = whole.finetune
    assert finetune is not None
    if not pretraining_stages(whole):
        return "no stage before the labels reads text, from which a network could learn"
    if any(stage.starts_network for stage in whole.stages[1:]):
        return "it trains more than one network"
    own = [key for key in OF_THE_NETWORK if getattr(finetune, key)]
    return f"{', '.join(own)} of the stage {finetune.name}: for its own network" if own else ""


def _counting(whole: ResolvedRecipe, left_out: tuple[str, ...]) -> Settings:
    """Counted n-grams alone and beside the network.

    Args:
        whole: The recipe.
        left_out: Settings that leave out the stages before the labels.
    """
    finetune = whole.finetune
    assert finetune is not None
    if finetune.family == COUNTED:
        return {}
    head = f"stages.{finetune.name}.head.{finetune.head}"
    place = f"{head}.wide"
    # The weights before the first update are one choice.
    wide = [f"{place}=true", *_selecting(whole, finetune)]
    untold = [f"{head}.shared_tokens=false"] * bool(finetune.head_settings.get("shared_tokens"))
    own = [f"stages.{finetune.name}.{key}=" for key in OF_THE_NETWORK if getattr(finetune, key)]
    counted = (*own, f"family={COUNTED}", "size=tiny", *untold, *wide)
    alone = (*_labels_alone(whole), *without_lead(whole), *counted)
    found: Settings = {COUNTING: ("counted n-grams with linear SVMs, without a network", alone)}
    if finetune.head_settings.get("wide"):
        return {**found, NO_WIDE: ("without the counted n-grams", (f"{place}=false",))}
    if left_out:
        about = "counted n-grams beside the network, from the labels alone"
        found[WIDE_LABELS_ONLY] = (about, (*left_out, *wide))
    return {**found, WIDE: ("the recipe with counted n-grams beside the network", tuple(wide))}


def _fasttext(whole: ResolvedRecipe) -> Settings:
    """The classifier of ``papers/fasttext-classifier``, with its settings."""
    finetune = whole.finetune
    assert finetune is not None
    if finetune.family == "fasttext":
        return {}
    at = f"stages.{finetune.name}"
    words = {"scheme": "word", "vocabulary_size": 200_000, "minimum_count": 1}
    words["lowercase"] = whole.tokenizer.lowercase
    head = {**finetune.head_settings, "dropout": 0.0, "wide": False}
    if "shared_tokens" in head:
        head["shared_tokens"] = False
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


def _no_words(whole: ResolvedRecipe, folders: Sequence[Path], name: str) -> str:
    """Why a usual candidate that reads words can't be; empty if it can, or reads none."""
    finetune = whole.finetune
    assert finetune is not None
    if name not in (COUNTING, WIDE, WIDE_LABELS_ONLY, NO_WIDE, FASTTEXT):
        return ""
    head = str(finetune.head)
    if not literals("heads", head, folders).get("WIDE", False):
        return f"words alone don't answer under the head {head}, which has no setting wide"
    if name == FASTTEXT and answers_name(head, folders) not in ("label", "label_set"):
        return "fastText's classifier answers with labels alone"
    own = {COUNTING: (), FASTTEXT: OF_THE_NETWORK}.get(name, ("feature_based",))
    set_there = [key for key in own if getattr(finetune, key)]
    if set_there:
        are = "are" if len(set_there) > 1 else "is"
        return f"{', '.join(set_there)} of the stage {finetune.name} {are} for its own network"
    return ""


def _no_larger(whole: ResolvedRecipe, smoke: bool) -> str:
    """Why there is no larger network; empty if there is one."""
    if not pretraining_stages(whole):
        return "it has no stage before the labels that could train a larger network"
    if any(stage.init for stage in whole.stages):
        return "it starts from a network that is trained already"
    if any(stage.starts_network for stage in whole.stages[1:]):
        return "it trains more than one network"
    if missing := sorted({*SCALED} - {*whole.network}):
        return f"family {whole.family} has no {missing[0]} to double"
    return "a quick trial has the smallest size" if smoke else ""


def _labels_alone(whole: ResolvedRecipe) -> tuple[str, ...]:
    """Settings that leave out all other stages, also a teacher and the network it starts from."""
    return tuple(f"stages.{stage.name}=" for stage in whole.stages if stage.kind != "finetune")


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
