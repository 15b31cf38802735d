"""``generation_config.json``: how a head writes, for transformers' ``generate``.

    ours                      theirs
    target_length             max_new_tokens
    min_tokens                min_new_tokens
    beams, length_penalty     num_beams, length_penalty
    no_repeat_ngram           no_repeat_ngram_size
    special tokens but [SEP]  bad_words_ids, which are never written

Without the file theirs searches greedily for 20 tokens and may write special tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models import catalogue
from models.protocols import Tokenizer
from models.signatures import settings_of

WRITES = "sequence_to_sequence"  # a head that predicts with the network's own output matrix
GENERATION = "generation_config.json"
FIRST = "forced_bos_token_id"  # what theirs writes before anything else, and ours has read (BART)
_IDS = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", FIRST)


def writing_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of the head that writes, of those that a stage was given."""
    known = settings_of(catalogue.file_of("heads", WRITES))
    return {name: each.default for name, each in known.items()} | dict(given)


def their_generation(
    head: Mapping[str, Any], tokenizer: Tokenizer, config: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """What their file has, and notes on what it has no place for.

    Args:
        head: The head's settings (`writing_settings`).
        tokenizer: The network's tokenizer.
        config: What is written as ``config.json``.
    """
    more = int(FIRST in config)  # theirs counts it as a new token
    theirs: dict[str, Any] = {key: config[key] for key in _IDS if key in config}
    theirs |= {"do_sample": False, "max_new_tokens": head["target_length"] + more}
    if head["min_tokens"]:
        theirs["min_new_tokens"] = head["min_tokens"] + more
    if head["beams"] > 1:
        theirs |= {"num_beams": head["beams"], "length_penalty": head["length_penalty"]}
    if head["no_repeat_ngram"]:
        theirs["no_repeat_ngram_size"] = head["no_repeat_ngram"]
    never = sorted({*tokenizer.special_ids} - {tokenizer.sep_id})
    if never:
        theirs["bad_words_ids"] = [[each] for each in never]
    notes = []
    if more and head["beams"] > 1 and head["length_penalty"]:
        notes.append(
            f"their length_penalty {head['length_penalty']} counts the text's first special token,"
            " ours does not: of two texts theirs may prefer another"
        )
    if head["prefix"]:
        notes.append(
            f"theirs does not put {head['prefix']!r} before a text (head's prefix); do it yourself"
        )
    return theirs, notes
