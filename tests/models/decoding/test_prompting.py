"""What an objective makes of a text and of what is written, and that it writes what it learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fourstage.errors import RecipeError
from models import catalogue
from models.decoding.prompting import write
from models.inputs.batches import batches
from models.protocols import Context
from models.training.optimizer import make_optimizer
from models.training.stage_model import StageModel
from tests.conformance.parts import FAMILIES as PARTS
from tests.conformance.parts import LENGTH, VOCABULARY_SIZE, compatible, network
from tests.models.memory_corpus import MemoryCorpus, PlainTokenizer
from tests.models.training.memory import RULE

SENTINELS = (119, 118, 117)
TOKENIZER = PlainTokenizer(
    VOCABULARY_SIZE, special_ids=(0, 1, 2, 3, 4, *SENTINELS), sentinel_ids=SENTINELS
)
CLS, SEP, MASK = 2, 3, 4
# These are refused.
WRITES_NOT = {("seq2seq", "masked_seq2seq"), ("nnlm", "causal_lm"), ("recurrent", "causal_lm")}
FAMILIES = {
    "causal_lm": "gpt2",
    "permutation_lm": "xlnet",
    "unified_lm": "unilm",
    "text_infilling": "bart",
    "span_denoising": "t5",
    "masked_seq2seq": "mass",
}


def made(name: str, family: str = "", **settings: Any) -> tuple[Any, Any, Any]:
    """Network, objective and scorer."""
    of = network(family or FAMILIES[name], dropout=0.0)
    context = Context(TOKENIZER, LENGTH, network=of.provides)
    objective = catalogue.find("objectives", name)(context, **settings)
    return of, objective, objective.attach(of)


def prompting(name: str, **settings: Any) -> Any:
    of, objective, scorer = made(name, **settings)
    return objective.prompting(of, scorer)


def test_every_objective_of_a_network_that_writes_is_here():
    found = (
        name
        for name in catalogue.names("objectives")
        if catalogue.literals("objectives", name).get("WRITES")
    )
    assert set(found) == set(FAMILIES)


@pytest.mark.parametrize(
    ("name", "asked", "prompt", "tokens", "whole"),
    [
        ("causal_lm", "7 8", [CLS, 7, 8], None, None),
        ("permutation_lm", "7 8", [CLS, 7, 8], None, None),
        ("unified_lm", "7 8", [CLS, 7, 8, SEP], None, None),
        ("text_infilling", "7 [MASK] 9", [CLS, 7, MASK, 9, SEP], [7, 8, 9], [7, 8, 9]),
        (
            "span_denoising",
            "7 [MASK] 9 [MASK] 6 [MASK]",
            [CLS, 7, 119, 9, 118, 6, 117, SEP],
            [119, 10, 11, 117, 5, 119, 12],  # nothing of the second; of the first's two the first
            [7, 10, 11, 9, 118, 6, 5],
        ),
        (
            "masked_seq2seq",
            "7 [MASK] [MASK] 9",
            [CLS, 7, MASK, MASK, 9, SEP],
            [5, 6],
            [7, 5, 6, 9],
        ),
    ],
)
def test_prompts_and_whole_texts(name, asked, prompt, tokens, whole):
    found = prompting(name)
    assert found.prompt(asked) == prompt
    if tokens is None:
        assert found.whole is None
    else:
        assert found.whole(prompt, tokens) == whole
    ends = name in ("causal_lm", "text_infilling", "span_denoising")
    assert (SEP in found.never) != ends
    assert {0, 1, CLS, MASK} <= set(found.never)
    if found.exactly:
        assert found.exactly(prompt) == 2


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("text_infilling", "7 8", r"prompt 1: .* the text has none; write \[MASK\] where"),
        ("span_denoising", "[MASK] " * 4, "prompt 1: 4 blanks, but the tokenizer has 3 sentinels"),
        ("masked_seq2seq", "[MASK] 7 [MASK]", "prompt 1: .* leave one run of blanks"),
    ],
)
def test_a_text_that_is_no_prompt_is_refused_by_its_number(name, asked, said):
    with pytest.raises(ValueError, match=said):
        write(prompting(name), TOKENIZER, LENGTH, ["7 [MASK]", asked], {})


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(RecipeError, match=r"max_new_tokens: a token is written for each \[MASK\]"):
        write(prompting("masked_seq2seq"), TOKENIZER, LENGTH, ["[MASK]"], {"max_new_tokens": 3})
    with pytest.raises(RecipeError, match=r"too_long: cut_left could cut a \[MASK\] off"):
        write(prompting("masked_seq2seq"), TOKENIZER, LENGTH, ["[MASK]"], {"too_long": "cut_left"})
    with pytest.raises(RecipeError, match="generate: max_new_tokens: 99 leave no room"):
        write(prompting("causal_lm"), TOKENIZER, LENGTH, ["7"], {"max_new_tokens": 99})
    with pytest.raises(RecipeError, match="generate: max_new_tokens: expected at most"):
        write(prompting("text_infilling"), TOKENIZER, LENGTH, ["[MASK]"], {"max_new_tokens": 99})
    with pytest.raises(RecipeError, match="sequence_to_sequence: 0, so that the network has not"):
        prompting("unified_lm", sequence_to_sequence=0)
    of, objective, scorer = made("masked_seq2seq", family="seq2seq")
    with pytest.raises(RecipeError, match="a recurrent network does not write in the middle"):
        objective.prompting(of, scorer)


def test_every_family_that_learns_to_write_can_be_read_token_by_token():
    for name in FAMILIES:
        for family in PARTS:
            if not compatible(family, (name,), None) or (family, name) in WRITES_NOT:
                continue
            of, objective, scorer = made(name, family=family)
            assert objective.prompting(of, scorer).reading.longest > 0
            assert hasattr(of, "go_on"), family


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings", "steps", "first", "blanks", "last"),
    [
        ("causal_lm", {}, 100, 5, 0, 15),
        ("permutation_lm", {"random_share": 0.0, "spacing": 3}, 600, 8, 0, 18),
        ("unified_lm", {"bidirectional": 0, "rate": 0.5}, 300, 10, 0, 20),
        ("text_infilling", {"permute_rate": 0.0}, 100, 8, 1, 11),
        ("span_denoising", {}, 200, 17, 1, 20),
        ("masked_seq2seq", {}, 200, 8, 3, 11),
    ],
)
def test_texts_known_by_heart_are_written(name, settings, steps, first, blanks, last):
    rng = np.random.default_rng(0)
    texts = [rng.permutation(np.arange(5, 100))[:20].tolist() for _ in range(3)]
    corpus = MemoryCorpus([[text[:10], text[10:]] for text in texts] * 16)
    of, objective, scorer = made(name, **settings)
    fed = batches({"data": (corpus, 1.0)}, [objective], objective.context, 6, seed=5)
    model = StageModel(of, {name: scorer})
    rule = {**RULE, "peak_learning_rate": 2e-3, "warmup": 0.1, "decay": "linear"}
    model.compile(optimizer=make_optimizer(rule, total_steps=steps), jit_compile=False)
    model.trace_for(fed.batch(0), lengths_vary=False)
    for step in range(steps):
        model.train_on_batch(fed.batch(step))

    def asked(text: list[int]) -> str:
        after = text[last:] if blanks else []
        return " ".join([*map(str, text[:first]), *["[MASK]"] * blanks, *map(str, after)])

    given = {} if blanks else {"max_new_tokens": last - first}
    found = write(
        objective.prompting(of, scorer), TOKENIZER, LENGTH, [asked(text) for text in texts], given
    )
    expected = [text if blanks else text[:last] for text in texts]
    assert [each["whole"].split() for each in found] == [[*map(str, each)] for each in expected]
