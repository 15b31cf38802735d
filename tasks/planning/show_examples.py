"""Ten training examples of a stage, as its objectives make them from tokens in the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fourstage.errors import EnvironmentFault, RecipeError, UnknownNameError
from tasks.store.step_names import (
    as_texts,
    dataset_step,
    measurement_step,
    tokenizer_step,
    tokens_step,
)

if TYPE_CHECKING:
    import numpy as np

    from fourstage.recipe.resolved import ResolvedStage
    from models.protocols import Batch, TokenisedRows, Tokenizer
    from tasks.planning.layout import Plan
    from tasks.store.artifacts import Artifact

EXAMPLES = 10


def show_examples(plan: Plan, stage_name: str, pictures: Path | None = None) -> Iterator[str]:
    """Yield training examples of a stage under its seed, shared among its turns or tasks.

    Makes nothing.

    Args:
        plan: The recipe's.
        stage_name: Name of the stage.
        pictures: Folder to which the examples' pictures are written, with their regions' boxes.

    Raises:
        UnknownNameError: The recipe has no such stage.
        RecipeError: The stage is imported, or trained by its family or objective: no examples; or
            pictures are wanted and it reads none.
        EnvironmentFault: Its text is not tokenised yet.
    """
    from fourstage.settings import home
    from models import features as keys
    from models.catalogue import answers_of, provided, turns
    from models.evaluation.predict import rows_of
    from models.inputs.captions import asked_answers
    from models.inputs.display import shown
    from models.inputs.mixture import tasks_beside
    from models.inputs.randomness import generator
    from models.inputs.rows import mark_ids
    from models.inputs.segments import with_entities
    from models.protocols import Context
    from models.training.assembly import build_objectives
    from models.training.own_trainer import own_trainer
    from tasks.steps.tokens import load_tokenizer
    from tasks.store.artifacts import Store
    from tasks.store.steps import finished

    stages = {stage.name: stage for stage in plan.recipe.stages}
    if stage_name not in stages:
        raise UnknownNameError("show", stage_name, f"a stage of {plan.recipe.name}", stages)
    stage = stages[stage_name]
    if stage.init is not None:
        raise RecipeError(f"show: stage {stage_name} is {stage.init} and sees no examples here")
    if own_trainer(stage.family, () if stage.head else stage.objectives, plan.folders):
        raise RecipeError(
            f"show: stage {stage_name}: {', '.join((stage.family, *stage.objectives))} reads whole"
            " documents and makes no batches of examples"
        )
    source, *others = stage.datasets or [max(stage.corpora, key=lambda name: stage.corpora[name])]
    wanted = (tokenizer_step(stage), tokens_step(source), *map(tokens_step, others))
    before = [step for step in plan.steps.values() if step.kind != "stage"]
    made = finished(before, Store(home()))
    if not stage.datasets:
        made = as_texts(made)
    missing = [name for name in wanted if name not in made]
    if missing:
        raise EnvironmentFault(
            f"show: {', '.join(missing)} not made yet; `fourstage run` with the same recipe"
            " and options makes it before the first stage"
        )
    tokenizer, tokens = load_tokenizer(made[wanted[0]]), made[wanted[1]]
    data = _data(tokens, tokenizer, stage, plan)
    read = [made[tokens_step(name)] for name in stage.corpora if tokens_step(name) in made]
    context = Context(
        tokenizer,
        stage.sequence_length,
        answers_of(stage.head, plan.folders).names(data.answers) if stage.head else (),
        marks=mark_ids(tokenizer, tokens.facts.get("markings", ())),
        network=provided(stage.family, plan.folders),
        remembers=_remembers(stage, plan.folders),
        answers=asked_answers(
            stage.objectives, (_data(each, tokenizer, stage, plan) for each in read), plan.folders
        ),
    )
    head = {stage.head: stage.head_settings} if stage.head else None
    made_objectives = build_objectives(stage.objectives, head, context, plan.folders)
    groups = [tuple(made_objectives)]
    if stage.alternate:
        groups = list(turns(list(made_objectives), plan.folders).values())
    parts: list[tuple[Any, Sequence[str]]] = [(data, group) for group in groups]
    if stage.mixture is not None:
        rows = {name: _data(made[tokens_step(name)], tokenizer, stage, plan) for name in others}
        beside = tasks_beside(stage.mixture, rows, tokenizer)
        parts += [(task, group) for task in beside.values() for group in groups]
    rng = generator(stage.seed, "show", source)
    seen: list[tuple[int, Batch]] = []
    for part, group in parts:
        objectives = {name: made_objectives[name] for name in group}
        chooser = max(objectives.values(), key=lambda objective: objective.chooses)
        index = chooser.index(part, rng)
        count = -(-EXAMPLES // len(parts))
        entries = index.entries[rng.permutation(len(index))[:count]]
        clean = with_entities(chooser.segments(part, entries, rng), context)
        batch = clean
        for objective in objectives.values():
            batch = objective.examples(batch, rng)
        meanings = {
            f"{name}_labels": _in_words(name, objective, batch[f"{name}_labels"])
            for name, objective in objectives.items()
            if hasattr(objective, "decode")
            and f"{name}_labels" in batch
            and batch[f"{name}_labels"].ndim == 1
        }
        for row in range(len(entries)):
            example = shown(clean, batch, row, tokenizer, meanings)
            if stage.head is not None:
                example += f"\nanswer: {part.answers[rows_of(entries)[row]]}"
            yield example
        if keys.REGION_BOXES in batch:
            for row, pictured in enumerate(_pictured_rows(entries).tolist()):
                seen.append((pictured, {key: each[row : row + 1] for key, each in batch.items()}))
    if pictures is not None and not seen:
        raise RecipeError(f"show: stage {stage_name} of family {stage.family} reads no pictures")
    if pictures is not None:
        _draw(plan, source, data, seen, pictures)
        _draw_word_regions(plan, stage_name, pictures)


def _remembers(stage: ResolvedStage, folders: Sequence[Path]) -> bool:
    """Whether the stage's network remembers the rows before; known without building it."""
    from models.catalogue import literals

    provides = literals("families", stage.family, folders).get("PROVIDES", ())
    return stage.head is None and "memory" in provides and stage.network.get("memory_length") != 0


