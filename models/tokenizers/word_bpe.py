r"""BPE within words: the characters of a word, merged pair by pair in the order of learning (GPT).

text → normalise and split as WordPiece does (each CJK character is a word by itself)
     → characters, the last one of a word with ``</w>`` → tokens: the pair with the earliest merge
       is merged first, until none is left

    low lower    →    low</w>  low er</w>

This is the first GPT's tokenizer as transformers has it; the authors' own splits words with spaCy,
after ftfy has mended the text. A character that is no token is <unk>.

Merges are learned with the Rust package ``tokenizers`` and applied with SentencePiece's BPE, as in
`models.tokenizers.byte_bpe`.

References: Sennrich et al. 2016, arXiv 1508.07909, section 3.2; Radford et al. 2018, "Improving
Language Understanding by Generative Pre-Training", 4.1; ``tokenization_openai.py`` of transformers.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fourstage.errors import ContractViolation
from models.sentencepiece_model import bpe_model
from models.sentinels import sentinel_ids, sentinel_names
from models.tokenizers.byte_bpe import (
    MERGES,
    SETTINGS,
    VOCABULARY,
    ByteBPE,
    read_pieces,
    write_pieces,
)
from models.tokenizers.wordpiece import CHARACTER_COVERAGE, REMOVED, normalise, word_counts
from models.unigram_pieces import alphabet_of

KEEPS_CASE = False
ADDS_WORDS = False
SMALLEST = 20  # smallest vocabulary: the special tokens and a few characters
END = "</w>"
ROLES = ("pad", "unknown", "cls", "sep", "mask")
SPECIAL_TOKENS = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")

# In place of `END`, and of a character that is no token; `normalise` leaves neither in a text.
ONE_END, _NO_TOKEN = "\ue000", "\ue001"
_BLANKS = r"[\t-\r \x{85}\p{Z}]+"
# BERT's punctuation, and its blocks of ideographs, as the Rust package has them.
_ALONE = (
    r"([!-/:-@\[-`{-~\p{P}\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{20000}-\x{2A6DF}"
    r"\x{2A700}-\x{2B73F}\x{2B740}-\x{2B81F}\x{2B920}-\x{2CEAF}\x{2F800}-\x{2FA1F}])"
)


def learn(texts: Iterable[str], *, vocabulary_size: int, lowercase: bool = True) -> WordBPE:
    """Learn a tokenizer; the same texts give the same merges, on any number of cores.

    Args:
        texts: Any number of texts; only their different words are kept in memory.
        vocabulary_size: Number of tokens, including the five special ones; short texts give fewer.
        lowercase: Whether case and accents are dropped.

    Raises:
        ContractViolation: There is no text, or the vocabulary is too small.
    """
    from tokenizers import Tokenizer, models, trainers

    words = word_counts(texts, lowercase=lowercase)
    if not words:
        raise ContractViolation("tokenizer: learning a vocabulary needs text; none came")
    counts: Counter[str] = Counter()
    for word, count in words.items():
        counts.update({letter: count * number for letter, number in Counter(word).items()})
    # Each character is a token twice, within a word and at its end.
    alphabet = alphabet_of(counts, CHARACTER_COVERAGE, vocabulary_size // 4)
    singles = [*alphabet, *(letter + END for letter in alphabet)]
    if len(singles) + len(SPECIAL_TOKENS) >= vocabulary_size:
        raise ContractViolation(
            f"tokenizer: vocabulary_size {vocabulary_size} is less than the"
            f" {len(singles) + len(SPECIAL_TOKENS)} special tokens and characters; increase it"
        )
    tokenizer: Any = Tokenizer(models.BPE(end_of_word_suffix=END))
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[*SPECIAL_TOKENS, *singles],  # which only numbers them in this order
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        end_of_word_suffix=END,
        min_frequency=2,
        show_progress=False,
    )
    repeated = (word for word in sorted(words) for _ in range(words[word]))
    tokenizer.train_from_iterator(repeated, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return WordBPE(pieces, [(a, b) for a, b in model["merges"]], lowercase=lowercase)


class WordBPE(ByteBPE):
    """A BPE tokenizer within words: a vocabulary and its merges.

    A special token's name in a text is split like any other text and never gives the special id.

    Args:
        vocabulary: Tokens ordered by id.
        merges: Pairs of tokens in order of precedence.
        roles: {role of `ROLES`: its token}; a role that is missing has its usual token, or where
            the vocabulary lacks that, ``<unk>``, the only special token of the published one.
        lowercase: Whether case and accents are dropped.

    Raises:
        ContractViolation: A token of a role is missing, a token is repeated, or a merge uses or
            gives a token that does not exist.

    References: Sennrich et al. 2016, arXiv 1508.07909; Radford et al. 2018.
    """

    def __init__(
        self,
        vocabulary: Sequence[str],
        merges: Sequence[tuple[str, str]],
        roles: Mapping[str, str] | None = None,
        lowercase: bool = True,
    ):
        self.vocabulary, self.merges = tuple(vocabulary), tuple(merges)
        self.vocabulary_size, self.lowercase = len(self.vocabulary), bool(lowercase)
        ids = {piece: i for i, piece in enumerate(self.vocabulary)}
        if len(ids) != len(self.vocabulary):
            raise ContractViolation(
                f"tokenizer: the vocabulary has {len(self.vocabulary)} entries but {len(ids)}"
                " different pieces; every piece must come once"
            )
        self.roles = dict(roles or {})
        unknown = self.roles.setdefault("unknown", "<unk>")
        for role, token in zip(ROLES, SPECIAL_TOKENS, strict=True):
            self.roles.setdefault(role, token if token in ids else unknown)
        if missing := sorted(set(self.roles.values()) - ids.keys()):
            raise ContractViolation(f"tokenizer: the vocabulary lacks {', '.join(missing)}")
        self.pad_id, self.unknown_id, self.cls_id, self.sep_id, self.mask_id = (
            ids[self.roles[role]] for role in ROLES
        )
        self.sentinel_ids = sentinel_ids(ids)
        # {token: rank}: characters need no merge, and a word's last one is joined to `END` first.
        self._order = {piece: 0 for piece in self.vocabulary if len(piece) == 1}
        for piece in self.vocabulary:
            if len(piece) == 1 + len(END) and piece.endswith(END):
                self._order[piece] = 1
        for number, (left, right) in enumerate(self.merges, 1):
            joined = left + right
            if not {left, right} <= self._order.keys() or joined in self._order:
                raise ContractViolation(
                    f"tokenizer: merge {number} ({left} {right}): expected two pieces that"
                    " characters or earlier merges give, and that no merge has joined yet"
                )
            if joined not in ids or joined in self.roles.values():
                raise ContractViolation(
                    f"tokenizer: merge {number} ({left} {right}) gives {joined}, which is no piece"
                    " of the vocabulary"
                )
            self._order[joined] = 1 + number

    @cached_property
    def _digest(self) -> str:
        parts: list[Any] = ["word_bpe", self.lowercase, REMOVED, _BLANKS, _ALONE, self.roles]
        data = json.dumps([*parts, self.vocabulary, self.merges], sort_keys=True)
        return hashlib.sha256(data.encode()).hexdigest()

    @cached_property
    def _bytes(self) -> list[bytes]:
        """The bytes of each id, with a space at a word's end; for special tokens, their names."""
        return [
            (piece.removesuffix(END) + " " * piece.endswith(END)).encode()
            if piece in self._order
            else piece.encode()
            for piece in self.vocabulary
        ]

    @cached_property
    def _pieces(self) -> Any:
        """The SentencePiece tokenizer for the words (`models.tokenizers.byte_bpe`).

        It has two pieces more: `_NO_TOKEN`, within a word and at its end.
        """
        import tensorflow as tf
        import tensorflow_text as tf_text

        pieces: list[tuple[str, int | None]] = [
            (marked(piece), self._order[piece]) if piece in self._order else (piece, None)
            for piece in self.vocabulary
        ]
        pieces += [(_NO_TOKEN, 0), (marked(_NO_TOKEN + END), 1)]
        return tf_text.SentencepieceTokenizer(
            model=bpe_model(pieces, self.unknown_id),
            out_type=tf.int32,  # pyright: ignore[reportArgumentType]
        )

    @cached_property
    def _no_tokens(self) -> tuple[str, str]:
        """Patterns of the characters that are no token within a word, and at its end."""
        inner = [piece for piece in self._order if len(piece) == 1]
        last = [p[0] for p in self._order if len(p) == 1 + len(END) and p.endswith(END)]
        return _others(inner), _others(last)

    def _normal(self, texts: Any, keep_case: bool = False) -> Any:
        """(B,) strings, normalised, with a space for blanks."""
        import tensorflow as tf

        texts = normalise(texts, lowercase=self.lowercase, keep_case=keep_case)
        return tf.strings.regex_replace(texts, _BLANKS, " ")

    def _tokenize(self, texts: Any) -> Any:
        """(B,) strings → ragged (B, n) int32; the same ops for training data and serving."""
        import tensorflow as tf

        words: Any = tf.strings.split(
            tf.strings.regex_replace(self._normal(texts), _ALONE, r" \1 ")
        )
        different, which = tf.unique(words.values)
        length = tf.strings.length(different, unit="UTF8_CHAR")
        start = tf.zeros_like(length)
        inner = tf.strings.substr(different, start, length - 1, unit="UTF8_CHAR")
        last = tf.strings.substr(different, length - 1, start + 1, unit="UTF8_CHAR")
        no_inner, no_last = self._no_tokens
        inner = tf.strings.regex_replace(inner, no_inner, _NO_TOKEN)
        last = tf.strings.regex_replace(last, no_last, _NO_TOKEN)
        found = tf.gather(self._pieces.tokenize(inner + last + ONE_END), which)
        ids = tf.where(found.values < self.vocabulary_size, found.values, self.unknown_id)
        ragged: Any = tf.RaggedTensor
        return ragged.from_row_splits(ids, tf.gather(found.row_splits, words.row_splits))

    def encode_with_places(
        self, texts: Sequence[str]
    ) -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
        """As `encode`, with the normalised texts and each token's offsets in them.

        Returns:
            (normalised text, ids (n,) int32, start offsets (n,) int64, end offsets (n,) int64) of
            each text; offsets are in characters.
        """
        found = []
        for text, ids in zip(self._as_text(texts), self.encode(texts), strict=True):
            places = np.flatnonzero([letter != " " for letter in text])
            ends = np.cumsum(self._lengths[ids])
            found.append((text, ids, places[ends - self._lengths[ids]], places[ends - 1] + 1))
        return found

    def with_case(self, texts: Sequence[str]) -> list[str]:
        """The normalised texts of `encode_with_places`, but with their original case."""
        return self._as_text(texts, keep_case=True)

    def _as_text(self, texts: Sequence[str], keep_case: bool = False) -> list[str]:
        import tensorflow as tf

        raw = tf.constant([text.encode("utf-8", "ignore") for text in texts], tf.string)
        return [text.decode() for text in self._normal(raw, keep_case).numpy()]

    @cached_property
    def _lengths(self) -> np.ndarray:
        """Characters of each token; one for an unknown one."""
        inner = (p.removesuffix(END) or p if p in self._order else "?" for p in self.vocabulary)
        return np.array([len(piece) for piece in inner], np.int64)

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """The text of ids, without padding; words are separated by spaces."""
        return super().decode(ids).removesuffix(" ")

    def unit_starts(self, ids: np.ndarray) -> np.ndarray:
        """(n,) bool: whether a token starts a word. A character that is no token ends one."""
        starts = np.ones(len(ids), bool)
        starts[1:] = self._ends[np.asarray(ids, np.int64)[:-1]]
        return starts

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.array([p.endswith(END) or p not in self._order for p in self.vocabulary])

    def save(self, folder: str | Path) -> None:
        """Write ``vocab.json``, ``merges.txt`` and ``tokenizer.json``."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_pieces(self, folder)
        settings = {
            "scheme": "word_bpe",
            "lowercase": self.lowercase,
            "roles": self.roles,
            "digest": self.digest,
        }
        (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", "utf-8")

    @classmethod
    def learned(
        cls, texts: Iterable[str], *, vocabulary_size: int, lowercase: bool, sentinels: int = 0
    ) -> WordBPE:
        """Learn a tokenizer from texts (`learn`); some of its tokens are sentinels."""
        made = learn(texts, vocabulary_size=vocabulary_size - sentinels, lowercase=lowercase)
        pieces = [*made.vocabulary, *sentinel_names(sentinels)]
        return cls(pieces, made.merges, lowercase=lowercase)

    @classmethod
    def load(cls, folder: str | Path) -> WordBPE:
        """Load a tokenizer that `save` wrote.

        Raises:
            ContractViolation: A file was changed.
        """
        folder = Path(folder)
        settings = json.loads((folder / SETTINGS).read_text("utf-8"))
        tokenizer = cls(*read_pieces(folder), settings["roles"], settings["lowercase"])
        if tokenizer.digest != settings["digest"]:
            raise ContractViolation(
                f"{folder / VOCABULARY}, {MERGES}: expected digest {settings['digest'][:12]}, got"
                f" {tokenizer.digest[:12]}; a file was changed: learn the tokenizer again"
            )
        return tokenizer


def marked(piece: str) -> str:
    """A piece with one character for its `END`."""
    return piece.removesuffix(END) + ONE_END if piece.endswith(END) else piece


def _others(characters: Sequence[str]) -> str:
    """A pattern of all characters but these."""
    return "[^" + "".join(f"\\x{{{ord(each):X}}}" for each in characters) + "]"
