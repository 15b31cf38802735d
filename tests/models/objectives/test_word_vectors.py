"""Skip-gram and CBOW: their optimum, and a stage from training to a head."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from fourstage.errors import Interrupted, RecipeError
from models.catalogue import check_compatible
from models.evaluation.heldout import has_objective, heldout_losses
from models.evaluation.predict import predict
from models.evaluation.word_relations import stage_relations
from models.inputs.randomness import generator
from models.interchange.vector_files import TABLE
from models.objectives.cbow import cbow
from models.objectives.skip_gram import skip_gram
from models.stage_format import NETWORK, head_file
from models.training.stage import Budget, Phase
from models.training.trainer import train
from models.vectors import text
from models.vectors.context_windows import Block, blocks
from models.vectors.logistic import SharedQuestions
from models.vectors.lookup import word_table
from models.vectors.outputs import NegativeSampling
from models.vectors.subwords import Subwords, rows_of
from models.vectors.tables import Table
from models.vectors.training import Vectors
from tests.models.memory_corpus import MemoryCorpus
from tests.models.training.memory import Corpus, Recorder, Rows, finetuning, pretraining, tokenizer

NAMES = ("skip_gram", "cbow")


class AllWords(NegativeSampling):
    """Negative sampling in expectation: each word is noise as often as it is drawn on average."""

    def __init__(self, noise: np.ndarray, noise_words: int):
        self.noise, self.noise_words = noise, noise_words

    def questions(self, words: np.ndarray, pairs: np.ndarray, rng: np.random.Generator):
        every = np.arange(len(self.noise))
        predicted = pairs.swapaxes(1, 2)
        drawn = predicted.sum(axis=1, keepdims=True) * self.noise[:, None] * self.noise_words
        rows = np.concatenate([words, np.broadcast_to(every, (len(words), len(every)))], axis=1)
        return SharedQuestions(rows, np.concatenate([predicted, drawn], axis=1), predicted)


def test_the_optimum_of_skip_gram_is_pmi_less_log_k() -> None:
    """Levy and Goldberg 2014, equation 7, where vectors are as wide as the vocabulary."""
    rng = np.random.default_rng(0)
    number, k = 5, 2
    joint = rng.dirichlet(np.ones(number * number)).reshape(number, number)
    joint = joint + joint.T
    counts = np.round(joint / joint.sum() * 400)
    word = counts.sum(axis=1)
    noise = word / word.sum()
    # A stretch for each word, which predicts each other word as often as they are together.
    block = Block(
        np.arange(number)[:, None],
        np.tile(np.arange(number), (number, 1)),
        (counts[:, None, :] / counts.sum()).astype(np.float64),
    )
    vectors = Vectors(
        Table(rng.normal(0, 0.5, (number, 8))),
        Table(rng.normal(0, 0.5, (number, 8))),
        AllWords(noise, k),
    )
    for _ in range(6000):
        skip_gram(vectors, block, rng, 2.0)
    found = vectors.words.array @ vectors.context.array.T
    pmi = np.log(counts * counts.sum() / np.outer(word, word))
    assert np.abs(found - (pmi - np.log(k))).max() < 1e-3


@pytest.mark.parametrize(
    ("update", "tables"), [(skip_gram, ("words", "context")), (cbow, ("context",))]
)
def test_an_update_is_the_gradient_of_the_loss(update, tables) -> None:
    rng = np.random.default_rng(1)
    (block,) = blocks(
        rng.integers(0, 9, 40).astype(np.int32), np.zeros(40, np.int32), 3, np.random.default_rng(2)
    )
    block = Block(block.words, block.around, block.pairs.astype(np.float64))
    arrays = {"words": rng.normal(0, 0.3, (9, 4)), "context": rng.normal(0, 0.3, (9, 4))}

    def after(rate: float, **changed: np.ndarray):
        vectors = Vectors(
            *(Table(each.copy()) for each in (arrays | changed).values()), AllWords(np.ones(9), 1)
        )
        return update(vectors, block, rng, rate), vectors

    rate, step = 1e-9, 1e-5
    _, moved = after(rate)
    for which in tables:
        gradient = (arrays[which] - getattr(moved, which).array) / rate
        for place in [(0, 1), (3, 0), (7, 3), (8, 2)]:
            losses = []
            for sign in (1, -1):
                changed = arrays[which].copy()
                changed[place] += sign * step
                losses.append(after(0.0, **{which: changed})[0].loss)
            slope = (losses[0] - losses[1]) / (2 * step)
            assert gradient[place] == pytest.approx(slope, rel=1e-4, abs=1e-5)


def test_cbow_gives_each_word_the_whole_gradient_of_the_mean() -> None:
    """With all windows of the same size n, n times the gradient."""
    rng = np.random.default_rng(3)
    size, around = 4, 3
    pairs = np.zeros((1, size, size + 2), np.float64)
    for t in range(size):
        pairs[0, t, t : t + around] = 1.0
    block = Block(rng.integers(0, 7, (1, size)), rng.integers(0, 7, (1, size + 2)), pairs)
    words, context = rng.normal(size=(7, 3)), rng.normal(size=(7, 3))
    rate, step = 1e-9, 1e-5

    def loss(table: np.ndarray) -> float:
        vectors = Vectors(Table(table), Table(context.copy()), AllWords(np.ones(7), 1))
        return cbow(vectors, block, rng, 0.0).loss

    moved = Vectors(Table(words.copy()), Table(context.copy()), AllWords(np.ones(7), 1))
    cbow(moved, block, rng, rate)
    for place in np.ndindex(words.shape):
        more, less = words.copy(), words.copy()
        more[place] += step
        less[place] -= step
        slope = (loss(more) - loss(less)) / (2 * step)
        found = (words - moved.words.array)[place] / rate
        assert found == pytest.approx(around * slope, rel=1e-4, abs=1e-5)


def vectors_of(**changes):
    settings = {
        "family": "word2vec",
        "network": {"hidden_dim": 16},
        "phases": [Phase(32)],
        "objectives": {"skip_gram": {"window": 2, "subsampling": 0.0}},
        "budget": Budget("epochs", 3),
        "corpora": {"a": (Corpus(150, 1), 0.7), "b": (Corpus(80, 2), 0.3)},
        "checkpoint_every": None,
    }
    return pretraining(**(settings | changes))


def measured(folder: Path, name: str) -> dict[str, float]:
    return heldout_losses(folder, tokenizer(), {"a": Corpus(30, 9)}, objective=name)["a"]


@pytest.mark.parametrize("noise_words", [5, 0])
@pytest.mark.parametrize("name", NAMES)
def test_a_stage_learns_is_gone_on_with_and_fine_tuned(tmp_path: Path, name, noise_words) -> None:
    asked = {name: {"window": 2, "subsampling": 0.0, "noise_words": noise_words}}
    train(vectors_of(objectives=asked, budget=Budget("tokens", 64)), tmp_path / "begun")
    told = Recorder()
    outcome = train(vectors_of(objectives=asked), tmp_path / "first", told)
    assert (
        outcome.tokens
        == outcome.passes["a"] * Corpus(150, 1).num_tokens
        + outcome.passes["b"] * Corpus(80, 2).num_tokens
    )
    assert told.rows[-1]["step"] == outcome.steps
    assert has_objective(tmp_path / "first", name)
    first = measured(tmp_path / "first", name)
    assert first["loss"] < measured(tmp_path / "begun", name)["loss"] - 0.1
    assert first["error"] > 0
    train(
        vectors_of(objectives=asked, kind="domain", initial=tmp_path / "first"), tmp_path / "second"
    )
    assert measured(tmp_path / "second", name)["loss"] < first["loss"]
    given = {"family": "word2vec", "network": {"hidden_dim": 16}}
    train(
        finetuning(tmp_path / "second", **given, optimizer={"adamw": {"peak_learning_rate": 0.03}}),
        tmp_path / "tuned",
    )
    rows = Rows(60, 2)
    said = [answer.text for answer in predict(tmp_path / "tuned", tokenizer(), rows)]
    assert np.mean(np.array(said) == rows.answers) > 0.8
    # The head of the vectors is still there, so what was forgotten is measured.
    assert np.isfinite(measured(tmp_path / "tuned", name)["loss"])


def test_a_word_that_only_the_domain_text_has_begins_to_move_there(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    both = [[rng.integers(5, most, 60).tolist()] for most in (20, 30) for _ in range(10)]
    general, domain = MemoryCorpus(both[:10]), MemoryCorpus(both[10:])
    train(vectors_of(corpora={"a": (general, 1.0)}), tmp_path / "general")
    train(
        vectors_of(corpora={"b": (domain, 1.0)}, kind="domain", initial=tmp_path / "general"),
        tmp_path / "domain",
    )
    tables = [load_file(tmp_path / name / NETWORK)[TABLE] for name in ("general", "domain")]
    drawn = generator(vectors_of().stage.seed, "word vectors").random(tables[0].shape, np.float32)
    before, after, later = [(drawn - 0.5) / 16, *tables]
    moved = [(one != two).any(axis=1) for one, two in ((before, after), (after, later))]
    assert np.flatnonzero(moved[0]).tolist() == list(range(5, 20))
    assert np.flatnonzero(moved[1]).tolist() == list(range(5, 30))


def test_frozen_vectors_stay_as_they_are(tmp_path: Path) -> None:
    train(vectors_of(), tmp_path / "first")
    given = {"family": "word2vec", "network": {"hidden_dim": 16}, "freeze": ("token/*",)}
    train(finetuning(tmp_path / "first", **given), tmp_path / "tuned")
    before, after = (load_file(tmp_path / name / NETWORK) for name in ("first", "tuned"))
    assert np.array_equal(before["token/embeddings"], after["token/embeddings"])


def test_stopped_and_resumed_it_ends_with_the_same_bits(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(text, "PORTION", 500)
    whole = Recorder()
    train(vectors_of(), tmp_path / "whole", whole)
    told = Recorder()
    with pytest.raises(Interrupted, match=r"stopped by the deadline.*a checkpoint was written"):
        train(vectors_of(deadline_seconds=0.0), tmp_path / "parts", told)
    train(vectors_of(), tmp_path / "parts", told)
    for path in (Path(NETWORK), head_file(Path(), "skip_gram")):
        assert (tmp_path / "whole" / path).read_bytes() == (tmp_path / "parts" / path).read_bytes()
    assert [row["loss"] for row in told.rows] == [row["loss"] for row in whole.rows]
    other = vectors_of(seed=6)
    train(other, tmp_path / "other")
    assert (tmp_path / "other" / NETWORK).read_bytes() != (
        tmp_path / "whole" / NETWORK
    ).read_bytes()


def test_it_trains_alone_and_only_networks_of_word_vectors() -> None:
    with pytest.raises(RecipeError, match="needs static; family 'bert' provides"):
        check_compatible("bert", ("skip_gram",))
    with pytest.raises(RecipeError, match=r"'cbow' trains the network itself.*skip_gram"):
        check_compatible("word2vec", ("cbow", "skip_gram"))
    with pytest.raises(RecipeError, match=r"trains the network itself.*sequence_classification"):
        check_compatible("word2vec", ("skip_gram",), "sequence_classification")
    check_compatible("word2vec", (), "token_classification")


@pytest.mark.parametrize(
    ("setting", "value"), [("window", 0), ("noise_words", -1), ("learning_rate", 0.0)]
)
def test_a_setting_out_of_range_is_refused(tmp_path: Path, setting, value) -> None:
    job = vectors_of(objectives={"skip_gram": {setting: value}})
    with pytest.raises(RecipeError, match=rf"objectives\.skip_gram\.{setting}: expected"):
        train(job, tmp_path / "stage")


def test_fasttext_goes_on_with_its_ngrams_and_has_vectors_of_unseen_words(tmp_path: Path) -> None:
    given = {"family": "fasttext", "network": {"hidden_dim": 16, "buckets": 500}}
    short = Budget("epochs", 1)
    train(vectors_of(**given, budget=short), tmp_path / "first")
    train(vectors_of(**given, budget=short, initial=tmp_path / "first"), tmp_path / "second")
    first, second = (measured(tmp_path / name, "skip_gram")["loss"] for name in ("first", "second"))
    assert second < first
    made = Subwords(tokenizer().vocabulary_size, 3, 6, 500)
    rows, table = rows_of(tmp_path / "second"), load_file(tmp_path / "second" / NETWORK)
    word = int(tokenizer().encode(["wab"])[0][0])
    own = rows[[word, *made.of("wab")]].mean(axis=0)
    assert np.abs(table["token/embeddings"][word] - own).max() < 1e-6
    unseen = made.unseen("wabc", rows)
    assert unseen is not None
    assert unseen.shape == (16,)
    # Only what is asked about has its vector made; a word of the vocabulary keeps its own.
    found = word_table(tmp_path / "second", tokenizer(), ["WABC", "wab", "w abc"])
    assert list(found.more) == ["WABC"]
    assert np.array_equal(found.vectors[found.more["WABC"]], unseen)
    assert len(found.vectors) == tokenizer().vocabulary_size + 1
    # What the tokenizer writes otherwise is that word, and so no neighbour of itself.
    assert word_table(tmp_path / "second", tokenizer(), ["wáb"]).row("wáb") == word
    pairs, questions = tmp_path / "pairs", tmp_path / "questions"
    pairs.write_text("wab\tWABC\t3\nwab\twac\t2\nwac\twabc\t1\nwab\tw abc\t9\n")
    questions.write_text(": x\nwab wac wabc wad\nwab wac wad wabc\nwab wac wad wae\n")
    for file, asked, skipped in ((pairs, 3, 1), (questions, 2, 1)):  # an unseen word is no answer
        _, told, _ = stage_relations(tmp_path / "second", tokenizer(), file)
        assert (told.asked, told.skipped) == (asked, skipped)
    train(
        finetuning(tmp_path / "second", **given, budget=short),
        tmp_path / "tuned",
    )
    assert np.array_equal(rows_of(tmp_path / "tuned"), rows)
