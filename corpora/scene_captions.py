"""Captions made from what a picture is known to show: boxes of coloured items, and where they lie.

Each caption is true of its picture. They are said in many ways, with the words in which people
describe such pictures: how many items there are, of which colour, shape and size, in which box,
at which wall, above or beside what. Boxes in which squares of one size are stacked are towers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

COLOURS = ("black", "blue", "yellow")
SHAPES = ("circle", "square", "triangle")
SIZES = ("small", "medium", "big")
SIDE = 100  # of a box, in the units of its items

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_PLACES = ("left", "middle", "right")
_WALLS = {
    "touching the edge": ("left", "right", "top", "bottom"),
    "touching the wall": ("left", "right", "top", "bottom"),
    "touching the top": ("top",),
    "touching the bottom": ("bottom",),
    "touching the base": ("bottom",),
    "touching the left wall": ("left",),
    "touching the right wall": ("right",),
}
_TRIES = 30  # captions tried for each one that is wanted


@dataclass(frozen=True)
class Item:
    """One item in a box; lengths in units of which a box has `SIDE` on each side.

    Attributes:
        shape: One of `SHAPES`.
        colour: One of `COLOURS`.
        size: One of `SIZES`.
        left: From the box's left wall to the item.
        right: From the box's left wall to the item's right end.
        top: From the box's top to the item.
        bottom: From the box's top to the item's lower end.
    """

    shape: str
    colour: str
    size: str
    left: int
    right: int
    top: int
    bottom: int

    @property
    def walls(self) -> frozenset[str]:
        """The walls that it touches."""
        met = {"left": self.left, "right": SIDE - self.right}
        met |= {"top": self.top, "bottom": SIDE - self.bottom}
        return frozenset(wall for wall, gap in met.items() if gap == 0)


Boxes = Sequence[Sequence[Item]]


def captions(picture: str, boxes: Boxes, count: int) -> list[str]:
    """True captions of a picture, each said once.

    Args:
        picture: Its name, which decides what is said of it and how.
        boxes: Items of the left, the middle and the right box.
        count: How many are wanted. A picture with little to be seen has fewer.
    """
    found: dict[str, str] = {}  # by what is said, whatever the case and the full stop
    for number in range(_TRIES * count):
        if len(found) == count:
            break
        caption = _Caption(random.Random(f"{picture} {number}"), boxes).write()
        if caption is not None:
            found.setdefault(caption.lower().rstrip("."), caption)
    return list(found.values())


@dataclass(frozen=True)
class _ItemKind:
    """Items of some size, colour and shape; None for any."""

    size: str | None
    colour: str | None
    shape: str | None
    noun: str  # for any shape

    def has(self, item: Item) -> bool:
        """Whether an item is of the kind."""
        return (
            self.size in (None, item.size)
            and self.colour in (None, item.colour)
            and self.shape in (None, item.shape)
        )

    def named(self, plural: bool = False) -> str:
        """Its name."""
        noun = (self.shape or self.noun) + ("s" if plural else "")
        return " ".join(filter(None, (self.size, self.colour, noun)))

    @property
    def one(self) -> str:
        """Its name after the article."""
        name = self.named()
        return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


@dataclass(frozen=True)
class _Amount:
    """How many: the words, their number in grammar, and which counts they fit."""

    words: str
    plural: bool
    fits: Callable[[int], bool]

    def of(self, kind: _ItemKind) -> str:
        """The words before a kind's name."""
        if self.words == "a":
            return kind.one
        return f"{self.words} {kind.named(self.plural)}"

    @property
    def verb(self) -> str:
        """``is`` or ``are``."""
        return "are" if self.plural else "is"


