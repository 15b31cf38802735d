"""Unigram tokenizers in the files of T5 and XLNet, ``spiece.model`` and ``tokenizer.json``.

Marian's are ``source.spm``, ``target.spm`` and ``vocab.json``, which numbers the pieces anew.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fourstage.errors import ContractViolation, RecipeError
from models.interchange.tokenizer_json import (
    SETTINGS,
    WHOLE,
    class_of,
    numbered,
    part,
    read_object,
    roles_of,
)
from models.sentencepiece_model import (
    LARGEST,
    PieceType,
    Unigram,
    check_unigram,
    read_unigram_model,
)
from models.sentinels import sentinel_names
from models.tokenizers.byte_bpe import VOCABULARY
from models.tokenizers.unigram import MODEL, UnigramTokenizer
from models.unigram_pieces import SPACE

SOURCE, TARGET = "source.spm", "target.spm"
EXTRA_IDS = 100  # T5's sentinels where its settings do not say
FOLDING = ("AlbertTokenizer", "XLNetTokenizer")  # drop accents where there is no tokenizer.json
_JOINS_BLANKS = {"type": "Replace", "pattern": {"Regex": " {2,}"}}
_FOLDS = [  # theirs, before the rules of its model
    {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
    {"type": "Replace", "pattern": {"String": "''"}, "content": '"'},
    {"type": "NFKD"},
    {"type": "StripAccents"},
]


def read(
    folder: Path, whole: Mapping[str, Any], settings: Mapping[str, Any], rows: int | None = None
) -> UnigramTokenizer:
    """Read the tokenizer of a Hugging Face folder.

    Theirs frames texts otherwise than ours, T5's with ``</s>`` behind the text alone. A role that
    they have no token for, such as the one in front of a text in T5, is played by another one
    (`UnigramTokenizer`).

    Args:
        folder: Folder with ``spiece.model`` or ``tokenizer.json``.
        whole: Contents of ``tokenizer.json``; empty if there is none.
        settings: Contents of ``tokenizer_config.json``; empty if there is none.
        rows: Rows of the network's table. Those without a piece get one that no text has: T5's
            table has 28 rows more than it has pieces.

    Raises:
        RecipeError: A setting is not supported.
        ContractViolation: A file is malformed.
    """
    known, kind = read_object(folder / "config.json").get("model_type"), class_of(folder, settings)
    # ALBERT's class drops case unless the settings say otherwise.
    if settings.get("do_lower_case", kind == "AlbertTokenizer" and not whole):
        raise RecipeError(
            f"{folder / SETTINGS}: do_lower_case: expected false, got"
            f" {'true' if 'do_lower_case' in settings else f'nothing, which {kind} reads as true'};"
            " not supported yet"
        )
    folds = (known == "xlnet" or kind in FOLDING) and not settings.get("keep_accents", False)
    more: Sequence[str] = ()
    if whole:
        model, folds = _from_whole(folder / WHOLE, whole)
        if (folder / MODEL).is_file():
            same = _model(folder / MODEL)
            if model.pieces[: len(same.pieces)] != same.pieces:
                raise ContractViolation(
                    f"{folder}: {MODEL} and {WHOLE} have different tokens; which one was the"
                    " network trained with? Remove the other"
                )
    else:
        model = _model(folder / MODEL)
        if known == "t5":
            more = _sentinels(folder, settings, model)
    tokenizer = UnigramTokenizer(model, roles_of(model.pieces, settings), folds)
    if more:
        tokenizer = tokenizer.with_tokens(more)
    beyond = range(tokenizer.vocabulary_size, rows or 0)
    return tokenizer.with_tokens(f"<unused_{i}>" for i in beyond) if beyond else tokenizer


def read_marian(folder: Path, settings: Mapping[str, Any]) -> tuple[UnigramTokenizer | None, str]:
    """Read Marian's tokenizer, or None and why not.

    Ours is one tokenizer for both texts, so both models must be the same. Their punctuation is not
    normalised first, as in ``MarianTokenizer``, which does not do it either unless asked.

    Raises:
        ContractViolation: A file is malformed.
    """
    source, target = _model(folder / SOURCE), _model(folder / TARGET)
    if source != target:
        return None, f"{SOURCE} and {TARGET} differ; our tokenizers have one model for both texts"
    ids = numbered(read_object(folder / VOCABULARY), folder / VOCABULARY)
    of = {
        piece: (score, kind)
        for piece, score, kind in zip(source.pieces, source.scores, source.kinds, strict=True)
    }
    lost = [
        piece for piece, (_, kind) in of.items() if kind == PieceType.NORMAL and piece not in {*ids}
    ]
    if lost:
        return None, f"{VOCABULARY} lacks {len(lost)} pieces of {SOURCE}"
    found = [of.get(piece, (0.0, PieceType.CONTROL)) for piece in ids]
    scores, kinds = zip(*found, strict=True)
    model = Unigram(tuple(ids), scores, kinds, source.rules)
    check_unigram(model, str(folder / VOCABULARY))
    return UnigramTokenizer(model, roles_of(model.pieces, settings)), ""


def write(tokenizer: UnigramTokenizer, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Write ``spiece.model``.

    Returns:
        The tokenizer for ``tokenizer.json``, without post-processor, and its additional settings.
    """
    (folder / MODEL).write_bytes(tokenizer.serialised)
    whole = rust(tokenizer)
    kinds = tokenizer.model.kinds
    named = zip(tokenizer.vocabulary, kinds, strict=True)
    whole.add_special_tokens(
        [p for p, kind in named if kind in (PieceType.CONTROL, PieceType.UNKNOWN)]
    )
    return whole, {"tokenizer_class": "PreTrainedTokenizerFast"}


