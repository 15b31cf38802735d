"""Conditional masking: in UNITER's turns tokens or regions of a row are hidden, never both."""

from __future__ import annotations

from collections import Counter

import numpy as np

from fourstage.recipe.loading import load_recipe
from fourstage.recipe.resolution import resolve
from models import catalogue
from models.inputs.batches import batches
from models.inputs.task_schedule import TaskSchedule
from models.protocols import Capability, Context
from tests.models.memory_corpus import PlainTokenizer, random_captions

SEES = frozenset({Capability.REGIONS, Capability.BIDIRECTIONAL, Capability.POOLED_OUTPUT})
CONTEXT = Context(PlainTokenizer(100), sequence_length=32, network=SEES)
ROWS, UPDATES = 8, 36


def test_each_turn_hides_tokens_or_regions_of_a_row_and_turns_come_2_2_1_1():
    stage = resolve(load_recipe("papers/uniter")).stages[0]
    assert stage.alternate
    objectives = {
        each: catalogue.find("objectives", each)(CONTEXT, **settings)
        for each, settings in stage.objectives.items()
    }
    captions = random_captions(50, 100, 39, seed=2)
    feeds = {
        leader: batches(
            {"captions": (captions, 1.0)}, [objectives[each] for each in group], CONTEXT, ROWS, seed
        )
        for seed, (leader, group) in enumerate(catalogue.turns(list(objectives)).items())
    }
    schedule = TaskSchedule(feeds, stage.weights)
    counts: Counter[str] = Counter()
    hidden: Counter[tuple[str, bool, bool]] = Counter()
    for update in range(1, UPDATES + 1):
        turn = schedule.name(update - 1)
        feed, number = feeds[turn], counts[turn]
        counts[turn] += 1
        batch = feed.batch(number)
        examples = np.array([example for _, example in feed.members(number)])
        for row, entry in enumerate(feed.feeds[0].entries(examples)):
            caption, _, _ = captions.document(int(entry["document"]))
            of_match = "picture" in (entry.dtype.names or ())
            _, features = captions.regions(int(entry["picture" if of_match else "document"]))
            read = batch["token_ids"][row, 1 : len(caption) + 1]
            seen = batch["region_features"][row, : len(features)]
            tokens, regions = (read != caption).any(), (seen != features).any()
            assert not (tokens and regions)
            hidden[turn, bool(tokens), bool(regions)] += 1
            # Nor is what is hidden in another turn predicted in this one.
            assert ("mask_weights" in batch) == (turn == "masked_lm")
            assert ("region_weights" in batch) == turn.startswith("region_")
        if update % 6 == 0:
            assert counts == {
                "image_text_match": update // 3,
                "masked_lm": update // 3,
                "region_regression": update // 6,
                "region_class": update // 6,
            }
    assert hidden["image_text_match", False, False] == ROWS * UPDATES // 3
    assert hidden["masked_lm", True, False] > 0.8 * ROWS * UPDATES // 3  # the others kept theirs
    for turn in ("region_regression", "region_class"):  # all that are chosen become 0
        assert hidden[turn, False, True] == ROWS * UPDATES // 6
