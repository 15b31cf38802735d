"""Import and export of networks, heads and tokenizers as Hugging Face folders.

    config.json, model.safetensors (or its shards), generation_config.json of a head that writes,
    vocab.txt or vocab.json and merges.txt, tokenizer.json, tokenizer_config.json

Everything is checked before anything is loaded or written: the architecture, every setting that
affects the result, the name and shape of every tensor. Pickles are never opened. The names of
tensors are in `models.interchange.families`. Keras is imported only when a network is built.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from fourstage.errors import ContractViolation, RecipeError, UnknownNameError, listed, located
from models.interchange.architecture import (
    ACTIVATIONS,
    THEIR_ACTIVATION,
    Architecture,
    Link,
    architectures,
    family_of,
)
from models.interchange.generation_file import (
    GENERATION,
    WRITES,
    their_generation,
    writing_settings,
)
from models.interchange.new_folder import refuse_files, written_whole
from models.interchange.published import POOLING
from models.interchange.tokenizer_files import read_tokenizer, write_tokenizer
from models.interchange.weight_files import FLOATS, WeightFiles, write_tensors
from models.interchange.wordpiece_files import VOCABULARY
from models.stage_format import FEATURE_BASED

CONFIG = "config.json"
LARGEST_FILE = 5_000_000_000  # bytes per file; transformers' long-time default
LARGEST = {  # largest values of settings; more is a mistake, and could exhaust memory
    "vocabulary_size": 10_000_000,
    "max_sequence_length": 1 << 20,
    "num_layers": 1000,
}
LARGEST_WIDTH = 1 << 17
LEAST = {"num_segments": 2}  # smallest values above 1: the second text of a pair has a row, too
NAMES_SHOWN = 5
CLASSIFIES = "sequence_classification"
CONTINUES = "causal_lm"


@dataclass(frozen=True)
class PretrainedNetwork:
    """A network as plain arrays, under our names.

    Attributes:
        family: Name of the family.
        settings: The network's arguments, with ``vocabulary_size``.
        network: {path: weights}.
        heads: {objective or head: {path: weights}}.
        head_settings: The settings of a fine-tuning head, by its name.
        tokenizer: The tokenizer, if its scheme is supported, else None.
        pad_id: Id of padding.
        label_names: Label names of a classification head, ordered by id.
        notes: Decisions and omissions, one sentence each.
        sequence_length: Tokens at which its texts were cut; None: as many as it has positions.
    """

    family: str
    settings: Mapping[str, Any]
    network: Mapping[str, np.ndarray]
    heads: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    tokenizer: Any = None
    pad_id: int = 0
    label_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    sequence_length: int | None = None
    head_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def build(self, precision: str = "float32") -> Any:
        """Build the network, a ``keras.Model``, with these weights."""
        from models.training.assembly import build_network
        from models.weights import load_weights

        settings = dict(self.settings)
        made = build_network(
            self.family,
            settings,
            vocabulary_size=settings.pop("vocabulary_size"),
            precision=precision,
        )
        load_weights(made, self.network)
        return made


def save_network(
    network: Any,
    folder: str | Path,
    *,
    scorers: Mapping[str, Any] | None = None,
    tokenizer: Any = None,
    pad_id: int | None = None,
    label_names: Iterable[str] = (),
    largest_file: int = LARGEST_FILE,
) -> tuple[str, ...]:
    """Write a network as a Hugging Face folder that transformers loads.

    Args:
        network: A network of a family with a counterpart in transformers.
        folder: A new or empty folder.
        scorers: {objective or head: its scorer}.
        tokenizer: Its tokenizer, if it is to be written, too.
        pad_id: Id of padding if there is no tokenizer; by default transformers' own.
        label_names: Label names of a classification head.
        largest_file: Largest size of a file in bytes; more is split into shards.

    Returns:
        Decisions and omissions, one sentence each.

    Raises:
        RecipeError: transformers has no such architecture or does not support this network's
            settings, or the folder has files. Nothing has been written.
    """
    from models.weights import named_weights

    def arrays(layer: Any) -> dict[str, np.ndarray]:
        named = named_weights(layer).items()
        return {name: np.array(variable.numpy(), order="C") for name, variable in named}

    settings = network.get_config()
    for key in ("dtype", "name"):
        del settings[key]
    checkpoint = PretrainedNetwork(
        family=network.name if network.name in architectures() else type(network).__name__.lower(),
        settings=settings,
        network=arrays(network),
        heads={name: arrays(scorer) for name, scorer in (scorers or {}).items()},
        tokenizer=tokenizer,
        pad_id=_pad_id(network, tokenizer, pad_id),
        label_names=tuple(label_names),
    )
    return write_checkpoint(checkpoint, Path(folder), largest_file)


def _pad_id(network: Any, tokenizer: Any, pad_id: int | None) -> int:
    if tokenizer is not None:
        return tokenizer.pad_id
    if pad_id is not None:
        return pad_id
    family = type(network).__name__.lower()
    return (architectures()[family].pad_id if family in architectures() else None) or 0


# Theirs → ours


def read_checkpoint(folder: Path, *, weights: bool = True) -> PretrainedNetwork:
    """Read a Hugging Face folder.

    Args:
        folder: Folder with ``config.json`` and safetensors, in one file or in shards; optionally
            with the files of a WordPiece, byte-level BPE or unigram tokenizer.
        weights: Whether to read the tensors' values; names and shapes are checked in either case.

    Raises:
        RecipeError: The architecture or a setting is not supported, tensors are missing or
            unexpected or do not have the configured shape, or there is only a pickle.
        ContractViolation: A file is malformed.
    """
    if not folder.is_dir():
        raise RecipeError(f"{folder}: expected a folder with {CONFIG} and model.safetensors")
    config = _config(folder / CONFIG)
    known = str(config.get("model_type"))
    family = family_of(known)
    if family is None:
        where = f"{folder / CONFIG}: model_type"
        types = [architecture.model_type for architecture in architectures().values()]
        raise UnknownNameError(where, known, "an architecture we exchange", types)
    architecture = architectures()[family]
    files = WeightFiles(folder)
    settings, pad_id, notes = _settings(architecture, config, folder / CONFIG)
    labels = _label_names(config)
    network = list(architecture.network(settings, pad_id))
    found = _Found(architecture, files, network, architecture.heads(settings, len(labels)))
    heads = found.links(config, settings)
    if CLASSIFIES in heads:
        _check_label_ids(config, folder / CONFIG)
    tokenizer, why_none = read_tokenizer(folder, settings["vocabulary_size"])
    if tokenizer is None:
        notes.append(f"no tokenizer: {why_none}")
    elif tokenizer.vocabulary_size != settings["vocabulary_size"]:
        raise RecipeError(
            f"{folder}: the tokenizer has {tokenizer.vocabulary_size} pieces, the network"
            f" {settings['vocabulary_size']} rows (vocab_size); they must be equal"
            f"{_other_lines(folder, tokenizer.vocabulary_size, settings['vocabulary_size'])}"
        )
    arrays = {
        link.ours.removeprefix("network/"): found.array(link)
        if link.theirs in found.named
        # The checkpoint does not have it.
        else _fresh(link)
        for link in (network if weights else ())
    }
    if any(link.theirs not in found.named for link in network):
        notes.append("the checkpoint has no pooler; it is initialised randomly")
    return PretrainedNetwork(
        family=family,
        settings=settings,
        network=arrays,
        heads={
            head: {link.ours.removeprefix(f"{head}/"): found.array(link) for link in links}
            if weights
            else {}
            for head, links in heads.items()
        },
        tokenizer=tokenizer,
        pad_id=pad_id,
        label_names=labels if "sequence_classification" in heads else (),
        notes=(*notes, *found.notes),
    )


def pooled_by_mean(folder: Path) -> bool:
    """Whether a network's publisher says that the mean of its tokens sums up a text.

    Args:
        folder: The published folder; a sentence encoder has how it pools in a file of its own, as
            sentence-transformers writes it.

    Raises:
        ContractViolation: That file is malformed.
    """
    file = folder / POOLING
    return file.is_file() and _config(file).get("pooling_mode_mean_tokens") is True


def _config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise RecipeError(f"{path}: not found; expected a network's configuration") from error
    except (ValueError, RecursionError) as error:
        raise ContractViolation(f"{path}: not JSON ({type(error).__name__})") from error
    if not isinstance(config, dict):
        raise ContractViolation(f"{path}: expected an object, got {type(config).__name__}")
    return config


def _settings(
    architecture: Architecture, config: Mapping[str, Any], path: Path
) -> tuple[dict[str, Any], int, list[str]]:
    """The network's arguments, the padding id, and notes."""
    notes: list[str] = []
    for key, value in architecture.demanded.items():
        if config.get(key, value) not in (value, None):
            raise RecipeError(
                f"{path}: {key}: expected {value}, got {str(config[key])[:80]}; our"
                f" {architecture.model_type} supports no other value"
            )
    settings: dict[str, Any] = dict(architecture.fixed)
    for key, (argument, default) in architecture.arguments.items():
        value = config.get(key, default)
        settings[argument] = _checked(path, key, argument, value)
    if "head_dim" not in settings and settings["hidden_dim"] % settings["num_heads"]:
        raise RecipeError(
            f"{path}: the width {settings['hidden_dim']} is not a multiple of the"
            f" {settings['num_heads']} heads"
        )
    pad_id = config.get("pad_token_id", architecture.pad_id)
    if pad_id is None and architecture.pad_id is None:
        pad_id = config.get("eos_token_id") or 0
    if not _is_whole(pad_id) or not 0 <= pad_id < settings["vocabulary_size"]:
        raise RecipeError(f"{path}: pad_token_id: expected an id, got {str(pad_id)[:80]}")
    with located(str(path)):
        architecture.read(settings, config, pad_id)
    if architecture.head_activation not in (None, settings["activation"]):
        settings["head_activation"] = architecture.head_activation
    attention = config.get(architecture.attention_dropout)
    if attention is not None and attention != settings["dropout"]:
        notes.append(
            f"dropout {settings['dropout']} is also used for attention weights; theirs is"
            f" {str(attention)[:20]}"
        )
    return settings, pad_id, notes


