"""Words as characters: each token is read as its word so far, or as what is left of its word.

    tokens        [CLS]    he    plays    play   ##ing    [SEP]
    forwards      begin    he    plays    play   playing  end
    backwards     begin    he    plays    playing   ing   end

Characters are the bytes of UTF-8. A word stands between two more signs, where it begins and where
it ends, and is filled up to `max_characters`. A token that goes on with a word is read forwards
with what came before it in the word, and backwards with what comes after it: so neither direction
sees a token that it predicts, and both see a word as a whole where they leave it.

Reference:
    Peters et al. 2018, arXiv 1802.05365, 3.4; the ids are those of allennlp.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models.keras_ops import ops
from models.protocols import Tokenizer
from models.served.pieces import CONTINUATION

# 0 is padding of a row, 1 to 256 are bytes.
TEXT_BEGIN, TEXT_END, WORD_BEGIN, WORD_END, FILL = 257, 258, 259, 260, 261
NUM_CHARACTERS = 262


def spelling(tokenizer: Tokenizer, width: int) -> np.ndarray:
    """The characters of each token, (V, width) int32, 0 behind the last one.

    A token that begins a word has `WORD_BEGIN` first. [CLS] and [SEP] have a sign of their own;
    other special tokens are spelled by name. Where tokens are bytes, words begin at blanks.

    Args:
        tokenizer: The recipe's tokenizer.
        width: Most characters of a token, from 2; of a longer one, the first are kept.
    """
    served = tokenizer.served()
    table = np.zeros((tokenizer.vocabulary_size, width), np.int32)
    for number, piece in enumerate(served["pieces"]):
        if served["bytes"]:
            data = piece.encode("latin-1")
            begins, data = data[:1].isspace(), data.lstrip()
        else:
            begins, data = (
                not piece.startswith(CONTINUATION),
                piece.removeprefix(CONTINUATION).encode(),
            )
        ids = [*[WORD_BEGIN] * begins, *(byte + 1 for byte in data)][:width]
        table[number, : len(ids)] = ids
    for number, sign in ((tokenizer.cls_id, TEXT_BEGIN), (tokenizer.sep_id, TEXT_END)):
        table[number] = 0
        table[number, :2] = WORD_BEGIN, sign
    return table


def read_words(spelled: Any, mask: Any = None) -> tuple[Any, Any]:
    """What each token is read as, forwards and backwards.

    Of a word that is too long, the characters next to the token are kept.

    Args:
        spelled: (B, T, C) int32, rows of `spelling`.
        mask: (B, T), 1 = token, 0 = padding; None for no padding.

    Returns:
        Two (B, T, C + 1) int32; 0 at the padding.
    """
    if mask is None:
        mask = ops.ones_like(spelled[:, :, 0])
    mask = ops.cast(mask, "int32")
    spelled = spelled * mask[..., None]
    rows, tokens, width = ops.shape(spelled)[0], ops.shape(spelled)[1], spelled.shape[2]
    lengths = ops.sum(ops.cast(spelled > 0, "int32"), axis=-1)
    ends = ops.cumsum(lengths, axis=1)
    begins = ends - lengths
    # A word begins where its first sign is, and behind a sign of the text.
    signs = ops.cast((spelled[:, :, 1] == TEXT_BEGIN) | (spelled[:, :, 1] == TEXT_END), "int32")
    behind = ops.pad(signs, ((0, 0), (1, 0)))[:, :-1] > 0
    word = ops.cumsum(ops.cast((spelled[:, :, 0] == WORD_BEGIN) | behind, "int32"), axis=1)
    before = ops.cast(word[:, None] < word[..., None], "int32")  # (B, T, T), words before a token's
    upto = ops.cast(word[:, None] <= word[..., None], "int32")
    word_begins = ops.sum(before * lengths[:, None], axis=-1)
    word_ends = ops.sum(upto * lengths[:, None], axis=-1)
    # All characters of a row one after another.
    places = begins[..., None] + ops.arange(width, dtype="int32")
    places = places + (ops.arange(rows, dtype="int32") * tokens * width)[:, None, None]
    stream = ops.scatter(
        ops.reshape(places, (-1, 1)), ops.reshape(spelled, (-1,)), (rows * tokens * width,)
    )
    stream = ops.reshape(stream, (rows, tokens * width))
    forward = (ops.maximum(word_begins, ends - width), ends)
    backward = (begins, ops.minimum(word_ends, begins + width))
    seen = mask[..., None]
    return (
        _framed(stream, *forward, width + 1) * seen,
        _framed(stream, *backward, width + 1) * seen,
    )


def _framed(stream: Any, first: Any, last: Any, width: int) -> Any:
    """The characters from `first` until `last`, `WORD_END`, then `FILL`: (B, T, width) int32."""
    place = ops.arange(width, dtype="int32")
    count = (last - first)[..., None]
    at = ops.minimum(first[..., None] + place, ops.shape(stream)[1] - 1)
    flat = ops.reshape(at, (ops.shape(stream)[0], -1))
    found = ops.reshape(ops.take_along_axis(stream, flat, axis=1), ops.shape(at))
    return ops.where(place < count, found, ops.where(place == count, WORD_END, FILL))
