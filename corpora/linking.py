"""Which entity of a knowledge graph a name in a text means.

Done where text is tokenised, and by a copy of this file where a served model reads a request. So
this file imports nothing of this project but `corpora.gazetteer`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from corpora.gazetteer import Gazetteer, Match, longest, whole

# A normalised text, and of its tokens (n,) bool, which start a word by whitespace or are a CJK
# character, and (n,) their start and end offsets in the text.
Placed = tuple[str, np.ndarray, np.ndarray, np.ndarray]


class Entities:
    """Finds names of entities in texts; both must be normalised the same way.

    Args:
        names: The name of each entity.
        numbers: Its number, from 1; 0 for one without a vector, which no name means.

    Attributes:
        numbers: What each name means: the number of the one entity that bears it, else 0.
        named: Names that were found so far.
        linked: Those among them that are the name of one entity alone.
    """

    def __init__(self, names: Sequence[str], numbers: Sequence[int]):
        bearers = Counter(names)
        self.numbers = {
            name: number if bearers[name] == 1 else 0
            for name, number in zip(names, numbers, strict=True)
        }
        # A match's kind is the number, as text.
        self._gazetteer = Gazetteer((name, str(number)) for name, number in self.numbers.items())
        self.named = self.linked = 0

    def matches(self, text: str) -> Iterator[Match]:
        """Every occurrence of every name."""
        return self._gazetteer.matches(text)

    def meaning(self, name: Match) -> int:
        """The number of the entity that a found name means, 0 for none; it is counted."""
        number = int(name.kind)
        self.named += 1
        self.linked += number > 0
        return number


def linked(
    basic: np.ndarray, starts: np.ndarray, ends: np.ndarray, text: str, entities: Entities
) -> np.ndarray:
    """The entity that is named from each token of a sentence on, at a name's first token alone.

    Of overlapping names the leftmost counts, and of those the longest.

    Args:
        basic: (n,) bool: tokens that start a word by whitespace, or are a CJK character.
        starts: (n,) offset of each token in the text, ascending.
        ends: (n,) offset of its end.
        text: The text.
        entities: Finds names, and counts those in whole words.

    Returns:
        (n,) uint32, 0 for none.
    """
    found = np.zeros(len(basic), np.uint32)
    for name in longest(whole(basic, starts, ends, entities.matches(text))):
        found[name.start] = entities.meaning(name)
    return found


def named(texts: Iterable[Placed], entities: Entities) -> list[np.ndarray]:
    """The entity that is named from each token of each text on, (n,) uint32, 0 for none."""
    return [linked(basic, starts, ends, text, entities) for text, basic, starts, ends in texts]


def linker(numbers: Mapping[str, int]) -> Callable[[Iterable[Placed]], list[np.ndarray]]:
    """`named` with the entities of a package.

    Args:
        numbers: {name, as the tokenizer reads it: number of its entity, 0 for none}.
    """
    entities = Entities(list(numbers), list(numbers.values()))
    return lambda texts: named(texts, entities)
