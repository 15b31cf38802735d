"""Learn word vectors, from which a stage's table of tokens starts, from the stage's own text.

It takes seconds: a family of static vectors trains itself, some twenty times as fast as a network
reads.
"""

from __future__ import annotations

from pathlib import Path

from fourstage.errors import located
from tasks.orchestration.cancellation import dying_of_signals
from tasks.steps.durable import durable
from tasks.steps.tokens import documents, load_tokenizer
from tasks.store.artifacts import NOTES, Findings
from tasks.store.step_names import tokens_step
from tasks.store.steps import Bound


@durable()
def learn_vectors(step: Bound, folder: Path, seconds_left: float | None = None) -> Findings:
    """Learn the vectors; a stage's folder without a head, as `train_stage` writes it."""
    from models.stage_format import HISTORY, METRICS
    from models.training.job import TrainingJob
    from models.training.stage import Budget, Optimizer, Phase, StageSettings
    from models.training.trainer import train

    settings, folders = step.step.settings, step.step.given["folders"]
    family, objectives = settings["family"], settings["objectives"]
    tokenizer = load_tokenizer(step.inputs["tokenizer"])
    stage = StageSettings(
        kind="general",
        family=family,
        network=settings["network"],
        objectives=objectives,
        weights=dict.fromkeys(objectives, 1.0),
        phases=(Phase(128),),  # of no consequence: the objective has windows of its own
        batch_size=1,
        budget=Budget("tokens", settings["tokens"]),
        optimizer=Optimizer("adamw", {}),
        seed=settings["seed"],
    )
    texts = {
        name: (documents(step.inputs[tokens_step(name)], tokenizer, family, folders), share)
        for name, share in settings["corpora"].items()
    }
    job = TrainingJob(stage, tokenizer, texts, folders=folders, deadline_seconds=seconds_left)
    where = f"{step.step.name}: starts_from.embeddings"
    with dying_of_signals(), located(where):
        outcome = train(job, folder)
    (folder / NOTES).mkdir()
    for name in (HISTORY, METRICS):
        (folder / name).rename(folder / NOTES / name)
    facts = {"tokens": outcome.tokens, "passes": dict(outcome.passes)}
    facts |= {"vectors": tokenizer.vocabulary_size, "width": settings["network"]["hidden_dim"]}
    return Findings(facts, {"seconds": outcome.seconds, "family": family})
