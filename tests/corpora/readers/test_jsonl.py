"""JSON lines, and text in other encodings than the one announced (faults S07, S12, S17, S21)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fourstage.errors import ContractViolation
from tests.corpora.conftest import Prepare
from tests.corpora.made_up import chinese, documents, lines_of, write


def test_unicode_line_separators_inside_a_record_do_not_end_it(tmp_path: Path, corpus: Prepare):
    path = tmp_path / "c.jsonl"
    numbers = " ".join(map(str, range(60)))
    odd = f'{{"id":"u1","text":"one\u2028two\x85three\\u2029four {numbers}"}}\n'
    path.write_bytes((lines_of(documents(200)) + odd).encode())
    prepared = corpus(path)
    assert (prepared.counts.read, prepared.counts.kept) == (201, 201)
    assert prepared.table()[-1]["text"].startswith("one\ntwo\nthree\n\nfour 0 1")


def test_one_latin_byte_rejects_its_row_with_line_and_offset(tmp_path: Path, corpus: Prepare):
    path = write(tmp_path / "c.jsonl", documents(300))
    lines = path.read_bytes().split(b"\n")
    before = sum(len(line) + 1 for line in lines[:6])
    place = lines[6].index(b" ")
    lines[6] = lines[6][:place] + b" caf\xe9" + lines[6][place:]
    path.write_bytes(b"\n".join(lines))
    prepared = corpus(path)
    assert prepared.counts.quarantined == {"not utf-8": 1}
    [rejected] = prepared.rejected()
    assert rejected["location"] == "c.jsonl:7"
    assert rejected["detail"] == f"byte {before + place + 4} of the file"
    assert "\ufffd" not in "".join(row["text"] for row in prepared.table())


def test_gb18030_announced_as_utf8_is_named_and_with_it_the_text_is_the_same(
    tmp_path: Path, corpus: Prepare
):
    path = write(tmp_path / "c.jsonl", chinese(300), "gb18030")
    with pytest.raises(ContractViolation) as caught:
        corpus(path, language="zh")
    assert "line 1: not UTF-8; reads as GB18030: set `encoding: gb18030`" in str(caught.value)
    other = corpus(path, language="zh", encoding="gb18030")
    write(path, chinese(300))
    for name in ("documents.arrow", "profile.parquet"):
        ours = corpus(path, language="zh").folder / name
        assert ours.read_bytes() == (other.folder / name).read_bytes()


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("big5", "公園裡的天氣很好，我們一起去散步吧。"),
        ("cp932", "今日は天気がいいので、公園へ散歩に行きましょう。"),
        ("euc_jp", "今日は天気がいいので、公園へ散歩に行きましょう。"),
        ("cp949", "오늘은 날씨가 좋으니 공원으로 산책을 갑시다."),
        ("cp1251", "Сегодня хорошая погода, пойдёмте гулять в парк."),
        ("koi8_r", "Сегодня хорошая погода, пойдёмте гулять в парк."),
    ],
)
def test_another_encoding_is_named_and_no_other(
    tmp_path: Path, corpus: Prepare, encoding: str, text: str
):
    path = write(tmp_path / "c.jsonl", [{"text": f"{text} {i}"} for i in range(20)], encoding)
    with pytest.raises(ContractViolation, match=f"set `encoding: {encoding}`"):
        corpus(path)


def test_a_damaged_line_is_not_taken_for_a_file_in_another_encoding(
    tmp_path: Path, corpus: Prepare
):
    text = "今日は天気がいいので"
    path = write(tmp_path / "c.jsonl", [{"text": f"{text} {i}"} for i in range(20)])
    lines = path.read_bytes().split(b"\n")
    for end in range(-3, -12, -1):
        damaged = lines[6].replace(text.encode(), text.encode()[1:end])
        path.write_bytes(b"\n".join([*lines[:6], damaged, *lines[7:]]))
        assert corpus(path).counts.quarantined == {"not utf-8": 1}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "big5"])
def test_other_encodings_give_the_same_text(tmp_path: Path, corpus: Prepare, encoding: str):
    records = [{"text": "天地玄黃宇宙洪荒" + str(i) * 9} for i in range(30)]
    path = write(tmp_path / "c.jsonl", records, encoding)
    prepared = corpus(path, language="zh", encoding=encoding)
    assert [row["text"] for row in prepared.table()] == [record["text"] for record in records]
    if encoding == "utf-16":
        with pytest.raises(ContractViolation, match="set `encoding: utf-16`"):
            corpus(path, language="zh")


def test_a_file_in_latin_1_throughout_is_named(tmp_path: Path, corpus: Prepare):
    records = [{"text": f"Une étude très détaillée de la fièvre, numéro {i}"} for i in range(40)]
    path = write(tmp_path / "c.jsonl", records, "latin-1")
    with pytest.raises(ContractViolation, match="line 1: not UTF-8; reads as CP1252"):
        corpus(path)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('"text"', "not a JSON object"),
        ('{"text": "a", "text": "b"}', "a JSON key twice"),
        ('{"text": NaN}', "NaN or Infinity in JSON"),
        ('{"text": 3}', "field 'text' is not text"),
        ('{"text": null}', "field 'text' is not text"),
        ('{"txt": "a"}', "no field 'text'"),
        ('{"text": "\\ud800"}', "half a surrogate pair in the text"),
        ("[" * 100_000, "JSON nested too deep"),
        (f'{{"text": "a", "n": {"9" * 5000}}}', "not JSON"),
        ('{"id": "d1-0", "text": "an id that is there"}', "an id that was there before"),
        (json.dumps({"id": "x" * 300, "text": "a"}), "an id that is too long or not printable"),
    ],
)
def test_a_malformed_line_is_rejected_by_number(
    tmp_path: Path, corpus: Prepare, line: str, reason: str
):
    path = tmp_path / "c.jsonl"
    path.write_text(lines_of(documents(20)) + line + "\n\n" + lines_of(documents(20, seed=8)))
    prepared = corpus(path)
    assert prepared.counts.quarantined == {reason: 1}
    assert (prepared.counts.read, prepared.counts.kept) == (41, 40)
    assert prepared.rejected()[0]["location"] == "c.jsonl:21"


def test_when_no_record_is_good_the_reasons_and_places_are_said(tmp_path: Path, corpus: Prepare):
    path = write(tmp_path / "c.jsonl", [{"body": "zqxcanary"}] * 5)
    with pytest.raises(ContractViolation) as caught:
        corpus(path)
    assert "nothing is left of 5 records: 5 × no field 'text' (first at c.jsonl:1)" in str(
        caught.value
    )
    assert "zqxcanary" not in str(caught.value)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.builds(
                lambda value: json.dumps(value).encode(),
                st.recursive(
                    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                    lambda inner: (
                        st.lists(inner, max_size=3)
                        | st.dictionaries(
                            st.sampled_from(["text", "id", "label", "x"]), inner, max_size=4
                        )
                    ),
                    max_leaves=8,
                ),
            ),
        ),
        max_size=12,
    )
)
def test_whatever_a_file_holds_the_books_balance_or_the_error_is_ours(
    tmp_path: Path, corpus: Prepare, dataset: Prepare, lines: list[bytes]
):
    path = tmp_path / "c.jsonl"
    path.write_bytes(b"\n".join(lines))
    for prepare in (corpus, dataset):
        try:
            prepare(path)  # its counts are checked there
        except ContractViolation:
            pass
