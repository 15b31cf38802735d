r"""Byte-level BPE: the bytes of a text, merged pair by pair in the order of learning.

text → NFC → words by GPT-2's pattern, each with the space before it
     → bytes → tokens: the pair with the earliest merge is merged first, until none is left

Every text can be encoded, so there are no unknown tokens; case and whitespace are kept. Merges are
learned with the Rust package ``tokenizers`` and applied with tensorflow-text, so that the tokenizer
can be part of the served graph. tensorflow-text has no byte-level BPE, but SentencePiece's BPE is
equivalent (decision 0013): bytes are read as Latin-1 characters, and the rank of a merge gives the
score of its token.

References: Sennrich et al. 2016, arXiv 1508.07909, section 3.2; Radford et al. 2019, "Language
Models are Unsupervised Multitask Learners", section 2.2, with ``encoder.py`` of openai/gpt-2;
special tokens of Liu et al. 2019, arXiv 1907.11692. GPT-2's published vocabulary has a single one,
``<|endoftext|>``, which then plays every role.
"""

from __future__ import annotations

import hashlib
import json
import os
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from fourstage.errors import ContractViolation
from models.sentencepiece_model import bpe_model
from models.sentinels import sentinel_ids, sentinel_names
from models.served.pieces import text_of_bytes
from models.text_chunks import chunks

KEEPS_CASE = True
ADDS_WORDS = False
ROLES = ("cls", "pad", "sep", "unknown", "mask")
SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
END_OF_TEXT = "<|endoftext|>"
SMALLEST = 261  # smallest vocabulary: 256 bytes and 5 special tokens
VOCABULARY = "vocab.json"
MERGES = "merges.txt"
SETTINGS = "tokenizer.json"

_BLANK = r"\t-\r \x{85}\p{Z}"  # Unicode white space; RE2's \s is ASCII only
# GPT-2's pattern has a look-ahead, ``\s+(?!\S)``, which RE2 lacks. It leaves the last of several
# spaces to the word after them: "a   b" → "a", "  ", " b". So that space is split off first.
_LAST_BLANK = rf"([{_BLANK}]+)([{_BLANK}][^{_BLANK}])"
_WORD = (
    r"'s|'t|'re|'ve|'m|'ll|'d"
    rf"| ?\p{{L}}+| ?\p{{N}}+| ?[^{_BLANK}\p{{L}}\p{{N}}]+|[{_BLANK}]+"
)
_BETWEEN = b"\xff"  # word separator: this byte never occurs in UTF-8

_CHUNK_CHARACTERS = 400_000  # text per call; each distinct word of a call is tokenized once

# Kinds of character. _STARTS[a, b]: whether a unit starts at a character of kind b after kind a.
_INSIDE, _SPACE, _BLANK_SIGN, _LETTER, _DIGIT, _IDEOGRAPH, _OTHER = range(7)
_STARTS = np.ones((7, 7), bool)
_STARTS[:, _INSIDE] = False
_STARTS[_SPACE, _LETTER:] = False  # a space belongs to the word after it
for _same in (_LETTER, _DIGIT, _OTHER):
    _STARTS[_same, _same] = False


def _alphabet() -> tuple[str, ...]:
    """GPT-2's character for each byte: the byte itself if printable, else one from U+0100 on."""
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte) if byte in seen else chr(next(others)) for byte in range(256))


ALPHABET = _alphabet()
_BYTE = {character: byte for byte, character in enumerate(ALPHABET)}


