"""The smoke version of a recipe: size tiny, a few steps per stage, on text every machine has.

The structure stays: stages, objectives, head, phases, tokenizer scheme, metrics. Whatever makes a
run long or needs a download is replaced. The result is registered under another name and can never
touch the real one.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Collection
from typing import Any

from fourstage.recipe.starts import EMBEDDINGS, families_of_vectors

STEPS = 20
SEQUENCE_LENGTH = 64
TARGET_LENGTH = 32
SHOT_ROWS = 20
EPISODES = 20
TRAINING_ROWS = 8, 16  # fewest and most: every label of the smoke rows has one
BATCH_SIZE = 8
VOCABULARY_SIZE = 2000
GENERAL = "smoke_general"
DOMAIN = "smoke_domain"
LABELS = "smoke_labels"
TRIPLES = "smoke_triples"
PICTURES = "smoke_pictures"
CAPTIONS = "smoke_captions"
DETECTED = ("groups", "detected")  # what `region_class` learns of a detector
ENTITIES = "corpora/gazetteers/python_entities.tsv"  # of the graph in smoke_triples
# Rows by their kind of answer. Those of a project's own kind are used as they are.
ROWS = {
    "label": LABELS,
    **{
        kind: f"smoke_{kind}"
        for kind in ("number", "label_set", "spans", "extract", "choice", "text")
    },
}
_LAYER = re.compile(r"\b((?:block|cross)_)[^/_]+")
EMBEDDED = frozenset({GENERAL, DOMAIN, TRIPLES, PICTURES, CAPTIONS, *ROWS.values()})


def shrink(
    recipe: dict[str, Any],
    answers: str = "label",
    of_triples: Collection[str] = (),
    pictured: Collection[str] = (),
    asking: Collection[str] = (),
) -> dict[str, Any]:
    """The smoke version of a recipe that has the right shape, as plain values.

    Args:
        recipe: The recipe.
        answers: What its head answers with: a name of ``models/answers``.
        of_triples: Objectives whose corpora are knowledge graphs.
        pictured: Datasets with pictures, which its network sees.
        asking: Objectives that ask questions about pictures.
    """
    small = copy.deepcopy(recipe)
    given = next((stage["dataset"] for stage in small["stages"] if "dataset" in stage), LABELS)
    rows = given if given in EMBEDDED else ROWS.get(answers, given)
    if given in pictured and answers == "label":
        rows = PICTURES
    small.pop("extends", None)
    small["name"] = smoke_name(small["name"])
    small["size"] = "tiny"
    if "seeds" in small:
        small["seed"] = small.pop("seeds")["values"][0]
    small["stages"] = [
        _stage(
            _trained(stage, small["stages"]), small["stages"], rows, of_triples, pictured, asking
        )
        for stage in small["stages"]
    ]
    shared = [stage for stage in small["stages"] if "tokenizer" not in stage]
    small["tokenizer"] = _tokenizer(small.get("tokenizer", {}), shared)
    if "entities" in small.get("units", {}):
        small["units"]["entities"] = ENTITIES
    if "decontaminate" in small:
        small["decontaminate"] = [n for n in small["decontaminate"] if n in EMBEDDED]
    if "forgetting_on" in small.get("evaluate", {}):
        names = small["evaluate"]["forgetting_on"]
        small["evaluate"]["forgetting_on"] = list(
            dict.fromkeys(name if name in EMBEDDED else GENERAL for name in names)
        )
    if probes := small.get("evaluate", {}).get("probes"):
        # All non-embedded datasets map to the same one; the metric of the first counts.
        embedded = {n if n in EMBEDDED else LABELS: m for n, m in reversed(probes.items())}
        small["evaluate"]["probes"] = embedded
    for key in ("word_relations", "word_in_context"):  # no such file is embedded
        small.get("evaluate", {}).pop(key, None)
    if small.get("evaluate", {}).get("attention"):
        small["evaluate"]["attention"].pop("layers", None)  # the tiny network has fewer
    if small.get("evaluate", {}).get("links"):
        small["evaluate"]["links"] = [TRIPLES]
    if told := small.get("evaluate", {}).get("prototypes"):
        few = {"ways": [2], "shots": [1], "episodes": EPISODES}  # embedded rows have few classes
        embedded = {name if name in EMBEDDED else LABELS: dict(few) for name in told}
        small["evaluate"]["prototypes"] = embedded
    if asked := small.get("evaluate", {}).get("few_shot"):
        # As with probes, of several datasets with such answers the settings of the first count.
        embedded = {}
        for name, said in asked.items():
            embedded.setdefault(_asked_rows(name, said), _asked(name, said))
        small["evaluate"]["few_shot"] = embedded
    if "search" in small:
        small["search"] = _search(small["search"])
    if "promote" in small:
        small["promote"]["model"] = smoke_name(small["promote"]["model"])
        small["promote"]["require"] = {}
        for rule in ("require_slices", "approve"):
            small["promote"].pop(rule, None)
    return small


def _asked_rows(name: str, said: dict[str, Any]) -> str:
    """Embedded rows with the same kind of answers."""
    return name if name in EMBEDDED else ROWS[said.get("answers", "label")]


def _asked(name: str, said: dict[str, Any]) -> dict[str, Any]:
    """Settings for a few rows and examples, as many as fit in short prompts."""
    small = {**said, "shots": said.get("shots", [0, 1])[:2], "too_long": "fewer"}
    small["rows"] = min(said.get("rows", SHOT_ROWS), SHOT_ROWS)
    if "answer_length" in said:
        small["answer_length"] = min(said["answer_length"], TARGET_LENGTH)
    if name not in EMBEDDED:  # embedded rows have other labels, and one text
        small.pop("verbalisers", None)
        if "text_pair" in said.get("template", ""):
            small.pop("template")
    return small


def _search(search: dict[str, Any]) -> dict[str, Any]:
    """Two values of the first setting, at one seed."""
    small = {key: value for key, value in search.items() if key == "metric"}
    if "grid" in search:
        small["grid"] = {place: values[:2] for place, values in list(search["grid"].items())[:1]}
    if "folds" in search:
        small["folds"] = 2
    if "seeds" in search:
        small["seeds"] = search["seeds"][:1]
    return small


def smoke_name(name: str) -> str:
    """``<name>-smoke``, shortened if necessary to stay a valid name."""
    return name if name.endswith("-smoke") else f"{name[:94]}-smoke"


def _trained(stage: dict[str, Any], stages: list[dict[str, Any]]) -> dict[str, Any]:
    """A stage whose network would come from elsewhere, trained like the stages after it instead."""
    if "init" not in stage:
        return stage
    objectives = next((each["objectives"] for each in stages if "objectives" in each), None)
    return {
        **{key: value for key, value in stage.items() if key != "init"},
        "corpora": {GENERAL: 1.0},
        "objectives": objectives or {"masked_lm": {}},
    }


def _of_stages(parts: dict[str, str], stages: list[dict[str, Any]]) -> dict[str, str]:
    """The parts that start from stages of the recipe, and a table from vectors of its own text.

    Tables of other stages differ in width from those of tiny networks.
    """
    names = {stage.get("name", stage["stage"]) for stage in stages}
    learned = {*families_of_vectors(())} - names
    return {p: of for p, of in parts.items() if of in (learned if p == EMBEDDINGS else names)}


def _stage(
    stage: dict[str, Any],
    stages: list[dict[str, Any]],
    rows: str,
    of_triples: Collection[str],
    pictured: Collection[str],
    asking: Collection[str],
) -> dict[str, Any]:
    small = dict(stage)
    small.pop("stop", None)
    if drawn := small.get("training_rows"):
        said = {"number": drawn} if isinstance(drawn, int) else drawn
        fewest, most = TRAINING_ROWS
        small["training_rows"] = {**said, "number": min(max(said["number"], fewest), most)}
    if "family" in small or "size" in small:
        small["size"] = "tiny"
    if parts := small.pop("starts_from", None):
        small |= {"starts_from": kept} if (kept := _of_stages(parts, stages)) else {}
    if "corpora" in small:
        captions = rows if small["stage"] == "task" else CAPTIONS
        if _reads(stage, stages, asking):
            captions = PICTURES
        small["corpora"] = (
            {TRIPLES: 1.0}
            if _reads(stage, stages, of_triples)
            else _corpora(small["corpora"], small["stage"], rows, pictured, captions)
        )
    if "region_class" in small.get("objectives", {}):  # drawn pictures have their own classes
        learned = small["objectives"]["region_class"] or {}
        kept = {key: value for key, value in learned.items() if key not in DETECTED}
        small["objectives"] = {**small["objectives"], "region_class": kept}
    if "tokenizer" in small:
        small["tokenizer"] = _tokenizer(small["tokenizer"], [small])
    if "dataset" in small:
        small["dataset"] = rows
    if "mixture" in small:
        small["mixture"] = {**small["mixture"], "beside": _beside(small["mixture"]["beside"], rows)}
    if isinstance(small.get("head"), dict):
        small["head"] = {name: _head(own, rows) for name, own in small["head"].items()}
    steps = small.get("budget", {}).get("steps", STEPS)
    small["budget"] = {"steps": min(steps, STEPS)}
    small["batch_size"] = min(small.get("batch_size", BATCH_SIZE), BATCH_SIZE)
    small["micro_batches"] = min(small.get("micro_batches", 1), small["batch_size"])
    if small["batch_size"] % small["micro_batches"]:
        small["micro_batches"] = 1
    if "reinitialise" in small:  # the tiny network has fewer blocks
        small["reinitialise"] = 1
    if "freeze" in small:  # the same
        small["freeze"] = list(dict.fromkeys(_LAYER.sub(r"\g<1>0", p) for p in small["freeze"]))
    if "gradual_unfreezing" in small:  # and few updates
        small["gradual_unfreezing"] = {"share": 0.1}
    if "phases" in small:
        small["phases"] = [
            {
                **phase,
                "sequence_length": min(phase["sequence_length"], SEQUENCE_LENGTH),
                **({"batch_size": BATCH_SIZE} if phase.get("batch_size", 0) > BATCH_SIZE else {}),
            }
            for phase in small["phases"]
        ]
    elif "sequence_length" in small:
        small["sequence_length"] = min(small["sequence_length"], SEQUENCE_LENGTH)
    elif stage["stage"] == "general" or small.get("objectives"):
        small["sequence_length"] = SEQUENCE_LENGTH
    return small


def _beside(beside: dict[str, str], rows: str) -> dict[str, str]:
    """Prefixes of embedded rows with a label and with a number, in place of all other datasets'."""
    small = {name: prefix for name, prefix in beside.items() if name in EMBEDDED}
    others = [prefix for name, prefix in beside.items() if name not in EMBEDDED]
    free = [ROWS[kind] for kind in ("label", "number") if ROWS[kind] not in (*small, rows)]
    return {**small, **dict(zip(free, others, strict=False))}


