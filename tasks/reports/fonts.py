"""Names in pictures: with a font for Chinese, if there is one, and what stands for other names."""

from __future__ import annotations

from functools import cache

LONGEST_NAME = 24  # characters of a name in a picture
# Names of common fonts with Chinese characters.
CHINESE = ("Noto Sans CJK", "Source Han Sans", "WenQuanYi", "Microsoft YaHei", "SimHei", "PingFang")


def drawable(name: str, instead: str) -> str:
    """A name for a plot, cut where it is long; `instead` if it is blank or no font has it."""
    short = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    short = " ".join(short.split()).replace("$", r"\$")  # not a formula
    if not short or not all(_known(character) for character in short):
        return instead
    return f" {short}" if short.startswith("_") else short  # legends leave out _names


@cache
def families() -> tuple[str, ...]:
    """Matplotlib's default font, then a system font with Chinese characters, if there is one."""
    from matplotlib.font_manager import fontManager

    there = sorted({font.name for font in fontManager.ttflist})
    chinese = [name for known in CHINESE for name in there if name.startswith(known)]
    return ("DejaVu Sans", *chinese[:1])


@cache
def _known(character: str) -> bool:
    """Whether one of the fonts has a character."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return any(
        ord(character) in get_font(findfont(FontProperties(family=family))).get_charmap()
        for family in families()
    )
