"""Validated reading of Hugging Face's tokenizer JSON files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from fourstage.errors import ContractViolation, RecipeError
from models.tokenizers.byte_bpe import in_order

WHOLE = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
NAMED = "special_tokens_map.json"  # older files have here what newer ones have in `SETTINGS`
ADDED = "added_tokens.json"
# {role: (keys of their settings, tokens that have it where the settings do not say)}
_THEIR_ROLES = {
    "pad": (("pad_token",), ("<pad>",)),
    "sep": (("sep_token", "eos_token"), ("<sep>", "</s>")),
    "cls": (("cls_token", "bos_token"), ("<cls>", "<s>")),
    "mask": (("mask_token",), ("<mask>",)),
}
# {architecture: its class}, of those that do not cut as their files alone say.
_THEIR_CLASSES = {
    "albert": "AlbertTokenizer",
    "roformer": "RoFormerTokenizer",
    "xlnet": "XLNetTokenizer",
}


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty if there is no file.

    Raises:
        ContractViolation: The file does not contain a JSON object.
    """
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ContractViolation(f"{path}: not JSON ({str(error)[:200]})") from error
    if not isinstance(value, dict):
        raise ContractViolation(f"{path}: expected an object, got {type(value).__name__}")
    return value


def class_of(folder: Path, settings: Mapping[str, Any]) -> str:
    """Their class of the tokenizer, without "Fast"; where nothing says it, that of the network.

    Args:
        folder: Folder with ``config.json``, where older files have the class.
        settings: Contents of ``tokenizer_config.json``; empty if there is none.
    """
    config = read_object(folder / "config.json")
    said = settings.get("tokenizer_class") or config.get("tokenizer_class")
    return str(said or _THEIR_CLASSES.get(str(config.get("model_type")))).removesuffix("Fast")


def part(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The object under a key; empty if the key is missing or its value is not an object."""
    found = whole.get(name)
    return found if isinstance(found, Mapping) else {}


def objects(whole: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects of the list under a key; none if the key is missing or has no list."""
    found = whole.get(name)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def numbered(ids: Any, path: Path) -> list[str]:
    """The tokens of {token: id}, ordered by id.

    Raises:
        ContractViolation: It is not such a mapping, or the ids have gaps.
    """
    whole = isinstance(ids, Mapping) and all(type(number) is int for number in ids.values())
    return in_order(ids if whole else None, path)


def pieces(path: Path, whole: Mapping[str, Any]) -> list[str]:
    """The vocabulary of a ``tokenizer.json``, ordered by id.

    Raises:
        ContractViolation: The ids have gaps.
        RecipeError: There are added tokens outside the vocabulary.
    """
    vocabulary = numbered(part(whole, "model").get("vocab"), path)
    added = [str(each.get("content")) for each in objects(whole, "added_tokens")]
    beyond = sorted(set(added) - set(vocabulary))
    if beyond:
        raise RecipeError(
            f"{path}: {len(beyond)} added tokens are outside the vocabulary ({beyond[:5]});"
            " not supported yet"
        )
    return vocabulary


def added_tokens(
    folder: Path, whole: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Mapping[str, Any]]:
    """{token: how it is looked for} of those that theirs finds in a text before it cuts the rest.

    Tokens that have a role, such as ``[SEP]``, are not among them: a text never gives theirs here.

    Args:
        folder: Folder with `NAMED` and `ADDED`, which are optional.
        whole: Contents of ``tokenizer.json``; empty if there is none.
        settings: Contents of ``tokenizer_config.json``; empty if there is none.
    """
    named = read_object(folder / NAMED) | dict(settings)
    found: dict[str, Mapping[str, Any]] = {
        name: {"normalized": True} for name in read_object(folder / ADDED)
    }
    for key in ("additional_special_tokens", "extra_special_tokens"):
        several = named.get(key) or ()
        for each in several.values() if isinstance(several, Mapping) else several:
            said = each if isinstance(each, Mapping) else {"content": each}
            found[str(said.get("content"))] = {**said, "special": True}
    decoder = part(settings, "added_tokens_decoder").values()
    for each in chain(
        (e for e in decoder if isinstance(e, Mapping)), objects(whole, "added_tokens")
    ):
        found[str(each.get("content"))] = each
    with_role = (value for key, value in named.items() if key.endswith("_token"))
    for each in with_role:
        found.pop(str(each.get("content") if isinstance(each, Mapping) else each), None)
    return found


def as_it_stands(said: Mapping[str, Any]) -> bool:
    """Whether theirs finds an added token wherever a text has its characters, and nowhere else."""
    return not any(said.get(key) for key in ("normalized", "lstrip", "rstrip", "single_word"))


def roles_of(pieces: Iterable[str], settings: Mapping[str, Any]) -> dict[str, str]:
    """{role: its token}, of the settings or by its usual name."""
    there = {*pieces}
    found: dict[str, str] = {}
    for role, (keys, usual) in _THEIR_ROLES.items():
        said = (settings.get(key) for key in keys)
        names = [each.get("content") if isinstance(each, Mapping) else each for each in said]
        name = next((each for each in (*names, *usual) if each in there), None)
        if name is not None:
            found[role] = name
    return found
