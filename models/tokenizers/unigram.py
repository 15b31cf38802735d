r"""SentencePiece's unigram language model: the cut of a text that is most probable.

text → NFC, blanks become spaces, control characters go → a space in front, one between words
     → spaces are ▁ → tokens: of all cuts into pieces, the one with the largest product of their
       probabilities

Case is kept, and a text is the same after decoding but for its blanks and for characters that have
no piece. The whole way is one SentencePiece model, which tensorflow-text runs, in training and in
the served graph alike; its rules of normalisation are part of the model (`models.character_rules`).
A model of T5, XLNet or Marian is run with its own rules.

References: Kudo 2018, arXiv 1804.10959; Kudo and Richardson 2018, arXiv 1808.06226.
"""

from __future__ import annotations

import hashlib
import json
import os
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from fourstage.errors import ContractViolation
from models.character_rules import canonical_rules, compiled_canonical_rules
from models.sentencepiece_model import PieceType, Unigram, read_unigram_model, unigram_model
from models.sentinels import sentinel_ids, sentinel_names
from models.served.pieces import is_cjk, text_of_bytes
from models.text_chunks import chunks
from models.unigram_pieces import SPACE, alphabet_of, learn_pieces

KEEPS_CASE = True
ADDS_WORDS = False
SPECIAL_TOKENS = ("<pad>", "</s>", "<unk>", "<s>", "<mask>")  # the first three are T5's
SMALLEST = 16  # smallest vocabulary: the special tokens and a few characters
MODEL = "spiece.model"
SETTINGS = "tokenizer.json"
# Share of the text that the alphabet must cover, as in SentencePiece; rarer characters are unknown.
CHARACTER_COVERAGE = 0.9995

ROLES = ("pad", "sep", "unknown", "cls", "mask")
# Which token a network that was trained without one has in its place.
_STAND_INS = {"sep": "</s>", "cls": "</s>", "mask": "<unk>", "pad": "<unk>"}

_CHUNK_CHARACTERS = 400_000  # text per call
_QUOTES = (("``", '"'), ("''", '"'))