def _checked(path: Path, key: str, argument: str, value: Any) -> Any:
    """A setting's value, checked for type and range."""
    if argument == "activation":
        if not isinstance(value, str) or value not in ACTIVATIONS:
            raise UnknownNameError(f"{path}: {key}", str(value), "an activation", ACTIVATIONS)
        return ACTIVATIONS[value]
    if argument in ("dropout", "layer_norm_epsilon"):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
            raise RecipeError(f"{path}: {key}: expected a number in [0, 1), got {str(value)[:80]}")
        return float(value)
    least, largest = LEAST.get(argument, 1), LARGEST.get(argument, LARGEST_WIDTH)
    if not _is_whole(value) or not least <= value <= largest:
        more = "; repeat the row of its table, so that second texts are read as first ones are"
        raise RecipeError(
            f"{path}: {key}: expected a whole number from {least} to {largest:,}, got"
            f" {str(value)[:80]}{more if value == 1 else ''}"
        )
    return value


def _other_lines(folder: Path, pieces: int, rows: int) -> str:
    """For the error message: the surplus or missing lines of a vocabulary file."""
    if not (folder / VOCABULARY).is_file():
        return ""
    first, last = min(pieces, rows) + 1, max(pieces, rows)
    lines = f"line {first}" if first == last else f"lines {first} to {last}"
    return f". {VOCABULARY}: {lines} {'too many' if pieces > rows else 'missing'}"


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _label_names(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Label names ordered by id; as in transformers, LABEL_0 and LABEL_1 if there are none.

    Their number is that of the outputs, whatever their ids are (`_check_label_ids`).
    """
    names = config.get("id2label")
    if isinstance(names, Mapping):
        return tuple(str(names[i]) for i in _label_ids(names))
    count = config.get("num_labels", 2)
    return tuple(f"LABEL_{i}" for i in range(count if _is_whole(count) and count < 10_000 else 2))


def _label_ids(names: Mapping[str, Any]) -> list[str]:
    return sorted(names, key=lambda each: (len(each), each))


def _check_label_ids(config: Mapping[str, Any], path: Path) -> None:
    """Refuse names of labels that are not numbered as the outputs of their head.

    Raises:
        RecipeError: The ids are not 0, 1, 2, …
    """
    names = config.get("id2label")
    ids = _label_ids(names) if isinstance(names, Mapping) else []
    if ids != [str(i) for i in range(len(ids))]:
        raise RecipeError(
            f"{path}: id2label: expected the ids 0 to {len(ids) - 1}, one for each output of the"
            f" head, got {listed(ids, NAMES_SHOWN)}; number the names as the network was trained"
        )


class _Found:
    """The tensors of a checkpoint, checked against its configuration."""

    def __init__(
        self,
        architecture: Architecture,
        files: WeightFiles,
        network: Sequence[Link],
        heads: Mapping[str, list[Link]],
    ):
        self.architecture = architecture
        self.files = files
        self.network = network
        self.heads = heads
        self.notes: list[str] = []
        # {full name: name in the file}. Full names have the prefix and the current LayerNorm names.
        self.named: dict[str, str] = {}
        in_heads = {link.theirs for links in heads.values() for link in links}
        beside = {
            link.theirs for link in network if not link.theirs.startswith(architecture.prefix)
        }
        others = (
            *beside,
            *in_heads,
            *architecture.copies,
            *architecture.zeros,
            *architecture.computed,
        )
        first_names = {name.split(".")[0] for name in others}
        for name in files.shapes:
            full = name
            if not name.startswith(architecture.prefix) and name.split(".")[0] not in first_names:
                full = architecture.prefix + name
            for old, new in ((".gamma", ".weight"), (".beta", ".bias")):
                if full.endswith(old):
                    full = full.removesuffix(old) + new
            if full in self.named:
                raise RecipeError(
                    f"{files.folder}: {self.named[full]!r} and {name!r} are two names of the same"
                    " tensor; expected one"
                )
            self.named[full] = name

    def links(
        self, config: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> dict[str, list[Link]]:
        """The tensors to read for each head in the checkpoint.

        Raises:
            RecipeError: Configuration and tensors disagree; the message lists how.
        """
        architecture, there = self.architecture, set(self.named)
        network = self.network
        whole = any(link.theirs in there for link in network if link.optional)
        named = config.get("architectures") or [None]
        named = str(named[0]) if isinstance(named, list) and named[0] is not None else ""
        wanted = architecture.classes.get(named, ())
        heads: dict[str, list[Link]] = {}
        for head, links in self.heads.items():
            if head in wanted or any(link.theirs in there for link in links):
                heads[head] = links
        if CLASSIFIES in heads and (why := self._no_label(config, named)):
            others = {link.theirs for link in heads.pop(CLASSIFIES)} & there
            there -= others
            self.notes.append(f"left out, {why}: {', '.join(sorted(others))}")
        demanded = [link for link in network if whole or not link.optional]
        expected = [*demanded, *(link for links in heads.values() for link in links)]
        self._agree(expected, there)
        self._copies(there, {link.theirs: link for link in expected})
        self._zeros(there)
        self._computed(there, settings)
        return heads

    def _no_label(self, config: Mapping[str, Any], named: str) -> str:
        """Why the tensors named like those of our classification head are of another; "" if not.

        Other heads of theirs, such as for the tags of words, have the same names.
        """
        if named and CLASSIFIES not in self.architecture.classes.get(named, ()):
            return f"{named} answers otherwise than with one label of a text"
        problem = config.get("problem_type") or "single_label_classification"
        if problem != "single_label_classification":
            return f"it answers otherwise than with one label (problem_type {str(problem)[:80]})"
        return (
            "" if len(_label_names(config)) > 1 else "it has one label, so its answer is a number"
        )

    def _agree(self, expected: list[Link], there: set[str]) -> None:
        """Check names, shapes and types of the tensors; note the ignored ones.

        Raises:
            RecipeError: With all disagreements.
        """
        architecture = self.architecture
        names = {link.theirs for link in expected}
        faults: list[str] = []
        wrong = [
            link
            for link in expected
            if link.theirs in there and not _fits(self._shape(link.theirs), link.shape)
        ]
        for link in wrong[:NAMES_SHOWN]:
            faults.append(
                f"{self.named[link.theirs]} is {self._shape(link.theirs)} in the file, expected"
                f" {link.shape} by the config"
            )
        if len(wrong) > NAMES_SHOWN:
            faults.append(f"{len(wrong) - NAMES_SHOWN} more tensors have another shape")
        missing = [link.theirs for link in expected if link.theirs not in there]
        if missing:
            faults.append(_counted(missing, "missing"))
        known = {*architecture.copies, *architecture.zeros, *architecture.computed}
        surplus = sorted(there - names - known)
        left_out = [name for name in surplus if name.startswith(architecture.ignored or ("\0",))]
        # Buffers that older versions of transformers saved with the weights.
        counters = (".position_ids", ".token_type_ids", ".attn.bias", ".attn.masked_bias")
        unexpected = [
            self.named[name]
            for name in surplus
            if name not in left_out and not name.endswith(counters)
        ]
        if unexpected:
            faults.append(_counted(unexpected, "unexpected"))
        types = {
            self.named[link.theirs]: self.files.types[self.named[link.theirs]]
            for link in expected
            if link.theirs in there
        }
        odd = [f"{name} ({kind})" for name, kind in types.items() if kind not in FLOATS]
        if odd:
            faults.append(_counted(odd, f"of an unsupported type (expected {', '.join(FLOATS)})"))
        if faults:
            raise RecipeError(
                f"{self.files.folder}: config.json and tensors disagree: " + "; ".join(faults)
            )
        if left_out:
            self.notes.append(
                f"left out, our {architecture.model_type} has no counterpart: "
                + ", ".join(left_out)
            )

    def _copies(self, there: set[str], links: Mapping[str, Link]) -> None:
        """Check that both copies of a tied tensor are equal.

        Raises:
            RecipeError: They differ.
        """
        for copy, original in self.architecture.copies.items():
            if copy in there and copy not in links and original in links:
                one, two = (self.files.array(self.named[name]) for name in (copy, original))
                if not np.array_equal(one, two):
                    raise RecipeError(
                        f"{self.files.folder}: {copy} and {original} differ, expected one tied"
                        f" tensor; our {self.architecture.model_type} has no second one"
                    )

    def _zeros(self, there: set[str]) -> None:
        """Check that the tensors which ours has no counterpart of say nothing.

        Raises:
            RecipeError: One does.
        """
        for name in sorted(there & set(self.architecture.zeros)):
            if self.files.array(self.named[name]).any():
                raise RecipeError(
                    f"{self.files.folder}: {name}: expected zeros, got other numbers; our"
                    f" {self.architecture.model_type} has no counterpart"
                )

    def _computed(self, there: set[str], settings: Mapping[str, Any]) -> None:
        """Check that the tensors which ours computes have those values, at half precision.

        Raises:
            RecipeError: One has others.
        """
        for name, values in self.architecture.computed.items():
            if name not in there:
                continue
            expected = values(settings)
            found = self.files.array(self.named[name])
            if found.shape != expected.shape or not np.allclose(found, expected, atol=1e-3):
                raise RecipeError(
                    f"{self.files.folder}: {name}: expected the table that their"
                    f" {self.architecture.model_type} begins with, got another one"
                )

    def _shape(self, name: str) -> tuple[int, ...]:
        return self.files.shapes[self.named[name]]

    def array(self, link: Link) -> np.ndarray:
        """A tensor in our layout."""
        array = self.files.array(self.named[link.theirs])
        for axis in link.halved:
            array = _in_turns(array, axis)
        if link.part is not None:
            number, count = link.part
            return np.array(np.split(array, count, axis=-1)[number], order="C")
        if link.as_ours is not None:
            array = array.reshape(link.as_ours)
        if link.transposed:
            return np.array(array.T, order="C")
        stop = None if link.rows is None else link.rows_before + link.rows
        return np.array(array[link.rows_before : stop], order="C") if array.ndim == 2 else array


def _in_turns(array: np.ndarray, axis: int) -> np.ndarray:
    """0 1 2 | 3 4 5 → 0 3 1 4 2 5, along an axis."""
    shape = array.shape
    halves = array.reshape(*shape[:axis], 2, shape[axis] // 2, *shape[axis + 1 :])
    return np.array(halves.swapaxes(axis, axis + 1).reshape(shape), order="C")


def _in_halves(array: np.ndarray, axis: int) -> np.ndarray:
    """The inverse of `_in_turns`."""
    shape = array.shape
    turns = array.reshape(*shape[:axis], shape[axis] // 2, 2, *shape[axis + 1 :])
    return np.array(turns.swapaxes(axis, axis + 1).reshape(shape), order="C")


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        there == want or (want is None and there) for there, want in zip(shape, wanted, strict=True)
    )


def _counted(names: list[str], what: str) -> str:
    return f"{len(names)} {what}: {listed(names, NAMES_SHOWN)}"


def _fresh(link: Link) -> np.ndarray:
    """Initial values of a tensor that the checkpoint lacks; deterministic."""
    shape = [size for size in reversed(link.shape) if size is not None]
    if len(shape) == 1:
        return np.zeros(shape, np.float32)
    drawn = np.random.default_rng(0).normal(0.0, 0.02, shape)
    return np.clip(drawn, -0.04, 0.04).astype(np.float32)


# Ours → theirs


def write_checkpoint(
    checkpoint: PretrainedNetwork, folder: Path, largest_file: int = LARGEST_FILE
) -> tuple[str, ...]:
    """Write a Hugging Face folder, atomically.

    Args:
        checkpoint: The network, under our names.
        folder: A new or empty folder.
        largest_file: Largest size of a file in bytes; more is split into shards.

    Returns:
        Decisions and omissions, one sentence each.

    Raises:
        RecipeError: transformers has no such architecture or does not support this network's
            settings, or the folder has files.
    """
    if checkpoint.family not in architectures():
        what = "an architecture we exchange"
        raise UnknownNameError("family", checkpoint.family, what, architectures())
    refuse_files(folder)
    architecture, settings = architectures()[checkpoint.family], checkpoint.settings
    name, heads, notes = _their_class(architecture, checkpoint)
    config = _their_config(architecture, checkpoint, heads)
    links = list(architecture.network(settings, checkpoint.pad_id))
    their_heads = architecture.heads(settings, len(checkpoint.label_names))
    arrays = {f"network/{path}": value for path, value in checkpoint.network.items()}
    for head in heads:
        links += their_heads[head]
        own = checkpoint.heads.get(head, {})
        arrays |= {f"{head}/{path}": value for path, value in own.items()}
    # For example the generator of replaced_token_detection.
    surplus = sorted({"/".join(name.split("/")[:2]) for name in arrays.keys() - _ours(links)})
    notes += [f"left out, {name} has no counterpart: {part}" for part in surplus]
    parts: dict[str, list[Link]] = {}
    for link in links:
        parts.setdefault(link.theirs, []).append(link)
    theirs = {name: _as_theirs(of, arrays) for name, of in parts.items()}
    theirs |= {
        name: np.zeros([settings[n] if isinstance(n, str) else n for n in shape], np.float32)
        for name, (head, shape) in architecture.zeros.items()
        if head in heads
    }
    if architecture.writes_computed:
        theirs |= {name: values(settings) for name, values in architecture.computed.items()}
    if not heads:  # their class without heads has no prefix
        theirs = {key.removeprefix(architecture.prefix): value for key, value in theirs.items()}
    with written_whole(folder) as part:
        write_tensors(theirs, part, largest_file)
        _write_object(part / CONFIG, {"architectures": [name], **config})
        if checkpoint.tokenizer is not None:
            # So that a pipeline with `truncation=True` cuts texts where `predict` does.
            length = checkpoint.sequence_length or settings["max_sequence_length"]
            segments = architecture.reads_segments or "num_segments" in settings
            side = architecture.padding_side
            # What a network continues has no end yet; a head that writes reads a text to its end.
            ends = CONTINUES not in heads or WRITES in checkpoint.heads
            if WRITES in checkpoint.head_settings:
                head = writing_settings(checkpoint.head_settings[WRITES])
                said, more = their_generation(head, checkpoint.tokenizer, config)
                _write_object(part / GENERATION, said)
                notes += more
                length -= head["target_length"]
                # What is written follows the last token of a row.
                side = "left" if CONTINUES in heads else side
            write_tokenizer(checkpoint.tokenizer, part, length, segments, side, ends)
            if architecture.more_files is not None:
                architecture.more_files(checkpoint.tokenizer, part)
    return tuple(notes)


def _write_object(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", "utf-8")


def _ours(links: Iterable[Link]) -> set[str]:
    return {link.ours for link in links}


def _their_class(
    architecture: Architecture, checkpoint: PretrainedNetwork
) -> tuple[str, tuple[str, ...], list[str]]:
    """Their class to write, the heads it includes, and notes about those it leaves out.

    A fine-tuned network is written with its fine-tuning head, not with its pre-training heads.
    """
    there = set(checkpoint.heads)
    said = checkpoint.head_settings.get("sequence_classification", {})
    reads_otherwise = said.get("summary", "network") != "network" or said.get("symmetric")
    told_more = said.get("wide") or said.get("shared_tokens")
    if FEATURE_BASED in there or reads_otherwise or told_more:
        # Theirs reads a row once, by the network alone and as the family's paper does: it would
        # answer otherwise.
        there.discard("sequence_classification")
    # Heads of theirs that do the same: those without tensors of their own.
    their_heads = architecture.heads(checkpoint.settings, len(checkpoint.label_names))
    alike = {head for head, links in their_heads.items() if not links and WRITES in there}
    there |= alike
    # Prefer a class with a classification head, then the one with the most heads.
    best, taken = next(iter(architecture.classes.items()))
    for name, has in architecture.classes.items():
        if set(has) <= there and (
            ("sequence_classification" in has, len(has))
            > ("sequence_classification" in taken, len(taken))
        ):
            best, taken = name, has
    left = sorted(set(checkpoint.heads) - set(taken) - ({WRITES} if alike & set(taken) else set()))
    return best, taken, [f"left out, {best} has no counterpart: head {head}" for head in left]


def _their_config(
    architecture: Architecture, checkpoint: PretrainedNetwork, heads: tuple[str, ...]
) -> dict[str, Any]:
    settings = checkpoint.settings
    for argument, value in architecture.fixed.items():
        own = settings.get(argument, value)  # a stage trained before there was the argument
        if own != value:
            raise RecipeError(
                f"{argument}: their {architecture.model_type} supports only {value}, this network"
                f" has {own}"
            )
    activation = settings["activation"]
    used = settings.get("head_activation") or activation
    if "masked_lm" in heads and used != (architecture.head_activation or activation):
        raise RecipeError(
            f"activation: their {architecture.model_type} supports only"
            f" {architecture.head_activation or activation} in the masked-token head, this network"
            f" has {used}; train it with size.head_activation: {architecture.head_activation}"
        )
    config: dict[str, Any] = {"model_type": architecture.model_type}
    for key, (argument, _) in architecture.arguments.items():
        config[key] = settings[argument]
    for key, (argument, _) in architecture.arguments.items():
        if argument == "activation":
            config[key] = THEIR_ACTIVATION[activation]
    config[architecture.attention_dropout] = settings["dropout"]
    config |= {"pad_token_id": checkpoint.pad_id, "tie_word_embeddings": True, "dtype": "float32"}
    if checkpoint.tokenizer is not None:
        named = architecture.special_ids.items()
        config |= {key: getattr(checkpoint.tokenizer, f"{name}_id") for key, name in named}
    architecture.write(config, settings, checkpoint.pad_id)
    if "sequence_classification" in heads:
        config["id2label"] = {str(i): name for i, name in enumerate(checkpoint.label_names)}
        config["label2id"] = {name: i for i, name in enumerate(checkpoint.label_names)}
    return config


def _as_theirs(links: Sequence[Link], arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """A tensor in their layout, of the links that it consists of.

    Raises:
        RecipeError: It is missing, or has another shape.
    """
    missing = [link.ours for link in links if link.ours not in arrays]
    if missing:
        raise RecipeError(f"{missing[0]}: missing; was it written by another version?")
    link = links[0]
    array = np.concatenate([arrays[each.ours] for each in links], axis=-1)
    if link.transposed:
        array = array.T
    elif link.rows_before:
        array = np.concatenate([np.zeros((link.rows_before, array.shape[1]), array.dtype), array])
    if link.as_ours == array.shape:
        array = array.reshape([size or -1 for size in link.shape])
    if not _fits(array.shape, link.shape):
        raise RecipeError(f"{link.ours}: expected {link.shape} as theirs, got {array.shape}")
    for axis in link.halved:
        array = _in_halves(array, axis)
    return np.array(array, np.float32, order="C")
