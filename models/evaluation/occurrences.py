"""The vectors of words where they stand in texts, from every layer of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fourstage.errors import ContractViolation
from models import features as keys
from models.evaluation.marked_words import Occurrence
from models.inputs.rows import framed
from models.keras_ops import ops
from models.layers.encoder_decoder import EncoderDecoder
from models.protocols import Context
from models.training.traced_model import TracedModel

BATCH_SIZE = 16  # with twelve layers of width 768 and rows of 512 tokens, 330 MB


class AllLayers(TracedModel):
    """What enters a network's first layer and what each layer gives, (B, L + 1, T, D) float32.

    A network without ``hidden_states`` has one layer here, its output.
    """

    def __init__(self, network: Any):
        super().__init__(name="all_layers", dtype="float32", autocast=False)
        self.network = network
        self.ready()

    @property
    def names(self) -> list[str]:
        """Names of the layers: 0 is what enters the first one; of one layer alone, ``output``."""
        if not hasattr(self.network, "hidden_states"):
            return ["output"]
        count = self.network.num_hidden_states
        if not isinstance(self.network, EncoderDecoder):
            return [str(number) for number in range(count)]
        inside = count - len(self.network.decoder_blocks) - 1
        names = [f"encoder {number}" for number in range(inside)]
        return names + [f"decoder {number}" for number in range(count - inside)]

    def call(self, features: dict, training: bool = False) -> Any:
        """Read as in prediction."""
        if hasattr(self.network, "hidden_states"):
            layers = self.network.hidden_states(features, training=False)
        else:
            layers = [self.network(features, training=False)[keys.SEQUENCE_OUTPUT]]
        return ops.stack([ops.cast(layer, "float32") for layer in layers], axis=1)

    def read(self, texts: Sequence[np.ndarray], context: Context) -> np.ndarray:
        """The vectors of at most `BATCH_SIZE` texts, (texts, L + 1, T, D).

        Args:
            texts: Token ids that fit into a row; the first one stands after [CLS].
            context: Tokenizer and sequence length.
        """
        # The last texts again fill up the batch, so that all have the same shape.
        full = [texts[min(row, len(texts) - 1)] for row in range(BATCH_SIZE)]
        batch = framed([(text,) for text in full], context)
        if self.predict_function is None:
            self.trace_for(batch, lengths_vary=True)
        return np.asarray(self.predict_on_batch(batch))[: len(texts)]


def occurrence_vectors(
    layers: AllLayers, occurrences: Sequence[Occurrence], context: Context
) -> np.ndarray:
    """Vectors of words, the mean of their tokens', (occurrences, L + 1, D) float32.

    A text that is too long is cut around the word.

    Raises:
        ContractViolation: A word has no tokens, or there are no words.
    """
    if not occurrences:
        raise ContractViolation("expected words in texts, got none")
    placed = places(occurrences, context)
    order = sorted(range(len(placed)), key=lambda i: len(placed[i][0]))
    found: list[Any] = [None] * len(placed)
    for first in range(0, len(order), BATCH_SIZE):
        some = order[first : first + BATCH_SIZE]
        states = layers.read([placed[i][0] for i in some], context)
        for row, i in enumerate(some):
            _, start, end = placed[i]
            found[i] = states[row, :, 1 + start : 1 + end].mean(axis=1)  # after [CLS]
    return np.stack(found)


def places(
    occurrences: Sequence[Occurrence], context: Context
) -> list[tuple[np.ndarray, int, int]]:
    """Token ids of each text, its word's first token, and the token after its last.

    The text before a word, the word and what follows are tokenised apart, so that a token is never
    half a word's. A unigram model may then read a word after a bracket as one after a blank.
    """
    parts: list[str] = []
    for each in occurrences:
        # A blank belongs to the word after it, as tokenizers have it that keep blanks.
        blank = len(each.text[: each.start].rstrip())
        parts += [each.text[:blank], each.text[blank : each.end], each.text[each.end :]]
    encoded = context.tokenizer.encode(parts)
    for number, part in enumerate(parts):
        amid = number % 3 and any(parts[number - number % 3 : number])
        if amid and not part[:1].isspace():
            encoded[number] = _without_blank(encoded[number], context.tokenizer)
    found = []
    for number in range(len(occurrences)):
        before, word, after = encoded[3 * number : 3 * number + 3]
        if not len(word):
            raise ContractViolation(
                f"word {number + 1} of {len(occurrences):,} has no tokens; it may be only of signs"
                " that the tokenizer leaves out"
            )
        room = context.sequence_length - 2
        ids = np.concatenate([before, word, after])
        start, end = len(before), min(len(before) + len(word), len(before) + room)
        cut = max(min((start + end - room) // 2, len(ids) - room), 0)
        found.append((ids[cut : cut + room], start - cut, end - cut))
    return found


def _without_blank(ids: np.ndarray, tokenizer: Any) -> np.ndarray:
    """Tokens without the blank that a unigram model writes in front of a text."""
    return ids if not len(ids) or tokenizer.decode(ids[:1]) else ids[1:]


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cosines of (…, D) vectors, (…) float64 to six places, so that equal vectors have 1."""
    product = (_unit(first) * _unit(second)).sum(axis=-1)
    return np.round(product, 6)


def _unit(vectors: np.ndarray) -> np.ndarray:
    vectors = vectors.astype(np.float64)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
