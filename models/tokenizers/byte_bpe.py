r"""Byte-level BPE: the bytes of a text, merged pair by pair in the order the pairs were learned.

text → NFC → words of GPT-2's pattern, each with the blank before it
     → their bytes → pieces: of all pairs that were learned, the earliest joins first

Every text has a spelling, so no token is unknown, and case and blanks are kept. Learned with the
Rust package ``tokenizers``, run with tensorflow-text, so that the served graph holds it. There is
no such operation there, but SentencePiece's BPE comes to the same (decision 0013): the bytes are
read as Latin-1, so that each is a character, and the order of a merge is the score of its piece.

References: Sennrich et al. 2016, arXiv 1508.07909, section 3.2; Radford et al. 2019, "Language
Models are Unsupervised Multitask Learners", section 2.2, with ``encoder.py`` of openai/gpt-2;
special tokens of Liu et al. 2019, arXiv 1907.11692.
"""

from __future__ import annotations

import hashlib
import json
import os
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from fourstage.errors import ContractViolation
from models.sentencepiece_model import bpe_model

KEEPS_CASE = True
ADDS_WORDS = False
SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
SMALLEST = 261  # ids: each byte, and the special tokens
VOCABULARY = "vocab.json"
MERGES = "merges.txt"
SETTINGS = "tokenizer.json"

_BLANK = r"\t-\r \x{85}\p{Z}"  # what Unicode calls white space; RE2's own \s is ASCII alone
# GPT-2's pattern but for ``\s+(?!\S)``, which RE2 cannot look ahead for: before a word the last of
# several blanks is the word's own, so it is parted from the others first.
_LAST_BLANK = rf"([{_BLANK}]+)([{_BLANK}][^{_BLANK}])"
_WORD = (
    r"'s|'t|'re|'ve|'m|'ll|'d"
    rf"| ?\p{{L}}+| ?\p{{N}}+| ?[^{_BLANK}\p{{L}}\p{{N}}]+|[{_BLANK}]+"
)
_BETWEEN = b"\xff"  # written behind each word: no UTF-8 has this byte

_CHUNK_CHARACTERS = 400_000  # text per call: a word that comes again in it is cut only once

# Kinds of character, and whether a unit starts between two of them.
_INSIDE, _SPACE, _BLANK_SIGN, _LETTER, _DIGIT, _IDEOGRAPH, _OTHER = range(7)
_STARTS = np.ones((7, 7), bool)
_STARTS[:, _INSIDE] = False
_STARTS[_SPACE, _LETTER:] = False  # the blank belongs to the word after it
for _same in (_LETTER, _DIGIT, _OTHER):
    _STARTS[_same, _same] = False


def _alphabet() -> tuple[str, ...]:
    """GPT-2's character for each byte: itself where it can be seen, else one from U+0100 on."""
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte) if byte in seen else chr(next(others)) for byte in range(256))


ALPHABET = _alphabet()
_BYTE = {character: byte for byte, character in enumerate(ALPHABET)}


