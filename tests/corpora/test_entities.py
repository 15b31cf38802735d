"""Names of a knowledge graph's entities: their list, and which one a name in a text means."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from corpora.entities import numbered, read_entities
from corpora.pieces import Pieces
from corpora.shards import TokenisedCorpus
from corpora.tokens import tokenize
from corpora.units import ENTITY_UNIT, WORD
from fourstage.errors import ContractViolation
from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece

WORDS = ["the", "land", "reform", "##s", "plant", "a", ".", "saxon", "##y"]
TOKENIZER = WordPiece([*SPECIAL_TOKENS, *WORDS], lowercase=True)
ENTITIES = [("Land Reform", 5), ("plant", 6), ("plant", 7), ("Saxony", 8), ("land", 9)]


def refused(path: Path) -> str:
    with pytest.raises(ContractViolation) as caught:
        read_entities(path)
    return str(caught.value)


def test_a_list_says_what_each_entity_is_called(tmp_path: Path):
    text = "00260881\tland reform, a redistribution of land\n\n/m/027rn\tSaxony\r\n"
    (tmp_path / "plain.txt").write_text(text, "utf-8")
    (tmp_path / "marked.txt").write_text(text, "utf-8-sig")
    (tmp_path / "small.txt.gz").write_bytes(gzip.compress(text.encode("utf-8-sig")))
    for name in ("plain.txt", "marked.txt", "small.txt.gz"):
        found = read_entities(tmp_path / name)
        assert found == [("00260881", "land reform"), ("/m/027rn", "Saxony")]


def test_a_malformed_list_is_refused_where_it_is_wrong(tmp_path: Path):
    path = tmp_path / "list.txt"
    path.write_text("1\tland\nplant\n", "utf-8")
    assert "list.txt:2: expected id<TAB>name" in refused(path)
    path.write_text("1\tland\n1\tplant\n", "utf-8")
    assert "list.txt:2: duplicate id '1'" in refused(path)
    path.write_text("1\t, what it is\n", "utf-8")
    assert "list.txt:1: expected id<TAB>name" in refused(path)
    path.write_bytes(b"1\tland\n2\t\xff\n")
    assert "list.txt:2: expected UTF-8" in refused(path)
    path.write_bytes(b"\xef\xbb\xbf1\tland\n\xff\n")
    assert "list.txt:2: expected UTF-8" in refused(path)
    path.write_text("\n", "utf-8")
    assert "got an empty file" in refused(path)
    packed = tmp_path / "list.gz"
    packed.write_bytes(gzip.compress(b"1\tland\n" * 99)[:-9])
    assert "expected a whole gzip file" in refused(packed)


def test_ids_are_names_of_the_graph_with_their_leading_zeros():
    path, known = Path("entity2text.txt"), {"00260881": 5, "00017222": 6, "Q1": 7}
    assert numbered(path, ["00017222", "00260881"], known) == [6, 5]
    with pytest.raises(ContractViolation, match="graph has the entity 00260881, the list 260881"):
        numbered(path, ["00017222", "260881"], known)
    with pytest.raises(
        ContractViolation, match=r"1 of 2 ids are no entities of the graph .* Q1497"
    ):
        numbered(path, ["00017222", "Q1497"], known)


def test_an_entity_that_the_vocabulary_lacks_is_linked_with_no_name():
    ids = [str(number) for number in range(10, 30)]
    known = {entity: 1 + i for i, entity in enumerate(ids[1:])}
    assert numbered(Path("list.txt"), ids, known) == list(range(20))


def test_an_entity_is_named_at_the_first_piece_of_a_name_of_its_own(tmp_path: Path):
    pieces = Pieces(TOKENIZER, "en", entities=ENTITIES)
    text = "The LAND reform. Saxony plants land, a plant. Saxonys land reforms."
    files = tmp_path / "documents.arrow", tmp_path / "profile.parquet"
    facts, _ = tokenize(*files, pieces, [("a", text, "train")])
    ids, _, starts = TokenisedCorpus(files[0]).document(0)
    named = {int(i): int(starts[i] // ENTITY_UNIT) for i in np.flatnonzero(starts >= ENTITY_UNIT)}
    said = [TOKENIZER.vocabulary[i] for i in ids]
    # "land reform" before "land"; "saxonys" and "reforms" are other words; "plant" is two things.
    assert said[:6] == ["the", "land", "reform", ".", "saxon", "##y"]
    assert {said[i]: number for i, number in named.items() if i < 6} == {"land": 5, "saxon": 8}
    assert [(said[i], number) for i, number in named.items() if i >= 6] == [("land", 9)] * 2
    assert facts["names"] == {"found": 5, "linked": 4}
    plain = Pieces(TOKENIZER, "en").of([text])
    (own,) = plain
    assert (starts & WORD).tolist() == [int(s) for _, part in own for s in part]


def test_a_row_is_linked_as_a_whole():
    texts = ["a << Saxony >> land reform.", "the plant"]
    first, second = Pieces(TOKENIZER, "en", entities=ENTITIES).named(texts)
    #                         a  <  <  saxon ##y >  >  land reform .
    assert first.tolist() == [0, 0, 0, 8, 0, 0, 0, 5, 0, 0]
    assert second.tolist() == [0, 0]
