"""The tokenizer files that are written give our ids, in the Rust package that transformers runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tokenizers import ByteLevelBPETokenizer, Tokenizer, processors

from fourstage.errors import ContractViolation, RecipeError
from models.interchange.tokenizer_files import read_tokenizer, write_tokenizer
from models.saved_tokenizer import load_tokenizer
from models.tokenizers.unigram import UnigramTokenizer, learn
from models.tokenizers.word_bpe import WordBPE
from models.tokenizers.word_bpe import learn as learn_within_words
from models.tokenizers.wordpiece import WordPiece
from tests.models.odd_lines import alphabet, byte_pairs, lines
from tests.models.published_gpt2 import tokenizer_files

SETTINGS = "tokenizer_config.json"
BYTE_FILES = ("vocab.json", "merges.txt")


@cache
def learned() -> UnigramTokenizer:
    """Unigram learned from the lines."""
    return learn(lines(), vocabulary_size=700)


@cache
def within_words() -> WordBPE:
    """BPE within words learned from the lines."""
    return learn_within_words(lines(), vocabulary_size=700)


def ours_of(scheme: str) -> Any:
    made = {"byte_bpe": byte_pairs, "unigram": learned, "word_bpe": within_words}
    return made[scheme]() if scheme in made else alphabet(scheme != "cased")


@pytest.mark.parametrize("scheme", ["lowercase", "cased", "byte_bpe", "unigram", "word_bpe"])
def test_ids_are_the_same_on_a_thousand_lines_of_each_language(scheme, tmp_path):
    ours = ours_of(scheme)
    write_tokenizer(ours, tmp_path, length=64, segments=True)
    theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    texts = lines()
    if scheme == "cased":  # our WordPiece puts a cased text into NFC, theirs leaves it
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


def test_marks_are_special_tokens_of_theirs_and_come_back(tmp_path):
    plain = alphabet(lowercase=True)
    ours = WordPiece([*plain.vocabulary, "[HD]", "[TL]"], plain.lowercase, ["[HD]", "[TL]"])
    write_tokenizer(ours, tmp_path, length=64, segments=True)
    theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    texts = [f"[HD] {a} [HD] of{a}[TL]and[hd] [TLX]" for a in lines()[:50]]
    found = [theirs.encode(text, add_special_tokens=False).ids for text in texts]
    assert [ids.tolist() for ids in ours.encode(texts)] == found
    again, _ = read_tokenizer(tmp_path)
    assert again is not None
    assert again.digest == ours.digest


MARKS = ("<e1>", "</e1>", "@user", "@users", "[unused1]", "é1")


def marked(folder: Path, where: str, lowercase: bool = True) -> tuple[list[str], Any]:
    """A folder whose file says that its vocabulary's marks are added, and theirs of it."""
    pieces = [*alphabet(lowercase).vocabulary, *MARKS]
    write_tokenizer(WordPiece(pieces, lowercase), folder, length=64, segments=True)
    theirs = Tokenizer.from_file(str(folder / "tokenizer.json"))
    theirs.add_special_tokens([*MARKS])
    if where == "tokenizer.json":
        theirs.save(str(folder / where))
        return pieces, theirs
    (folder / "tokenizer.json").unlink()
    path = folder / ("special_tokens_map.json" if where == "special_tokens_map.json" else SETTINGS)
    plain = {"special": True, "normalized": False}
    said: dict[str, Any] = {
        "special_tokens_map.json": {"additional_special_tokens": [*MARKS]},
        "extra_special_tokens": {where: [*MARKS]},
        "added_tokens_decoder": {
            where: {str(pieces.index(m)): {"content": m} | plain for m in MARKS}
        },
    }[where]
    settings = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps(settings | said), "utf-8")
    return pieces, theirs


