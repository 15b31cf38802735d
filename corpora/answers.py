"""Answers: from the value in a file to the canonical text of its kind.

Equal answers are equal texts. The kinds are those of `data_contracts.sources.ANSWERS`:

- ``label``: the name of a class;
- ``number``: a finite number in its shortest decimal form, ``5.0``;
- ``label_set``: a JSON array of names, sorted;
- ``spans``: a JSON array of ``[start, end, type]``, sorted, apart; offsets into the text;
- ``extract``: a JSON array of ``[start, answer text]``, offsets into the second text; ``[]`` where
  the text has no answer;
- ``choice``: the number, from 0, of the right choice;
- ``text``: a JSON array of texts: one to write, or several references; the first is trained on.

Any other kind is a project's own: its answers are kept, as JSON where they are no text. Offsets
count characters from 0; an end is that of the character after the span.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from corpora.cleaning import clean, place_after
from corpora.identity import normal_form
from corpora.labels import why_no_name
from corpora.tags import IllegalTagsError, joined, spans_of_tags
from data_contracts.sources import Source

STRUCTURE = "structure"  # kind of a value that is a list or a mapping

MOVED = "answer moved to the only place of its text"
DROPPED = "answer left out: its text is neither at its offset nor once elsewhere"
CLEANED = "invisible characters removed from a reference"
LEFT_OUT = "reference left out: it is empty, or there twice"
TRIMMED = "blanks at the ends of a span left out"
UNITS = "offsets of a span counted UTF-16 units, as its text tells"

_NUMBER = re.compile(
    r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE
)
_LARGEST = float.fromhex("0x1.fffffep+127")  # in single precision, as heads compute
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+", re.ASCII)
_INTEGER = re.compile(r"-?\d{1,15}", re.ASCII)
# The keys of a span as Prodigy, Label Studio and doccano export it.
_START, _END, _TYPE = ("start", "start_offset"), ("end", "end_offset"), ("label", "labels", "type")


class UnusableError(ValueError):
    """A value that cannot be used: no text, or no answer of its kind.

    Args:
        reason: A phrase, the same for the same cause, that quotes no text.
        detail: Specifics of this value, without its text.
    """

    def __init__(self, reason: str, detail: str = ""):
        super().__init__(reason)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class CanonicalAnswer:
    """A canonical answer.

    Attributes:
        text: The answer.
        value_type: Kind of a label's value in the file; of another answer its kind.
        mended: What was corrected, as phrases.
    """

    text: str
    value_type: str
    mended: tuple[str, ...] = ()


def answer_of(
    value: Any, source: Source, text: str, pair: str | None, choices: Sequence[str] | None
) -> CanonicalAnswer:
    """The canonical answer of a row.

    Args:
        value: The value in the file.
        source: Its `answers` is the kind.
        text: The row's text, as it is in the file.
        pair: Its second text.
        choices: Its choices.

    Raises:
        UnusableError: It is no answer of this kind.
    """
    kind = source.answers
    nothing = value is None or (isinstance(value, str) and not value.strip())
    if nothing and not (value is not None and source.separator):
        raise UnusableError("no label", "nothing" if value is None else "text")
    if kind == "label":
        return _label(value, source)
    if kind == "extract":
        assert pair is not None
        answers, mended = _extracted(value, pair)
        return CanonicalAnswer(_json(answers), kind, mended)
    if kind == "text":
        references, mended = _references(value, source)
        return CanonicalAnswer(_json(references), kind, mended)
    match kind:
        case "number":
            found = json.dumps(number_of(value))
        case "label_set":
            found = _json(sorted(set(_label_set(value, source))))
        case "spans":
            spans, mended = _spans(value, source, text)
            return CanonicalAnswer(_json(spans), kind, mended)
        case "choice":
            found = choice_of(value, len(choices or ()))
        case _:
            found = label_of(value)[0]
    return CanonicalAnswer(found, kind)


def tagged(tokens: Any, tags: Any, source: Source) -> tuple[str, CanonicalAnswer]:
    """The text and the spans of a row that has words and tags.

    Raises:
        UnusableError: They are no lists of one length, or the tags are illegal.
    """
    if not (isinstance(tags, list) and len(tokens) == len(tags)):
        raise UnusableError("not one tag per word")
    if not all(isinstance(token, str) for token in tokens):
        raise UnusableError("a word that is not text")
    if not all(token.strip() for token in tokens):
        raise UnusableError("an empty word")
    if not source.label_names and any(isinstance(tag, int) for tag in tags):
        raise UnusableError("a number in place of a tag, which 'label_names' could name")
    text, places = joined(tokens, source.language)
    try:
        names = [_name(tag, source) if source.label_names else label_of(tag)[0] for tag in tags]
        found = spans_of_tags(names, source.tag_scheme or "iob2")
    except IllegalTagsError as error:
        raise UnusableError(str(error)) from error
    spans = [[places[first][0], places[behind - 1][1], kind] for first, behind, kind in found]
    for _, _, kind in found:
        _check_name(kind)
    return text, CanonicalAnswer(_json(spans), "spans")


def names_in(kind: str, answer: str) -> tuple[str, ...]:
    """The names in an answer, which training must have seen: labels, or types of spans."""
    match kind:
        case "label":
            return (answer,)
        case "label_set":
            return tuple(json.loads(answer))
        case "spans":
            return tuple(span[2] for span in json.loads(answer))
    return ()


def num_in(kind: str, answer: str) -> int:
    """How many labels, spans or references an answer has; 1 of the other kinds."""
    return len(json.loads(answer)) if kind in ("label_set", "spans", "extract", "text") else 1


def texts_in(kind: str, answer: str) -> tuple[str, ...]:
    """The texts of an answer that is one; none of the other kinds."""
    return tuple(json.loads(answer)) if kind == "text" else ()


def without_offsets(kind: str, answer: str, text: str) -> str:
    """An answer as it is compared with that of nearly the same text, where offsets may differ.

    Args:
        kind: Kind of answer.
        answer: The canonical answer.
        text: The row's text.
    """
    if kind == "spans":
        spans = json.loads(answer)
        return _json([[normal_form(text[start:end]), name] for start, end, name in spans])
    if kind == "extract":
        return _json(sorted({normal_form(found) for _, found in json.loads(answer)}))
    return answer


def after_cleaning(kind: str, answer: str, before: str, after: str) -> str | None:
    """An answer with its offsets moved to the cleaned text; None if they cannot be followed.

    Args:
        kind: Kind of answer. A list or mapping of a project's own kind may have offsets, too.
        answer: The canonical answer.
        before: The text that its offsets point into.
        after: The same, cleaned.
    """
    if (
        before == after
        or not answer.startswith(("[", "{"))
        or kind in ("label", "label_set", "text")
    ):
        return answer
    if kind not in ("spans", "extract"):
        return None
    moved = []
    for part in json.loads(answer):
        start = part[0]
        end = part[1] if kind == "spans" else start + len(part[1])
        place = place_after(before, after, start, end)
        if place is None:
            return None
        moved.append([*place, part[2]] if kind == "spans" else [place[0], after[slice(*place)]])
    return _json(moved)


def label_of(value: Any) -> tuple[str, str]:
    """A label as text, and the kind of its value; nothing is cast silently."""
    match value:
        case None:
            return "", "nothing"
        case str():
            return value, "text"
        case bool():
            return str(value).lower(), "boolean"
        case int():
            return json.dumps(value), "integer"
        case float():
            return json.dumps(value), "float"
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str), STRUCTURE


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _label(value: Any, source: Source) -> CanonicalAnswer:
    text, kind = label_of(value)
    if kind == STRUCTURE:
        raise UnusableError("a list or a mapping instead of one label")
    if source.label_names:
        return CanonicalAnswer(_name(value, source), "text")
    _check_name(text)
    return CanonicalAnswer(text, kind)


def _name(value: Any, source: Source) -> str:
    """The name of a label, from `label_names` if the source has them."""
    text, kind = label_of(value)
    if kind in (STRUCTURE, "nothing") or not text.strip():
        raise UnusableError("a label that is no name")
    if source.label_names:
        if text not in source.label_names:
            raise UnusableError("a label that is not among 'label_names'")
        text = source.label_names[text]
    _check_name(text)
    return text


def _check_name(name: str) -> None:
    if reason := why_no_name(name):
        raise UnusableError(reason, f"{len(name):,} characters")


def number_of(value: Any) -> float:
    """A finite number in single precision's range, which may be written as text.

    Raises:
        UnusableError: It is something else.
    """
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        comma = isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value.strip())
        raise UnusableError("not a number" + (" (a decimal comma? write 1.5)" if comma else ""))
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise UnusableError("a number that is infinite, or not a number")
    if abs(number) > _LARGEST:
        raise UnusableError("a number beyond ±3.4e38, which 32 bits cannot hold")
    return number + 0.0  # -0.0 is 0.0


def _label_set(value: Any, source: Source) -> Iterator[str]:
    if isinstance(value, str) and source.separator:
        value = [name for part in value.split(source.separator) if (name := part.strip())]
    if not isinstance(value, list):
        raise UnusableError("not a list of labels")
    return (_name(name, source) for name in value)


def _spans(value: Any, source: Source, text: str) -> tuple[list[list[Any]], tuple[str, ...]]:
    """The spans, without blanks at their ends: no word has any, so no model answers so."""
    found, mended = set(), []
    for start, end, kind, mention in raw_spans(value):
        start, end = _offset(start), _offset(end) + (source.span_ends == "inclusive")
        if isinstance(mention, str) and text[max(start, 0) : end] != mention:
            if place := _of_units(text, start, end, mention):
                mended.append(UNITS)
                start, end = place
        if not 0 <= start <= end <= len(text):
            raise UnusableError("a span outside the text")
        if start == end:
            raise UnusableError("an empty span")
        if isinstance(mention, str) and text[start:end] != mention:
            raise UnusableError("a span whose text is not at its offset")
        part = text[start:end]
        if not part.strip():
            raise UnusableError("a span of blanks alone")
        if part != part.strip():
            mended.append(TRIMMED)
            start, end = start + len(part) - len(part.lstrip()), start + len(part.rstrip())
        found.add((start, end, _name(kind, source)))
    spans = sorted(found)
    if any(left[1] > right[0] for left, right in pairwise(spans)):
        raise UnusableError("spans that overlap")
    return [list(span) for span in spans], tuple(mended)


def _of_units(text: str, start: int, end: int, mention: str) -> tuple[int, int] | None:
    """The place of a span whose offsets count UTF-16 units; None if its text is not there."""
    units = text.encode("utf-16-le")
    if not 0 <= start < end <= len(units) // 2 or len(units) == 2 * len(text):
        return None
    if units[2 * start : 2 * end] != mention.encode("utf-16-le", "replace"):
        return None
    first = len(units[: 2 * start].decode("utf-16-le", "replace"))
    return first, first + len(mention)


def raw_spans(value: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Start, end, type and, if it is there, the text of each span, as they are in the file.

    Raises:
        UnusableError: The value has none of the known shapes.
    """
    if isinstance(value, Mapping):  # {type: [[start, end]]} or {type: {mention: [[start, end]]}}
        for kind, places in value.items():
            by_mention = places.items() if isinstance(places, Mapping) else [(None, places)]
            for mention, some in by_mention:
                for place in _list(some):
                    if len(_list(place)) != 2:
                        raise UnusableError("a span of unknown shape")
                    yield place[0], place[1], kind, mention
        return
    for span in _list(value):
        if isinstance(span, list) and len(span) == 3:
            yield span[0], span[1], span[2], None
        elif isinstance(span, Mapping):
            inner = span.get("value", span)  # Label Studio's full export
            inner = inner if isinstance(inner, Mapping) else span
            kind = _first(inner, _TYPE)
            kind = kind[0] if isinstance(kind, list) and len(kind) == 1 else kind
            yield _first(inner, _START), _first(inner, _END), kind, inner.get("text")
        else:
            raise UnusableError("a span of unknown shape")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise UnusableError("a span of unknown shape")
    return value


