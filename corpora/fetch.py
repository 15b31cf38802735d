"""Downloads and verifies the published files of a source. A run never does this.

Not with pooch, which can't keep a file compressed under the digest of what was published; its
download alone is the lesser part of this file.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import shutil
import ssl
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from corpora.files import cache_folder
from data_contracts.sources import Origin, Source
from fourstage.digests import unfinished
from fourstage.errors import ContractViolation, EnvironmentFault

_CHUNK = 1 << 20
_TIMEOUT_SECONDS = 60
# What no answer raises, and one that breaks off; some of it is an OSError, as a full disk is.
_CUT_OFF = (
    urllib.error.URLError,
    http.client.HTTPException,
    ConnectionError,
    TimeoutError,
    ssl.SSLError,
)


@dataclass(frozen=True)
class Download:
    """One file to download.

    Attributes:
        url: Its address.
        sha256: Digest of the bytes as published.
        target: The file in the cache.
    """

    url: str
    sha256: str
    target: Path


def downloads(source: Source) -> list[Download]:
    """The files that `fetch` would download.

    Raises:
        ContractViolation: The source cannot be fetched, or does not say from where.
    """
    if source.fetch == "none" or not source.origin:
        where = ", ".join(origin.url for origin in source.origin)
        reason = (
            f"it is published at {where}, but not in the form used here"
            if where
            else (
                "its packages are installed with the project"
                if source.packages
                else "it names no origin"
            )
        )
        raise ContractViolation(
            f"source {source.name}: there is nothing to fetch ({reason}); set FOURSTAGE_DATA to "
            "the folder that its files are below."
        )
    return [download for origin in source.origin for download in _of(source, origin)]


def fetch(source: Source, say: Callable[[str], None] = lambda line: None) -> list[Path]:
    """Download every file of a source that the cache lacks or holds with a wrong digest.

    Args:
        source: A source with an origin.
        say: Called with a progress line for each file.

    Returns:
        The files in the cache.

    Raises:
        EnvironmentFault: The server cannot be reached or breaks off, or the disk is full.
        ContractViolation: A file has the wrong digest, or the source cannot be fetched.
    """
    done = []
    for download in downloads(source):
        if _is_there(download):
            say(f"{download.target.name}: there already")
        else:
            say(f"{download.target.name}: from {download.url}")
            _get(source, download)
        done.append(download.target)
    return done


def _of(source: Source, origin: Origin) -> Iterator[Download]:
    folder = cache_folder(source)
    if origin.files:
        for file in origin.files:
            name = file.save_as or file.path.rsplit("/", 1)[-1]
            yield Download(_address(source, origin, file.path), file.sha256, folder / name)
        return
    assert origin.sha256 is not None  # the schema requires it
    published = origin.path or urlsplit(origin.url).path
    name = origin.save_as or published.rsplit("/", 1)[-1]
    yield Download(_address(source, origin, origin.path), origin.sha256, folder / name)


def _address(source: Source, origin: Origin, path: str | None) -> str:
    """The URL of a file; a path in a GitHub repository is resolved at the source's commit."""
    if path is None:
        return origin.url
    parts = urlsplit(origin.url)
    if parts.netloc != "github.com" or not origin.commit:
        raise ContractViolation(
            f"source {source.name}: origin: a 'path' needs a repository on github.com and its "
            "'commit', or the whole address as 'url'."
        )
    repository = parts.path.strip("/")
    return f"https://raw.githubusercontent.com/{repository}/{origin.commit}/{quote(path)}"


def _is_there(download: Download) -> bool:
    """Whether the target holds what was published; the digest is that of the published bytes."""
    if not download.target.is_file():
        return False
    state = hashlib.sha256()
    opener = gzip.open if _compresses(download) else open
    try:
        with opener(download.target, "rb") as stream:
            while chunk := stream.read(_CHUNK):
                state.update(chunk)
    except (OSError, EOFError, zlib.error):
        return False
    return state.hexdigest() == download.sha256


def _compresses(download: Download) -> bool:
    return download.target.suffix == ".gz" and not download.url.endswith((".gz", ".tgz"))


def _get(source: Source, download: Download) -> None:
    target = download.target
    temporary = unfinished(target)
    state = hashlib.sha256()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        request = urllib.request.Request(download.url, headers={"User-Agent": "fourstage"})
        with (
            urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer,
            open(temporary, "wb") as stream,
        ):
            while chunk := answer.read(_CHUNK):
                state.update(chunk)
                stream.write(chunk)
            if missing := getattr(answer, "length", None):
                raise http.client.IncompleteRead(b"", missing)
        if state.hexdigest() != download.sha256:
            raise ContractViolation(
                f"source {source.name}: {download.url}: expected sha256 {download.sha256}, got "
                f"{state.hexdigest()}; the published file has changed. Nothing was kept."
            )
        if _compresses(download):
            _compress(temporary)
        os.replace(temporary, target)
    except urllib.error.HTTPError as error:
        raise EnvironmentFault(
            f"source {source.name}: {download.url} answered {error.code} {error.reason}; correct "
            "its origin."
        ) from error
    except _CUT_OFF as error:
        reason = str(getattr(error, "reason", error)).strip()
        raise EnvironmentFault(
            f"source {source.name}: {download.url} cannot be reached, or broke off ({reason}); "
            f"go online, try again, or put the file at {target} or below a folder of "
            "FOURSTAGE_DATA."
        ) from error
    except OSError as error:
        raise EnvironmentFault(
            f"source {source.name}: {target} cannot be written ({error.strerror or error})."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def _compress(path: Path) -> None:
    """Compress a file in place; the result is reproducible."""
    packed = path.with_name(f"{path.name}.packed")
    try:
        with (
            open(path, "rb") as plain,
            open(packed, "wb") as out,
            gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as stream,
        ):
            shutil.copyfileobj(plain, stream, _CHUNK)
        os.replace(packed, path)
    finally:
        packed.unlink(missing_ok=True)
