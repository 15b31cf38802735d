"""The in-context protocol: rows answered by a pre-trained network from examples in its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models import catalogue
from models.decoding.generate import generate
from models.decoding.likelihood import Likelihood
from models.decoding.reader import Output, Reading, cached_reader
from models.decoding.settings import Generation
from models.evaluation.few_shot.draws import drawn
from models.evaluation.few_shot.prompts import Prompt, Style, fitted, tokenised
from models.evaluation.few_shot.rules import (
    FREE_FORM,
    OVER_NEUTRAL,
    best,
    over_neutral,
    per_token,
)
from models.evaluation.few_shot.wording import WrittenRow
from models.protocols import Tokenizer
from models.stage_format import head_file
from models.training.trained_stage import load_stage

GNMT = 5  # what Wu et al. 2016, arXiv 1609.08144, eq. 14, adds to a text's length


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How rows are asked.

    Attributes:
        score: One of `rules.RULES`.
        neutral: The prompt of ``over_neutral`` that says nothing.
        balanced: Whether examples are drawn from the labels in turn.
        fewer: Whether a prompt that is too long shows fewer examples; it is refused otherwise.
        beams: Hypotheses kept while a text is written.
        length_penalty: Exponent of its length.
        answer_length: Most tokens of a text that is written.
        seed: Seed of the examples.
    """

    score: str
    neutral: str = "Answer: "
    balanced: bool = False
    fewer: bool = False
    beams: int = 4
    length_penalty: float = 0.6
    answer_length: int = 32
    seed: int = 0


@dataclass(frozen=True)
class Answered:
    """Answers to rows with one number of examples.

    Attributes:
        said: (rows,) answers as the dataset writes them.
        examples: (rows,) examples that each prompt shows.
        cut: (rows,) tokens that its beginning has lost.
    """

    said: list[str]
    examples: np.ndarray
    cut: np.ndarray


class Asker:
    """A pre-trained network that answers from its prompt.

    Args:
        network: The network.
        output: What predicts tokens from its last states.
        tokenizer: Its tokenizer.
        longest: Tokens that it reads: no more than it was trained on.
        style: What prompts look like.
        protocol: How rows are asked.
    """

    def __init__(
        self,
        network: Any,
        output: Output,
        tokenizer: Tokenizer,
        longest: int,
        style: Style,
        protocol: Protocol,
    ):
        self._tokenizer, self._longest = tokenizer, longest
        self._style, self._protocol = style, protocol
        self._writes = protocol.score == FREE_FORM
        if self._writes:
            self._reader = cached_reader(Reading(network, output), protocol.beams)
            self._reader.longest = longest
        else:
            self._likelihood = Likelihood(network, output, tokenizer.pad_id)

    def answers(
        self, rows: Sequence[WrittenRow], numbers: Sequence[int], pool: Sequence[WrittenRow], k: int
    ) -> Answered:
        """Answer rows.

        Args:
            rows: Those that are asked.
            numbers: Number of each, on which its examples depend.
            pool: Rows that examples are drawn from.
            k: Examples in each prompt.

        Raises:
            ContractViolation: The pool has fewer rows, or a prompt is too long.
        """
        protocol = self._protocol
        labels = [row.label for row in pool]
        shown = [
            [pool[place] for place in drawn(protocol.seed, n, k, labels, protocol.balanced)]
            for n in numbers
        ]
        prompts = fitted(
            self._style,
            self._tokenizer,
            rows,
            shown,
            longest=self._longest,
            new_tokens=protocol.answer_length,
            fewer=protocol.fewer,
            written=self._writes,
        )
        wording = self._style.wording
        if self._writes:
            texts, spelled = self._written(prompts), self._spelled(rows)
            said = [
                wording.written(row, text, spelled) for row, text in zip(rows, texts, strict=True)
            ]
        else:
            said = [wording.chosen(number) for number in self._chosen(rows, prompts)]
        return Answered(
            said,
            np.array([each.examples for each in prompts]),
            np.array([each.cut for each in prompts]),
        )

    def _chosen(self, rows: Sequence[WrittenRow], prompts: Sequence[Prompt]) -> list[int]:
        """Number of the best candidate of each row; of equals the first."""
        found = self._likelihood([p.context for p in prompts], [p.answers for p in prompts])
        if self._protocol.score != OVER_NEUTRAL:
            return [best(per_token(log_p)) for log_p in found]
        asked = [self._style.wording.candidates(row) for row in rows]
        different = list(dict.fromkeys(asked))  # one for all rows, where labels are asked
        neutral = tokenised(
            self._tokenizer,
            [(self._protocol.neutral, candidates) for candidates in different],
            [0] * len(different),
        )
        known = self._likelihood([p.context for p in neutral], [p.answers for p in neutral])
        of = dict(zip(different, known, strict=True))
        return [
            best(over_neutral(log_p, of[candidates]))
            for log_p, candidates in zip(found, asked, strict=True)
        ]

    def _spelled(self, rows: Sequence[WrittenRow]) -> dict[str, str]:
        """The rows' candidates as the tokenizer writes them, by candidate."""
        candidates = dict.fromkeys(each for r in rows for each in self._style.wording.candidates(r))
        encoded = self._tokenizer.encode(list(candidates)) if candidates else []
        spelled = (self._tokenizer.decode(ids.tolist()) for ids in encoded)
        return dict(zip(candidates, spelled, strict=True))

    def _written(self, prompts: Sequence[Prompt]) -> list[str]:
        """What beam search writes after each prompt, up to the end of its line."""
        tokenizer, protocol = self._tokenizer, self._protocol
        ends = [ids for ids in tokenizer.encode(["\n", "\n\n"]) if len(ids) == 1]
        found = generate(
            self._reader,
            [prompt.context for prompt in prompts],
            Generation(
                max_new_tokens=protocol.answer_length,
                beams=protocol.beams,
                length_penalty=protocol.length_penalty,
                length_offset=GNMT,
            ),
            stops={tokenizer.sep_id, *(int(ids[0]) for ids in ends)},
            never=set(tokenizer.special_ids) - {tokenizer.sep_id},
            pad_id=tokenizer.pad_id,
        )
        texts = []
        for prompt, each in zip(prompts, found, strict=True):
            before = tokenizer.decode(prompt.context[1:])
            after = tokenizer.decode([*prompt.context[1:], *each.tokens])[len(before) :]
            texts.append(after.strip().partition("\n")[0].strip())
        return texts


def asker(
    folder: Path,
    tokenizer: Tokenizer,
    style: Style,
    protocol: Protocol,
    folders: Sequence[Path] = (),
) -> Asker:
    """The network of a finished stage, in float32.

    Args:
        folder: The stage's folder.
        tokenizer: The recipe's tokenizer.
        style: What prompts look like.
        protocol: How rows are asked.
        folders: Project folders, searched first.

    Raises:
        RecipeError: It has not learned to continue text.
    """
    stage = load_stage(folder, tokenizer, precision="float32", folders=folders)
    able = catalogue.saying("objectives", "ANSWERS_PROMPTS", folders)
    # Without any, loading the first one says which heads there are.
    learned = next((name for name in able if head_file(folder, name).exists()), able[0])
    scorer = stage.scorer(learned, stage.objective(learned, folders))
    longest = stage.context.sequence_length
    return Asker(stage.network, scorer, tokenizer, longest, style, protocol)
