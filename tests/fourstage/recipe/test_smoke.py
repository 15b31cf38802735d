"""The smoke version keeps the structure and nothing that is long or must be fetched."""

from __future__ import annotations

import pytest

from fourstage.recipe.loading import load_recipe, recipe_names
from fourstage.recipe.resolution import resolve
from fourstage.recipe.smoke import EMBEDDED
from fourstage.settings import REPOSITORY
from tasks.planning.plan import resolve_recipe


@pytest.mark.parametrize("name", sorted(recipe_names([])))
def test_smoke_is_small_and_embedded_and_has_another_name(name):
    whole, (small, *_) = resolve(load_recipe(name)), resolve_recipe(name, (), True)
    assert small.name == f"{whole.name}-smoke"
    assert small.size == "tiny"
    assert set(small.sources) <= EMBEDDED
    assert [(s.name, s.kind) for s in small.stages] == [(s.name, s.kind) for s in whole.stages]
    assert [set(s.objectives) for s in small.stages] == [set(s.objectives) for s in whole.stages]
    assert [s.head for s in small.stages] == [s.head for s in whole.stages]
    assert [len(s.phases) for s in small.stages] == [len(s.phases) for s in whole.stages]
    for stage in small.stages:
        assert stage.budget.unit == "steps"
        assert stage.budget.amount <= 20
        assert stage.sequence_length <= 64
        assert stage.batch_size <= 8
    assert small.metrics == whole.metrics
    if whole.model:
        assert small.model == f"{whole.model}-smoke"
        assert small.require == {}


def test_foreign_corpora_become_embedded_ones_by_their_stage():
    small = resolve(load_recipe("applications/biomed-chemprot", smoke=True))
    general, domain, task, finetune = small.stages
    assert general.corpora == {"smoke_general": 1.0}
    assert domain.corpora == {"smoke_general": 0.1, "smoke_domain": 0.9}
    assert task.corpora == {"smoke_labels": 1.0}
    assert finetune.dataset == "smoke_labels"
    assert small.tokenizer.learn_from == ("smoke_general", "smoke_domain")
    assert len(small.seeds) == 1


def test_probes_become_one_of_embedded_rows():
    said = ["evaluate.probes={chemprot: micro_f1, sst2: accuracy}"]
    assert resolve(load_recipe("quickstart", said, smoke=True)).probes == {
        "smoke_labels": "micro_f1"
    }


def test_of_embedded_rows_few_classes_are_told_in_few_episodes():
    small = resolve(load_recipe("quickstart", ["evaluate.prototypes={chemprot: {}}"], smoke=True))
    few = {"ways": [2], "shots": [1], "episodes": 20}
    assert small.prototypes == {"smoke_labels": few}


def test_a_text_may_end_within_the_targets_of_the_smoke_version():
    said = ["stages.finetune.head={sequence_to_sequence: {target_length: 60, min_tokens: 50}}"]
    small = resolve(load_recipe("tasks/multi30k-en-de", said, smoke=True)).finetune
    assert small is not None
    assert small.head_settings["min_tokens"] <= small.head_settings["target_length"] == 32


@pytest.mark.parametrize(
    ("said", "small"),
    [
        (["embeddings/*", "block_0/*", "block_11/*"], ("embeddings/*", "block_0/*")),
        (["block_*/attention/*", "*/bias"], ("block_0/attention/*", "*/bias")),
        (["sequence_classification/*"], ("sequence_classification/*",)),
    ],
)
def test_what_is_frozen_is_there_in_fewer_blocks(said, small):
    overrides = ["size=base", f"stages.finetune.freeze={said}"]
    found = resolve(load_recipe("quickstart", overrides, smoke=True))
    assert found.finetune is not None
    assert found.finetune.freeze == small


def test_what_is_frozen_of_word_vectors_are_word_vectors():
    recipe = load_recipe("papers/word2vec-skipgram", ["stages.finetune.freeze=[token/*]"], True)
    found = resolve(recipe).finetune
    assert found is not None
    assert found.freeze == ("token/*",)


def test_a_smaller_budget_stays_smaller():
    small = load_recipe("quickstart", ["stages.domain.budget.steps=3"], smoke=True)
    assert resolve(small).stages[1].budget.amount == 3


def test_the_file_itself_is_not_changed():
    before = (REPOSITORY / "recipes" / "quickstart.yaml").read_bytes()
    load_recipe("quickstart", smoke=True)
    assert (REPOSITORY / "recipes" / "quickstart.yaml").read_bytes() == before


def test_smoke_is_said_as_the_origin_of_what_it_changed():
    small = resolve(load_recipe("quickstart", smoke=True))
    assert small.origin("stages[0].budget.steps") == "smoke"
    assert small.origin("stages[0].objectives.masked_lm.rate") == "recipe"


def test_a_vocabulary_of_bytes_is_made_smaller_too():
    overrides = ["tokenizer.scheme=byte_bpe", "tokenizer.lowercase=false"]
    tokenizer = resolve(load_recipe("papers/bert", overrides, smoke=True)).tokenizer
    assert (tokenizer.scheme, tokenizer.vocabulary_size) == ("byte_bpe", 2000)
