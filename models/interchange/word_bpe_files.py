"""BPE within words in the first GPT's files: ``vocab.json``, ``merges.txt``, ``tokenizer.json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fourstage.errors import RecipeError
from models.interchange.byte_bpe_files import lists_of, refuse_unlearned
from models.interchange.tokenizer_json import SETTINGS, WHOLE, part, read_object, roles_of
from models.interchange.wordpiece_files import lowercase_of
from models.tokenizers.byte_bpe import ALPHABET, VOCABULARY, write_pieces
from models.tokenizers.word_bpe import END, ONE_END, WordBPE, marked


def is_within_words(whole: Mapping[str, Any]) -> bool:
    """Whether the BPE of a ``tokenizer.json`` marks the ends of words."""
    return part(whole, "model").get("end_of_word_suffix") == END


def has_ends(folder: Path) -> bool:
    """Whether ``vocab.json`` has ends of words, and not all bytes."""
    pieces = read_object(folder / VOCABULARY)
    return not pieces.keys() >= {*ALPHABET} and any(piece.endswith(END) for piece in pieces)


def read(folder: Path, whole: Mapping[str, Any], settings: Mapping[str, Any]) -> WordBPE:
    """Read the tokenizer of a Hugging Face folder.

    Theirs does not frame texts. A role that they have no token for is played by ``<unk>``, the only
    special token of the published vocabulary.

    Args:
        folder: Folder with ``vocab.json`` and ``merges.txt``, or ``tokenizer.json``.
        whole: Contents of ``tokenizer.json``; empty if there is none.
        settings: Contents of ``tokenizer_config.json``; empty if there is none.

    Raises:
        RecipeError: A setting or the merges are not supported.
        ContractViolation: A file is malformed.
    """
    lowercase = settings.get("do_lower_case", True)
    if not isinstance(lowercase, bool):
        raise RecipeError(f"{folder / SETTINGS}: do_lower_case: expected true or false")
    if whole:
        _refuse_settings(folder / WHOLE, whole)
        lowercase = lowercase_of(folder / WHOLE, whole)
    vocabulary, merges = lists_of(folder, whole)
    roles = roles_of(vocabulary, settings)
    tokenizer = WordBPE(vocabulary, merges, roles, lowercase)
    ends = [(piece[0], ONE_END) for piece in vocabulary if marked(piece)[1:] == ONE_END]
    plain = [*map(marked, vocabulary), ONE_END]
    plain += [letter for letter, _ in ends if letter not in {*vocabulary}]
    refuse_unlearned(folder, plain, [*ends, *((marked(a), marked(b)) for a, b in merges)])
    return tokenizer


def write(tokenizer: WordBPE, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Write ``vocab.json`` and ``merges.txt``.

    The settings name a class that uses ``tokenizer.json`` as it is. ``OpenAIGPTTokenizer`` would
    frame no text, and drop case always.

    Returns:
        The tokenizer for ``tokenizer.json``, without post-processor, and its additional settings.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    ids = {piece: i for i, piece in enumerate(tokenizer.vocabulary)}
    unknown = tokenizer.vocabulary[tokenizer.unknown_id]
    model = models.BPE(ids, list(tokenizer.merges), unk_token=unknown, end_of_word_suffix=END)
    whole: Any = Tokenizer(model)
    whole.normalizer = normalizers.BertNormalizer(lowercase=tokenizer.lowercase)
    whole.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    whole.decoder = decoders.BPEDecoder(suffix=END)
    whole.add_special_tokens([tokenizer.vocabulary[i] for i in tokenizer.special_ids])
    write_pieces(tokenizer, folder)
    return whole, {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "do_lower_case": tokenizer.lowercase,
    }


def _refuse_settings(path: Path, whole: Mapping[str, Any]) -> None:
    """Refuse settings that would give other ids than our tokenizer.

    Raises:
        RecipeError: There are some.
    """
    model = part(whole, "model")
    refused = ("dropout", "continuing_subword_prefix", "fuse_unk", "ignore_merges", "byte_fallback")
    wrong = [f"model.{key}" for key in refused if model.get(key)]
    if part(whole, "pre_tokenizer").get("type") != "BertPreTokenizer":
        wrong.append("pre_tokenizer")
    if wrong:
        raise RecipeError(f"{path}: {', '.join(wrong)}: not as in GPT; not supported yet")
