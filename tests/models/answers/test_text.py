"""Scores of texts against sacrebleu and rouge-score, also of resampled rows."""

from __future__ import annotations

import gzip
import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import Tokenizer
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

from fourstage.errors import ContractViolation
from models.answers import text
from models.answers.text import Text, texts_of
from models.evaluation.resampling import resampled_scores, scores
from models.metrics import of_answers

TEXT = Text()
ALL = list(of_answers(TEXT.metrics))
EXACT = 1e-9
Rows = tuple[list[list[str]], list[str]]  # the references of each row, and what was said


class Characters(Tokenizer):
    def tokenize(self, text: str) -> list[str]:
        return TokenizerZh()(text.lower()).split()


def oracle(references: list[list[str]], said: list[str]) -> dict[str, float]:
    """What the libraries say of a whole set."""
    most = max(map(len, references))
    streams = [[row[n] if n < len(row) else None for row in references] for n in range(most)]
    found = {
        "bleu": BLEU(tokenize="13a").corpus_score(said, streams).score / 100,
        "bleu_zh": BLEU(tokenize="zh").corpus_score(said, streams).score / 100,
        "chrf": CHRF().corpus_score(said, streams).score / 100,
        "exact_match": np.mean([text in row for text, row in zip(said, references, strict=True)]),
    }
    names = ["rouge1", "rouge2", "rougeL"]
    for suffix, scorer in (
        ("", RougeScorer(names, use_stemmer=True)),
        ("_zh", RougeScorer(names, tokenizer=Characters())),
    ):
        rows = [scorer.score_multi(row, text) for text, row in zip(said, references, strict=True)]
        for name in names:
            found[name + suffix] = np.mean([row[name].fmeasure for row in rows])
    return found


def written(references: list[list[str]], said: list[str]) -> tuple[list[str], list[str]]:
    return [json.dumps(row) for row in references], [json.dumps([text]) for text in said]


ENGLISH = "the a cat dogs sat running on mats , . 3.5 state-of-the-art Cat's".split()
CHINESE = [*"股市今日上涨公司发布新品，。", "AI", "2024", "GDP", " "]


def random_rows(words: list[str], join: str, rows: int = 60) -> Rows:
    """Texts of few words, so that they share n-grams, some of them short, empty or right."""
    rng = np.random.default_rng(len(words))

    def text(least: int) -> str:
        return join.join(rng.choice(words, rng.integers(least, 15))).strip() or words[0]

    references = [[text(1) for _ in range(rng.integers(1, 4))] for _ in range(rows)]
    said = [row[0] if rng.random() < 0.3 else text(0) for row in references]
    said[3], said[4] = "", "."
    return references, said


