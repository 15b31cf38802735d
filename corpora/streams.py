"""Streams of untrusted bytes: plain, gzip or bzip2, with bounded memory."""

from __future__ import annotations

import bz2
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Protocol, cast

from corpora.file_state import FileState, check_unchanged
from corpora.limits import MAX_LINE_BYTES, MAX_RATIO, MEBIBYTE, RATIO_FLOOR_BYTES
from fourstage.errors import ContractViolation

_CHUNK = 256 * 1024


class ReadsBytes(Protocol):
    """The part of the stream interface that readers may use."""

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes; none at the end."""
        ...


@contextmanager
def open_file(state: FileState) -> Iterator[BinaryIO]:
    """The raw bytes of a file, which must be and remain the one of the snapshot.

    Raises:
        ContractViolation: It is gone, cannot be read, or has changed since the snapshot.
    """
    if "://" in state.path:
        import fsspec

        try:
            with cast(BinaryIO, fsspec.open(state.path, "rb")) as stream:
                yield stream
        except OSError as error:
            raise ContractViolation(f"{state.path}: cannot be read ({error}).") from error
        return
    try:
        stream = open(state.path, "rb")
    except OSError as error:
        raise ContractViolation(f"{state.path}: cannot be read ({error.strerror}).") from error
    with stream:
        check_unchanged(state, os.fstat(stream.fileno()))
        yield stream
        check_unchanged(state, os.fstat(stream.fileno()))


def decompressed(stream: BinaryIO, name: str, path: str) -> ReadsBytes:
    """The content of a file: decompressed if its name ends in ``.gz``, ``.tgz`` or ``.bz2``."""
    lowered = name.lower()
    if lowered.endswith((".gz", ".tgz")):
        return _Decompressed(stream, "gzip", path)
    if lowered.endswith(".bz2"):
        return _Decompressed(stream, "bzip2", path)
    return stream


class RatioGuard:
    """Counts the input and output of a decompressor, to stop a decompression bomb early."""

    def __init__(self, path: str, taken: int = 0, given: int = 0):
        self.path = path
        self.taken = taken
        self.given = given

    def check(self) -> None:
        """Check the ratio of output to input.

        Raises:
            ContractViolation: The ratio is higher than text can reach.
        """
        if self.given > RATIO_FLOOR_BYTES and self.given > MAX_RATIO * max(self.taken, 1):
            raise ContractViolation(
                f"{self.path}: {self.taken:,} compressed bytes already gave {self.given:,}, more "
                f"than {MAX_RATIO} times as many; text does not compress so well. Reading stopped."
            )


class _Decompressed:
    """A decompressing stream of bounded memory that accepts several members and nothing else.

    The standard library's readers do not do: for bytes after the last member gzip raises the same
    error as for a file that is not gzip at all, and bz2 drops them silently.
    """

    def __init__(self, stream: ReadsBytes, kind: str, path: str):
        self._stream = stream
        self._kind = kind
        self._path = path
        self._guard = RatioGuard(path)
        self._member: zlib._Decompress | bz2.BZ2Decompressor | None = None
        self._waiting = b""  # compressed bytes not yet taken
        self._ready = b""  # decompressed bytes not yet given
        self._members = 0
        self._done = False

    def read(self, size: int = -1, /) -> bytes:
        if size is None or size < 0:  # pyright: ignore[reportUnnecessaryComparison]
            pieces = []
            while piece := self.read(_CHUNK):
                pieces.append(piece)
            return b"".join(pieces)
        while not self._ready and not self._done:
            self._ready = self._produce()
        given, self._ready = self._ready[:size], self._ready[size:]
        return given

    def _produce(self) -> bytes:
        if not self._waiting and not self._pending():
            self._waiting = self._stream.read(_CHUNK)
            self._guard.taken += len(self._waiting)
            if not self._waiting:
                return self._end()
        if self._member is None and not self._start():
            return b""
        assert self._member is not None
        try:
            if isinstance(self._member, bz2.BZ2Decompressor):
                out = self._member.decompress(self._waiting, _CHUNK)
                self._waiting = self._member.unused_data if self._member.eof else b""
            else:
                out = self._member.decompress(self._waiting, _CHUNK)
                self._waiting = self._member.unconsumed_tail or self._member.unused_data
        except (zlib.error, OSError, EOFError, ValueError) as error:
            raise ContractViolation(
                f"{self._path}: damaged {self._kind} data near byte {self._guard.taken:,}; get the "
                "file again."
            ) from error
        if self._member.eof:
            self._member = None
        self._guard.given += len(out)
        self._guard.check()
        return out

    def _pending(self) -> bool:
        """Whether the decompressor itself still has output."""
        member = self._member
        return isinstance(member, bz2.BZ2Decompressor) and not member.needs_input

    def _start(self) -> bool:
        """Begin the next member; False if only padding is left."""
        magic = b"\x1f\x8b" if self._kind == "gzip" else b"BZh"
        if self._members:
            # Zeros after the last member are block padding, as written by tapes and some tools.
            self._waiting = self._waiting.lstrip(b"\0")
        while self._waiting and len(self._waiting) < len(magic):
            more = self._stream.read(_CHUNK)
            self._guard.taken += len(more)
            if not more:
                break
            self._waiting += more
        if not self._waiting:
            return False
        if not self._waiting.startswith(magic):
            if self._members:
                raise ContractViolation(
                    f"{self._path}: data after the end of the {self._kind} stream; the file was "
                    "damaged or joined with something else."
                )
            raise ContractViolation(
                f"{self._path}: expected {self._kind} data by its name, got something else; "
                "correct the suffix or the file."
            )
        self._members += 1
        if self._kind == "gzip":
            self._member = zlib.decompressobj(wbits=31)
        else:
            self._member = bz2.BZ2Decompressor()
        return True

    def _end(self) -> bytes:
        self._done = True
        if self._member is not None:
            raise ContractViolation(
                f"{self._path}: ends in the middle of the {self._kind} stream (truncated); get the "
                "file again."
            )
        return b""


def byte_lines(stream: ReadsBytes, where: str) -> Iterator[tuple[int, int, bytes]]:
    r"""Lines as (number from 1, offset of the first byte, bytes with their ``\n``).

    Only ``\n`` ends a line: Unicode separators and ``\r`` inside a record belong to the record.

    Args:
        stream: Content in an encoding where byte 0x0A can only be a line end.
        where: File and member, for messages.

    Raises:
        ContractViolation: A line is longer than `MAX_LINE_BYTES`.
    """
    number, offset = 0, 0
    parts: list[bytes] = []
    held = 0
    while chunk := stream.read(MEBIBYTE):
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            piece = chunk[start : end + 1]
            line = b"".join((*parts, piece)) if parts else piece
            parts, held, start = [], 0, end + 1
            number += 1
            yield number, offset, line
            offset += len(line)
        if start < len(chunk):
            parts.append(chunk[start:])
            held += len(chunk) - start
        if held > MAX_LINE_BYTES:
            raise ContractViolation(
                f"{where}: line {number + 1} is longer than {MAX_LINE_BYTES // MEBIBYTE} MiB; "
                "expected one record per line."
            )
    if parts:
        yield number + 1, offset, b"".join(parts)


class Peekable:
    """A stream whose first bytes can be inspected before they are read."""

    def __init__(self, stream: ReadsBytes, size: int):
        pieces, held = [], 0
        while held < size and (piece := stream.read(size - held)):
            pieces.append(piece)
            held += len(piece)
        self.head = b"".join(pieces)
        self._rest = io.BytesIO(self.head)
        self._stream = stream

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes, starting with those already inspected."""
        piece = self._rest.read(size)
        if size is None or size < 0:  # pyright: ignore[reportUnnecessaryComparison]
            return piece + self._stream.read(size)
        return piece or self._stream.read(size)
