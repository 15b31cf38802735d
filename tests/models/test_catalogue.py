"""The catalogue: names are files, and what cannot be made is refused before any work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fourstage.errors import RecipeError, UnknownNameError
from models import catalogue
from models.protocols import Capability


def project_part(folder: Path, kind: str, name: str, text: str) -> Path:
    (folder / kind).mkdir(exist_ok=True)
    path = folder / kind / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_is_built_in_is_listed_and_found():
    assert "bert" in catalogue.names("families")
    assert {"masked_lm", "next_sentence"} <= set(catalogue.names("objectives"))
    assert catalogue.find("families", "bert").__name__ == "Bert"
    assert catalogue.find("objectives", "masked_lm").__name__ == "MaskedLM"
    assert catalogue.find("heads", "sequence_classification").__name__ == "SequenceClassification"


@pytest.mark.parametrize(
    "name",
    [
        "../catalogue",
        "__init__",
        "os",
        "catalogue",
        "bert.Bert",
        "BERT",
        "",
        "/etc/passwd",
        "bert ",
    ],
)
def test_paths_dunders_and_other_modules_are_no_names(name):
    with pytest.raises(UnknownNameError) as caught:
        catalogue.find("families", name, where="x.yaml: family")
    assert str(caught.value).startswith("x.yaml: family: ")
    assert "bert" in str(caught.value)
    assert caught.value.exit_code == 2


def test_the_nearest_name_is_suggested():
    for wrong, right in (("BERT", "bert"), ("burt", "bert")):
        with pytest.raises(UnknownNameError, match=f"did you mean '{right}'"):
            catalogue.find("families", wrong)
    with pytest.raises(UnknownNameError, match="did you mean 'masked_lm'"):
        catalogue.find("objectives", "masked_ml")


def test_a_project_folder_comes_before_the_built_in_files(tmp_path):
    project_part(tmp_path, "objectives", "masked_lm", "NEEDS = ('regions',)\nclass Mine: pass\n")
    project_part(tmp_path, "objectives", "my_own", "class MyOwn:\n    'Mine.'\n")
    assert catalogue.find("objectives", "masked_lm", [tmp_path]).__name__ == "Mine"
    assert catalogue.find("objectives", "my_own", [tmp_path]).__name__ == "MyOwn"
    first = catalogue.find("objectives", "my_own", [tmp_path])
    assert catalogue.find("objectives", "my_own", [tmp_path]) is first
    assert "my_own" in catalogue.names("objectives", [tmp_path])
    assert catalogue.literals("objectives", "masked_lm", [tmp_path])["NEEDS"] == ("regions",)
    assert catalogue.find("objectives", "masked_lm").__name__ == "MaskedLM"


def test_the_first_of_two_project_folders_wins(tmp_path):
    near, far = tmp_path / "near", tmp_path / "far"
    for folder in (near, far):
        folder.mkdir()
        project_part(folder, "heads", "mine", f"class {folder.name.title()}: pass\n")
    assert catalogue.find("heads", "mine", [near, far]).__name__ == "Near"


@pytest.mark.parametrize(
    ("text", "found"),
    [("class A: pass\nclass B: pass\n", "found 2: A, B"), ("class _A: pass\n", "found 0")],
)
def test_a_file_holds_exactly_one_public_class(tmp_path, text, found):
    project_part(tmp_path, "families", "odd", text)
    with pytest.raises(RecipeError, match=found):
        catalogue.find("families", "odd", [tmp_path])


def test_a_file_that_is_not_python_is_named_with_its_line(tmp_path):
    project_part(tmp_path, "families", "broken", "A = 1\nclass (:\n")
    with pytest.raises(RecipeError, match=r"broken\.py:2: not a Python file"):
        catalogue.literals("families", "broken", [tmp_path])


def test_literals_are_read_without_importing_keras():
    code = (
        "import sys; from models import catalogue as c; "
        "assert c.literals('families', 'bert')['SIZES']['base']['num_layers'] == 12; "
        "assert c.literals('objectives', 'masked_lm')['PROVIDES'] == ('token_logits',); "
        "c.check_compatible('bert', ['masked_lm', 'next_sentence']); "
        "assert not {'keras', 'tensorflow', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_literals_agree_with_the_classes():
    for kind in ("objectives", "heads"):
        for name in catalogue.names(kind):
            read = catalogue.literals(kind, name)
            assert {*read["NEEDS"], *read["PROVIDES"]} <= {*Capability}
            assert catalogue.find(kind, name).chooses == read["CHOOSES"]
    for name in catalogue.names("families"):
        read = catalogue.literals("families", name)
        assert {str(one) for one in catalogue.find("families", name).provides} == set(
            read["PROVIDES"]
        )
        assert "tiny" in read["SIZES"]


def test_stages_that_can_be_made_are_accepted():
    catalogue.check_compatible("bert", ["masked_lm"])
    catalogue.check_compatible("bert", ["masked_lm", "next_sentence"])
    catalogue.check_compatible("bert", [], "sequence_classification")


@pytest.mark.parametrize(
    ("part", "objectives", "message"),
    [
        ("NEEDS = ('causal',)\nCHOOSES = 1\n", ["part"], r"'part' needs causal; family 'bert'"),
        ("CHOOSES = 2\n", ["part", "next_sentence"], "at most one objective may choose .* got 2"),
        ("CHOOSES = 0\n", ["part"], "no objective chooses the segments"),
        ("PREPARES = True\nCHOOSES = 1\n", ["part", "other"], "at most one .* before the network"),
        ("NEEDS = ('token_logits',)\nCHOOSES = 1\n", ["part"], "provided by: objective masked_lm"),
    ],
)
def test_stages_that_cannot_be_made_are_refused_with_the_reason(
    tmp_path, part, objectives, message
):
    project_part(tmp_path, "objectives", "part", part + "class Part: pass\n")
    project_part(tmp_path, "objectives", "other", "PREPARES = True\nclass Other: pass\n")
    with pytest.raises(RecipeError, match=message) as caught:
        catalogue.check_compatible(
            "bert", objectives, folders=[tmp_path], where="x.yaml: stages[0]"
        )
    assert str(caught.value).startswith("x.yaml: stages[0]: ")


@pytest.mark.parametrize(
    ("family", "other"),
    [
        ("electra", "replaced_token_detection"),
        ("unilm", "unified_lm"),
        ("xlnet", "permutation_lm"),
    ],
)
def test_what_one_objective_hid_is_no_text_of_another(family, other):
    with pytest.raises(RecipeError, match=f"hide tokens of a row, got 2: masked_lm, {other}; .*"):
        catalogue.check_compatible(family, ["masked_lm", other])
    catalogue.check_turns(family, ["masked_lm", other])


def test_questions_about_pictures_are_asked_only_where_the_rows_are_captions():
    asks = "image_question_answering"
    for beside in (["masked_lm"], ["image_text_match", "region_class"]):
        catalogue.check_compatible("lxmert", [asks, *beside])
    with pytest.raises(RecipeError, match=r"next_sentence' chooses are no captions.* take turns"):
        catalogue.check_compatible("lxmert", [asks, "masked_lm", "next_sentence"])
    catalogue.check_turns("lxmert", [asks, "masked_lm", "next_sentence"])


def test_what_another_objective_provides_is_enough(tmp_path):
    project_part(
        tmp_path, "objectives", "student", "NEEDS = ('token_logits',)\nclass Student: pass\n"
    )
    catalogue.check_compatible("bert", ["masked_lm", "student"], folders=[tmp_path])


def test_turns_have_one_chooser_each_and_riders_go_where_what_they_read_is(tmp_path):
    names = ["capitalization", "masked_lm", "next_sentence", "sentence_order", "span_boundary"]
    assert catalogue.turns(names) == {
        "capitalization": ("capitalization",),
        "masked_lm": ("masked_lm", "span_boundary"),
        "next_sentence": ("next_sentence",),
        "sentence_order": ("sentence_order",),
    }
    catalogue.check_turns("bert", names)
    project_part(tmp_path, "objectives", "watcher", "CHOOSES = 0\nclass Watcher: pass\n")
    everywhere = catalogue.turns(["masked_lm", "next_sentence", "watcher"], [tmp_path])
    assert everywhere == {
        "masked_lm": ("masked_lm", "watcher"),
        "next_sentence": ("next_sentence", "watcher"),
    }


@pytest.mark.parametrize(
    ("family", "objectives", "message"),
    [
        ("bert", ["next_sentence", "span_boundary"], "'span_boundary' needs token_logits"),
        ("bert", ["span_boundary"], "'span_boundary' needs token_logits"),
        ("roberta", ["masked_lm", "sentence_order"], "'sentence_order' needs pooled_output"),
    ],
)
def test_turns_that_cannot_be_made_are_refused(family, objectives, message):
    with pytest.raises(RecipeError, match=message):
        catalogue.check_turns(family, objectives)
