"""`new --init`: a recipe that starts from a network that was trained elsewhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fourstage.command import main
from fourstage.command.first_recipe import LEAST_ADAPTED
from fourstage.command.pretrained_shape import _objective
from fourstage.errors import RecipeError
from fourstage.recipe.from_nothing import FINETUNE_RATE, GENERAL_RATE, NETWORK
from models.catalogue import find
from models.interchange.huggingface import PretrainedNetwork, save_network
from models.interchange.published import POOLING
from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece
from tasks.comparison.candidates import candidates_of
from tasks.planning.plan import plan_recipe
from tests.corpora.made_up import documents
from tests.fourstage.test_project import _new, _resolved, _rows_file, _texts

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
TOKENIZER = WordPiece((*SPECIAL_TOKENS, *LETTERS, *(f"##{letter}" for letter in LETTERS)), True)
SIZE = {"num_layers": 1, "num_heads": 2, "intermediate_dim": 32, "max_sequence_length": 48}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FOURSTAGE_DATA", raising=False)


@pytest.fixture
def network(tmp_path: Path) -> str:
    """A small BERT with its tokenizer, as Hugging Face writes it."""
    made = find("families", "bert")(
        **SIZE, hidden_dim=16, vocabulary_size=TOKENIZER.vocabulary_size
    )
    save_network(made, tmp_path / "bert", tokenizer=TOKENIZER)
    return f"folder:{tmp_path / 'bert'}"


def test_the_network_reads_the_text_and_learns_the_labels(network, tmp_path, monkeypatch, capsys):
    rows = _rows_file(tmp_path, documents(300, seed=3))
    texts = _texts(tmp_path, documents(30))
    given = ("--rows", rows, "--corpus", texts, "--init", network)
    resolved = _resolved(_new(tmp_path / "mine", *given), monkeypatch)
    assert "network: bert of width 16" in capsys.readouterr().out
    general, domain, task, finetune = resolved.stages
    assert (general.init, general.budget.amount) == (network, 0)
    assert domain.corpora["my_text"] >= 0.9
    assert tuple(domain.objectives) == ("masked_lm",)
    assert tuple(task.objectives) == ("masked_lm",)
    assert finetune.phases[0].sequence_length == 48  # what the network can read
    assert resolved.tokenizer.vocabulary_size == TOKENIZER.vocabulary_size

    tried = {each.name: each.overrides for each in candidates_of("first")}
    parts = ["as-written", "labels-only", "no-domain", "no-task", "from-scratch"]
    assert list(tried) == [*parts, "counting", "no-wide", "fasttext"]
    assert "stages.general=" in tried["counting"]
    assert "stages.general=" not in tried["labels-only"]
    scratch = plan_recipe("first", tried["from-scratch"]).recipe
    assert [stage.kind for stage in scratch.stages] == ["domain", "task", "finetune"]
    assert (scratch.start, scratch.family) == (None, "roformer")
    assert scratch.stages[-1].head_settings["summary"] == "mean"
    assert {stage.init for stage in scratch.stages} == {None}
    assert scratch.network.items() >= NETWORK.items()
    assert scratch.tokenizer.learn_from  # a vocabulary of its own
    read, adapted, labelled = scratch.stages
    assert read.phases[0].sequence_length == 16
    assert [stage.starts_from for stage in scratch.stages] == [{"embeddings": "word2vec"}, {}, {}]
    rates = [stage.optimizer.settings["peak_learning_rate"] for stage in scratch.stages]
    assert rates == [GENERAL_RATE, GENERAL_RATE / 4, FINETUNE_RATE]
    assert read.corpora == domain.corpora
    assert (adapted.budget, labelled.budget) == (task.budget, finetune.budget)


def test_a_choice_goes_on_only_with_the_network_of_its_project(
    network, tmp_path, monkeypatch, capsys
):
    rows = _rows_file(tmp_path, documents(60))
    other = tmp_path / "other"
    shutil.copytree(network.removeprefix("folder:"), other)
    plain = _new(tmp_path / "plain", "--rows", rows)
    started = _new(tmp_path / "started", "--rows", rows, "--init", network)
    capsys.readouterr()
    for project, said, told in (
        (started, ("--init", f"folder:{other}"), f"starts from {network}, and --init names folder"),
        (started, (), f"starts from {network}, and --init names no network"),
        (plain, ("--init", network), f"starts from no network, and --init names {network}"),
        (started, ("--init", network), "'nobody' is not a candidate"),
        (started, ("--init", "folder:bert"), "'nobody' is not a candidate"),
        (plain, (), "'nobody' is not a candidate"),
    ):
        monkeypatch.chdir(tmp_path)
        words = ("--project", project.name, "--rows", rows, *said, "--without", "nobody")
        assert main(["choose", *words]) == 2
        assert told in capsys.readouterr().err, said


def test_without_time_it_learns_the_labels_only(network, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("fourstage.command.first_recipe._speed", lambda *_: (200.0, False))
    rows = _rows_file(tmp_path, documents(300, seed=3))
    resolved = _resolved(
        _new(tmp_path / "mine", "--rows", rows, "--minutes", "5", "--init", network), monkeypatch
    )
    assert [stage.kind for stage in resolved.stages] == ["general", "finetune"]
    unmade: dict[str, str] = {}
    assert "from-scratch" not in [
        each.name for each in candidates_of("first", unmade=unmade.__setitem__)
    ]
    assert "no stage before the labels reads text" in unmade["from-scratch"]
    told = capsys.readouterr().out
    assert "in 5 minutes it learns the labels only; --minutes" in told
    needed = told.split("only; --minutes ")[1].split()[0]
    longer = _new(tmp_path / "more", "--rows", rows, "--minutes", needed, "--init", network)
    task = _resolved(longer, monkeypatch).stages[1]
    assert (task.kind, task.budget.amount >= LEAST_ADAPTED) == ("task", True)


@pytest.mark.parametrize(
    ("family", "heads", "sentinels", "expected"),
    [
        ("bert", ("masked_lm", "next_sentence"), 0, "masked_lm"),
        ("bert", ("next_sentence",), 0, "masked_lm"),
        ("electra", ("replaced_token_detection",), 0, "replaced_token_detection"),
        ("electra", ("masked_lm",), 0, "masked_lm"),
        ("unilm", (), 0, "unified_lm"),
        ("unilm", ("masked_lm",), 0, "masked_lm"),
        ("xlnet", (), 0, "permutation_lm"),
        ("gpt2", (), 0, "causal_lm"),
        ("mass", ("masked_seq2seq",), 0, "masked_seq2seq"),
        ("bart", (), 0, "text_infilling"),
        ("t5", (), 100, "span_denoising"),
        ("t5", (), 0, "text_infilling"),
    ],
)
def test_the_objective_is_the_networks_own_or_the_usual_one(family, heads, sentinels, expected):
    tokenizer = WordPiece(SPECIAL_TOKENS, True)
    tokenizer.sentinel_ids = tuple(range(sentinels))
    found = PretrainedNetwork(family, {}, {}, {head: {} for head in heads}, tokenizer)
    assert _objective(found) == expected


@pytest.mark.parametrize("family", ["elmo", "word2vec", "tfidf"])
def test_a_network_that_is_no_transformer_is_refused(family):
    found = PretrainedNetwork(family, {}, {}, {}, WordPiece(SPECIAL_TOKENS, True))
    with pytest.raises(RecipeError, match=f"got a {family}"):
        _objective(found)


@pytest.mark.parametrize("by", ["cls_token", "mean_tokens"])
def test_rows_are_summed_up_as_a_sentence_encoder_was_trained_to(
    by, network, tmp_path, monkeypatch
):
    pooling = tmp_path / "bert" / POOLING
    pooling.parent.mkdir()
    pooling.write_text(json.dumps({f"pooling_mode_{by}": True}))
    rows = _rows_file(tmp_path, documents(300, seed=3))
    resolved = _resolved(_new(tmp_path / "mine", "--rows", rows, "--init", network), monkeypatch)
    summary = {"cls_token": "network", "mean_tokens": "mean"}[by]
    assert resolved.stages[-1].head_settings["summary"] == summary


def test_a_malformed_file_of_a_sentence_encoder_is_named(network, tmp_path, capsys):
    pooling = tmp_path / "bert" / POOLING
    pooling.parent.mkdir()
    pooling.write_text("[]")
    rows = _rows_file(tmp_path, documents(60))
    assert main(["new", str(tmp_path / "mine"), "--rows", rows, "--init", network]) == 3
    said = capsys.readouterr().err
    assert "--init: " in said
    assert f"{POOLING}: expected an object, got list" in said


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("folder:nowhere", "--init: folder:nowhere: there is no such folder"),
        ("bert-base-uncased", "--init: 'bert-base-uncased': expected hf:owner/name@commit"),
        ("", "--init: '': expected hf:owner/name@commit"),
        ("models:/mine@champion", "name a registered version in the recipe"),
    ],
)
def test_an_address_that_leads_nowhere_makes_no_folder(address, said, tmp_path, capsys):
    rows = _rows_file(tmp_path, documents(60))
    assert main(["new", str(tmp_path / "mine"), "--rows", rows, "--init", address]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()


def test_a_choice_of_a_recipe_takes_no_network(network, capsys):
    assert main(["choose", "quickstart", "--init", network]) == 2
    assert "--init goes with --rows" in capsys.readouterr().err


def test_a_choice_of_a_recipe_takes_no_texts(tmp_path, capsys):
    (tmp_path / "text.txt").write_text("Text that would not be read.\n")
    assert main(["choose", "quickstart", "--corpus", str(tmp_path / "text.txt")]) == 2
    assert "--corpus goes with --rows" in capsys.readouterr().err


def test_a_published_network_finds_by_itself_what_two_texts_share(network, tmp_path, monkeypatch):
    texts = [record["text"] for record in documents(60)]
    rows = [f"{text},{texts[-n]},{n % 12 / 4}\n" for n, text in enumerate(texts)]
    (tmp_path / "pairs.csv").write_text("".join(rows))
    told = []
    for name, given in {"own": (), "published": ("--init", network)}.items():
        folder = _new(tmp_path / name, "--rows", str(tmp_path / "pairs.csv"), *given)
        told.append(_resolved(folder, monkeypatch).finetune.head_settings["shared_tokens"])
    assert told == [True, False]
    scratch = {each.name: each.overrides for each in candidates_of("first")}["from-scratch"]
    assert plan_recipe("first", scratch).recipe.stages[-1].head_settings["shared_tokens"]
