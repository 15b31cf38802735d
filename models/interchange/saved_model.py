"""The served model: a TensorFlow SavedModel with tokenizer, network and head.

    ``serve((B,) text)``, or for pairs ``serve((B,) text, (B,) second text)`` → (B, N)
    probabilities of the labels; of a number (B, 1)

For rows with pictures that the network sees, ``serve`` takes their regions after the texts:
features (B, O, E), boxes (B, O, 4) and mask (B, O). Regions are found outside (`corpora.regions`).

For rows with the entities that their texts name, ``serve`` takes them after the texts, for each
(B, N) the entity that is named from each token on. They are found outside (`corpora.linking`), by

    ``place((B,) text)`` → the normalised texts, and where their tokens lie (`models.served.named`)

With a head that embeds texts, also

    ``embed((B,) text)`` → (B, D) vectors of length 1

With a head that chooses, in place of ``serve``

    ``score((P,) text, (P,) choice)`` → (P,) logits, each of one choice with its text

With a head that writes, in place of ``serve``

    ``frame((B,) text)``, or of pairs ``frame((B,) text, (B,) second text)`` → token ids and mask
    (B, T), and whether each row was cut (B,); ``start``, ``kernel``, ``step`` and ``moved`` as a
    `models.decoding.cached.CachedReader` reads

With a head that reads words, texts are cut into words and windows outside (`models.served`):

    ``count((W,) words)`` → (W,) tokens of each word
    ``read((B, W) words of windows)``, with texts before them ``read((B,), (B, W))`` →
    {name: (B, …)} the head's predictions

It needs tensorflow and tensorflow-text, but not this project. Texts get special tokens exactly as
in training, and are padded to the longest row of the call.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from models import features as keys
from models.catalogue import answers_name, literals
from models.inputs.mixture import known_prefixes
from models.protocols import Tokenizer
from models.saved_tokenizer import load_tokenizer
from models.scored_positions import where_read
from models.served.choices import predict_choices
from models.served.named import Link, named_values
from models.served.parts import predict_parts
from models.served.pictures import stacked
from models.served.spans import predict_spans
from models.served.texts import predict_texts
from models.training.traced_model import forgetting_gradients
from models.training.trained_stage import load_stage

SAVED_MODEL = "saved_model"
LABELS = "labels.json"
HEAD = "head.json"
ENTITIES = "entities.json"
# Run with KERAS_BACKEND=tensorflow; -P, so that no file of the current folder is imported.
CHILD = "from models.interchange.saved_model import export_what_is_asked; export_what_is_asked()"
_TOLD = 3  # its exit status where its output is an OSError


def export_text_model(
    stage_folder: Path,
    tokenizer_folder: Path,
    out: Path,
    *,
    pairs: bool = False,
    most_regions: int = 0,
    entities: Mapping[str, int] | None = None,
    folders: Sequence[Path] = (),
) -> None:
    """Write ``saved_model/``, ``labels.json`` and ``head.json``, and maybe ``entities.json``.

    ``labels.json`` has the names that answers consist of, in the order of the head's outputs;
    ``head.json`` the kind of answer (``answers``), whether rows are ``pairs``, how many regions of
    a picture it sees (``most_regions``), whether it ``reads_entities``, ``reads_words`` or
    ``embeds`` texts, the ``names``, the tasks' ``known_prefixes``, and what the head's ``served()``
    says.

    ``entities.json`` is ``{name: number}``: each name, as the tokenizer reads it, and the row of
    the network's table of entities that it means, 0 for none.

    Args:
        stage_folder: Folder of a finished finetune stage with a head that can be served.
        tokenizer_folder: Folder of its tokenizer.
        out: Folder to write to; created if missing.
        pairs: Whether rows have two texts.
        most_regions: Regions that are kept of a row's picture; 0 for rows without pictures, or a
            network or a head that does not see them.
        entities: What names mean, for a network that reads the entities that a text names; its
            tokenizer must say where tokens lie. None for one that reads text alone.
        folders: Project folders, searched first.

    Raises:
        OSError: The disk is full, or a file becomes too large.
    """
    import keras

    asked = {"pairs": pairs, "most_regions": most_regions, "entities": entities}
    places = (stage_folder, tokenizer_folder, out)
    if keras.backend.backend() == "tensorflow":
        _export(*places, **asked, folders=folders)
    else:
        export_in_tensorflow(*places, **asked, folders=folders)


def export_in_tensorflow(*places: Path, folders: Sequence[Path] = (), **asked: Any) -> None:
    """`export_text_model` by a process of its own, with Keras on TensorFlow and without a GPU.

    A process has one backend of Keras, and the graph is TensorFlow's: a stage that JAX trained is
    written by another process. Weights and tokenizer are files, which know no backend.
    """
    question = {
        "places": [str(path) for path in places],
        "asked": asked,
        "folders": [str(path) for path in folders],
    }
    done = subprocess.run(
        [sys.executable, "-P", "-c", CHILD],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"KERAS_BACKEND": "tensorflow", "CUDA_VISIBLE_DEVICES": ""},
    )
    if done.returncode == _TOLD:
        raise OSError(*json.loads(done.stdout))
    if done.returncode:
        raise RuntimeError(f"the process that writes the served model: {done.stderr[-800:]}")


def export_what_is_asked() -> None:
    """The process of `export_in_tensorflow`: the question comes as JSON on standard input."""
    question = json.load(sys.stdin)
    try:
        _export(
            *map(Path, question["places"]),
            **question["asked"],
            folders=[Path(each) for each in question["folders"]],
        )
    except OSError as error:  # such as a full disk, which the run tells as its own
        sys.stdout.write(json.dumps([error.errno, error.strerror, error.filename]))
        sys.exit(_TOLD)


def _export(
    stage_folder: Path,
    tokenizer_folder: Path,
    out: Path,
    *,
    pairs: bool,
    most_regions: int,
    entities: Mapping[str, int] | None,
    folders: Sequence[Path],
) -> None:
    import tensorflow as tf

    tokenizer = load_tokenizer(tokenizer_folder)
    # float32, as in `predict`; not every serving machine is fast in bfloat16.
    stage = load_stage(stage_folder, tokenizer, precision="float32", folders=folders)
    (name,) = stage.config["head"]
    head = stage.objective(name, folders)
    scorer = stage.scorer(name, head)
    served = getattr(head, "served", dict)  # a project's own head may have nothing to say
    about = literals("heads", name, folders)
    settings = {
        "answers": answers_name(name, folders),
        "pairs": pairs,
        "most_regions": most_regions,
        "reads_entities": entities is not None,
        "reads_words": bool(about.get("READS_WORDS")),
        "embeds": bool(about.get("EMBEDS")),
        "names": list(stage.config["label_names"]),
        "known_prefixes": known_prefixes(stage.config),
        **served(),
    }
    module = tokenizer.module()
    length, marks = stage.context.sequence_length, stage.context.marks

    def predictions(features: dict[str, Any]) -> dict[str, Any]:
        features = scorer.prepare(features, training=False)
        features = where_read(stage.under_head, [scorer], features)
        outputs = dict(stage.under_head(features, training=False))
        return scorer(features, outputs, training=False)[1]

    def values(features: dict[str, Any]) -> Any:
        found = predictions(features)
        if keys.LOGITS in found:
            return tf.nn.softmax(found[keys.LOGITS], axis=-1)
        return (
            found[keys.PROBABILITIES]
            if keys.PROBABILITIES in found
            else found[keys.NUMBERS][:, None]
        )

    wide = getattr(head, "wide", None)

    def row(first: Any, second: Any = None, named: Sequence[Any] = ()) -> dict[str, Any]:
        features = framed(tokenizer, first, second, length, marks, named)
        if wide is None:
            return features
        return features | wide.of([first] if second is None else [first, second])

    def serve(texts: Any) -> Any:
        return values(row(module(texts)))

    def serve_pair(texts: Any, seconds: Any) -> Any:
        first, second = module(texts), module(seconds)
        found = values(row(first, second))
        if not settings.get("symmetric"):
            return found
        return (found + values(row(second, first))) / 2.0

    def serve_seen(*given: Any) -> Any:
        columns, regions = given[: 1 + pairs], given[1 + pairs :]
        seen = dict(zip(keys.SEEN, regions, strict=True))
        texts = [module(column) for column in columns]
        found = values(row(*texts) | seen)
        if not settings.get("symmetric"):
            return found
        return (found + values(row(*reversed(texts)) | seen)) / 2.0

    def place(texts: Any) -> dict[str, Any]:
        return module.placed(texts)

    def serve_named(*given: Any) -> Any:
        columns, entities = given[: 1 + pairs], given[1 + pairs :]
        texts = [module(column) for column in columns]
        ragged: Any = tf.RaggedTensor  # whose constructors the stubs do not know
        named = [
            ragged.from_tensor(each, lengths=text.row_lengths())
            for each, text in zip(entities, texts, strict=True)
        ]
        found = values(row(*texts, named=named))
        if not settings.get("symmetric"):
            return found
        return (found + values(row(*reversed(texts), named=named[::-1]))) / 2.0

    def embed(texts: Any) -> Any:
        features = framed(tokenizer, module(texts), None, length, marks)
        return scorer.vectors(features, stage.under_head(features, training=False))

    def serve_embedded(texts: Any, seconds: Any) -> Any:
        return scorer.numbers(embed(texts), embed(seconds))[1][:, None]

    def score(texts: Any, choices: Any) -> Any:
        features = row(module(texts), module(choices))
        alone = {key: value[:, None] for key, value in features.items()}  # rows of one choice
        return predictions(alone)[keys.LOGITS][:, 0]

    def frame(*texts: Any) -> tuple[Any, Any, Any]:
        first, second = map(module, texts) if pairs else (module(texts[0]), None)
        if settings["prefix"]:
            before = tf.constant([settings["prefix"]], tf.int32)
            first = tf.concat([tf.repeat(before, first.nrows(), axis=0), first], axis=1)
        found = framed(tokenizer, first, second, settings["source_length"], marks)
        ids, mask = found[keys.TOKEN_IDS], found[keys.PADDING_MASK]
        whole = 2 + first.row_lengths()
        if second is not None:
            whole += 1 + second.row_lengths()
        return ids, mask, whole > tf.cast(tf.reduce_sum(mask, axis=1), whole.dtype)

    def count(words: Any) -> Any:
        return tf.cast(module(words).row_lengths(), tf.int32)

    def read(words: Any) -> dict[str, Any]:
        return predictions(framed_words(tokenizer, module, None, words, length))

    def read_after(texts: Any, words: Any) -> dict[str, Any]:
        return predictions(framed_words(tokenizer, module, texts, words, length))

    saved, signatures = _saved(stage.under_head, scorer, module), {}

    def endpoint(name: str, function: Any, signature: Sequence[Any]) -> None:
        setattr(saved, name, tf.function(function, signature, autograph=False))
        signatures[name] = getattr(saved, name)

    text = tf.TensorSpec([None], tf.string)
    words = tf.TensorSpec([None, None], tf.string)
    if settings["reads_words"]:
        endpoint("count", count, [text])
        if pairs:
            endpoint("read", read_after, [text, words])
        else:
            endpoint("read", read, [words])
    elif settings["answers"] == "text":
        endpoint("frame", frame, [text] * (1 + pairs))
        reading = head.reading(stage.under_head, scorer)
        settings["begin"] = reading.begin
        for name, signature in reading.signatures(head.generation.beams).items():
            endpoint(name, getattr(reading, name), signature)
    elif settings["answers"] == "choice":
        endpoint("score", score, [text, text])
    elif settings["embeds"]:
        endpoint("embed", embed, [text])
        endpoint("serve", serve_embedded, [text, text])
    elif most_regions:
        seen = [
            tf.TensorSpec([None, None, stage.network.region_dim], tf.float32),
            tf.TensorSpec([None, None, 4], tf.float32),
            tf.TensorSpec([None, None], tf.int32),
        ]
        signature = [*[text] * (1 + pairs), *seen]
        endpoint("serve", serve_seen, signature)
    elif entities is not None:
        named = tf.TensorSpec([None, None], tf.int32)
        signature = [*[text] * (1 + pairs), *[named] * (1 + pairs)]
        endpoint("place", place, [text])
        endpoint("serve", serve_named, signature)
    elif pairs:
        endpoint("serve", serve_pair, [text, text])
    else:
        endpoint("serve", serve, [text])
    signatures["serving_default"] = next(iter(signatures.values()))
    out.mkdir(parents=True, exist_ok=True)
    part = out / f".{SAVED_MODEL}.part"
    shutil.rmtree(part, ignore_errors=True)
    try:
        # Its functions are traced here. Nobody trains a served model, and the gradients of its own
        # that it would bring along keep every model that a process writes or loads, for good.
        without = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        with forgetting_gradients():
            tf.saved_model.save(saved, str(part), signatures, options=without)
    except tf.errors.OpError as error:
        # A full disk raises ResourceExhausted, too large a file OutOfRange, with long messages.
        raise OSError(errno.ENOSPC, f"TensorFlow: {type(error).__name__}") from error
    labels = json.dumps(list(stage.config["label_names"]), ensure_ascii=False)
    (out / LABELS).write_text(labels + "\n", "utf-8")
    (out / HEAD).write_text(json.dumps(settings, ensure_ascii=False) + "\n", "utf-8")
    if entities is not None:
        written = json.dumps(dict(entities), ensure_ascii=False, indent=0)
        (out / ENTITIES).write_text(written + "\n", "utf-8")
    shutil.rmtree(out / SAVED_MODEL, ignore_errors=True)
    os.replace(part, out / SAVED_MODEL)


def _saved(network: Any, scorer: Any, module: Any) -> Any:
    """The object that is saved, still without functions: the variables and tables they will read.

    `keras.export.ExportArchive` would trace every function twice and write every variable twice.
    """
    import tensorflow as tf
    from tensorflow.saved_model.experimental import TrackableResource

    saved: Any = tf.Module()
    saved.weights = [variable.value for part in (network, scorer) for variable in part.variables]
    saved.tables = [
        found
        for part in (network, scorer, module)
        for found in tf.train.TrackableView(part).descendants()
        if isinstance(found, TrackableResource)
    ]
    return saved


def framed(
    tokenizer: Tokenizer,
    first: Any,
    second: Any,
    sequence_length: int,
    marks: Sequence[Sequence[int]] = (),
    named: Sequence[Any] = (),
) -> dict[str, Any]:
    """Rows [CLS] text [SEP] (second text [SEP]): `models.inputs.rows.framed_rows` as a graph.

    Args:
        tokenizer: The tokenizer, for the ids of [CLS], [SEP] and [PAD].
        first: Token ids of the texts, (B, n) ragged int32.
        second: Token ids of the second texts, (B, m) ragged int32, or None.
        sequence_length: Largest length of a row.
        marks: As in `models.protocols.Context`.
        named: Of each text, the entity that is named from each token on, ragged int32 as its ids;
            empty for a network that reads none.

    Returns:
        token_ids, segment_ids, padding_mask (B, T) int32, and with entities entity_ids; T is the
        longest row of the call.
    """
    import tensorflow as tf

    rows = first.nrows()
    cls = tf.fill([rows, 1], tokenizer.cls_id)
    sep = tf.fill([rows, 1], tokenizer.sep_id)
    texts = [first] if second is None else [first, second]
    if second is None:
        room = tf.minimum(first.row_lengths(), sequence_length - 2)
        kept = [_window(first, room, marks)]
    else:
        rooms = _rooms(first, second, sequence_length - 3)
        kept = [_window(text, room, marks) for text, room in zip(texts, rooms, strict=True)]
    first, *more = _where(texts, kept)
    if not more:
        ids = tf.concat([cls, first, sep], axis=1)
        segments = tf.zeros_like(ids)
    else:
        (second,) = more
        start = tf.concat([cls, first, sep], axis=1)
        end = tf.concat([second, sep], axis=1)
        ids = tf.concat([start, end], axis=1)
        segments = tf.concat([tf.zeros_like(start), tf.ones_like(end)], axis=1)
    features = {
        keys.TOKEN_IDS: ids.to_tensor(tokenizer.pad_id),
        keys.SEGMENT_IDS: segments.to_tensor(0),
        keys.PADDING_MASK: tf.ones_like(ids).to_tensor(0),
    }
    if named:
        none = tf.zeros_like(cls)
        between = [part for own in _where(named, kept) for part in (own, none)]
        features[keys.ENTITY_IDS] = tf.concat([none, *between], axis=1).to_tensor(0)
    return features


def framed_words(
    tokenizer: Tokenizer, module: Any, before: Any, words: Any, length: int
) -> dict[str, Any]:
    """Windows [CLS] (text [SEP]) words [SEP], and where words lie: `Passages.segments` as a graph.

    Args:
        tokenizer: The tokenizer, for the ids of [CLS], [SEP] and [PAD].
        module: Its graph.
        before: (B,) texts before the words, or None; cut to half of the row.
        words: (B, W) strings, each with the blanks before it, "" after the last one of a window.
        length: Largest length of a row; only a word that is longer alone is cut.

    Returns:
        token_ids, segment_ids, padding_mask (B, T) and word_starts, word_ends, word_mask (B, W),
        int32.
    """
    import tensorflow as tf

    pieces = module(tf.reshape(words, [-1]))  # (B · W, n) ragged
    lengths = tf.reshape(pieces.row_lengths(), tf.shape(words))  # int64, as all row lengths
    ragged: Any = tf.RaggedTensor  # whose constructors the stubs do not know
    texts = ragged.from_row_lengths(pieces.values, tf.reduce_sum(lengths, axis=1))
    begin = tf.ones_like(lengths[:, :1])
    if before is None:
        features = framed(tokenizer, texts, None, length)
    else:
        first = module(before)
        first = first[:, : (length - 3) // 2]
        begin += 1 + first.row_lengths()[:, None]
        room = length - 3 - first.row_lengths()
        features = framed(
            tokenizer, first, _kept(texts, tf.minimum(texts.row_lengths(), room), ()), length
        )
    # A word that is longer than the row ends with it.
    end = tf.cast(tf.shape(features[keys.TOKEN_IDS])[1], tf.int64) - 2
    starts = tf.minimum(begin + tf.cumsum(lengths, axis=1, exclusive=True), end)
    ends = tf.minimum(begin + tf.cumsum(lengths, axis=1) - 1, end)
    there = lengths > 0
    return features | {
        keys.WORD_STARTS: tf.cast(tf.where(there, starts, 0), tf.int32),
        keys.WORD_ENDS: tf.cast(tf.where(there, ends, 0), tf.int32),
        keys.WORD_MASK: tf.cast(there, tf.int32),
    }


def _rooms(first: Any, second: Any, room: int) -> tuple[Any, Any]:
    """What pairs keep, (B,) each: the longer is cut, then both, an odd token from the second."""
    import tensorflow as tf

    a, b = first.row_lengths(), second.row_lengths()
    surplus = tf.maximum(a + b - room, 0)
    from_longer = tf.minimum(surplus, tf.abs(a - b))
    cut_first = tf.where(a > b, from_longer, 0) + (surplus - from_longer) // 2
    cut_second = surplus - cut_first
    return a - cut_first, b - cut_second


def _kept(rows: Any, room: Any, marks: Sequence[Sequence[int]]) -> Any:
    """Keep `room[i]` tokens of row i."""
    (kept,) = _where([rows], [_window(rows, room, marks)])
    return kept


def _where(texts: Sequence[Any], kept: Sequence[Any]) -> list[Any]:
    """What is kept of the rows of texts, as of the rows that `kept` was made for."""
    import tensorflow as tf

    return [
        tf.ragged.boolean_mask(rows, rows.with_values(own))
        for rows, own in zip(texts, kept, strict=True)
    ]


def _window(rows: Any, room: Any, marks: Sequence[Sequence[int]]) -> Any:
    """Which tokens are kept, `room[i]` of row i (none if negative): `inputs.rows.window_start`.

    Returns:
        (tokens of all rows,) bool.
    """
    import tensorflow as tf

    row = rows.value_rowids()
    place = tf.range(tf.size(row, out_type=tf.int64)) - tf.gather(rows.row_starts(), row)
    start = tf.zeros_like(room)
    if marks:
        lengths = rows.row_lengths()
        first, end = _reach(rows, row, place, marks)
        middle = tf.where(end - first > room, first, (first + end - room) // 2)
        start = tf.where(end <= room, start, tf.minimum(middle, lengths - room))
    return (place >= tf.gather(start, row)) & (place < tf.gather(start + room, row))


def _reach(rows: Any, row: Any, place: Any, marks: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    """(B,) start of the first marker in each row and end of the last one; 0 and 0 for none."""
    import tensorflow as tf

    values, count = rows.values, rows.nrows()
    lengths = tf.gather(rows.row_lengths(), row)
    none = tf.reduce_max(tf.concat([rows.row_lengths(), [0]], axis=0)) + 1
    first = tf.fill([count], none)
    end = tf.zeros([count], tf.int64)
    for mark in marks:
        padded = tf.pad(values, [[0, len(mark)]], constant_values=-1)
        here = place + len(mark) <= lengths
        for i, token in enumerate(mark):
            here &= padded[i : i + tf.size(values)] == token
        starts = tf.math.unsorted_segment_min(tf.where(here, place, none), row, count)
        ends = tf.math.unsorted_segment_max(tf.where(here, place + len(mark), 0), row, count)
        first, end = tf.minimum(first, starts), tf.maximum(end, ends)
    return tf.where(end > 0, first, 0), end


def load_text_model(
    folder: Path, linker: Callable[[Mapping[str, int]], Link] | None = None
) -> Callable[..., Any]:
    """Load a served model: a function from texts, or two lists of texts, to answers.

    With a head that chooses, the second list has the choices of each text. For rows with pictures,
    the last list has boxes and features of the regions of each.

    Args:
        folder: A folder that `export_text_model` wrote.
        linker: What names mean → how texts are linked; only for a model that reads entities.

    Returns:
        A function that returns what ``serve`` does, (B, N) float32; for a head that chooses or
        reads words, what the functions of `models.served` do.
    """
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  registers the tokenizer's operations

    # The closure keeps `loaded` alive, and with it the variables.
    loaded: Any = tf.saved_model.load(str(folder / SAVED_MODEL))
    head = json.loads((folder / HEAD).read_text("utf-8"))

    def values(*texts: Sequence[str]) -> np.ndarray:
        return loaded.serve(*(tf.constant(list(column), tf.string) for column in texts)).numpy()

    def values_seen(*columns: Any) -> np.ndarray:
        *texts, regions = columns
        return loaded.serve(*map(tf.constant, (*texts, *stacked(regions)))).numpy()

    def score(*columns: Sequence[str]) -> np.ndarray:
        return loaded.score(*map(tf.constant, columns)).numpy()

    def count(words: Any) -> np.ndarray:
        return loaded.count(tf.constant(words)).numpy()

    def read(*texts: Any) -> dict[str, np.ndarray]:
        found = loaded.read(*map(tf.constant, texts))
        return {name: value.numpy() for name, value in found.items()}

    if head["answers"] == "text":
        return lambda *columns: predict_texts(columns, loaded, head)
    if head["answers"] == "choice":
        return lambda *columns: predict_choices(list(zip(*columns, strict=True)), score)
    if head.get("most_regions"):
        return values_seen
    if head.get("reads_entities"):
        if linker is None:
            raise TypeError(f"{folder}: its network reads entities; give what links them")
        link = linker(json.loads((folder / ENTITIES).read_text("utf-8")))
        return lambda *columns: named_values(columns, loaded, link)
    if not head["reads_words"]:
        return values
    if head["pairs"]:
        return lambda *columns: predict_parts(list(zip(*columns, strict=True)), count, read, head)
    return lambda texts: predict_spans(texts, count, read, head)
