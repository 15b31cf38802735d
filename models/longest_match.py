"""Chinese words by longest match: at each place the longest known word (forward maximum matching).

    text → runs of CJK characters, and all between them
         → of each run the longest known word that begins it, then of what is left of it, and so on;
           a character that begins no known word is one unknown token
         → between the runs, tokens as before

WordPiece's table does the matching: a word may begin a run or go on with it (``##``), and has the
same id in both places.

Reference: Song et al. 2021, arXiv 2012.15524, section 3 (longest match in linear time).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.served.pieces import CJK, CONTINUATION, is_cjk

_RUN = f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in CJK)}]+"  # RE2
_LONGEST_RUN = 2**31 - 1  # in bytes: a run has any length


def longest_match(vocabulary: Sequence[str], unknown_id: int, rest: Any) -> Any:
    """A ``tf.Module`` that finds tokens in normalised texts.

    Args:
        vocabulary: Tokens ordered by id. Those of CJK characters alone are the words of runs.
        unknown_id: Id of a character that begins no known word.
        rest: Finds the tokens between the runs; has ``tokenize_with_offsets``.

    Returns:
        It has ``tokenize((B,) string) -> RaggedTensor (B, n) int32``, the ids, and
        ``tokenize_with_offsets``, which also gives starts and ends, (B, n) int64 each, in bytes.
    """
    import tensorflow as tf
    import tensorflow_text as tf_text

    ids = {word: i for i, word in enumerate(vocabulary) if all(map(is_cjk, word))}
    # Each character is an entry, so that no place of a run is without one.
    characters = (chr(code) for first, last in CJK for code in range(first, last + 1))
    entries = dict.fromkeys(characters, unknown_id) | ids
    id_of = np.array([*entries.values()] * 2, np.int32)

    class LongestMatch(tf.Module):
        def __init__(self):
            super().__init__()
            self.rest = rest
            self.words = tf_text.FastWordpieceTokenizer(
                vocab=[*entries, *(CONTINUATION + word for word in entries)],
                unknown_token=next(iter(entries)),  # one must be named; no run needs it
                token_out_type=tf.int32,  # pyright: ignore[reportArgumentType]
                max_bytes_per_word=_LONGEST_RUN,
                no_pretokenization=True,
            )

        def tokenize(self, texts: Any) -> Any:
            return self.tokenize_with_offsets(texts)[0]

        def tokenize_with_offsets(self, texts: Any) -> Any:
            parts, begin, _ = tf_text.regex_split_with_offsets(texts, _RUN, _RUN)
            is_run = tf.strings.regex_full_match(parts.values, _RUN)
            runs, others = tf.where(is_run)[:, 0], tf.where(~is_run)[:, 0]
            entry, *inner = self.words.tokenize_with_offsets(tf.gather(parts.values, runs))
            matched: tuple[Any, ...] = (tf.ragged.map_flat_values(tf.gather, id_of, entry), *inner)
            between = self.rest.tokenize_with_offsets(tf.gather(parts.values, others))
            # Back into the order of the text.
            order = tf.math.invert_permutation(tf.concat([runs, others], 0))
            found, starts, ends = (
                tf.gather(tf.concat(each, 0), order) for each in zip(matched, between, strict=True)
            )
            place = tf.gather(begin.values, found.value_rowids())
            return tuple(
                parts.with_values(found.with_values(values)).merge_dims(1, 2)
                for values in (found.values, starts.values + place, ends.values + place)
            )

    return LongestMatch()
