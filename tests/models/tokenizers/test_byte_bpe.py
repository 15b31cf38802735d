"""Byte-level BPE: a spelling worked out by hand, no text lost, GPT-2's words, units of bytes."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from corpora.cleaning import clean
from fourstage.errors import ContractViolation
from models.tokenizers.byte_bpe import ALPHABET, SPECIAL_TOKENS, ByteBPE, learn
from tests.models.tokenizers.texts import CHINESE, ENGLISH

# Sennrich et al. 2016, section 3.2: "low lower newest widest"; Ġ is the blank before a word.
MERGES = [("e", "s"), ("es", "t"), ("l", "o"), ("lo", "w"), ("Ġ", "low"), ("n", "e"), ("ne", "w")]
TEXT = st.text(st.characters(exclude_categories=("Cs", "Cn")))


def by_hand(merges: list[tuple[str, str]], *more: str) -> ByteBPE:
    joined = ["".join(pair) for pair in merges]
    return ByteBPE([*SPECIAL_TOKENS[:-1], *ALPHABET, *joined, *more, SPECIAL_TOKENS[-1]], merges)


@pytest.fixture(scope="module")
def tokenizer() -> ByteBPE:
    return learn((ENGLISH + CHINESE) * 3, vocabulary_size=900)


def rust(tokenizer: ByteBPE) -> Tokenizer:
    ids = {piece: i for i, piece in enumerate(tokenizer.vocabulary)}
    reference = Tokenizer(models.BPE(ids, list(tokenizer.merges)))
    reference.normalizer = normalizers.NFC()  # type: ignore[assignment]
    reference.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    return reference


def pieces(tokenizer: ByteBPE, text: str) -> list[str]:
    return [tokenizer.vocabulary[i] for i in tokenizer.encode([text])[0]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("low lower", ["low", "Ġlow", "e", "r"]),
        # "ne" is learned after "es", so "newest" is n-e-w-est until then.
        ("newest", ["new", "est"]),
        ("nest", ["n", "est"]),
        # Of "l o w" the pair learned first joins first, whatever stands before it.
        (" slow", ["Ġ", "s", "low"]),
        # The last of several blanks is the word's own; at the end they stay together.
        ("  low\n\nlow  ", ["Ġ", "Ġlow", "Ċ", "Ċ", "low", "Ġ", "Ġ"]),
        # A merge never crosses from letters to digits and signs.
        ("es1t", ["es", "1", "t"]),
        # é is C3 A9; é from e and an accent is the same after NFC.
        ("é e\u0301", ["Ã", "©", "Ġ", "Ã", "©"]),
    ],
)
def test_a_text_is_spelled_as_by_hand(text, expected):
    assert pieces(by_hand(MERGES), text) == expected


def test_merges_are_learned_by_frequency_then_by_the_order_of_bytes():
    # Twice "ab", twice "cd": "ab" comes first, for "a" has the smaller id. Then "abx" by frequency.
    learned = learn(["abx abx", "cd cd"], vocabulary_size=400)
    first = [learned.merges.index(pair) for pair in (("a", "b"), ("c", "d"))]
    assert first == sorted(first)
    assert learned.vocabulary[:4] == SPECIAL_TOKENS[:-1]
    assert learned.vocabulary[-1] == SPECIAL_TOKENS[-1]
    assert [learned.cls_id, learned.pad_id, learned.sep_id, learned.unknown_id] == [0, 1, 2, 3]
    assert learned.mask_id == learned.vocabulary_size - 1


def test_a_vocabulary_keeps_to_its_size(tokenizer):
    assert learn(ENGLISH * 5, vocabulary_size=300).vocabulary_size == 300
    assert learn(ENGLISH, vocabulary_size=261).merges == ()
    assert tokenizer.vocabulary_size < 900, "a small text gives fewer"


def test_a_special_name_in_the_learned_text_gives_no_piece():
    learned = learn(["<s>strike</s> <mask>ed <pad>"] * 50, vocabulary_size=400)
    assert learned.special_ids == (0, 1, 2, 3, learned.mask_id)
    assert not set(learned.special_ids) & set(learned.encode(["<s>strike</s> <mask><pad>"])[0])


@given(TEXT)
def test_decoding_gives_a_clean_text_back(tokenizer, text):
    text = clean(text).text
    assert tokenizer.decode(tokenizer.encode([text])[0]) == text


@given(TEXT | st.text("abelost wn'\n\u00a01é", max_size=30))
def test_any_text_has_the_ids_of_the_rust_tokenizer(tokenizer, text):
    text = unicodedata.normalize("NFC", text)
    for each in (tokenizer, by_hand(MERGES)):
        assert each.encode([text])[0].tolist() == rust(each).encode(text).ids


def test_every_character_is_cut_as_rust_does_but_for_known_unicode_versions():
    """All of the basic plane behind a letter, a sign, a digit and blanks.

    Every character's first byte joins with each of them, so that a border shows.
    """
    characters = [chr(c) for c in range(0x10000) if not 0xD800 <= c <= 0xDFFF]
    characters = [c for c in characters if unicodedata.category(c) != "Cn"]
    heads = [byte for byte in range(0xF0) if byte & 0xC0 != 0x80]
    merges = [(before, ALPHABET[byte]) for before in ("a", "!", "1", "Ġ") for byte in heads]
    ours = by_hand(merges)
    texts = [f"a{c} !{c} 1{c} {c}a  {c}{c}! \n{c} " for c in characters]
    texts = [unicodedata.normalize("NFC", text) for text in texts]
    expected = [encoding.ids for encoding in rust(ours).encode_batch(texts)]
    different = [
        c
        for c, ids, theirs in zip(characters, ours.encode(texts), expected, strict=True)
        if ids.tolist() != theirs
    ]
    assert len(different) < 40, [hex(ord(c)) for c in different]
    of_old = [c for c in different if unicodedata.ucd_3_2_0.category(c) != "Cn"]
    assert of_old == [], "characters that every table of Unicode has"


def test_a_long_word_takes_no_long_time(tokenizer):
    word = "ab" * 200_000
    assert tokenizer.decode(tokenizer.encode([word])[0]) == word


def test_entries_that_no_merge_gives_are_special():
    published = by_hand(MERGES, "<|endoftext|>", "madeupword0000")
    names = [published.vocabulary[i] for i in published.special_ids]
    assert names == [*SPECIAL_TOKENS[:-1], "<|endoftext|>", "madeupword0000", "<mask>"]
    text = "<|endoftext|> madeupword0000"
    assert not set(published.special_ids) & set(published.encode([text])[0])
    assert published.decode(published.encode([text])[0]) == text


def test_padding_is_not_decoded_and_a_torn_character_is_marked(tokenizer):
    (ids,) = tokenizer.encode(["low"])
    framed = [tokenizer.cls_id, *ids, tokenizer.sep_id, tokenizer.pad_id]
    assert tokenizer.decode(framed) == "<s>low</s>"
    assert by_hand([]).decode(by_hand([]).encode(["é"])[0][:1]) == "\ufffd"


@pytest.mark.parametrize(
    ("merges", "said"),
    [
        ([("e", "s"), ("e", "s")], "merge 2"),
        ([("es", "t"), ("e", "s")], "merge 1"),
        ([("e", "s"), ("x", "yz")], "merge 2"),
    ],
)
def test_merges_that_cannot_have_been_learned_are_refused(merges, said):
    with pytest.raises(ContractViolation, match=said):
        ByteBPE(by_hand([("e", "s"), ("es", "t")]).vocabulary, merges)


def test_a_vocabulary_without_bytes_or_with_doubles_is_refused():
    whole = by_hand([]).vocabulary
    with pytest.raises(ContractViolation, match="lacks 1 of the special tokens and bytes: Ġ"):
        ByteBPE([piece for piece in whole if piece != "Ġ"], [])
    with pytest.raises(ContractViolation, match="every piece must come once"):
        ByteBPE([*whole, "a"], [])
    with pytest.raises(ContractViolation, match="gives ab, which is no piece"):
        ByteBPE(whole, [("a", "b")])


def units(tokenizer: ByteBPE, text: str) -> list[str]:
    """The stretches of text between unit starts, by the places of the pieces."""
    ((text, ids, starts, _),) = tokenizer.encode_with_places([text])
    begins = [int(a) for a, new in zip(starts, tokenizer.unit_starts(ids), strict=True) if new]
    return [text[a:b].strip() for a, b in zip(begins, [*begins[1:], None], strict=True)]


@pytest.mark.parametrize("merges", [[], MERGES])
def test_words_digits_signs_and_chinese_characters_are_units(merges):
    made = by_hand(merges)
    text = "The lowest low-land, isn't 12e  是我的书。 naïve Ёлка!?"
    expected = ["The", "lowest", "low", "-", "land", ",", "isn", "'", "t", "12", "e", ""]
    expected += ["是", "我", "的", "书", "。", "naïve", "Ёлка", "!?"]
    assert units(made, text) == expected


def test_several_characters_of_one_piece_are_one_unit():
    merges = [("æ", "Ī"), ("æĪ", "ĳ"), ("ä", "»"), ("ä»", "¬"), ("æĪĳ", "ä»¬")]
    assert units(by_hand(merges), "是我们") == ["是", "我们"]


def test_the_blank_before_a_word_is_not_in_its_place():
    text = "so low\n low 是"
    ((normal, _, starts, ends),) = by_hand(MERGES).encode_with_places([text])
    assert [normal[a:b] for a, b in zip(starts, ends, strict=True)] == [
        *("s", "o", "low", "\n", "low", "", "是", "是", "是")
    ]


def test_a_new_seed_which_clears_tensorflows_kernels_leaves_it_as_it_is(tokenizer):
    import keras

    before = tokenizer.encode(["the cat sat"])[0].tolist()
    keras.utils.set_random_seed(3)
    assert tokenizer.encode(["the cat sat"])[0].tolist() == before
