"""What is written of a text beside its ids: words, phrases and entities of the original text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from corpora.pieces import Pieces
from corpora.preparation import prepare_dataset
from corpora.prepared import PreparedRow, prepared_rows
from corpora.shards import TokenisedCorpus
from corpora.snapshot import take_snapshot
from corpora.tokens import tokenize
from corpora.units import CAPITALISED, CASED, ENTITY, PHRASE, WORD
from corpora.unlabelled import unlabelled
from data_contracts.sources import load_source
from models import features as keys
from models.evaluation.unigram_loss import unigram_loss
from models.inputs.rows import mark_ids, window_start
from models.inputs.windows import window_index, windows
from models.protocols import Context
from models.tokenizers import wordpiece
from models.tokenizers.byte_bpe import learn
from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece

ROWS = (keys.TOKEN_IDS, keys.PADDING_MASK)
# Neither 京 nor "york" is in the vocabulary: unknown tokens must take nothing out of step.
TOKENIZER = WordPiece([*SPECIAL_TOKENS, "new", "in", ".", "。", *"我在北大学读书"], lowercase=True)


def written(folder: Path, pieces: Pieces, text: str) -> tuple[dict, np.ndarray]:
    files = folder / "documents.arrow", folder / "profile.parquet"
    facts, _ = tokenize(*files, pieces, [("a", text, "train")])
    return facts, TokenisedCorpus(files[0]).document(0)[2]


def test_without_units_a_chinese_character_is_a_word(tmp_path: Path):
    _, starts = written(tmp_path, Pieces(TOKENIZER, "zh"), "我在北京大学读书。")
    assert starts.tolist() == [1] * 9


def test_a_segmenter_makes_words_whatever_is_unknown(tmp_path: Path):
    pieces = Pieces(TOKENIZER, "zh", segmenter="rjieba")
    _, starts = written(tmp_path, pieces, "我在北京大学读书。我读书。")
    #                           我 在 北京大学     读书  。 我 读书 。
    assert starts.tolist() == [1, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1, 0, 1]


def test_words_between_blanks_are_counted_where_a_language_has_them(tmp_path: Path):
    facts, _ = written(tmp_path, Pieces(TOKENIZER, "en"), "New in\nnew,  in. (in)\n")
    assert (facts["words"], facts["characters"]) == ({"train": 5}, {"train": 22})
    facts, _ = written(tmp_path, Pieces(TOKENIZER, "zh-Hant"), "我在 New 北京")
    assert (facts["words"], facts["characters"]) == ({}, {"train": 9})


def test_a_line_is_a_sentence_where_the_source_says_so(tmp_path: Path):
    text = "in. New in.\n\nnew"
    for lines, lengths in ((False, [2, 3, 1]), (True, [5, 1])):
        files = tmp_path / f"{lines}.arrow", tmp_path / f"{lines}.parquet"
        tokenize(*files, Pieces(TOKENIZER, "en", lines=lines), [("a", text, "train")])
        assert TokenisedCorpus(files[0]).document(0)[1].tolist() == lengths


def test_names_are_read_as_the_tokenizer_reads_text(tmp_path: Path):
    names = tmp_path / "names.tsv"
    names.write_text("New York\tentity\nin New York\tphrase\n", "utf-8")
    pieces = Pieces(TOKENIZER, "en", gazetteer=names)
    facts, starts = written(tmp_path, pieces, "In New York. in new")
    assert (starts & WORD > 0).tolist() == [True] * 6
    assert (starts & PHRASE > 0).tolist() == [True, False, False, True, True, True]
    assert (starts & ENTITY > 0).tolist() == [True, True, False, True, True, True]
    assert facts["coverage"] == {"phrase": 0.5, "entity": 2 / 6}


def test_case_is_that_of_the_text_before_it_was_folded(tmp_path: Path):
    text = "\u0130n NEW new. Éin 我在 In 北大"  # a dotted capital I, an accent, unknown tokens
    _, starts = written(tmp_path, Pieces(TOKENIZER, "en", case=True), text)
    #                                        in NEW new .  ein 我 在 in 北 大
    assert (starts & CASED > 0).tolist() == [1, 1, 1, 0, 1, 0, 0, 1, 0, 0]
    assert (starts & CAPITALISED > 0).tolist() == [1, 1, 0, 0, 1, 0, 0, 1, 0, 0]
    assert (starts & WORD > 0).all()
    _, plain = written(tmp_path, Pieces(TOKENIZER, "en"), text)
    assert plain.tolist() == [1] * 10, "who does not ask gets what was written before"


def test_case_segmenter_and_names_go_together(tmp_path: Path):
    names = tmp_path / "names.tsv"
    names.write_text("new york\tentity\n", "utf-8")
    pieces = Pieces(TOKENIZER, "zh", "rjieba", names, case=True)
    _, starts = written(tmp_path, pieces, "我在北京大学读书。New York")
    #                                              我 在 北京大学     读书  。 new york
    assert (starts & WORD > 0).astype(int).tolist() == [1, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1]
    assert (starts & ENTITY > 0).astype(int).tolist() == [1, 1, 1, 0, 0, 0, 1, 0, 1, 1, 0]
    assert (starts & CAPITALISED > 0).astype(int).tolist() == [0] * 9 + [1, 1]


TEXT = "One. Two  lines here.\nIt's three! 好。我们去吧！\n\nFour (4) ... five?  Six."


def sentences(tokenizer, text: str) -> list[list[int]]:
    (found,) = Pieces(tokenizer, "en").of([text])
    return [ids.tolist() for ids, _ in found]


def test_sentences_of_bytes_have_the_tokens_of_the_whole_text():
    """A word after a blank is another piece than one at the beginning."""
    tokenizer = learn([TEXT] * 5, vocabulary_size=400)
    found = sentences(tokenizer, TEXT)
    assert len(found) > 4
    assert [i for ids in found for i in ids] == tokenizer.encode([TEXT])[0].tolist()
    begins = ["One.", " Two  lines here.", "\nIt's three! 好。我们去吧！"]
    assert [tokenizer.decode(ids) for ids in found][:3] == begins


def test_to_wordpiece_the_blanks_before_a_sentence_are_nothing():
    from corpora.sentences import split_sentences

    expected = [ids.tolist() for ids in TOKENIZER.encode(split_sentences(TEXT, "en"))]
    assert sentences(TOKENIZER, TEXT) == expected


def test_names_and_words_are_found_in_bytes(tmp_path: Path):
    names = tmp_path / "names.tsv"
    names.write_text("New York\tentity\n北京大学\tphrase\n", "utf-8")
    tokenizer = learn(["x"], vocabulary_size=261)  # single bytes: every character is torn
    pieces = Pieces(tokenizer, "zh", segmenter="rjieba", gazetteer=names)
    text = "in New York, 我在北京大学读书。"
    ((found,),) = pieces.of([text])
    ids, starts = found
    data = text.encode()
    assert len(ids) == len(data)

    def units(kind: int) -> list[str]:
        begins = np.flatnonzero(starts & kind).tolist()
        return [data[a:b].decode() for a, b in zip(begins, [*begins[1:], None], strict=True)]

    assert units(WORD) == ["in", " New", " York", ",", " 我", "在", "北京大学", "读书", "。"]
    assert units(ENTITY) == ["in", " New York", ",", " 我", "在", "北京大学", "读书", "。"]
    assert units(PHRASE) == units(WORD)


def test_case_is_found_in_bytes():
    tokenizer = learn(["New news in New York. "] * 9, vocabulary_size=300)
    (((ids, starts),),) = Pieces(tokenizer, "en", case=True).of(["New news in  York, New"])
    words = [tokenizer.decode([i]).strip() for i in ids[(starts & CAPITALISED) > 0]]
    assert [word[:1] for word in words if word] == ["N", "Y", "N"]
    assert int((starts & CASED > 0).sum()) >= 5


def test_what_is_told_of_the_tokens(tmp_path: Path):
    documents = [("a", "new. new york", "train"), ("b", "in", "heldout"), ("c", "new.", "heldout")]
    files = tmp_path / "documents.arrow", tmp_path / "profile.parquet"
    facts, often = tokenize(*files, Pieces(TOKENIZER, "en"), documents)
    assert facts["tokens"] == {"heldout": 3, "train": 4}
    assert facts["unknown_share"] == 1 / 7
    assert unigram_loss(often["train"], often["heldout"]) == pytest.approx(
        -np.log([1, 3, 2]).mean() + np.log(4 + TOKENIZER.vocabulary_size)
    )
    _, often = tokenize(*files, Pieces(TOKENIZER, "en"), documents[:1])
    assert unigram_loss(often["train"], often["heldout"]) is None


def test_labelled_rows_give_each_text_once():
    rows = [
        PreparedRow("a", "The << dog >> saw a cat.", None, "x", "train"),
        PreparedRow("b", "The dog saw << a cat >>.", None, "y", "train"),
        PreparedRow("c", "A premise.", "One guess.", "x", "train"),
        PreparedRow("d", "A premise.", "Another.", "y", "train"),
        PreparedRow("e", "a PREMISE", "One guess!", "y", "dev"),
        PreparedRow("f", "Unseen.", "Another.", "y", "dev"),
        PreparedRow("g", "Of the test.", None, "y", "test"),
        PreparedRow("h", "***", None, "y", "train"),
    ]
    assert list(unlabelled(rows, ["<<", ">>"])) == [
        ("a", "The << dog >> saw a cat.", "train"),
        ("c", "A premise. One guess.", "train"),
        ("d", "Another.", "train"),
        ("h", "***", "train"),
        ("f", "Unseen.", "heldout"),
    ]


def test_answers_that_are_texts_are_documents_after_all_rows():
    rows = [
        PreparedRow("a", "A dog.", None, '["Ein Hund."]', "train"),
        PreparedRow("b", "A cat.", None, '["Eine Katze.", "ein HUND"]', "train"),
        PreparedRow("c", "A cow.", None, '["Eine Kuh.", "Kuh."]', "dev"),
        PreparedRow("d", "A pig.", None, '["Ein Schwein."]', "test"),
    ]
    assert list(unlabelled(rows, (), "text")) == [
        ("a", "A dog.", "train"),
        ("b", "A cat.", "train"),
        ("a answer 1", "Ein Hund.", "train"),
        ("b answer 1", "Eine Katze.", "train"),
        ("c", "A cow.", "heldout"),
        ("c answer 1", "Eine Kuh.", "heldout"),
        ("c answer 2", "Kuh.", "heldout"),
    ]
    assert [name for name, *_ in unlabelled(rows)] == ["a", "b", "c"]


@pytest.fixture(scope="module")
def chemprot(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> ChemProt:
    folder = tmp_path_factory.mktemp("chemprot")
    source = load_source("chemprot", [shared_data])
    prepare_dataset(source, take_snapshot(source, [shared_data]), folder, overlap="report")
    rows = list(prepared_rows(folder))
    vocabulary = wordpiece.learn(
        [row.text for row in rows if row.split == "train"], vocabulary_size=4000, lowercase=True
    )
    return ChemProt(rows, WordPiece(vocabulary, lowercase=True), source.markings)


@dataclass(frozen=True)
class ChemProt:
    rows: list[PreparedRow]
    tokenizer: WordPiece
    markings: tuple[str, ...]


def test_hardly_a_window_of_chemprot_says_a_thing_twice(chemprot: ChemProt, tmp_path: Path):
    """What was said before in the window can be copied: then a loss measures copying.

    With a document a row, 46 % of the tokens lie in seven that come twice.
    """
    tokenizer = chemprot.tokenizer
    found = unlabelled(chemprot.rows, chemprot.markings)
    files = tmp_path / "documents.arrow", tmp_path / "profile.parquet"
    tokenize(*files, Pieces(tokenizer, "en"), [d for d in found if d[2] == "train"])
    corpus = TokenisedCorpus(files[0])
    batch = windows(corpus, window_index(corpus, 128).entries, Context(tokenizer, 128))
    twice = [said_twice(row[mask > 0]) for row, mask in zip(*map(batch.get, ROWS), strict=True)]
    assert np.concatenate(twice).mean() < 0.08


def test_hardly_a_row_of_chemprot_loses_a_mark(chemprot: ChemProt):
    """Of 125 test rows that are too long 45 would without their ends; 6 have them too far apart."""
    marks, room = mark_ids(chemprot.tokenizer, chemprot.markings), 126

    def held(ids: np.ndarray) -> set[tuple[int, ...]]:
        said = ids.tolist()
        return {mark for mark in marks for i in range(len(said)) if tuple(said[i : i + 2]) == mark}

    texts = [row.text for row in chemprot.rows if row.split == "test"]
    long = [ids for ids in chemprot.tokenizer.encode(texts) if len(ids) > room]
    starts = [window_start(ids, room, marks) for ids in long]
    heads = [held(ids[:room]) < held(ids) for ids in long]
    kept = [held(ids[i : i + room]) < held(ids) for ids, i in zip(long, starts, strict=True)]
    assert sum(heads) > 30
    assert sum(kept) < 10


def said_twice(ids: np.ndarray, length: int = 7) -> np.ndarray:
    """(tokens,) whether each lies in a run of tokens that comes twice."""
    runs = np.lib.stride_tricks.sliding_window_view(ids, min(length, len(ids)))
    _, kind, times = np.unique(runs, axis=0, return_inverse=True, return_counts=True)
    found = np.zeros(len(ids), bool)
    for start in np.flatnonzero(times[kind.ravel()] > 1):
        found[start : start + length] = True
    return found
