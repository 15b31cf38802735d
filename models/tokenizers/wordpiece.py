"""WordPiece: words split into the longest matching tokens of a learned vocabulary.

text → normalise (remove control characters, Unicode normal form, lower-case and strip accents)
     → split at white space, at punctuation and around each CJK character
     → tokens; those within a word start with ``##``

A tokenizer may have marks, such as ``[HD]`` round an entity: each is one token wherever a text has
it, with the same case.

The vocabulary is learned with the Rust package ``tokenizers`` (30 times faster than
tensorflow-text's learner) and applied with tensorflow-text (2 to 10 times faster than Rust, and it
can be part of the served graph). The ids equal those of Rust's BertNormalizer + WordPiece.
``FastBertNormalizer`` is not used for lower-casing, because it also folds compatibility characters
(full-width punctuation becomes ASCII, ½ becomes 1⁄2), which the published Chinese vocabularies do
not expect.

Reference: Devlin et al. 2019, arXiv 1810.04805, section 3; Song et al. 2021, arXiv 2012.15524.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np

from fourstage.errors import ContractViolation
from models.marks import Unmarked
from models.sentinels import sentinel_ids, sentinel_names
from models.served.pieces import CONTINUATION, characters_of, is_cjk, text_of_words
from models.text_chunks import chunks

KEEPS_CASE = False
ADDS_WORDS = True  # words of a domain can be added to an existing vocabulary
WHOLE_WORDS = True  # a token that is a word is written as the word is
MARKS = True  # strings of a text can be tokens of their own
PLACED_IN_GRAPH = True  # its module says where tokens lie in the text (`placed`)
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MAX_WORD = 100  # characters; a longer word is one [UNK], as in the published tokenizers
MAX_WORD_BYTES = 4 * MAX_WORD  # tensorflow-text counts bytes, of which a character has up to four
OPTIONS = ("marks", "longest_match")  # arguments that a tokenizer's file has, where they are set

# Characters that are removed first: control characters except tab and line ends, U+FFFD, format
# characters (zero width, direction), private use. RE2 syntax.
REMOVED = r"[\x{0}-\x{8}\x{B}\x{C}\x{E}-\x{1F}\x{7F}-\x{9F}\x{FFFD}\p{Cf}\p{Co}]+"

# In normalised text a mark is a character of the private use area, which `REMOVED` has emptied.
_FIRST_SIGN = 0xE000

# Share of the text that the alphabet must cover; words with rarer characters become [UNK].
CHARACTER_COVERAGE = 0.99995

_CHUNK_CHARACTERS = 200_000  # text per call: large enough to make the fixed cost negligible


def normalise(
    texts: Any, *, lowercase: bool, keep_case: bool = False, marks: Sequence[str] = ()
) -> Any:
    """Normalise text, both for training data and in the served graph.

    Args:
        texts: (B,) string tensor, valid UTF-8.
        lowercase: Whether case and accents are dropped. Otherwise the text is put into NFC; corpora
            already are, but a served text may not be.
        keep_case: Whether capitals are kept despite `lowercase`. The text then has the same length
            as with lower case: İ, the only capital whose lower case has two characters, has already
            lost its dot.
        marks: Strings of which each becomes a word of one character (`signs`).

    Returns:
        (B,) string tensor.
    """
    import tensorflow as tf
    import tensorflow_text as tf_text

    texts = tf.strings.regex_replace(texts, REMOVED, "")
    named = zip(marks, signs(len(marks)), strict=True)
    for mark, sign in sorted(named, key=lambda each: -len(each[0])):  # one may begin another
        texts = tf.strings.regex_replace(texts, re.escape(mark), f" {sign} ")
    if not lowercase:
        return tf_text.normalize_utf8(texts, "NFC")
    texts = tf_text.normalize_utf8(texts, "NFD")
    texts = tf.strings.regex_replace(texts, r"\p{Mn}+", "")
    return texts if keep_case else tf.strings.lower(texts, encoding="utf-8")


def signs(number: int) -> list[str]:
    """The characters that so many marks have in normalised text."""
    return [chr(_FIRST_SIGN + i) for i in range(number)]


def learn(texts: Iterable[str], *, vocabulary_size: int, lowercase: bool) -> list[str]:
    """Learn a vocabulary; the same texts give the same one, on any number of cores.

    The learner itself is not deterministic: it numbers the tokens ``##x`` in the order of a hash
    map, and their numbers decide between equally frequent pairs. Passing it all single characters,
    sorted, fixes their numbers.

    Args:
        texts: Any number of texts, iterated over twice; only their distinct words are kept in
            memory.
        vocabulary_size: Number of tokens, including the five special ones; short texts give fewer.
        lowercase: Whether case and accents are dropped.

    Returns:
        Tokens ordered by id, starting with ``[PAD] [UNK] [CLS] [SEP] [MASK]``.

    Raises:
        ContractViolation: There is no text, or its characters alone fill the vocabulary.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    if iter(texts) is texts:
        raise TypeError("texts: an iterator is empty the second time; give a list or the like")
    normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(normalizer.normalize_str(text))
    for blank in " \t\n\r":
        counts.pop(blank, None)
    if not counts:
        raise ContractViolation("tokenizer: learning a vocabulary needs text; none came")
    alphabet = _alphabet(counts, most=vocabulary_size // 2)
    singles = [
        *SPECIAL_TOKENS,
        *alphabet,
        *(CONTINUATION + c for c in alphabet if not _stands_alone(c)),
    ]
    if len(singles) >= vocabulary_size:
        raise ContractViolation(
            f"tokenizer: vocabulary_size {vocabulary_size} is less than the {len(singles)} single"
            " characters of the text; ask for at least twice as many"
        )
    tokenizer = Tokenizer(models.WordPiece({}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()  # type: ignore[assignment]
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        special_tokens=singles,  # despite its name, this only numbers them in this order
        initial_alphabet=list(alphabet),
        limit_alphabet=len(alphabet),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(map(normalizer.normalize_str, texts), trainer)
    vocabulary = tokenizer.get_vocab(with_added_tokens=False)
    return sorted(vocabulary, key=vocabulary.__getitem__)


def _alphabet(counts: Counter[str], most: int) -> list[str]:
    """The most frequent characters, up to `CHARACTER_COVERAGE`, sorted by code point.

    Args:
        counts: {character: count}.
        most: Largest number of tokens for single characters; a character that can be within a word
            takes two, ``x`` and ``##x``.
    """
    tail = sum(counts.values()) * (1 - CHARACTER_COVERAGE)
    ranked = sorted(counts, key=lambda c: (-counts[c], c))
    slots = 0
    chosen: list[str] = []
    left = float(sum(counts.values()))
    for character in ranked:
        slots += 1 if _stands_alone(character) else 2
        if slots > most or left <= tail:
            break
        chosen.append(character)
        left -= counts[character]
    return sorted(chosen)


def _stands_alone(character: str) -> bool:
    """Whether a character is always a word by itself: punctuation and CJK ideographs."""
    import unicodedata

    return (
        unicodedata.category(character)[0] == "P"
        or character in "$+<=>^`|~"  # ASCII signs that BERT treats as punctuation
        or is_cjk(character)
    )


def word_counts(
    texts: Iterable[str], *, lowercase: bool, cut: Callable[[str], Iterable[str]] | None = None
) -> Counter[str]:
    """Count of each word, normalised and split as for a vocabulary.

    Args:
        texts: Any number of texts, iterated over once.
        lowercase: Whether case and accents are dropped.
        cut: Gives the words of a run of CJK characters; None: each character is a word.
    """
    from tokenizers import normalizers, pre_tokenizers

    normalizer = normalizers.BertNormalizer(lowercase=lowercase, handle_chinese_chars=cut is None)
    cutter = pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for text in texts:
        normal = normalizer.normalize_str(text)
        words = (word for word, _ in cutter.pre_tokenize_str(normal))
        counts.update(words if cut is None else chain.from_iterable(_cut(words, cut)))
    return counts


def _cut(stretches: Iterable[str], cut: Callable[[str], Iterable[str]]) -> Iterator[Iterable[str]]:
    """The words of stretches between blanks and punctuation, those of a CJK run together."""
    for cjk, characters in chain.from_iterable(groupby(each, is_cjk) for each in stretches):
        run = "".join(characters)
        yield cut(run) if cjk else (run,)


class WordPiece:
    """A WordPiece tokenizer.

    A special token's name in a text is split like any other text and never gives the special id.

    Args:
        vocabulary: Tokens ordered by id, with the five special ones and the marks.
        lowercase: Whether case and accents are dropped.
        marks: Tokens of the vocabulary that are one token wherever a text has them.

    Raises:
        ContractViolation: A special token or a mark is missing, or a token is repeated.

    Reference: Devlin et al. 2019, arXiv 1810.04805.
    """

    scheme = "wordpiece"
    longest_match = False  # each CJK character is by itself

    def __init__(self, vocabulary: Sequence[str], lowercase: bool, marks: Sequence[str] = ()):
        self.vocabulary = tuple(vocabulary)
        self.lowercase = bool(lowercase)
        self.marks = tuple(marks)
        self._ids = {piece: i for i, piece in enumerate(self.vocabulary)}
        missing = [token for token in (*SPECIAL_TOKENS, *self.marks) if token not in self._ids]
        if missing:
            raise ContractViolation(f"tokenizer: the vocabulary lacks {', '.join(missing)}")
        if len(self._ids) != len(self.vocabulary):
            raise ContractViolation(
                f"tokenizer: the vocabulary has {len(self.vocabulary)} lines but"
                f" {len(self._ids)} different pieces; every piece must come once"
            )
        self.vocabulary_size = len(self.vocabulary)
        self.pad_id, self.unknown_id, self.cls_id, self.sep_id, self.mask_id = (
            self._ids[token] for token in SPECIAL_TOKENS
        )
        self.sentinel_ids = sentinel_ids(self._ids)

    @property
    def special_ids(self) -> tuple[int, ...]:
        """Ids that are never predicted and never random replacements."""
        named = (self.pad_id, self.unknown_id, self.cls_id, self.sep_id, self.mask_id)
        return named + self.sentinel_ids + tuple(self._ids[mark] for mark in self.marks)

    @property
    def digest(self) -> str:
        """sha256 of everything that affects the ids of a text."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        parts = [self.scheme, self.lowercase, MAX_WORD, REMOVED, list(self.vocabulary)]
        parts += self._options.values()
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def _options(self) -> Mapping[str, Any]:
        """Arguments beside vocabulary and case, without those that change nothing."""
        return {name: value for name in OPTIONS if (value := getattr(self, name))}

    @cached_property
    def _starts(self) -> np.ndarray:
        return np.array([not piece.startswith(CONTINUATION) for piece in self.vocabulary])

    @cached_property
    def _lengths(self) -> np.ndarray:
        """Characters of a word that each token stands for; a mark is a word by itself."""
        characters = [len(piece.removeprefix(CONTINUATION)) for piece in self.vocabulary]
        return np.array(characters, np.int32)

    @cached_property
    def _pieces(self) -> Any:
        import tensorflow as tf
        import tensorflow_text as tf_text

        named = dict(zip(self.marks, signs(len(self.marks)), strict=True))
        return tf_text.FastWordpieceTokenizer(
            vocab=[named.get(piece, piece) for piece in self.vocabulary],
            token_out_type=tf.int32,  # pyright: ignore[reportArgumentType]
            max_bytes_per_word=MAX_WORD_BYTES,
        )

    @cached_property
    def _blanks(self) -> Any:
        import tensorflow_text as tf_text

        return tf_text.FastBertNormalizer(lower_case_nfd_strip_accents=False)

    def _tokenize(self, texts: Any) -> Any:
        """(B,) strings → ragged (B, n) int32; the same ops for training data and serving."""
        ids = self._pieces.tokenize(self._normal(texts))
        return self._shortened(ids)[0]

    def _shortened(self, ids: Any, *places: Any) -> tuple[Any, ...]:
        """Tokens in which each word of more than `MAX_WORD` characters is one [UNK].

        Args:
            ids: Ragged (B, n) int32.
            places: Their starts and ends, or none; ragged (B, n) int64.

        Returns:
            `ids` and `places`, without the tokens that go on with such a word.
        """
        import tensorflow as tf

        begins = tf.gather(self._starts, ids.values)
        word = tf.cumsum(tf.cast(begins, tf.int32)) - 1  # number of each token's word
        too_long = tf.math.segment_sum(tf.gather(self._lengths, ids.values), word) > MAX_WORD

        def shortened() -> tuple[Any, ...]:
            is_long = tf.gather(too_long, word)
            new = [tf.where(is_long, self.unknown_id, ids.values)]
            if places:
                starts, ends = (each.values for each in places)
                new += [starts, tf.gather(tf.math.segment_max(ends, word), word)]
            kept = ids.with_values(begins | ~is_long)
            return tuple(tf.ragged.boolean_mask(ids.with_values(each), kept) for each in new)

        return tf.cond(tf.reduce_any(too_long), shortened, lambda: (ids, *places))

    def _placed(self, normal: Any) -> tuple[Any, Any, Any]:
        """(B,) normalised strings → ids, starts and ends (in bytes) of tokens, ragged (B, n)."""
        ids, starts, ends = self._shortened(*self._pieces.tokenize_with_offsets(normal))
        return ids, starts, ends

    def _normal(self, texts: Any) -> Any:
        """(B,) strings, normalised, with a space for blanks."""
        normal = normalise(texts, lowercase=self.lowercase, marks=self.marks)
        return self._blanks.normalize(normal)

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """One (n,) int32 array of ids per text, without special tokens.

        Runs in several threads; the result does not depend on their number.
        """
        import tensorflow as tf

        _ = self._pieces, self._blanks  # built once, before the threads start

        def run(chunk: list[str]) -> list[np.ndarray]:
            # Lone surrogates can't be encoded as UTF-8 and have no meaning: drop them.
            ragged = self._tokenize(tf.constant([text.encode("utf-8", "ignore") for text in chunk]))
            return _rows(ragged)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return [ids for part in pool.map(run, chunks(texts, _CHUNK_CHARACTERS)) for ids in part]

    def encode_with_places(
        self, texts: Sequence[str]
    ) -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
        """As `encode`, with the normalised texts and each token's offsets in them.

        A mark is one character of a normalised text (`signs`).

        Returns:
            (normalised text, ids (n,) int32, start offsets (n,) int64, end offsets (n,) int64) of
            each text; offsets are in characters.
        """
        import tensorflow as tf

        _ = self._pieces, self._blanks

        def run(chunk: list[str]) -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
            raw = tf.constant([text.encode("utf-8", "ignore") for text in chunk])
            normal = self._normal(raw)
            ids, starts, ends = self._placed(normal)
            found = []
            for text, *row in zip(normal.numpy(), *map(_rows, (ids, starts, ends)), strict=True):
                character = characters_of(text)
                found.append((text.decode(), row[0], character[row[1]], character[row[2]]))
            return found

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return [one for part in pool.map(run, chunks(texts, _CHUNK_CHARACTERS)) for one in part]

    def with_case(self, texts: Sequence[str]) -> list[str]:
        """The normalised texts of `encode_with_places`, but with their original case."""
        import tensorflow as tf

        found: list[str] = []
        for chunk in chunks(texts, _CHUNK_CHARACTERS):
            raw = tf.constant([text.encode("utf-8", "ignore") for text in chunk])
            normal = normalise(raw, lowercase=self.lowercase, keep_case=True, marks=self.marks)
            found += [text.decode() for text in self._blanks.normalize(normal).numpy()]
        return found

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without padding; words are separated by spaces, except between CJK."""
        return text_of_words(self.vocabulary[int(i)] for i in ids if int(i) != self.pad_id)

    def served(self) -> dict[str, Any]:
        """What a served model needs to turn ids into text."""
        return {"pieces": list(self.vocabulary), "bytes": False}

    def unit_starts(self, ids: np.ndarray) -> np.ndarray:
        """(n,) bool: whether a token starts a unit (a word, or one CJK character)."""
        return self._starts[np.asarray(ids, dtype=np.int64)]

    def module(self) -> Any:
        """A ``tf.Module`` with ``__call__((B,) string) -> RaggedTensor (B, n) int32``.

        ``placed((B,) string)`` gives the normalised texts (B,), and of their tokens, one text's
        behind the other's: ``basic`` (n,) bool, which start a unit, ``starts`` and ``ends`` (n,)
        int64, in bytes of the text; ``lengths`` (B,) int64, the number of tokens in each text.
        """
        import tensorflow as tf

        outer = self

        class WordPieceModule(tf.Module):
            def __init__(self):
                super().__init__()
                self.pieces = outer._pieces  # tracked, so that a SavedModel includes them
                self.blanks = outer._blanks

            @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
            def __call__(self, texts: Any):
                # A client may send invalid UTF-8; a corpus never has any.
                texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
                return outer._tokenize(texts)

            @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
            def placed(self, texts: Any):
                texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
                normal = outer._normal(texts)
                ids, starts, ends = outer._placed(normal)
                return {
                    "texts": normal,
                    "basic": tf.gather(tf.constant(outer._starts), ids.values),
                    "starts": starts.values,
                    "ends": ends.values,
                    "lengths": ids.row_lengths(),
                }

        return WordPieceModule()

    def save(self, folder: str | Path) -> None:
        """Write ``vocab.txt`` (one token per line) and ``tokenizer.json``."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "vocab.txt").write_text("\n".join(self.vocabulary) + "\n", "utf-8", newline="\n")
        settings: dict[str, Any] = {"scheme": self.scheme, "lowercase": self.lowercase}
        settings |= self._options
        settings["digest"] = self.digest
        (folder / "tokenizer.json").write_text(json.dumps(settings, indent=2) + "\n", "utf-8")

    @classmethod
    def learned(
        cls,
        texts: Iterable[str],
        *,
        vocabulary_size: int,
        lowercase: bool,
        sentinels: int = 0,
        marks: Sequence[str] = (),
    ) -> WordPiece:
        """Learn a tokenizer from texts (`learn`); some of its tokens are sentinels or marks."""
        pieces = learn(
            Unmarked(texts, marks) if marks else texts,
            vocabulary_size=vocabulary_size - sentinels - len(marks),
            lowercase=lowercase,
        )
        return cls([*pieces, *marks, *sentinel_names(sentinels)], lowercase, marks)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load a tokenizer that `save` wrote.

        Raises:
            ContractViolation: The vocabulary was changed.
        """
        folder = Path(folder)
        settings = json.loads((folder / "tokenizer.json").read_text("utf-8"))
        # Split at \n only: splitlines would also split at U+2028 and others.
        vocabulary = (folder / "vocab.txt").read_bytes().decode("utf-8").removesuffix("\n")
        options = {name: settings[name] for name in OPTIONS if name in settings}
        tokenizer = cls(vocabulary.split("\n"), settings["lowercase"], **options)
        if tokenizer.digest != settings["digest"]:
            raise ContractViolation(
                f"{folder / 'vocab.txt'}: expected digest {settings['digest'][:12]}, got"
                f" {tokenizer.digest[:12]}; the file was changed: learn the tokenizer again"
            )
        return tokenizer


def _rows(ragged: Any) -> list[np.ndarray]:
    """The rows of a ragged tensor as arrays."""
    values, splits = ragged.values.numpy(), ragged.row_splits.numpy()
    return [values[a:b] for a, b in pairwise(splits)]
