"""A recipe whose first stage is a network trained elsewhere: ``init``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from fourstage.errors import ContractViolation, RecipeError
from fourstage.recipe.loading import load_recipe
from fourstage.recipe.resolution import resolve
from fourstage.recipe.resolved import as_recipe
from models import catalogue
from models.families.bart import Bart
from models.families.bert import Bert
from models.interchange.huggingface import save_network
from models.interchange.tokenizer_files import read_tokenizer
from models.signatures import settings_of
from models.stage_format import CONFIG, NETWORK, TOKENIZER
from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece
from tests.conformance.parts import FAMILIES
from tests.models.published_gpt2 import tokenizer_files

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
PIECES = (*SPECIAL_TOKENS, *LETTERS, *(f"##{letter}" for letter in LETTERS))
SIZE = {
    "num_layers": 2,
    "hidden_dim": 16,
    "num_heads": 2,
    "intermediate_dim": 32,
    "max_sequence_length": 48,
}
RECIPE = """
name: given
family: bert
stages:
  - {stage: general, init: "folder:network"}
  - {stage: domain, corpora: {own: 1}, objectives: {masked_lm: {}}}
  - {stage: finetune, dataset: rows, head: {sequence_classification: {}}}
"""
OBJECTIVES = ", objectives: {masked_lm: {}}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a Hugging Face folder ``network``."""
    project = tmp_path_factory.mktemp("project")
    network = Bert(**SIZE, vocabulary_size=len(PIECES))
    save_network(network, project / "network", tokenizer=WordPiece(PIECES, True))
    return project


@pytest.fixture
def write(folder: Path, tmp_path: Path) -> Callable[..., Path]:
    def _write(*changes: tuple[str, str]) -> Path:
        text = RECIPE.replace("folder:network", f"folder:{folder / 'network'}")
        for before, after in changes:
            assert text.count(before) == 1, before
            text = text.replace(before, after)
        file = tmp_path / "given.yaml"
        file.write_text(text, encoding="utf-8")
        return file

    return _write


def fault(file: Path) -> str:
    with pytest.raises(RecipeError) as caught:
        resolve(load_recipe(file))
    return str(caught.value)


def test_network_and_tokenizer_are_those_of_the_files(write):
    resolved = resolve(load_recipe(write()))
    general, domain, finetune = resolved.stages
    assert {name: general.network[name] for name in SIZE} == SIZE
    assert general.network == domain.network == finetune.network
    assert general.init
    assert not domain.init
    assert (general.budget.amount, general.corpora) == (0, {})
    assert vars(resolved.tokenizer) == {
        "scheme": "wordpiece",
        "vocabulary_size": len(PIECES),
        "lowercase": True,
        "learn_from": (),
        "add_words": 0,
        "sentinels": 0,
        "minimum_count": 0,
        "marks": (),
        "segmenter": None,
    }
    assert resolved.sources == ("own", "rows")
    assert resolved.origin("size.num_layers") == resolved.origin("tokenizer.scheme")
    assert resolved.origin("size.num_layers") == "stages[0].init"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_stage_of_ours_is_a_start_whatever_its_family(family, write, folder, tmp_path):
    """Training writes down every argument of its network, those that are None, too."""
    tokenizer, stage = WordPiece(PIECES, True), tmp_path / "stage"
    known = settings_of(catalogue.file_of("families", family))
    size = catalogue.literals("families", family)["SIZES"]["tiny"]
    every = {name: each.default for name, each in known.items() if not each.required} | size
    stage.mkdir()
    tokenizer.save(stage / TOKENIZER)
    save_file({"weights": np.zeros(1, np.float32)}, stage / NETWORK)
    config = {
        "family": family,
        "network": every,
        "vocabulary_size": len(PIECES),
        "sequence_length": 32,
        "label_names": [],
        "tokenizer_digest": tokenizer.digest,
    }
    (stage / CONFIG).write_text(json.dumps(config), "utf-8")
    only = (RECIPE[RECIPE.index("  - {stage: domain") :], "")
    there = (str(folder / "network"), str(stage))
    resolved = resolve(load_recipe(write(only, there, ("family: bert", f"family: {family}"))))
    assert resolved.stages[0].network == every


def test_a_path_is_found_beside_the_recipe(folder):
    file = folder / "given.yaml"
    file.write_text(RECIPE, encoding="utf-8")
    resolved = resolve(load_recipe(file), folders=[folder])
    assert resolved.start == folder / "network"


def test_the_resolved_recipe_is_the_same_recipe(write, tmp_path):
    import yaml

    resolved = resolve(load_recipe(write()))
    again = tmp_path / "again.yaml"
    again.write_text(yaml.safe_dump(as_recipe(resolved)), encoding="utf-8")
    assert as_recipe(resolve(load_recipe(again))) == as_recipe(resolved)


