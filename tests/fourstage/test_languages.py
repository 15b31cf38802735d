"""Codes of languages with a script or region."""

from __future__ import annotations

import pytest

from data_contracts.sources import parse_source
from fourstage.languages import main_language
from fourstage.recipe.from_nothing import vocabulary_size


@pytest.mark.parametrize("code", ["zh", "zh-CN", "zh-Hant", "zh-Hant-TW"])
def test_chinese_of_any_script_and_region_is_chinese(code: str):
    assert main_language(code) == "zh"
    facts = {"name": "mine", "language": code, "licence": "CC0-1.0", "files": "c.txt"}
    assert parse_source(facts).suites == ("corpus_zh",)
    assert vocabulary_size(code) == vocabulary_size("zh")


def test_another_language_with_a_region_is_not():
    facts = {"name": "mine", "language": "en-GB", "licence": "CC0-1.0", "files": "c.txt"}
    assert parse_source(facts).suites == ("corpus",)
    assert vocabulary_size("en-GB") == vocabulary_size("en") != vocabulary_size("zh")
