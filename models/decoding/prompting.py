"""How a trained objective or head writes from raw text: from text to prompt, and back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fourstage.errors import ContractViolation, RecipeError
from models.decoding.cached import CachedReader
from models.decoding.generate import check_room, generate
from models.decoding.reader import Reading, cached_reader
from models.decoding.search import Generated
from models.decoding.settings import Generation
from models.protocols import Tokenizer

Ids = Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Prompting:
    """What an objective or head knows of writing.

    Attributes:
        reading: How its network reads.
        prompt: A text → its prompt's ids; raises ValueError for a text that is none for it.
        never: Ids that are never written. Where [SEP] is none of them, it ends a text.
        whole: (prompt, new tokens) → ids of the whole text; None where a text goes on.
        exactly: Prompt → number of tokens that are written; None where the settings say it.
        defaults: Settings of generation where nobody says otherwise.
        kept: First tokens of a prompt that stay where it is cut: [CLS], and a prefix.
        longest_prompt: Most tokens of a prompt that was read in training; None where it and what is
            written share the network's length.
    """

    reading: Reading
    prompt: Callable[[str], list[int]]
    never: Collection[int]
    whole: Callable[[Ids, Ids], Ids] | None = None
    exactly: Callable[[Ids], int] | None = None
    defaults: Generation = field(default_factory=Generation)
    kept: int = 1
    longest_prompt: int | None = None


def going_on(
    reading: Reading, tokenizer: Tokenizer, *, closed: bool = False, ends: bool = False
) -> Prompting:
    """Of a text that goes on.

    Args:
        reading: How the network reads.
        tokenizer: The stage's tokenizer.
        closed: Whether [SEP] follows the text, before what is written.
        ends: Whether [SEP] has been learned as the end of what is written.
    """
    after = [tokenizer.sep_id] if closed else []

    def prompt(text: str) -> list[int]:
        (ids,) = tokenizer.encode([text])
        return [tokenizer.cls_id, *ids.tolist(), *after]

    never = {*tokenizer.special_ids} - ({tokenizer.sep_id} if ends else set())
    return Prompting(reading=reading, prompt=prompt, never=never)


def write(
    prompting: Prompting,
    tokenizer: Tokenizer,
    longest: int,
    texts: Sequence[str],
    given: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Write from texts.

    Args:
        prompting: How.
        tokenizer: The stage's tokenizer.
        longest: Tokens that are read at most (`models.decoding.generate.Reader`).
        texts: The texts.
        given: Settings of `Generation` that differ from the defaults.

    Returns:
        One mapping per text: ``text``, what was ``written``, the ``whole`` text with it, its
        ``log_probability`` in nats, and whether it ``ended`` by itself.

    Raises:
        RecipeError: A setting is out of range.
        ContractViolation: A text is not what is expected, or too long.
    """
    settings = asdict(prompting.defaults) | dict(given)
    try:
        generation = Generation(**settings)
    except ValueError as error:
        raise RecipeError(f"generate: {error}") from None
    reader = cached_reader(prompting.reading, generation.beams)
    reader.longest = longest
    try:
        if not prompting.exactly:
            check_room(reader, generation)
    except ValueError as error:
        raise RecipeError(f"generate: {error}") from None
    if fixed := prompting.exactly and {"max_new_tokens", "min_new_tokens"} & set(given):
        raise RecipeError(
            f"generate: {' and '.join(sorted(fixed))}: a token is written for each [MASK], no more"
            " and no fewer; leave it out"
        )
    if prompting.exactly and settings["too_long"] != "error":
        raise RecipeError(
            f"generate: too_long: {settings['too_long']} could cut a [MASK] off that is to be"
            " written; shorten the text instead"
        )
    prompts = []
    for number, text in enumerate(texts):
        try:
            prompts.append(prompting.prompt(text))
        except ValueError as error:
            raise ContractViolation(f"generate: prompt {number}: {error}") from None
    try:
        found = _found(prompting, tokenizer, reader, prompts, settings)
    except ValueError as error:
        raise ContractViolation(f"generate: {error}") from None
    return [
        _told(prompting, tokenizer, text, prompt, each)
        for text, prompt, each in zip(texts, prompts, found, strict=True)
    ]


def _found(
    prompting: Prompting,
    tokenizer: Tokenizer,
    reader: CachedReader,
    prompts: Sequence[Ids],
    settings: Mapping[str, Any],
) -> list[Generated]:
    """What is written to each prompt; those of which as much is written go together."""
    count = prompting.exactly or (lambda _: settings["max_new_tokens"])
    by_length: dict[int, list[int]] = {}
    for number, prompt in enumerate(prompts):
        by_length.setdefault(count(prompt), []).append(number)
    found: dict[int, Generated] = {}
    for length, numbers in by_length.items():
        written = generate(
            reader,
            [prompts[n] for n in numbers],
            Generation(**{**settings, "max_new_tokens": length}),
            stops={tokenizer.sep_id} - set(prompting.never),
            never=prompting.never,
            pad_id=tokenizer.pad_id,
            kept=prompting.kept,
            longest_prompt=prompting.longest_prompt,
        )
        found |= dict(zip(numbers, written, strict=True))
    return [found[number] for number in range(len(prompts))]


def _told(
    prompting: Prompting, tokenizer: Tokenizer, text: str, prompt: Ids, found: Generated
) -> dict[str, Any]:
    """What was written, as text."""
    if prompting.whole is None:
        special = set(tokenizer.special_ids)
        read = [token for token in prompt if token not in special]
        # With the blank before it, if there is one.
        written = tokenizer.decode([*read, *found.tokens])[len(tokenizer.decode(read)) :]
        whole = text + written
    else:
        written = tokenizer.decode(found.tokens)
        whole = tokenizer.decode(prompting.whole(prompt, found.tokens))
    return {
        "text": text,
        "written": written,
        "whole": whole,
        "log_probability": found.log_probability,
        "ended": found.stopped,
    }
