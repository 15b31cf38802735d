"""YAML without its traps."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fourstage.errors import RecipeError
from fourstage.strict_yaml import MAX_BYTES, number_hint, parse_document, read_document


def value(text: str) -> object:
    return parse_document(text, "x.yaml").value


def message(text: str) -> str:
    with pytest.raises(RecipeError) as caught:
        parse_document(text, "x.yaml")
    return str(caught.value)


def test_plain_values_come_out_as_they_are_written():
    text = (
        "a: 1\nb: [1.5, -2, 1_000, 1.0e-4]\nc: {d: text, e: 'yes', f: 2020-01-01}\ng: true\nh: ~\n"
    )
    assert value(text) == {
        "a": 1,
        "b": [1.5, -2, 1000, 1e-4],
        "c": {"d": "text", "e": "yes", "f": "2020-01-01"},
        "g": True,
        "h": None,
    }


def test_a_repeated_key_names_both_lines():
    assert message("seed: 1\nname: x\nseed: 2\n") == (
        "x.yaml: the key 'seed' occurs twice, in lines 1 and 3; keep one"
    )
    assert "'b' occurs twice, in lines 2 and 3" in message("a:\n  b: 1\n  b: 2\n")


@pytest.mark.parametrize(
    "text",
    ["a: !!python/object/apply:os.system ['x']", "a: !!str 5", "!mine {a: 1}", "a: !!binary eA=="],
)
def test_tags_are_refused_with_their_line(text):
    assert "line 1: the tag" in message(text)


def test_aliases_that_multiply_are_refused_quickly():
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
    )
    start = time.monotonic()
    assert "refused" in message(bomb)
    assert time.monotonic() - start < 2


def test_an_alias_within_its_own_anchor_is_refused():
    assert "aliases are followed" in message("a: &a [*a]\n")


def test_a_few_aliases_are_allowed():
    assert value("a: &a {x: 1}\nb: *a\n") == {"a": {"x": 1}, "b": {"x": 1}}


@pytest.mark.parametrize("text", ["a: 0x10", "a: 010", "a: 0b1", "a: 5:00", "a: 1:30.5"])
def test_numbers_in_other_bases_are_refused(text):
    assert "base 2, 8, 16 or 60" in message(text)


@pytest.mark.parametrize("text", ["no: 1", "1: 1", "~: 1", "1.5: x", "[a]: 1", "{a: 1}: 1"])
def test_keys_must_be_text(text):
    assert "a key must be text" in message(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\n---\nb: 2", "one document"),
        ("a: [1", "not YAML"),
        ("a: *nowhere", "not YAML"),
        ("a: 'unclosed", "not YAML"),
        ("a: 1\n<<: {b: 1}", "merge keys"),
        ("name: a\0b", "U+0000"),
        ("a: " + "[" * 20 + "]" * 20, "nested more than"),
        ("a: " + "[" * 50_000, "nested more than"),
        ("a: " + "9" * 5000, "more than 60 characters"),
    ],
)
def test_what_is_not_ours_is_refused(text, words):
    assert words in message(text)


def test_a_large_file_is_refused_unread(tmp_path):
    file = tmp_path / "x.yaml"
    file.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(RecipeError, match="256 KiB"):
        read_document(file, "x.yaml")


def test_bytes_that_are_not_utf8_name_their_line(tmp_path):
    file = tmp_path / "x.yaml"
    file.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(RecipeError, match="line 2: not UTF-8"):
        read_document(file, "x.yaml")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    try:
        parse_document(text, "x.yaml")
    except RecipeError:
        pass


@given(
    st.text(
        alphabet=st.sampled_from("ab:-[]{},&*!'\"#|>?%@`~ \n\t01.ex<=_yno\x85\u2028"),
        max_size=120,
    )
)
def test_any_text_of_yaml_marks_is_read_or_refused(text):
    try:
        parse_document(text, "x.yaml")
    except RecipeError:
        pass


@pytest.mark.parametrize("text", ["1e-3", "1.5E2", ".5e3", "-2e+4", "08", "1_0e1", "+1e-4"])
def test_what_is_advised_in_the_place_of_a_text_is_the_same_number(text):
    """And it is one in YAML."""
    assert parse_document(text, "x").value == text
    advice = number_hint(text, whole=False).rpartition(" ")[2]
    assert parse_document(advice, "x").value == float(text)
    whole = number_hint(text, whole=True).rpartition(" ")[2]
    assert parse_document(whole or "0", "x").value == (int(float(text)) if whole else 0)


def test_what_is_no_number_and_what_was_in_quotes():
    assert [number_hint(text, whole=False) for text in ("", "ten", "nan", "1e-")] == [""] * 4
    assert number_hint("5", whole=True) == "; write the number without quotes"
    assert number_hint("1e300", whole=True) == ""
    assert number_hint("1e999", whole=False) == "; it is too large for a number"