def learn(texts: Iterable[str], *, vocabulary_size: int) -> ByteBPE:
    """Learn a tokenizer; the same texts give the same merges, on any number of cores.

    Pairs of equal frequency are ordered by the ids of their tokens, never by a hash map.

    Args:
        texts: Any number of texts; only their distinct words are kept in memory.
        vocabulary_size: Number of tokens, including the five special ones; short texts give fewer.

    Returns:
        A tokenizer with the ids ``<s> <pad> </s> <unk>``, the 256 bytes, the merges in order and
        ``<mask>``; the special tokens are at RoBERTa's positions. No merge can spell a special
        token, because letters and punctuation are never in one word.

    Raises:
        ContractViolation: There is no text, or the vocabulary is too small for the bytes.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    if vocabulary_size < SMALLEST:
        raise ContractViolation(
            f"tokenizer: vocabulary_size {vocabulary_size} is less than the {SMALLEST} of the 256"
            f" bytes and {len(SPECIAL_TOKENS)} special tokens; increase it"
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
    """A byte-level BPE tokenizer: a vocabulary and its merges.

    A special token's name in a text is split like any other text and never gives the special id.
    The same holds for entries that no merge produces, such as ``<|endoftext|>``.

    Args:
        vocabulary: Tokens in GPT-2's alphabet, ordered by id, with the 256 bytes and the special
            tokens.
        merges: Pairs of tokens in order of precedence.
        roles: {role of `ROLES`: its token}; a role that is missing has its usual token, or where
            the vocabulary lacks that, the token that ends a text: that of the role ``sep``, else
            ``<|endoftext|>``, the only special token of GPT-2.

    Raises:
        ContractViolation: A byte or the token of a role is missing, a token is repeated, or a merge
            uses or gives a token that does not exist.

    References: Sennrich et al. 2016, arXiv 1508.07909; Radford et al. 2019.
    """

    lowercase = False

    def __init__(
        self,
        vocabulary: Sequence[str],
        merges: Sequence[tuple[str, str]],
        roles: Mapping[str, str] | None = None,
    ):
        self.vocabulary = tuple(vocabulary)
        self.merges = tuple(merges)
        ids = {piece: i for i, piece in enumerate(self.vocabulary)}
        if len(ids) != len(self.vocabulary):
            raise ContractViolation(
                f"tokenizer: the vocabulary has {len(self.vocabulary)} entries but {len(ids)}"
                " different pieces; every piece must come once"
            )
        usual = dict(zip(ROLES, SPECIAL_TOKENS, strict=True))
        self.roles = dict(roles or {})
        end = self.roles.get("sep", END_OF_TEXT)
        if end in ids:
            usual = {role: token if token in ids else end for role, token in usual.items()}
        self.roles = usual | self.roles
        missing = [token for token in (*self.roles.values(), *ALPHABET) if token not in ids]
        if missing:
            raise ContractViolation(
                f"tokenizer: the vocabulary lacks {len(missing)} of the special tokens and bytes:"
                f" {' '.join(missing[:8])}"
            )
        self._order = dict.fromkeys(ALPHABET, 0)  # {token: merge rank}; 0 for a single byte
        for number, (left, right) in enumerate(self.merges, 1):
            joined = left + right
            if not {left, right} <= self._order.keys() or joined in self._order:
                raise ContractViolation(
                    f"tokenizer: merge {number} ({left} {right}): expected two pieces that bytes"
                    " or earlier merges give, and that no merge has joined yet"
                )
            if joined not in ids or joined in self.roles.values():
                raise ContractViolation(
                    f"tokenizer: merge {number} ({left} {right}) gives {joined}, which is no piece"
                    " of the vocabulary"
                )
            self._order[joined] = number
        self.vocabulary_size = len(self.vocabulary)
        self.cls_id, self.pad_id, self.sep_id, self.unknown_id, self.mask_id = (
            ids[self.roles[role]] for role in ROLES
        )
        self.sentinel_ids = sentinel_ids(ids)

    @cached_property
    def special_ids(self) -> tuple[int, ...]:
        """Ids that never come from text; never predicted, never random replacements."""
        return tuple(i for i, piece in enumerate(self.vocabulary) if piece not in self._order)

    @property
    def digest(self) -> str:
        """sha256 of everything that affects the ids of a text."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        parts: list[Any] = ["byte_bpe", "NFC", _LAST_BLANK, _WORD, self.vocabulary, self.merges]
        parts += [self.roles] if self._unusual else []
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def _unusual(self) -> bool:
        """Whether a role is not played by its usual token."""
        return tuple(self.roles[role] for role in ROLES) != SPECIAL_TOKENS

    @cached_property
    def _bytes(self) -> list[bytes]:
        """The bytes of each id; for special tokens, their names."""
        return [
            bytes(map(_BYTE.__getitem__, piece)) if piece in self._order else piece.encode()
            for piece in self.vocabulary
        ]

    @cached_property
    def _pieces(self) -> Any:
        """The SentencePiece tokenizer for the words.

        SentencePiece merges the neighbours whose *merged* token has the lowest rank. This is the
        learned pair, because a learned token is split from its own text in only one way.
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
        """(B,) strings → ragged (B, n) int32; the same ops for training data and serving."""
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
        """One (n,) int32 array of ids per text, without special tokens.

        Runs in several threads; the result does not depend on their number.
        """
        import tensorflow as tf

        try:  # built once, before the threads start
            self._pieces.tokenize("")
        except (
            tf.errors.NotFoundError
        ):  # a new seed clears TensorFlow's kernels, and this with them
            del self.__dict__["_pieces"]
            self._pieces.tokenize("")

        def run(chunk: list[str]) -> list[np.ndarray]:
            # Lone surrogates can't be encoded as UTF-8 and have no meaning: drop them.
            ragged = self._tokenize(tf.constant([text.encode("utf-8", "ignore") for text in chunk]))
            values, splits = ragged.values.numpy(), ragged.row_splits.numpy()
            return [values[a:b] for a, b in pairwise(splits)]

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return [ids for part in pool.map(run, chunks(texts, _CHUNK_CHARACTERS)) for ids in part]

    def encode_with_places(
        self, texts: Sequence[str]
    ) -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
        """As `encode`, with the normalised texts and each token's offsets in them.

        Offsets do not include the space before a word, so they are empty for a token that is only
        that space. A token with some of a character's bytes has the offsets of the character.

        Returns:
            (normalised text, ids (n,) int32, start offsets (n,) int64, end offsets (n,) int64) of
            each text; offsets are in characters.
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
        """Bytes of white space at the start of each token; 0 for a token of white space only."""
        inner = (data.decode("utf-8", "surrogateescape") for data in self._bytes)
        widths = [
            len(text[: -len(text.lstrip())].encode()) if text.strip() else 0 for text in inner
        ]
        return np.array(widths, np.int64)

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """The text of ids, without padding; U+FFFD for an incomplete character."""
        return text_of_bytes(self._bytes[int(i)] for i in ids if int(i) != self.pad_id)

    def served(self) -> dict[str, Any]:
        """What a served model needs to turn ids into text; the bytes are those of Latin-1."""
        return {"pieces": [data.decode("latin-1") for data in self._bytes], "bytes": True}

    def unit_starts(self, ids: np.ndarray) -> np.ndarray:
        """(n,) bool: whether a token starts a unit (a word, or one CJK character).

        Words are those of GPT-2's pattern: with the space before them, and with letters, digits
        and other characters separate. A character is never split between units. CJK characters
        that share a token are one unit.
        """
        ids = np.asarray(ids, dtype=np.int64)
        first, last = self._first[ids], self._last[ids]
        if not last.all():  # a token within a character takes over that character's kind
            last = last[np.maximum.accumulate(np.where(last, np.arange(len(ids)), 0))]
        starts = np.ones(len(ids), bool)
        starts[1:] = _STARTS[last[:-1], first[1:]]
        return starts

    @cached_property
    def _first(self) -> np.ndarray:
        """Kind of each token's first character; `_INSIDE` if it starts within a character."""
        heads = (data[: _width(data[0])] if data else b"" for data in self._bytes)
        return np.array([_kind(head) for head in heads], np.uint8)

    @cached_property
    def _last(self) -> np.ndarray:
        """Kind of the last character that starts in each token; `_INSIDE` if none does."""
        return np.array([_kind(data[_last_start(data) :]) for data in self._bytes], np.uint8)

    def module(self) -> Any:
        """A ``tf.Module`` with ``__call__((B,) string) -> RaggedTensor (B, n) int32``."""
        import tensorflow as tf

        outer = self

        class ByteBPEModule(tf.Module):
            def __init__(self):
                super().__init__()
                self.pieces = outer._pieces  # tracked, so that a SavedModel includes it

            @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
            def __call__(self, texts: Any):
                # A client may send invalid UTF-8; a corpus never has any.
                texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
                return outer._tokenize(texts)

        return ByteBPEModule()

    def save(self, folder: str | Path) -> None:
        """Write ``vocab.json`` and ``merges.txt`` in GPT-2's format, and ``tokenizer.json``."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_pieces(self, folder)
        roles = {"roles": self.roles} if self._unusual else {}
        settings = {"scheme": "byte_bpe", **roles, "digest": self.digest}
        (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", "utf-8")

    @classmethod
    def learned(
        cls, texts: Iterable[str], *, vocabulary_size: int, lowercase: bool, sentinels: int = 0
    ) -> ByteBPE:
        """Learn a tokenizer from texts (`learn`); some of its tokens are sentinels.

        It always keeps case.
        """
        del lowercase
        made = learn(texts, vocabulary_size=vocabulary_size - sentinels)
        return cls([*made.vocabulary, *sentinel_names(sentinels)], made.merges)

    @classmethod
    def load(cls, folder: str | Path) -> ByteBPE:
        """Load a tokenizer that `save` wrote.

        Raises:
            ContractViolation: A file was changed.
        """
        folder = Path(folder)
        settings = json.loads((folder / SETTINGS).read_text("utf-8"))
        tokenizer = cls(*read_pieces(folder), settings.get("roles"))
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
    """Tokens ordered by id, and merges, from ``vocab.json`` and ``merges.txt``.

    Raises:
        ContractViolation: A file is malformed.
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
                f"{folder / MERGES}:{number}: expected two pieces with a space between them"
            )
        merges.append((left, right))
    return vocabulary, merges


def in_order(ids: Any, path: Path) -> list[str]:
    """The tokens of {token: id}, ordered by id.

    Raises:
        ContractViolation: It is not such a mapping, or the ids have gaps.
    """
    if not isinstance(ids, dict) or sorted(map(str, ids.values())) != sorted(
        map(str, range(len(ids)))
    ):
        raise ContractViolation(f"{path}: expected a vocabulary with the ids 0, 1, 2…")
    return sorted(ids, key=ids.__getitem__)


def _width(lead: int) -> int:
    """Number of bytes of a UTF-8 character, from its first byte."""
    return 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)


def _last_start(data: bytes) -> int:
    """Index of the last byte that starts a character; 0 if none does."""
    return max((i for i, byte in enumerate(data) if byte & 0xC0 != 0x80), default=0)


def _kind(data: bytes) -> int:
    """Kind of one character.

    An incomplete character counts as one from the middle of the range that its bytes start: E5 is
    an ideograph, D0 a letter, EF BC punctuation.
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
