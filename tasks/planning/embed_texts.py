"""What every layer of a stage in the store gives to the tokens of texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fourstage.errors import RecipeError
from models.catalogue import literals
from tasks.planning.made_stage import made_stage

if TYPE_CHECKING:
    from models.protocols import Tokenizer
    from tasks.planning.layout import Plan


def embed_texts(
    plan: Plan,
    stage_name: str,
    texts: Iterable[Sequence[tuple[str, str]]],
    file: Path,
    done: Callable[[int], None],
) -> dict[str, Any]:
    """Write the vectors of texts to a file. Trains nothing.

    A text keeps as many tokens as fit into a row of the stage; special tokens are left out.

    Args:
        plan: The recipe's plan.
        stage_name: Name of a stage that is in the store.
        texts: Id and text of each, in batches.
        file: A file of `models.interchange.layer_files`.
        done: Told the number of texts so far.

    Returns:
        Numbers of texts, tokens and texts that were cut, the layers and the width, as plain JSON.

    Raises:
        UnknownNameError: The recipe has no such stage.
        RecipeError: Its family has no vectors.
        EnvironmentFault: The stage is not trained yet.
    """
    from models.evaluation.occurrences import BATCH_SIZE, AllLayers
    from models.interchange.layer_files import ReadText, layer_file
    from models.training.trained_stage import config_of, load_stage

    folder, tokenizer = made_stage(plan, stage_name, "embed")
    family = config_of(folder)["family"]
    kinds = literals("families", family, plan.folders)
    if kinds.get("TRAINS") or kinds.get("COUNTS"):
        raise RecipeError(f"embed: family {family!r} counts and has no vectors")
    stage = load_stage(folder, tokenizer, precision="float32", folders=plan.folders)
    layers = AllLayers(stage.network)
    names, room = token_names(tokenizer), stage.context.sequence_length - 2
    told = {"texts": 0, "tokens": 0, "cut": 0}
    with layer_file(file, layers.names, stage.network.hidden_dim) as writer:
        for batch in texts:
            whole = tokenizer.encode([text for _, text in batch])
            for first in range(0, len(batch), BATCH_SIZE):
                some = whole[first : first + BATCH_SIZE]
                kept = [ids[:room] for ids in some]
                states = layers.read(kept, stage.context)
                writer.write(
                    [
                        ReadText(name, [names[i] for i in ids], own[:, 1 : 1 + len(ids)])
                        for (name, _), ids, own in zip(batch[first:], kept, states, strict=False)
                    ]
                )
                told["texts"] += len(some)
                told["tokens"] += sum(map(len, kept))
                told["cut"] += sum(len(ids) > room for ids in some)
            done(told["texts"])
    return {**told, "layers": layers.names, "width": stage.network.hidden_dim, "file": str(file)}


def token_names(tokenizer: Tokenizer) -> list[str]:
    """The tokens of a vocabulary as text; of part of a character, its replacement sign."""
    served = tokenizer.served()
    if not served["bytes"]:
        return list(served["pieces"])
    return [piece.encode("latin-1").decode("utf-8", "replace") for piece in served["pieces"]]
