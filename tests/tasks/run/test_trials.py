"""The choice of a search."""

from __future__ import annotations

import pytest

from fourstage.errors import Diverged
from tasks.planning.plan import plan_recipe
from tasks.planning.trials import best_of
from tasks.reports.search_table import found, search_card, widen
from tasks.run.recipe_run import RecipeRun
from tasks.run.trials import at_the_edge, choose
from tasks.store.artifacts import Artifact, Findings, store
from tasks.tracking.connection import Tracking

TABLE = {
    "metric": "accuracy",
    "rows": "dev rows",
    "seeds": [1, 2],
    "folds": None,
    "chosen": 1,
    "points": [
        {"settings": {"batch_size": 8}, "scores": [0.5, 0.6], "mean": 0.55, "deviation": 0.07},
        {"settings": {"batch_size": 16}, "scores": [0.7, 0.8], "mean": 0.75, "deviation": 0.07},
    ],
    "at_the_edge": {"batch_size": "largest"},
    "diverged": [],
}


def test_the_highest_mean_wins_and_of_equal_ones_the_first():
    assert best_of("accuracy", [[0.9, 0.1], [0.6, 0.6], [0.6, 0.6]]) == 1


def test_of_a_perplexity_the_lowest_mean_wins_and_the_card_has_it_first():
    assert best_of("perplexity", [[9.0, 1.0], [4.0, 4.0], [4.0, 4.0]]) == 1
    points = [
        {"settings": {"batch_size": size}, "scores": [mean], "mean": mean, "deviation": None}
        for size, mean in ((8, 30.0), (16, 40.0), (32, 20.0))
    ]
    table = TABLE | {"metric": "perplexity", "points": points, "chosen": 2}
    rows = [line for line in search_card(table).splitlines() if line.startswith("| ")][2:]
    assert [row.split(" | ")[1].strip(" |") for row in rows] == ["20.0000", "30.0000", "40.0000"]


def test_a_value_at_the_end_of_three_or_more_numbers_is_told():
    grid = {"a": (1, 2, 3), "b": (0.1, 0.2, 0.3), "c": (1, 2), "d": ("x", "y", "z"), "e": (1, 2, 3)}
    chosen = {"a": 3, "b": 0.1, "c": 2, "d": "z", "e": 2}
    assert at_the_edge(grid, chosen) == {"a": "largest", "b": "smallest"}


def test_the_table_tells_what_was_chosen_and_each_seed():
    said = "accuracy 0.7500 ± 0.0700 on the dev rows; the others 0.5500"
    assert found(TABLE) == f"of 2 settings, batch_size 16 is best: {said}"
    assert widen(TABLE) == "Best with the largest batch_size tried: try values beyond"
    card = search_card(TABLE)
    assert "| batch_size | accuracy | seed 1 | seed 2 |" in card
    assert card.index("| 16 | 0.7500 ± 0.0700 | 0.7000 | 0.8000 |") < card.index("| 8 |")
    assert "diverged" not in card
    card = search_card(TABLE | {"diverged": [{"batch_size": 4}]})
    assert card.endswith("Left out, since a training diverged: batch_size 4.")


class Wild(RecipeRun):
    """A run whose steps do no work, and whose stages with batches of 8 diverge."""

    def make(self, name: str) -> Artifact:
        if name not in self.made:
            bound = self.bound(name)
            stage = bound.step.given.get("stage") if bound.step.kind == "stage" else None
            there = isinstance(store().find(bound.step.kind, bound.key), Artifact)
            if stage and stage.kind == "finetune" and not there:
                self.told.setdefault("trained", []).append(stage.batch_size)
                if stage.batch_size == 8:
                    raise Diverged("finetune: loss nan at step 9")
            facts = {
                "counts": {"splits": {"train": 90, "test": 9}},
                "task_metric": {"value": 0.5},
                "verdict": "green",
            }
            self.made[name], _ = store().make(
                bound.step.kind, name, bound.preimage, lambda _: Findings(facts), bound.made_from
            )
            self.status[name] = "made"
        return self.made[name]


def test_a_trial_that_diverged_is_not_trained_again(
    tracking: Tracking, capsys: pytest.CaptureFixture[str]
):
    def trained(sizes: str) -> list[int]:
        search = f"search={{folds: 2, grid: {{batch_size: {sizes}}}}}"
        asked = ("quickstart", [search, "stages.finetune.select="], True)
        run = Wild(plan_recipe(*asked), tracking, "")
        table = choose(run, *asked)
        assert table["diverged"] == [{"batch_size": 8}]
        assert "batch_size 8 is left out: finetune: loss nan at step 9" in capsys.readouterr().err
        return run.told.get("trained", [])

    assert trained("[8, 4]") == [8, 4]  # without work, one fold is like the other
    assert trained("[8, 4]") == []
    with pytest.raises(Diverged):  # nothing is left to choose, so it is tried again
        trained("[8]")