def learn(texts: Iterable[str], *, vocabulary_size: int) -> ByteBPE:
    """Learn merges; the same texts give the same ones, on any number of cores.

    Pairs of equal frequency are ordered by the ids of their pieces, and those come from the bytes
    in GPT-2's order and the merges before; no hash map has a say in it.

    Args:
        texts: Any number of texts; none is held in memory, their words are.
        vocabulary_size: Pieces wanted, the five special ones counted; a small text gives fewer.

    Returns:
        Ids: ``<s> <pad> </s> <unk>``, the 256 bytes, the merges in order, ``<mask>``: the special
        ones as RoBERTa's files have them. No merge gives a special token's name, for letters and
        signs are different words.

    Raises:
        ContractViolation: There is no text, or no room for the bytes.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    if vocabulary_size < SMALLEST:
        raise ContractViolation(
            f"tokenizer: vocabulary_size {vocabulary_size} is less than the {SMALLEST} of the 256"
            f" bytes and {len(SPECIAL_TOKENS)} special tokens; ask for more"
        )
    tokenizer: Any = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size - 1,  # <mask> comes last
        special_tokens=list(SPECIAL_TOKENS[:-1]),
        initial_alphabet=list(ALPHABET),
        min_frequency=2,
        show_progress=False,
    )
    some = (text for text in texts if text.strip())
    first = next(some, None)
    if first is None:
        raise ContractViolation("tokenizer: learning a vocabulary needs text; none came")
    tokenizer.train_from_iterator(chain([first], some), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return ByteBPE([*pieces, SPECIAL_TOKENS[-1]], [(a, b) for a, b in model["merges"]])


class ByteBPE:
    """A vocabulary and its merges at work: text to ids and back.

    A special token's name written in a text is spelled in pieces and never gives its id; neither
    does any other entry that no merge leads to (``<|endoftext|>`` of the published files).

    Args:
        vocabulary: Pieces in GPT-2's alphabet in the order of their ids; the 256 bytes and the five
            special tokens among them.
        merges: Pairs of pieces, the first to be joined first.

    Raises:
        ContractViolation: A byte or a special token is missing, a piece comes twice, or a merge
            joins or gives what is not there.

    References: Sennrich et al. 2016, arXiv 1508.07909; Radford et al. 2019.
    """

    lowercase = False

    def __init__(self, vocabulary: Sequence[str], merges: Sequence[tuple[str, str]]):
        self.vocabulary = tuple(vocabulary)
        self.merges = tuple(merges)
        ids = {piece: i for i, piece in enumerate(self.vocabulary)}
        if len(ids) != len(self.vocabulary):
            raise ContractViolation(
                f"tokenizer: the vocabulary has {len(self.vocabulary)} entries but {len(ids)}"
                " different pieces; every piece must come once"
            )
        missing = [token for token in (*SPECIAL_TOKENS, *ALPHABET) if token not in ids]
        if missing:
            raise ContractViolation(
                f"tokenizer: the vocabulary lacks {len(missing)} of the special tokens and bytes:"
                f" {' '.join(missing[:8])}"
            )
        self._order = dict.fromkeys(ALPHABET, 0)  # of each piece that a text can have
        for number, (left, right) in enumerate(self.merges, 1):
            joined = left + right
            if not {left, right} <= self._order.keys() or joined in self._order:
                raise ContractViolation(
                    f"tokenizer: merge {number} ({left} {right}): expected two pieces that bytes"
                    " or earlier merges give, and that no merge has joined yet"
                )
            if joined not in ids or joined in SPECIAL_TOKENS:
                raise ContractViolation(
                    f"tokenizer: merge {number} ({left} {right}) gives {joined}, which is no piece"
                    " of the vocabulary"
                )
            self._order[joined] = number
        self.vocabulary_size = len(self.vocabulary)
        self.cls_id, self.pad_id, self.sep_id, self.unknown_id, self.mask_id = (
            ids[token] for token in SPECIAL_TOKENS
        )

    @cached_property
    def special_ids(self) -> tuple[int, ...]:
        """Ids that no text has, so that no predicted or random token may be one."""
        return tuple(i for i, piece in enumerate(self.vocabulary) if piece not in self._order)

    @property
    def digest(self) -> str:
        """sha256 of all that decides the ids of a text."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        parts = ["byte_bpe", "NFC", _LAST_BLANK, _WORD, self.vocabulary, self.merges]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @cached_property
    def _bytes(self) -> list[bytes]:
        """What each id stands for in a text; of the special tokens their names."""
        return [
            bytes(map(_BYTE.__getitem__, piece)) if piece in self._order else piece.encode()
            for piece in self.vocabulary
        ]

    @cached_property
    def _pieces(self) -> Any:
        """SentencePiece joins the two neighbours whose *joined* piece was learned first.

        That is the pair that was learned, for a piece comes out of its own text in one way alone.
        """
        import tensorflow as tf
        import tensorflow_text as tf_text

        order = self._order
        pieces = (
            (data.decode("latin-1"), order[piece]) if piece in order else (piece, None)
            for piece, data in zip(self.vocabulary, self._bytes, strict=True)
        )
        return tf_text.SentencepieceTokenizer(
            model=bpe_model(pieces, self.unknown_id),
            out_type=tf.int32,  # pyright: ignore[reportArgumentType]
        )

    def _tokenize(self, texts: Any) -> Any:
        """(B,) strings → ragged (B, n) int32; the same ops in preparation and when served."""
        import tensorflow as tf
        import tensorflow_text as tf_text

        texts = tf_text.normalize_utf8(texts, "NFC")
        texts = tf.strings.regex_replace(texts, _LAST_BLANK, rb"\1" + _BETWEEN + rb"\2")
        texts = tf.strings.regex_replace(texts, _WORD, rb"\0" + _BETWEEN)
        words: Any = tf.strings.split(texts, sep=_BETWEEN)
        different, which = tf.unique(words.values)
        latin = tf.strings.unicode_transcode(different, "ISO-8859-1", "UTF-8")
        found = tf.gather(self._pieces.tokenize(latin), which)
        ragged: Any = tf.RaggedTensor
        return ragged.from_row_splits(found.values, tf.gather(found.row_splits, words.row_splits))

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """One (n,) int32 array of ids a text, with no special tokens added.

        Chunks run in two threads or more; the result does not depend on how many.
        """
        import tensorflow as tf

        _ = self._pieces  # built once, before the threads start

        def run(chunk: list[str]) -> list[np.ndarray]:
            # A lone surrogate cannot be UTF-8 and means nothing; every other str can.
            ragged = self._tokenize(tf.constant([text.encode("utf-8", "ignore") for text in chunk]))
            values, splits = ragged.values.numpy(), ragged.row_splits.numpy()
            return [values[a:b] for a, b in pairwise(splits)]

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return [ids for part in pool.map(run, _chunks(texts)) for ids in part]

    def encode_with_places(
        self, texts: Sequence[str]
    ) -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
        """As `encode`, with the text that the pieces were cut from and their places in it.

        The blank before a word is in the piece and not in its place, which is empty where the
        piece is that blank alone. A piece of only some bytes of a character has the place of the
        character.

        Returns:
            Of each text: itself, normalised; ids (n,) int32; where each piece begins and where it
            ends there, (n,) int64 in characters.
        """
        found = []
        for ids in self.encode(texts):
            data = b"".join(self._bytes[i] for i in ids)
            ends = np.cumsum(self._lengths[ids])
            starts = ends - self._lengths[ids] + self._blanks_before[ids]
            goes_on = np.append(~self.unit_starts(ids)[1:], False)[: len(ids)]
            starts = np.where(goes_on & (self._last[ids] == _SPACE), ends, starts)
            bytes_of_it = np.frombuffer(data, np.uint8)
            character = np.cumsum((bytes_of_it & 0xC0) != 0x80) - 1  # of each byte
            found.append((data.decode(), ids, character[starts], character[ends - 1] + 1))
        return found

    @cached_property
    def _lengths(self) -> np.ndarray:
        return np.array([len(data) for data in self._bytes], np.int64)

    @cached_property
    def _blanks_before(self) -> np.ndarray:
        """Bytes of blanks that a piece begins with, where it has more than blanks."""
        inner = (data.decode("utf-8", "surrogateescape") for data in self._bytes)
        widths = [
            len(text[: -len(text.lstrip())].encode()) if text.strip() else 0 for text in inner
        ]
        return np.array(widths, np.int64)

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """Text of ids, padding left out; U+FFFD for a character that lacks bytes."""
        data = b"".join(self._bytes[int(i)] for i in ids if int(i) != self.pad_id)
        return data.decode("utf-8", "replace")

    def unit_starts(self, ids: np.ndarray) -> np.ndarray:
        """(n,) bool: whether a piece starts a unit (a word; one CJK character).

        Words are those of the pattern: with the blank before them, and letters, digits and other
        signs apart. The bytes of a character are never parted; where a piece goes from one CJK
        character into the next, or holds several, they are one unit.
        """
        ids = np.asarray(ids, dtype=np.int64)
        first, last = self._first[ids], self._last[ids]
        if not last.all():  # a piece from the inside of a character is of that character's kind
            last = last[np.maximum.accumulate(np.where(last, np.arange(len(ids)), 0))]
        starts = np.ones(len(ids), bool)
        starts[1:] = _STARTS[last[:-1], first[1:]]
        return starts

    @cached_property
    def _first(self) -> np.ndarray:
        """Kind of the character each piece begins with, `_INSIDE` where it goes on with one."""
        heads = (data[: _width(data[0])] if data else b"" for data in self._bytes)
        return np.array([_kind(head) for head in heads], np.uint8)

    @cached_property
    def _last(self) -> np.ndarray:
        """Kind of the last character that begins in each piece, `_INSIDE` where none does."""
        return np.array([_kind(data[_last_start(data) :]) for data in self._bytes], np.uint8)

    def module(self) -> Any:
        """A ``tf.Module`` with ``__call__((B,) string) -> RaggedTensor (B, n) int32``."""
        import tensorflow as tf

        outer = self

        class ByteBPEModule(tf.Module):
            def __init__(self):
                super().__init__()
                self.pieces = outer._pieces  # tracked, so that a SavedModel holds them

            @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
            def __call__(self, texts: Any):
                # A client may send bytes that are not UTF-8; a corpus never holds any.
                texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
                return outer._tokenize(texts)

        return ByteBPEModule()

    def save(self, folder: str | Path) -> None:
        """Write ``vocab.json``, ``merges.txt`` (as GPT-2 has them) and ``tokenizer.json``."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_pieces(self, folder)
        settings = {"scheme": "byte_bpe", "digest": self.digest}
        (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", "utf-8")

    @classmethod
    def learned(cls, texts: Iterable[str], *, vocabulary_size: int, lowercase: bool) -> ByteBPE:
        """One whose pieces are learned from texts (`learn`); it keeps case."""
        del lowercase
        return learn(texts, vocabulary_size=vocabulary_size)

    @classmethod
    def load(cls, folder: str | Path) -> ByteBPE:
        """Read what `save` wrote.

        Raises:
            ContractViolation: The vocabulary is not the one that was saved.
        """
        folder = Path(folder)
        settings = json.loads((folder / SETTINGS).read_text("utf-8"))
        tokenizer = cls(*read_pieces(folder))
        if tokenizer.digest != settings["digest"]:
            raise ContractViolation(
                f"{folder / VOCABULARY}, {MERGES}: expected digest {settings['digest'][:12]}, got"
                f" {tokenizer.digest[:12]}; a file was changed: learn the tokenizer again"
            )
        return tokenizer


def write_pieces(tokenizer: ByteBPE, folder: Path) -> None:
    """Write ``vocab.json`` and ``merges.txt``."""
    ids = {piece: i for i, piece in enumerate(tokenizer.vocabulary)}
    lines = ["#version: 0.2", *(f"{left} {right}" for left, right in tokenizer.merges)]
    (folder / VOCABULARY).write_text(json.dumps(ids, ensure_ascii=False) + "\n", "utf-8")
    (folder / MERGES).write_text("\n".join(lines) + "\n", "utf-8", newline="\n")


def read_pieces(folder: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Pieces in the order of their ids and merges, of ``vocab.json`` and ``merges.txt``.

    Raises:
        ContractViolation: A file is not what it claims to be.
    """
    vocabulary = in_order(json.loads((folder / VOCABULARY).read_text("utf-8")), folder / VOCABULARY)
    merges: list[tuple[str, str]] = []
    lines = (folder / MERGES).read_bytes().decode("utf-8").replace("\r\n", "\n").split("\n")
    for number, line in enumerate(lines, 1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        left, _, right = line.partition(" ")
        if not left or not right or " " in right:
            raise ContractViolation(
                f"{folder / MERGES}:{number}: expected two pieces and a blank between them"
            )
        merges.append((left, right))
    return vocabulary, merges


def in_order(ids: Any, path: Path) -> list[str]:
    """The pieces of {piece: id} in the order of their ids, without a gap.

    Raises:
        ContractViolation: It is no such thing.
    """
    if not isinstance(ids, dict) or sorted(map(str, ids.values())) != sorted(
        map(str, range(len(ids)))
    ):
        raise ContractViolation(f"{path}: expected a vocabulary with the ids 0, 1, 2…")
    return sorted(ids, key=ids.__getitem__)


def _width(lead: int) -> int:
    """Bytes of a character of UTF-8 by its first one."""
    return 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)


def _last_start(data: bytes) -> int:
    """Where the last character that begins in some bytes does, 0 where none does."""
    return max((i for i, byte in enumerate(data) if byte & 0xC0 != 0x80), default=0)


def _kind(data: bytes) -> int:
    """Kind of one character.

    One that lacks bytes counts as what stands in the middle of those that begin so: E5 is an
    ideograph, D0 a letter, EF BC a sign.
    """
    if not data or data[0] & 0xC0 == 0x80:
        return _INSIDE
    character = data.ljust(_width(data[0]), b"\xa0").decode("utf-8", "replace")[0]
    if character == " ":
        return _SPACE
    if character.isspace():
        return _BLANK_SIGN
    if unicodedata.name(character, "").startswith(("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH")):
        return _IDEOGRAPH
    return {"L": _LETTER, "N": _DIGIT}.get(unicodedata.category(character)[0], _OTHER)


def _chunks(texts: Sequence[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for text in texts:
        chunk.append(text)
        size += len(text)
        if size >= _CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
