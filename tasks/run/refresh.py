"""Refresh policies: which stages are kept, retrained or continued when the data change.

The recipe sets them: ``refresh: never | on_change | continue``. The vocabulary is always kept: a
new one would change every token, and with it every stage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fourstage.errors import listed
from fourstage.terminal import say
from tasks.planning.layout import stage_settings
from tasks.run.recipe_run import RecipeRun
from tasks.store.artifacts import GONE, Artifact, store
from tasks.store.history import last_references
from tasks.store.kept import QUARANTINED
from tasks.store.model_facts import START
from tasks.store.step_names import (
    STAGE_BEFORE,
    as_texts,
    contract_step,
    corpus_step,
    fresh_step,
    last_step,
    stage_step,
    tokens_step,
)
from tasks.store.steps import differences

if TYPE_CHECKING:
    from fourstage.recipe.resolved import ResolvedStage

STAYS = "never"
GOES_ON = "continue"
MOST_NAMED = 4  # settings named in a message


def keep_what_stays(run: RecipeRun) -> None:
    """Pin the vocabulary, and the stages with policy ``never``, to their last version."""
    references = last_references(run.plan.recipe.name)
    if not references:
        say(f"{run.plan.recipe.name}: no finished run to refresh; this is a first run")
        return
    found = {n: _intact(run, n, each) for n, each in references.items() if n in run.plan.steps}
    names = [step.name for step in run.plan.of_kind("tokenizer")]
    if any(found.get(name, True) is None for name in names):
        _tell(run, "without the vocabulary of the last run nothing of it is kept or continued")
        return
    run.last = {name: artifact for name, artifact in found.items() if artifact}
    names += [stage_step(s.name) for s in run.plan.recipe.stages if s.refresh == STAYS]
    for name in names:
        if name in run.last:
            run.pin(name, run.last[name])
    going_on = [stage_step(s.name) for s in run.plan.recipe.stages if s.refresh == GOES_ON]
    for name in (*names, *going_on):
        if name in run.last:
            _tell_of_other_settings(run, name)


def _tell_of_other_settings(run: RecipeRun, name: str) -> None:
    """Say if what a refresh keeps or continues was made with other settings than the recipe's.

    A run with `--set` may have made it, and every refresh goes on from the last run.
    """
    recipe = run.plan.recipe
    if recipe.search and recipe.finetune and name == stage_step(recipe.finetune.name):
        return  # the search chose them
    first = _first_version(run, run.last[name])
    if first is None:
        return
    # As plain JSON, like those that were read.
    wanted = json.loads(json.dumps(dict(run.plan.steps[name].settings)))
    if other := differences(first.preimage["settings"], wanted):
        _tell(
            run,
            f"{name} of an earlier run, which is kept or continued, was made with other settings"
            f" than the recipe's: {listed(other, MOST_NAMED)}. A run without --refresh makes it"
            " with the recipe's",
        )


def go_on_with_new_text(run: RecipeRun, stage: ResolvedStage) -> None:
    """Let a stage with policy ``continue`` start from its last version, on new documents only.

    New are the documents that this version did not read, also those that were in quarantine. The
    budget scales with the new text: if a tenth of the tokens is new, the stage gets a tenth of the
    recipe's budget. With less new text than one batch, the last version is kept, and the text is
    still new in the next run. Of several corpora, one with less new text than a batch is read
    whole, or its few documents would be repeated to fill its share. A corpus that this version did
    not read is new; the rows of datasets are read again. A stage that reads rows alone is trained
    anew if they changed, and so is one that was continued as often as the recipe allows.
    """
    name = stage_step(stage.name)
    if stage.refresh != GOES_ON or name not in run.last or name in run.made:
        return
    corpora = [corpus for corpus in stage.corpora if corpus_step(corpus) in run.made]
    if not corpora:
        say(f"{name}: reads rows, where new ones can't be told; trained anew if they changed")
        return
    before = run.last[name]
    step = run.plan.steps[name]
    # It goes on with its own weights, and needs none to start from.
    inputs = {role: of for role, of in step.inputs.items() if not role.startswith(START)}
    inputs[STAGE_BEFORE] = last_step(name)
    run.pin(last_step(name), before)
    smallest = stage.batch_size * stage.sequence_length
    new_tokens = all_tokens = 0
    for corpus in stage.corpora:
        tokens = as_texts(run.made)[tokens_step(corpus)]
        all_tokens += _train_tokens(tokens)
        if corpus not in corpora:
            continue
        seen = _read_by(run, before, corpus)
        if seen is None:  # all of it is new here
            new_tokens += _train_tokens(tokens)
            continue
        data, contract = seen
        if _kept(data, contract) == _kept(
            run.made[corpus_step(corpus)], run.made[contract_step(corpus)]
        ):
            continue  # unchanged text is replayed
        fresh = _train_tokens(run.make(_fresh_tokens(run, corpus, data, contract)))
        new_tokens += fresh
        if fresh >= smallest:
            inputs[tokens_step(corpus)] = fresh_step(tokens_step(corpus))
    if new_tokens < smallest:
        say(
            f"{name}: {new_tokens:,} new tokens, fewer than the {smallest:,} of a batch;"
            " last version kept"
        )
        run.pin(name, before)
        return
    times = _times_continued(run, before)
    if stage.continuations is not None and times >= stage.continuations:
        say(f"{name}: continued {times:,} times, as often as the recipe allows; trained anew")
        return
    share = new_tokens / all_tokens
    if stage.budget.unit != "epochs":  # an epoch over the new text is shorter anyway
        amount = max(1, round(stage.budget.amount * share))
        stage = replace(stage, budget=replace(stage.budget, amount=amount))
    say(f"{name}: continues with {new_tokens:,} new tokens, {share:.0%} of its text")
    run.plan.steps[name] = replace(
        step,
        settings=stage_settings(stage),
        inputs=inputs,
        given={**step.given, "stage": stage},
    )


def _read_by(run: RecipeRun, stage: Artifact, corpus: str) -> tuple[Artifact, Artifact] | None:
    """A corpus as a stage read it, and its contract; None if it did not, or they are lost.

    The last run may have had a later one, with less new text than a batch, which the stage did not
    read.
    """
    name = tokens_step(corpus)
    if not (read := stage.inputs.get(name)):
        return None
    if not (tokens := _intact(run, name, read)):
        return None
    data = _intact(run, corpus_step(corpus), tokens.inputs["data"])
    contract = _intact(run, contract_step(corpus), tokens.inputs["contract"])
    return (data, contract) if data and contract else None


def _kept(data: Artifact, contract: Artifact) -> tuple[str, str]:
    """What determines the documents that a stage reads."""
    return data.digest, contract.outputs[QUARANTINED]


def _times_continued(run: RecipeRun, stage: Artifact) -> int:
    """How many versions of a stage in a row went on with the version before."""
    times = 0
    found: Artifact | None = stage
    while found and (before := found.inputs.get(STAGE_BEFORE)):
        if before["name"] != stage.name:
            break
        times, found = times + 1, _intact(run, before["name"], before)
    return times


def _first_version(run: RecipeRun, stage: Artifact) -> Artifact | None:
    """The version of a stage that was not continued from another; None if it is lost."""
    found: Artifact | None = stage
    while found and (before := found.inputs.get(STAGE_BEFORE)) and before["name"] == stage.name:
        found = _intact(run, before["name"], before)
    return found


def _fresh_tokens(run: RecipeRun, corpus: str, data: Artifact, contract: Artifact) -> str:
    """Add a step that tokenises only the new documents of a corpus."""
    data_before, contract_before = last_step(corpus_step(corpus)), last_step(contract_step(corpus))
    run.pin(data_before, data)
    run.pin(contract_before, contract)
    usual = run.plan.steps[tokens_step(corpus)]
    name = fresh_step(tokens_step(corpus))
    inputs = {**usual.inputs, "seen": data_before, "seen contract": contract_before}
    run.plan.steps[name] = replace(usual, name=name, inputs=inputs)
    return name


def _intact(run: RecipeRun, name: str, reference: Mapping[str, str]) -> Artifact | None:
    """An artifact of an earlier run; one that is damaged or gone is told of."""
    found = store().find(reference["kind"], reference["key"])
    if isinstance(found, Artifact):
        return found
    reason = "gone from the store" if found.reason in GONE else found.reason
    _tell(run, f"{name} of an earlier run is lost ({reason}), so nothing goes on from it")
    return None


def _tell(run: RecipeRun, what: str) -> None:
    """Say what a refresh has to do without, once, and note it in the summary."""
    lost = run.told.setdefault("lost", [])
    if what not in lost:
        lost.append(what)
        say(f"{run.plan.recipe.name}: {what}")


def _train_tokens(tokens: Artifact) -> int:
    return tokens.facts["tokens"].get("train", 0)
