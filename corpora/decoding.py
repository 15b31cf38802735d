"""Decodes bytes strictly, without guessing; errors give the offset and a hint.

Only the hint is guessed, by charset-normalizer.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from corpora.archives import Content
from corpora.limits import MEBIBYTE
from corpora.readers import Raw
from corpora.streams import Peekable, ReadsBytes, byte_lines
from data_contracts.records import Rejected
from data_contracts.sources import Source, has_half_character
from fourstage.errors import ContractViolation

SAMPLE_BYTES = 256 * 1024

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MAGIC = (
    (b"\x1f\x8b", "gzip data; its name should end in .gz"),
    (b"BZh", "bzip2 data; its name should end in .bz2"),
    (b"PK\x03\x04", "a zip archive (or an office document); a zip's name should end in .zip"),
    (b"PAR1", "a Parquet file; its name should end in .parquet"),
    (b"%PDF", "a PDF"),
    (b"\x7fELF", "a program"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"\xfd7zXZ", "xz data, which is not read; unpack it"),
    (b"\x28\xb5\x2f\xfd", "zstd data, which is not read; unpack it"),
    (b"SQLite format 3", "a database"),
)
# The encodings that a hint can name. Told apart from more, Western text often gets a wrong one.
_NAMED = ["gb18030", "big5", "cp932", "euc_jp", "cp949", "cp1251", "koi8_r", "cp1252"]
_FEW = 16  # bytes beyond ASCII that tell too little
# Codecs in which byte 0x0A is always a line end, so lines can be split before decoding.
_LINE_SAFE = (
    "utf-8",
    "utf-8-sig",
    "ascii",
    "gb18030",
    "gbk",
    "gb2312",
    "big5",
    "big5hkscs",
    "cp950",
    "euc_jp",
    "euc_kr",
    "shift_jis",
    "cp932",
    "cp949",
    "koi8-r",
    "koi8-u",
)


def lines(content: Content, source: Source) -> Iterator[tuple[int, str] | Rejected]:
    r"""Decoded lines with their number, including their ``\n``; undecodable ones as `Rejected`.

    A byte order mark is dropped. If the whole file is in another encoding, the error names it.

    Raises:
        ContractViolation: The file is binary, in another encoding, or has too long a line.
    """
    for number, line, fault in all_lines(content, source):
        yield fault or (number, line)


def all_lines(content: Content, source: Source) -> Iterator[tuple[int, str, Rejected | None]]:
    """The same for records of several lines: each line with its fault, if it can't be decoded.

    Such a line has marks of replacement in place of what can't be decoded. It is not to be kept,
    but tells where its record ends.
    """
    peek = Peekable(content.stream, SAMPLE_BYTES)
    encoding = _encoding_of(content, source, peek.head)
    stream: ReadsBytes = peek
    if not _line_safe(encoding):
        stream, encoding = _Transcoded(peek, encoding, content.where), "utf-8"
    first = True
    tried = False
    for number, offset, raw in byte_lines(stream, content.where):
        if first:
            first = False
            is_utf8 = codecs.lookup(encoding).name.startswith("utf-8")
            raw = raw.removeprefix(codecs.BOM_UTF8) if is_utf8 else raw
        try:
            yield number, raw.decode(encoding), None
        except UnicodeDecodeError as error:
            if not tried:
                tried = True
                _refuse_other_encoding(content, encoding, number, peek.head)
            fault = Rejected(
                f"{content.name}:{number}",
                f"{content.name}:{number}",
                f"not {encoding}",
                detail=f"byte {offset + error.start} of the file",
            )
            yield number, raw.decode(encoding, "replace"), fault


def whole(
    content: Content,
    source: Source,
    limit: int,
    remedy: str = "set `document: paragraphs` (or line) to split it",
) -> str | Rejected:
    """The text of a whole file, or the reason why it cannot be decoded.

    Args:
        content: What to read.
        source: Its encodings are tried in order.
        limit: Most bytes that one document may have.
        remedy: What to do about a longer one, for the message.

    Raises:
        ContractViolation: It is binary, longer than `limit`, or in another, recognised encoding.
    """
    peek = Peekable(content.stream, limit + 1)
    data = peek.head
    if len(data) > limit:
        raise ContractViolation(
            f"{content.where}: one document of more than {limit // MEBIBYTE} MiB; {remedy}."
        )
    fitting, text = source.encoding[0], None
    for encoding in source.encoding:
        try:
            text = data.decode("utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding)
        except (UnicodeDecodeError, UnicodeError):
            continue
        fitting = encoding
        break
    _refuse_binary(content, fitting, data)
    if text is not None:
        return text
    try:
        data.decode(source.encoding[-1])
        start = 0
    except UnicodeDecodeError as error:
        start = error.start
    except UnicodeError:
        start = 0
    hint = named_encoding(data)
    if hint and hint not in ("cp1252",):
        raise ContractViolation(
            _other(content, source.encoding[0], 1 + data.count(b"\n", 0, start), hint)
        )
    return Rejected(
        f"{content.name}:1",
        f"{content.name}:{1 + data.count(bytes([10]), 0, start)}",
        f"not {source.encoding[0]}"
        if len(source.encoding) == 1
        else "in none of the encodings named",
        detail=f"byte {start} of the file" + (f"; reads as {hint}" if hint else ""),
    )


def check_text(values: Raw, name: str) -> Raw | Rejected:
    """The record, unless a text has half a surrogate pair, which cannot be written to a file."""
    if any(map(has_half_character, values.values.values())):
        location = f"{name}:{values.line}"
        return Rejected(location, location, "half a surrogate pair in the text")
    return values


def _encoding_of(content: Content, source: Source, head: bytes) -> str:
    """The encoding of a file read line by line: the first listed one that fits its beginning."""
    fitting = source.encoding[-1]
    for encoding in source.encoding[:-1]:
        decoder = codecs.getincrementaldecoder(encoding)("strict")
        try:
            decoder.decode(head, final=len(head) < SAMPLE_BYTES)
        except (UnicodeDecodeError, UnicodeError):
            continue
        fitting = encoding
        break
    _refuse_binary(content, fitting, head)
    return fitting


def _line_safe(encoding: str) -> bool:
    name = codecs.lookup(encoding).name
    return name in _LINE_SAFE or name.startswith(("iso8859", "cp12", "cp8", "latin"))


def _refuse_binary(content: Content, encoding: str, head: bytes) -> None:
    wide = codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    if not wide and (marked := marked_encoding(head)):
        raise ContractViolation(_other(content, encoding, 1, marked))
    for magic, what in _MAGIC:
        if head.startswith(magic):
            raise ContractViolation(f"{content.where}: expected text, got {what}.")
    position = -1 if wide else head[:8192].find(b"\0")
    if position >= 0:
        raise ContractViolation(
            f"{content.where}: expected text, got binary data (a NUL at byte {position})."
        )


def _other(content: Content, encoding: str, line: int, name: str) -> str:
    return (
        f"{content.where}: line {line}: not {encoding.upper()}; reads as {name.upper()}: set "
        f"`encoding: {name}`."
    )


def _refuse_other_encoding(content: Content, encoding: str, number: int, head: bytes) -> None:
    """At the first undecodable line, decide whether the line is at fault or the whole file."""
    lines = head.split(b"\n")[:2000]
    beyond_ascii = [line for line in lines if not line.isascii()]
    bad = [line for line in beyond_ascii if not _decodes(line, encoding)]
    # A few bad rows are bad rows, and text in another encoding hardly ever decodes.
    if 5 * len(bad) < len(lines) or 2 * len(bad) < len(beyond_ascii):
        return
    name = named_encoding(b"\n".join(bad))
    if name and codecs.lookup(name).name != codecs.lookup(encoding).name:
        raise ContractViolation(_other(content, encoding, number, name))


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except (UnicodeDecodeError, UnicodeError):
        return False
    return True


def marked_encoding(head: bytes) -> str | None:
    """The encoding that a byte order mark of UTF-16 or UTF-32 names."""
    return next((name for mark, name in _BOMS if head.startswith(mark)), None)


def encoding_of(head: bytes) -> str:
    """UTF-8 if it fits the beginning of a file, else a plausible encoding."""
    if marked := marked_encoding(head):
        return marked
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(head)
    except UnicodeDecodeError:
        return named_encoding(head) or "utf-8"
    return "utf-8"


def named_encoding(data: bytes) -> str | None:
    """A plausible encoding of bytes that are not UTF-8."""
    from charset_normalizer import from_bytes

    if len(data) >= SAMPLE_BYTES:  # a character may be cut in two
        data = data[: data.rfind(b"\n", 0, SAMPLE_BYTES) + 1] or data[:SAMPLE_BYTES]
    if _decodes(data, "utf-8"):
        return None
    few = sum(byte > 127 for byte in data) < _FEW
    best = from_bytes(data, cp_isolation=["cp1252"] if few else _NAMED).best()
    return best.encoding if best else None


class _Transcoded:
    """A stream in UTF-8, for encodings whose lines cannot be split before decoding."""

    def __init__(self, stream: ReadsBytes, encoding: str, where: str):
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)("strict")
        self._encoding = encoding
        self._where = where
        self._taken = 0
        self._ended = False

    def read(self, size: int = -1, /) -> bytes:
        while not self._ended:
            piece = self._stream.read(MEBIBYTE)
            self._ended = not piece
            try:
                text = self._decoder.decode(piece, final=self._ended)
                out = text.encode("utf-8")
            except (UnicodeDecodeError, UnicodeError) as error:
                near = self._taken + getattr(error, "start", 0)
                raise ContractViolation(
                    f"{self._where}: not {self._encoding} near byte {near:,}; correct `encoding` "
                    "or the file."
                ) from error
            self._taken += len(piece)
            if out:
                return out
        return b""
