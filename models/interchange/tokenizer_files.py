"""A WordPiece tokenizer in the files that transformers reads, both ways."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fourstage.errors import ContractViolation, RecipeError
from models.tokenizers.wordpiece import CONTINUATION, MAX_WORD_BYTES, SPECIAL_TOKENS, WordPiece

VOCABULARY = "vocab.txt"
WHOLE = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
OTHERS = ("merges.txt", "spiece.model", "sentencepiece.bpe.model")


def read_tokenizer(folder: Path) -> tuple[WordPiece | None, str]:
    """The tokenizer of a folder of theirs, or why there is none.

    Args:
        folder: With ``vocab.txt`` or ``tokenizer.json``, and perhaps ``tokenizer_config.json``.

    Raises:
        RecipeError: It is WordPiece with a setting that ours has not.
        ContractViolation: A file is not what it claims to be.
    """
    settings = _object(folder / SETTINGS) if (folder / SETTINGS).is_file() else {}
    lowercase = bool(settings.get("do_lower_case", True))
    vocabulary: list[str] | None = None
    if (folder / WHOLE).is_file():
        whole = _object(folder / WHOLE)
        scheme = _part(whole, "model").get("type")
        if scheme != "WordPiece":
            return None, f"{WHOLE}: {scheme}; only WordPiece is supported yet"
        vocabulary = _pieces(folder / WHOLE, whole)
        lowercase = _lowercase(folder / WHOLE, whole)
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
        # Only \n ends a piece: splitlines would also cut at U+2028 and the like.
        text = (folder / VOCABULARY).read_bytes().decode("utf-8").replace("\r\n", "\n")
        listed = text.removesuffix("\n").split("\n")
        if vocabulary is not None and listed != vocabulary:
            raise ContractViolation(
                f"{folder}: {VOCABULARY} and {WHOLE} hold different pieces; which one was the"
                " network trained with? Remove the other"
            )
        vocabulary = listed
    if vocabulary is None:
        other = next((name for name in OTHERS if (folder / name).is_file()), None)
        if other:
            return None, f"{other}: only WordPiece is supported yet"
        return None, f"no {VOCABULARY} and no {WHOLE}"
    return WordPiece(vocabulary, lowercase), ""


def write_tokenizer(tokenizer: WordPiece, folder: Path, length: int, segments: bool) -> None:
    """Write ``vocab.txt``, ``tokenizer.json`` and ``tokenizer_config.json`` for transformers.

    Ids are the same but for a special token's name in a text: ours spells it in pieces, theirs
    gives its id. A cased text not in NFC is normalised by ours alone.

    Args:
        tokenizer: Ours.
        folder: That exists.
        length: Longest text in tokens.
        segments: Whether the network reads segment ids.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    vocabulary = {piece: i for i, piece in enumerate(tokenizer.vocabulary)}
    model = models.WordPiece(
        vocabulary,
        unk_token="[UNK]",
        max_input_chars_per_word=MAX_WORD_BYTES,
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
    second = 1 if segments else 0
    whole.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair=f"[CLS]:0 $A:0 [SEP]:0 $B:{second} [SEP]:{second}",
        special_tokens=[("[CLS]", tokenizer.cls_id), ("[SEP]", tokenizer.sep_id)],
    )
    whole.decoder = decoders.WordPiece(prefix=CONTINUATION)
    whole.add_special_tokens(list(SPECIAL_TOKENS))
    (folder / WHOLE).write_text(whole.to_str(pretty=True) + "\n", "utf-8")
    (folder / VOCABULARY).write_text("\n".join(tokenizer.vocabulary) + "\n", "utf-8", newline="\n")
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    settings = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": tokenizer.lowercase,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": length,
        "model_input_names": inputs if segments else [inputs[0], inputs[2]],
        **{
            f"{role}_token": token
            for role, token in zip(
                ("pad", "unk", "cls", "sep", "mask"), SPECIAL_TOKENS, strict=True
            )
        },
    }
    (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", "utf-8")


def _object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ContractViolation(f"{path}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise ContractViolation(f"{path}: expected an object, got {type(value).__name__}")
    return value


def _part(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = whole.get(name)
    return part if isinstance(part, Mapping) else {}


def _pieces(path: Path, whole: Mapping[str, Any]) -> list[str]:
    """The vocabulary in the order of its ids, without a gap."""
    ids = _part(whole, "model").get("vocab")
    if not isinstance(ids, dict) or sorted(map(str, ids.values())) != sorted(
        map(str, range(len(ids)))
    ):
        raise ContractViolation(f"{path}: expected a vocabulary with the ids 0, 1, 2…")
    added = [
        str(each.get("content"))
        for each in whole.get("added_tokens") or ()
        if isinstance(each, dict)
    ]
    beyond = [token for token in added if token not in ids]
    if beyond:
        raise RecipeError(
            f"{path}: {len(beyond)} added tokens stand outside the vocabulary ({beyond[:5]});"
            " not supported yet"
        )
    return sorted(ids, key=ids.__getitem__)


def _lowercase(path: Path, whole: Mapping[str, Any]) -> bool:
    """Whether case is dropped; everything else must be BERT's own normalisation."""
    normalizer = _part(whole, "normalizer")
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
