"""Settings of parts, read without importing them."""

from __future__ import annotations

import sys

import pytest

from fourstage.errors import RecipeError
from models import catalogue
from models.signatures import meanings_of, settings_of

PART = '''
"""A part."""
UNITS = ("token", "word")
import no_such_package

class _Hidden:
    def __init__(self, x): ...

class Part:
    def __init__(self, context, *, rate: float = 0.15, unit: str = "token", size: int,
                 names: list[str] | None = None, dtype: str = "float32"): ...
'''


@pytest.fixture
def part(tmp_path):
    (tmp_path / "part.py").write_text(PART, encoding="utf-8")
    return tmp_path / "part.py"


def test_names_types_defaults_and_choices_are_read(part):
    settings = settings_of(part)
    assert list(settings) == ["rate", "unit", "size", "names"]
    assert settings["rate"].default == 0.15
    assert settings["rate"].is_share
    assert settings["unit"].choices == ("token", "word")
    assert settings["size"].required
    assert not settings["names"].required
    assert set(settings["names"].types) == {"list", "str", "None"}


def test_choices_of_a_list_that_is_imported_from_ours_are_read(tmp_path):
    (tmp_path / "x.py").write_text(
        "from no_such_package import OTHERS\n"
        "from models.layers.row_scorer import SUMMARIES, RowScorer\n"
        "from models.served.tags import SCHEMES as KINDS\n"
        "from models.no_such_module import OTHERS\n"
        "class X:\n    def __init__(self, *, summary: str = 'network', kind: str = 'iob2',\n"
        "                 scheme: str = 'a', other: str = 'a'): ...\n",
        encoding="utf-8",
    )
    settings = settings_of(tmp_path / "x.py")
    assert settings["summary"].choices == ("network", "mean", "max", "both")
    assert settings["kind"].choices == ("iob2", "bioes")
    assert settings["scheme"].choices == settings["other"].choices == ()


def test_nothing_is_imported(part):
    settings_of(part)
    assert "no_such_package" not in sys.modules


def test_a_file_that_is_no_python_is_named_with_its_line(tmp_path):
    (tmp_path / "x.py").write_text("class X:\n  def (", encoding="utf-8")
    with pytest.raises(RecipeError, match=r"x\.py:2: not a Python file"):
        settings_of(tmp_path / "x.py")


def test_a_dataclass_of_arguments_is_read_with_what_it_inherits(tmp_path):
    (tmp_path / "x.py").write_text(
        "from models.layers.transformer import TransformerConfig\n"
        "class _Config(TransformerConfig):\n    num_taps: int\n    dropout: float = 0.2\n"
        "class X:\n    config_class = _Config\n    def __init__(self, **arguments): ...\n",
        encoding="utf-8",
    )
    settings = settings_of(tmp_path / "x.py")
    assert {"num_layers", "num_taps"} <= {name for name, s in settings.items() if s.required}
    assert (settings["dropout"].default, settings["max_sequence_length"].default) == (0.2, 512)
    assert "vocabulary_size" not in settings


@pytest.mark.parametrize("module", ["nowhere", "nowhere.at_all", ".beside"])
def test_a_dataclass_of_a_module_that_is_not_there_is_refused(tmp_path, module):
    (tmp_path / "x.py").write_text(
        f"from {module} import Base\nclass X:\n    config_class = Base\n", encoding="utf-8"
    )
    with pytest.raises(RecipeError, match=r"Base: expected a dataclass.*no module"):
        settings_of(tmp_path / "x.py")


def test_meanings_are_those_of_the_docstring(tmp_path):
    (tmp_path / "x.py").write_text(
        'class X:\n    """A part.\n\n    Args:\n        context: Constants.\n'
        "        rate: Share: 0-1,\n            of a row's tokens.\n        unit: A word.\n\n"
        '    Raises:\n        RecipeError: Wrong.\n    """\n'
        "    def __init__(self, context, *, rate: float, unit: str): ...\n",
        encoding="utf-8",
    )
    assert meanings_of(tmp_path / "x.py") == {
        "context": "Constants.",
        "rate": "Share: 0-1, of a row's tokens.",
        "unit": "A word.",
    }


def test_meanings_of_a_dataclass_are_those_of_its_bases_and_its_own(tmp_path):
    (tmp_path / "x.py").write_text(
        "from models.layers.transformer import TransformerConfig\n"
        'class _Config(TransformerConfig):\n    """Its own.\n\n    Attributes:\n'
        '        dropout: Its share.\n        extra: More.\n    """\n'
        "class X:\n    config_class = _Config\n",
        encoding="utf-8",
    )
    found = meanings_of(tmp_path / "x.py")
    assert found["num_layers"] == "Blocks a token goes through."
    assert (found["dropout"], found["extra"]) == ("Its share.", "More.")


@pytest.mark.parametrize("kind", ["families", "objectives", "heads"])
def test_every_setting_of_ours_has_a_meaning(kind):
    for name in catalogue.names(kind):
        path = catalogue.file_of(kind, name)
        assert settings_of(path).keys() <= meanings_of(path).keys(), name