def _reads(
    stage: dict[str, Any], stages: list[dict[str, Any]], objectives: Collection[str]
) -> bool:
    """Whether a stage has one of the objectives, its own or those of the stages before."""
    named: dict[str, Any] = {}
    for each in stages:
        named = each.get("objectives", named)
        if each.get("name", each["stage"]) == stage.get("name", stage["stage"]):
            break
    return not named.keys().isdisjoint(objectives)


def _tokenizer(said: dict[str, Any], stages: list[dict[str, Any]]) -> dict[str, Any]:
    """A vocabulary of a few pieces, learned from what its stages read."""
    small = {name: value for name, value in said.items() if name != "add_words"}
    small["vocabulary_size"] = min(said.get("vocabulary_size", VOCABULARY_SIZE), VOCABULARY_SIZE)
    if "learn_from" in said:
        small["learn_from"] = _renamed(said["learn_from"], stages)
    return small


def _head(settings: object, rows: str) -> object:
    """A head's settings, with targets that fit in short rows, and for rows of one text."""
    if not isinstance(settings, dict):
        return settings
    small = dict(settings)
    if isinstance(settings.get("target_length"), int):
        small["target_length"] = min(settings["target_length"], TARGET_LENGTH)
    if isinstance(settings.get("min_tokens"), int):
        small["min_tokens"] = min(settings["min_tokens"], TARGET_LENGTH // 2)
    if rows in (LABELS, PICTURES):
        small.pop("shared_tokens", None)
    return small


def _corpora(
    corpora: dict[str, float], kind: str, rows: str, pictured: Collection[str], captions: str
) -> dict[str, float]:
    """Shares of embedded text, which replaces the largest of the other corpora."""
    own = {"general": GENERAL, "domain": DOMAIN, "task": rows}.get(kind, GENERAL)
    foreign = [name for name in corpora if name not in EMBEDDED and name not in pictured]
    largest = max(foreign, key=lambda name: corpora[name], default=None)
    shares: dict[str, float] = {}
    for name, share in corpora.items():
        if name in pictured:
            embedded = captions
        elif name in EMBEDDED:
            embedded = name
        elif name == largest or kind == "task":
            embedded = own
        else:
            embedded = GENERAL
        shares[embedded] = shares.get(embedded, 0.0) + share
    return shares


def _renamed(names: list[str], stages: list[dict[str, Any]]) -> list[str]:
    """Embedded corpora in place of the others from which the vocabulary is learned."""
    used = [
        name for stage in stages for name in stage.get("corpora", {}) if name not in ROWS.values()
    ]
    kept = [name for name in names if name in EMBEDDED]
    return list(dict.fromkeys([*kept, *(used if len(kept) < len(names) else [])])) or [GENERAL]
