"""Words in context: thresholds by brute force, words found in rows, each layer as the network's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fourstage.errors import ContractViolation
from models.evaluation.marked_words import Occurrence, WordInContext, marked, pairs_of
from models.evaluation.occurrences import AllLayers, cosines, occurrence_vectors, places
from models.evaluation.word_in_context import best_threshold, judge
from models.inputs.rows import framed
from models.protocols import Context
from models.saved_tokenizer import learn_tokenizer
from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece
from tests.conformance.parts import CONTEXT, network
from tests.models.tokenizers.texts import CHINESE, ENGLISH

MARKS = ("<<", ">>")
WORDS = WordPiece(
    [*SPECIAL_TOKENS, "to", "play", "##s", "chess", "well", "下", "棋"], lowercase=True
)


def pair(first: str, second: str, same: bool) -> WordInContext:
    return WordInContext(
        "", Occurrence(first, 0, len(first)), Occurrence(second, 0, len(second)), same
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_threshold_is_the_best_of_a_search_through_all(seed):
    rng = np.random.default_rng(seed)
    values = np.round(rng.uniform(-1, 1, rng.integers(1, 9)), 1)
    same = rng.random(len(values)) < 0.5
    threshold, accuracy = best_threshold(values, same)
    every = [float(((values >= at) == same).mean()) for at in np.linspace(-1, 2, 3001)]
    assert accuracy == max(every) == ((values >= threshold) == same).mean()


def test_the_judged_rows_choose_nothing():
    choosing = [pair("Play", "play", True), pair("play", "plays", False), pair("a", "a", True)]
    judged = [pair("play", "plays", True), pair("plays", "play", False)]
    cosines_of = np.array([[0.1, 0.9], [0.2, 0.1], [0.8, 0.8]])
    found = judge(["0", "1"], choosing, cosines_of, judged, np.array([[0.9, 0.1], [0.1, 0.9]]))
    assert [layer.chosen for layer in found.layers] == [2 / 3, 1.0]
    # The second layer was better on the rows that chose, and is wrong on both judged ones.
    assert (found.best, found.layers[1].accuracy) == (1, 0.0)
    assert found.layers[1].threshold == pytest.approx(0.45)
    # Written alike means the same on all rows that chose, and is right on one of the judged.
    assert (found.constant, found.form) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("to << play >> chess", ("to play chess", "play")),
        ("<< Plays >>, well", ("Plays, well", "Plays")),
        ("他<< 下 >>棋", ("他下棋", "下")),
        ("to play chess", None),
        ("<< to >> << play >>", None),
    ],
)
def test_a_marked_word_is_found_in_the_text_without_markers(text, found):
    word = marked(text, MARKS)
    assert (word and (word.text, word.text[word.start : word.end])) == found


def test_rows_without_an_answer_or_a_word_are_counted_and_no_row_at_all_is_refused():
    rows = [
        ("a", ("<< play >>", "to << play >>"), "same"),
        ("b", ("<< play >>", "to play"), "same"),
        ("c", ("<< play >>", "to << play >>"), ""),
    ]
    pairs, skipped = pairs_of(rows, MARKS)
    assert ([pair.id for pair in pairs], skipped) == (["a"], 2)
    with pytest.raises(ContractViolation, match="got none among 2 rows"):
        pairs_of(rows[1:], MARKS)


@pytest.fixture(scope="module")
def bert() -> AllLayers:
    return AllLayers(network("bert", dropout=0.0, num_layers=1))


def test_vectors_are_means_over_the_words_own_tokens_in_every_layer(bert: AllLayers):
    layers, made = bert, bert.network
    assert layers.names == [str(number) for number in range(made.num_hidden_states)]
    context = Context(WORDS, 12)
    text = "to plays chess"
    found = occurrence_vectors(layers, [Occurrence(text, 3, 8), Occurrence("下棋", 1, 2)], context)
    batch = framed([(ids,) for ids in WORDS.encode([text, "下棋"])], context)
    states = [np.asarray(state) for state in made.hidden_states(batch, training=False)]
    for number, state in enumerate(states):
        # [CLS] to play ##s chess [SEP]; [CLS] 下 棋 [SEP]
        np.testing.assert_allclose(found[0, number], state[0, 2:4].mean(axis=0), atol=2e-5)
        np.testing.assert_allclose(found[1, number], state[1, 2], atol=2e-5)


def test_a_long_text_is_cut_around_the_word(bert: AllLayers):
    text = " ".join(["to"] * 20 + ["play"] + ["chess"] * 20)
    start = text.index("play")
    cut = "to to to to play chess chess chess"
    found = occurrence_vectors(
        bert,
        [Occurrence(text, start, start + 4), Occurrence(cut, 12, 16)],
        Context(WORDS, 10),
    )
    np.testing.assert_allclose(found[0], found[1], atol=2e-5)


def test_one_vector_a_word_means_the_same_wherever_it_stands():
    layers = AllLayers(network("word2vec"))
    assert layers.names == ["output"]
    texts = [Occurrence("to play", 3, 7), Occurrence("play chess well", 0, 4)]
    first, second = occurrence_vectors(layers, texts, Context(WORDS, 8))
    assert cosines(first, second).tolist() == [1.0]


@pytest.mark.parametrize(
    ("family", "first"), [("elmo", "0"), ("bart", "encoder 0"), ("nnlm", "output")]
)
def test_other_networks_have_their_layers(family, first):
    layers = AllLayers(network(family))
    found = np.asarray(layers.call(framed([(np.arange(6, 12, dtype=np.int32),)], CONTEXT)))
    assert found.shape[:2] == (1, len(layers.names))
    assert layers.names[0] == first


@pytest.mark.parametrize("scheme", ["wordpiece", "word", "word_bpe", "byte_bpe", "unigram"])
def test_a_words_tokens_are_those_it_has_in_the_whole_text(scheme: str):
    made: Any = learn_tokenizer(
        scheme, (ENGLISH + CHINESE) * 3, vocabulary_size=900, lowercase=False
    )
    text, word = next(
        (t, w) for t in ENGLISH for w in t.split()[1:-1] if len(w) > 4 and w.isalpha()
    )
    for said in (text, f"{word}, {text}"):
        start = said.index(word)
        occurrence = Occurrence(said, start, start + len(word))
        ((ids, first, end),) = places([occurrence], Context(made, 512))
        assert ids.tolist() == made.encode([said])[0].tolist()
        assert made.decode(ids[first:end]).strip() == word
