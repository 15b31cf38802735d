"""Reads the members of an archive one after the other as streams; unpacks nothing to disk."""

from __future__ import annotations

import fnmatch
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from tarfile import EOFHeaderError, HeaderError, ReadError  # pyright: ignore[reportAttributeAccessIssue]
from typing import BinaryIO, Self, cast

from corpora.file_state import FileState
from corpora.files import ARCHIVES
from corpora.limits import MAX_MEMBERS
from corpora.streams import RatioGuard, ReadsBytes, decompressed, open_file
from data_contracts.sources import has_half_character
from fourstage.errors import ContractViolation

TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2")

# zipfile decompresses the other methods without a bound: 200 bytes can become gigabytes at once.
ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

# What the two libraries raise on damaged input, in addition to our own errors.
_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    UnicodeError,
    ValueError,
    struct.error,
    zlib.error,
    OSError,
)


@dataclass(frozen=True)
class Content:
    """Something a reader reads: a file, or a member of an archive.

    Attributes:
        name: Used in ids and locations; the member follows ``!``.
        where: Used in messages: the full path; the member follows ``!``.
        stream: Its decompressed bytes; read them before requesting the next content.
        state: The file it comes from.
    """

    name: str
    where: str
    stream: ReadsBytes
    state: FileState


def contents(state: FileState) -> Iterator[Content]:
    """A plain file itself, or each wanted member of an archive, in archive order.

    Raises:
        ContractViolation: The file is damaged, has changed or is not an archive; it contains links
            or paths that escape it; or no member is wanted.
    """
    lowered = state.name.lower()
    with open_file(state) as raw:
        if lowered.endswith(TAR_SUFFIXES):
            yield from _checked(state, _tar(state, raw))
        elif lowered.endswith(".zip"):
            yield from _checked(state, _zip(state, raw))
        elif state.members:
            raise ContractViolation(
                f"{state.path}: '!{state.members}' names members, but this is not an archive; "
                "expected .zip, .tar, .tar.gz, .tgz or .tar.bz2."
            )
        else:
            stream = decompressed(raw, state.name, state.path)
            yield Content(state.name, state.path, _Sound(stream, state.path), state)


def is_wanted(name: str, pattern: str) -> bool:
    """Whether to read a member: it matches the pattern, or without one is not hidden or Apple's."""
    if pattern:
        return fnmatch.fnmatchcase(name, pattern)
    parts = name.split("/")
    return not any(part.startswith(".") or part == "__MACOSX" for part in parts if part != ".")


def _checked(state: FileState, members: Iterator[Content]) -> Iterator[Content]:
    found = False
    for content in members:
        found = True
        if content.name.lower().endswith(ARCHIVES):
            raise ContractViolation(
                f"{content.where}: an archive inside an archive; archives are read one level deep. "
                "Unpack it, or name the members to read, as in 'archive.zip!*.jsonl'."
            )
        yield content
    if not found:
        wanted = f"member that matches {state.members!r}" if state.members else "member to read"
        raise ContractViolation(f"{state.path}: expected a {wanted}, found none in the archive.")


class _Sound:
    """A stream that raises our error when it turns out to be damaged."""

    def __init__(self, stream: ReadsBytes, where: str, guard: RatioGuard | None = None):
        self._stream = stream
        self._where = where
        self._guard = guard

    def read(self, size: int = -1, /) -> bytes:
        try:
            piece = self._stream.read(size)
        except ContractViolation:
            raise
        except _DAMAGE as error:
            raise _damaged(self._where, error) from error
        if self._guard is not None:
            self._guard.given += len(piece)
            self._guard.check()
        return piece


