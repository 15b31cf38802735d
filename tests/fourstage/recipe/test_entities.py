"""Names linked with a graph's entities: whose vocabulary, whose vectors, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fourstage.errors import RecipeError
from fourstage.recipe.loading import load_recipe
from fourstage.recipe.resolution import resolve
from fourstage.recipe.resolved import as_recipe

KNOWING = """
name: knowing
family: ernie_tsinghua
size: base
units: {entities: names.tsv}
stages:
  - stage: general
    name: graph
    family: transe
    size: {hidden_dim: 100}
    tokenizer: {scheme: name, vocabulary_size: 900, minimum_count: 1, learn_from: [triples, ids]}
    corpora: {triples: 1}
    objectives: {transe: {}}
  - stage: general
    name: text
    family: ernie_tsinghua
    size: base
    starts_from: {entities: graph}
    corpora: {words: 1}
    objectives: {masked_lm: {}, entity_denoising: {}}
  - {stage: finetune, dataset: rows, head: {sequence_classification: {}}}
"""


@pytest.fixture
def write(tmp_path: Path):
    def _write(*changes: tuple[str, str]) -> Path:
        text = KNOWING
        for before, after in changes:
            assert text.count(before) == 1, before
            text = text.replace(before, after)
        file = tmp_path / "knowing.yaml"
        file.write_text(text, encoding="utf-8")
        return file

    return _write


def test_a_stage_has_its_own_vocabulary_and_the_others_the_recipes(write, tmp_path: Path):
    resolved = resolve(load_recipe(write()))
    graph, *others = resolved.stages
    assert graph.tokenizer is not None
    assert (graph.tokenizer.scheme, graph.tokenizer.learn_from) == ("name", ("triples", "ids"))
    assert graph.tokenizer.minimum_count == 1
    assert [stage.tokenizer for stage in others] == [None, None]
    assert resolved.tokenizer.scheme == "wordpiece"
    assert resolved.tokenizer.learn_from == ("words",), "no names of the graph among its words"
    assert set(resolved.sources) == {"triples", "ids", "words", "rows"}
    assert resolved.units.entities == "names.tsv"
    said = as_recipe(resolved)
    (tmp_path / "again.yaml").write_text(yaml.safe_dump(said), encoding="utf-8")
    again = resolve(load_recipe(tmp_path / "again.yaml"))
    assert again.stages[0].tokenizer == graph.tokenizer
    assert (again.tokenizer, again.units) == (resolved.tokenizer, resolved.units)


def test_smoke_reads_the_graph_that_every_machine_has_and_the_list_of_its_entities(write):
    small = resolve(load_recipe(write(), smoke=True))
    graph, text, _ = small.stages
    assert graph.corpora == {"smoke_triples": 1.0}
    assert graph.tokenizer is not None
    assert graph.tokenizer.learn_from == ("smoke_triples",)
    assert text.corpora == {"smoke_general": 1.0}
    assert text.starts_from == {"entities": "graph"}
    assert small.tokenizer.learn_from == ("smoke_general",)
    assert small.units.entities == "corpora/gazetteers/python_entities.tsv"


def _with_marks(*marks: str, scheme: str = "wordpiece") -> tuple[str, str]:
    said = f"tokenizer: {{scheme: {scheme}, marks: {list(marks)}}}"
    return ("name: knowing", f"name: knowing\n{said}")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("units: {entities: names.tsv}\n", ""), "objectives.entity_denoising: nothing says which"),
        (("    starts_from: {entities: graph}\n", ""), "units.entities: expected one stage of a"),
        (("{entities: graph}", "{entities: grpah}"), "did you mean 'graph'?"),
        (
            (
                "    tokenizer: {scheme: name, vocabulary_size: 900, minimum_count: 1, learn_from:"
                " [triples, ids]}\n",
                "",
            ),
            "'graph' is not an earlier stage of the recipe with a `tokenizer` of its own",
        ),
        (("{hidden_dim: 100}", "{hidden_dim: 50}"), "entities: expected entity_dim 50, the width"),
        (("scheme: name", "scheme: nome"), "stages[0].tokenizer.scheme: 'nome' is not"),
        (("minimum_count: 1, ", "lowercase: true, "), "stages[0].tokenizer.lowercase: name keeps"),
        (
            (
                "    size: base\n    starts",
                "    size: {num_layers: 2, num_text_layers: 1, hidden_dim: 8,"
                " num_heads: 2, num_entities: 900, entity_dim: 50}\n    starts",
            ),
            "stages[1].size: expected entity_dim to be a multiple of entity_heads, got 50 and 4",
        ),
        (("vocabulary_size: 900", "vocabulary_size: 41001"), "num_entities of 41001 or more, the"),
        (("{words: 1}", "{words: 1, triples: 1}"), "triples is read with another vocabulary, too"),
        (
            ("name: knowing", "evaluate: {forgetting_on: [triples]}\nname: knowing"),
            "stages[0].corpora: triples is read with another vocabulary, too",
        ),
        (
            ("{entities: graph}", "{entities: graph, embeddings: graph}"),
            "stages[1].starts_from.embeddings: stage graph reads with a vocabulary of its own",
        ),
        (
            (
                "    family: ernie_tsinghua\n    size: base\n    starts_from: {entities: graph}\n",
                "",
            ),
            "stages[0].tokenizer: a vocabulary of its own is for a stage with a network of its own",
        ),
        (_with_marks("<<"), "tokenizer.marks[0]: '<<': expected capitals in brackets, such as"),
        (_with_marks("[MASK]"), "tokenizer.marks[0]: '[MASK]': the name of a special token"),
        (_with_marks("[HD]", "[HD]"), "tokenizer.marks[1]: '[HD]': it is there already"),
        (
            _with_marks("[HD]", scheme="unigram"),
            "tokenizer.marks: unigram has no such setting; schemes with it: wo",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_any_work(write, change, expected: str):
    with pytest.raises(RecipeError) as caught:
        resolve(load_recipe(write(change)))
    assert expected in str(caught.value)


def test_words_may_start_from_a_file_beside_the_entities(write, tmp_path: Path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("word " + "0.5 " * 768 + "\n", encoding="utf-8")
    starts = f"{{entities: graph, embeddings: {vectors}}}"
    text = resolve(load_recipe(write(("{entities: graph}", starts)))).stages[1]
    assert text.starts_from == {"entities": "graph", "embeddings": str(vectors)}


@pytest.mark.parametrize("sentinels", [1, 50])
def test_spans_are_hidden_by_the_sentinels_of_the_stages_own_vocabulary(tmp_path: Path, sentinels):
    own = {"scheme": "unigram", "sentinels": sentinels}
    stage = {"stage": "general", "size": "tiny", "corpora": {"words": 1}}
    spans = {"name": "spans", "family": "t5", "objectives": {"span_denoising": {}}}
    whole = {"name": "two", "family": "bert", "size": "tiny"}
    later = {
        "name": "later",
        "family": "bert",
        "corpora": {"notes": 1},
        "objectives": {"masked_lm": {}},
    }
    whole["stages"] = [stage | spans | {"tokenizer": own}, stage | later]
    (tmp_path / "two.yaml").write_text(yaml.safe_dump(whole), encoding="utf-8")
    if sentinels > 1:
        assert resolve(load_recipe(tmp_path / "two.yaml")).tokenizer.sentinels == 0
    else:
        with pytest.raises(RecipeError, match="hidden spans, but the tokenizer has 1 sentinels"):
            resolve(load_recipe(tmp_path / "two.yaml"))


def test_a_model_that_reads_entities_is_promoted_if_its_graph_says_where_tokens_lie(write):
    promoted = ("units:", "promote: {model: knowing}\nunits:")
    assert resolve(load_recipe(write(promoted))).model == "knowing"
    other = ("name: knowing", "tokenizer: {scheme: unigram}\nname: knowing")
    with pytest.raises(RecipeError, match=r"promote: a model .* tokenizer unigram, .* wordpiece"):
        resolve(load_recipe(write(promoted, other)))


def test_a_head_that_reads_text_alone_is_promoted_with_any_tokenizer(write):
    promoted = ("units:", "tokenizer: {scheme: unigram}\npromote: {model: knowing}\nunits:")
    head = ("{sequence_classification: {}}", "{multiple_choice: {}}")
    assert resolve(load_recipe(write(promoted, head))).model == "knowing"