def test_what_agrees_with_the_files_may_be_said(write):
    said = "family: bert\ntokenizer: {scheme: wordpiece, lowercase: true}"
    assert resolve(load_recipe(write(("family: bert", said)))).start


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("family: bert", "family: roberta"), "expected 'bert', that of `init`, got 'roberta'"),
        (("family: bert", "family: bert\nsize: tiny"), "not that of `init`: max_sequence_length"),
        (
            ("family: bert", "family: bert\ntokenizer: {vocabulary_size: 8000, lowercase: false}"),
            f"vocabulary_size 8000 here and {len(PIECES)} there; lowercase False here and True",
        ),
        (("family: bert", "family: bert\ntokenizer: {learn_from: [own]}"), "leave it out"),
        (("stage: general, init", "stage: general, batch_size: 8, init"), "go on training it"),
        (("stage: domain,", 'stage: domain, init: "folder:x",'), "only the first stage starts"),
        ((OBJECTIVES, ""), "the key 'objectives' is missing"),
        (
            ("corpora: {own: 1}", "corpora: {own: 1}, sequence_length: 49"),
            "49 tokens are longer than the position table of bert (48)",
        ),
    ],
)
def test_what_disagrees_with_the_files_is_refused(write, change, says):
    assert says in fault(write(change))


def test_without_init_a_size_is_needed(write, folder):
    init = f'init: "folder:{folder / "network"}"'
    assert "size: the key is missing" in fault(write((init, "corpora: {own: 1}" + OBJECTIVES)))


def test_a_folder_that_is_no_network_is_refused(write, folder):
    there = str(folder / "network")
    said = fault(write((there, there + "s")))
    assert "given.yaml: stages[0].init: folder:" in said
    assert "there is no such folder" in said
    assert "config.json: not found" in fault(write((there, str(folder.parent))))


def test_a_network_without_its_tokenizer_is_refused(write, folder, tmp_path):
    bare = tmp_path / "bare"
    save_network(Bert(**SIZE, vocabulary_size=99), bare)
    assert "no tokenizer: no vocab.txt" in fault(write((str(folder / "network"), str(bare))))
    config = json.loads((bare / CONFIG).read_text("utf-8"))
    config["attention_probs_dropout_prob"] = 0.3  # of which there is a note, too
    (bare / CONFIG).write_text(json.dumps(config), "utf-8")
    assert "no tokenizer: no vocab.txt" in fault(write((str(folder / "network"), str(bare))))


def test_a_damaged_file_is_named(write, folder, tmp_path):
    torn = tmp_path / "torn"
    save_network(Bert(**SIZE, vocabulary_size=len(PIECES)), torn, tokenizer=WordPiece(PIECES, True))
    weights = torn / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(ContractViolation, match=r"model\.safetensors"):
        resolve(load_recipe(write((str(folder / "network"), str(torn)))))


def test_smoke_trains_the_stage_instead(write):
    general = resolve(load_recipe(write(), smoke=True)).stages[0]
    assert general.init is None
    assert general.corpora == {"smoke_general": 1.0}
    assert list(general.objectives) == ["masked_lm"]


def test_a_registered_version_is_where_the_caller_found_it(write, folder):
    recipe = load_recipe(write((f"folder:{folder / 'network'}", "models:/x/3")))
    resolved = resolve(recipe, registered={"models:/x/3": folder / "network"})
    assert resolved.start == folder / "network"
    assert resolved.stages[0].init == "models:/x/3"


def test_words_of_the_domain_are_added_where_that_is_said(write):
    more = resolve(load_recipe(write(("family: bert", "family: bert\ntokenizer: {add_words: 9}"))))
    assert (more.tokenizer.add_words, more.tokenizer.learn_from) == (9, ("own",))
    assert more.sources == ("own", "rows")
    from_rows = "family: bert\ntokenizer: {add_words: 9, learn_from: [rows]}"
    named = resolve(load_recipe(write(("family: bert", from_rows))))
    assert named.tokenizer.learn_from == ("rows",)
    assert as_recipe(named)["tokenizer"]["add_words"] == 9


def test_a_vocabulary_that_is_learned_takes_no_more_words(write, folder):
    init = f'init: "folder:{folder / "network"}"'
    said = fault(
        write(
            (init, "corpora: {own: 1}" + OBJECTIVES),
            ("family: bert", "family: bert\nsize: tiny\ntokenizer: {add_words: 9}"),
        )
    )
    assert "add_words: the vocabulary is learned here" in said


@pytest.mark.parametrize("said", ["{}", "{infill_rate: 0, delete_rate: 0.3}", "{mask_rate: 0.1}"])
def test_a_mask_that_the_tokenizer_has_not_is_missed_before_any_work(tmp_path, said):
    tokenizer_files(tmp_path)
    tokenizer, _ = read_tokenizer(tmp_path)
    assert tokenizer is not None
    assert tokenizer.mask_id == tokenizer.sep_id  # GPT-2's only special token
    size = {**SIZE, "num_decoder_layers": 1}
    network = Bart(**size, vocabulary_size=tokenizer.vocabulary_size)
    save_network(network, tmp_path / "network", tokenizer=tokenizer)
    file = tmp_path / "given.yaml"
    changes = (
        ("family: bert", "family: bart"),
        ("folder:network", f"folder:{tmp_path / 'network'}"),
        ("masked_lm: {}", f"text_infilling: {said}"),
    )
    text = RECIPE
    for before, after in changes:
        text = text.replace(before, after)
    file.write_text(text, encoding="utf-8")
    expected = "stages[1].objectives.text_infilling: expected a tokenizer with a [MASK] of its own"
    assert expected in fault(file)