def real_rows(folder: Path, name: str, rows: int = 60) -> Rows:
    """Real references; as answers those of the next row, their halves, or themselves."""
    if name == "scitldr":
        with gzip.open(folder / "tasks/scitldr/test.jsonl.gz", "rt") as lines:
            references = [json.loads(line)["target"] for line in islice(lines, rows)]
    else:
        file = {"german": "multi30k_en_de/val.de.gz", "chinese": "thucnews_titles/test.txt.gz"}
        with gzip.open(folder / "tasks" / file[name], "rt") as lines:
            references = [[line.split("\t")[0].strip()] for line in islice(lines, rows)]
    said = [
        (row[-1], row[0][: len(row[0]) // 2], references[n - 1][0])[n % 3]
        for n, row in enumerate(references)
    ]
    return references, said


def check(references: list[list[str]], said: list[str]) -> dict[str, float]:
    """Compare with the libraries: the set, and three resampled ones."""
    true, answers = written(references, said)
    found = scores(TEXT, true, answers, ALL)
    assert found == pytest.approx(oracle(references, said), abs=EXACT)
    draws = np.random.default_rng([5, len(said), 3])
    picks = [draws.integers(len(said), size=len(said)) for _ in range(3)]
    expected = [oracle([references[i] for i in p], [said[i] for i in p]) for p in picks]
    for metric in ALL:
        (some,) = resampled_scores(TEXT, true, [answers], metric, resamples=3, seed=5)
        assert some == pytest.approx([each[metric] for each in expected], abs=EXACT), metric
    return found


@pytest.mark.parametrize(("words", "join"), [(ENGLISH, " "), (CHINESE, "")], ids=["en", "zh"])
def test_random_texts_score_as_the_libraries_say(words: list[str], join: str):
    found = check(*random_rows(words, join))
    assert all(0 < found[name] < 1 for name in ("bleu_zh", "chrf", "rougeL_zh", "exact_match"))


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["scitldr", "german", "chinese"])
def test_real_texts_score_as_the_libraries_say(name: str, shared_data: Path):
    found = check(*real_rows(shared_data, name))
    assert 0.3 < found["chrf"] < 0.8
    if name == "chinese":  # no word of theirs is read without the tokenizer for Chinese
        assert found["rouge2"] < 0.1 < found["rouge2_zh"]


def test_rows_of_one_group_are_drawn_together():
    references, said = random_rows(ENGLISH, " ", 12)
    true, answers = written(references, said)
    groups = np.repeat(np.arange(4), 3)
    draw = np.random.default_rng([1, 12, 1]).integers(4, size=4)
    rows = [row for group in draw for row in range(3 * group, 3 * group + 3)]
    expected = oracle([references[i] for i in rows], [said[i] for i in rows])
    for metric in ALL:
        (found,) = resampled_scores(
            TEXT, true, [answers], metric, groups=groups, resamples=1, seed=1
        )
        assert found == pytest.approx([expected[metric]], abs=EXACT)


def test_a_perfect_answer_is_any_reference_and_blanks_make_no_difference():
    true = [json.dumps(["one thing said well here", "another thing said well here"])] * 2
    said = [
        json.dumps(["another thing  said well here"]),
        json.dumps(["one thing said well here\n"]),
    ]
    found = scores(TEXT, true, said, ALL)
    assert found == pytest.approx(dict.fromkeys(ALL, 1.0))


def test_no_words_in_common_and_empty_answers_score_nothing_without_a_warning():
    for said in ('["xyz"]', '[""]', "[]", ""):
        assert scores(TEXT, ['["abc def"]'], [said], ALL) == dict.fromkeys(ALL, 0.0)
    assert scores(TEXT, [], [], ALL) == dict.fromkeys(ALL, 0.0)


def test_stemming_and_case_matter_to_rouge_alone():
    found = scores(TEXT, ['["Running Dogs"]'], ['["runs dog"]'], ALL)
    assert found["rouge1"] == 1.0
    assert found["rouge1_zh"] == found["bleu"] == found["exact_match"] == 0.0


@pytest.mark.parametrize("wrong", ["secret", '"secret"', '["secret", 3]', '{"secret": 1}'])
def test_what_is_no_list_of_texts_is_refused_and_not_quoted(wrong: str):
    with pytest.raises(ContractViolation, match="for each of 2 rows, got something else for row 2"):
        scores(TEXT, ['["a"]', '["b"]'], ['["a"]', wrong], ALL)
    with pytest.raises(ContractViolation) as refused:
        scores(TEXT, [wrong, '["b"]'], ['["a"]', '["b"]'], ALL)
    assert "secret" not in str(refused.value)


LIKELIHOODS = [(7.5, 4, 3), (2.0, 2, 1), (0.5, 1, 0), (9.0, 5, 2.5)]
PERPLEXITIES = ["perplexity", "perplexity_a_word"]


def test_perplexities_are_of_all_tokens_and_of_all_words_and_resampled_row_by_row():
    true = ['["a"]'] * 4
    said = [text.written(None, each) for each in LIKELIHOODS]
    found = scores(TEXT, true, said, PERPLEXITIES)
    assert found == pytest.approx(
        {"perplexity": np.exp(19 / 12), PERPLEXITIES[1]: np.exp(19 / 6.5)}
    )
    draws = np.random.default_rng([5, 4, 6])
    picks = [draws.integers(4, size=4) for _ in range(6)]
    nats, *units = np.array(LIKELIHOODS).T
    for metric, unit in zip(PERPLEXITIES, units, strict=True):
        (some,) = resampled_scores(TEXT, true, [said], metric, resamples=6, seed=5)
        assert some == pytest.approx([np.exp(nats[p].sum() / unit[p].sum()) for p in picks])


def test_what_an_answer_does_not_say_is_not_defined():
    likely, plain = text.written(None, (7.5, 4, 3)), text.written("a b c d")
    both = text.written("a b c d", (7.5, 4, 3))
    true = [plain]
    perfect, told = dict.fromkeys(ALL, 1.0), scores(TEXT, true, [likely], PERPLEXITIES)
    assert np.isnan([*scores(TEXT, true, [likely], ALL).values()]).all()
    assert np.isnan([*scores(TEXT, true, [plain], PERPLEXITIES).values()]).all()
    assert scores(TEXT, true, [both], [*ALL, *PERPLEXITIES]) == pytest.approx({**perfect, **told})
    wordless = scores(TEXT, true, [text.written(None, (7.5, 4, 0))], PERPLEXITIES)
    assert np.isnan(wordless["perplexity_a_word"])
    assert np.isnan([*scores(TEXT, [], [], PERPLEXITIES).values()]).all()
    assert [text.read_of(answer, "perplexity") for answer in (likely, plain, both)] == [4, None, 4]
    assert text.read_of(both, "perplexity_a_word") == 3


def test_an_answer_without_a_text_is_the_empty_text():
    assert texts_of("") == texts_of("[]") == texts_of('[""]') == [""]
    assert texts_of('["a", "b"]') == ["a", "b"]
