"""Settings of generation."""

from __future__ import annotations

import math
from dataclasses import dataclass

POLICIES = ("error", "cut_left")


@dataclass(frozen=True, kw_only=True)
class Generation:
    """How tokens are chosen. The defaults are greedy search.

    Attributes:
        max_new_tokens: Most tokens after the prompt, from 1; the last may be a stop token.
        min_new_tokens: Tokens before which no stop token is chosen, from 0.
        beams: Hypotheses kept at each step; 1 for greedy search or sampling.
        length_penalty: A finished hypothesis of n tokens scores
            Σ log p / (n + length_offset)^length_penalty.
        length_offset: Tokens added to its length: 0 as in transformers; 5 as in Wu et al. 2016,
            arXiv 1609.08144, eq. 14, up to a factor that is the same for all.
        no_repeat_ngram: Length of token sequences that appear at most once, prompt included; 0 for
            no such limit.
        sample: Whether tokens are drawn instead of taking the likeliest; not with beams.
        temperature: Logits are divided by it before drawing, above 0.
        top_k: Tokens to draw from, the likeliest; 0 for all.
        top_p: Tokens to draw from: the fewest likeliest whose probabilities reach it, in (0, 1].
        seed: Of the draws, from 0. Each is a function of the seed, the prompt and the step alone.
        too_long: A prompt that leaves no room for `max_new_tokens`: ``error``, or ``cut_left`` its
            beginning, but for [CLS] and a prefix.

    Raises:
        ValueError: A value is out of range, or two do not go together.

    Reference:
        Nucleus: Holtzman et al. 2020, arXiv 1904.09751, eq. 2. Top-k: Fan et al. 2018,
        arXiv 1805.04833, 3.
    """

    max_new_tokens: int = 64
    min_new_tokens: int = 0
    beams: int = 1
    length_penalty: float = 1.0
    length_offset: int = 0
    no_repeat_ngram: int = 0
    sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    too_long: str = "error"

    def __post_init__(self) -> None:
        for name, least in (
            ("max_new_tokens", 1),
            ("min_new_tokens", 0),
            ("beams", 1),
            ("length_offset", 0),
            ("no_repeat_ngram", 0),
            ("top_k", 0),
            ("seed", 0),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name}: expected a whole number from {least}, got {value!r}")
        if self.min_new_tokens > self.max_new_tokens:
            raise ValueError(
                f"min_new_tokens: expected at most max_new_tokens, {self.max_new_tokens}, got"
                f" {self.min_new_tokens}"
            )
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"temperature: expected a number above 0, got {self.temperature}")
        if not math.isfinite(self.length_penalty):
            raise ValueError(f"length_penalty: expected a number, got {self.length_penalty}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p: expected a number in (0, 1], got {self.top_p}")
        if self.sample and self.beams > 1:
            raise ValueError(
                f"beams: expected 1 where tokens are sampled, got {self.beams}; set it to 1"
            )
        if not self.sample and (self.temperature, self.top_k, self.top_p) != (1.0, 0, 1.0):
            raise ValueError(
                "temperature, top_k and top_p change what is drawn; set sample (`--sample`), or"
                " leave them out"
            )
        if self.too_long not in POLICIES:
            raise ValueError(
                f"too_long: expected one of {', '.join(POLICIES)}, got {self.too_long!r}"
            )