def learn(texts: Iterable[str], *, vocabulary_size: int) -> UnigramTokenizer:
    """Learn a tokenizer; the same texts give the same pieces, on any number of cores.

    Args:
        texts: Any number of texts, iterated over twice; only their different words are kept in
            memory.
        vocabulary_size: Number of tokens, including the five special ones; short texts give fewer.

    Raises:
        ContractViolation: There is no text, or the vocabulary is too small.
    """
    if iter(texts) is texts:
        raise TypeError("texts: an iterator is empty the second time; give a list or the like")
    if vocabulary_size < SMALLEST:
        raise ContractViolation(
            f"tokenizer: vocabulary_size {vocabulary_size} is less than {SMALLEST}; increase it"
        )
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(_spaced(text))
    if not counts:
        raise ContractViolation("tokenizer: learning a vocabulary needs text; none came")
    wanted = vocabulary_size - len(SPECIAL_TOKENS)
    alphabet = {SPACE, *alphabet_of(counts, CHARACTER_COVERAGE, wanted // 2)}
    learned = learn_pieces(map(_spaced, texts), wanted, alphabet)
    kinds = [
        PieceType.UNKNOWN if token == "<unk>" else PieceType.CONTROL for token in SPECIAL_TOKENS
    ]
    model = Unigram(
        (*SPECIAL_TOKENS, *(piece for piece, _ in learned)),
        (*[0.0] * len(SPECIAL_TOKENS), *(score for _, score in learned)),
        (*kinds, *[PieceType.NORMAL] * len(learned)),
        compiled_canonical_rules(),
    )
    return UnigramTokenizer(model)


def _spaced(text: str) -> str:
    """A text as `canonical_rules` make it, with ▁ for spaces and one in front."""
    words = unicodedata.normalize("NFC", text.translate(_characters())).split(" ")
    return "".join(SPACE + word for word in words if word)


@cache
def _characters() -> dict[int, str]:
    """{code of a character: what `canonical_rules` replace it by}."""
    return {ord(text): other for text, other in canonical_rules().items() if len(text) == 1}


class UnigramTokenizer:
    """A unigram tokenizer: a SentencePiece model, and which of its tokens frame and pad.

    A special token's name in a text is split like any other text and never gives the special id.

    Args:
        model: The pieces with their scores, and the rules of normalisation.
        roles: {role of `ROLES`: its token}; a role that is missing is played by ``</s>`` or, in
            ``mask`` and ``pad``, by ``<unk>``.
        folds_accents: Whether accents are dropped and doubled quotes joined first (XLNet).

    Raises:
        ContractViolation: A token of a role is missing.

    References: Kudo 2018, arXiv 1804.10959; accents: Yang et al. 2019, arXiv 1906.08237, by the
    authors' code (``prepro_utils.py``).
    """

    lowercase = False

    def __init__(
        self,
        model: Unigram,
        roles: Mapping[str, str] | None = None,
        folds_accents: bool = False,
    ):
        self.model = model
        self.vocabulary = model.pieces
        self.vocabulary_size = len(self.vocabulary)
        self.folds_accents = folds_accents
        self._ids = {piece: i for i, piece in enumerate(self.vocabulary)}
        unknown = self.vocabulary[model.kinds.index(PieceType.UNKNOWN)]
        own = zip(ROLES, SPECIAL_TOKENS, strict=True)
        self.roles: dict[str, str] = dict(own if roles is None else roles)
        self.roles["unknown"] = unknown
        for role in ROLES:
            stands_in = unknown if _STAND_INS.get(role) == "<unk>" else "</s>"
            self.roles.setdefault(role, stands_in if stands_in in self._ids else unknown)
        missing = [token for token in self.roles.values() if token not in self._ids]
        if missing:
            raise ContractViolation(f"tokenizer: the vocabulary lacks {', '.join(missing[:8])}")
        self.pad_id, self.sep_id, self.unknown_id, self.cls_id, self.mask_id = (
            self._ids[self.roles[role]] for role in ROLES
        )
        self.sentinel_ids = sentinel_ids(self._ids)

    @cached_property
    def special_ids(self) -> tuple[int, ...]:
        """Ids that never come from text, and the unknown one."""
        from_text = (PieceType.NORMAL, PieceType.USER_DEFINED)
        return tuple(i for i, kind in enumerate(self.model.kinds) if kind not in from_text)

    @property
    def digest(self) -> str:
        """sha256 of everything that affects the ids of a text."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        parts = json.dumps(["unigram", self.folds_accents, self.roles], sort_keys=True)
        return hashlib.sha256(parts.encode() + self.serialised).hexdigest()

    @cached_property
    def serialised(self) -> bytes:
        """The model as a SentencePiece file."""
        return unigram_model(self.model)

    @cached_property
    def _cut(self) -> Any:
        """The operation that gives ids."""
        import tensorflow as tf
        import tensorflow_text as tf_text

        return tf_text.SentencepieceTokenizer(
            model=self.serialised,
            out_type=tf.int32,  # pyright: ignore[reportArgumentType]
        )

    @cached_property
    def _spelled(self) -> Any:
        """The operation that gives the texts of tokens, those of unknown ones too."""
        import tensorflow as tf
        import tensorflow_text as tf_text

        return tf_text.SentencepieceTokenizer(
            model=self.serialised,
            out_type=tf.string,  # pyright: ignore[reportArgumentType]
        )

    def _folded(self, texts: Any) -> Any:
        """(B,) strings without accents, if the network was trained so."""
        import tensorflow as tf
        import tensorflow_text as tf_text

        if not self.folds_accents:
            return texts
        for doubled, quote in _QUOTES:
            texts = tf.strings.regex_replace(texts, doubled, quote)
        return tf.strings.regex_replace(tf_text.normalize_utf8(texts, "NFKD"), r"\p{M}+", "")

    def _tokenize(self, texts: Any) -> Any:
        """(B,) strings → ragged (B, n) int32; the same ops for training data and serving."""
        return self._cut.tokenize(self._folded(texts))

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """One (n,) int32 array of ids per text, without special tokens.

        Runs in several threads; the result does not depend on their number.
        """
        return self._in_threads("_cut", texts)

    def encode_with_places(
        self, texts: Sequence[str]
    ) -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
        """As `encode`, with the normalised texts and each token's offsets in them.

        Offsets do not include the space before a word, so they are empty for a token that is only
        that space.

        Returns:
            (normalised text, ids (n,) int32, start offsets (n,) int64, end offsets (n,) int64) of
            each text; offsets are in characters.
        """
        found = []
        spelled = self._in_threads("_spelled", texts)
        for ids, pieces in zip(self.encode(texts), spelled, strict=True):
            names = [piece.decode() for piece in pieces]
            ends = np.cumsum([len(name) for name in names], dtype=np.int64)
            starts = ends - [len(name.removeprefix(SPACE)) for name in names]
            found.append(("".join(names).replace(SPACE, " "), ids, starts.astype(np.int64), ends))
        return found

    def _in_threads(self, operation: str, texts: Sequence[str]) -> list[np.ndarray]:
        """What an operation gives for each text."""
        import tensorflow as tf

        try:  # built once, before the threads start
            getattr(self, operation).tokenize("")
        except (
            tf.errors.NotFoundError
        ):  # a new seed clears TensorFlow's kernels, and this with them
            del self.__dict__[operation]
            getattr(self, operation).tokenize("")

        def run(chunk: list[str]) -> list[np.ndarray]:
            # Lone surrogates can't be encoded as UTF-8 and have no meaning: drop them.
            raw = tf.constant([text.encode("utf-8", "ignore") for text in chunk])
            ragged = getattr(self, operation).tokenize(self._folded(raw))
            values, splits = ragged.values.numpy(), ragged.row_splits.numpy()
            return [values[a:b] for a, b in pairwise(splits)]

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return [
                each for part in pool.map(run, chunks(texts, _CHUNK_CHARACTERS)) for each in part
            ]

    @cached_property
    def _bytes(self) -> list[bytes]:
        """The text of each id; for special tokens, their names."""
        return [piece.replace(SPACE, " ").encode() for piece in self.vocabulary]

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """The text of ids, without padding."""
        inner = (self._bytes[int(i)] for i in ids if int(i) != self.pad_id)
        return text_of_bytes(inner).removeprefix(" ")

    def served(self) -> dict[str, Any]:
        """What a served model needs to turn ids into text; the bytes are those of Latin-1."""
        return {"pieces": [data.decode("latin-1") for data in self._bytes], "bytes": True}

    def unit_starts(self, ids: np.ndarray) -> np.ndarray:
        """(n,) bool: whether a token starts a unit (a word, or one CJK character).

        A word begins at a space, and where letters, digits and other signs meet. CJK characters
        that share a token are one unit.
        """
        ids = np.asarray(ids, dtype=np.int64)
        starts = np.ones(len(ids), bool)
        first, last = self._first[ids[1:]], self._last[ids[:-1]]
        starts[1:] = (first != last) | (first == ord("I"))
        starts[1:] |= self._spaced_ids[ids[1:]]
        starts[1:] &= last != ord(" ")  # a space belongs to the word after it
        return starts

    @cached_property
    def _first(self) -> np.ndarray:
        """Kind of each token's first character behind a space; a mark's is that of a letter."""
        return np.array([_kind(piece.removeprefix(SPACE)[:1]) for piece in self.vocabulary])

    @cached_property
    def _last(self) -> np.ndarray:
        return np.array([_kind(piece.removeprefix(SPACE)[-1:]) for piece in self.vocabulary])

    @cached_property
    def _spaced_ids(self) -> np.ndarray:
        return np.array([piece.startswith(SPACE) for piece in self.vocabulary])

    def module(self) -> Any:
        """A ``tf.Module`` with ``__call__((B,) string) -> RaggedTensor (B, n) int32``."""
        import tensorflow as tf

        outer = self

        class UnigramModule(tf.Module):
            def __init__(self):
                super().__init__()
                self.cut = outer._cut  # tracked, so that a SavedModel includes it

            @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
            def __call__(self, texts: Any):
                # A client may send invalid UTF-8; a corpus never has any.
                texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
                return outer._tokenize(texts)

        return UnigramModule()

    def with_tokens(self, names: Iterable[str]) -> UnigramTokenizer:
        """This tokenizer with special tokens added on top."""
        names = tuple(names)
        model = Unigram(
            self.model.pieces + names,
            self.model.scores + (0.0,) * len(names),
            self.model.kinds + (PieceType.CONTROL,) * len(names),
            self.model.rules,
        )
        return UnigramTokenizer(model, self.roles, self.folds_accents)

    def save(self, folder: str | Path) -> None:
        """Write ``spiece.model`` and ``tokenizer.json``."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MODEL).write_bytes(self.serialised)
        settings = {
            "scheme": "unigram",
            "folds_accents": self.folds_accents,
            "roles": self.roles,
            "digest": self.digest,
        }
        (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", "utf-8")

    @classmethod
    def learned(
        cls, texts: Iterable[str], *, vocabulary_size: int, lowercase: bool, sentinels: int = 0
    ) -> UnigramTokenizer:
        """Learn a tokenizer from texts (`learn`); some of its tokens are sentinels.

        It always keeps case.
        """
        del lowercase
        made = learn(texts, vocabulary_size=vocabulary_size - sentinels)
        return made.with_tokens(sentinel_names(sentinels)) if sentinels else made

    @classmethod
    def load(cls, folder: str | Path) -> UnigramTokenizer:
        """Load a tokenizer that `save` wrote.

        Raises:
            ContractViolation: The model was changed.
        """
        folder = Path(folder)
        settings = json.loads((folder / SETTINGS).read_text("utf-8"))
        model = read_unigram_model((folder / MODEL).read_bytes(), str(folder / MODEL))
        tokenizer = cls(model, settings["roles"], settings["folds_accents"])
        if tokenizer.digest != settings["digest"]:
            raise ContractViolation(
                f"{folder / MODEL}: expected digest {settings['digest'][:12]}, got"
                f" {tokenizer.digest[:12]}; the file was changed: learn the tokenizer again"
            )
        return tokenizer


def _kind(character: str) -> int:
    """Code of a letter for the kind of a character: letter, digit, ideograph, other or space."""
    if not character:
        return ord(" ")
    if is_cjk(character):
        return ord("I")
    kind = unicodedata.category(character)[0]
    return ord("L" if kind in "LM" else "N" if kind == "N" else "O")
