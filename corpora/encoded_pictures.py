"""Regions of pictures that a request to a served model brings: PNG or JPEG files as base64.

A request names no file, so that it can read none of the machine that answers it. What it brings is
as untrusted as a source's pictures, and has the same limits.
"""

from __future__ import annotations

import base64

from corpora.limits import MAX_PICTURE_BYTES
from corpora.regions import NoRegionsError, Regions, regions_of


def regions_of_encoded(text: str, most: int) -> Regions:
    """The regions of a picture, as `corpora.regions.regions_of` finds them in its file.

    Args:
        text: The file as base64 (RFC 4648, section 4); line ends and blanks are skipped.
        most: Regions that are kept.

    Raises:
        NoRegionsError: It is empty, no base64 or too large, or its file has no regions to give.
    """
    letters = "".join(text.split())
    if not letters:
        raise NoRegionsError("a picture that is missing")
    if len(letters) > -(-MAX_PICTURE_BYTES // 3) * 4:
        raise NoRegionsError(f"a picture of more than {MAX_PICTURE_BYTES:,} bytes")
    try:
        data = base64.b64decode(letters, validate=True)
    except ValueError:
        raise NoRegionsError("not base64: expected the picture's file, not its path") from None
    return regions_of(data, most)
