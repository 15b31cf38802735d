"""WordPiece: its vocabulary, its normalisation, its words; the rest is in `test_schemes`."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from fourstage.errors import ContractViolation
from models.served import named
from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece, learn
from tests.models.tokenizers.texts import CHINESE, ENGLISH


@pytest.fixture(scope="module", params=[True, False], ids=["lowercase", "cased"])
def tokenizer(request) -> WordPiece:
    vocabulary = learn((ENGLISH + CHINESE) * 3, vocabulary_size=900, lowercase=request.param)
    return WordPiece(vocabulary, lowercase=request.param)


def rust(tokenizer: WordPiece) -> Tokenizer:
    vocabulary = {piece: i for i, piece in enumerate(tokenizer.vocabulary)}
    reference = Tokenizer(
        models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    reference.normalizer = normalizers.BertNormalizer(lowercase=tokenizer.lowercase)  # type: ignore[assignment]
    reference.pre_tokenizer = pre_tokenizers.BertPreTokenizer()  # type: ignore[assignment]
    return reference


def test_every_character_gives_the_rust_ids_but_for_known_unicode_versions(tokenizer):
    """All letters, marks, digits, signs of the basic plane, in the middle of a word."""
    import unicodedata

    characters = [chr(c) for c in range(0x10000) if not 0xD800 <= c <= 0xDFFF]
    characters = [c for c in characters if unicodedata.category(c) != "Cn"]
    alphabet = sorted({d for c in characters for d in unicodedata.normalize("NFD", c.lower())})
    alphabet = [c for c in alphabet if unicodedata.category(c)[0] in "LNPSM"]
    vocabulary = [*SPECIAL_TOKENS, "a", "##b", "b", *(c for c in alphabet if c not in "ab")]
    vocabulary += [f"##{c}" for c in alphabet if c != "b"]
    if not tokenizer.lowercase:
        capitals = [c for c in characters if c.lower() != c]
        vocabulary += [piece for c in capitals for piece in (c, f"##{c}")]
    every = WordPiece(list(dict.fromkeys(vocabulary)), tokenizer.lowercase)
    texts = [unicodedata.normalize("NFC", f"a{c}b") for c in characters]
    reference = [encoding.ids for encoding in rust(every).encode_batch(texts)]
    different = [
        c
        for c, ours, theirs in zip(characters, every.encode(texts), reference, strict=True)
        if ours.tolist() != theirs
    ]
    # Rust's tables of punctuation and marks are of an older Unicode; nothing common is among them.
    assert len(different) < 120, [hex(ord(c)) for c in different]
    assert all(ord(c) > 0x3FF for c in different), [hex(ord(c)) for c in different[:20]]
    assert not [c for c in different if 0x2000 <= ord(c) <= 0x206F or 0x3000 <= ord(c) <= 0x9FFF]


def test_learned_vocabulary_begins_with_the_special_tokens_and_keeps_to_its_size():
    vocabulary = learn(ENGLISH * 5, vocabulary_size=150, lowercase=True)
    assert vocabulary[:5] == list(SPECIAL_TOKENS)
    assert len(vocabulary) == len(set(vocabulary)) == 150
    assert all(piece == piece.lower() for piece in vocabulary[5:])


def test_a_vocabulary_too_small_for_its_characters_is_refused():
    with pytest.raises(ContractViolation, match="vocabulary_size 6"):
        learn(["ab"], vocabulary_size=6, lowercase=True)
    with pytest.raises(ContractViolation, match="needs text"):
        learn(["  "], vocabulary_size=100, lowercase=True)


def test_each_chinese_character_is_a_unit_and_pieces_inside_words_are_not(tokenizer):
    (ids,) = tokenizer.encode(["花草树木 𠮷 believers"])
    pieces = [tokenizer.vocabulary[i] for i in ids]
    starts = tokenizer.unit_starts(ids)
    assert starts[:5].all()
    assert starts.tolist() == [not piece.startswith("##") for piece in pieces]


def test_decode_gives_the_words_back(tokenizer):
    text = "the unbelievable believers 今天天气"
    (ids,) = tokenizer.encode([text])
    assert (
        tokenizer.decode([tokenizer.cls_id, *ids, tokenizer.sep_id, 0, 0]) == f"[CLS] {text} [SEP]"
    )


def test_a_vocabulary_without_special_tokens_or_with_doubles_is_refused():
    with pytest.raises(ContractViolation, match="lacks"):
        WordPiece(["a", "b"], lowercase=True)
    with pytest.raises(ContractViolation, match="every piece must come once"):
        WordPiece([*SPECIAL_TOKENS, "a", "a"], lowercase=True)


def test_places_are_where_the_pieces_stand_in_the_normalised_text():
    vocabulary = [*SPECIAL_TOKENS, "un", "##believ", "##able", "news", ".", *"我爱北京"]
    tokenizer = WordPiece(vocabulary, lowercase=True)
    texts = ["Unbelievable  néws. Zzz 我爱北😀京\t", "", "我"]
    placed = tokenizer.encode_with_places(texts)
    assert [ids.tolist() for _, ids, _, _ in placed] == [
        i.tolist() for i in tokenizer.encode(texts)
    ]
    text, _, starts, ends = placed[0]
    assert [text[a:b] for a, b in zip(starts, ends, strict=True)] == [
        *("un", "believ", "able", "news", ".", "zzz", "我", "爱", "北", "😀", "京")
    ]
    assert placed[1][0] == ""
    # The graph says the same.
    in_graph = named.placed(tokenizer.module().placed(np.array([t.encode() for t in texts])))
    for (text, ids, starts, ends), (there, basic, *places) in zip(placed, in_graph, strict=True):
        assert there == text
        assert basic.tolist() == tokenizer.unit_starts(ids).tolist()
        assert [each.tolist() for each in places] == [starts.tolist(), ends.tolist()]


@pytest.mark.parametrize("letter", ["a", "é", "я", "ก", "𐐨"])  # 1, 2, 2, 3 and 4 bytes
def test_a_word_is_unknown_from_101_characters_on_as_in_rust(letter):
    vocabulary = [*SPECIAL_TOKENS, letter, f"##{letter}", f"##{letter * 3}", "x", "."]
    tokenizer = WordPiece(vocabulary, lowercase=False)
    words = [letter * number for number in (33, 34, 50, 99, 100, 101, 102, 500)]
    texts = [*words, " ".join(["x", *words, "x"]), ".".join(words), "x" + letter * 100, "", "x"]
    expected = [encoding.ids for encoding in rust(tokenizer).encode_batch(texts)]
    assert [tokenizer.unknown_id in ids for ids in expected[:8]] == [False] * 5 + [True] * 3
    assert [ids.tolist() for ids in tokenizer.encode(texts)] == expected
    raw = np.array([text.encode() for text in texts])
    assert tokenizer.module()(raw).to_list() == expected
    placed = tokenizer.encode_with_places(texts)
    assert [ids.tolist() for _, ids, _, _ in placed] == expected
    text, ids, starts, ends = placed[len(words)]
    unknown = ids == tokenizer.unknown_id
    assert [text[a:b] for a, b in zip(starts[unknown], ends[unknown], strict=True)] == words[5:]
    in_graph = named.placed(tokenizer.module().placed(raw))
    assert [each[2].tolist() for each in in_graph] == [each[2].tolist() for each in placed]
    assert [each[3].tolist() for each in in_graph] == [each[3].tolist() for each in placed]


def test_with_case_every_character_stands_where_it_stands_without(tokenizer):
    # Every character there is, sixteen in a text, İ and title-case letters among them.
    codes = [code for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    texts = ["A".join(map(chr, codes[i : i + 16])) for i in range(0, len(codes), 16)]
    for chunk in range(0, len(texts), 10_000):
        some = texts[chunk : chunk + 10_000]
        normal = [text for text, *_ in tokenizer.encode_with_places(some)]
        for cased, text in zip(tokenizer.with_case(some), normal, strict=True):
            assert len(cased) == len(text)
            if cased != text:
                assert tokenizer.lowercase
                differ = [(a, b) for a, b in zip(cased, text, strict=True) if a != b]
                assert all(not a.islower() and not b.isupper() for a, b in differ)
    (cased,) = tokenizer.with_case(["Éin \u0130\u01c5 NEW"])
    assert cased == ("Ein I\u01c5 NEW" if tokenizer.lowercase else "Éin \u0130\u01c5 NEW")


def marked(lowercase: bool = True) -> WordPiece:
    pieces = ["[", "]", "h", "##d", "osl", "##o", "d"]
    return WordPiece([*SPECIAL_TOKENS, *pieces, "[HD]", "[TL]"], lowercase, ["[HD]", "[TL]"])


def test_a_mark_is_one_token_wherever_a_text_has_it(tmp_path):
    tokenizer = marked()
    texts = ["[HD] Oslo [HD] d", "oslo[TL]d", "[hd]", "[CLS]", "\ue000 d", "[HD][TL]"]
    words = [[tokenizer.vocabulary[i] for i in ids] for ids in tokenizer.encode(texts)]
    assert words[:3] == [
        ["[HD]", "osl", "##o", "[HD]", "d"],
        ["osl", "##o", "[TL]", "d"],
        ["[", "h", "##d", "]"],  # another case is no mark
    ]
    assert "[CLS]" not in words[3]
    assert words[4:] == [["d"], ["[HD]", "[TL]"]]
    assert {*tokenizer.special_ids[-2:]} == {12, 13}
    assert tokenizer.decode([12, 9, 10, 12]) == "[HD] oslo [HD]"
    in_graph = tokenizer.module()(np.array([text.encode() for text in texts])).to_list()
    assert in_graph == [ids.tolist() for ids in tokenizer.encode(texts)]
    tokenizer.save(tmp_path)
    again = WordPiece.load(tmp_path)
    assert (again.marks, again.digest) == (tokenizer.marks, tokenizer.digest)
    assert WordPiece(tokenizer.vocabulary, lowercase=True).digest != tokenizer.digest


def test_words_beside_a_mark_stand_where_they_are_in_the_normalised_text():
    tokenizer = marked()
    ((text, _, starts, ends),) = tokenizer.encode_with_places(["[HD] \u00d3slo[TL]"])
    assert [text[a:b] for a, b in zip(starts, ends, strict=True)] == [
        "\ue000",
        "osl",
        "o",
        "\ue001",
    ]
    (written,) = tokenizer.with_case(["[HD] \u00d3slo[TL]"])
    assert (len(written), "Oslo" in written) == (len(text), True)


def test_no_vocabulary_is_learned_from_marks():
    texts = [f"[HD] {text} [HD]" for text in ENGLISH * 3]
    made = WordPiece.learned(texts, vocabulary_size=300, lowercase=True, marks=["[HD]", "[TL]"])
    plain = WordPiece.learned(ENGLISH * 3, vocabulary_size=298, lowercase=True)
    assert made.vocabulary == (*plain.vocabulary, "[HD]", "[TL]")
    with pytest.raises(ContractViolation, match=r"lacks \[HD\]"):
        WordPiece(plain.vocabulary, lowercase=True, marks=["[HD]"])
