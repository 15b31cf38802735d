"""Generation for many prompts at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import numpy as np

from models.decoding.filters import NEVER, log_softmax
from models.decoding.search import Beams, Chain, Generated
from models.decoding.settings import Generation


class Reader(Protocol):
    """A network that reads texts token by token and remembers what it has read."""

    longest: int  # tokens that it can read, of prompt and new text together
    # Ids with which a text begins that is written apart from its prompt: then prompt and text may
    # be as long each. Empty for a text that continues its prompt.
    begin: tuple[int, ...]

    def start(self, token_ids: np.ndarray, padding_mask: np.ndarray) -> np.ndarray:
        """Read prompts, (B, T) each, padded on the left; logits of the next token, (B, V)."""
        ...

    def step(self, rows: np.ndarray, token_ids: np.ndarray) -> np.ndarray:
        """Read one more token of some texts.

        Args:
            rows: (B',) number of the text, of those read last, that each goes on with.
            token_ids: (B',) its next token.

        Returns:
            (B', V) logits of the token after it.
        """
        ...


def generate(
    reader: Reader,
    prompts: Sequence[Sequence[int]],
    settings: Generation,
    *,
    stops: Collection[int],
    never: Collection[int] = (),
    pad_id: int,
    batch_size: int = 16,
    kept: int = 0,
    longest_prompt: int | None = None,
) -> list[Generated]:
    """What follows each prompt.

    Prompts of like length are read together. What follows one depends on no other, but for
    rounding.

    Args:
        reader: The network.
        prompts: Ids of each, at least one.
        settings: How tokens are chosen.
        stops: Ids that end a text.
        never: Ids that are never chosen.
        pad_id: Id of padding.
        batch_size: Prompts that are read at a time.
        kept: First tokens of a prompt that are never cut, such as [CLS].
        longest_prompt: Most tokens of a prompt; None for as many as the network reads.

    Raises:
        ValueError: A prompt is empty, or too long and not to be cut, or as for `check_room`. None
            has been read. Or no token at all may follow a prompt.
    """
    check_room(reader, settings)
    most = reader.longest if longest_prompt is None else longest_prompt
    cut = [
        _fitting(n, list(prompt), reader, settings, kept, most) for n, prompt in enumerate(prompts)
    ]
    order = sorted(range(len(cut)), key=lambda i: len(cut[i]))
    found: dict[int, Generated] = {}
    for first in range(0, len(order), batch_size):
        numbers = order[first : first + batch_size]
        searches = [_search(cut[n], reader.begin, stops, settings) for n in numbers]
        _run(reader, [cut[n] for n in numbers], searches, pad_id, list(never))
        for number, search in zip(numbers, searches, strict=True):
            found[number] = search.best
            if not found[number].tokens and not found[number].stopped:
                raise ValueError(
                    f"prompt {number}: no token may follow its {len(cut[number])} tokens: with"
                    f" no_repeat_ngram {settings.no_repeat_ngram} and min_new_tokens"
                    f" {settings.min_new_tokens} every one is excluded; lower them"
                )
    return [found[n] for n in range(len(cut))]


def check_room(reader: Reader, settings: Generation) -> None:
    """Refuse settings with which nothing can be written, whatever the prompt.

    Raises:
        ValueError: More new tokens than the network can write, or no room beside them.
    """
    new = settings.max_new_tokens
    most = reader.longest - len(reader.begin) + 1
    if reader.begin and new > most:
        raise ValueError(
            f"max_new_tokens: expected at most {most}, the tokens that the network can write,"
            f" got {new}"
        )
    if not reader.begin and new > reader.longest:
        raise ValueError(
            f"max_new_tokens: {new} leave no room for a prompt: the network reads {reader.longest}"
            f" tokens; set at most {reader.longest}"
        )


def _search(
    prompt: list[int], begin: Sequence[int], stops: Collection[int], settings: Generation
) -> Beams | Chain:
    before = begin or prompt
    if settings.beams > 1:
        return Beams(before, stops, settings)
    return Chain(before, stops, settings, np.random.default_rng([settings.seed, *prompt]))


def _fitting(
    number: int, prompt: list[int], reader: Reader, settings: Generation, kept: int, most: int
) -> list[int]:
    """The prompt, cut if it is too long and may be.

    Raises:
        ValueError: It is empty, or too long.
    """
    new, apart = settings.max_new_tokens, bool(reader.begin)
    longest = most if apart else reader.longest
    # The last new token is never read.
    room = longest if apart else min(most, longest - new + 1)
    if not prompt:
        raise ValueError(f"prompt {number}: it is empty; give it a token at least, such as [CLS]")
    if len(prompt) > room and settings.too_long == "error":
        wanted = "" if apart else f", and {new} new ones are wanted"
        lower = "" if apart else ", lower max_new_tokens,"
        raise ValueError(
            f"prompt {number}: {len(prompt)} tokens{wanted}; the network reads {longest} tokens"
            f"{'' if apart else ' in all'}. Shorten it{lower} or set too_long: cut_left"
        )
    if len(prompt) <= room:
        return prompt
    first = prompt[: min(kept, room - 1)]
    return first + prompt[len(first) - room :]


def _run(
    reader: Reader,
    prompts: Sequence[list[int]],
    searches: Sequence[Any],
    pad_id: int,
    never: list[int],
) -> None:
    """Let all searches of a batch end."""
    width = max(map(len, prompts))
    ids = np.full((len(prompts), width), pad_id, np.int32)
    mask = np.zeros((len(prompts), width), np.int32)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = prompt
        mask[row, width - len(prompt) :] = 1
    log_p = log_softmax(reader.start(ids, mask))
    own = [slice(row, row + 1) for row in range(len(prompts))]  # rows of each search
    while True:
        log_p[:, never] = NEVER
        rows: list[int] = []
        tokens: list[int] = []
        for number, search in enumerate(searches):
            if search.done:
                continue
            going = search.step(log_p[own[number]])
            first = own[number].start
            own[number] = slice(len(rows), len(rows) + len(going))
            rows += [first + before for before, _ in going]
            tokens += [token for _, token in going]
        if not rows:
            return
        log_p = log_softmax(reader.step(np.array(rows, np.int32), np.array(tokens, np.int32)))
