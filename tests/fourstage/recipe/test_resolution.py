"""Inheritance, defaults, notes, names of sources, and what of a stage enters its key."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from fourstage.digests import digest
from fourstage.errors import RecipeError
from fourstage.recipe.ledger import SourceFacts
from fourstage.recipe.loading import load_recipe
from fourstage.recipe.resolution import resolve
from fourstage.recipe.resolved import as_recipe, stage_spec

FIXTURES = Path(__file__).parent / "fixtures"
GOLDEN = FIXTURES / "recipes" / "golden.yaml"
SPECS = FIXTURES / "stage-specs.json"
SOURCES = {
    "general_text": SourceFacts(labelled=False),
    "domain_text": SourceFacts(labelled=False),
    "rows": SourceFacts(labelled=True),
    "unread": None,
}


@pytest.fixture
def golden():
    return resolve(load_recipe(GOLDEN), SOURCES)


@pytest.fixture
def edit(tmp_path):
    def _edit(pattern: str, replacement: str) -> Path:
        text = GOLDEN.read_text(encoding="utf-8")
        changed = re.sub(pattern, replacement, text, count=1, flags=re.MULTILINE)
        assert changed != text, "the edit changed nothing"
        (tmp_path / "x.yaml").write_text(changed, encoding="utf-8")
        return tmp_path / "x.yaml"

    return _edit


def fault(file: Path) -> str:
    with pytest.raises(RecipeError) as caught:
        resolve(load_recipe(file), SOURCES)
    return str(caught.value)


def test_network_sequence_length_and_precision_are_inherited(golden):
    general, domain, task, finetune = golden.stages
    assert general.network == domain.network == task.network == finetune.network
    assert [p.sequence_length for p in general.phases] == [64, 128]
    assert all(stage.sequence_length == 128 for stage in golden.stages)
    assert golden.origin("stages[1].phases[0].sequence_length") == "inherited from stage general"
    assert golden.origin("stages[3].precision") == "inherited from stage task"


def test_objectives_are_inherited_less_those_that_rows_cannot_feed(golden):
    general, domain, task, finetune = golden.stages
    assert list(general.objectives) == list(domain.objectives) == ["masked_lm", "next_sentence"]
    assert list(task.objectives) == ["masked_lm"]
    assert task.objectives["masked_lm"]["unit"] == "word"
    assert task.weights == {"masked_lm": 2.0}
    assert finetune.objectives == {}
    assert len(golden.notes) == 1
    assert "'next_sentence' is not inherited from stage domain" in golden.notes[0]


@pytest.mark.parametrize("pairs", [True, False])
def test_a_head_that_embeds_texts_needs_pairs(edit, pairs):
    file = edit(r"head: \{.*", "head: {sentence_embedding: {}}")
    sources = SOURCES | {"rows": SourceFacts(labelled=True, answers="number", pairs=pairs)}
    with pytest.raises(RecipeError) as caught:  # golden's metrics are those of labels
        resolve(load_recipe(file), sources)
    assert ("sentence_embedding needs rows of two texts" in str(caught.value)) != pairs


@pytest.mark.parametrize("pairs", [True, False])
def test_texts_share_tokens_where_there_are_two(edit, pairs):
    file = edit(r"head: \{.*", "head: {sequence_classification: {shared_tokens: true}}")
    sources = SOURCES | {"rows": SourceFacts(labelled=True, pairs=pairs)}
    if pairs:
        assert resolve(load_recipe(file), sources).stages[-1].head_settings["shared_tokens"]
        return
    with pytest.raises(RecipeError, match="shared_tokens needs rows of two texts"):
        resolve(load_recipe(file), sources)


def test_a_frozen_network_is_not_told_of_shared_tokens(edit):
    file = edit(
        r"head: \{.*",
        "head: {sequence_classification: {shared_tokens: true}}\n    feature_based: {}",
    )
    assert "shared_tokens: expected false with feature_based, got true" in fault(file)


def test_budget_optimizer_and_batch_size_are_never_inherited(golden):
    budgets = [(stage.budget.unit, stage.budget.amount) for stage in golden.stages]
    assert budgets == [("steps", 100), ("tokens", 1_000_000), ("epochs", 2.5), ("epochs", 3)]
    rates = [stage.optimizer.settings["peak_learning_rate"] for stage in golden.stages]
    assert rates == [5e-4, 2.5e-4, 1e-4, 5e-5]
    assert [stage.batch_size for stage in golden.stages] == [32, 32, 32, 16]
    assert golden.origin("stages[1].optimizer.adamw.warmup") == "default for domain"


def test_the_task_stage_reads_the_text_of_the_finetune_dataset(golden):
    assert golden.stages[2].corpora == {"rows": 1.0}
    assert golden.origin("stages[2].corpora.rows") == "the text of the finetune dataset"


def test_shares_are_made_to_sum_to_one(golden):
    assert golden.stages[0].corpora == {"domain_text": 0.25, "general_text": 0.75}
    assert [phase.share for phase in golden.stages[0].phases] == [0.9, 0.1]


def test_every_value_has_an_origin(golden):
    for path, _, origin in golden.rows():
        assert re.match(
            r"recipe$|default|inherited from stage|size mini of bert|the |extends|--set", origin
        ), (path, origin)


def test_the_resolved_recipe_is_a_recipe_that_resolves_to_itself(golden, tmp_path):
    file = tmp_path / "resolved.yaml"
    file.write_text(yaml.safe_dump(as_recipe(golden)), encoding="utf-8")
    again = resolve(load_recipe(file), SOURCES)
    assert [stage_spec(stage) for stage in again.stages] == [
        stage_spec(stage) for stage in golden.stages
    ]
    assert as_recipe(again) == as_recipe(golden)


def test_layer_decay_is_the_same_as_remedy_and_as_optimizer_setting(edit, golden):
    same = resolve(
        load_recipe(
            edit(r"remedies: \{layer_decay: 0.95\}", "optimizer: {adamw: {layer_decay: 0.95}}")
        )
    )
    assert stage_spec(same.stages[1]) == stage_spec(golden.stages[1])


# Names of sources


def test_an_unknown_source_suggests_the_nearest(edit):
    said = fault(edit("domain_text: 1}$", "domain_txt: 1}"))
    assert "x.yaml: stages[0].corpora: 'domain_txt' is not a source; did you mean" in said


def test_a_dataset_is_no_corpus_outside_the_task_stage(edit):
    assert "'rows' is a dataset; only stage task reads" in fault(
        edit(r"corpora: \{domain_text: 1\}", "corpora: {rows: 1}")
    )


def test_a_corpus_is_no_dataset(edit):
    assert "stages[3].dataset: 'unread2' is not a source" in fault(
        edit("dataset: rows", "dataset: unread2")
    )
    assert "'domain_text' is a corpus: its source names no label field" in fault(
        edit("dataset: rows", "dataset: domain_text")
    )


# Order, names, phases


def test_probes_are_datasets_each_with_a_metric():
    probed = resolve(load_recipe(GOLDEN, ["evaluate.probes.rows=accuracy"]), SOURCES)
    assert probed.probes == {"rows": "accuracy"}
    assert probed.pretrained.name == "task"
    assert as_recipe(probed)["evaluate"]["probes"] == {"rows": "accuracy"}
    for wrong, told in (
        ("evaluate.probes.row=accuracy", "evaluate.probes: 'row' is not a source; did you mean"),
        ("evaluate.probes.general_text=accuracy", "evaluate.probes: 'general_text' is a corpus"),
        ("evaluate.probes.rows=acuracy", "evaluate.probes.rows: 'acuracy' is not a metric"),
        ("evaluate.probes=[rows]", "evaluate.probes: expected a mapping"),
        ("evaluate.probes.rows=1", "evaluate.probes.rows: expected text"),
    ):
        with pytest.raises(RecipeError) as caught:
            resolve(load_recipe(GOLDEN, [wrong]), SOURCES)
        assert told in str(caught.value)


def test_prototypes_are_of_datasets_each_with_episodes():
    asked = resolve(load_recipe(GOLDEN, ["evaluate.prototypes={rows: {shots: [2]}}"]), SOURCES)
    explicit = {"ways": [5, 10], "shots": [2], "episodes": 2000}
    assert asked.prototypes == as_recipe(asked)["evaluate"]["prototypes"] == {"rows": explicit}
    assert asked.origin("evaluate.prototypes.rows.ways") == "default"
    for wrong, told in (
        ("{row: {}}", "evaluate.prototypes.row: 'row' is not a source; did you mean"),
        ("{general_text: {}}", "evaluate.prototypes.general_text: 'general_text' is a corpus"),
        ("{rows: {ways: [1]}}", "evaluate.prototypes.rows.ways[0]: expected at least 2"),
        ("{rows: {ways: [3, 3]}}", "evaluate.prototypes.rows.ways: expected different numbers"),
        ("{rows: {episodes: 1}}", "evaluate.prototypes.rows.episodes: expected at least 2"),
    ):
        with pytest.raises(RecipeError) as caught:
            resolve(load_recipe(GOLDEN, [f"evaluate.prototypes={wrong}"]), SOURCES)
        assert told in str(caught.value)


def test_phrases_and_entities_need_a_file_of_names(edit):
    said = fault(edit("unit: word", "unit: entity"))
    assert "objectives.masked_lm.unit: 'entity' needs a file of names: `units: {gaz" in said


def test_units_are_said_where_they_are_given(edit, golden):
    assert "units" not in as_recipe(golden)
    said = "units: {segmenter: rjieba, gazetteer: names.tsv}\nfamily: bert"
    resolved = resolve(load_recipe(edit("^family: bert", said)), SOURCES)
    assert as_recipe(resolved)["units"] == {"segmenter": "rjieba", "gazetteer": "names.tsv"}
    assert [stage_spec(s) for s in resolved.stages] == [stage_spec(s) for s in golden.stages]


def test_a_segmenter_is_of_the_scheme_for_words(edit):
    for scheme in ("wordpiece", "word_bpe"):
        said = fault(edit("^tokenizer: {", f"tokenizer: {{scheme: {scheme}, segmenter: rjieba, "))
        assert f"{scheme} has no such setting; schemes with it: word" in said
    with pytest.raises(RecipeError, match=r"tokenizer\.segmenter: 'jieba' is not .* Known: rjieba"):
        load_recipe(edit("^tokenizer: {", "tokenizer: {scheme: word, segmenter: jieba, "))


def test_stages_come_in_their_order(edit):
    assert "expected the order general, domain, task, finetune; got domain after finetune" in fault(
        edit(r"\Z", "  - {stage: domain, corpora: {domain_text: 1}, name: late}\n")
    )


def test_two_domain_stages_need_names(edit):
    file = edit(r"^  - \{stage: task", "  - {stage: domain, corpora: {x: 1}}\n  - {stage: task")
    assert "the name 'domain' is taken by stages[1]" in fault(file)


def test_sequence_length_and_phases_exclude_each_other(edit):
    assert "expected sequence_length or phases, got both" in fault(
        edit("    phases", "    sequence_length: 64\n    phases")
    )


def test_micro_batches_divide_every_batch(edit):
    assert "expected a divisor of the batch size 32, got 5" in fault(
        edit("micro_batches: 4", "micro_batches: 5")
    )


def test_a_network_without_its_arguments_names_them(edit):
    assert "size: missing: num_layers, num_heads" in fault(
        edit("size: mini", "size: {hidden_dim: 64, intermediate_dim: 256}")
    )


# Turns


ALTERNATING = (
    "objectives: {next_sentence: {}, sentence_order: {weight: 2}, masked_lm: {unit: word}}\n"
    "    alternate: true"
)


def test_objectives_take_turns_where_a_stage_says_so_and_go_on_so(edit, golden):
    resolved = resolve(load_recipe(edit("objectives: .*", ALTERNATING)), SOURCES)
    general, domain, task, finetune = resolved.stages
    assert general.weights == {"masked_lm": 1.0, "next_sentence": 1.0, "sentence_order": 2.0}
    assert [s.alternate for s in resolved.stages] == [True, True, True, False]
    assert resolved.origin("stages[1].alternate") == "inherited from stage general"
    assert list(task.objectives) == ["masked_lm"], "rows stand alone"
    written = as_recipe(resolved)["stages"]
    assert [stage.get("alternate") for stage in written] == [True, True, True, None]
    assert stage_spec(general)["alternate"] is True
    assert "alternate" not in stage_spec(golden.stages[0])
    assert "alternate" not in stage_spec(finetune)
    assert domain.weights == general.weights


def test_several_choosers_are_refused_with_the_way_out(edit):
    said = fault(edit("objectives: .*", ALTERNATING.replace("true", "false")))
    assert "got 2: next_sentence, sentence_order. Let them take turns (`alternate: true`)" in said


def test_a_turn_needs_a_share_of_the_updates(edit):
    said = fault(edit("objectives: .*", ALTERNATING.replace("weight: 2", "weight: 0")))
    assert "sentence_order.weight: expected a number above 0" in said


def test_labels_do_not_alternate(edit):
    said = fault(edit("dataset: rows", "dataset: rows\n    alternate: true"))
    assert "stages[3].alternate: stage finetune has no 'alternate'" in said


def test_a_head_may_have_an_objective_beside_it_and_inherits_none(edit, golden):
    assert golden.finetune.objectives == {}
    assert "objectives" not in stage_spec(golden.finetune)
    beside = "dataset: rows\n    objectives: {masked_lm: {rate: 0.2, weight: 0.5}}"
    resolved = resolve(load_recipe(edit("dataset: rows", beside)), SOURCES)
    assert resolved.finetune.weights == {"masked_lm": 0.5}
    assert stage_spec(resolved.finetune)["objectives"] == {
        "masked_lm": {"rate": 0.2, "weight": 0.5}
    }


@pytest.mark.parametrize(
    ("objective", "reason"),
    [
        ("next_sentence: {}", "next_sentence: not beside a head: it needs text that follows on"),
        ("capitalization: {}", "capitalization: not beside a head: it reads the case of words"),
        ("masked_lm: {unit: entity}", "masked_lm: not beside a head: rows are tokenised without"),
        ("masked_ml: {}", "stages[3].objectives: 'masked_ml' is not an objective"),
    ],
)
def test_an_objective_that_rows_can_not_feed_is_refused_beside_a_head(edit, objective, reason):
    said = fault(edit("dataset: rows", f"dataset: rows\n    objectives: {{{objective}}}"))
    assert reason in said


TUNED = "dataset: rows\n    "


@pytest.mark.parametrize(
    ("written", "spec"),
    [
        ("freeze: [embeddings/*]", {"freeze": ["embeddings/*"]}),
        ("gradual_unfreezing: {epochs: 0.5}", {"gradual_unfreezing": {"epochs": 0.5}}),
        ("r_drop: {}", {"r_drop": {"alpha": 1.0}}),
        ("fgm: {epsilon: 0.5}", {"fgm": {"epsilon": 0.5}}),
        (
            "feature_based: {hidden_dim: 64}",
            {"feature_based": {"hidden_dim": 64, "num_layers": 1, "dropout": 0.1}},
        ),
        (
            "lora: {rank: 4}",
            {"lora": {"rank": 4, "alpha": 16.0, "targets": ["query", "value"], "dropout": 0.0}},
        ),
    ],
)
def test_what_of_the_network_is_trained_is_in_the_key_where_it_is_said(edit, golden, written, spec):
    resolved = resolve(load_recipe(edit("dataset: rows", TUNED + written)), SOURCES)
    ((key, value),) = spec.items()
    assert stage_spec(resolved.finetune)[key] == value
    assert key not in stage_spec(golden.finetune)
    assert as_recipe(resolved)["stages"][-1][key] == value


@pytest.mark.parametrize(
    ("beside", "path"),
    [
        ("lora: {}", "lora"),
        ("freeze: [block_0/*]", "freeze"),
        ("gradual_unfreezing: {epochs: 1}", "gradual_unfreezing"),
        ("fgm: {}", "fgm"),
        ("objectives: {masked_lm: {}}", "objectives"),
        ("optimizer: {adamw: {layer_decay: 0.8}}", "optimizer.adamw.layer_decay"),
        ("remedies: {layer_decay: 0.8}", "remedies.layer_decay"),
    ],
)
def test_what_needs_a_gradient_through_the_network_is_refused_where_it_is_frozen(
    edit, beside, path
):
    said = fault(edit("dataset: rows", f"{TUNED}feature_based: {{}}\n    {beside}"))
    assert re.search(rf"stages\[\d\]\.{re.escape(path)}: with feature_based", said)


@pytest.mark.parametrize(
    ("stage", "remedies", "message"),
    [
        ("general", "{l2_sp: {strength: 1}}", "l2_sp: the network starts from random weights"),
        ("domain", "{l2_sp: {strength: 1}, ewc: {strength: 1}}", "got l2_sp and ewc; keep one"),
        ("finetune", "{ewc: {strength: 1}}", "ewc: how much a weight matters comes from"),
        (
            "task",
            "{rec_adam: {pull: 5000, speed: 1, midpoint: 9}}",
            "pull: expected less than 2000,",
        ),
    ],
)
def test_a_remedy_that_cannot_pull_is_refused(stage, remedies, message):
    overrides = [f"stages.{stage}.remedies={remedies}"]
    with pytest.raises(RecipeError, match=message):
        resolve(load_recipe("quickstart", overrides=overrides))


def test_ewc_reads_the_corpora_of_the_stage_before():
    overrides = ["stages.task.remedies={ewc: {strength: 0.5}}"]
    recipe = resolve(load_recipe("quickstart", overrides=overrides))
    task = recipe.stages[2]
    assert task.remedies == {"ewc": {"strength": 0.5, "samples": 256}}
    assert task.earlier == {"python_infrastructure": 0.1, "python_scientific": 0.9}
    assert stage_spec(task)["earlier"] == task.earlier


@pytest.mark.parametrize(
    ("patterns", "said"),
    [
        (
            "[block_0/*, embedings/*]",
            "stages[3].freeze[1]: 'embedings/*' is not a pattern that matches a weight; did you"
            " mean 'embeddings/*'? Known: block_0/*, block_1/*, block_2/*, block_3/*,"
            " embeddings/*, pooler/*, sequence_classification/*.",
        ),
        ("[block_4/*]", "stages[3].freeze[0]: 'block_4/*' is not a pattern that matches a weight"),
        ("[block_0/atention/*]", "did you mean 'block_0/attention/"),
        ("[sequence_clasification/*]", "did you mean 'sequence_classification/*'?"),
        ("['*']", "stages[3].freeze: every weight is frozen, so there is nothing to train"),
    ],
)
def test_what_can_not_be_frozen_is_refused_before_any_stage(edit, patterns, said):
    assert said in fault(edit("dataset: rows", f"{TUNED}freeze: {patterns}"))


def test_lora_names_projections_that_there_are_before_any_stage(edit):
    said = fault(edit("dataset: rows", f"{TUNED}lora: {{targets: [query, valeu]}}"))
    assert "stages[3].lora.targets: 'valeu' is not a projection; did you mean 'value'?" in said
    assert "Known: intermediate, key, output, pooler, query, value." in said


@pytest.mark.parametrize("pattern", ["*/kernel", "block_[01]/*", "seq*/output/*"])
def test_what_matches_a_weight_or_might_match_one_of_the_head_can_be_frozen(edit, pattern):
    file = edit("dataset: rows", f"{TUNED}freeze: ['{pattern}']")
    resolved = resolve(load_recipe(file), SOURCES)
    assert resolved.finetune is not None
    assert resolved.finetune.freeze == (pattern,)


def test_all_that_random_weights_need_not_is_refused_in_one_sentence(edit):
    both = "lora: {}\n    freeze: [block_0/*]"
    said = fault(edit("objectives: .*", f"objectives: {{masked_lm: {{}}}}\n    {both}"))
    assert said.count("stages[0].freeze") == 1
    assert (
        "stages[0].freeze, stages[0].lora: the network of this stage starts from random weights, so"
        " there is nothing to preserve; leave them out" in said
    )
    assert "with lora" not in said


def test_tuning_that_means_nothing_is_refused(edit):
    both = "lora: {}\n    gradual_unfreezing: {share: 0.1}"
    assert "with lora the network's own layers never train" in fault(
        edit("dataset: rows", TUNED + both)
    )
    both = "lora: {}\n    freeze: [sequence_classification/*, block_0/*]"
    said = fault(edit("dataset: rows", TUNED + both))
    assert "stages[3].freeze[1]: with lora the network is frozen, and its updates are" in said
    assert "freeze[0]" not in said
    said = fault(edit("objectives: .*", "objectives: {masked_lm: {}}\n    freeze: [block_0/*]"))
    assert "stages[0].freeze: the network of this stage starts from random weights" in said
    said = fault(edit("objectives: .*", "objectives: {masked_lm: {}}\n    fgm: {}"))
    assert "stages[0].fgm: stage general has no 'fgm'" in said
    said = fault(edit("objectives: .*", "objectives: {masked_lm: {}}\n    feature_based: {}"))
    assert "stages[0].feature_based: stage general has no 'feature_based'" in said
    assert "stages[0].feature_based: the network of this stage starts from random weights" in said
    ratio = "optimizer: {adamw: {ratio: 32}}"
    assert "only `decay: slanted_triangular` has a ratio" in fault(
        edit("dataset: rows", TUNED + ratio)
    )


@pytest.mark.parametrize(
    ("setting", "expected"),
    [("{share: 0.5}", "less than 0.2, got 0.5"), ("{epochs: 1}", "less than 0.6, got 1")],
)
def test_layers_that_cannot_all_thaw_are_refused_before_any_work(edit, setting, expected):
    written = f"{TUNED}budget: {{epochs: 3}}\n    gradual_unfreezing: "
    said = fault(edit("dataset: rows", written + setting))
    assert f"embeddings, blocks and head are 6 layers, so expected {expected}" in said
    resolve(load_recipe(edit("dataset: rows", written + "{share: 0.19}")), SOURCES)


def test_r_drop_needs_a_head_that_predicts_a_distribution():
    with pytest.raises(RecipeError, match="r_drop: head sentence_embedding predicts no distrib"):
        resolve(
            load_recipe(
                "quickstart",
                ["stages.finetune.head={sentence_embedding: {}}", "stages.finetune.r_drop={}"],
            )
        )


@pytest.mark.parametrize("key", ["fgm", "r_drop"])
def test_what_only_counts_has_no_network_to_regularise(key):
    head = "stages.finetune.head={sequence_classification: {wide: true}}"
    alone = [f"stages.{stage}=" for stage in ("general", "domain", "task")]
    given = ["family=tfidf", "size=tiny", *alone, head]
    resolve(load_recipe("quickstart", given))
    with pytest.raises(RecipeError, match=f"{key}: family 'tfidf' has no network; leave it out"):
        resolve(load_recipe("quickstart", [*given, f"stages.finetune.{key}={{}}"]))


@pytest.mark.parametrize(
    "setting", ["finetune.lora={}", "finetune.fgm={}", "task.remedies={ewc: {strength: 0.5}}"]
)
def test_what_needs_tensorflow_is_refused_before_any_work(monkeypatch, setting):
    recipe = load_recipe("quickstart", [f"stages.{setting}"])
    resolve(recipe)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    with pytest.raises(RecipeError, match="needs the TensorFlow backend, and KERAS_BACKEND is jax"):
        resolve(recipe)


def test_a_table_of_tasks_has_a_row_for_each_turn(edit, tmp_path):
    file = edit("objectives: .*", ALTERNATING)
    size = "{num_layers: 1, hidden_dim: 8, num_heads: 2, intermediate_dim: 8, num_tasks: %d}"
    ernie = ["family=ernie", "size=" + size % 2]
    with pytest.raises(RecipeError, match="num_tasks: 2, but 3 objectives take turns: masked_lm"):
        resolve(load_recipe(file, ernie), SOURCES)
    assert resolve(load_recipe(file, ["family=ernie", "size=" + size % 3]), SOURCES)


# Seeds


def test_several_seeds_begin_at_the_stage_they_are_from(edit):
    file = edit("seed: 3", "seeds: {values: [4, 5, 6], from: task}")
    recipe = load_recipe(file)
    resolved = resolve(recipe)
    assert [stage.seed for stage in resolved.stages] == [4, 4, 4, 4]
    assert resolved.seeds == (4, 5, 6)
    assert [stage.seed for stage in resolve(recipe, seed=6).stages] == [4, 4, 6, 6]


def test_seeds_in_groups_share_what_comes_before(edit):
    file = edit("seed: 3", "seeds: {values: [4, 5, 6, 7, 8], from: task, together: 2}")
    recipe = load_recipe(file)
    seeds = {s: [stage.seed for stage in resolve(recipe, seed=s).stages] for s in (4, 5, 6, 7, 8)}
    assert seeds == {
        4: [4, 4, 4, 4],
        5: [4, 4, 5, 5],
        6: [6, 6, 6, 6],
        7: [6, 6, 7, 7],
        8: [8, 8, 8, 8],
    }
    assert as_recipe(resolve(recipe))["seeds"]["together"] == 2


def test_another_seed_is_that_of_all_stages():
    other = resolve(load_recipe(GOLDEN), SOURCES, seed=8)
    assert [stage.seed for stage in other.stages] == [8, 8, 8, 8]


# Keys


def test_stage_specs_are_those_of_the_file(golden):
    """If this fails, every stored stage of every user would be trained again.

    A new key of the schema belongs into `fourstage.recipe.resolved.NEUTRAL`; the file is changed
    only when the meaning of an old key changes.
    """
    specs = {stage.name: stage_spec(stage) for stage in golden.stages}
    assert specs == json.loads(SPECS.read_text(encoding="utf-8"))


def test_a_spec_is_plain_json_without_names_or_paths(golden):
    for stage in golden.stages:
        text = json.dumps(stage_spec(stage), allow_nan=False)
        assert str(FIXTURES) not in text
        assert "golden" not in text


def test_what_is_said_explicitly_or_in_another_order_has_the_same_key(edit, golden):
    explicit = edit(
        r"objectives: .*",
        "objectives: {masked_lm: {weight: 2.0, unit: word, rate: 0.15}, next_sentence: {}}\n"
        "    batch_size: 32\n    refresh: on_change\n    precision: float32\n    micro_batches: 1",
    )
    again = resolve(load_recipe(explicit), SOURCES)
    assert digest(stage_spec(again.stages[0])) == digest(stage_spec(golden.stages[0]))


def test_stop_has_the_metric_of_select_and_no_other():
    both = ["stages[3].select={metric: accuracy}", "stages[3].stop={patience: 2}"]
    stage = resolve(load_recipe(GOLDEN, both), SOURCES).stages[3]
    assert stage.stop == {"patience": 2, "metric": "accuracy"}
    other = [both[0], "stages[3].stop={patience: 2, metric: macro_f1}"]
    told = r"stages\[3\].stop.metric: expected 'accuracy', by which `select` .*got 'macro_f1'"
    with pytest.raises(RecipeError, match=told):
        resolve(load_recipe(GOLDEN, other), SOURCES)


@pytest.mark.parametrize(
    "override",
    [
        "seed=4",
        "size=tiny",
        "stages[0].budget.steps=101",
        "stages[0].objectives.masked_lm.rate=0.2",
        "stages[0].corpora={general_text: 1, domain_text: 1}",
        "stages[0].optimizer.adamw.warmup=0.1",
        "stages[0].phases=[{sequence_length: 128, share: 1}]",
        "stages[0].batch_size=64",
        "stages[0].micro_batches=2",
        "stages[0].stop.patience=2",
    ],
)
def test_what_decides_the_weights_changes_the_key(golden, override):
    changed = resolve(load_recipe(GOLDEN, [override]), SOURCES)
    assert digest(stage_spec(changed.stages[0])) != digest(stage_spec(golden.stages[0]))


@pytest.mark.parametrize(
    ("stage", "override"),
    [
        (3, "stages[3].budget.epochs=3"),
        (3, "stages[3].optimizer.adamw.beta_2=0.999"),
        (3, "stages[3].head={sequence_classification: {class_weights: balanced, dropout: 0.1}}"),
        (0, "stages[0].corpora={general_text: 75, domain_text: 25}"),
        (0, "stages[0].phases=[{sequence_length: 64, share: 0.9},"
            " {sequence_length: 128, share: 0.1, batch_size: 8}]"),
    ],
)  # fmt: skip
def test_a_value_written_in_another_way_changes_no_key(golden, stage, override):
    same = resolve(load_recipe(GOLDEN, [override]), SOURCES)
    assert digest(stage_spec(same.stages[stage])) == digest(stage_spec(golden.stages[stage]))


@pytest.mark.parametrize(
    "override",
    ["name=other", "stages[0].refresh=on_change", "limits.minutes=3", "stages[0].name=first"],
)
def test_what_decides_no_weight_changes_no_key(golden, override):
    changed = resolve(load_recipe(GOLDEN, [override]), SOURCES)
    assert stage_spec(changed.stages[0]) == stage_spec(golden.stages[0])


# Tokenizer


def test_byte_bpe_keeps_case(edit):
    resolved = resolve(
        load_recipe(edit("^tokenizer: {", "tokenizer: {scheme: byte_bpe, ")), SOURCES
    )
    assert resolved.tokenizer.lowercase is False
    assert resolved.origin("tokenizer.lowercase") == "default"
    said = "tokenizer: {scheme: byte_bpe, lowercase: true, vocabulary_size: 100}"
    faults = fault(edit("^tokenizer: {.*", said))
    assert "tokenizer.lowercase: byte_bpe keeps case and accents; leave it out" in faults
    assert "tokenizer.vocabulary_size: byte_bpe has 261 ids or more" in faults


def test_a_scheme_without_a_file_is_refused(edit):
    said = fault(edit("^tokenizer: {", "tokenizer: {scheme: word_piece, "))
    assert "tokenizer.scheme: 'word_piece' is not a scheme of tokenizers; did you mean 'w" in said


def writing(tmp_path: Path, tokenizer: str, length: int, settings: str = "") -> Path:
    file = tmp_path / "writing.yaml"
    file.write_text(
        f"name: writing\nfamily: t5\nsize: v1.1-small\ntokenizer: {tokenizer}\nstages:\n"
        "  - {stage: general, corpora: {general_text: 1.0}, objectives: {span_denoising:"
        f" {{{settings}}}}},"
        f" sequence_length: {length}}}\n",
        "utf-8",
    )
    return file


def test_a_recipe_with_fewer_sentinels_than_hidden_spans_is_refused_with_the_numbers(tmp_path):
    said = fault(writing(tmp_path, "{sentinels: 27}", 512))
    assert "stages[0].objectives.span_denoising: a row of 512 tokens has 28 hidden spans" in said
    assert "the tokenizer has 27 sentinels; say `tokenizer: {sentinels: 28}`" in said
    assert "has 0 sentinels" in fault(writing(tmp_path, "{lowercase: true}", 128))
    resolved = resolve(load_recipe(writing(tmp_path, "{sentinels: 28}", 512)), SOURCES)
    assert resolved.tokenizer.sentinels == 28
    assert as_recipe(resolved)["tokenizer"]["sentinels"] == 28


def test_sentinels_are_as_many_as_held_out_text_needs_where_training_needs_fewer(tmp_path):
    longer = {"length": 512, "settings": "mean_length: 10.0"}  # 9 spans
    said = fault(writing(tmp_path, "{sentinels: 9}", **longer))
    assert "a row of 512 tokens has, as held-out text is measured, 28 hidden spans" in said
    assert "the tokenizer has 9 sentinels; say `tokenizer: {sentinels: 28}`" in said
    resolve(load_recipe(writing(tmp_path, "{sentinels: 28}", **longer)), SOURCES)


def test_sentinels_leave_room_for_the_bytes(tmp_path):
    given = "{scheme: byte_bpe, vocabulary_size: 280, sentinels: 28}"
    said = fault(writing(tmp_path, given, 512))
    assert "byte_bpe has 261 ids or more beside 28 sentinels; got 280" in said
