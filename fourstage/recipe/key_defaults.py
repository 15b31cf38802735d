"""The default of each key of a recipe: what a recipe that lacks the key is resolved to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fourstage.recipe.ledger import SourceFacts
from fourstage.recipe.resolution import resolve
from fourstage.recipe.resolved import as_recipe
from fourstage.recipe.schema import Recipe, Stage, WrittenOptimizer
from fourstage.recipe.schema_tree import RECIPE, held_in, mappings, steps_to

_TEXT = {
    "corpora": {"text": 1.0},
    "objectives": {"masked_lm": {}},
    "stop": {"patience": 1},
    "select": {"metric": "heldout_loss"},
}
_PRETRAINED = [
    {"stage": "general", **_TEXT},
    {"stage": "domain", **_TEXT, "remedies": {"ewc": {"strength": 0.1}}},
    {"stage": "task", **_TEXT},
]
_LABELLED = {
    "stage": "finetune",
    "dataset": "label",
    "head": {"sequence_classification": {}},
    "training_rows": {"number": 100},
    "stop": {"patience": 1},
    "select": {"metric": "accuracy"},
    "r_drop": {},
    "average": {},
}
_WRITER = {"stage": "general", "objectives": {"causal_lm": {}}, "corpora": {"text": 1.0}}
_WRITES = {
    "stage": "finetune",
    "dataset": "text_pairs",
    "head": {"sequence_to_sequence": {"prefix": "say:"}},
    "mixture": {"beside": {"label": "name:"}},
    "stop": {"patience": 1},
}
_NETWORK = {"name": "example", "family": "bert", "size": "tiny"}
_PROMOTED = {
    "model": "example",
    "require": {"accuracy": {"not_below_champion_by": {"margin": 0.1}}},
}
# Recipes that have every mapping, and leave out the keys that have a default. One that depends on
# the rest of a recipe differs between them.
EXAMPLES: tuple[Mapping[str, Any], ...] = (
    {
        **_NETWORK,
        "tokenizer": {"learn_from": ["text"]},
        "stages": [*_PRETRAINED, {**_LABELLED, "lora": {}, "fgm": {}}],
        "evaluate": {"prototypes": {"label": {}}, "attention": {"rows": 1}},
        "search": {"folds": 2},
        "promote": _PROMOTED,
    },
    {
        **_NETWORK,
        "tokenizer": {"scheme": "word", "learn_from": ["text"]},
        "seeds": {"values": [1, 2]},
        "stages": [*_PRETRAINED, {**_LABELLED, "feature_based": {}}],
    },
    {
        **_NETWORK,
        "family": "gpt2",
        "tokenizer": {"learn_from": ["text"]},
        "seed": 1,
        "stages": [_WRITER, {**_WRITES, "name": "writes"}],
        "evaluate": {
            "few_shot": {
                "label": {},
                "over_neutral": {"score": "over_neutral"},
                "free_form": {"score": "free_form"},
            },
            "attention": {"rows": 1},
        },
        "search": {"folds": 2},
    },
    {
        **_NETWORK,
        "family": "gpt2",
        "tokenizer": {"learn_from": ["text"]},
        "seed": 1,
        "stages": [_WRITER, _WRITES],
        "evaluate": {"metrics": ["perplexity"]},
        "promote": {
            "model": "example",
            "require": {"perplexity": {"not_above_champion_by": {"margin": 1.0}}},
        },
    },
)
_LABELS = SourceFacts(labelled=True)
SOURCES = {
    "text": SourceFacts(labelled=False),
    **dict.fromkeys(("label", "over_neutral", "free_form"), _LABELS),
    "text_pairs": SourceFacts(labelled=True, answers="text"),
}
DEPENDS: Any = object()  # in place of a default that depends on the rest of a recipe
Place = tuple[str, str]  # name of a mapping of the schema, key


def defaults_by_key(schema: Mapping[str, Any]) -> dict[Place, dict[str | None, Any]]:
    """{place: {kind of stage: default}} of all keys that have one; the kind is None outside stages.

    Those of the optimizers are not among them: each has its own (`fourstage.recipe.defaults`).
    """
    found: dict[Place, dict[str | None, Any]] = {}
    for example in EXAMPLES:
        full = as_recipe(resolve(Recipe.model_validate(example), SOURCES, folders=()))
        for place, kind, value in _added(mappings(schema), RECIPE, example, full, None):
            known = found.setdefault(place, {})
            known[kind] = value if known.get(kind, value) == value else DEPENDS
    return found


def _added(
    known: Mapping[str, Mapping[str, Any]],
    name: str,
    said: Mapping[str, Any],
    full: Mapping[str, Any],
    kind: str | None,
) -> Iterator[tuple[Place, str | None, Any]]:
    """(place, kind of stage, value) of every key that is in `full` and not in `said`."""
    keys = known[name]["properties"]
    for key, value in full.items():
        inner = held_in(keys[key])
        if inner == WrittenOptimizer.__name__:
            continue
        if key == "phases" and key not in said:
            yield (name, "sequence_length"), kind, value[0]["sequence_length"]
        elif inner and isinstance(value, Mapping | list):
            for below, more in _pairs(said.get(key), value, steps_to(keys[key])):
                of = more["stage"] if inner == Stage.__name__ else kind
                yield from _added(known, inner, below, more, of)
        elif key not in said and value != kind:  # a stage's name is its kind
            yield (name, key), kind, value


def _pairs(said: Any, full: Any, steps: str) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """The mappings below a key, with what is said of each, through lists and names."""
    if steps.startswith("[]"):
        for i, value in enumerate(full):
            yield from _pairs(said[i] if said else None, value, steps[2:])
    elif steps.startswith(".NAME"):
        for name, value in full.items():
            yield from _pairs((said or {}).get(name), value, steps[5:])
    else:
        yield said if isinstance(said, Mapping) else {}, full
