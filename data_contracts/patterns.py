r"""Tries a suite's regular expression on a column, in a process that ends by itself.

Python's matching, which Great Expectations has for patterns with a look-ahead, a back-reference or
``\s``, and for text that is not ASCII, tries every way to divide a text: ``(\w+\s?)+$`` takes twice
as long for each further character of one that does not match. Nothing can stop it from within.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

SECONDS = 60  # of processor time; a million ids take one
# As Great Expectations matches. With the limit its own, it ends even if nobody waits any more.
_TRY = """
import json, resource, sys
seconds, pattern, values = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
import pandas
pandas.Series(values).astype(str).str.contains(pattern)
"""


def why_unusable(pattern: str, values: Sequence[str], seconds: int = SECONDS) -> str:
    """Why a pattern cannot be matched with values: it is none, or takes too long; else empty.

    Args:
        pattern: The regular expression.
        values: The different values of a column, as text.
        seconds: Most processor time.
    """
    done = subprocess.run(
        [sys.executable, "-I", "-W", "ignore", "-c", _TRY],
        input=json.dumps([seconds, pattern, values]),
        capture_output=True,
        text=True,
    )
    if done.returncode < 0:
        return (
            f"its regex takes more than {seconds} s; a repeat within a repeat, as in (\\w+\\s?)+,"
            " tries every way to divide a text: write it without"
        )
    if done.returncode:
        return f"its regex can't be used ({done.stderr.strip().splitlines()[-1][:120]})"
    return ""
