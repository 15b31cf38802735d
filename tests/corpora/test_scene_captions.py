"""Captions made from descriptions: each is true, as read by a grammar that knows words alone."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, permutations

import pytest

from corpora.scene_captions import COLOURS, SHAPES, SIDE, SIZES, Item, captions

_WORDS = "no one two three four five six seven eight nine ten".split()
NUMBERS = {word: number for number, word in enumerate(_WORDS)}
PLACES = {"left": 0, "middle": 1, "right": 2}
NUMBER = r"no|one|two|three|four|five|six|seven|eight|nine|ten|\d+"
AMOUNT = rf"(?:(exactly|only|at least) )?(an?|{NUMBER})"
KIND = (
    r"(?:(small|medium|big) )?(?:(black|blue|yellow) )?(item|object|block|circle|square|triangle)s?"
)
WALLS = (
    r"(?: (not touching any edge|touching the (?:edge|wall|top|bottom|base|left wall|right wall)))?"
)

Box = Sequence[Item]


def number(word: str) -> int:
    return int(word) if word.isdigit() else 1 if word in ("a", "an") else NUMBERS[word]


def fits(exact: str | None, word: str, count: int) -> bool:
    if exact == "at least" or word in ("a", "an"):
        return count >= number(word)
    return count == number(word)


def matching(kind: Sequence[str | None], items: Sequence[Item]) -> list[Item]:
    size, colour, noun = kind
    return [
        item
        for item in items
        if (size is None or item.size == size)
        and (colour is None or item.colour == colour)
        and (noun not in SHAPES or item.shape == noun)
    ]


def at(said: str | None, item: Item) -> bool:
    touched = {
        "left wall": item.left == 0,
        "right wall": item.right == 100,
        "top": item.top == 0,
        "bottom": item.bottom == 100,
    }
    if said is None:
        return True
    if said == "not touching any edge":
        return not any(touched.values())
    wall = said.removeprefix("touching the ")
    return (
        any(touched.values())
        if wall in ("edge", "wall")
        else touched[wall.replace("base", "bottom")]
    )


def of_all(boxes: Sequence[Box], *words: str | None) -> bool:
    exact, many, *kind, walls = words
    items = [item for box in boxes for item in box]
    return fits(exact, many or "", sum(at(walls, item) for item in matching(kind, items)))


def of_place(boxes: Sequence[Box], place: str, *words: str | None) -> bool:
    return of_all([boxes[PLACES[place]]], *words, None)


def some_box(boxes: Sequence[Box], *words: str | None) -> bool:
    return any(of_all([box], *words, None) for box in boxes)


def every_box(boxes: Sequence[Box], *words: str | None) -> bool:
    return all(of_all([box], *words, None) for box in boxes)


def so_many_boxes(boxes: Sequence[Box], exact: str | None, many: str, *words: str | None) -> bool:
    return fits(exact, many, sum(of_all([box], *words, None) for box in boxes))


def only_colours(boxes: Sequence[Box], said: str) -> bool:
    named = set(re.findall("black|blue|yellow", said))
    return any({item.colour for item in box} == named for box in boxes)


def beside(boxes: Sequence[Box], *words: str) -> bool:
    first, how, second = words[:3], words[3], words[4:]
    met: dict[str, Callable[[Item, Item], bool]] = {
        "above": lambda a, b: a.bottom <= b.top,
        "below": lambda a, b: a.top >= b.bottom,
        "to the left of": lambda a, b: a.right <= b.left,
        "to the right of": lambda a, b: a.left >= b.right,
        "directly on top of": lambda a, b: a.bottom + 1 == b.top and a.left == b.left,
    }
    met["right over"] = met["directly on top of"]
    return any(
        bool(matching(first, [a]) and matching(second, [b])) and met[how](a, b)
        for box in boxes
        for a, b in permutations(box, 2)
    )


def compared(boxes: Sequence[Box], one: str, word: str, *more: str) -> bool:
    first, second = (len(matching(more[:3], boxes[PLACES[p]])) for p in (one, more[3]))
    return first > second if word == "more" else first < second


def more_of(boxes: Sequence[Box], *words: str) -> bool:
    items = [item for box in boxes for item in box]
    return len(matching(words[:3], items)) > len(matching(words[3:], items))


def num_colours(boxes: Sequence[Box], word: str) -> bool:
    return any(len({item.colour for item in box}) == number(word) for box in boxes)


def ends(box: Box, colours: str) -> bool:
    """Whether a tower ends as said: the highest block is the one that begins nearest to the top."""
    found = {"top": min(box, key=lambda i: i.top), "base": max(box, key=lambda i: i.top)}
    said = re.findall(r"a (\w+) block (?:at|as) the (top|base)", colours)
    return all(found[end].colour == colour for colour, end in said)


def heights(boxes: Sequence[Box]) -> list[int]:
    return [len(box) for box in boxes]


def extreme(boxes: Sequence[Box], place: str, word: str) -> bool:
    mine, *others = sorted(heights(boxes), reverse=word == "highest")
    return heights(boxes)[PLACES[place]] == mine and mine not in others


ENDS = r"(a \w+ block (?:at|as) the (?:top|base)(?: and .*)?)"
GRAMMAR: list[tuple[str, Callable[..., bool]]] = [
    (rf"there (?:is|are) {AMOUNT} {KIND}{WALLS}", of_all),
    (
        rf"there (?:is|are) {AMOUNT} {KIND} in the (left|middle|right) (?:box|tower)",
        lambda boxes, *words: of_place(boxes, words[-1], *words[:-1]),
    ),
    (rf"the (left|middle|right) (?:box|tower) (?:has|contains) {AMOUNT} {KIND}", of_place),
    (
        rf"there is a (?:box|tower) (?:with|that has|which has|that contains) {AMOUNT} {KIND}",
        some_box,
    ),
    (rf"(?:each|every) (?:box|tower) (?:has|contains) {AMOUNT} {KIND}", every_box),
    (
        rf"there (?:is|are) (?:(exactly) )?({NUMBER}) (?:box|boxes|towers?) with {AMOUNT} {KIND}",
        so_many_boxes,
    ),
    (
        r"there is a (?:box|tower) with only ((?:(?:, | and )?(?:black|blue|yellow))+) \w+s",
        only_colours,
    ),
    (
        rf"there is an? {KIND} (above|below|to the (?:left|right) of|directly on top of|right over)"
        rf" an? {KIND}",
        beside,
    ),
    (
        rf"the (left|middle|right) (?:box|tower) has (more|fewer) {KIND} than the"
        r" (left|middle|right) one",
        compared,
    ),
    (rf"there are more {KIND} than {KIND}", more_of),
    (
        r"there is a (?:box|tower) with all \w+s of (?:the same|only one) color",
        lambda boxes: num_colours(boxes, "one"),
    ),
    (rf"there is a (?:box|tower) with \w+s of ({NUMBER}) different colors", num_colours),
    (
        rf"there is a tower with {ENDS}",
        lambda boxes, said: any(ends(box, said) for box in boxes),
    ),
    (
        rf"there (?:is|are) (?:(exactly) )?({NUMBER}) towers? with {ENDS}",
        lambda boxes, exact, many, said: fits(exact, many, sum(ends(b, said) for b in boxes)),
    ),
    ("all towers have the same height", lambda boxes: len(set(heights(boxes))) == 1),
    ("there are two towers of the same height", lambda boxes: len(set(heights(boxes))) == 2),
    (r"the (left|middle|right) tower is the (highest|lowest) one", extreme),
]


def readings(sentence: str, boxes: Sequence[Box]) -> list[bool]:
    """Whether a sentence is true, as each part of the grammar reads it that can."""
    said = sentence.lower().removesuffix(".")
    return [
        holds(boxes, *found.groups())
        for pattern, holds in GRAMMAR
        if (found := re.fullmatch(pattern, said))
    ]


def scattered(chance: random.Random) -> list[list[Item]]:
    boxes = []
    for _ in range(3):
        box = []
        for _ in range(chance.randint(1, 7)):
            size = chance.choice(SIZES)
            side = 10 * (1 + SIZES.index(size))
            left, top = (
                chance.choice((0, SIDE - side, chance.randint(0, SIDE - side))) for _ in "xy"
            )
            colour, shape = chance.choice(COLOURS), chance.choice(SHAPES)
            box.append(Item(shape, colour, size, left, left + side, top, top + side))
        boxes.append(box)
    return boxes


def towers(chance: random.Random) -> list[list[Item]]:
    return [
        [
            Item("square", chance.choice(COLOURS), "medium", 40, 60, 80 - 21 * n, 100 - 21 * n)
            for n in range(chance.randint(1, 4))
        ]
        for _ in range(3)
    ]


def scenes() -> Iterator[tuple[str, list[list[Item]]]]:
    chance = random.Random(5)
    for n in range(400):
        yield f"picture {n}", (scattered, towers)[n % 2](chance)


def test_every_caption_is_true_and_said_once():
    used = set[int]()
    for name, boxes in scenes():
        found = captions(name, boxes, 10)
        assert len({each.lower().rstrip(".") for each in found}) == len(found) == 10
        for sentence in found:
            read = readings(sentence, boxes)
            assert read, f"outside of the grammar: {sentence}"
            assert all(read), f"{sentence}: false of {boxes}"
            used |= {
                n
                for n, (p, _) in enumerate(GRAMMAR)
                if re.fullmatch(p, sentence.lower().rstrip("."))
            }
    assert used == set(range(len(GRAMMAR)))  # each way of saying something was met


def test_captions_of_other_pictures_are_often_false():
    """The grammar above can tell false sentences, so that it is an oracle."""
    some = list(scenes())[1::2]
    read = [
        all(readings(sentence, other))
        for (name, boxes), (_, other) in pairwise(some)
        for sentence in captions(name, boxes, 10)
    ]
    assert 0.2 < sum(read) / len(read) < 0.8


def test_a_picture_and_its_name_decide_its_captions():
    boxes = towers(random.Random(1))
    ten, five = captions("a", boxes, 10), captions("a", boxes, 5)
    assert ten[:5] == five
    assert captions("a", boxes, 10) == ten
    assert set(captions("b", boxes, 10)) != set(ten)


@pytest.mark.parametrize("boxes", [[[], [], []]])
def test_of_nothing_nothing_is_said(boxes):
    assert captions("a", boxes, 10) == []
