"""Names found in text: the same as by looking for each one everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.gazetteer import Gazetteer, Match, longest
from corpora.gazetteer_file import find_gazetteer, read_gazetteer
from fourstage.errors import ContractViolation

words = st.text("ab北京", min_size=1, max_size=4)


@given(st.lists(st.tuples(words, st.sampled_from(["phrase", "entity"]))), st.text("ab北京 "))
def test_one_pass_finds_what_a_search_for_each_name_finds(names, text: str):
    found = sorted(Gazetteer(names).matches(text))
    assert found == sorted(
        Match(i, i + len(name), kind)
        for name, kind in set(names)
        for i in range(len(text))
        if text.startswith(name, i)
    )


def test_names_within_names_are_found_by_hand():
    gazetteer = Gazetteer([("北京", "entity"), ("北京大学", "entity"), ("大学", "phrase")])
    assert sorted(gazetteer.matches("在北京大学")) == [
        Match(1, 3, "entity"),
        Match(1, 5, "entity"),
        Match(3, 5, "phrase"),
    ]
    assert longest(gazetteer.matches("在北京大学")) == [Match(1, 5, "entity")]


def test_the_leftmost_then_the_longest_counts():
    names = [Match(2, 4, "a"), Match(0, 3, "a"), Match(0, 2, "a"), Match(3, 5, "a")]
    assert longest(names) == [Match(0, 3, "a"), Match(3, 5, "a")]


def test_a_file_says_where_it_is_wrong(tmp_path: Path):
    path = tmp_path / "names.tsv"
    path.write_text("new york\tentity\n\nof course\tphrase\r\n", "utf-8")
    assert read_gazetteer(path) == [("new york", "entity"), ("of course", "phrase")]
    path.write_text("new york\tentity\n", "utf-8-sig")
    assert read_gazetteer(path) == [("new york", "entity")]
    path.write_text("new york\tentity\nnew york\tcity\n", "utf-8")
    with pytest.raises(ContractViolation, match=r"names\.tsv:2: expected name<TAB>kind"):
        read_gazetteer(path)
    path.write_bytes("new york\tentity\n北京\tentity\n".encode("gb18030"))
    with pytest.raises(ContractViolation, match=r"names\.tsv:2: expected UTF-8, got the byte 0xb1"):
        read_gazetteer(path)
    path.write_text("\n", "utf-8")
    with pytest.raises(ContractViolation, match="empty"):
        read_gazetteer(path)
    assert find_gazetteer("names.tsv", [tmp_path]) == path
    with pytest.raises(ContractViolation, match=r"no file .other\.tsv"):
        find_gazetteer("other.tsv", [tmp_path])
