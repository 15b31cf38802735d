"""Questions with answers in a context, in the JSON of SQuAD 1.1 and 2.0, and of CMRC 2018.

Each question is a row with the columns ``id``, ``question``, ``context``, ``answers`` (none where
it is impossible) and ``article`` (the article's id or title, or its number).

Reference:
    Rajpurkar et al. 2018, arXiv 1806.03822.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from corpora.archives import Content
from corpora.decoding import check_text
from corpora.json_values import whole_value
from corpora.readers import Raw
from data_contracts.records import Rejected
from data_contracts.sources import Source
from fourstage.errors import ContractViolation

SUFFIXES = ()  # files end in .json, which means JSON lines


def read(content: Content, source: Source) -> Iterator[Raw | Rejected]:
    """Each question; its location is its number in the file, from 1."""
    value = whole_value(content, source)
    articles = value.get("data") if isinstance(value, Mapping) else value
    if not isinstance(articles, list):
        raise ContractViolation(
            f"{content.where}: expected the JSON of SQuAD, an object with a list 'data'."
        )
    number = 0
    for nth, article in enumerate(articles, start=1):
        for paragraph in _listed(article, "paragraphs"):
            for question in _listed(paragraph, "qas"):
                number += 1
                location = f"{content.name}:{number}"
                if not isinstance(question, Mapping):
                    yield Rejected(location, location, "a question that is not a JSON object")
                    continue
                values = {
                    "id": question.get("id"),
                    "question": question.get("question"),
                    "context": paragraph.get("context"),
                    "article": _name(article) or f"{content.name}:{nth}",
                }
                if question.get("is_impossible") is True:
                    values["answers"] = []
                elif question.get("answers"):
                    values["answers"] = question["answers"]
                else:
                    name = values["id"] if isinstance(values["id"], str) else location
                    yield Rejected(name, location, "a question without answers")
                    continue
                yield check_text(Raw(number, values), content.name)


def _listed(value: Any, key: str) -> list[Any]:
    """A list under a key; in the place of any other value one thing that is no question."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, list) else [None]


def _name(article: Mapping[str, Any]) -> str:
    name = article.get("id") or article.get("title")
    return name if isinstance(name, str) else ""
