"""Near duplicates (fault S24)."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from datasketch import MinHash

from corpora.identity import normal_form
from corpora.near_duplicates import PERMUTATIONS, NearDuplicates, permutations, shingles, signature
from tests.corpora.conftest import Prepare
from tests.corpora.made_up import chinese, write


def test_signatures_are_those_of_datasketch():
    from datasketch.minhash import _fmix

    hashes = shingles(normal_form("The quick brown fox jumps over the lazy dog " * 3))
    theirs = MinHash(PERMUTATIONS, scheme="affine32", hashfunc=int, permutations=permutations())
    theirs.update_batch(hashes.tolist())
    ours = signature(_fmix(hashes, 32))  # datasketch mixes once more first
    assert ours.dtype == theirs.hashvalues.dtype
    assert np.array_equal(ours, theirs.hashvalues)


@pytest.mark.parametrize("shared", [0.5, 0.8, 0.95])
def test_equal_places_estimate_the_jaccard_similarity(shared: float):
    rng = np.random.default_rng(3)
    estimates = []
    for _ in range(30):
        values = rng.choice(1 << 32, size=2000, replace=False).astype(np.uint32)
        common = int(1000 * 2 * shared / (1 + shared))
        one, other = values[:1000], values[1000 - common : 2000 - common]
        estimates.append(np.mean(signature(one) == signature(other)))
    assert abs(np.mean(estimates) - shared) < 0.02


def test_chinese_near_copies_are_found_and_distinct_texts_are_not(tmp_path, corpus: Prepare):
    originals = chinese(300)
    copies = [
        {"id": f"y{i}", "text": record["text"].replace("天", "晴", 1)}
        for i, record in enumerate(originals)
    ]
    assert corpus(write(tmp_path / "a.jsonl", originals), language="zh").counts.kept == 300
    prepared = corpus(write(tmp_path / "b.jsonl", originals + copies), language="zh")
    removed = prepared.counts.removed
    assert sum(removed.values()) >= 295
    assert removed["near duplicate"] > 280
    # Each removal says what it repeats, and the profile says how many each stands for.
    first = {item["id"]: item["detail"] for item in prepared.rejected()}
    assert first["y7"] == "z3-7"
    assert sum(row["num_duplicates"] for row in prepared.profile()) == sum(removed.values())


def test_texts_without_a_word_repeat_none_and_are_counted():
    near = NearDuplicates()
    texts = ["***", "", " ", "fine and well", "👍 👎", "👎 👍", "fine, and well"]
    assert [near.match_or_add(normal_form(text)) for text in texts] == [None] * 6 + [3]
    assert len(near) == 6


def test_changed_words_decide_by_how_many_they_are():
    rng = random.Random(5)
    words = [f"w{rng.randrange(5000)}" for _ in range(200)]
    near = NearDuplicates()
    assert near.match_or_add(" ".join(words)) is None
    few = [*words]
    few[20] = few[120] = "changed"  # 10 of 196 shingles: similarity 0.90
    assert near.match_or_add(" ".join(few)) == 0
    many = [*words]
    for place in range(0, 200, 12):
        many[place] = "other"
    assert near.match_or_add(" ".join(many)) is None


def test_a_text_like_two_that_are_unlike_each_other_is_known_by_both():
    words = [f"w{number}" for number in range(150)]
    one, middle, other = (" ".join(words[start : start + 100]) for start in (0, 21, 42))
    near = NearDuplicates(0.5, word_shingle=3, bands=32)
    assert near.matches_and_add(one) == []
    assert near.matches_and_add(other) == []
    assert near.matches_and_add(middle) == [0, 1]
    assert near.matches_and_add(other) == [1]
    assert near.matches_and_add("") == []
    assert near.matches_and_add(f"{middle} more") == [0, 1, 2]
    assert len(near) == 6


@pytest.mark.slow
def test_twenty_thousand_documents_take_seconds():
    rng = random.Random(1)
    words = [f"w{i}" for i in range(5000)]
    near = NearDuplicates()
    texts = [" ".join(rng.choices(words, k=100)) for _ in range(20_000)]
    start = time.monotonic()
    assert sum(near.match_or_add(text) is not None for text in texts) == 0
    assert time.monotonic() - start < 15