def write_marian(tokenizer: Any, folder: Path) -> None:
    """Write Marian's files beside the others."""
    if not isinstance(tokenizer, UnigramTokenizer):
        return
    for name in (SOURCE, TARGET):
        (folder / name).write_bytes(tokenizer.serialised)
    ids = {piece: i for i, piece in enumerate(tokenizer.vocabulary)}
    (folder / VOCABULARY).write_text(json.dumps(ids, ensure_ascii=False) + "\n", "utf-8")


def rust(tokenizer: UnigramTokenizer) -> Any:
    """The tokenizer in the Rust package, before special tokens are known to it.

    It normalises by what a reader sees as one character, SentencePiece by characters: on marks in
    an unusual order the two differ.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

    model = tokenizer.model
    scored = list(zip(model.pieces, model.scores, strict=True))
    whole: Any = Tokenizer(models.Unigram(scored, tokenizer.unknown_id, False))
    steps: list[Any] = []
    if tokenizer.folds_accents:
        steps = [
            normalizers.Replace("``", '"'),
            normalizers.Replace("''", '"'),
            normalizers.NFKD(),
            normalizers.StripAccents(),
        ]
    if model.rules:
        steps.append(normalizers.Precompiled(model.rules))
    whole.normalizer = normalizers.Sequence(steps)
    cut = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
    whole.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), cut])
    whole.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="always")
    named = zip(model.pieces, model.kinds, strict=True)
    own = [AddedToken(p, normalized=False) for p, kind in named if kind == PieceType.USER_DEFINED]
    whole.add_tokens(own)
    return whole


def _model(path: Path) -> Unigram:
    """The model in a file.

    Raises:
        ContractViolation: There is none, or it is malformed.
    """
    if not path.is_file():
        raise ContractViolation(f"{path}: not found; expected a SentencePiece model")
    with path.open("rb") as file:
        return read_unigram_model(file.read(LARGEST + 1), str(path))


def _sentinels(folder: Path, settings: Mapping[str, Any], model: Unigram) -> list[str]:
    """The names of T5's sentinels, which its ``spiece.model`` is without."""
    number = settings.get("extra_ids", EXTRA_IDS)
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 10_000:
        raise RecipeError(
            f"{folder / SETTINGS}: extra_ids: expected 0 to 10,000, got {str(number)[:80]}"
        )
    names = sentinel_names(number)
    return [] if {*names} & {*model.pieces} else names