class _Header(tarfile.TarInfo):
    """The header of a member. tarfile takes a damaged or cut one for the end of the archive."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tarfile)
        except EOFHeaderError:  # zeros: the end
            raise
        except HeaderError as error:
            raise ReadError(f"at byte {tarfile.offset:,}: {error}") from error


def _damaged(where: str, error: BaseException) -> ContractViolation:
    # Messages of these libraries name formats and offsets, never content.
    said = str(error).split("\n")[0][:100] if not isinstance(error, UnicodeError) else "its names"
    return ContractViolation(f"{where}: damaged or truncated ({said}); get the file again.")


def _refuse_name(state: FileState, name: str) -> None:
    path = name.replace("\\", "/")
    if not path:
        raise ContractViolation(f"{state.path}: a member has no name; refused. Pack it again.")
    if path.startswith("/") or path[1:2] == ":":
        raise ContractViolation(
            f"{state.path}: member {name[:120]!r} has an absolute path; refused."
        )
    if ".." in path.split("/"):
        raise ContractViolation(
            f"{state.path}: member {name[:120]!r} leads out of the archive; refused."
        )


def _member(name: str, where: str, stream: _Sound, state: FileState) -> Content:
    """A member, which may be compressed by itself, as ``a.jsonl.gz``."""
    unpacked = decompressed(cast(BinaryIO, stream), name, where)
    return Content(f"{state.name}!{name}", where, unpacked, state)


def _tar(state: FileState, raw: BinaryIO) -> Iterator[Content]:
    suffixless = state.name.lower().removesuffix("bz2").removesuffix("gz")
    name = state.name if suffixless != state.name.lower() else ""
    stream = _Sound(decompressed(raw, name, state.path), state.path)
    try:
        # "r|" reads strictly forward, so memory does not grow with the size of the tar.
        archive = tarfile.open(fileobj=cast(BinaryIO, stream), mode="r|", tarinfo=_Header)
    except ContractViolation:
        raise
    except _DAMAGE as error:
        raise _damaged(state.path, error) from error
    with archive:
        number = 0
        while True:
            try:
                member = archive.next()
            except ContractViolation:
                raise
            except _DAMAGE as error:
                raise _damaged(state.path, error) from error
            if member is None:
                break
            # tarfile keeps every header it has read; reading forward does not need them.
            archive.members = []  # pyright: ignore[reportAttributeAccessIssue]
            number += 1
            if number > MAX_MEMBERS:
                raise ContractViolation(
                    f"{state.path}: expected at most {MAX_MEMBERS:,} members, got more; pack them"
                    " in several archives."
                )
            _refuse_name(state, member.name)
            if member.issym() or member.islnk():
                raise ContractViolation(
                    f"{state.path}: member {member.name[:120]!r} is a link; refused. Pack plain "
                    "files."
                )
            if member.isdir() or not is_wanted(member.name, state.members):
                continue
            # A sparse member consists mostly of holes: a kilobyte can claim to be a terabyte.
            if not member.isreg() or member.issparse():
                raise ContractViolation(
                    f"{state.path}: member {member.name[:120]!r} is not a plain file; refused."
                    " Pack plain files."
                )
            try:
                body = archive.extractfile(member)
            except _DAMAGE as error:
                raise _damaged(state.path, error) from error
            assert body is not None
            if has_half_character(member.name):
                raise ContractViolation(
                    f"{state.path}: member {member.name[:120]!r}: the name is not UTF-8; rename it "
                    "and pack again."
                )
            where = f"{state.path}!{member.name}"
            yield _member(member.name, where, _Sound(body, where), state)
        # Read to the very end, to detect truncation and trailing data; padding is zeros.
        while piece := cast(BinaryIO, archive.fileobj).read(1 << 20):
            if piece.strip(b"\0"):
                raise ContractViolation(
                    f"{state.path}: data after the end of the tar; the file was damaged or joined "
                    "with something else."
                )


def _zip(state: FileState, raw: BinaryIO) -> Iterator[Content]:
    try:
        archive = zipfile.ZipFile(raw)
        members = archive.infolist()
    except _DAMAGE as error:
        raise _damaged(state.path, error) from error
    if len(members) > MAX_MEMBERS:
        raise ContractViolation(
            f"{state.path}: expected at most {MAX_MEMBERS:,} members, got {len(members):,}; pack"
            " them in several archives."
        )
    with archive:
        for member in members:
            _refuse_name(state, member.filename)
            if stat.S_ISLNK(member.external_attr >> 16):
                raise ContractViolation(
                    f"{state.path}: member {member.filename[:120]!r} is a link; refused. Pack "
                    "plain files."
                )
            if member.is_dir() or not is_wanted(member.filename, state.members):
                continue
            if member.flag_bits & 0x1:
                raise ContractViolation(
                    f"{state.path}: member {member.filename[:120]!r} is encrypted; pack it "
                    "without encryption."
                )
            if member.compress_type not in ZIP_METHODS:
                raise ContractViolation(
                    f"{state.path}: member {member.filename[:120]!r}: expected deflate or no "
                    f"compression, got method {member.compress_type}; pack it again with deflate."
                )
            where = f"{state.path}!{member.filename}"
            # The archive's own statement of its size may be false.
            guard = RatioGuard(where, min(member.compress_size, state.size))
            try:
                body = archive.open(member)
            except _DAMAGE as error:
                raise _damaged(where, error) from error
            with body:
                yield _member(member.filename, where, _Sound(body, where, guard), state)
