"""Files of data that are wrong (S07–S12): named with their place, or set aside and counted."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator

import pytest

from tests.faults.desk import Desk, documents, lines, on_corpora, table
from tests.flows.own_project import CANARY, FIELDS

GOOD = lines(documents())


@pytest.fixture(scope="module", autouse=True)
def put_right(desk: Desk) -> Iterator[None]:
    """The good corpus, which the desk was trained on, is found as it was after all faults."""
    yield
    desk.put_right(lambda: desk.on_corpus(GOOD))


def test_only_a_line_feed_ends_a_record(desk: Desk):
    """S07."""
    numbers = " ".join(map(str, range(60)))
    odd = f'{{"id":"u1","text":"one\u2028two\x85three\\u2029four {numbers}"}}\n'
    answer = desk.on_corpus(GOOD + odd.encode())
    desk.holds(answer, 0)
    counts = desk.counts(answer)
    assert (counts["read"], counts["kept"], counts["quarantined"]) == (201, 201, {})


def test_gzip_members_follow_each_other_and_nothing_follows_them(desk: Desk):
    """S08."""
    two = gzip.compress(lines(documents(100))) + gzip.compress(lines(documents(100, 100)))
    on_gzip = "mine.jsonl.gz"
    answer = desk.on_corpus(two, on_gzip)
    desk.holds(answer, 0)
    assert desk.counts(answer)["read"] == 200
    desk.holds(
        desk.on_corpus(two + b"rubbish\n", on_gzip), 3,
        r"data/mine\.jsonl\.gz: data after the end of the gzip stream",
    )  # fmt: skip
    desk.holds(desk.on_corpus(two[:-40], on_gzip), 3, r"mine\.jsonl\.gz.*(truncated|damaged)")
    desk.put_right(lambda: desk.on_corpus(two, on_gzip))


def test_a_quote_that_is_never_closed_names_the_line_it_opens_in(desk: Desk):
    """S09."""
    text = "text,label\n" + f'"{CANARY} never closed,pos\n'
    text += "".join(f"a fine film number {n},pos\na poor film number {n},neg\n" for n in range(200))
    fields = {"text": "text", "label": "label"}
    test = b"text,label\na film of another kind,pos\n"
    answer = desk.on_rows(text.encode(), test, "csv", fields=fields)
    desk.holds(answer, 3, r"data/train\.csv: line 2: a quote opens here and is never closed")


def test_a_file_that_grows_is_read_as_it_was_or_refused(desk: Desk):
    """S10: never the digest of one state with the rows of another."""
    file = desk.data("mine.jsonl")
    file.write_bytes(lines(documents(20_000, 10_000)))
    ended = threading.Event()

    def grow() -> None:
        first = 100_000
        while not ended.wait(0.05):
            with open(file, "ab") as stream:
                stream.write(lines(documents(20, first)))
            first += 20

    growing = threading.Thread(target=grow)
    growing.start()
    answer = desk.on_corpus(None)
    ended.set()
    growing.join()
    desk.holds(answer, 3, r"data/mine\.jsonl: changed while being read: [\d,]+ bytes when the run")
    for path in (desk.home / "store" / "corpus").glob("*/counts.json"):
        assert json.loads(path.read_text("utf-8"))["read"] < 20_000


def test_a_pattern_without_files_and_a_dangling_link_are_named(desk: Desk):
    """S11."""
    desk.project.source("mine", files=["none/*.jsonl"], fields=FIELDS)
    answer = desk.runs(on_corpora("mine"))
    desk.holds(answer, 3, r"the pattern 'none/\*\.jsonl' matches nothing", "looked in .*项目")
    link = desk.data("link.jsonl")
    link.symlink_to(desk.data("gone.jsonl"))
    answer = desk.on_corpus(None, "link.jsonl")
    desk.holds(answer, 3, r"data/link\.jsonl: expected a file, got a link to .*gone\.jsonl")
    link.unlink()


def test_one_byte_of_latin_1_sets_its_row_aside(desk: Desk):
    """S12."""
    good = GOOD.splitlines(keepends=True)
    before = sum(map(len, good[:6]))
    place = good[6].index(b" ")
    torn = [*good]
    torn[6] = good[6][:place] + b" caf\xe9" + good[6][place:]
    answer = desk.on_corpus(b"".join(torn))
    desk.holds(answer, 0, r"corpus mine .*199 of 200 documents kept \(1 not utf-8\)")
    folder = desk.entry(answer, "corpus mine")
    [rejected] = [json.loads(line) for line in open(folder / "rejected.jsonl")]
    assert rejected["location"] == "data/mine.jsonl:7"
    assert rejected["detail"] == f"byte {before + place + 4} of the file"
    assert "\ufffd" not in "".join(row["text"] for row in table(folder / "documents.arrow"))


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("absent.jsonl", None, r"'data/absent\.jsonl' matches nothing"),
        ("empty.jsonl", b"", r"data/empty\.jsonl is empty \(0 bytes\)"),
        (
            "binary.txt",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(200),
            r"binary\.txt.*expected text",
        ),
        ("lone.txt", f"Größe {CANARY} über alle Maßen\n".encode("latin-1"), "correct .*'encoding'"),
        (
            "latin.jsonl",
            lines({"id": n, "text": f"Größe {n} {CANARY} über alle"} for n in range(90))
            .decode()
            .encode("latin-1"),
            r"latin\.jsonl: line 1: not UTF-8; reads as CP1252",
        ),
        ("fieldless.jsonl", lines([{"id": "b", "body": CANARY}]), "no field 'text'.*fieldless"),
    ],
)
def test_a_file_that_cannot_be_read_names_itself(
    desk: Desk, file: str, content: bytes | None, words: str
):
    desk.holds(desk.on_corpus(content, file), 3, words)


def test_malformed_lines_are_set_aside_until_they_are_too_many(desk: Desk):
    def torn(every: int) -> bytes:
        good = GOOD.splitlines(keepends=True)
        for number in range(4, len(good), every):
            good[number] = good[number][: len(good[number]) // 2] + b"\n"
        return b"".join(good)

    answer = desk.on_corpus(torn(5))
    desk.holds(answer, 3, "mine.*40 of 200 rows", r"not JSON: data/mine\.jsonl:5,", r"report\.html")
    answer = desk.on_corpus(torn(1000))
    desk.holds(answer, 0, r"corpus mine .*199 of 200 documents kept \(1 not JSON\)")
    rejected = desk.entry(answer, "corpus mine") / "rejected.jsonl"
    assert rejected.stat().st_mode & 0o777 == 0o600
    assert "data/mine.jsonl:5" in rejected.read_text("utf-8")


def test_a_batch_larger_than_all_examples_is_refused(desk: Desk):
    desk.put_right(lambda: desk.on_corpus(GOOD))
    answer = desk.runs(on_corpora("mine", batch_size=8192))
    desk.holds(
        answer, 3, r"mine: \d+ documents or rows give [\d,]+ examples", "8,?192", "batch_size"
    )
