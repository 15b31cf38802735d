"""Let a pre-trained network answer a dataset's rows from examples in its prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.steps.durable import durable
from tasks.steps.prediction_columns import texts_of
from tasks.steps.tokens import load_tokenizer
from tasks.store.artifacts import Findings
from tasks.store.kept import kept_rows, kept_texts
from tasks.store.predictions import PREDICTIONS
from tasks.store.step_names import subject_of
from tasks.store.steps import Bound

if TYPE_CHECKING:
    from corpora.prepared import PreparedRow
    from models.evaluation.few_shot.protocol import Answered
    from models.evaluation.few_shot.wording import Wording
    from models.protocols import Answers

INTERVAL = 0.95
TEXT = "text "  # role prefix of what the network was trained on


@durable()
def ask_in_context(step: Bound, folder: Path) -> Findings:
    """Score the network's answers for each number of examples, with intervals.

    Examples come from the training rows. The answers are written to a file, one column for each
    number of examples; it holds no text. Scores are also given on the rows that share no long run
    of words with the text that the network was trained on.
    """
    import pandas

    from fourstage.errors import located
    from models.catalogue import find

    settings, folders = step.step.settings, step.step.given["folders"]
    kept = [row for row in kept_rows(step.inputs["dataset"], step.inputs["contract"]) if row.label]
    split = [row for row in kept if row.split == settings["split"]]
    texts = {row.whole for row in split}
    pool = [row for row in kept if row.split == "train" and row.whole not in texts]
    numbers = _asked(len(split), settings["rows"] if "rows" in settings else None, settings["seed"])
    rows = [split[number] for number in numbers]
    answers: Answers = find("answers", settings["answers"], folders)()
    with located(f"evaluate.few_shot.{subject_of(step.step.name)}"):
        wording = _wording(settings, answers, kept)
        found = _ask(step, wording, rows, numbers, pool)
    seen = _seen_before(step, rows)
    true = np.array([row.label for row in rows], object)
    groups = texts_of(step.inputs["dataset"], [row.id for row in rows], settings["markings"])
    table: dict[str, Any] = {"id": [row.id for row in rows], "text": groups, "label": true}
    curve = []
    for shots, answered in found.items():
        said = np.array(answered.said, object)
        table |= {f"predicted_{shots}": said, f"examples_{shots}": answered.examples}
        curve.append(
            {
                "shots": shots,
                **_scores(answers, true, said, settings["metric"], np.array(groups), seen),
                "examples": float(answered.examples.mean()),
                "fewer": int((answered.examples < shots).sum()),
                "cut": int((answered.cut > 0).sum()),
            }
        )
    pandas.DataFrame({**table, "seen_before": seen}).to_parquet(folder / PREDICTIONS)
    return Findings(
        {
            "split": settings["split"],
            "rows": len(rows),
            "answers": settings["answers"],
            "metric": settings["metric"],
            "score": settings["score"],
            "curve": curve,
            "chance": _chance(settings["metric"], wording, rows),
            "majority": _majority(answers, true, pool, settings),
            "overlap_words": settings["overlap_words"],
            "seen_before": float(seen.mean()),
            "clean_rows": int((~seen).sum()),
            "texts": [role.removeprefix(TEXT) for role in step.inputs if role.startswith(TEXT)],
            "from_elsewhere": settings["from_elsewhere"],
        }
    )


def _asked(count: int, most: int | None, seed: int) -> list[int]:
    """Numbers of the rows of a split that are asked, in order."""
    from fourstage.errors import ContractViolation
    from models.inputs.randomness import generator

    if not count:
        raise ContractViolation("the dataset has no rows with an answer in this split")
    drawn = generator(seed, "few-shot rows").permutation(count)[:most]
    return sorted(drawn.tolist())


def _wording(settings: Mapping[str, Any], answers: Answers, rows: Sequence[PreparedRow]) -> Wording:
    from fourstage.errors import RecipeError
    from models.evaluation.few_shot.wording import Wording

    names = answers.names(row.label for row in rows) if settings["answers"] == "label" else ()
    try:
        return Wording(settings["answers"], names, settings.get("verbalisers", {}))
    except ValueError as error:
        raise RecipeError(str(error)) from error


def _ask(
    step: Bound,
    wording: Wording,
    rows: Sequence[PreparedRow],
    numbers: Sequence[int],
    pool: Sequence[PreparedRow],
) -> dict[int, Answered]:
    """The network's answers, by the number of examples."""
    from models.evaluation.few_shot.prompts import Style
    from models.evaluation.few_shot.protocol import Protocol, asker
    from models.evaluation.few_shot.template import Template

    settings = step.step.settings
    given = ("neutral", "balanced", "beams", "length_penalty", "answer_length")
    protocol = Protocol(
        score=settings["score"],
        fewer=settings["too_long"] == "fewer",
        seed=settings["seed"],
        **{name: settings[name] for name in given if name in settings},
    )
    looks = {name: settings[name] for name in ("instruction", "separator")}
    network = asker(
        step.inputs["stage"].folder,
        load_tokenizer(step.inputs["tokenizer"]),
        Style(Template(settings["template"]), wording, **looks),
        protocol,
        step.step.given["folders"],
    )
    return {shots: network.answers(rows, numbers, pool, shots) for shots in settings["shots"]}


def _scores(
    answers: Answers,
    true: np.ndarray,
    said: np.ndarray,
    metric: str,
    groups: np.ndarray,
    seen: np.ndarray,
) -> dict[str, float | None]:
    """The score with its interval, and the score on the rows that were not seen before."""
    from models.evaluation.resampling import resampled_scores, scores

    drawn = resampled_scores(answers, true, [said], metric, groups=groups)[0]
    low, high = np.quantile(drawn, [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2])
    clean = scores(answers, true[~seen], said[~seen], [metric])[metric] if not seen.all() else None
    return {
        "score": scores(answers, true, said, [metric])[metric],
        "low": float(low),
        "high": float(high),
        "clean": clean,
    }


def _chance(metric: str, wording: Wording, rows: Sequence[PreparedRow]) -> float | None:
    """Expected accuracy of a random candidate; None for texts and other metrics."""
    shares = [1 / len(candidates) for row in rows if (candidates := wording.candidates(row))]
    return float(np.mean(shares)) if shares and metric == "accuracy" else None


def _majority(
    answers: Answers, true: np.ndarray, pool: Sequence[PreparedRow], settings: Mapping[str, Any]
) -> float | None:
    """Score of the most frequent training answer; None for texts."""
    from models.evaluation.resampling import scores
    from models.evaluation.rivals import most_frequent

    if settings["answers"] == "text" or not pool:
        return None
    same = np.full(len(true), most_frequent([row.label for row in pool]), object)
    return scores(answers, true, same, [settings["metric"]])[settings["metric"]]


def _seen_before(step: Bound, rows: Sequence[PreparedRow]) -> np.ndarray:
    """(rows,) bool: whether the text that the network was trained on has a part of the row."""
    from corpora.contamination import contaminated

    texts = [[text for text in (row.text, row.text_pair) if text] for row in rows]
    return contaminated(texts, _training_text(step), step.step.settings["overlap_words"])


def _training_text(step: Bound) -> Iterator[str]:
    for role, data in step.inputs.items():
        if not role.startswith(TEXT):
            continue
        contract = step.inputs[f"contract of {role.removeprefix(TEXT)}"]
        yield from (text for _, text, split in kept_texts(data, contract) if split == "train")