def _in_words(name: str, objective: Any, labels: np.ndarray) -> Sequence[Any]:
    """The correct labels, decoded by their objective."""
    import numpy as np

    return objective.decode({f"{name}_logits": np.eye(int(labels.max()) + 1)[labels]})


def _data(tokens: Artifact, tokenizer: Tokenizer, stage: ResolvedStage, plan: Plan) -> Any:
    """Training rows if the stage has a head, otherwise training documents."""
    from corpora.shards import TokenisedRows
    from tasks.steps.tokens import ROWS, documents

    if stage.head is not None:
        return TokenisedRows(tokens.path(ROWS), "train")
    return documents(tokens, tokenizer, stage.family, plan.folders)


def _draw(
    plan: Plan, source: str, data: TokenisedRows, shown: Sequence[tuple[int, Batch]], to: Path
) -> None:
    """Write the pictures of examples, each with the boxes of its regions, numbered from 01.png on.

    Args:
        plan: The recipe's.
        source: Name of the dataset.
        data: Its training rows.
        shown: (row whose picture an example has, the example's batch of one row) each.
        to: A folder.
    """
    from corpora.pictures import bytes_of
    from corpora.prepared import prepared_rows
    from corpora.regions import drawn
    from fourstage.settings import home
    from models import features as keys
    from tasks.store.artifacts import Store
    from tasks.store.steps import finished

    step = plan.steps[dataset_step(source)]
    found = finished([step], Store(home()))[step.name]
    wanted = [data.ids[row] for row, _ in shown]
    names = {row.id: row.picture or "" for row in prepared_rows(found.folder)}
    pictures = bytes_of(step.given["snapshot"], {names[identity] for identity in wanted})
    to.mkdir(parents=True, exist_ok=True)
    for number, (identity, (_, batch)) in enumerate(zip(wanted, shown, strict=True), start=1):
        boxes = batch[keys.REGION_BOXES][0][batch[keys.REGION_MASK][0] > 0]
        (to / f"{number:02d}.png").write_bytes(drawn(pictures.get(names[identity]), boxes))


def _draw_word_regions(plan: Plan, stage: str, to: Path) -> None:
    """Write what words look at after the stage, if it was measured."""
    from fourstage.settings import home
    from tasks.reports.word_region_plot import word_regions_of
    from tasks.store.artifacts import Store
    from tasks.store.steps import finished

    measured = finished(plan.steps.values(), Store(home())).get(measurement_step(stage))
    if measured and (plot := word_regions_of(measured)):
        (to / "word_regions.png").write_bytes(plot)


def _pictured_rows(entries: np.ndarray) -> np.ndarray:
    """Of each entry of an index, the number of the row whose picture it has."""
    for field in ("picture", "document", "row"):
        if field in (entries.dtype.names or ()):
            return entries[field]
    return entries
