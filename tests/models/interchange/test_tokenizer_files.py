"""The tokenizer files that are written give our ids, in the Rust package that transformers runs."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer

from models.interchange.tokenizer_files import read_tokenizer, write_tokenizer
from tests.models.odd_lines import alphabet, lines


@pytest.mark.parametrize("lowercase", [True, False])
def test_ids_are_the_same_on_a_thousand_lines_of_each_language(lowercase, tmp_path):
    ours = alphabet(lowercase)
    write_tokenizer(ours, tmp_path, length=64, segments=True)
    theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    texts = lines()
    if not lowercase:  # ours puts a cased text into NFC, theirs leaves it
        texts = [text.replace("e\u0301", "é") for text in texts]
    assert len(texts) == 2000
    differing = [
        text
        for text, ids in zip(texts, ours.encode(texts), strict=True)
        if theirs.encode(text, add_special_tokens=False).ids != ids.tolist()
    ]
    assert differing == []
    again, _ = read_tokenizer(tmp_path)
    assert again is not None
    assert again.digest == ours.digest


def test_a_pair_is_framed_with_its_segments(tmp_path):
    ours = alphabet(True)
    for segments, expected in ((True, [0, 0, 0, 1, 1]), (False, [0, 0, 0, 0, 0])):
        write_tokenizer(ours, tmp_path, length=64, segments=segments)
        framed = Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode("the", "the")
        assert framed.ids == [ours.cls_id, *[ours._ids["the"], ours.sep_id] * 2]
        assert framed.type_ids == expected
