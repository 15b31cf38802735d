"""How a pre-trained network answers rows from its prompt: every setting explicit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fourstage.errors import listed
from fourstage.recipe.ledger import Ledger
from fourstage.recipe.resolved import ResolvedStage, pretraining_of
from fourstage.recipe.schema import FewShot
from models import catalogue
from models.evaluation.few_shot.rules import FREE_FORM, OVER_NEUTRAL, PER_TOKEN, USUAL
from models.evaluation.few_shot.template import DEFAULTS as TEMPLATES
from models.evaluation.few_shot.template import Template
from models.metrics import of_answers
from models.protocols import Answers, Capability

DEFAULTS: Mapping[str, Any] = {
    "shots": [0, 1, 4, 16],
    "instruction": "",
    "separator": "\n\n",
    "too_long": "refuse",
    "overlap_words": 13,
}
OF_LABELS: Mapping[str, Any] = {"verbalisers": {}, "balanced": False}
OF_SCORES: Mapping[str, Mapping[str, Any]] = {
    PER_TOKEN: {},
    OVER_NEUTRAL: {"neutral": "Answer: "},
    FREE_FORM: {"beams": 4, "length_penalty": 0.6, "answer_length": 32},
}


def resolve_few_shot(
    ledger: Ledger, stages: Sequence[ResolvedStage], heads: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Settings by dataset.

    Args:
        ledger: Collects faults and origins.
        stages: The recipe's.
        heads: Objectives whose heads come with an imported network.
    """
    asked = ledger.evaluate.few_shot or {}
    if asked:
        _check_network(ledger, stages, heads)
    return {name: _resolved(ledger, name, said) for name, said in asked.items()}


def _check_network(ledger: Ledger, stages: Sequence[ResolvedStage], heads: Iterable[str]) -> None:
    """Refuse a network that has not learned to continue text."""
    place = "evaluate.few_shot"
    before = pretraining_of(stages)
    if not before:
        ledger.fault(
            place, "there is no pre-trained network that could answer; add a stage general"
        )
        return
    family = before[-1].family
    able = catalogue.saying("objectives", "ANSWERS_PROMPTS", ledger.folders)
    learned = {*heads, *(name for stage in before for name in stage.objectives)}
    if Capability.GENERATION not in catalogue.provided(family, ledger.folders):
        needed = (Capability.GENERATION, Capability.CAUSAL)
        others = listed(catalogue.providing(*needed, folders=ledger.folders), 5)
        ledger.fault(place, f"family {family!r} can't continue a prompt; {others} can")
    elif not learned.intersection(able):
        names = " or ".join(able)
        ledger.fault(place, f"expected a stage with the objective {names}, there is none")


def _resolved(ledger: Ledger, name: str, said: FewShot) -> dict[str, Any]:
    place = f"evaluate.few_shot.{name}"
    given = said.model_dump(exclude_none=True, mode="json")
    kind = given.get("answers", "label")
    ledger.source(place, name, labelled=True)
    ledger.answers(f"{place}.answers", name, kind, f"answers: {kind}")
    metrics: Answers = catalogue.find("answers", kind)()
    score = given.get("score", USUAL[kind])
    if kind == "text" and score != FREE_FORM:
        ledger.fault(f"{place}.score", f"expected {FREE_FORM} where answers are texts, got {score}")
    usual = {
        "answers": kind,
        "metric": metrics.usual[0],
        "template": TEMPLATES[kind],
        "score": score,
        **DEFAULTS,
        **(OF_LABELS if kind == "label" else {}),
        **OF_SCORES[score],
    }
    if kind != "label":
        _refuse(ledger, place, given, OF_LABELS, f"only labels have it, and the answers are {kind}")
    for other in OF_SCORES.keys() - {score}:
        _refuse(ledger, place, given, OF_SCORES[other], f"only score {other} has it, not {score}")
    found = ledger.filled(place, said, usual)
    ledger.metric(f"{place}.metric", found["metric"], of_answers(metrics.metrics))
    _check_template(ledger, place, name, found["template"])
    if len(set(found["shots"])) < len(found["shots"]):
        ledger.fault(f"{place}.shots", "expected different numbers, got one twice")
    return found


def _refuse(
    ledger: Ledger, place: str, given: Mapping[str, Any], keys: Iterable[str], why: str
) -> None:
    """Refuse settings that would not be used."""
    for key in keys:
        if key in given:
            ledger.fault(f"{place}.{key}", f"{why}; leave it out")


def _check_template(ledger: Ledger, place: str, dataset: str, text: str) -> None:
    try:
        template = Template(text)
    except ValueError as error:
        ledger.fault(f"{place}.template", str(error))
        return
    if "text_pair" in template.fields:
        ledger.pairs(f"{place}.template", dataset, "the field {text_pair}")
