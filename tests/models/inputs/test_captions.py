"""Captions as documents: several texts of one row."""

from __future__ import annotations

import numpy as np

from models import features as keys
from models.inputs.captions import Captions
from models.tokenizers.byte_bpe import ALPHABET, SPECIAL_TOKENS, ByteBPE
from tests.models.memory_corpus import MemoryRows


def test_the_first_word_of_each_text_begins_a_word():
    tokenizer = ByteBPE([*SPECIAL_TOKENS[:-1], *ALPHABET, SPECIAL_TOKENS[-1]], [])
    texts = [[tokenizer.vocabulary.index(sign) for sign in text] for text in ("abĠc", "def")]
    captions = Captions(MemoryRows([(*texts, "")]), tokenizer)
    ids, lengths, starts = captions.document(0)
    assert ids.tolist() == [*texts[0], *texts[1]]
    assert lengths.tolist() == [4, 3]
    assert np.flatnonzero(starts).tolist() == [0, 2, 4]
    assert set(starts.tolist()) == {0, keys.WORD}
