"""Codes of languages."""

from __future__ import annotations


def main_language(code: str) -> str:
    """The language of a code, without its script and region.

    Example:
        >>> main_language("zh-Hant")
        'zh'
    """
    return code.split("-")[0]
