"""Tags as spans, in every scheme."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.tags import IllegalTagsError, joined, spans_of_tags


@pytest.mark.parametrize(
    ("scheme", "tags", "spans"),
    [
        ("iob2", "O B-a I-a B-a O B-b", [(1, 3, "a"), (3, 4, "a"), (5, 6, "b")]),
        ("iob2", "B-creative-work I-creative-work", [(0, 2, "creative-work")]),
        ("iob1", "I-a I-a B-a O I-b I-a", [(0, 2, "a"), (2, 3, "a"), (4, 5, "b"), (5, 6, "a")]),
        ("iob1", "O B-a I-a O", [(1, 3, "a")]),
        ("bioes", "B-a I-a E-a S-a O S-b", [(0, 3, "a"), (3, 4, "a"), (5, 6, "b")]),
        ("bilou", "B-a L-a U-b", [(0, 2, "a"), (2, 3, "b")]),
        ("bmes", "B-a M-a E-a S-a O S-b", [(0, 3, "a"), (3, 4, "a"), (5, 6, "b")]),
        ("iob2", "O O", []),
    ],
)
def test_spans_are_what_the_scheme_says(scheme: str, tags: str, spans: list):
    assert spans_of_tags(tags.split(), scheme) == spans


@pytest.mark.parametrize(
    ("scheme", "tags", "reason"),
    [
        ("iob2", "O I-a", "a tag that cannot follow the one before it (tag_scheme iob2)"),
        ("iob2", "B-a I-b", "a tag that cannot follow the one before it (tag_scheme iob2)"),
        ("iob2", "S-a", "a tag that is not one of tag_scheme iob2"),
        ("iob2", "PER", "a tag that is not one of tag_scheme iob2"),
        ("iob2", "B-", "a tag that is not one of tag_scheme iob2"),
        ("bilou", "S-a", "a tag that is not one of tag_scheme bilou"),
        ("bioes", "E-a", "a tag that cannot follow the one before it (tag_scheme bioes)"),
        ("bioes", "B-a O", "a span without its last tag (tag_scheme bioes)"),
        ("bioes", "B-a B-a E-a", "a span without its last tag (tag_scheme bioes)"),
        ("bioes", "B-a", "a span without its last tag (tag_scheme bioes)"),
        ("bmes", "B-a M-a", "a span without its last tag (tag_scheme bmes)"),
        ("bmes", "B-a I-a E-a", "a tag that is not one of tag_scheme bmes"),
    ],
)
def test_illegal_tags_are_told_without_quoting_them(scheme: str, tags: str, reason: str):
    with pytest.raises(IllegalTagsError) as caught:
        spans_of_tags(tags.split(), scheme)
    assert str(caught.value) == reason


@st.composite
def some_spans(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, str]]]:
    spans, place = [], 0
    for _ in range(draw(st.integers(0, 5))):
        first = place + draw(st.integers(0, 2))
        place = first + draw(st.integers(1, 3))
        spans.append((first, place, draw(st.sampled_from("ab"))))
    return place + draw(st.integers(0, 2)), spans


@given(some_spans())
def test_spans_written_in_any_scheme_come_back(case: tuple[int, list[tuple[int, int, str]]]):
    num_words, spans = case
    for scheme, (begin, last, single) in {
        "iob1": "BIB",
        "iob2": "BIB",
        "bioes": "BES",
        "bilou": "BLU",
    }.items():
        tags = ["O"] * num_words
        for first, behind, kind in spans:
            tags[first:behind] = [f"I-{kind}"] * (behind - first)
            tags[behind - 1] = f"{last}-{kind}"
            tags[first] = f"{begin if behind - first > 1 else single}-{kind}"
        assert spans_of_tags(tags, scheme) == spans


@pytest.mark.parametrize(
    ("tokens", "language", "text"),
    [
        ("He lives in U.S. .", "en", "He lives in U.S. ."),
        ("我 爱 iPhone X 手机 2 0 1 8 年", "zh", "我爱iPhone X手机2018年"),
    ],
)
def test_tokens_are_joined_as_their_language_writes(tokens: str, language: str, text: str):
    found, places = joined(tokens.split(), language)
    assert found == text
    assert [found[start:end] for start, end in places] == tokens.split()
