"""What follows texts, by the network of a stage in the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fourstage.errors import ContractViolation, EnvironmentFault, RecipeError, UnknownNameError
from tasks.store.step_names import stage_step

if TYPE_CHECKING:
    from models.decoding.settings import Generation
    from tasks.planning.layout import Plan

OBJECTIVE = "causal_lm"


def continue_texts(
    plan: Plan, stage_name: str, texts: Sequence[str], settings: Generation
) -> list[dict[str, Any]]:
    """Continue texts, each read as the beginning of a document. Trains nothing.

    Args:
        plan: The recipe's plan.
        stage_name: Name of a stage that is in the store.
        texts: The texts.
        settings: How tokens are chosen.

    Returns:
        One mapping per text: ``text``, ``continuation``, its ``log_probability`` in nats, and
        whether the document ``ended`` there.

    Raises:
        UnknownNameError: The recipe has no such stage.
        RecipeError: Its network has not learned to continue text.
        EnvironmentFault: The stage is not trained yet.
        ContractViolation: A text is too long.
    """
    from fourstage.settings import home
    from models.decoding.generate import generate
    from models.decoding.reader import causal_reader
    from models.evaluation.heldout import has_objective
    from models.training.trained_stage import load_stage
    from tasks.steps.tokens import load_tokenizer
    from tasks.store.artifacts import Artifact, Store
    from tasks.store.steps import look_ahead

    stages = {stage.name for stage in plan.recipe.stages}
    if stage_name not in stages:
        raise UnknownNameError("generate", stage_name, f"a stage of {plan.recipe.name}", stages)
    made = {
        each.step.name: each.found
        for each in look_ahead(list(plan.steps.values()), Store(home()))
        if isinstance(each.found, Artifact)
    }
    name = stage_step(stage_name)
    if name not in made:
        raise EnvironmentFault(
            f"generate: {name} not made yet; `fourstage run` with the same recipe and options"
            " makes it"
        )
    folder, folders = made[name].folder, plan.folders
    if not has_objective(folder, OBJECTIVE, folders):
        raise RecipeError(
            f"generate: {name} has not learned to continue text; expected a stage with the"
            f" objective {OBJECTIVE}, or after one"
        )
    tokenizer = load_tokenizer(made["tokenizer"])
    stage = load_stage(folder, tokenizer, precision="float32", folders=folders)
    scorer = stage.scorer(OBJECTIVE, stage.objective(OBJECTIVE, folders))
    read = [ids.tolist() for ids in tokenizer.encode(texts)]
    reader = causal_reader(stage.network, scorer.logits)
    # Positions after a row are not trained; a row that goes on from a memory has seen as far back.
    remembered = getattr(stage.network, "memory_length", 0)
    reader.longest = stage.context.sequence_length + remembered
    try:
        found = generate(
            reader,
            [[tokenizer.cls_id, *ids] for ids in read],
            settings,
            stops={tokenizer.sep_id},
            never=set(tokenizer.special_ids) - {tokenizer.sep_id},
            pad_id=tokenizer.pad_id,
        )
    except ValueError as error:
        raise ContractViolation(f"generate: {error}") from None
    return [
        {
            "text": text,
            # With the blank before it, if there is one.
            "continuation": tokenizer.decode([*ids, *each.tokens])[len(tokenizer.decode(ids)) :],
            "log_probability": each.log_probability,
            "ended": each.stopped,
        }
        for text, ids, each in zip(texts, read, found, strict=True)
    ]