@pytest.mark.parametrize(
    "where",
    [
        "tokenizer.json",
        "special_tokens_map.json",
        "extra_special_tokens",
        "added_tokens_decoder",
    ],
)
def test_added_tokens_of_bert_are_whole_in_a_text_as_theirs_are(where, tmp_path):
    pieces, theirs = marked(tmp_path, where)
    texts = [
        "<e1> Oslo </e1>is[unused1] in@USER",
        "the@users@user<e1></e1>the<E1>",
        "[unused1][unused1]\té1 É1",
        *lines()[:40],
    ]
    ours, why = read_tokenizer(tmp_path)
    assert ours is not None, why
    expected = [theirs.encode(text, add_special_tokens=False).ids for text in texts]
    assert [ids.tolist() for ids in ours.encode(texts)] == expected
    assert {pieces.index(mark) for mark in MARKS} <= {*expected[0], *expected[1], *expected[2]}


@pytest.mark.parametrize("flag", ["normalized", "lstrip", "rstrip", "single_word"])
def test_added_tokens_that_are_found_otherwise_are_refused(flag, tmp_path):
    marked(tmp_path, "tokenizer.json")
    path = tmp_path / "tokenizer.json"
    whole = json.loads(path.read_text("utf-8"))
    whole["added_tokens"][-1][flag] = True
    path.write_text(json.dumps(whole), "utf-8")
    with pytest.raises(RecipeError, match=r"1 added tokens \(é1\) are one token each wherever"):
        read_tokenizer(tmp_path)
    whole["added_tokens"][-1] |= {flag: False, "special": False}
    path.write_text(json.dumps(whole), "utf-8")
    assert read_tokenizer(tmp_path)[0] is not None


def test_added_tokens_that_ours_would_split_are_refused(tmp_path):
    roberta(tmp_path)
    path = tmp_path / "tokenizer.json"
    whole = json.loads(path.read_text("utf-8"))
    known = whole["model"]["vocab"]
    own = {"id": known["madeupword0000"], "content": "madeupword0000", "special": True}
    path.write_text(json.dumps(whole | {"added_tokens": [*whole["added_tokens"], own]}), "utf-8")
    with pytest.raises(RecipeError, match=r"1 added tokens \(madeupword0000\) .* ours would split"):
        read_tokenizer(tmp_path)
    path.unlink()
    (tmp_path / "added_tokens.json").write_text('{"<e1>": 600}', "utf-8")
    with pytest.raises(RecipeError, match=r"1 added tokens \(<e1>\)"):
        read_tokenizer(tmp_path)


@pytest.mark.parametrize("scheme", ["wordpiece", "byte_bpe", "unigram", "word_bpe"])
def test_a_pair_is_framed_with_its_segments(scheme, tmp_path):
    ours = ours_of(scheme)
    (the,) = ours.encode(["the"])
    for segments in (True, False):
        write_tokenizer(ours, tmp_path, length=64, segments=segments)
        framed = Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode("the", "the")
        assert framed.ids == [ours.cls_id, *[*the, ours.sep_id] * 2]
        second = 1 if segments else 0
        assert framed.type_ids == [0] * (2 + len(the)) + [second] * (len(the) + 1)


def roberta(folder: Path) -> ByteLevelBPETokenizer:
    """A folder as RoBERTa is published, made by the Rust package: no normalisation, its frame."""
    made = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    made.train_from_iterator(lines(), vocab_size=600, special_tokens=special, show_progress=False)
    made.save_model(str(folder))
    ids = json.loads((folder / "vocab.json").read_text("utf-8"))
    # Published ids follow the frequency of the pieces, and end in words made up and the mask.
    some, *others = [piece for piece in ids if piece not in special]
    names = [*special, *reversed(others), some, "<|endoftext|>", "madeupword0000", "<mask>"]
    published = {piece: i for i, piece in enumerate(names)}
    (folder / "vocab.json").write_text(json.dumps(published), "utf-8")
    whole = ByteLevelBPETokenizer(*(str(folder / name) for name in BYTE_FILES))
    whole.add_special_tokens([*special, "<mask>"])
    frame = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    whole._tokenizer.post_processor = frame  # type: ignore[attr-defined]
    whole.save(str(folder / "tokenizer.json"))
    return whole


