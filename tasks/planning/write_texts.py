"""What the network of a stage in the store writes from texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpora.cleaning import clean
from fourstage.errors import ContractViolation, RecipeError
from tasks.planning.made_stage import made_stage
from tasks.store.step_names import stage_step

if TYPE_CHECKING:
    from tasks.planning.layout import Plan


def write_texts(
    plan: Plan, stage_name: str, texts: Sequence[str], given: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Write from texts as the stage has learned to. Trains nothing.

    Args:
        plan: The recipe's plan.
        stage_name: Name of a stage that is in the store.
        texts: The texts.
        given: Settings of generation (`models.decoding.settings`); the others are the head's, or
            the objective's.

    Returns:
        As `models.decoding.prompting.write`.

    Raises:
        UnknownNameError: The recipe has no such stage.
        RecipeError: It has not learned to write, or a setting is out of range.
        EnvironmentFault: The stage is not trained yet.
        ContractViolation: A text is not what the stage can take, begins with a task's prefix or,
            for a head, is empty.
    """
    from models.decoding.prompting import write
    from models.inputs.mixture import known_prefixes
    from models.served.texts import prefix_fault
    from models.training.trained_stage import config_of, load_stage

    folder, tokenizer = made_stage(plan, stage_name, "generate")
    folders = plan.folders
    part = _writes(folder, stage_step(stage_name), folders)
    config = config_of(folder)
    of_head = part in (config["head"] or {})
    read = [_cleaned(text, pair=of_head) for text in texts]
    if of_head:
        prefixes = known_prefixes(config)
        for number, text in enumerate(read):
            fault = "empty text" if "" in text.split("\t") else prefix_fault(text, prefixes)
            if fault:
                raise ContractViolation(f"generate: prompt {number}: {fault}")
    stage = load_stage(folder, tokenizer, precision="float32", folders=folders)
    objective = stage.objective(part, folders)
    prompting = objective.prompting(stage.network, stage.scorer(part, objective))
    # Positions after a row are not trained; a row that goes on from a memory has seen as far back.
    longest = min(prompting.reading.longest, stage.context.sequence_length)
    longest += getattr(stage.network, "memory_length", 0)
    found = write(prompting, tokenizer, longest, read, given)
    return [told | {"text": text} for told, text in zip(found, texts, strict=True)]


def _cleaned(text: str, *, pair: bool) -> str:
    """A text as those of training are; of two with a tab between them, both."""
    parts = text.split("\t", 1) if pair else [text]
    return "\t".join(clean(part).text for part in parts)


def _writes(folder: Path, name: str, folders: Sequence[Path]) -> str:
    """The head of the stage if it writes, else the first objective that does, also of before.

    Raises:
        RecipeError: There is none.
    """
    from models import catalogue
    from models.stage_format import head_file, head_files
    from models.training.trained_stage import config_of

    config = config_of(folder)
    if not hasattr(catalogue.find("families", config["family"], folders), "go_on"):
        known = catalogue.names("families", folders)
        able = [n for n in known if hasattr(catalogue.find("families", n, folders), "go_on")]
        raise RecipeError(
            f"generate: {name}: the family {config['family']} is not read token by token, and so it"
            f" writes no text; families that do: {', '.join(able)}"
        )
    learned = [*(config["head"] or {}), *config["objectives"], *head_files(folder)]
    fit = [n for kind in ("heads", "objectives") for n in catalogue.saying(kind, "WRITES", folders)]
    found = [part for part in learned if part in fit and head_file(folder, part).exists()]
    if not found:
        said = ", ".join(dict.fromkeys(learned)) or "nothing before its labels"
        raise RecipeError(
            f"generate: {name} has not learned to write text; it has learned {said}, expected one"
            f" of {', '.join(fit)}, in this stage or one before it"
        )
    return found[0]
