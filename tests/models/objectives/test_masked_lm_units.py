"""Units of masked language modelling: twelve tokens by hand in two languages, and their laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fourstage.errors import ContractViolation
from models.features import ENTITY, PHRASE, WORD
from models.inputs import noise
from models.objectives.masked_lm import MaskedLM
from models.protocols import Context
from tests.models.memory_corpus import PlainTokenizer
from tests.models.scripted_chance import ScriptedChance

VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *"un ##believ ##able news from new york city to ##day".split(),
    *"我爱北京天安门和长城",
]
CONTEXT = Context(PlainTokenizer(100), sequence_length=12)
#                   0     1     2        3      4     5     6    7     8     9   10     11
ENGLISH = "[CLS] un ##believ ##able news from new york city to ##day [SEP]".split()
ENGLISH_KINDS = [0, 7, 0, 0, 7, 7, 7, 1, 3, 7, 0, 0]  # "new york" an entity, with "city" a phrase
ENGLISH_KINDS[8] = WORD | ENTITY  # "city" goes on the phrase "new york city"
#           0      1   2   3   4   5   6   7   8   9   10    11
CHINESE = ["[CLS]", *"我爱北京天安门和长城", "[SEP]"]
#                  我 爱 北 京 天 安 门 和 长 城
CHINESE_KINDS = [0, 7, 7, 7, 0, 1, 0, 0, 7, 7, 0, 0]  # 北京|天安门 are words, 北京天安门 an entity


def row(tokens: list[str], kinds: list[int]) -> dict[str, np.ndarray]:
    return {
        "token_ids": np.array([[VOCABULARY.index(token) for token in tokens]], np.int32),
        "padding_mask": np.ones((1, 12), np.int32),
        "unit_starts": np.array([kinds], np.uint8),
    }


def seen(result: dict[str, np.ndarray]) -> list[str]:
    return [VOCABULARY[i] for i in result["token_ids"][0]]


def targets(result: dict[str, np.ndarray]) -> list[tuple[int, str]]:
    return [
        (int(place), VOCABULARY[label])
        for place, label, weight in zip(
            result["mask_positions"][0],
            result["mask_labels"][0],
            result["mask_weights"][0],
            strict=True,
        )
        if weight
    ]


MASKS, NONE = [[0.0] * 12], [[0] * 12]  # every chosen token becomes [MASK]; nothing is drawn


def masked(unit: str, rate: float, order: list[float], lengths=None) -> ScriptedChance:
    grown = [] if lengths is None else [[lengths]]
    return ScriptedChance([order], *grown, MASKS, NONE)


def test_english_words_by_hand():
    # Words: 0 unbelievable, 1 news, 2 from, 3 new, 4 york, 5 city, 6 today. Of 10 tokens, 4.
    order = [0.2, 0.4, 0.9, 0.9, 0.9, 0.9, 0.3, 0, 0, 0, 0, 0]
    chance = masked("word", 0.4, order)
    result = MaskedLM(CONTEXT, rate=0.4, unit="word").examples(row(ENGLISH, ENGLISH_KINDS), chance)
    # unbelievable takes 3; today has 2, one too many; the first single word in order is next.
    assert targets(result) == [(1, "un"), (2, "##believ"), (3, "##able"), (4, "news")]


def test_chinese_words_by_hand():
    # Words: 0 我, 1 爱, 2 北京, 3 天安门, 4 和, 5 长城. Of 10 characters, 5.
    chance = masked("word", 0.5, [0.9, 0.9, 0.2, 0.1, 0.9, 0.9, 0, 0, 0, 0, 0, 0])
    result = MaskedLM(CONTEXT, rate=0.5, unit="word").examples(row(CHINESE, CHINESE_KINDS), chance)
    assert seen(result) == ["[CLS]", "我", "爱", *["[MASK]"] * 5, "和", "长", "城", "[SEP]"]
    assert [label for _, label in targets(result)] == list("北京天安门")


def test_phrases_and_entities_by_hand_in_english():
    # Phrases: 0 unbelievable, 1 news, 2 from, 3 new york city, 4 today; entities: 3 new york, 4
    # city, 5 today.
    order = [0.9, 0.8, 0.9, 0.1, 0.7, 0.6, 0, 0, 0, 0, 0, 0]
    phrase = MaskedLM(CONTEXT, rate=0.4, unit="phrase").examples(
        row(ENGLISH, ENGLISH_KINDS), masked("phrase", 0.4, order)
    )
    assert targets(phrase) == [(4, "news"), (6, "new"), (7, "york"), (8, "city")]
    entity = MaskedLM(CONTEXT, rate=0.4, unit="entity").examples(
        row(ENGLISH, ENGLISH_KINDS), masked("entity", 0.4, order)
    )
    assert targets(entity) == [(6, "new"), (7, "york"), (9, "to"), (10, "##day")]


def test_an_entity_by_hand_in_chinese():
    # Entities: 0 我, 1 爱, 2 北京天安门, 3 和, 4 长城.
    order = [0.9, 0.9, 0.1, 0.9, 0.9, 0, 0, 0, 0, 0, 0, 0]
    result = MaskedLM(CONTEXT, rate=0.5, unit="entity").examples(
        row(CHINESE, CHINESE_KINDS), masked("entity", 0.5, order)
    )
    assert [label for _, label in targets(result)] == list("北京天安门")


def test_ngrams_by_hand():
    # In order: from with two words; city with three, of which one fits; today, too long; york.
    order = [0, 0.9, 0.9, 0.9, 0.9, 0.1, 0.9, 0.4, 0.2, 0.3, 0.9, 0]
    lengths = [0.6, 0.95] + [0.0] * 10  # p(1) = 6/11, p(2) = 3/11, p(3) = 2/11: two, then three
    result = MaskedLM(CONTEXT, rate=0.4, unit="ngram").examples(
        row(ENGLISH, ENGLISH_KINDS), masked("ngram", 0.4, order, lengths)
    )
    assert targets(result) == [(5, "from"), (6, "new"), (7, "york"), (8, "city")]


def test_an_ngram_that_holds_a_chosen_word_is_passed_over():
    # In order: new alone; from with two words, the second of them chosen; news; york.
    order = [0, 0.9, 0.9, 0.9, 0.3, 0.2, 0.1, 0.4, 0.9, 0.9, 0.9, 0]
    lengths = [0.0, 0.6] + [0.0] * 10
    result = MaskedLM(CONTEXT, rate=0.3, unit="ngram").examples(
        row(ENGLISH, ENGLISH_KINDS), masked("ngram", 0.3, order, lengths)
    )
    assert targets(result) == [(4, "news"), (6, "new"), (7, "york")]


def test_before_the_end_of_a_text_the_lengths_that_fit_share_the_chance():
    # city has one word behind it: of p(1) = 6/9 and p(2) = 3/9, .6 is one; of 6/11 it would be two.
    order = [0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.1, 0.9, 0.9, 0]
    for length, follows in ((0.6, False), (0.7, True)):
        result = MaskedLM(CONTEXT, rate=0.3, unit="ngram").examples(
            row(ENGLISH, ENGLISH_KINDS), masked("ngram", 0.3, order, [length] + [0.0] * 11)
        )
        assert (8, "city") in targets(result)
        assert ((9, "to") in targets(result)) == follows


def test_chinese_ngrams_keep_words_whole():
    # 爱 (2) with three words would take 1 + 2 + 3 characters; four are left, so 爱北京.
    order = [0, 0.9, 0.1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.2, 0.9, 0.9, 0]
    lengths = [0.99, 0.0] + [0.0] * 10
    result = MaskedLM(CONTEXT, rate=0.4, unit="ngram").examples(
        row(CHINESE, CHINESE_KINDS), masked("ngram", 0.4, order, lengths)
    )
    assert [label for _, label in targets(result)] == list("爱北京和")


def test_a_span_by_hand_begins_at_its_word_and_is_cut_by_the_budget():
    # ##able (3) is drawn: the span begins at "un"; two words are four tokens, the budget is 4 …
    order = [0, 0.9, 0.9, 0.1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.2, 0]
    lengths = [0.3] + [0.0] * 11  # p(1) = .224, p(2) = .179: .3 is two words
    objective = MaskedLM(CONTEXT, rate=0.4, unit="span")
    result = objective.examples(row(ENGLISH, ENGLISH_KINDS), masked("span", 0.4, order, lengths))
    assert [place for place, _ in targets(result)] == [1, 2, 3, 4]
    # … and with 5 the next one, today, is cut behind its first piece.
    objective = MaskedLM(CONTEXT, rate=0.5, unit="span")
    result = objective.examples(row(ENGLISH, ENGLISH_KINDS), masked("span", 0.5, order, lengths))
    assert targets(result)[-1] == (9, "to")


def test_the_tokens_of_a_chinese_span_share_one_fate():
    order = [0, 0.9, 0.9, 0.9, 0.9, 0.1, 0.9, 0.9, 0.9, 0.2, 0.9, 0]
    dice = [[0.0] * 5 + [0.85, 0.0, 0.0, 0.0, 0.95, 0.0, 0.0]]  # of 天: random; of 长: stay
    drawn = [[0] * 5 + [1, 2, 3, 0, 0, 0, 0]]
    chance = ScriptedChance([order], [[0.0] * 12], dice, drawn)
    result = MaskedLM(CONTEXT, rate=0.5, unit="span").examples(row(CHINESE, CHINESE_KINDS), chance)
    assert [label for _, label in targets(result)] == list("天安门长城")
    assert seen(result)[5:8] == [VOCABULARY[i] for i in (6, 7, 8)], "each another random token"
    assert seen(result)[9:11] == list("长城")


def test_span_lengths_are_a_renormalised_geometric_distribution():
    expected = 0.2 * 0.8 ** np.arange(10) / (1 - 0.8**10)
    assert np.dot(expected, np.arange(1, 11)) == pytest.approx(3.797, abs=1e-3)
    assert np.abs(first_lengths(noise.choose_spans, 10) - expected).max() < 0.015


def test_ngram_lengths_are_inverse_to_n():
    assert np.abs(first_lengths(noise.choose_ngrams, 3) - np.array([6, 3, 2]) / 11).max() < 0.015


def first_lengths(choose, longest: int) -> np.ndarray:
    """Shares of run lengths where the first runs of a row are each at the start of a sentence."""
    many, sentences, budget = 3000, 60, 40
    may_choose = np.tile(np.arange(sentences * 11) % 11 > 0, (many, 1))
    order = np.where(np.arange(sentences * 11) % 11 == 1, np.arange(sentences * 11) / 1000, 0.9)
    drawn = np.random.default_rng(0).random(may_choose.shape)
    chance = ScriptedChance(np.tile(order, (many, 1)), drawn)
    chosen = choose(may_choose, np.ones_like(may_choose), np.full(many, budget), chance)
    assert (chosen.sum(1) == budget).all()
    whole = budget // longest  # so many runs the budget cannot have cut
    lengths = chosen.reshape(many, sentences, 11)[:, :whole].sum(2).ravel()
    return np.bincount(lengths, minlength=longest + 1)[1:] / lengths.size


rows = st.tuples(
    st.integers(1, 6), st.integers(4, 40), st.integers(0, 2**31), st.sampled_from([0.05, 0.15, 0.5])
)


@given(rows, st.sampled_from(["word", "ngram", "span", "phrase", "entity"]))
@example((6, 8, 243, 0.5), "ngram")  # a skipped run leaves out a word that would fit
@settings(max_examples=120)
def test_what_holds_for_every_unit(case, unit):
    num_rows, length, seed, rate = case
    rng = np.random.default_rng(seed)
    mask = (np.arange(length) < rng.integers(1, length + 1, num_rows)[:, None]).astype(np.int32)
    ids = np.where(mask, rng.integers(1, 60, (num_rows, length)), 0).astype(np.int32)
    kinds = rng.choice([0, 1, 1, 3, 5, 7], (num_rows, length)).astype(np.uint8)
    kinds[:, 0] = 7
    batch = {"token_ids": ids, "padding_mask": mask, "unit_starts": kinds}
    objective = MaskedLM(Context(PlainTokenizer(60), length), rate=rate, unit=unit)
    result = objective.examples(batch, np.random.default_rng(seed))
    again = objective.examples(batch, np.random.default_rng(seed))
    assert all((result[key] == again[key]).all() for key in result), "the seed decides everything"

    used = result["mask_weights"] > 0
    at, slot = np.nonzero(used)
    chosen = np.zeros(ids.shape, bool)
    chosen[at, result["mask_positions"][at, slot]] = True
    rebuilt = result["token_ids"].copy()
    rebuilt[at, result["mask_positions"][at, slot]] = result["mask_labels"][at, slot]
    assert (rebuilt == ids).all()
    candidates = (mask == 1) & (ids > 4)
    assert not (chosen & ~candidates).any(), "special tokens are safe"
    changed = result["token_ids"] != ids
    assert set(np.unique(result["token_ids"][changed])) <= {4, *range(5, 60)}

    rounded = np.ceil if unit == "span" else np.rint
    share = rounded(np.round(candidates.sum(1) * rate, 6))
    wanted = np.minimum(np.clip(share, 1, objective.num_slots), candidates.sum(1))
    assert (chosen.sum(1) <= wanted).all()
    if unit == "span":
        assert (chosen.sum(1) == wanted).all()
    else:
        kind = {"phrase": PHRASE, "entity": ENTITY}.get(unit, WORD)
        number = noise.units(candidates, kinds & kind)
        for row_number in range(num_rows):
            for one in range(number[row_number].max(initial=-1) + 1):
                own = chosen[row_number][number[row_number] == one]
                assert own.all() or not own.any(), "a unit is chosen as a whole or not at all"
    if unit in ("word", "ngram"):
        number = noise.units(candidates, kinds & WORD)
        for row_number in range(num_rows):
            own, taken = number[row_number], chosen[row_number]
            left = wanted[row_number] - taken.sum()
            sizes = np.bincount(own[(own >= 0) & ~taken])
            for one in np.flatnonzero((sizes > 0) & (sizes <= left)):
                # The run that was drawn here met a chosen word and was skipped.
                met = taken[(own == one + 1) | (own == one + 2)].any()
                assert met * (unit == "ngram"), "nothing that fits is left out"


def test_a_corpus_without_a_gazetteer_is_refused_with_what_to_do():
    batch = row(CHINESE, [0, 1, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0])
    with pytest.raises(ContractViolation, match="gazetteer"):
        MaskedLM(CONTEXT, unit="entity").examples(batch, np.random.default_rng(0))


@pytest.mark.parametrize("unit", ["ngram", "span", "entity"])
def test_a_share_of_fifteen_in_a_hundred(unit):
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 2000, (500, 128)).astype(np.int32)
    kinds = np.where(rng.random(ids.shape) < 0.7, 7, 0).astype(np.uint8)
    batch = {"token_ids": ids, "padding_mask": np.ones_like(ids), "unit_starts": kinds}
    objective = MaskedLM(Context(PlainTokenizer(2000), 128), unit=unit)
    weights = objective.examples(batch, np.random.default_rng(1))["mask_weights"]
    chosen = 20 if unit == "span" else 19  # of 19.2: rounded up, or rounded
    assert weights.sum() / ids.size == pytest.approx(chosen / 128, rel=0.01)