def texts_and_ids(theirs: ByteLevelBPETokenizer) -> tuple[list[str], list[list[int]]]:
    texts = [text.replace("e\u0301", "é") for text in lines()]  # ours puts a text into NFC
    return texts, [theirs.encode(text, add_special_tokens=False).ids for text in texts]


def read_without(folder: Path, removed: Sequence[str]) -> Any:
    """Our tokenizer of a folder that lacks some files for so long."""
    for name in removed:
        (folder / name).rename(folder / f"away-{name}")
    ours, why = read_tokenizer(folder)
    assert ours is not None, why
    for name in removed:
        (folder / f"away-{name}").rename(folder / name)
    return ours


def test_a_published_roberta_gives_its_ids_here(tmp_path):
    theirs = roberta(tmp_path)
    texts, expected = texts_and_ids(theirs)
    for removed in ((), ("tokenizer.json",), BYTE_FILES):
        ours = read_without(tmp_path, removed)
        assert [ids.tolist() for ids in ours.encode(texts)] == expected
        assert (ours.pad_id, ours.mask_id) == (1, theirs.token_to_id("<mask>"))


def test_a_published_gpt2_gives_its_ids_here_and_is_written_back(tmp_path):
    theirs = tokenizer_files(tmp_path)
    texts, expected = texts_and_ids(theirs)
    end = theirs.token_to_id("<|endoftext|>")
    kept = [("tokenizer.json",), ("tokenizer.json", "tokenizer_config.json"), BYTE_FILES, ()]
    digests = set()
    for removed in kept:
        ours = read_without(tmp_path, removed)
        assert [ids.tolist() for ids in ours.encode(texts)] == expected
        roles = (ours.pad_id, ours.unknown_id, ours.cls_id, ours.sep_id, ours.mask_id)
        assert roles == (end,) * 5
        assert ours.special_ids == (end,)
        digests.add(ours.digest)
    assert len(digests) == 1
    (hidden,) = ours.encode(["<|endoftext|>"])
    assert end not in hidden
    assert ours.decode([end, *hidden, end]) == "<|endoftext|>"
    ours.save(tmp_path / "saved")
    assert load_tokenizer(tmp_path / "saved").digest == ours.digest
    (tmp_path / "written").mkdir()
    write_tokenizer(ours, tmp_path / "written", length=64, segments=False)
    again, why = read_tokenizer(tmp_path / "written")
    assert again is not None, why
    assert again.digest == ours.digest
    rust = Tokenizer.from_file(str(tmp_path / "written" / "tokenizer.json"))
    found = [each.ids for each in rust.encode_batch(texts, add_special_tokens=False)]
    assert found == expected
    assert rust.encode("<|endoftext|>", add_special_tokens=False).ids == [end]


