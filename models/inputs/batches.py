"""Batches: batch k as a pure function of recipe, corpora, seed and k.

Corpora are mixed by their shares of tokens, datasets by their shares of examples. Each pass
reshuffles a corpus and redraws the pairs of an objective; the noise comes from a generator that is
seeded for batch k. To resume, only k is needed.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grain
import numpy as np

from fourstage.errors import ContractViolation, RecipeError
from models import features as keys
from models.inputs.captions import has_pictures
from models.inputs.randomness import generator, grain_seed
from models.inputs.rows import GROUPED, as_wide, length_plan, padded_regions
from models.inputs.segments import with_entities
from models.protocols import Batch, Capability, Context, Index, Objective

ENDLESS = 1 << 40  # more batches than any training reads
NOBODY = (-1, -1)  # member of a row that only fills the last batch of a pass


@dataclass(frozen=True)
class Feed:
    """One corpus or dataset of a stage.

    Attributes:
        name: The source's name.
        data: The tokenised corpus or rows.
        draw: Returns the index of a pass, given the number of the pass.
        example_share: Share of the stage's examples, 0-1.
    """

    name: str
    data: Any
    draw: Callable[[int], Index]
    example_share: float

    @property
    def index(self) -> Index:
        """The index of the first pass; its length is the number of examples in every pass."""
        return self.draw(0)

    def entries(self, examples: np.ndarray) -> np.ndarray:
        """The index entries of examples, which are numbered through all passes.

        Example 7 of an index of 5 examples is example 2 of pass 1. A later pass may pack its text
        into a few more or fewer pairs than the first. Each pass starts at another offset, so that
        no pair is left out in every pass.
        """
        passes, places = np.divmod(examples, len(self.index))
        found = []
        for number, place in zip(passes.tolist(), places.tolist(), strict=True):
            entries = self.draw(number).entries
            found.append(entries[(place + number * len(self.index)) % len(entries)])
        return np.array(found)


class Batches:
    """Random access to a stage's batches; made by `batches`.

    Attributes:
        feeds: The corpora, sorted by name.
        batch_size: B, the number of rows in every batch. Data that are read once end with a batch
            filled up with rows of weight 0.
        num_batches: Batches in one pass for data that are read once, else `ENDLESS`.
        tokens_per_batch: Mean number of tokens in a batch, without padding.
    """

    def __init__(
        self,
        feeds: Sequence[Feed],
        objectives: Sequence[Objective],
        chooser: Objective,
        context: Context,
        batch_size: int,
        seed: int,
        once: bool,
        task: int,
        in_lanes: bool,
        on_copy: Sequence[Objective],
    ):
        self.feeds = tuple(feeds)
        self.batch_size = batch_size
        self._objectives = tuple(objectives)
        self._on_copy = tuple(on_copy)
        self._chooser = chooser
        self._context = context
        self._seed = seed
        self._task = task
        self._lanes = _LanePlan(self.feeds, batch_size, once) if in_lanes else None
        self._members = self._plan(once)
        self.num_batches = len(self._members) if once else ENDLESS
        if self._lanes is not None:
            read = zip(self.feeds, self._lanes.in_pass, strict=True)
            self.tokens_per_batch = sum(float(feed.index.lengths.sum()) / n for feed, n in read)
        else:
            self.tokens_per_batch = batch_size * sum(
                feed.example_share * float(feed.index.lengths.mean()) for feed in self.feeds
            )
        self._regions = _regions_of_all(self.feeds, context)
        self._dataset = self._members.seed(grain_seed(seed, "noise")).random_map(self._make)

    def __len__(self) -> int:
        return self.num_batches

    def batch(self, k: int) -> Batch:
        """Batch `k`: features, targets and loss weights, including ``row_weights`` (B,)."""
        batch = self._dataset[k]
        assert batch is not None
        return batch

    def members(self, k: int) -> list[tuple[int, int]]:
        """(feed, example) of each row of batch `k`; (-1, -1) for a row that only fills the batch.

        Examples are numbered through all passes: pass p of a feed with n examples starts at p · n.
        """
        members = self._members[k]
        assert members is not None
        return members

    def iterate(self, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Batches from `start` on, prefetched by one thread."""
        stop = self.num_batches if stop is None else min(stop, self.num_batches)
        ahead = grain.ReadOptions(num_threads=1, prefetch_buffer_size=4)
        made = iter(self._dataset.to_iter_dataset(read_options=ahead))
        made.set_state({"next_index": start})
        return itertools.islice(made, max(stop - start, 0))

    def passes(self, num_batches: int) -> dict[str, float]:
        """{corpus: how often it has been read} after a number of batches."""
        if self._lanes is not None or self._filled_up:
            return {feed.name: num_batches / self.batches_in_pass(feed.name) for feed in self.feeds}
        rows = num_batches * self.batch_size
        return {feed.name: rows * feed.example_share / len(feed.index) for feed in self.feeds}

    def batches_in_pass(self, name: str | None = None) -> float:
        """Batches until a corpus has been read once; without a name, until all of them have."""
        chosen = [i for i, feed in enumerate(self.feeds) if name in (None, feed.name)]
        if self._lanes is not None:
            return float(max(self._lanes.in_pass[i] for i in chosen))
        if self._filled_up:
            return float(-(-len(self.feeds[0].index) // self.batch_size))
        return max(
            len(self.feeds[i].index) / (self.feeds[i].example_share * self.batch_size)
            for i in chosen
        )

    @property
    def _filled_up(self) -> bool:
        """Whether the last batch of each pass is filled up with rows that are not counted."""
        return len(self.feeds) == 1 and self.feeds[0].index.by_length

    def _plan(self, once: bool) -> grain.MapDataset:
        """The members of each batch: a Grain dataset of lists of (feed, example)."""
        if self._lanes is not None:
            return grain.MapDataset.source(self._lanes)
        by_length = self.feeds[0].index.by_length
        if by_length and len(self.feeds) == 1:
            return grain.MapDataset.source(
                _LengthPlan(self.feeds[0].index.lengths, self.batch_size, self._seed, once)
            )
        if once:
            members = [
                (number, example)
                for number, feed in enumerate(self.feeds)
                for example in range(len(feed.index))
            ]
            members += [NOBODY] * (-len(members) % self.batch_size)
            return grain.MapDataset.source(members).batch(self.batch_size, batch_fn=list)
        streams = [
            grain.MapDataset.range(len(feed.index))
            .shuffle(seed=grain_seed(self._seed, "order", feed.name))
            .repeat(None)
            .map_with_index(functools.partial(_member, number, len(feed.index)))
            for number, feed in enumerate(self.feeds)
        ]
        mixed = grain.MapDataset.mix(streams, [feed.example_share for feed in self.feeds])
        if by_length:
            plan = _MixedLengthPlan(self.feeds, mixed, self.batch_size, self._seed)
            return grain.MapDataset.source(plan)
        return mixed.batch(self.batch_size, batch_fn=list)

    def _make(self, members: list[tuple[int, int]], rng: np.random.Generator) -> Batch:
        """Make the rows, then each objective's inputs and targets, each with its own generator."""
        # rng.spawn is no option: Grain reuses and resets one generator, but not its spawn count.
        count = len(self._objectives) + len(self._on_copy) + 1
        seeds = rng.integers(0, 1 << 62, (count, 2)).tolist()
        own_rngs = [np.random.default_rng(own) for own in seeds]
        rows = batch = with_entities(self._rows(members, own_rngs.pop()), self._context)
        for objective in self._objectives:
            batch = objective.examples(batch, own_rngs.pop(0))
        for key in keys.DATA_ONLY:
            batch.pop(key, None)
        real = [member != NOBODY for member in members]
        batch[keys.ROW_WEIGHTS] = np.array(real, np.float32)
        if self._lanes is not None:
            begins = [self._lanes.begins(*each) for each in enumerate(members)]
            batch[keys.BEGINS] = np.array(begins, np.int32)
        if self._on_copy:
            batch |= self._copied(rows, batch[keys.ROW_WEIGHTS], own_rngs)
        if self._task:
            batch[keys.TASK_IDS] = np.full(len(real), self._task, np.int32)
        return batch

    def _copied(
        self, rows: Batch, weights: np.ndarray, rngs: Sequence[np.random.Generator]
    ) -> Batch:
        """A copy of the rows' texts with the examples of auxiliary objectives, as ``copy/…``.

        The choices of a row are texts of their own, (B · C, T), while examples are made.
        """
        shape = rows[keys.TOKEN_IDS].shape[:-1]
        texts = (keys.TOKEN_IDS, keys.SEGMENT_IDS, keys.PADDING_MASK, keys.ENTITY_IDS)
        batch: Batch = {
            key: rows[key].reshape(-1, rows[key].shape[-1]) for key in texts if key in rows
        }
        ids = batch[keys.TOKEN_IDS]
        starts = self._context.tokenizer.unit_starts(ids.ravel()).reshape(ids.shape)
        batch[keys.UNIT_STARTS] = starts.astype(np.uint8) * keys.WORD
        # Rows of one text each.
        batch |= {key: rows[key] for key in (*keys.SEEN, *keys.DETECTED) if key in rows}
        for objective, rng in zip(self._on_copy, rngs, strict=True):
            batch = objective.examples(batch, rng)
        for key in keys.DATA_ONLY:
            batch.pop(key, None)
        batch[keys.ROW_WEIGHTS] = np.repeat(weights, math.prod(shape[1:]))
        return {
            keys.COPY + key: value.reshape(*shape, *value.shape[1:]) for key, value in batch.items()
        }

    def _rows(self, members: list[tuple[int, int]], rng: np.random.Generator) -> Batch:
        """The rows before noise, read feed by feed, in the batch's order.

        A row that only fills the batch repeats a real one.
        """
        filler = next(member for member in members if member != NOBODY)
        sources = np.array([filler if member == NOBODY else member for member in members])
        parts: list[Batch] = []
        order: list[np.ndarray] = []
        for number in np.unique(sources[:, 0]):
            where = np.flatnonzero(sources[:, 0] == number)
            feed = self.feeds[number]
            entries = feed.entries(sources[where, 1])
            part = self._chooser.segments(feed.data, entries, rng)
            parts.append(part | padded_regions(part, len(where), *self._regions))
            order.append(where)
        if len(parts) == 1:
            return parts[0]
        parts = as_wide(parts, self._context.tokenizer.pad_id)
        back = np.argsort(np.concatenate(order), kind="stable")
        return {key: np.concatenate([part[key] for part in parts])[back] for key in parts[0]}


def batches(
    corpora: Mapping[str, tuple[Any, float]],
    objectives: Sequence[Objective],
    context: Context,
    batch_size: int,
    seed: int,
    *,
    once: bool = False,
    task: int = 0,
    in_lanes: bool = False,
    on_copy: Sequence[Objective] = (),
) -> Batches:
    """The batches of a stage.

    Args:
        corpora: {name: (tokenised corpus or rows, share)}; shares need not sum to 1. They are of
            tokens, but of rows that are padded to their batch (`Index.by_length`) of examples.
        objectives: In the recipe's order; the one with the highest ``chooses`` chooses the
            segments.
        context: Tokenizer and sequence length.
        batch_size: B.
        seed: Seed of pairs, order and noise.
        once: Read the data once, in order, with fixed noise: for evaluation.
        task: Number of the rows' pre-training task; 0 is the network's default.
        in_lanes: Whether row b of a batch continues row b of the batch before, for networks with
            memory; the chooser's examples must then follow one another as the text does.
        on_copy: Objectives that corrupt their rows, beside a head that reads them whole: their
            examples are made of a copy of each row, under names that begin with ``copy/``.

    Raises:
        ContractViolation: A corpus gives fewer examples than one batch needs.
        RecipeError: No objective chooses the segments.
    """
    chooser = max(objectives, key=lambda objective: objective.chooses)
    if not chooser.chooses:
        raise RecipeError("objectives: none of them chooses the segments of the stage")
    names = sorted(corpora)
    total = sum(corpora[name][1] for name in names)
    if weigh := getattr(chooser, "weigh", None):
        weigh([corpora[name] for name in names])
    made: list[tuple[str, Any, Callable[[int], Index], float]] = []
    for name in names:
        data, share = corpora[name]
        draw = _draws(chooser, data, seed, name)
        if len(draw(0)) < batch_size and not once:
            raise ContractViolation(
                f"{name}: {len(data)} documents or rows give {len(draw(0))} examples of up to "
                f"{context.sequence_length} tokens, fewer than one batch of {batch_size}; add text "
                "or lower batch_size or sequence_length"
            )
        made.append((name, data, draw, share / total))
    # Of shares of tokens, a corpus with short rows contributes more rows.
    wanted = [
        share if draw(0).by_length else share / float(draw(0).lengths.mean())
        for _, _, draw, share in made
    ]
    feeds = [
        Feed(name, data, draw, rows / sum(wanted))
        for (name, data, draw, _), rows in zip(made, wanted, strict=True)
    ]
    return Batches(
        feeds, objectives, chooser, context, batch_size, seed, once, task, in_lanes, on_copy
    )


def _draws(chooser: Objective, data: Any, seed: int, name: str) -> Callable[[int], Index]:
    """A function from a pass's number to its index; caches the first and the last two passes."""
    first = chooser.index(data, generator(seed, "index", name))

    @functools.lru_cache(maxsize=2)
    def later(number: int) -> Index:
        return chooser.index(data, generator(seed, "index", name, number))

    return lambda number: later(number) if number else first


def _member(number: int, in_pass: int, place: int, example: int) -> tuple[int, int]:
    """(feed, example numbered through all passes) at a place of the repeated stream.

    Place 7 of a feed with 5 examples is in pass 1: example 2 of that pass is number 1 · 5 + 2.
    """
    return number, place // in_pass * in_pass + example


def _regions_of_all(feeds: Sequence[Feed], context: Context) -> tuple[int, int, bool]:
    """The most regions of a row of several corpora, the numbers of each, whether any has classes.

    0, 0 for none.
    """
    pictured = [feed.data for feed in feeds if has_pictures(feed.data)]
    if len(feeds) == 1 or not pictured or Capability.REGIONS not in context.network:
        return 0, 0, False
    widths = (data.regions(i)[1].shape[1] for data in pictured for i in range(len(data)))
    most = max(data.most_regions for data in pictured)
    return most, next(filter(None, widths), 0), any(data.has_classes for data in pictured)


class _LanePlan:
    """Batches in which row b continues row b of the batch before.

    Each feed gets its share of the rows, at least one, and is cut into as many lanes of consecutive
    examples. Seven examples in three lanes:

        lanes       0 1 2 | 3 4 5 | 6
        batches     (0, 3, 6)  (1, 4, –)  (2, 5, –)  (7, 10, 13) …    the second pass from 7 on

    Attributes:
        in_pass: Batches of one pass, of each feed.
    """

    def __init__(self, feeds: Sequence[Feed], batch_size: int, once: bool):
        if len(feeds) > batch_size:
            raise RecipeError(
                f"batch_size: expected at least {len(feeds)} for {len(feeds)} corpora, got"
                f" {batch_size}; a network with memory reads each corpus in rows of its own"
            )
        rows = [1] * len(feeds)
        wanted = [feed.example_share * batch_size for feed in feeds]
        for _ in range(batch_size - len(feeds)):  # one by one to the feed furthest below its share
            rows[max(range(len(feeds)), key=lambda i: wanted[i] - rows[i])] += 1
        self.in_pass = [-(-len(f.index) // count) for f, count in zip(feeds, rows, strict=True)]
        self._lanes = [
            (number, lane, self.in_pass[number], len(feed.index))
            for number, feed in enumerate(feeds)
            for lane in range(rows[number])
        ]
        self._num_batches = max(length for _, _, length, _ in self._lanes) if once else ENDLESS

    def __len__(self) -> int:
        return self._num_batches

    def __getitem__(self, index: int) -> list[tuple[int, int]]:
        once = self._num_batches < ENDLESS
        members = []
        for number, lane, length, examples in self._lanes:
            in_pass, place = divmod(int(index), length)
            example = lane * length + place
            there = example < examples and not (once and in_pass)
            members.append((number, in_pass * examples + example) if there else NOBODY)
        return members

    def begins(self, row: int, member: tuple[int, int]) -> bool:
        """Whether a row's member goes on from no other: the first of its lane, in any pass."""
        _, lane, length, examples = self._lanes[row]
        return member == NOBODY or member[1] % examples == lane * length


class _LengthPlan:
    """Random access to the members of batches of similar row length, pass after pass."""

    def __init__(self, lengths: np.ndarray, batch_size: int, seed: int, once: bool):
        self._lengths, self._batch_size, self._seed, self._once = lengths, batch_size, seed, once
        self._in_pass = -(-len(lengths) // batch_size)
        self._pass = functools.lru_cache(maxsize=2)(self._plan_pass)

    def __len__(self) -> int:
        return self._in_pass if self._once else ENDLESS

    def __getitem__(self, index: int) -> list[tuple[int, int]]:
        number, place = divmod(int(index), self._in_pass)
        rows = self._pass(number)[place].tolist()
        return [NOBODY if row < 0 else (0, row) for row in rows]

    def _plan_pass(self, number: int) -> np.ndarray:
        rng = None if self._once else generator(self._seed, "lengths", number)
        return length_plan(self._lengths, self._batch_size, rng)


class _MixedLengthPlan:
    """As `_LengthPlan`, of rows from several datasets: its groups take the place of passes.

    The members of a group of batches follow one another in the mixture, so each group has the
    mixture's composition, but for a row of each dataset.
    """

    def __init__(self, feeds: Sequence[Feed], mixture: Any, batch_size: int, seed: int):
        self._feeds, self._mixture = tuple(feeds), mixture
        self._batch_size, self._seed = batch_size, seed
        self._group = functools.lru_cache(maxsize=2)(self._plan_group)

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> list[tuple[int, int]]:
        number, place = divmod(int(index), GROUPED)
        return self._group(number)[place]

    def _plan_group(self, number: int) -> list[list[tuple[int, int]]]:
        count = GROUPED * self._batch_size
        members = [self._mixture[number * count + i] for i in range(count)]
        indices = [feed.index for feed in self._feeds]
        lengths = np.array(
            [indices[feed].lengths[example % len(indices[feed])] for feed, example in members]
        )
        plan = length_plan(lengths, self._batch_size, generator(self._seed, "lengths", number))
        return [[members[row] for row in batch] for batch in plan.tolist()]
