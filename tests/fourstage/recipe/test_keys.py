"""Each key of the schema is read or refused; none is accepted and then ignored.

`READ` sets every key that does something, `REFUSED` every other one. Another value in the place of
any must resolve to something else, or be refused; and whatever is resolved somebody reads.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import pytest
from pydantic import ValidationError

from fourstage.errors import RecipeError
from fourstage.recipe import defaults
from fourstage.recipe.ledger import SourceFacts
from fourstage.recipe.resolution import resolve
from fourstage.recipe.resolved import as_recipe
from fourstage.recipe.schema import STAGE_KINDS, Recipe, Stage
from fourstage.recipe.stages import KINDS_WITH
from fourstage.settings import REPOSITORY

SCHEMA = Recipe.model_json_schema()
SOURCES = {
    **dict.fromkeys(("text", "other"), SourceFacts(labelled=False)),
    **dict.fromkeys(("rows", "more"), SourceFacts(labelled=True)),
    "both": SourceFacts(labelled=True, pairs=True),
    "texts": SourceFacts(labelled=True, answers="text"),
}
ADAMW = {
    "peak_learning_rate": 1e-3,
    "warmup": 0.2,
    "decay": "cosine",
    "weight_decay": 0.1,
    "beta_1": 0.8,
    "beta_2": 0.8,
    "epsilon": 1e-5,
    "bias_correction": "rate",
    "clip_norm": 2.0,
    "layer_decay": 0.9,
}
VALUES = {**ADAMW, "momentum": 0.9}
OTHERS = {name: {key: VALUES[key] for key in given} for name, given in defaults.OPTIMIZERS.items()}
TRAINED = {
    "batch_size": 8,
    "micro_batches": 2,
    "precision": "float32",
    "refresh": "never",
    "optimizer": {"adamw": ADAMW},
}
GENERAL = {
    **TRAINED,
    "stage": "general",
    "name": "first",
    "corpora": {"text": 0.5, "other": 0.5},
    "objectives": {"masked_lm": {"rate": 0.2}, "sentence_order": {"weight": 0.5}},
    "alternate": True,
    "phases": [
        {"sequence_length": 16, "share": 0.5, "batch_size": 4},
        {"sequence_length": 32, "share": 0.5},
    ],
    "budget": {"steps": 100},
    "stop": {"patience": 3, "metric": "heldout_loss"},
    "select": {"metric": "heldout_loss", "split": "heldout"},
}
DOMAIN = {
    **TRAINED,
    "stage": "domain",
    "refresh": "continue",
    "continuations": 30,
    "name": "second",
    "family": "roberta",
    "size": {"num_layers": 2, "hidden_dim": 32, "num_heads": 2, "intermediate_dim": 64},
    "corpora": {"text": 0.5, "other": 0.5},
    "objectives": {"masked_lm": {"rate": 0.2}},
    "sequence_length": 32,
    "budget": {"tokens": 5000},
    "optimizer": {"adamw": {"warmup": 0.2}},
    "remedies": {"layer_decay": 0.9},
    "stop": {"patience": 3},
    "select": {"metric": "heldout_loss", "split": "heldout"},
}
TASK = {
    **TRAINED,
    "stage": "task",
    "corpora": {"rows": 0.5, "text": 0.5},
    "objectives": {"masked_lm": {"rate": 0.2}},
    "gradual_unfreezing": {"epochs": 0.5},
    "optimizer": {"adamw": {"decay": "slanted_triangular", "ratio": 20.0}},
    "budget": {"epochs": 2.5},
}
FINETUNE = {
    **TRAINED,
    "stage": "finetune",
    "dataset": "rows",
    "overlap": "refuse",
    "training_rows": {"number": 64, "seed": 3},
    "head": {"sequence_classification": {"class_weights": "balanced"}},
    "objectives": {"masked_lm": {"rate": 0.2, "weight": 0.5}},
    "r_drop": {"alpha": 2.0},
    "fgm": {"epsilon": 0.5},
    "average": {"decay": 0.999},
    "lora": {"rank": 4, "alpha": 8.0, "targets": ["query", "key"], "dropout": 0.1},
    "budget": {"epochs": 2.5},
    "stop": {"patience": 3, "metric": "accuracy"},
    "select": {"metric": "accuracy", "split": "dev"},
}
RULES = {"at_least": 0.1, "at_most": 0.8}
BASELINE = {"above": "cheap_baseline", "not_below": "cheap_baseline"}
BEYOND_SLICES = {**BASELINE, "p50_at_most": 5.0, "p95_at_most": 10.0}
TEST = {"margin": 0.1, "confidence": 0.9, "resamples": 500, "seed": 3}
WHOLE = {
    "name": "one",
    "family": "bert",
    "size": "tiny",
    "tokenizer": {
        "scheme": "wordpiece",
        "vocabulary_size": 400,
        "lowercase": True,
        "sentinels": 10,
        "marks": ["[A]", "[B]"],
        "learn_from": ["text"],
    },
    "units": {"segmenter": "rjieba", "gazetteer": "names.txt"},
    "seed": 3,
    "stages": [GENERAL, DOMAIN, TASK, FINETUNE],
    "limits": {"minutes": 60.0, "disk_gb": 5.0},
    "decontaminate": ["more"],
    "evaluate": {
        "metrics": ["accuracy", "macro_f1"],
        "split": "dev",
        "slices": ["length"],
        "forgetting_on": ["text"],
        "probes": {"more": "accuracy"},
    },
    "search": {
        "grid": {"batch_size": [8, 16]},
        "metric": "accuracy",
        "seeds": [1, 2],
        "folds": 3,
    },
    "promote": {
        "model": "one",
        "require": {
            "accuracy": {**RULES, **BASELINE, "not_below_champion_by": 0.1},
            "macro_f1": {"not_below_champion_by": TEST},
            "latency_ms": {"p50_at_most": 5.0, "p95_at_most": 10.0},
            "forgetting": {"at_most": 0.5},
        },
        "require_slices": {"length": {"accuracy": RULES}},
        "split": "test",
        "approve": "by_hand",
    },
}
PLAIN = {
    "stage": "general",
    "corpora": {"text": 0.5, "other": 0.5},
    "objectives": {"masked_lm": {"rate": 0.2}},
}
STARTED = {**PLAIN, "name": "second", "size": "tiny", "starts_from": {"embeddings": "general"}}
UNLABELLED = {
    "name": "two",
    "family": "bert",
    "size": "tiny",
    "stages": [PLAIN, {**PLAIN, "name": "second"}],
}
ANEW = {
    "stage": "finetune",
    "dataset": "rows",
    "head": {"sequence_classification": {"class_weights": "balanced"}},
    "reinitialise": 1,
    "freeze": ["embeddings/*", "block_0/*"],
}
EACH = {"number": 64, "each_seed": True}
FROZEN = {
    "stage": "finetune",
    "dataset": "rows",
    "head": {"sequence_classification": {"class_weights": "balanced"}},
    "feature_based": {"hidden_dim": 64, "num_layers": 2, "dropout": 0.2},
}
MIXED = {
    "stage": "finetune",
    "dataset": "texts",
    "head": {"sequence_to_sequence": {"prefix": "say:"}},
    "mixture": {"beside": {"rows": "name:", "more": "tell:"}, "limit": 500, "temperature": 2.0},
}
ASKED = {"answers": "label", "metric": "accuracy", "shots": [0, 4], "rows": 50}
LOOKS = {
    "template": "{text} is {answer}",
    "instruction": "What is it?",
    "separator": " ",
    "verbalisers": {"pos": "good"},
    "balanced": True,
    "too_long": "fewer",
    "overlap_words": 8,
}
IN_CONTEXT = {
    **UNLABELLED,
    "family": "gpt2",
    "stages": [{**PLAIN, "objectives": {"causal_lm": {"across_documents": False}}}],
}
GRAPH = {
    "stage": "general",
    "name": "graph",
    "family": "transe",
    "size": {"hidden_dim": 32},
    "tokenizer": {
        "scheme": "name",
        "vocabulary_size": 400,
        "lowercase": False,
        "sentinels": 5,
        "minimum_count": 1,
        "learn_from": ["more"],
    },
    "corpora": {"rows": 0.5, "more": 0.5},
    "objectives": {"transe": {"margin": 2.0, "distance": "l2", "learning_rate": 0.1}},
}
KNOWING = {
    "stage": "general",
    "name": "text",
    "family": "ernie_tsinghua",
    "size": "tiny",
    "starts_from": {"entities": "graph"},
    "corpora": {"text": 0.5, "other": 0.5},
    "objectives": {"entity_denoising": {"replaced": 0.1, "unaligned": 0.2}},
}
READ = {
    "whole": WHOLE,
    "whole words": {
        **UNLABELLED,
        "tokenizer": {"scheme": "word", "minimum_count": 3, "segmenter": "rjieba"},
    },
    "top layers anew": {**UNLABELLED, "stages": [PLAIN, ANEW]},
    "frozen": {**UNLABELLED, "stages": [PLAIN, FROZEN]},
    "rows of each seed": {**UNLABELLED, "stages": [PLAIN, {**FROZEN, "training_rows": EACH}]},
    "words in sentences": {
        **UNLABELLED,
        "evaluate": {
            "word_in_context": ["both"],
            "polysemy": {
                "ox": {"same": ["An ox", "One ox", "No ox"], "different": ["Ox!", "Ox?", "ox"]}
            },
        },
    },
    "attention": {
        **UNLABELLED,
        "stages": [PLAIN, FROZEN],
        "evaluate": {
            "attention": {
                "texts": ["An ox", "One\tox"],
                "rows": 2,
                "layers": [1, 2],
                "stage": "finetune",
            }
        },
    },
    "tasks in a mixture": {
        **UNLABELLED,
        "family": "gpt2",
        "stages": [{**PLAIN, "objectives": {"causal_lm": {"across_documents": False}}}, MIXED],
        "evaluate": {"metrics": ["perplexity", "perplexity_a_word"]},
        "promote": {
            "model": "one",
            "require": {
                "perplexity": {"at_most": 90.0, "not_above_champion_by": 4.0},
                "perplexity_a_word": {"not_above_champion_by": {**TEST, "margin": 30.0}},
            },
        },
    },
    "answers from a prompt": {
        **IN_CONTEXT,
        "evaluate": {
            "few_shot": {
                "rows": {**ASKED, **LOOKS, "score": "over_neutral", "neutral": "It is "},
                "more": {
                    "score": "free_form",
                    "beams": 2,
                    "length_penalty": 1.0,
                    "answer_length": 8,
                },
            }
        },
    },
    "classes told by a few rows": {
        **UNLABELLED,
        "evaluate": {"prototypes": {"rows": {"ways": [2, 3], "shots": [2], "episodes": 50}}},
    },
    "ranks of heads and tails": {
        **UNLABELLED,
        "family": "transe",
        "stages": [
            {
                "stage": "general",
                "corpora": {"rows": 0.5, "more": 0.5},
                "objectives": {"transe": {"margin": 2.0, "distance": "l2", "learning_rate": 0.1}},
            }
        ],
        "evaluate": {"links": ["rows"]},
    },
    "tests of word vectors": {
        **UNLABELLED,
        "family": "word2vec",
        "stages": [{**PLAIN, "objectives": {"cbow": {"window": 3}}}],
        "evaluate": {"word_relations": ["text", "other"], "word_map": ["ox", "ass"]},
    },
    "a table of another network": {**UNLABELLED, "stages": [PLAIN, STARTED]},
    "entities of a graph": {
        **UNLABELLED,
        "units": {"entities": "entities.tsv"},
        "stages": [GRAPH, KNOWING],
    },
    **{
        name: {**UNLABELLED, "stages": [{**PLAIN, "optimizer": {name: settings}}]}
        for name, settings in OTHERS.items()
    },
    **{
        f"pulled to the start by {name}": {
            **UNLABELLED,
            "stages": [PLAIN, {**PLAIN, "name": "second", "remedies": {name: settings}}],
        }
        for name, settings in (
            ("l2_sp", {"strength": 1.0}),
            ("ewc", {"strength": 1.0, "samples": 5}),
            ("rec_adam", {"pull": 90.0, "speed": 1.0, "midpoint": 5}),
        )
    },
    "no labels, several seeds": {
        **UNLABELLED,
        "seeds": {"values": [1, 2, 3, 4], "from": "second", "together": 2},
    },
}
# What has no meaning where it stands here.
REFUSED: list[dict[str, Any]] = [
    *(
        {"optimizer": {name: {key: value}}}
        for name, settings in OTHERS.items()
        for key, value in VALUES.items()
        if key not in settings
    ),
    {"optimizer": {"adamw": {"momentum": VALUES["momentum"]}}},
    {"init": "folder:nowhere"},
    {"promote": {"model": "two", "require_slices": {"length": {"accuracy": BEYOND_SLICES}}}},
    *(
        {"promote": {"model": "two", "require_slices": {"length": {"accuracy": {test: TEST}}}}}
        for test in ("not_below_champion_by", "not_above_champion_by")
    ),
    {"tokenizer": {"add_words": 5}},
    {"tokenizer": {"minimum_count": 5}},
    {"stages": [{**PLAIN, "tokenizer": {"add_words": 5}}]},
    {"tokenizer": {"segmenter": "rjieba"}},
    {"stages": [{**PLAIN, "tokenizer": {"scheme": "name", "marks": ["[HD]"]}}]},
    {"stages": [{**PLAIN, "tokenizer": {"scheme": "name", "segmenter": "rjieba"}}]},
    {"gradual_unfreezing": {"share": 0.1}},
    {"stages": [PLAIN, {**FROZEN, "training_rows": {**EACH, "seed": 3}}]},
    *({"optimizer": {name: {"ratio": 20.0}}} for name in OTHERS),
]
TEXTS = (
    *("other", "more", "zzz", "roberta", "mini", "second", "papers/roberta"),
    *("cosine", "linear", "bfloat16", "float32", "continue", "never", "report", "error"),
    *("macro_f1", "heldout", "dev", "test", "byte_bpe", "domain", "task", "l1"),
    "choice",
)
READ_ALL_THE_SAME = {
    "decontaminate": "read with all sources that a recipe names, by the recipe itself",
    "p50_at_most": "taken apart by tasks/registry/gate.py",
    "p95_at_most": "taken apart by tasks/registry/gate.py",
}
READERS = ("tasks", "flows", "fourstage", "corpora", "models")


def outcome(values: Mapping[str, Any]) -> Any:
    """What comes of a recipe: every value, or what is wrong with it."""
    try:
        return as_recipe(resolve(Recipe.model_validate(values), SOURCES, folders=()))
    except RecipeError as error:
        return str(error)


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every single value; a list of texts or numbers is one."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*at, key))
    elif isinstance(value, list) and isinstance(value[0], Mapping):
        for i, inner in enumerate(value):
            yield from leaves(inner, (*at, i))
    else:
        yield at


def others(value: Any) -> list[Any]:
    """Values to try in the place of one; the last is none at all."""
    match value:
        case bool():
            return [not value, None]
        case int():
            return [2 * value, None]
        case float():
            return [value / 2, None]
        case list():
            return [value[:-1], [{"text": "other", "more": "rows"}.get(value[0], 9)], None]
        case Mapping():
            return [None]
    return [text for text in TEXTS if text != value] + [None]


def put(values: Mapping[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The values with another one at a path, or none."""
    changed: Any = deepcopy(dict(values))
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    if value is None:
        del inner[path[-1]]
    return changed


