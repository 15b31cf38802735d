"""Archives that attack (S44, S45): read as streams, never unpacked, stopped early."""

from __future__ import annotations

import gzip
import io
import tarfile

from tests.faults.desk import Desk, cost_of, documents, lines


def test_a_link_in_an_archive_is_refused_and_nothing_is_written_through_it(desk: Desk):
    """S44."""
    escape = desk.project.folder / "escape"
    escape.mkdir()
    with tarfile.open(desk.data("mine.tar.gz"), "w:gz") as archive:
        link = tarfile.TarInfo("d")
        link.type, link.linkname = tarfile.SYMTYPE, str(escape)
        archive.addfile(link)
        through = tarfile.TarInfo("d/x.txt")
        through.size = 4
        archive.addfile(through, io.BytesIO(b"evil"))
    answer = desk.on_corpus(None, "mine.tar.gz")
    desk.holds(answer, 3, r"data/mine\.tar\.gz: member 'd' is a link; refused\. Pack plain files")
    assert not list(escape.iterdir())

    # Put right, with two members of one name: what is wrong in each is counted.
    with tarfile.open(desk.data("mine.tar.gz"), "w:gz") as archive:
        for first in (0, 100):
            good = lines(documents(100, first)) + b"{\n"
            plain = tarfile.TarInfo("d/x.jsonl")
            plain.size = len(good)
            archive.addfile(plain, io.BytesIO(good))
    answer = desk.on_corpus(None, "mine.tar.gz")
    desk.holds(
        answer, 0,
        r"200 of 202 documents kept \(2 not JSON\)", r"contract mine .*2 of 202 rows",
    )  # fmt: skip


def test_gigabytes_of_zeros_cost_neither_time_nor_memory_nor_disk(desk: Desk):
    """S45."""
    bomb = gzip.compress(bytes(1 << 26)) * 32  # members follow each other: 2 GiB in 2 MiB
    assert len(bomb) < 3 << 20

    def stored() -> int:
        return sum(path.stat().st_size for path in desk.home.rglob("*") if path.is_file())

    before = stored()
    with cost_of(desk.listener.process.pid) as cost:
        answer = desk.on_corpus(bomb, "mine.txt.gz")
    desk.holds(
        answer, 3, r"data/mine\.txt\.gz: .*(text does not compress so well|more than \d+ MiB)"
    )
    assert answer.seconds < 60
    assert cost.peak - cost.before < 1000
    assert stored() - before < 10 << 20