class _Caption:
    """One caption of a picture, as chance has it.

    Args:
        chance: What decides.
        boxes: The picture.
    """

    def __init__(self, chance: random.Random, boxes: Boxes):
        self._chance = chance
        self._boxes = boxes
        self._items = [item for box in boxes for item in box]
        self._is_towers = all(
            item.shape == "square" and item.size == "medium" and item.left == box[0].left
            for box in boxes
            for item in box
        )
        self._box = "tower" if self._is_towers else "box"

    def write(self) -> str | None:
        """The caption; None where what was to be said cannot be said of this picture."""
        ways = [self._in_all, self._in_a_place, self._in_some_box, self._in_boxes, self._only]
        ways += [self._beside, self._more, self._colours]
        ways += [self._ends, self._ends, self._heights] if self._is_towers else [self._at_walls] * 2
        said = self._chance.choice(ways)() if self._items else None
        if said is None:
            return None
        if self._chance.random() < 0.4:
            said = said[0].lower() + said[1:]
        return said + ("." if self._chance.random() < 0.5 else "")

    def _in_all(self) -> str:
        kind = self._kind()
        amount = self._amount(sum(map(kind.has, self._items)))
        return f"There {amount.verb} {amount.of(kind)}"

    def _at_walls(self) -> str:
        words, walls = self._chance.choice(list(_WALLS.items()))
        kind, away = self._kind(), self._chance.random() < 0.25
        if away:
            words, walls = "not touching any edge", _WALLS["touching the edge"]
        count = sum(kind.has(i) and away != bool(i.walls & set(walls)) for i in self._items)
        amount = self._amount(count)
        return f"There {amount.verb} {amount.of(kind)} {words}"

    def _in_a_place(self) -> str:
        place = self._chance.randrange(len(self._boxes))
        kind = self._kind()
        amount = self._amount(sum(map(kind.has, self._boxes[place])))
        where = f"{_PLACES[place]} {self._box}"
        if self._chance.random() < 0.5:
            return f"The {where} {self._has()} {amount.of(kind)}"
        return f"There {amount.verb} {amount.of(kind)} in the {where}"

    def _in_some_box(self) -> str:
        kind = self._kind()
        amount = self._amount(sum(map(kind.has, self._chance.choice(self._boxes))))
        which = self._chance.choice(("with", "that has", "which has", "that contains"))
        return f"There is a {self._box} {which} {amount.of(kind)}"

    def _in_boxes(self) -> str:
        kind = self._kind()
        amount = self._amount(sum(map(kind.has, self._chance.choice(self._boxes))))
        fitting = sum(amount.fits(sum(map(kind.has, box))) for box in self._boxes)
        if fitting == len(self._boxes):
            each = self._chance.choice(("Each", "Every"))
            return f"{each} {self._box} {self._has()} {amount.of(kind)}"
        return f"{self._boxes_are(fitting)} with {amount.of(kind)}"

    def _only(self) -> str:
        box = self._chance.choice([box for box in self._boxes if box])
        colours = sorted({item.colour for item in box})
        self._chance.shuffle(colours)
        noun = self._noun()
        *rest, last = colours
        said = f"{', '.join(rest)} and {last}" if rest else last
        return f"There is a {self._box} with only {said} {noun}s"

    def _beside(self) -> str | None:
        box = self._chance.choice(self._boxes)
        pairs = [(one, other) for one in box for other in box if one is not other]
        if not pairs:
            return None
        one, other = self._chance.choice(pairs)
        gaps = {"above": other.top - one.bottom, "below": one.top - other.bottom}
        if not self._is_towers:
            gaps |= {"to the left of": other.left - one.right}
            gaps |= {"to the right of": one.left - other.right}
        words = [each for each, gap in gaps.items() if gap >= 0]
        if self._is_towers and gaps["above"] == 1:
            words += ["directly on top of", "right over"]
        if not words:
            return None
        first, second = self._kind(one).one, self._kind(other).one
        return f"There is {first} {self._chance.choice(words)} {second}"

    def _more(self) -> str | None:
        if self._chance.random() < 0.5:
            one, other = self._chance.sample(range(len(self._boxes)), 2)
            kind = self._kind()
            counts = [sum(map(kind.has, self._boxes[place])) for place in (one, other)]
            if counts[0] == counts[1]:
                return None
            word = "more" if counts[0] > counts[1] else "fewer"
            first, second = _PLACES[one], _PLACES[other]
            return f"The {first} {self._box} has {word} {kind.named(True)} than the {second} one"
        first, second = self._kind(), self._kind()
        counts = [sum(map(kind.has, self._items)) for kind in (first, second)]
        if counts[0] <= counts[1]:
            return None
        return f"There are more {first.named(True)} than {second.named(True)}"

    def _colours(self) -> str:
        box = self._chance.choice([box for box in self._boxes if box])
        count = len({item.colour for item in box})
        noun = self._noun()
        if count == 1:
            same = self._chance.choice(("of the same color", "of only one color"))
            return f"There is a {self._box} with all {noun}s {same}"
        return f"There is a {self._box} with {noun}s of {self._number(count)} different colors"

    def _ends(self) -> str:
        """Of towers, what is at their ends."""
        tower = sorted(self._chance.choice([box for box in self._boxes if box]), key=_height)
        wanted = {"base": tower[0].colour, "top": tower[-1].colour}
        for end in self._chance.choice(((), ("base",), ("top",))):
            del wanted[end]

        def fits(box: Sequence[Item]) -> bool:
            found = sorted(box, key=_height)
            ends = {"base": found[0].colour, "top": found[-1].colour} if found else {}
            return all(ends.get(end) == colour for end, colour in wanted.items())

        at = self._chance.choice(("at", "as"))
        said = " and ".join(f"a {colour} block {at} the {end}" for end, colour in wanted.items())
        count = sum(map(fits, self._boxes))
        if self._chance.random() < 0.5:
            return f"There is a tower with {said}"
        return f"{self._boxes_are(count)} with {said}"

    def _heights(self) -> str | None:
        """Of towers, how high they are beside each other."""
        heights = [len(box) for box in self._boxes]
        if len(set(heights)) == 1:
            return "All towers have the same height"
        if len(set(heights)) < len(heights):
            return "There are two towers of the same height"
        place = heights.index(self._chance.choice((max(heights), min(heights))))
        word = "highest" if heights[place] == max(heights) else "lowest"
        return f"The {_PLACES[place]} tower is the {word} one"

    def _kind(self, item: Item | None = None) -> _ItemKind:
        """A kind that an item is of, one of the picture's by default; now and then just any."""
        chance = self._chance
        if item is None:
            item = chance.choice(self._items)
            if chance.random() < 0.1:
                size = "medium" if self._is_towers else chance.choice(SIZES)
                shape = "square" if self._is_towers else chance.choice(SHAPES)
                item = Item(shape, chance.choice(COLOURS), size, 0, 0, 0, 0)
        size = item.size if not self._is_towers and chance.random() < 0.15 else None
        shape = item.shape if not self._is_towers and chance.random() < 0.6 else None
        colour = item.colour if chance.random() < 0.75 else None
        return _ItemKind(size, colour, shape, self._noun())

    def _noun(self) -> str:
        return "block" if self._is_towers else self._chance.choice(("item", "object"))

    def _has(self) -> str:
        return self._chance.choice(("has", "contains"))

    def _number(self, count: int) -> str:
        if count >= len(_NUMBERS) or (count and self._chance.random() < 0.3):
            return str(count)
        return _NUMBERS[count]

    def _amount(self, count: int) -> _Amount:
        """Words for a count, exact ones or not."""
        chance = self._chance
        if count == 0:
            return _Amount("no", chance.random() < 0.5, lambda n: n == 0)
        if chance.random() < 0.25:
            return _Amount("a", False, lambda n: n >= 1)
        if chance.random() < 0.3:
            least = chance.randint(1, count)
            words = f"at least {self._number(least)}"
            return _Amount(words, least > 1, lambda n: n >= least)
        exact = chance.choice(("exactly ", "only ", "", ""))
        return _Amount(exact + self._number(count), count > 1, lambda n: n == count)

    def _boxes_are(self, count: int) -> str:
        """The beginning of a sentence about so many of the boxes."""
        exact = self._chance.choice(("exactly ", "")) + self._number(count)
        if count == 1:
            return f"There is {exact} {self._box}"
        return f"There are {exact} {'towers' if self._is_towers else 'boxes'}"


def _height(item: Item) -> int:
    return SIDE - item.top