def _first(values: Mapping[str, Any], names: Sequence[str]) -> Any:
    for name in names:
        if name in values:
            return values[name]
    raise UnusableError("a span of unknown shape")


def _offset(value: Any) -> int:
    """An offset; some files write it as text."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise UnusableError("an offset that is not a whole number")
    return value


def _extracted(value: Any, context: str) -> tuple[list[list[Any]], tuple[str, ...]]:
    """Reference answers, each where its text is; one whose text is nowhere is left out."""
    found, mended, read = [], [], 0
    for start, text in _raw_answers(value):
        read += 1
        if not isinstance(text, str) or not text.strip():
            raise UnusableError("an answer without text")
        start = None if start is None else _offset(start)
        if start is None or start < 0 or context[start : start + len(text)] != text:
            if context.count(text) != 1:
                mended.append(DROPPED)
                continue
            if start is not None:
                mended.append(MOVED)
            start = context.index(text)
        found.append([start, text])
    if read and not found:
        raise UnusableError("answer text not at its offset")
    return found, tuple(mended)


def _raw_answers(value: Any) -> Iterator[tuple[Any, Any]]:
    """Start and text of each answer, as SQuAD and its tables write them; no start of bare texts."""
    if isinstance(value, Mapping) and isinstance(value.get("text"), list):
        starts, texts = value.get("answer_start"), value["text"]
        if not isinstance(starts, list) or len(starts) != len(texts):
            raise UnusableError("answers of unknown shape")
        yield from zip(starts, texts, strict=True)
        return
    for answer in value if isinstance(value, list) else [value]:
        if isinstance(answer, str):
            yield None, answer
        elif isinstance(answer, list) and len(answer) == 2:
            yield answer[0], answer[1]
        elif isinstance(answer, Mapping) and "text" in answer:
            yield answer.get("answer_start"), answer["text"]
        else:
            raise UnusableError("answers of unknown shape")


def _references(value: Any, source: Source) -> tuple[list[str], tuple[str, ...]]:
    """The texts of an answer, cleaned; those that are empty or repeated are left out."""
    found: list[str] = []
    mended: list[str] = []
    for part in value if isinstance(value, list) else [value]:
        if source.label_names:
            part = _name(part, source)
        if not isinstance(part, str):
            raise UnusableError("an answer that is neither a text nor a list of texts")
        cleaned = clean(part)
        if cleaned.removed:
            mended.append(CLEANED)
        if not cleaned.text or cleaned.text in found:
            mended.append(LEFT_OUT)
            continue
        found.append(cleaned.text)
    if not found:
        raise UnusableError("an answer without text")
    return found, tuple(mended)


def choice_of(value: Any, count: int) -> str:
    """The number of the right choice, from 0.

    Args:
        value: The number, or a letter from A.
        count: How many choices the row has.

    Raises:
        UnusableError: It is neither, or there is no such choice.
    """
    if isinstance(value, str) and len(value.strip()) == 1 and "A" <= value.strip() <= "Z":
        value = ord(value.strip()) - ord("A")
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise UnusableError("a choice that is neither a number nor a letter")
    if not 0 <= value < count:
        raise UnusableError("the right choice is not among the choices", f"{count}")
    return str(value)
