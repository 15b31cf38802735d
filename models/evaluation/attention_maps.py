"""What tokens attend to, for people to look at: every head of a Transformer, or an alignment.

    encoders, causal networks       self-attention of each layer and head
    encoder–decoders                that of the encoder and of the decoder, and from the target to
                                    the text
    recurrent encoder–decoders      the alignment of the target with the text

An encoder–decoder with a head that writes reads its own translation of a text; another one reads
the text again (`models.layers.encoder_decoder`).

Reference:
    Bahdanau et al. 2015, arXiv 1409.0473, 5.2.1 and figure 3 (alignment); Clark et al. 2019, arXiv
    1906.04341, figures 1 and 2 (heads).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np

from fourstage.errors import RecipeError
from models import features as keys
from models.decoding.writer import Writer
from models.inputs.display import spelled
from models.inputs.rows import framed_texts, text_index
from models.layers.attention_weights import alignment_weights, watched_attention
from models.layers.encoder_decoder import EncoderDecoder, target_of
from models.layers.recurrent_decoder import RecurrentDecoder
from models.protocols import Batch, Capability, Context, Tokenizer
from models.training.trained_stage import TrainedStage

MOST_TOKENS = 64  # of a text and of a target; more can't be told apart in a picture
WRITING = "sequence_to_sequence"
SELF, ENCODER, DECODER = "self-attention", "encoder self-attention", "decoder self-attention"
CROSS, ALIGNMENT = "cross-attention", "alignment"


@dataclass(frozen=True)
class AttentionMap:
    """What one layer attends to in a text.

    Attributes:
        kind: ``self-attention``, ``encoder self-attention``, ``decoder self-attention``,
            ``cross-attention`` or ``alignment``.
        layer: Its number, from 1.
        asking: The T tokens that attend: as they are read, or, from a target to a text, as they
            are written there.
        seen: The S tokens that are attended to.
        weights: (H, T, S) float32; each row sums to 1, and what is hidden has 0.
    """

    kind: str
    layer: int
    asking: list[str]
    seen: list[str]
    weights: np.ndarray


@dataclass(frozen=True)
class MappedText:
    """A text with what its tokens attend to.

    Attributes:
        id: The row's id; a sentence's number, from 1.
        tokens: Tokens that are read of it.
        left_out: Its tokens beyond `MOST_TOKENS`, or beyond the stage's length.
        maps: By kind and layer.
    """

    id: str
    tokens: int
    left_out: int
    maps: list[AttentionMap]


class Sentences:
    """Texts as rows without answers: of `models.protocols.TokenisedRows` what is read here.

    Args:
        ids: (rows,).
        texts: (rows,) token ids of one text, or of two.
    """

    def __init__(self, ids: Sequence[str], texts: Sequence[tuple[np.ndarray, ...]]):
        self.ids, self._texts = list(ids), list(texts)
        self.answers = [""] * len(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    def texts(self, i: int) -> tuple[np.ndarray, ...]:
        """Token ids of row `i`."""
        return self._texts[i]


def sentences(texts: Sequence[str], tokenizer: Tokenizer) -> Sentences:
    """Texts as rows numbered from 1; of one with a tab, what follows it is the second text."""
    parts = [tuple(tokenizer.encode(text.split("\t", 1))) for text in texts]
    return Sentences([str(number) for number in range(1, len(texts) + 1)], parts)


def attention_maps(
    stage: TrainedStage,
    rows: Sentences,
    layers: Collection[int] = (),
    folders: Sequence[Path] = (),
) -> Iterator[MappedText]:
    """What a finished stage attends to in texts, each read by itself, as in prediction.

    Args:
        stage: The stage, loaded in float32.
        rows: The texts.
        layers: Numbers of the layers, from 1; all where empty.
        folders: Project folders, searched first.

    Raises:
        RecipeError: The network has no attention that is known here.
    """
    reader = _AttentionReader(stage, folders)
    for number, name in enumerate(rows.ids):
        batch, left_out = reader.batch(Sentences([name], [rows.texts(number)]))
        maps = [each for each in reader.maps(batch) if not layers or each.layer in layers]
        yield MappedText(name, int(batch[keys.PADDING_MASK].sum()), left_out, maps)


class _AttentionReader:
    """A loaded stage that reads one text at a time.

    Args:
        stage: The stage.
        folders: Project folders, searched first.
    """

    def __init__(self, stage: TrainedStage, folders: Sequence[Path]):
        self._network, self._tokenizer = stage.network, stage.context.tokenizer
        apart = Capability.ENCODER_DECODER in stage.network.provides
        settings = (stage.config["head"] or {}).get(WRITING) if apart else None
        room = MOST_TOKENS + (
            settings["target_length"] if settings else 0
        )  # the head keeps it free
        length = min(stage.context.sequence_length, room)
        self._context: Context = replace(stage.context, sequence_length=length)
        self._told: Any = None  # of the tokens that two texts share, as the stage's head says it
        for name, own in (stage.config["head"] or {}).items():
            if own.get("shared_tokens"):
                head = stage.objective(name, folders)
                self._told = stage.scorer(name, head).shared_tokens
        self._head: Any = None
        if settings:
            self._head = replace(stage, context=self._context).objective(WRITING, folders)
            scorer = stage.scorer(WRITING, self._head)
            self._begin: tuple[int, ...] = scorer.begin
            self._write: Writer = self._head.predicting(stage.network, scorer)

    def batch(self, row: Sentences) -> tuple[Batch, int]:
        """A text as it is read, with what is written for it, and the tokens that are left out."""
        rng = np.random.default_rng(0)  # on which nothing depends
        if self._head is None:
            batch = framed_texts([row.texts(0)], self._context)
            whole = text_index([row.texts(0)], self._context.sequence_length).details["longest_row"]
        else:
            batch = self._head.segments(row, np.zeros(1, np.int64), rng)
            whole = self._head.index(row, rng).details["longest_row"]
            batch = {k: v for k, v in batch.items() if k not in self._head.targets}
            written = self._write(batch)[keys.WRITTEN_IDS][0]
            batch |= self._target([int(token) for token in written if token >= 0])
        return batch, int(whole) - int(batch[keys.PADDING_MASK].sum())

    def _target(self, written: list[int]) -> Batch:
        """What the decoder reads while it writes a text, and what it writes there."""
        ended = len(written) < self._head.target_length
        says = [*self._begin[1:], *written, *([self._tokenizer.sep_id] if ended else [])]
        says = says[:MOST_TOKENS]
        reads = [*self._begin, *written][: len(says)]
        return {
            keys.TARGET_IDS: np.array([reads], np.int32),
            keys.TARGET_MASK: np.ones((1, len(reads)), np.int32),
            keys.TARGET_LABELS: np.array([says], np.int32),
        }

    def maps(self, batch: Batch) -> Iterator[AttentionMap]:
        """What is attended to in a text, by kind and layer."""
        read = self._spelled(batch[keys.TOKEN_IDS], batch[keys.PADDING_MASK])
        if Capability.ENCODER_DECODER in self._network.provides:
            ids, mask = target_of(batch)
            target = self._spelled(ids, mask)
            # Where it reads the text again, each token is to be the text's own at its place.
            says = self._spelled(batch.get(keys.TARGET_LABELS, batch[keys.TOKEN_IDS]), mask)
        else:
            target = says = read
        if isinstance(getattr(self._network, "decoder", None), RecurrentDecoder):
            weights = self._aligned(batch)
            yield AttentionMap(ALIGNMENT, 1, says, read, weights[None, : len(says), : len(read)])
            return
        axes = {
            SELF: (read, read),
            ENCODER: (read, read),
            DECODER: (target, target),
            CROSS: (says, read),
        }
        layer = dict.fromkeys(axes, 0)
        kind_of = _kinds(self._network)
        if self._told is not None:
            batch = {**batch, keys.ADDED_VECTORS: self._told(batch)}
        with watched_attention(self._network) as found:
            self._network(batch, training=False)
        if not found:
            raise RecipeError(
                f"attention: the network {self._network.name!r} has no MultiHeadAttention"
                " (models.layers.attention), whose weights could be drawn"
            )
        for each, weights in found:
            kind = kind_of.get(id(each), SELF)
            layer[kind] += 1
            asking, seen = axes[kind]
            own = np.asarray(keras.ops.convert_to_numpy(weights), np.float32)[0]
            own = own[:, : len(asking), : len(seen)]
            yield AttentionMap(kind, layer[kind], asking, seen, own)

    def _aligned(self, batch: Batch) -> np.ndarray:
        """The alignment of the target with the text, (N, T)."""
        ids, _ = target_of(batch)
        memory = self._network.memorised(batch)
        states = keras.ops.stack(memory.states)
        _, after = self._network.go_on({**batch, keys.TARGET_IDS: ids}, states, memory)
        decoder, mask = self._network.decoder, batch[keys.PADDING_MASK]
        weights = alignment_weights(decoder, after, memory, mask)
        return np.asarray(keras.ops.convert_to_numpy(weights), np.float32)

    def _spelled(self, token_ids: Any, mask: Any) -> list[str]:
        """The tokens of the one row that are no padding; padding is on the right."""
        there = np.asarray(token_ids)[0][np.asarray(mask)[0] > 0]
        return [spelled(self._tokenizer, int(token)) for token in there]


def _kinds(network: Any) -> dict[int, str]:
    """What each attention of an encoder–decoder is, by the layer's identity."""
    if not isinstance(network, EncoderDecoder):
        return {}
    found = {id(block.attention): ENCODER for block in network.blocks}
    for block in network.decoder_blocks:
        found |= {id(block.attention): DECODER, id(block.cross_attention): CROSS}
    return found