def test_roles_of_the_settings_are_kept(tmp_path):
    tokenizer_files(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    ids = json.loads((tmp_path / "vocab.json").read_text("utf-8"))
    ids = {piece.replace("<|endoftext|>", "<|end|>"): i for piece, i in ids.items()}
    size = len(ids)
    (tmp_path / "vocab.json").write_text(json.dumps(ids | {"<|fill|>": size}), "utf-8")
    (tmp_path / "tokenizer_config.json").unlink()
    with pytest.raises(ContractViolation, match="lacks 5 of the special tokens and bytes: <s> "):
        read_tokenizer(tmp_path)
    settings = {"eos_token": "<|end|>", "pad_token": {"content": "<|fill|>"}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    ours, why = read_tokenizer(tmp_path)
    assert ours is not None, why
    assert (ours.sep_id, ours.pad_id) == (size - 1, size)
    assert ours.cls_id == ours.mask_id == ours.unknown_id == ours.sep_id
    (tmp_path / "written").mkdir()
    write_tokenizer(ours, tmp_path / "written", length=64, segments=False)
    again, _ = read_tokenizer(tmp_path / "written")
    assert again is not None
    assert again.digest == ours.digest


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True}}, "add_prefix_space"),
        ({"normalizer": {"type": "Lowercase"}}, "normalizer: not as in RoBERTa"),
    ],
)
def test_a_setting_that_would_give_other_ids_is_refused(change, said, tmp_path):
    roberta(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8")
    with pytest.raises(RecipeError, match=said):
        read_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("where", "change", "said"),
    [
        (
            "tokenizer.json",
            {"pre_tokenizer": {"type": "Whitespace"}},
            "pre_tokenizer: not as in BERT",
        ),
        ("tokenizer.json", {"pre_tokenizer": None}, "pre_tokenizer: not as in BERT"),
        ("model", {"continuing_subword_prefix": "@@"}, "model.continuing_subword_prefix: not"),
        ("model", {"max_input_chars_per_word": 20}, "model.max_input_chars_per_word: not as in"),
        ("model", {"unk_token": "[PAD]"}, "model.unk_token: not as in BERT"),
    ],
)
def test_a_wordpiece_that_would_give_other_ids_is_refused(where, change, said, tmp_path):
    write_tokenizer(alphabet(lowercase=True), tmp_path, length=64, segments=True)
    path = tmp_path / "tokenizer.json"
    whole = json.loads(path.read_text("utf-8"))
    changed = {"model": whole["model"] | change} if where == "model" else change
    path.write_text(json.dumps(whole | changed), "utf-8")
    with pytest.raises(RecipeError, match=said):
        read_tokenizer(tmp_path)


def test_of_two_files_that_disagree_on_case_the_settings_win_as_in_transformers(tmp_path):
    write_tokenizer(alphabet(lowercase=True), tmp_path, length=64, segments=True)
    path = tmp_path / "tokenizer_config.json"
    settings = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(settings | {"do_lower_case": False}), "utf-8")
    for _ in ("with tokenizer.json", "without"):
        ours, why = read_tokenizer(tmp_path)
        assert ours is not None, why
        assert not ours.lowercase
        (tmp_path / "tokenizer.json").unlink(missing_ok=True)


@pytest.mark.parametrize("where", ["tokenizer_config.json", "config.json"])
@pytest.mark.parametrize("kind", ["BertJapaneseTokenizer", "PhobertTokenizer", "BertTokenizer"])
def test_a_class_that_cuts_text_by_code_is_no_scheme_of_ours(kind, where, tmp_path):
    vocabulary = "\n".join(alphabet(lowercase=True).vocabulary)
    (tmp_path / "vocab.txt").write_text(vocabulary + "\n", "utf-8")
    (tmp_path / where).write_text(json.dumps({"tokenizer_class": kind}), "utf-8")
    found, why = read_tokenizer(tmp_path)
    assert (found is None) == (kind != "BertTokenizer")
    if found is None:
        assert why.startswith(f"{kind} cuts text otherwise than its files say; only WordPiece,")


def test_another_tokenizer_of_words_is_not_taken_for_that_of_gpt(tmp_path):
    write_tokenizer(within_words(), tmp_path, length=64, segments=True)
    config = {"model_type": "bert", "tokenizer_class": "HerbertTokenizerFast"}
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    (tmp_path / "tokenizer_config.json").unlink()
    assert read_tokenizer(tmp_path)[0] is not None  # tokenizer.json says all
    (tmp_path / "tokenizer.json").unlink()
    found, why = read_tokenizer(tmp_path)
    assert found is None
    assert why.startswith("HerbertTokenizer cuts text otherwise")


@pytest.mark.parametrize("kind", [None, "RoFormerTokenizerFast", "BertTokenizer"])
@pytest.mark.parametrize("words", [(), ("我们",)])
def test_chinese_words_of_a_roformer_are_not_read_character_by_character(kind, words, tmp_path):
    vocabulary = [*alphabet(lowercase=True).vocabulary, *words]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n", "utf-8")
    config = {"model_type": "roformer", **({"tokenizer_class": kind} if kind else {})}
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    found, why = read_tokenizer(tmp_path)
    refused = bool(words) and kind != "BertTokenizer"
    assert (found is None) == refused
    assert why.startswith("RoFormerTokenizer looks for the vocabulary's Chinese words") == refused


