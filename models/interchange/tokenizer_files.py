"""Our tokenizers in the files that transformers reads, both ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from models.interchange import byte_bpe_files, wordpiece_files
from models.interchange.tokenizer_json import SETTINGS, WHOLE, part, read_object
from models.tokenizers.byte_bpe import MERGES, ByteBPE
from models.tokenizers.wordpiece import WordPiece

OTHERS = ("spiece.model", "sentencepiece.bpe.model")
ONLY = "only WordPiece and byte-level BPE are supported yet"


def read_tokenizer(folder: Path) -> tuple[WordPiece | ByteBPE | None, str]:
    """The tokenizer of a folder of theirs, or why there is none.

    Args:
        folder: With ``vocab.txt``, ``vocab.json`` and ``merges.txt``, or ``tokenizer.json``, and
            perhaps ``tokenizer_config.json``.

    Raises:
        RecipeError: It is of a scheme of ours with a setting that ours has not.
        ContractViolation: A file is not what it claims to be.
    """
    settings, whole = read_object(folder / SETTINGS), read_object(folder / WHOLE)
    if (folder / WHOLE).is_file():
        scheme = part(whole, "model").get("type")
        if scheme == "WordPiece":
            return wordpiece_files.read(folder, whole, settings), ""
        if scheme == "BPE" and byte_bpe_files.is_byte_level(whole):
            return byte_bpe_files.read(folder, whole, settings), ""
        return None, f"{WHOLE}: {scheme}; {ONLY}"
    if (folder / wordpiece_files.VOCABULARY).is_file():
        return wordpiece_files.read(folder, whole, settings), ""
    if (folder / MERGES).is_file():
        return byte_bpe_files.read(folder, whole, settings), ""
    other = next((name for name in OTHERS if (folder / name).is_file()), None)
    if other:
        return None, f"{other}: {ONLY}"
    return None, f"no {wordpiece_files.VOCABULARY}, no {MERGES} and no {WHOLE}"


def write_tokenizer(
    tokenizer: WordPiece | ByteBPE, folder: Path, length: int, segments: bool
) -> None:
    """Write a vocabulary, ``tokenizer.json`` and ``tokenizer_config.json`` for transformers.

    Ids are the same but for a special token's name in a text: ours spells it in pieces, theirs
    gives its id. A cased text not in NFC is normalised by our WordPiece alone.

    Args:
        tokenizer: Ours.
        folder: That exists.
        length: Longest text in tokens.
        segments: Whether the network reads segment ids.
    """
    from tokenizers import processors

    files: Any = byte_bpe_files if isinstance(tokenizer, ByteBPE) else wordpiece_files
    whole, settings = files.write(tokenizer, folder)
    cls, sep = (tokenizer.vocabulary[i] for i in (tokenizer.cls_id, tokenizer.sep_id))
    second = 1 if segments else 0
    whole.post_processor = processors.TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0",
        pair=f"{cls}:0 $A:0 {sep}:0 $B:{second} {sep}:{second}",
        special_tokens=[(cls, tokenizer.cls_id), (sep, tokenizer.sep_id)],
    )
    (folder / WHOLE).write_text(whole.to_str(pretty=True) + "\n", "utf-8")
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    settings |= {
        "model_max_length": length,
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
