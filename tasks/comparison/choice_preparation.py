"""What all candidates of a choice read, made before the first is tried."""

from __future__ import annotations

from importlib import import_module

from corpora.prepared import prepared_rows
from fourstage.errors import RecipeError
from fourstage.terminal import say
from tasks.comparison.choice_meter import Meter
from tasks.comparison.model_choice import READ, ModelChoice
from tasks.run.recipe_run import open_run
from tasks.store.step_names import EVALUATION, dataset_step


def prepare(choice: ModelChoice) -> None:
    """Make what every candidate reads: data, contracts, tokenizer, tokens, and the cheap baseline.

    Raises:
        RecipeError: There are no dev rows to choose by.
        ContractViolation: A contract is broken.
    """
    dataset = choice.finetune.dataset
    assert dataset is not None
    counts: dict[str, int] = {}
    say(
        f"choose: {choice.minutes:g} minutes from the command's start for all of it: data,"
        f" {len(choice.candidates)} candidates in rounds, test rows, registration"
    )
    with Meter(choice) as meter, open_run(choice.whole) as run:
        meter.begin("start")
        import_module("models.training.trainer")  # else the first stage would seem to cost more
        meter.lap()
        names = [step.name for step in choice.whole.of_kind(*READ, "contract")]
        if baseline := choice.whole.steps[EVALUATION].inputs.get("baseline"):
            names.append(baseline)
        for name in names:
            meter.begin(name)
            run.make(name)
            meter.lap()
        for row in prepared_rows(run.made[dataset_step(dataset)].folder):
            counts[row.split] = counts.get(row.split, 0) + 1
    if not counts.get("dev"):
        raise RecipeError(
            f"{choice.whole.recipe.where}: choose: {dataset} has no dev rows to choose by;"
            " add some to the source, or leave its rows in one file, of which some are then set"
            " aside (`set_aside` in the source)"
        )
    choice.keep({**choice.state, "rows": counts})
