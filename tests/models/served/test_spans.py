"""Spans of a packaged model: texts without words or tokens among others, and none at all."""

from __future__ import annotations

import json

import numpy as np
import pytest

from models.served.spans import predict_spans

HEAD = {"tags": ["O", "B-x", "I-x"], "room": 4, "stride": 2}


def count(words):
    return np.array([int(any(map(str.isalnum, word))) for word in words], np.int32)


def read(table):
    """Logits that tag each word "a" with B-x."""
    hits = np.array([[word.strip() == "a" for word in row] for row in table], np.float32)
    return {"tag_logits": np.stack([1 - hits, hits, 0 * hits], axis=-1) * 9}


@pytest.mark.parametrize("texts", [[], [""], ["\u200b\u200d", "   ", "\U0001f600"]])
def test_where_there_is_nothing_to_read_there_are_no_spans(texts):
    said = predict_spans(texts, count, read, HEAD)
    assert [each["answer"] for each in said] == ["[]"] * len(texts)
    assert all(each["score"] == 1.0 for each in said)


def test_texts_of_several_windows_of_one_word_and_of_none_are_told_apart():
    texts = ["b a b b b a", "", "a", "c"]
    said = [json.loads(each["answer"]) for each in predict_spans(texts, count, read, HEAD)]
    assert said == [[[2, 3, "x"], [10, 11, "x"]], [], [[0, 1, "x"]], []]


def test_a_span_goes_on_across_a_word_without_tokens():
    def inside(table):
        """Logits that tag each first word with B-x and the others with I-x."""
        numbers = np.minimum(np.arange(len(table[0])), 1) + 1
        return {
            "tag_logits": np.broadcast_to(9.0 * np.eye(3)[numbers], (len(table), *numbers.shape, 3))
        }

    (said,) = predict_spans(["a \u200b b c"], count, inside, HEAD)
    assert json.loads(said["answer"]) == [[0, 7, "x"]]
    (said,) = predict_spans(["a b c d"], count, inside, HEAD)
    assert json.loads(said["answer"]) == [[0, 7, "x"]]
