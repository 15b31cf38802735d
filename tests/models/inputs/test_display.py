"""Examples in columns, English and Chinese, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from models.inputs.display import WIDTH, display_width, shown
from models.objectives.masked_lm import MaskedLM
from models.objectives.span_boundary import SpanBoundary
from models.objectives.word_structure import WordStructure
from models.protocols import Context
from models.tokenizers.byte_bpe import learn
from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece
from tests.models.objectives.twelve_tokens import VOCABULARY, ids

TOKENIZER = WordPiece([*SPECIAL_TOKENS, *VOCABULARY[5:]], lowercase=True)


def batch(tokens: list[str]) -> dict[str, np.ndarray]:
    numbers = np.array([ids(tokens)], np.int32)
    return {
        "token_ids": numbers,
        "segment_ids": np.zeros_like(numbers),
        "padding_mask": np.array([[token != "[PAD]" for token in tokens]], np.int32),
        "unit_starts": np.array([[0, 7, 1, 0, *[3] * (len(tokens) - 4)]], np.uint8),
    }


def test_english_by_hand():
    clean = batch("[CLS] un news ##able from [SEP] [PAD]".split())
    noised = clean | {
        "token_ids": np.array([ids("[CLS] un [MASK] [MASK] from [SEP] [PAD]")], np.int32),
        "mask_positions": np.array([[2, 3, 0]], np.int32),
        "mask_labels": np.array([[*ids(["news", "##able"]), 0]], np.int32),
        "mask_weights": np.array([[1.0, 1.0, 0.0]], np.float32),
        "next_sentence_labels": np.array([1], np.int32),
    }
    assert shown(clean, noised, 0, TOKENIZER).split("\n") == [
        "clean    [CLS] un  news   ##able from [SEP]",
        "units          wpe w             wp   wp",
        "seen     [CLS] un  [MASK] [MASK] from [SEP]",
        "segment  0     0   0      0      0    0",
        "mask               news   ##able",
        "next_sentence_labels: 1",
    ]


def test_a_row_says_how_it_is_read_and_what_it_is_not_asked_is_left_out():
    clean = batch("[CLS] un news from [SEP]".split()) | {
        "modes": np.array([1], np.int32),
        "next_sentence_labels": np.array([0], np.int32),
    }
    del clean["unit_starts"]
    asked = clean | {"next_sentence_weights": np.array([1.0], np.float32)}
    assert shown(clean, asked, 0, TOKENIZER).split("\n")[2:] == [
        "mode: left_to_right",
        "next_sentence_labels: 0",
    ]
    other = clean | {"next_sentence_weights": np.array([0.0], np.float32)}
    assert shown(clean, other, 0, TOKENIZER).split("\n")[2:] == ["mode: left_to_right"]


@pytest.mark.parametrize(
    ("mode", "first", "last"),
    [
        (0, "·     ·  ?    ·     ·    ·", "·     ·  ·    ·     ?    ·"),
        (1, "·     ·  ?", "·     ·  ·    ·     ?"),
        (2, "         ?    ·     ·    ·", "                    ?    ·"),
        (3, "·     ·  ?    ·", "·     ·  ·    ·     ?"),
    ],
)
def test_what_tokens_to_predict_see_in_the_mode_of_a_row(mode, first, last):
    clean = batch("[CLS] un news [SEP] from [SEP]".split())
    del clean["unit_starts"]
    clean["segment_ids"] = np.array([[0, 0, 0, 0, 1, 1]], np.int32)
    noised = clean | {
        "modes": np.array([mode], np.int32),
        "mask_positions": np.array([[2, 4, 0]], np.int32),
        "mask_labels": np.array([[ids("news")[0], ids("from")[0], 0]], np.int32),
        "mask_weights": np.array([[1.0, 1.0, 0.0]], np.float32),
    }
    name = ("bidirectional", "left_to_right", "right_to_left", "sequence_to_sequence")[mode]
    assert shown(clean, noised, 0, TOKENIZER).split("\n") == [
        "clean    [CLS] un news [SEP] from [SEP]",
        "segment  0     0  0    0     1    1",
        "mask              news       from",
        f"sees 1   {first}",
        f"sees 2   {last}",
        f"mode: {name}",
    ]


def test_boxes_of_regions_are_said_and_which_are_hidden():
    clean = batch("[CLS] un news ##able from [SEP]".split()) | {
        "region_boxes": np.array([[[0, 0, 1, 1], [0.25, 0.5, 0.754, 1], [0, 0, 0, 0]]], np.float32),
        "region_mask": np.array([[1, 1, 0]], np.int32),
        "region_features": np.ones((1, 3, 2), np.float32),
    }
    hidden = clean | {
        "masked_regions": np.array([[0, 1, 0]], np.int32),
        "region_labels": np.ones((1, 3, 2), np.float32),
        "region_weights": np.array([[1.0, 1.0, 0.0]], np.float32),
        "image_text_match_labels": np.array([0], np.int32),
    }
    assert shown(clean, hidden, 0, TOKENIZER).split("\n")[3:] == [
        "picture: 2 regions",
        "   1  0-100 across, 0-100 down, to predict",
        "   2  25-75 across, 50-100 down, to predict, hidden",
        "image_text_match_labels: 0",
    ]
    assert shown(clean, clean, 0, TOKENIZER).split("\n")[-1] == "   2  25-75 across, 50-100 down"


def test_a_chinese_character_takes_two_places():
    clean = batch(["[CLS]", *"我爱北京", "[SEP]"])
    clean["unit_starts"][0, 3:5] = 3, 0
    noised = clean | {
        "mask_positions": np.array([[3, 4]], np.int32),
        "mask_labels": np.array([ids("北京")], np.int32),
        "mask_weights": np.array([[1.0, 1.0]], np.float32),
        "token_ids": np.array([ids(["[CLS]", "我", "爱", "[MASK]", "你", "[SEP]"])], np.int32),
    }
    lines = shown(clean, noised, 0, TOKENIZER).split("\n")
    assert lines == [
        "clean    [CLS] 我  爱 北     京 [SEP]",
        "units          wpe w  wp        wp",
        "seen     [CLS] 我  爱 [MASK] 你 [SEP]",
        "segment  0     0   0  0      0  0",
        "mask                  北     京",
    ]
    assert display_width(lines[0][: lines[0].index("京")]) == display_width(
        lines[2][: lines[2].index("你")]
    )
    assert display_width("北京a\u0301") == 5


def test_every_target_stands_under_its_token_and_no_line_is_too_wide():
    tokens = "[CLS] un ##believ ##able news from new york city to ##day it rained all".split()
    clean = batch([*tokens, *"我爱北京天安门和长城今夜下了一场大雨", "[SEP]"])
    context = Context(TOKENIZER, clean["token_ids"].shape[1])
    rng = np.random.default_rng(0)
    noised = clean
    for objective in (
        MaskedLM(context, unit="span"),
        SpanBoundary(context),
        WordStructure(context),
    ):
        noised = objective.examples(noised, rng)
    lines = shown(clean, noised, 0, TOKENIZER).split("\n")
    assert "" in lines, "two blocks"
    assert max(map(display_width, lines)) <= WIDTH
    rows = [line.split() for line in lines if line]
    found = {
        name: [c for row in rows if row[0] == name for c in row[1:]] for name in ("mask", "span")
    }
    labels = noised["mask_labels"][0][noised["mask_weights"][0] > 0]
    assert found["mask"] == found["span"] == [VOCABULARY[i] for i in labels]
    (shuffled,) = [row[1:] for row in rows if row[0] == "shuffled" and len(row) > 1][:1]
    assert shuffled


def test_answers_stand_under_their_tokens_and_labels_are_said_in_words():
    clean = batch("[CLS] un news ##able from [SEP] [PAD]".split())
    clean["unit_starts"][0] = [0, 1 | 8 | 16, 1 | 8, 0, 1, 0, 0]
    asked = clean | {
        "capitalization_labels": np.array([[0, 1, 0, 0, 0, 0, 0]], np.int32),
        "capitalization_weights": np.array([[0, 1, 1, 0, 0, 0, 0]], np.float32),
        "sentence_distance_labels": np.array([1], np.int32),
    }
    meanings = {"sentence_distance_labels": ["same document"]}
    assert shown(clean, asked, 0, TOKENIZER, meanings).split("\n") == [
        "clean           [CLS] un news ##able from [SEP]",
        "units                 wC w           w",
        "segment         0     0  0    0      0    0",
        "capitalization        1  0",
        "sentence_distance_labels: 1 = same document",
    ]


def test_the_blanks_of_byte_level_pieces_are_seen():
    tokenizer = learn(["a b\n"] * 9, vocabulary_size=300)
    (tokens,) = tokenizer.encode(["a b\nc\td"])
    numbers = np.array([[tokenizer.cls_id, *tokens, tokenizer.sep_id]], np.int32)
    clean = {
        "token_ids": numbers,
        "segment_ids": np.zeros_like(numbers),
        "padding_mask": np.ones_like(numbers),
    }
    line = shown(clean, clean, 0, tokenizer).split("\n")[0]
    assert line.split() == ["clean", "<s>", "a", "␣b", "⏎", "c", "⇥", "d", "</s>"]