@pytest.mark.parametrize("name", READ)
def test_another_value_of_a_key_makes_a_difference(name: str):
    before = outcome(READ[name])
    assert not isinstance(before, str), before
    ignored = []
    for path in leaves(READ[name]):
        value: Any = READ[name]
        for step in path:
            value = value[step]
        for other in others(value):
            try:
                after = outcome(put(READ[name], path, other))
            except ValidationError:
                continue  # a value that the schema does not know says nothing of the key
            if after != before:
                break
        else:
            ignored.append(path)
    assert not ignored


KINDS = {"general": GENERAL, "domain": DOMAIN, "task": TASK, "finetune": FINETUNE}


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_key_without_machinery_is_refused_by_name(number: int):
    """Each key of a mapping, one at a time where they can stand alone."""
    said = REFUSED[number]
    (key,) = said
    told = outcome({**WHOLE, **said} if key in Recipe.model_fields else stage_with(PLAIN, said))
    assert isinstance(told, str), f"accepted: {said}"
    for path in leaves(said):
        assert any(f in told for f in (path[-1], path[0])), path


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_a_stage_does_not_have_is_refused(kind: str):
    """Of every stage key one value, taken from the stages that have it."""
    elsewhere = {
        key: value
        for stage in (*KINDS.values(), FROZEN, ANEW, STARTED, GRAPH, MIXED)
        for key, value in stage.items()
    }
    least = {"stage", "corpora", "objectives", "dataset", "head"} & KINDS[kind].keys()
    stage = {key: KINDS[kind][key] for key in least}
    before = outcome(stage_with(stage, {}))
    assert not isinstance(before, str), before
    for key in Stage.model_fields.keys() - KINDS[kind].keys() - {"lengths", "decode", "init"}:
        assert outcome(stage_with(stage, {key: elsewhere[key]})) != before, key


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_of_other_kinds_of_stage_is_refused_by_name(kind: str):
    """The table by which the page of keys says which stages have a key."""
    assert KINDS_WITH.keys() <= Stage.model_fields.keys()
    written = {
        key: value
        for stage in (*KINDS.values(), FROZEN, ANEW, MIXED, {"init": "folder:nowhere"})
        for key, value in stage.items()
    }
    least = {"stage", "corpora", "objectives", "dataset", "head"} & KINDS[kind].keys()
    stage = {key: KINDS[kind][key] for key in least}
    for key in Stage.model_fields.keys() & written.keys() - {"init"}:
        told = str(outcome(stage_with(stage, {key: written[key]})))
        refused = kind not in KINDS_WITH.get(key, STAGE_KINDS)
        assert (f"stage {kind} has no {key!r}" in told) == refused, key


