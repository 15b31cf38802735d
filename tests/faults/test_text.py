"""Text that lies, English (S18–S20) and Chinese (S21–S24): read whole, cleaned, counted."""

from __future__ import annotations

import base64
import json
import random

import pytest

from corpora.shards import TokenisedCorpus
from tests.corpora.made_up import chinese
from tests.faults.desk import (
    Answer,
    Desk,
    cost_of,
    documents,
    lines,
    on_corpora,
    on_dataset,
    table,
)
from tests.flows.own_project import CANARY

GOOD = documents()


def altered(old: str, new: str) -> bytes:
    """The good documents with one thing put in."""
    texts = [one["text"].replace(old, new) for one in GOOD]
    assert all(text != one["text"] for text, one in zip(texts, GOOD, strict=True))
    return lines({**one, "text": text} for one, text in zip(GOOD, texts, strict=True))


def tokens(desk: Desk, answer: Answer) -> TokenisedCorpus:
    return TokenisedCorpus(desk.entry(answer, "tokens mine") / "documents.arrow")


def in_chinese(count: int, seed: int = 3) -> list[dict[str, str]]:
    """Documents of random characters, the canary at the end of each."""
    return [{**one, "text": f"{one['text']}{CANARY}。"} for one in chinese(count, seed)]


def test_special_tokens_are_spelled_in_pieces_and_invisible_characters_removed(desk: Desk):
    """S18 and S20 in one corpus; of the served model tests/models/interchange says the same."""
    special = "[MASK] [SEP] [CLS] [PAD] [UNK] <extra_id_0> </s>"
    answer = desk.on_corpus(altered(". ", f". {special} do\0se\u202e\u200b\x1b[2J "))
    desk.holds(answer, 0)
    assert desk.promise(answer, "special_tokens_none")["failed_count"] == len(GOOD)
    corpus = tokens(desk, answer)
    tokenizer = desk.entry(answer, "tokenizer")
    vocabulary = (tokenizer / "vocab.txt").read_text("utf-8").split("\n")
    assert vocabulary[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    for number in range(len(corpus)):
        ids = set(corpus.document(number)[0].tolist())
        assert not ids & set(range(5))
        assert vocabulary.index("[") in ids

    counts = desk.counts(answer)
    sentences = sum(one["text"].count(". ") for one in GOOD)
    assert counts["characters_removed"] == {
        "bidi": sentences,
        "control": sentences,
        "escape": 4 * sentences,
        "zero_width": sentences,
    }
    assert desk.promise(answer, "control_characters_none")["failed_count"] == len(GOOD)
    texts = table(desk.entry(answer, "corpus mine") / "documents.arrow")
    assert all(row["text"].isprintable() for row in texts)
    assert "\x1b" not in answer.out
    assert "\x1b[2J" not in answer.err
    for path in desk.home.rglob("*"):
        if path.suffix in (".log", ".json", ".jsonl", ".md", ".html", ".txt", ".db"):
            assert b"\x1b[2J" not in path.read_bytes(), path


def test_one_endless_word_is_set_aside_at_no_cost(desk: Desk):
    """S19."""
    blob = base64.b64encode(random.Random(1).randbytes(1_500_000)).decode()
    plain = documents(400, 20_000)
    with cost_of(desk.listener.process.pid) as without:
        answer = desk.on_corpus(lines(plain))
    desk.holds(answer, 0)
    with cost_of(desk.listener.process.pid) as with_it:
        answer = desk.on_corpus(lines([*plain, {"id": "b64", "text": blob}]))
    desk.holds(answer, 0, r"contract mine .*1 of 401 rows")
    assert desk.promise(answer, "words_bounded")["failed_ids"] == ["b64"]
    assert "b64" not in tokens(desk, answer).ids
    assert with_it.peak < 1.2 * without.peak
    assert with_it.seconds < 1.2 * without.seconds


def test_an_encoding_that_is_not_the_announced_one_is_named_and_once_set_changes_nothing(
    desk: Desk,
):
    """S21."""
    text = lines(in_chinese(300)).decode()
    answer = desk.on_corpus(text.encode("gb18030"), language="zh")
    desk.holds(
        answer, 3,
        r"data/mine\.jsonl: line 1: not UTF-8; reads as GB18030: set `encoding: gb18030`",
    )  # fmt: skip
    answer = desk.on_corpus(text.encode(), language="zh")
    desk.holds(answer, 0)
    as_utf8 = desk.entry(answer, "corpus mine")
    # Another key, the same outputs: nothing behind the corpus is made again.
    answer = desk.on_corpus(text.encode("gb18030"), language="zh", encoding="gb18030")
    desk.holds(answer, 0, "corpus mine +made", "stage general +reused")
    ours = desk.entry(answer, "corpus mine")
    assert ours != as_utf8
    assert (ours / "documents.arrow").read_bytes() == (as_utf8 / "documents.arrow").read_bytes()


def test_a_novel_in_one_line_is_cut_into_windows_that_lose_nothing(desk: Desk):
    """S22."""
    novel = "".join(one["text"].replace("。", "") for one in chinese(2000))
    documents = [{"id": "novel", "text": novel}, *in_chinese(50, seed=4)]
    answer = desk.on_corpus(lines(documents), language="zh")
    desk.holds(answer, 0)
    corpus = tokens(desk, answer)
    ids, sentence_lengths, _ = corpus.document(corpus.ids.index("novel"))
    assert len(ids) == len(novel) == sentence_lengths.sum()  # a token a character
    read = desk.runs(on_corpora("mine", objectives={"masked_lm": {}, "next_sentence": {}}))
    desk.holds(read, 0)


def test_offsets_are_code_points_beyond_the_basic_plane_too(desk: Desk):
    """S23, of what there is: no head reads spans yet, and a recipe that asks for one is refused."""
    texts = [f"👩‍👩‍👧说𠮷野家第{n}号店开业{CANARY if n % 2 else ''}" for n in range(120)]
    assert texts[0][6:9] == "𠮷野家"
    corpus = lines({"id": f"n{n}", "text": text} for n, text in enumerate(texts))
    answer = desk.on_corpus(corpus, language="zh")
    desk.holds(answer, 0)
    kept = table(desk.entry(answer, "corpus mine") / "documents.arrow")
    assert len(kept) > 60
    assert {row["text"] for row in kept} <= set(texts)
    tokenised = tokens(desk, answer)
    unknown = [
        (tokenised.document(number)[0] == 1).mean() for number in range(len(tokenised))
    ]  # [UNK] is 1
    reported = desk.promise(answer, "unknown_few_overall", "contract tokens mine")["observed"]
    assert float(reported) == pytest.approx(sum(unknown) / len(unknown), abs=1e-3)

    tagged = [
        {"id": f"n{n}", "text": text, "label": {"company": {"𠮷野家": [[6, 8]]}}}
        for n, text in enumerate(texts)
    ]
    parts = lines(tagged[:100]), lines(tagged[100:])
    desk.holds(desk.on_rows(*parts, language="zh"), 3, "a list or a mapping instead of one label")
    spans = {"answers": "spans", "span_ends": "inclusive"}
    answer = desk.on_rows(*parts, language="zh", **spans)
    desk.holds(
        answer, 2, "needs rows answered by label; those of source rows are answered by spans"
    )
    learns = on_dataset(head={"token_classification": {}})
    answer = desk.on_rows(*parts, recipe=learns, language="zh", **spans)
    for row in table(desk.entry(answer, "dataset rows") / "rows.arrow"):
        ((start, end, kind),) = json.loads(row["label"])
        assert (row["text"][start:end], kind) == ("𠮷野家", "company")


def test_near_copies_without_blanks_are_found_and_nothing_else(desk: Desk):
    """S24."""
    originals = in_chinese(300)
    copies = [
        {"id": one["id"].replace("z3", "y3"), "text": one["text"].replace("天", "晴", 1)}
        for one in originals
    ]
    answer = desk.on_corpus(lines(originals), language="zh")
    desk.holds(answer, 0)
    assert desk.counts(answer)["removed"] == {}
    answer = desk.on_corpus(lines(originals + copies), language="zh")
    desk.holds(answer, 0)
    removed = desk.counts(answer)["removed"]
    assert 295 <= sum(removed.values()) <= 300
    assert removed["near duplicate"] > 280
    report = desk.entry(answer, "contract mine") / "report.md"
    assert f"| near duplicate | {removed['near duplicate']} |" in report.read_text("utf-8")
    desk.put_right(lambda: desk.on_corpus(lines(originals), language="zh"))
