"""Byte-level BPE in GPT-2's and RoBERTa's files: vocab.json, merges.txt and tokenizer.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from fourstage.errors import ContractViolation, RecipeError
from models.interchange.tokenizer_json import SETTINGS, WHOLE, part, pieces, roles_of
from models.tokenizers.byte_bpe import (
    MERGES,
    ROLES,
    SPECIAL_TOKENS,
    VOCABULARY,
    ByteBPE,
    read_pieces,
    write_pieces,
)

MASK = SPECIAL_TOKENS[-1]


def is_byte_level(whole: Mapping[str, Any]) -> bool:
    """Whether the BPE of a ``tokenizer.json`` is byte-level."""
    return part(whole, "pre_tokenizer").get("type") == "ByteLevel"


def read(folder: Path, whole: Mapping[str, Any], settings: Mapping[str, Any]) -> ByteBPE:
    """Read the tokenizer of a Hugging Face folder.

    Two differences remain: theirs does not normalise text, ours puts it into NFC (most text already
    is). And theirs frame texts otherwise: RoBERTa's has ``<s> A </s></s> B </s>``, ours
    ``<s> A </s> B </s>``; GPT-2's none, ours its ``<|endoftext|>`` in place of each of these.

    Args:
        folder: Folder with ``vocab.json`` and ``merges.txt``, or ``tokenizer.json``.
        whole: Contents of ``tokenizer.json``; empty if there is none.
        settings: Contents of ``tokenizer_config.json``; empty if there is none.

    Raises:
        RecipeError: A setting or the merges are not supported.
        ContractViolation: A file is malformed.
    """
    if settings.get("add_prefix_space", False):
        raise RecipeError(f"{folder / SETTINGS}: add_prefix_space: expected false, got true")
    if whole:
        _refuse_settings(folder / WHOLE, whole)
    vocabulary, merges = lists_of(folder, whole)
    tokenizer = ByteBPE(vocabulary, merges, roles_of(vocabulary, settings))
    refuse_unlearned(folder, tokenizer.vocabulary, tokenizer.merges)
    return tokenizer


def lists_of(folder: Path, whole: Mapping[str, Any]) -> tuple[list[str], list[tuple[str, str]]]:
    """Tokens ordered by id, and merges, of whatever files have them.

    Raises:
        ContractViolation: There are none, or two that differ, or a file is malformed.
    """
    found = None
    if whole:
        found = pieces(folder / WHOLE, whole), _merges(folder / WHOLE, whole)
    if (folder / VOCABULARY).is_file() and (folder / MERGES).is_file():
        try:
            listed = read_pieces(folder)
        except (JSONDecodeError, UnicodeDecodeError, TypeError, RecursionError) as error:
            raise ContractViolation(
                f"{folder}: {VOCABULARY} or {MERGES}: expected ids of pieces as JSON, and merges in"
                f" UTF-8, got something else ({type(error).__name__}); download them again"
            ) from error
        if found not in (None, listed):
            raise ContractViolation(
                f"{folder}: {VOCABULARY} with {MERGES} and {WHOLE} have different tokens; which one"
                " was the network trained with? Remove the other"
            )
        found = listed
    if found is None:
        raise ContractViolation(f"{folder}: expected {VOCABULARY} with {MERGES}, or {WHOLE}")
    return found


def write(tokenizer: ByteBPE, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Write ``vocab.json`` and ``merges.txt``.

    The settings name a class that uses ``tokenizer.json`` as it is. ``RobertaTokenizer`` would add
    its own special tokens to pairs and drop the normalisation.

    Returns:
        The tokenizer for ``tokenizer.json``, without post-processor, and its additional settings.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

    ids = {piece: i for i, piece in enumerate(tokenizer.vocabulary)}
    whole: Any = Tokenizer(models.BPE(ids, list(tokenizer.merges)))
    whole.normalizer = normalizers.NFC()
    whole.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    whole.decoder = decoders.ByteLevel()
    special: list[Any] = [*dict.fromkeys(tokenizer.roles[role] for role in ROLES)]
    if special.count(MASK):
        # As in RoBERTa: a <mask> in a text includes the space before it.
        special[special.index(MASK)] = AddedToken(MASK, lstrip=True, special=True)
    whole.add_special_tokens(special)
    write_pieces(tokenizer, folder)
    return whole, {"tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": False}


def _refuse_settings(path: Path, whole: Mapping[str, Any]) -> None:
    """Refuse settings that would give other ids than our tokenizer.

    Raises:
        RecipeError: There are some.
    """
    model, cut = part(whole, "model"), part(whole, "pre_tokenizer")
    wrong = [
        f"model.{key}"
        for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges")
        if model.get(key)
    ]
    wrong += ["pre_tokenizer.add_prefix_space"] if cut.get("add_prefix_space", True) else []
    wrong += [] if cut.get("use_regex", True) else ["pre_tokenizer.use_regex"]
    wrong += [] if part(whole, "normalizer").get("type") in (None, "NFC") else ["normalizer"]
    if wrong:
        raise RecipeError(f"{path}: {', '.join(wrong)}: not as in RoBERTa; not supported yet")


def _merges(path: Path, whole: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The merges in order; the file has them as ``"a b"`` or ``["a", "b"]``."""
    found = []
    merges: Any = part(whole, "model").get("merges") or ()
    if not isinstance(merges, list | tuple):
        raise ContractViolation(f"{path}: merges: expected a list, got {type(merges).__name__}")
    for number, merge in enumerate(merges, 1):
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if (
            not isinstance(pair, list)
            or len(pair) != 2
            or not all(isinstance(p, str) for p in pair)
        ):
            raise ContractViolation(f"{path}: merge {number}: expected two pieces")
        found.append((pair[0], pair[1]))
    return found


def refuse_unlearned(
    folder: Path, vocabulary: Sequence[str], merges: Sequence[tuple[str, str]]
) -> None:
    """Refuse merges that can't have been learned from text.

    Our tokenizer looks at the merged token, not at the pair. The two are equivalent only if every
    merged token is split from its own text as a single token.

    Raises:
        RecipeError: There are such merges.
    """
    from tokenizers import Tokenizer, models

    ids = {piece: i for i, piece in enumerate(vocabulary)}
    theirs = Tokenizer(models.BPE(ids, list(merges)))
    joined = ["".join(pair) for pair in merges]
    spelled: Any = theirs.encode_batch(joined, add_special_tokens=False)
    odd = [piece for i, piece in enumerate(joined) if spelled[i].tokens != [piece]]
    if odd:
        raise RecipeError(
            f"{folder}: {len(odd)} merges give tokens that their own text is not split into"
            f" ({' '.join(odd[:5])}); merges learned from text never do; not supported"
        )