@pytest.mark.parametrize("key", ["metrics", "split", "slices"])
def test_what_is_measured_on_labels_is_refused_where_there_are_none(key: str):
    told = outcome({**UNLABELLED, "evaluate": {key: WHOLE["evaluate"][key]}})
    assert f"evaluate.{key}: there is no finetune stage" in told


def stage_with(stage: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe of one stage, with more keys."""
    return {**UNLABELLED, "stages": [{**stage, **said}]}


NAMES = {
    "require": 1,
    "require_slices": 2,
    "probes": 1,
    "few_shot": 1,
    "prototypes": 1,
    "verbalisers": 1,
    "beside": 1,
}  # levels of names below a key


def keys_of(path: tuple[Any, ...]) -> tuple[str, ...]:
    """A path of a recipe without the indices and names in it."""
    found: list[str] = []
    names = 0
    for part in path:
        if not isinstance(part, int) and not names:
            found.append(part)
        names = NAMES.get(part, max(0, names - 1))
    return tuple(found)


def schema_keys(node: Mapping[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key of the schema that holds a value."""
    if "$ref" in node:
        node = SCHEMA["$defs"][node["$ref"].rpartition("/")[2]]
    inner = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    inner += [
        each for key in ("items", "additionalProperties") if isinstance(each := node.get(key), dict)
    ]
    for each in inner:
        yield from schema_keys(each, at)
    for name, each in node.get("properties", {}).items():
        yield from schema_keys(each, (*at, name))
    if not inner and "properties" not in node and node.get("type") != "null":
        yield at


def test_every_key_of_the_schema_is_tried():
    recipes = [*READ.values()]
    recipes += [
        said if said.keys() <= Recipe.model_fields.keys() else {"stages": [said]}
        for said in REFUSED
    ]
    tried = {keys_of(path) for recipe in recipes for path in leaves(recipe)}
    left = {
        key for key in schema_keys(SCHEMA) if not any(path[: len(key)] == key for path in tried)
    }
    assert left == {("extends",)}  # tests/fourstage/recipe/test_loading.py


def test_whatever_is_resolved_is_read_by_who_runs_a_recipe():
    """Its name occurs in their code; where it does not, it does nothing, whatever it is."""
    files = [file for folder in READERS for file in (REPOSITORY / folder).rglob("*.py")]
    files = [file for file in files if REPOSITORY / "fourstage" / "recipe" not in file.parents]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text("utf-8")))]
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    names |= {node.value for node in nodes if isinstance(node, ast.Constant)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg | ast.keyword)}
    known = {keys_of(path)[-1] for recipe in READ.values() for path in leaves(recipe)}
    assert known - names == READ_ALL_THE_SAME.keys()
