"""Parts of a new network that start from other networks, or from word vectors.

A network names its parts (``starts``): of each, the names of its weights and theirs in the network
that the part starts from. What that one does not have, such as layers above its own, keeps its new
weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from fourstage.errors import RecipeError
from fourstage.terminal import say
from models.catalogue import literals, provided
from models.interchange.stage_folder import read_stage
from models.interchange.vector_files import ENDINGS, WordVectorsFile, read_vectors, vectors_of
from models.protocols import Tokenizer
from models.stage_format import NETWORK, TOKENIZER
from models.training.job import TrainingJob
from models.training.trained_stage import config_of
from models.weights import named_weights

EMBEDDINGS = "embeddings"  # the part that every network with a table of tokens has
TABLES = ("embeddings/token/embeddings", "token/embeddings")  # its name in families


def start_parts(job: TrainingJob, network: Any, scorers: Mapping[str, Any]) -> None:
    """Give parts of a network, and of scorers, the weights that they start from.

    Args:
        job: The job, with a stage's folder or a file by part.
        network: A built network.
        scorers: {objective: its scorer}.

    Raises:
        RecipeError: What a part starts from has another tokenizer, weights of other shapes, or no
            word that is a token.
        ContractViolation: A file of word vectors is malformed.
    """
    tables = literals("families", job.stage.family, job.folders).get("TABLES", {})
    for part, path in sorted(job.starts.items()):
        where = f"{job.stage.kind}: starts_from.{part}"
        if not path.is_dir():
            found = read_vectors(path, ENDINGS[path.suffix])
            _start_words(where, path, found, network.token_embedding.embeddings, job.tokenizer)
            continue
        config = config_of(path)
        theirs = config["tokenizer_digest"]
        if part not in tables and theirs != job.tokenizer.digest:
            if part == EMBEDDINGS and _has_words(path, config["family"], job.folders):
                found = vectors_of(read_stage(path))
                _start_words(where, path, found, network.token_embedding.embeddings, job.tokenizer)
                continue
            raise RecipeError(
                f"{where}: trained with another vocabulary: tokenizer {theirs[:12]}, this recipe's"
                f" is {job.tokenizer.digest[:12]}; the same token has to have the same number in"
                " all networks that one starts from"
            )
        given = load_file(path / NETWORK)
        if part == EMBEDDINGS or part in tables:
            layer = network.token_embedding if part == EMBEDDINGS else getattr(network, part)
            _start_table(where, layer.embeddings, network, given)
        else:
            _start(where, part, given, network, scorers)


def _start(
    where: str, part: str, given: Mapping[str, np.ndarray], network: Any, scorers: Mapping[str, Any]
) -> None:
    pairs = []
    for layer in (network, *scorers.values()):
        own = named_weights(layer)
        names = getattr(layer, "starts", {}).get(part, {})
        pairs += [(n, own[n], given[names[n]]) for n in own if names.get(n) in given]
    if not pairs:
        raise RecipeError(f"{where}: nothing in the network that it names fits the part")
    values = [(variable, _fitted(where, name, variable, array)) for name, variable, array in pairs]
    for variable, value in values:
        variable.assign(value)


def _start_table(where: str, table: Any, network: Any, given: Mapping[str, np.ndarray]) -> None:
    """Give a table of the network the numbers of the other network's table of tokens."""
    theirs = next((name for name in TABLES if name in given), None)
    if theirs is None:
        raise RecipeError(f"{where}: the network that it names has no table of tokens")
    name = next(name for name, variable in named_weights(network).items() if variable is table)
    table.assign(_fitted(where, name, table, given[theirs]))


def _fitted(where: str, name: str, variable: Any, array: np.ndarray) -> np.ndarray:
    """The given array, below which a kernel or a table with more rows keeps its new ones."""
    shape = tuple(variable.shape)
    if shape == array.shape:
        return array
    if (
        name.endswith(("/kernel", "/embeddings"))
        and shape[1:] == array.shape[1:]
        and shape[0] > array.shape[0]
    ):
        return np.concatenate([array, variable.numpy()[len(array) :]])
    raise RecipeError(
        f"{where}: expected {name} of shape {shape}, got {array.shape}; what it starts from has"
        " to be as wide, and may have fewer rows, but not more"
    )


def _has_words(path: Path, family: str, folders: Sequence[Path]) -> bool:
    """Whether a folder has vectors of words, and the words: those of a registered version have."""
    return "static" in provided(family, folders) and (path / TOKENIZER).is_dir()


def _start_words(
    where: str, path: Path, found: WordVectorsFile, table: Any, tokenizer: Tokenizer
) -> None:
    """Give tokens that are whole words of a file or folder their vectors; the first one counts."""
    if found.vectors.shape[1] != table.shape[1]:
        raise RecipeError(
            f"{where}: expected vectors of {table.shape[1]} numbers, which is the table's width,"
            f" got {found.vectors.shape[1]} in {path}"
        )
    value = np.array(table.numpy())
    rows: dict[int, int] = {}
    for number, ids in enumerate(tokenizer.encode(found.words)):
        if len(ids) == 1 and ids[0] not in tokenizer.special_ids:
            rows.setdefault(int(ids[0]), number)
    if not rows:
        raise RecipeError(
            f"{where}: none of the {len(found.words):,} words of {path} is a token as a whole;"
            " expected vectors of the language and case that the tokenizer has"
        )
    value[list(rows)] = found.vectors[list(rows.values())]
    table.assign(value)
    say(
        f"{where}: {len(rows):,} of {len(value):,} tokens have a vector among the"
        f" {len(found.words):,} words there; the others start at random"
    )
