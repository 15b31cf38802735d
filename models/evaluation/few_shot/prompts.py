r"""Prompts: instruction, examples with their answers, a row without; tokenised with its answers.

    Name the library.        instruction
                             separator
    Sorts an array.          example, by the template "{text}\nAnswer: {answer}"
    Answer: numpy
                             separator
    Draws a line.            the row
    Answer:                  … matplotlib | numpy | pandas   candidates

A prompt and each of its answers are tokenised as one text. Where a token spans the border, such as
a blank and the word after it, it belongs to the answer: what is scored begins after the tokens that
the prompt alone and all its answers have in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from fourstage.errors import ContractViolation
from models.evaluation.few_shot.template import Template
from models.evaluation.few_shot.wording import Wording, WrittenRow
from models.protocols import Tokenizer


@dataclass(frozen=True)
class Style:
    """What prompts look like.

    Attributes:
        template: Of a row.
        wording: Of its answers.
        instruction: A text before the examples; "" for none.
        separator: Between the instruction, examples and the row.
    """

    template: Template
    wording: Wording
    instruction: str = ""
    separator: str = "\n\n"

    def text(self, row: WrittenRow, examples: Sequence[WrittenRow] = ()) -> str:
        """The prompt of a row, up to its answer."""
        shown = [self._question(each) + self.wording.right(each) for each in examples]
        instruction = [self.instruction] if self.instruction else []
        return self.separator.join([*instruction, *shown, self._question(row)])

    def _question(self, row: WrittenRow) -> str:
        return self.template.question(self.wording.values(row))


@dataclass(frozen=True)
class Prompt:
    """A tokenised prompt.

    Attributes:
        context: Ids of [CLS] and of what all answers follow.
        answers: Ids of each candidate, one or more; none for a text that is to be written.
        examples: How many it shows.
        cut: Tokens left out at its beginning.
    """

    context: list[int]
    answers: tuple[list[int], ...] = ()
    examples: int = 0
    cut: int = 0

    def length(self, new_tokens: int) -> int:
        """Tokens that a network reads; the last one of an answer is only predicted."""
        longest = max(map(len, self.answers)) if self.answers else new_tokens
        return len(self.context) + longest - 1


def tokenised(
    tokenizer: Tokenizer, texts: Sequence[tuple[str, Sequence[str]]], counts: Sequence[int]
) -> list[Prompt]:
    """Prompts with their answers, each tokenised as a whole.

    Args:
        tokenizer: The network's.
        texts: Each prompt with its candidates. Without candidates its last blanks are left out: a
            word that is written begins with its own.
        counts: How many examples each shows.

    Raises:
        ContractViolation: An answer adds no token to its prompt.
    """
    parts: list[str] = []
    for prompt, candidates in texts:
        parts += [prompt + each for each in ("", *candidates)] if candidates else [prompt.rstrip()]
    encoded = iter(tokenizer.encode(parts))
    found = []
    for number, ((_, candidates), count) in enumerate(zip(texts, counts, strict=True)):
        alone, *whole = (next(encoded).tolist() for _ in range(1 + len(candidates)))
        shared = _shared([alone, *whole])
        answers = tuple(ids[shared:] for ids in whole)
        if not all(answers):
            raise ContractViolation(
                f"prompt {number}: expected a token or more in each answer, got none in answer"
                f" {[bool(ids) for ids in answers].index(False)} of {len(answers)}; give it other"
                " words"
            )
        found.append(Prompt([tokenizer.cls_id, *alone[:shared]], answers, count))
    return found


def fitted(
    style: Style,
    tokenizer: Tokenizer,
    rows: Sequence[WrittenRow],
    examples: Sequence[Sequence[WrittenRow]],
    *,
    longest: int,
    new_tokens: int,
    fewer: bool,
    written: bool,
) -> list[Prompt]:
    """The prompt of each row, as long as the network reads at most.

    Args:
        style: What prompts look like.
        tokenizer: The network's.
        rows: Those that are asked.
        examples: Examples of each.
        longest: Tokens that the network reads.
        new_tokens: Tokens that are kept free for a text that is written.
        fewer: Whether a prompt that is too long shows fewer examples, the first ones that fit; one
            that is too long without any loses its beginning. It is refused otherwise.
        written: Whether the answer is written instead of chosen.

    Raises:
        ContractViolation: A prompt is too long, and `fewer` is not set.
    """

    def made(which: Sequence[int], counts: Sequence[int]) -> list[Prompt]:
        texts = [
            (
                style.text(rows[row], examples[row][:count]),
                () if written else style.wording.candidates(rows[row]),
            )
            for row, count in zip(which, counts, strict=True)
        ]
        return tokenised(tokenizer, texts, counts)

    counts = [len(each) for each in examples]
    prompts = made(range(len(rows)), counts)
    unfit = [n for n, each in enumerate(prompts) if each.length(new_tokens) > longest]
    if unfit and not fewer:
        most = max(prompts[row].length(new_tokens) for row in unfit)
        raise ContractViolation(
            f"{len(unfit):,} of {len(rows):,} prompts with {max(counts)} examples are too long: the"
            f" longest has {most:,} tokens with its answer, the network reads {longest:,}. Ask with"
            " fewer `shots`, or set `too_long: fewer`"
        )
    low, high = dict.fromkeys(unfit, 0), {row: max(counts[row] - 1, 0) for row in unfit}
    while open_rows := [row for row in unfit if low[row] < high[row]]:
        tried = [(low[row] + high[row] + 1) // 2 for row in open_rows]
        for row, count, prompt in zip(open_rows, tried, made(open_rows, tried), strict=True):
            if prompt.length(new_tokens) <= longest:
                low[row] = count
            else:
                high[row] = count - 1
    for row, prompt in zip(unfit, made(unfit, [low[row] for row in unfit]), strict=True):
        prompts[row] = _cut(prompt, prompt.length(new_tokens) - longest)
    return prompts


def _cut(prompt: Prompt, surplus: int) -> Prompt:
    """The prompt without as many tokens after [CLS]."""
    if surplus <= 0:
        return prompt
    cls, *rest = prompt.context
    if surplus > len(rest):
        raise ContractViolation(
            f"an answer alone has {surplus - len(rest):,} tokens more than the network reads; leave"
            " out such rows"
        )
    return Prompt([cls, *rest[surplus:]], prompt.answers, prompt.examples, surplus)


def _shared(texts: Sequence[Sequence[int]]) -> int:
    """Length of the longest beginning that all have in common."""
    columns = zip(*texts, strict=False)
    return sum(1 for _ in takewhile(lambda ids: len(set(ids)) == 1, columns))
