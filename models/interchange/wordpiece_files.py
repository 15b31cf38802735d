"""WordPiece in BERT's files: ``vocab.txt`` and ``tokenizer.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fourstage.errors import ContractViolation, RecipeError, listed
from models.interchange.tokenizer_json import (
    SETTINGS,
    WHOLE,
    added_tokens,
    as_it_stands,
    part,
    pieces,
)
from models.tokenizers.name import Name
from models.tokenizers.word import Word
from models.tokenizers.wordpiece import CONTINUATION, MAX_WORD, SPECIAL_TOKENS, WordPiece

VOCABULARY = "vocab.txt"
_SHOWN = 5


def read(folder: Path, whole: Mapping[str, Any], settings: Mapping[str, Any]) -> WordPiece:
    """Read the tokenizer of a Hugging Face folder.

    Args:
        folder: Folder with ``vocab.txt`` or ``tokenizer.json``.
        whole: Contents of ``tokenizer.json``; empty if there is none.
        settings: Contents of ``tokenizer_config.json``; empty if there is none.

    Raises:
        RecipeError: A setting is not supported, or the vocabulary has repeated or missing tokens.
        ContractViolation: A file is malformed.
    """
    lowercase = bool(settings.get("do_lower_case", True))
    vocabulary: list[str] | None = None
    if whole:
        _refuse_settings(folder / WHOLE, whole)
        vocabulary = pieces(folder / WHOLE, whole)
        in_whole = lowercase_of(folder / WHOLE, whole)
        if settings.get("do_lower_case") is None:  # otherwise it wins, as in transformers
            lowercase = in_whole
    for key, expected in (
        ("tokenize_chinese_chars", (True,)),
        ("strip_accents", (None, lowercase)),
    ):
        if settings.get(key, expected[0]) not in expected:
            raise RecipeError(
                f"{folder / SETTINGS}: {key}: expected {expected[-1]}, got {settings[key]};"
                " not supported yet"
            )
    if (folder / VOCABULARY).is_file():
        # Split at \n only: splitlines would also split at U+2028 and others.
        try:
            text = (folder / VOCABULARY).read_bytes().decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            raise ContractViolation(
                f"{folder / VOCABULARY}: expected UTF-8, got another byte at {error.start:,};"
                " download it again"
            ) from error
        lines = text.removesuffix("\n").split("\n")
        _check_lines(folder / VOCABULARY, lines)
        if vocabulary is not None and lines != vocabulary:
            raise ContractViolation(
                f"{folder}: {VOCABULARY} and {WHOLE} have different tokens; which one was the"
                " network trained with? Remove the other"
            )
        vocabulary = lines
    assert vocabulary is not None
    added = added_tokens(folder, whole, settings)
    marks = [name for name, said in added.items() if _is_mark(name, said, vocabulary)]
    return WordPiece(vocabulary, lowercase, marks)


def _refuse_settings(path: Path, whole: Mapping[str, Any]) -> None:
    """Refuse settings that would give other ids than our tokenizer.

    Raises:
        RecipeError: There are some.
    """
    model = part(whole, "model")
    usual = {
        "unk_token": SPECIAL_TOKENS[1],
        "continuing_subword_prefix": CONTINUATION,
        "max_input_chars_per_word": MAX_WORD,
    }
    wrong = [f"model.{key}" for key, value in usual.items() if model.get(key, value) != value]
    if part(whole, "pre_tokenizer").get("type") != "BertPreTokenizer":
        wrong.append("pre_tokenizer")
    if wrong:
        raise RecipeError(f"{path}: {', '.join(wrong)}: not as in BERT; not supported yet")


def _is_mark(name: str, said: Mapping[str, Any], vocabulary: Sequence[str]) -> bool:
    """Whether an added token is one of ours, such as ``[HD]`` or a ``[unused1]`` put to use."""
    return as_it_stands(said) and name in vocabulary and name not in SPECIAL_TOKENS


def _check_lines(path: Path, lines: Sequence[str]) -> None:
    """Refuse a vocabulary with repeated lines or without special tokens.

    Raises:
        RecipeError: With the numbers of the wrong lines, or the missing tokens.
    """
    first: dict[str, int] = {}
    doubled = [
        f"{number} (as {first[piece]})"
        for number, piece in enumerate(lines, 1)
        if first.setdefault(piece, number) != number
    ]
    if doubled:
        raise RecipeError(
            f"{path}: expected each token once, got it again in line "
            f"{listed(doubled, _SHOWN)}; is it the file the network was trained with?"
        )
    missing = [token for token in SPECIAL_TOKENS if token not in first]
    if missing:
        raise RecipeError(
            f"{path}: none of its {len(lines):,} lines is {' or '.join(missing)}; is it the file "
            "the network was trained with?"
        )


def write(tokenizer: WordPiece, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Write ``vocab.txt``.

    Returns:
        The tokenizer for ``tokenizer.json``, without post-processor, and its additional settings.

    Raises:
        RecipeError: The tokenizer splits text otherwise than BERT's.
    """
    if isinstance(tokenizer, Name):
        raise RecipeError(
            "the tokenizer's scheme name splits at blanks alone, and BERT's files say otherwise;"
            " write the vectors of a table instead, or train with another scheme"
        )
    if isinstance(tokenizer, Word) and tokenizer.longest_match:
        raise RecipeError(
            "the tokenizer finds Chinese words by longest match, and BERT's files make each"
            " character a word; write the vectors of a table instead, or train without"
            " tokenizer.segmenter"
        )
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    vocabulary = {piece: i for i, piece in enumerate(tokenizer.vocabulary)}
    model = models.WordPiece(
        vocabulary,
        unk_token="[UNK]",
        max_input_chars_per_word=MAX_WORD,
        continuing_subword_prefix=CONTINUATION,
    )
    whole: Any = Tokenizer(model)
    whole.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=True,
        strip_accents=None,
        lowercase=tokenizer.lowercase,
    )
    whole.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    whole.decoder = decoders.WordPiece(prefix=CONTINUATION)
    whole.add_special_tokens([*SPECIAL_TOKENS, *tokenizer.marks])
    (folder / VOCABULARY).write_text("\n".join(tokenizer.vocabulary) + "\n", "utf-8", newline="\n")
    return whole, {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": tokenizer.lowercase,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
    }


def lowercase_of(path: Path, whole: Mapping[str, Any]) -> bool:
    """Whether case is dropped.

    Raises:
        RecipeError: The rest of the normalisation is not BERT's.
    """
    normalizer = part(whole, "normalizer")
    lowercase = normalizer.get("lowercase")
    wanted = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
    wrong = [key for key, value in wanted.items() if normalizer.get(key) != value]
    if not isinstance(lowercase, bool):
        wrong.append("lowercase")
    elif normalizer.get("strip_accents") not in (None, lowercase):
        wrong.append("strip_accents")
    if wrong:
        raise RecipeError(
            f"{path}: normalizer: expected BERT's, got another {', '.join(wrong)};"
            " not supported yet"
        )
    return bool(lowercase)
