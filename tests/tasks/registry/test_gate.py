"""The gate's arithmetic and its words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from corpora.prepared import PreparedRow
from fourstage.errors import RecipeError, UnknownNameError
from models.answers.label import Label
from models.answers.text import written
from models.evaluation.bootstrap import compare
from tasks.registry.decision import AT_ONCE, in_parts, questions
from tasks.registry.gate import Evidence, Predictions, baseline_ahead, decide
from tasks.registry.gate_report import gate_report

NAMES = ("alpha", "beta", "gamma")
ROWS = 600


def predictions(correct: float, seed: int, rows: int = ROWS) -> Predictions:
    labels = np.random.default_rng(0).integers(0, 3, rows)
    wrong = np.random.default_rng(seed).random(rows) >= correct
    said = np.where(wrong, (labels + 1) % 3, labels)
    return Predictions(
        tuple(f"r{i}" for i in range(rows)),
        tuple(NAMES[i] for i in labels),
        tuple(NAMES[i] for i in said),
    )


def accuracy(said: Predictions) -> float:
    return float(np.mean([a == b for a, b in zip(said.labels, said.predicted, strict=True)]))


def model(version: int, correct: float, seed: int = 1, **more) -> Evidence:
    said, cheap = predictions(correct, seed), predictions(0.6, 99)
    return Evidence(
        version,
        {"accuracy": accuracy(said)},
        said,
        baseline={"accuracy": accuracy(cheap)},
        baseline_predicted=cheap.predicted,
        **more,
    )


def failed(requirements: dict, challenger: Evidence, champion: Evidence | None = None, **more):
    gate = decide("m", requirements, challenger, champion, **more)
    return [check.name for check in gate.failed]


def test_floors_and_the_cheap_baseline_decide():
    asked = {"accuracy": {"at_least": 0.7, "above": "cheap_baseline"}}
    assert failed(asked, model(1, 0.9)) == []
    assert failed(asked, model(1, 0.68)) == ["accuracy at_least"]
    assert failed(asked, model(1, 0.4)) == ["accuracy at_least", "accuracy above cheap_baseline"]


def test_a_value_at_its_bound_is_within_it():
    evidence = model(1, 0.9, size_mb=10.0, forgetting={"a": 0.3})
    value = evidence.metrics["accuracy"]
    asked = {
        "accuracy": {"at_least": value, "at_most": value},
        "size_mb": {"at_most": 10},
        "forgetting": {"at_most": 0.3},
    }
    assert failed(asked, evidence) == []


def test_a_lead_over_the_cheap_baseline_that_chance_explains_is_none():
    asked = {"accuracy": {"above": "cheap_baseline"}}
    lucky = model(1, 0.6, seed=24)
    assert lucky.metrics["accuracy"] > lucky.baseline["accuracy"]
    (check,) = decide("m", asked, lucky).failed
    assert check.name == "accuracy above cheap_baseline"
    assert check.observed.startswith("+0.0")
    assert "600 rows, which can tell a lead of about 0.0" in check.says
    # Who says the same of every row is not ahead.
    same = replace(lucky, baseline_predicted=lucky.predictions.predicted)
    assert failed(asked, same) == ["accuracy above cheap_baseline"]
    assert failed(asked, replace(lucky, baseline_predicted=())) == ["accuracy above cheap_baseline"]


def test_a_lead_on_three_texts_is_not_sure_of_anything():
    few = predictions(1.0, 1, rows=3)
    evidence = replace(model(1, 0.9), predictions=few, baseline_predicted=("none",) * 3)
    (check,) = decide("m", {"accuracy": {"above": "cheap_baseline"}}, evidence).failed
    assert check.observed == "+1.0000; 3 texts are too few to be 95% sure of any difference"


def test_a_score_below_the_cheap_baseline_is_refused_without_a_test():
    asked = {"accuracy": {"not_below": "cheap_baseline"}}
    assert failed(asked, model(1, 0.9)) == []
    (check,) = decide("m", asked, model(1, 0.4)).failed
    assert check.name == "accuracy not_below cheap_baseline"
    evidence = model(1, 0.4)
    assert check.expected == f"≥ {evidence.baseline['accuracy']:.4g}"
    assert check.observed == f"{evidence.metrics['accuracy']:.4g}"
    same = replace(evidence, metrics=evidence.baseline)
    assert failed(asked, same) == []
    assert failed(asked, replace(evidence, baseline={})) == [check.name]
    with pytest.raises(RecipeError, match="not_below"):
        decide("m", {"accuracy": {"not_below": "champion"}}, evidence)


def test_a_cheap_baseline_that_is_better_is_said_whatever_the_gate_asks():
    gate = decide("m", {}, model(1, 0.4))
    assert gate.decision == "promote"
    (warning,) = gate.warnings
    evidence = model(1, 0.4)
    ours, cheap = evidence.metrics["accuracy"], evidence.baseline["accuracy"]
    assert f"is better than this model: accuracy {cheap:.4f} against {ours:.4f}" in warning
    assert warning in gate_report(gate)
    assert decide("m", {}, model(1, 0.9)).warnings == ()


def test_a_metric_nobody_measured_is_refused():
    assert failed({"macro_f1": {"at_least": 0.1}}, model(1, 0.9)) == ["macro_f1 at_least"]


def test_a_clearly_worse_model_is_refused_and_an_equal_one_is_not():
    asked = {"accuracy": {"not_below_champion_by": 0.05}}
    champion = model(1, 0.9, seed=1)
    assert failed(asked, model(2, 0.9, seed=2), champion) == []
    assert failed(asked, model(2, 0.7, seed=2), champion) == ["accuracy not_below_champion_by"]
    assert failed(asked, model(2, 0.7, seed=2)) == []


def test_the_settings_of_a_rule_are_those_of_its_test():
    rule = {"margin": 0.05, "confidence": 0.8, "resamples": 150, "seed": 5}
    ours, theirs = model(2, 0.9, seed=2), model(1, 0.9, seed=1)
    gate = decide("m", {"accuracy": {"not_below_champion_by": rule}}, ours, theirs)
    said = [each.predictions for each in (ours, theirs)]
    found = compare(
        Label(), said[0].labels, *(each.predicted for each in said), metric="accuracy", **rule
    )
    figures = gate.checks[0].figures
    assert figures["accuracy/lower_bound"] == found.low
    assert figures["accuracy/smallest_margin"] == found.smallest_margin


def test_a_margin_too_small_for_the_rows_is_said():
    asked = {"accuracy": {"not_below_champion_by": {"margin": 0.001, "resamples": 500}}}
    gate = decide("m", asked, model(2, 0.9, seed=2), model(1, 0.9, seed=1))
    assert "smaller than the smallest" in gate.warnings[0]
    assert "Warning" in gate_report(gate)


def test_other_rows_cannot_be_compared():
    asked = {"accuracy": {"not_below_champion_by": 0.05}}
    champion = Evidence(1, {"accuracy": 0.9}, predictions(0.9, 1, rows=500))
    gate = decide("m", asked, model(2, 0.9), champion)
    assert gate.failed[0].observed == "not the same rows"
    ours, theirs = model(2, 0.9), model(1, 0.9)
    for change in ({"ids": ours.predictions.ids[::-1]}, {"labels": ("beta",) * ROWS}):
        others = replace(theirs, predictions=replace(theirs.predictions, **change))
        assert decide("m", asked, ours, others).failed[0].observed == "not the same rows"
    gate = decide("m", asked, model(2, 0.9), Evidence(1, {"accuracy": 0.9}))
    assert gate.failed[0].observed == "no stored predictions"


def test_rows_of_the_same_ids_and_labels_but_other_texts_are_other_rows():
    asked = {"accuracy": {"not_below_champion_by": 0.05}}
    ours, theirs = (model(2, 0.9, seed=2), model(1, 0.9, seed=1))

    def held(digests: tuple[str, ...], others: tuple[str, ...]) -> list[str]:
        both = [
            replace(each, predictions=replace(each.predictions, digests=of))
            for each, of in ((ours, digests), (theirs, others))
        ]
        return [check.observed for check in decide("m", asked, *both).failed]

    now = tuple(f"{i:016x}" for i in range(ROWS))
    assert held(now, now) == []
    assert held(now, ("changed", *now[1:])) == ["not the same rows"]
    assert held(now, ()) == []  # of a version from before digests were kept


def test_rows_with_pictures_and_missing_ones_are_no_questions():
    row = PreparedRow("a", "one text", "another", "x", "dev")
    assert questions([row], ["a"]) == [{"text": "one text", "text_pair": "another"}]
    assert questions([row], ["a", "b"]) is None
    assert questions([replace(row, picture="p.png")], ["a"]) is None


def test_the_champion_itself_is_not_compared_with_itself():
    asked = {"accuracy": {"not_below_champion_by": 0.0}}
    gate = decide("m", asked, model(3, 0.9), model(3, 0.9), asks="its recipe wants it approved")
    assert gate.decision == "promote"  # it is approved already
    assert gate.champion_version == 3


def test_a_champion_that_cannot_be_read_stops_the_gate():
    more = {"champion_version": 1, "champion_fault": "its files are gone"}
    gate = decide("m", {}, model(2, 0.9), **more)
    assert gate.decision == "refuse"
    assert "found its files are gone (`fourstage promote m --version 2 --force`" in gate.reason


def test_a_version_that_passes_waits_where_approval_is_asked_and_one_that_fails_is_refused():
    asks = "its recipe wants it approved"
    assert decide("m", {}, model(2, 0.9), model(1, 0.9), asks=asks).decision == "wait"
    gate = decide("m", {"accuracy": {"at_least": 0.95}}, model(2, 0.9), model(1, 0.9), asks=asks)
    assert gate.decision == "refuse"


def test_forgetting_latency_size_and_slices_decide():
    evidence = model(
        1,
        0.9,
        forgetting={"a": 0.1, "b": 0.5},
        latency_ms={"p50": 3.0, "p95": 20.0},
        size_mb=12.0,
        slices={"length/short": {"accuracy": 0.9}, "length/long": {"accuracy": 0.3}},
    )
    asked = {
        "forgetting": {"at_most": 0.3},
        "latency_ms": {"p50_at_most": 5, "p95_at_most": 10},
        "size_mb": {"at_most": 10},
        "slices": {"length": {"accuracy": {"at_least": 0.5}}},
    }
    assert failed(asked, evidence) == [
        "forgetting at_most",
        "latency_ms p95 at_most",
        "size_mb at_most",
        "slice length/long: accuracy at_least",
    ]
    # What was not measured is never passed over.
    assert len(failed(asked, model(1, 0.9))) == 5


def test_a_corpus_on_which_forgetting_was_not_measured_is_not_passed_over():
    asked, evidence = {"forgetting": {"at_most": 0.3}}, model(1, 0.9, forgetting={"a": 0.1})
    assert failed(asked, evidence, forgetting_on=["a"]) == []
    assert failed(asked, evidence, forgetting_on=["a", "b"]) == ["forgetting on b at_most"]
    gate = decide("m", asked, evidence, forgetting_on=["a", "b"])
    assert gate.reason == "forgetting on b at_most: expected ≤ 0.3, found not measured"
    assert failed(asked, model(1, 0.9), forgetting_on=["a", "b"]) == ["forgetting at_most"]
    assert failed({}, evidence, forgetting_on=["a", "b"]) == []


def test_contracts_lineage_and_overlap_decide():
    assert failed({}, model(1, 0.9), contracts={"a": "green", "b": "red"}) == ["contracts"]
    assert failed({}, model(1, 0.9), lineage_faults=["the corpus is gone"]) == ["lineage"]
    assert failed({}, model(1, 0.9), overlap=("refuse", 3)) == ["overlap"]
    assert failed({}, model(1, 0.9), overlap=("refuse", 0)) == []
    gate = decide("m", {}, model(1, 0.9), overlap=("report", 3))
    assert gate.decision == "promote"
    assert "3 evaluation rows" in gate.warnings[0]


def test_rules_nobody_knows_are_the_recipes_error():
    with pytest.raises(RecipeError, match=r"promote\.require\.accuracy\.atleast"):
        decide("m", {"accuracy": {"atleast": 0.5}}, model(1, 0.9))
    with pytest.raises(RecipeError, match="p99_at_most"):
        decide("m", {"latency_ms": {"p99_at_most": 5}}, model(1, 0.9))
    asked = {"acuracy": {"not_below_champion_by": 0.1}}
    with pytest.raises(UnknownNameError, match="did you mean 'accuracy'"):
        decide("m", asked, model(2, 0.9), model(1, 0.9))


def writer(
    version: int, nats: float, tokens: int = 4, rows: int = 200, text=None, words: float = 3
) -> Evidence:
    """A version that finds about so many nats in targets of so many tokens."""
    drawn = np.random.default_rng(version).normal(nats, 0.5, rows)
    said = Predictions(
        tuple(f"r{i}" for i in range(rows)),
        ('["a b c"]',) * rows,
        tuple(written(text, (each, tokens, words)) for each in drawn),
        kind="text",
    )
    values = {"perplexity": float(np.exp(drawn.sum() / (tokens * rows)))}
    return Evidence(version, values, said)


def test_of_a_perplexity_a_rise_is_refused_and_a_fall_is_not():
    asked = {"perplexity": {"at_most": 7.0, "not_above_champion_by": 0.2}}
    champion = writer(1, 7.0)
    assert failed(asked, writer(2, 6.0), champion) == []
    assert failed(asked, writer(3, 7.0), champion) == []
    gate = decide("m", asked, writer(4, 8.0), champion)
    assert [check.name for check in gate.failed] == [
        "perplexity at_most",
        "perplexity not_above_champion_by",
    ]
    check = gate.failed[1]
    assert check.expected == "≤ champion + 0.2"
    assert check.observed.startswith("+1.")
    assert "95% sure below +" in check.observed
    assert check.figures["perplexity/difference"] < check.figures["perplexity/upper_bound"]
    with pytest.raises(
        RecipeError, match=r"require\.perplexity\.not_below_champion_by is not a rule"
    ):
        decide("m", {"perplexity": {"not_below_champion_by": 0.1}}, writer(2, 7.0), champion)


def test_perplexities_of_other_tokens_or_of_a_version_without_are_not_compared():
    asked = {"perplexity": {"not_above_champion_by": 0.2}}
    (check,) = decide("m", asked, writer(2, 7.0, tokens=5), writer(1, 7.0)).failed
    assert check.observed == "not the same texts read"
    assert "require perplexity_a_word, or where" in check.says
    words = {"perplexity_a_word": {"not_above_champion_by": 0.2}}
    assert failed(words, writer(2, 6.0, tokens=5), writer(1, 7.0)) == []
    (check,) = decide("m", words, writer(2, 6.0, words=2.5), writer(1, 7.0)).failed
    assert check.observed == "not the same texts read"
    assert "its target_length" in check.says
    champion = writer(1, 7.0)
    plain = replace(champion.predictions, predicted=(written("a b c"),) * 200)
    before = replace(champion, predictions=plain)
    for metric in ("perplexity", "perplexity_a_word"):
        (check,) = decide(
            "m", {metric: {"not_above_champion_by": 9.0}}, writer(2, 7.0), before
        ).failed
        assert check.observed == "not defined"
        assert f"with {metric} in evaluate.metrics" in check.says
        assert "promote NAME --version 2 --force" in check.says


def test_a_lower_perplexity_of_a_baseline_is_said_and_a_higher_one_is_not():
    told = baseline_ahead({"perplexity": 7.0}, {"perplexity": 6.0}, "dev", "a baseline")
    assert "perplexity 6.0000 against 7.0000" in told
    assert baseline_ahead({"perplexity": 7.0}, {"perplexity": 8.0}, "dev", "a baseline") == ""
    assert baseline_ahead({"perplexity": 7.0}, {}, "dev", "a baseline") == ""


def test_a_report_names_every_check_failed_ones_first():
    gate = decide("m", {"accuracy": {"at_least": 0.95}}, model(2, 0.9), model(1, 0.9))
    report = gate_report(gate)
    assert report.startswith("### m version 2: refused\n")
    assert "Compared with champion version 1" in report
    lines = [line for line in report.splitlines() if line.startswith("| ")]
    assert "accuracy at_least" in lines[2]
    assert gate.to_json()["decision"] == "refuse"


def test_rows_of_one_text_are_one_piece_of_evidence():
    """Two equal models of rows that come eight to a text, each text right or wrong as a whole.

    Were they independent, one in twenty challengers would be surely ahead.
    """
    rule = {"margin": 0.0, "resamples": 200}
    rng = np.random.default_rng(5)
    texts = tuple(np.repeat(np.arange(40), 8).tolist())
    ahead = {texts: 0, (): 0}
    for _ in range(120):
        right = np.repeat(rng.random((2, 40)) < 0.7, 8, axis=1)
        for numbers in ahead:
            ours, theirs = (
                Evidence(
                    version,
                    {"accuracy": float(each.mean())},
                    Predictions(
                        tuple(map(str, range(320))),
                        ("a",) * 320,
                        tuple(np.where(each, "a", "b").tolist()),
                        numbers,
                    ),
                    split="dev",
                )
                for version, each in zip((2, 1), right, strict=True)
            )
            gate = decide("m", {"accuracy": {"not_below_champion_by": rule}}, ours, theirs)
            ahead[numbers] += gate.checks[0].passed
            assert ("on 320 dev rows of 40 texts" in gate.checks[0].says) == bool(numbers)
    assert ahead[texts] <= 13  # 5 %, and three standard deviations more
    assert ahead[()] > 20


def test_a_champion_is_asked_about_a_few_rows_at_a_time():
    asked: list[int] = []

    def predict(rows: list[int]) -> list[int]:
        asked.append(len(rows))
        return [-row for row in rows]

    assert in_parts(predict, range(1000)) == [-row for row in range(1000)]
    assert max(asked) <= AT_ONCE
    assert in_parts(predict, []) == []
