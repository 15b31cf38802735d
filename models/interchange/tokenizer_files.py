"""Reading and writing tokenizers in Hugging Face's file formats."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fourstage.errors import RecipeError, listed
from models.interchange import byte_bpe_files, unigram_files, word_bpe_files, wordpiece_files
from models.interchange.tokenizer_json import (
    SETTINGS,
    WHOLE,
    added_tokens,
    as_it_stands,
    class_of,
    part,
    read_object,
)
from models.sentencepiece_model import PieceType
from models.served.pieces import is_cjk
from models.tokenizers.byte_bpe import MERGES, ByteBPE
from models.tokenizers.unigram import MODEL, UnigramTokenizer
from models.tokenizers.word_bpe import WordBPE
from models.tokenizers.wordpiece import WordPiece

OTHERS = ("sentencepiece.bpe.model",)
# Classes of theirs that have the files of another one and cut text otherwise, by code.
_CUT_BY_CODE = (
    "BertJapaneseTokenizer",
    "BertweetTokenizer",
    "HerbertTokenizer",
    "PhobertTokenizer",
)
_CHINESE_WORDS = "RoFormerTokenizer"  # it looks for words that jieba finds, then cuts as BERT's
ONLY = "only WordPiece, BPE of bytes or within words, and unigram are supported yet"

_FILES = {
    WordPiece: wordpiece_files,
    WordBPE: word_bpe_files,  # a ByteBPE, so before it
    ByteBPE: byte_bpe_files,
    UnigramTokenizer: unigram_files,
}


def read_tokenizer(
    folder: Path, rows: int | None = None
) -> tuple[WordPiece | ByteBPE | UnigramTokenizer | None, str]:
    """The tokenizer of a Hugging Face folder, or None and the reason why there is none.

    Args:
        folder: Folder with ``vocab.txt``, with ``vocab.json`` and ``merges.txt``, with
            ``spiece.model``, with Marian's files, or with ``tokenizer.json``;
            ``tokenizer_config.json`` is optional.
        rows: Rows of the network's table, of which some may have no piece (unigram only).

    Raises:
        RecipeError: The scheme is supported, but not one of its settings.
        ContractViolation: A file is malformed.
    """
    settings, whole = read_object(folder / SETTINGS), read_object(folder / WHOLE)
    kind = class_of(folder, settings)
    # HerBERT's other class has all it does in tokenizer.json.
    if kind in _CUT_BY_CODE and not (kind == "HerbertTokenizer" and whole):
        return None, f"{kind} cuts text otherwise than its files say; {ONLY}"
    found, why = _read(folder, whole, settings, rows)
    if found is not None and kind == _CHINESE_WORDS and any(map(_is_chinese, found.vocabulary)):
        return None, f"{kind} looks for the vocabulary's Chinese words with jieba; {ONLY}"
    if found is not None:
        _refuse_added(folder, found, added_tokens(folder, whole, settings))
    return found, why


def _refuse_added(
    folder: Path,
    tokenizer: WordPiece | ByteBPE | UnigramTokenizer,
    added: Mapping[str, Mapping[str, Any]],
) -> None:
    """Refuse added tokens that theirs keeps whole in a text and ours would split.

    Raises:
        RecipeError: There are some.
    """
    kept: set[str] = set()
    if isinstance(tokenizer, UnigramTokenizer):
        kinds = zip(tokenizer.vocabulary, tokenizer.model.kinds, strict=True)
        kept = {piece for piece, kind in kinds if kind == PieceType.USER_DEFINED}
        ids = tokenizer.special_ids
    else:
        roles = ("pad", "unknown", "cls", "sep", "mask")
        ids = [*(getattr(tokenizer, f"{role}_id") for role in roles), *tokenizer.sentinel_ids]
        kept = {*tokenizer.marks} if isinstance(tokenizer, WordPiece) else kept
    no_text = {tokenizer.vocabulary[i] for i in ids}  # has them, here
    split = [
        name
        for name, said in added.items()
        if name not in no_text and not (name in kept and as_it_stands(said))
    ]
    if split:
        raise RecipeError(
            f"{folder}: {len(split)} added tokens ({listed(split, 5)}) are one token each wherever"
            " a text has them, which ours would split; not supported yet. If no text has them, take"
            f" them out of added_tokens in {WHOLE} and out of {SETTINGS}"
        )


def _is_chinese(piece: str) -> bool:
    """Whether a token is a Chinese word of several characters."""
    return len(piece) > 1 and all(map(is_cjk, piece))


def _read(
    folder: Path, whole: Mapping[str, Any], settings: Mapping[str, Any], rows: int | None
) -> tuple[WordPiece | ByteBPE | UnigramTokenizer | None, str]:
    """As `read_tokenizer`, by the files alone."""
    if (folder / WHOLE).is_file():
        scheme = part(whole, "model").get("type")
        if scheme == "WordPiece":
            return wordpiece_files.read(folder, whole, settings), ""
        if scheme == "BPE" and byte_bpe_files.is_byte_level(whole):
            return byte_bpe_files.read(folder, whole, settings), ""
        if scheme == "BPE" and word_bpe_files.is_within_words(whole):
            return word_bpe_files.read(folder, whole, settings), ""
        if scheme == "Unigram":
            return unigram_files.read(folder, whole, settings, rows), ""
        return None, f"{WHOLE}: {scheme}; {ONLY}"
    if (folder / wordpiece_files.VOCABULARY).is_file():
        return wordpiece_files.read(folder, whole, settings), ""
    if (folder / MERGES).is_file() and word_bpe_files.has_ends(folder):
        return word_bpe_files.read(folder, whole, settings), ""
    if (folder / MERGES).is_file():
        return byte_bpe_files.read(folder, whole, settings), ""
    if (folder / MODEL).is_file():
        return unigram_files.read(folder, whole, settings, rows), ""
    if (folder / unigram_files.SOURCE).is_file():
        return unigram_files.read_marian(folder, settings)
    other = next((name for name in OTHERS if (folder / name).is_file()), None)
    if other:
        return None, f"{other}: {ONLY}"
    return None, f"no {wordpiece_files.VOCABULARY}, no {MERGES} and no {WHOLE}"


def write_tokenizer(
    tokenizer: WordPiece | ByteBPE | UnigramTokenizer,
    folder: Path,
    length: int,
    segments: bool,
    padding_side: str = "right",
    ends: bool = True,
) -> None:
    """Write the vocabulary, ``tokenizer.json`` and ``tokenizer_config.json`` for transformers.

    The ids are the same, with two exceptions: a special token's name in a text is split by ours but
    gives the special id in theirs; and only our cased WordPiece normalises text that is not in NFC.

    Args:
        tokenizer: The tokenizer.
        folder: An existing folder.
        length: Largest sequence length in tokens.
        segments: Whether the network reads segment ids.
        padding_side: ``right`` or ``left``.
        ends: Whether a separator is put behind a text; not where the network is to continue it.
    """
    from tokenizers import processors

    files: Any = next(files for kind, files in _FILES.items() if isinstance(tokenizer, kind))
    whole, settings = files.write(tokenizer, folder)
    cls, sep = (tokenizer.vocabulary[i] for i in (tokenizer.cls_id, tokenizer.sep_id))
    second, end = 1 if segments else 0, f" {sep}:0" if ends else ""
    whole.post_processor = processors.TemplateProcessing(
        single=f"{cls}:0 $A:0{end}",
        pair=f"{cls}:0 $A:0 {sep}:0 $B:{second}" + (f" {sep}:{second}" if ends else ""),
        special_tokens=[(cls, tokenizer.cls_id), (sep, tokenizer.sep_id)],
    )
    (folder / WHOLE).write_text(whole.to_str(pretty=True) + "\n", "utf-8")
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    settings |= {
        "model_max_length": length,
        "padding_side": padding_side,
        "model_input_names": inputs if segments else [inputs[0], inputs[2]],
        **{
            f"{role}_token": tokenizer.vocabulary[i]
            for role, i in (
                ("pad", tokenizer.pad_id),
                ("unk", tokenizer.unknown_id),
                ("cls", tokenizer.cls_id),
                ("sep", tokenizer.sep_id),
                ("mask", tokenizer.mask_id),
            )
        },
    }
    (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", "utf-8")
