"""Several networks in one recipe: which stage trains which, and who learns from whom."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fourstage.errors import RecipeError
from fourstage.recipe.loading import load_recipe
from fourstage.recipe.resolution import resolve
from fourstage.recipe.resolved import as_recipe, stage_spec

TAUGHT = """
name: taught
family: bert
size: mini
tokenizer: {vocabulary_size: 1000}
stages:
  - stage: general
    name: teacher
    corpora: {text: 1}
    objectives: {masked_lm: {}, next_sentence: {}}
    sequence_length: 64
  - stage: general
    name: student
    family: distilbert
    size: tiny
    corpora: {text: 1}
    objectives: {masked_lm: {weight: 2}, distillation: {teacher: teacher}}
  - {stage: domain, corpora: {own: 1}}
  - {stage: finetune, dataset: rows, head: {sequence_classification: {}}}
"""
SHORT = (
    "{num_layers: 2, hidden_dim: 64, num_heads: 2, intermediate_dim: 64, max_sequence_length: 32}"
)


@pytest.fixture
def write(tmp_path):
    def _write(*changes: tuple[str, str]) -> Path:
        text = TAUGHT
        for before, after in changes:
            assert text.count(before) == 1, before
            text = text.replace(before, after)
        file = tmp_path / "taught.yaml"
        file.write_text(text, encoding="utf-8")
        return file

    return _write


def fault(file: Path) -> str:
    with pytest.raises(RecipeError) as caught:
        resolve(load_recipe(file))
    return str(caught.value)


def test_a_stage_with_a_family_starts_a_network_that_later_stages_go_on_with(write):
    teacher, student, domain, finetune = resolve(load_recipe(write())).stages
    assert (teacher.family, teacher.network["hidden_dim"]) == ("bert", 256)
    assert {s.family for s in (student, domain, finetune)} == {"distilbert"}
    assert student.network == domain.network == finetune.network
    assert student.network["hidden_dim"] == 128
    assert student.starts_network
    assert not any(s.starts_network for s in (teacher, domain, finetune))
    assert student.sequence_length == 64, "what is no weight is inherited all the same"


def test_only_the_stages_of_the_last_network_are_its_own(write):
    resolved = resolve(load_recipe(write()))
    assert [s.name for s in resolved.last_network] == ["student", "domain", "finetune"]
    alone = resolve(load_recipe("quickstart"))
    assert alone.last_network == alone.stages


def test_a_size_alone_keeps_the_family(write):
    file = write(("    family: distilbert\n", ""))
    resolved = resolve(load_recipe(file))
    assert resolved.stages[1].family == "bert"
    assert resolved.stages[1].starts_network
    assert resolved.origin("stages[1].family") == "inherited from stage teacher"
    assert resolved.origin("stages[1].size.num_layers") == "size tiny of bert"


def test_the_resolved_recipe_says_each_network(write, tmp_path):
    resolved = resolve(load_recipe(write()))
    said = as_recipe(resolved)
    assert said["family"] == "bert"
    assert said["stages"][1]["family"] == "distilbert"
    assert said["stages"][1]["size"]["num_layers"] == 2
    assert all("family" not in said["stages"][i] for i in (0, 2, 3))
    assert resolved.origin("stages[1].size.dropout") == "default of distilbert"
    (tmp_path / "again.yaml").write_text(yaml.safe_dump(said), encoding="utf-8")
    again = resolve(load_recipe(tmp_path / "again.yaml"))
    assert as_recipe(again) == said
    assert [stage_spec(s) for s in again.stages] == [stage_spec(s) for s in resolved.stages]


def test_smoke_makes_every_network_tiny(write):
    small = resolve(load_recipe(write(("size: tiny", "size: base")), smoke=True))
    assert [s.network["num_layers"] for s in small.stages] == [2, 2, 2, 2]
    assert [s.family for s in small.stages] == ["bert", *["distilbert"] * 3]


def test_each_stage_is_held_against_its_own_family(write):
    said = fault(write(("distillation: {teacher: teacher}", "next_sentence: {}")))
    assert "stages[1]: 'next_sentence' needs pooled_output" in said
    assert "stages[0]" not in said


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("    size: tiny\n", ""), "stages[1]: the key 'size' is missing: a stage with a family"),
        (("size: tiny", "size: huge"), "stages[1].size: 'huge' is not a size of family 'distil"),
        (
            ("size: tiny", "size: {hidden_dim: 130}"),
            "stages[1].size: missing: num_layers, num_heads, intermediate_dim",
        ),
        (("family: distilbert", "family: distilbart"), "stages[1].family: 'distilbart' is not a f"),
        (
            ("size: tiny", f"size: {SHORT}"),
            "stages[1].sequence_length: 64 tokens are longer than the position table of distilbert",
        ),
    ],
)
def test_a_fault_of_a_stages_network_names_the_stage(write, change, expected):
    assert expected in fault(write(change))


def test_the_earlier_stages_are_named_where_a_teacher_is_none_of_them(write):
    said = fault(write(("{teacher: teacher}", "{teacher: techer}")))
    assert "stages[1].objectives.distillation.teacher: 'techer' is not an earlier stage" in said
    assert "did you mean 'teacher'?" in said
    assert "The folder of a finished stage is allowed too; a registered version" in said


@pytest.mark.parametrize("name", ["student", "domain"])
def test_no_stage_learns_from_itself_or_a_later_one(write, name):
    assert f"{name!r} is not an earlier stage" in fault(
        write(("{teacher: teacher}", f"{{teacher: {name}}}"))
    )


def test_a_teacher_must_have_learned_what_it_teaches(write):
    file = write(("{masked_lm: {}, next_sentence: {}}", "{replaced_token_detection: {}}"))
    said = fault(file)
    assert "expected a stage that was trained with masked_lm; teacher has replaced_token_" in said


def test_a_teacher_is_inherited_with_its_objective(write):
    _, student, domain, finetune = resolve(load_recipe(write())).stages
    assert student.teachers == domain.teachers == {"distillation": "teacher"}
    assert finetune.teachers == {}


def test_the_name_of_a_teacher_is_in_no_key(write):
    named = resolve(load_recipe(write()))
    renamed = write(("name: teacher", "name: master"), ("teacher: teacher", "teacher: master"))
    other = resolve(load_recipe(renamed))
    assert stage_spec(named.stages[1]) == stage_spec(other.stages[1])
    assert stage_spec(named.stages[1])["objectives"]["distillation"] == {}


def test_general_stages_follow_each_other_under_names_of_their_own(write):
    resolved = resolve(load_recipe(write(("    family: distilbert\n    size: tiny\n", ""))))
    assert [(s.name, s.kind) for s in resolved.stages[:2]] == [
        ("teacher", "general"),
        ("student", "general"),
    ]
    assert "the name 'general' is taken by stages[0]" in fault(
        write(("    name: teacher\n", ""), ("    name: student\n", ""))
    )


@pytest.mark.parametrize("kind", ["task", "finetune"])
def test_task_and_finetune_come_once(write, kind):
    head = "dataset: rows, head: {sequence_classification: {}}"
    stage = {"task": "corpora: {own: 1}", "finetune": head}[kind]
    first = f"  - {{stage: {kind}, {stage}}}\n  - {{stage: {kind}, name: again, {stage}}}\n"
    last = "  - {stage: finetune, " + head + "}\n"
    after = first + (last if kind == "task" else "")
    assert f"expected one {kind} stage, got a second" in fault(write((last, after)))


def test_a_family_that_only_counts_needs_a_head_that_counts(tmp_path):
    file = tmp_path / "counted.yaml"
    file.write_text(
        "{name: counted, family: tfidf, size: tiny, tokenizer: {scheme: word, vocabulary_size: 90},"
        " stages: [{stage: finetune, dataset: rows, head: {sequence_classification: {}}}]}",
        encoding="utf-8",
    )
    assert fault(file).count("sequence_classification.wide: expected true, got false") == 1
    file.write_text(file.read_text("utf-8").replace("n: {}", "n: {wide: true}"), encoding="utf-8")
    assert resolve(load_recipe(file)).stages[0].head_settings["wide"]


def test_a_network_that_cannot_be_told_of_shared_tokens(tmp_path):
    file = tmp_path / "lstm.yaml"
    file.write_text(
        "{name: lstm, family: elmo, size: tiny, tokenizer: {vocabulary_size: 90}, stages: [{stage:"
        " finetune, dataset: rows, head: {sequence_classification: {shared_tokens: true}}}]}",
        encoding="utf-8",
    )
    said = fault(file)
    assert "shared_tokens: expected false, got true: family 'elmo' can't be told" in said
    assert "These can: albert, bart, bert, " in said


def test_a_network_may_remember_nothing_but_not_be_nothing_wide():
    none = ["size.memory_length=0", "size.evaluation_memory_length=0"]
    resolve(load_recipe("memory/transformer-xl", none))
    with pytest.raises(RecipeError, match=r"size\.hidden_dim: expected 1 or more, got 0"):
        resolve(load_recipe("memory/transformer-xl", ["size.hidden_dim=0"]))
    objective = "stages.general.objectives.span_denoising"
    with pytest.raises(RecipeError, match=r"mean_length: expected 1 or more, got 0\.5"):
        resolve(load_recipe("papers/t5", [f"{objective}.mean_length=0.5"]))
    with pytest.raises(RecipeError, match=r"an even hidden_dim / num_heads, got 132 / 44 = 3"):
        resolve(load_recipe("quickstart", ["size.hidden_dim=132", "size.num_heads=44"]))


@pytest.mark.parametrize(
    ("setting", "got"),
    [
        ("stages.general.micro_batches=2", "micro_batches 2, alternate false"),
        (
            "stages.general.phases=[{sequence_length: 16, batch_size: 4, share: 0.5},"
            " {sequence_length: 32, batch_size: 2, share: 0.5}]",
            "got batch_size 2, 4, micro_batches 1",
        ),
    ],
)
def test_what_does_not_go_with_memory_is_refused_unless_there_is_none(setting, got):
    with pytest.raises(RecipeError, match=got):
        resolve(load_recipe("memory/transformer-xl", [setting]))
    none = ["size.memory_length=0", "size.evaluation_memory_length=0"]
    resolve(load_recipe("memory/transformer-xl", [setting, *none]))


def test_what_a_family_that_counts_would_ignore_is_refused():
    for setting in ("average={}", "optimizer={adamw: {peak_learning_rate: 0.1}}"):
        with pytest.raises(RecipeError, match="ngram trains the network itself"):
            resolve(load_recipe("papers/ngram", [f"stages.general.{setting}"]))


@pytest.mark.parametrize("recipe", ["papers/ngram", "papers/word2vec-cbow", "papers/transe"])
def test_what_trains_itself_has_one_length_and_one_batch_size_which_its_key_has(recipe):
    phase = "{sequence_length: 32, share: 1.0"
    for setting in (
        f"phases=[{phase}, batch_size: 8}}]",
        f"phases=[{phase}}}, {{sequence_length: 16, share: 1.0}}]",
        "micro_batches=2",
    ):
        with pytest.raises(RecipeError, match=r"itself, with one sequence_length and one batch_s"):
            resolve(load_recipe(recipe, [f"stages.general.{setting}"]))
    usual = [f"stages.general.phases=[{phase}}}]", "stages.general.micro_batches=1"]
    specs = [
        stage_spec(resolve(load_recipe(recipe, [*usual, *more])).stages[0])
        for more in ((), ["stages.general.batch_size=7"])
    ]
    assert specs[0] != specs[1]