def _from_whole(path: Path, whole: Mapping[str, Any]) -> tuple[Unigram, bool]:
    """The model of a ``tokenizer.json``, and whether it drops accents.

    Raises:
        RecipeError: It has a setting that would give other ids than our tokenizer.
        ContractViolation: It is malformed.
    """
    inner = part(whole, "model")
    rules, folds, wrong = _normalised(part(whole, "normalizer"))
    cuts = _steps(part(whole, "pre_tokenizer"), "pretokenizers")
    wrong += [
        f"pre_tokenizer {each.get('type')}"
        for each in cuts
        if each.get("type") != "WhitespaceSplit" and not _is_metaspace(each)
    ]
    wrong += [] if any(map(_is_metaspace, cuts)) else ["pre_tokenizer without Metaspace"]
    wrong += ["model.byte_fallback"] if inner.get("byte_fallback") else []
    if wrong:
        raise RecipeError(f"{path}: {', '.join(wrong)}: not as in T5 or XLNet; not supported")
    try:
        pieces, scores = zip(*((str(p), float(s)) for p, s in inner["vocab"]), strict=True)
        number_of = {piece: i for i, piece in enumerate(pieces)}
        kinds = [PieceType.NORMAL] * len(pieces)
        for token in whole.get("added_tokens") or ():
            kind = PieceType.CONTROL if token.get("special", False) else PieceType.USER_DEFINED
            kinds[number_of[token["content"]]] = kind
        kinds[inner["unk_id"]] = PieceType.UNKNOWN
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ContractViolation(
            f"{path}: expected a unigram model with its scores and all added tokens among its"
            f" pieces ({type(error).__name__})"
        ) from error
    model = Unigram(pieces, scores, tuple(kinds), rules)
    # T5's settings give its sentinels as pieces that any text could have.
    names = {*sentinel_names(10_000)} & {*pieces}
    model = replace(
        model,
        kinds=tuple(
            PieceType.CONTROL if p in names else k for p, k in zip(pieces, kinds, strict=True)
        ),
    )
    check_unigram(model, str(path))
    return model, folds


def _normalised(normalizer: Mapping[str, Any]) -> tuple[bytes, bool, list[str]]:
    """Compiled rules, whether accents are dropped, and what is not supported."""
    rules, wrong = b"", []
    folding: list[Mapping[str, Any]] = []
    for step in _steps(normalizer, "normalizers"):
        if step.get("type") == "Precompiled":
            try:
                rules = base64.b64decode(str(step.get("precompiled_charsmap")), validate=True)
            except ValueError:
                wrong.append("normalizer Precompiled")
        elif {key: step.get(key) for key in _JOINS_BLANKS} == _JOINS_BLANKS:
            continue  # SentencePiece does it by itself
        elif step.get("type") == "Strip":
            continue  # so, too
        else:
            folding.append(dict(step))
    folds = bool(folding) and [{k: s[k] for k in sorted(s)} for s in folding] == [
        {k: s[k] for k in sorted(s)} for s in _FOLDS
    ]
    if folding and not folds:
        wrong += [f"normalizer {step.get('type')}" for step in folding]
    return rules, folds, wrong


def _steps(whole: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The steps of a sequence, or the one step there is."""
    steps = whole.get(name) if whole.get("type") == "Sequence" else [whole] if whole else []
    return [step for step in steps or () if isinstance(step, Mapping)]


def _is_metaspace(step: Mapping[str, Any]) -> bool:
    return (
        step.get("type") == "Metaspace"
        and step.get("replacement") == SPACE
        and step.get("prepend_scheme", "always") == "always"
        and step.get("add_prefix_space", True) is True
        and step.get("split", True) is True
    )