def test_an_albert_of_lower_case_is_not_read_with_case(tmp_path):
    (tmp_path / "spiece.model").write_bytes(learned().serialised)
    (tmp_path / "config.json").write_text('{"model_type": "albert"}', "utf-8")
    with pytest.raises(RecipeError, match="nothing, which AlbertTokenizer reads as true"):
        read_tokenizer(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    for kept in (False, True):
        path.write_text(json.dumps({"do_lower_case": False, "keep_accents": kept}), "utf-8")
        ours, why = read_tokenizer(tmp_path)
        assert isinstance(ours, UnigramTokenizer), why
        assert ours.folds_accents != kept


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"vocab.txt": b"[PAD]\n\xff\n"}, r"vocab\.txt: expected UTF-8, got another byte at 6;"),
        ({"tokenizer.json": b"[" * 100_000}, r"tokenizer\.json: not JSON"),
        (
            {"vocab.json": b'{"a</w>": 0}', "merges.txt": b"\xff \xfe\n"},
            r"merges\.txt: expected ids",
        ),
        (
            {"vocab.json": b'{"a</w>": 0, "b": "1"}', "merges.txt": b""},
            r"merges\.txt: expected ids",
        ),
        (
            {
                "tokenizer.json": b'{"model": {"type": "WordPiece", "vocab": {"a": "0", "b": 1}},'
                b' "pre_tokenizer": {"type": "BertPreTokenizer"}}'
            },
            "expected a vocabulary with the ids 0, 1, 2",
        ),
        (
            {
                "tokenizer.json": b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": 5},'
                b' "added_tokens": 5, "pre_tokenizer":'
                b' {"type": "ByteLevel", "add_prefix_space": false}}'
            },
            "merges: expected a list, got int",
        ),
    ],
)
def test_a_damaged_file_is_named(files, said, tmp_path):
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(ContractViolation, match=said):
        read_tokenizer(tmp_path)


def test_a_prefix_blank_in_the_settings_is_refused(tmp_path):
    roberta(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"add_prefix_space": true}', "utf-8")
    with pytest.raises(RecipeError, match="add_prefix_space: expected false, got true"):
        read_tokenizer(tmp_path)


def test_two_lists_of_merges_that_differ_are_refused(tmp_path):
    roberta(tmp_path)
    merges = (tmp_path / "merges.txt").read_text("utf-8").splitlines()
    (tmp_path / "merges.txt").write_text("\n".join(merges[:-1]) + "\n", "utf-8")
    with pytest.raises(ContractViolation, match="have different tokens"):
        read_tokenizer(tmp_path)
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b c\n", "utf-8")
    with pytest.raises(ContractViolation, match=r"merges\.txt:2: expected two pieces"):
        read_tokenizer(tmp_path)


def test_merges_that_no_learner_gives_are_refused(tmp_path):
    """B c joins before a b, so that "abc" is a-bc, which no merge joins; ours would join it."""
    roberta(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    ids = json.loads((tmp_path / "vocab.json").read_text("utf-8"))
    beyond = [piece for piece in ("bc", "ab", "abc") if piece not in ids]
    ids |= {piece: len(ids) + i for i, piece in enumerate(beyond)}
    (tmp_path / "vocab.json").write_text(json.dumps(ids), "utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\nb c\na b\nab c\n", "utf-8")
    with pytest.raises(RecipeError, match=r"1 merges give .* \(abc\)"):
        read_tokenizer(tmp_path)


def test_bpe_of_characters_is_no_scheme_of_ours(tmp_path):
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "BPE"}}', "utf-8")
    found, why = read_tokenizer(tmp_path)
    assert found is None
    assert why.startswith("tokenizer.json: BPE; only WordPiece, BPE of bytes or within words, and")
