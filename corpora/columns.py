"""Finds the columns of a table that hold texts and answers, by their names and their values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

from corpora.answer_shapes import (
    ROWS_PER_LABEL,
    SHORTEST_TEXT,
    are_tags,
    is_choice,
    kind_of,
    may_be,
    nearly_all,
    separator_of,
)
from fourstage.errors import ContractViolation, UnknownNameError, listed

TEXTS = ("text", "sentence", "body", "content", "review", "message", "abstract", "text_a", "文本")
LABELS = (
    *("label", "labels", "class", "category", "target", "queue", "intent", "topic", "sentiment"),
    *("polarity", "tag", "type", "tags", "spans", "entities", "answer", "answers"),
    *("标签", "类别", "分类", "情感"),
)
RIGHT = ("right", "correct", "gold", "answerkey", "answer_key", "correct_answer")  # of choices
TARGETS = (  # of texts to be written
    *("target", "summary", "highlights", "translation", "headline", "title", "response", "reply"),
    *("answer", "answers", "reference", "output", "completion", "摘要", "译文", "标题"),
)
DECISIONS = ("accept", "reject", "ignore")  # on the annotations of a row
SCORES = ("score", "similarity", "rating", "分数", "相似度")  # of pairs
PAIRS = (  # others differ in a number or a letter, such as sentence1 and sentence2
    *(("text", "text_pair"), ("premise", "hypothesis"), ("first", "second")),
    *(("question", other) for other in ("sentence", "context", "passage")),
    *(("query", other) for other in ("passage", "document", "text")),
)
CHOICES = ("choices", "options", "endings", "candidates", "选项")  # each value a list of texts
_CHOICE = re.compile(r"(choice|option|ending|选项)s?[ _]?(\d{1,2}|[a-h])", re.IGNORECASE)
IDS = ("id", "number", "uid", "guid", "key", "doc_id", "编号")
FROM_ONE_ROWS = 20  # so many rows whose right choice is never the number 0 count from 1
LONGEST_NAME = 60  # characters of a column name

Records = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Asked:
    """What the user said of the columns, to overrule a guess."""

    text: str | None = None
    text_pair: str | None = None
    label: str | None = None
    answers: str | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Roles:
    """The column of each role, the kind of answer, what is between several labels, and guesses."""

    text: str
    label: str | None
    id: str | None
    assumed: tuple[str, ...]
    text_pair: str | None = None
    group: str | None = None
    answers: str = "label"
    separator: str | None = None
    choices: tuple[str, ...] = ()


def roles(where: str, records: Records, labelled: bool, asked: Asked) -> Roles:
    """The roles of a table's columns.

    Args:
        where: Name of the files in messages.
        records: A sample of its records.
        labelled: Whether one column is an answer.
        asked: What the user said.

    Raises:
        UnknownNameError: A column named by the user does not exist.
        ContractViolation: No column, or more than one, can be the text or the label.
    """
    columns = list(dict.fromkeys(name for record in records for name in record))
    values = {name: [record.get(name) for record in records] for name in columns}
    text, pair, label = asked.text, asked.text_pair, asked.label
    options = [("--text", text), ("--pair", pair), ("--label", label)]
    for option, named in [*options, *(("--choices", choice) for choice in asked.choices)]:
        if named is not None and named not in columns:
            raise UnknownNameError(f"{where}: {option}", named, "a column", columns)
    _refuse_twice(where, options)
    if labelled and asked.choices:
        return _with_choices(where, values, asked)
    choices = _choices(values, (asked.text, asked.text_pair, asked.label)) if labelled else ()
    if choices and asked.answers == "choice":
        return _with_choices(where, values, replace(asked, choices=choices))
    assumed = []
    if choices and asked.answers is None and _differ(values, choices):
        if _told_by_one(where, values, asked, choices):
            how = f"rows have choices in {_named(choices)}; --answers label reads them without"
            found = _with_choices(where, values, replace(asked, choices=choices))
            return replace(found, assumed=(how, *found.assumed))
        assumed.append(
            f"{_named(choices)} are named as choices are, but not exactly one column tells the"
            " right one by its number from 0 or its letter; --answers choice --label COLUMN says"
            " which does"
        )
    if labelled and asked.answers == "choice":
        raise ContractViolation(
            f"{where}: --answers choice: no column is named as choices are, such as 'choices' or"
            f" 'choice1' and 'choice2'. Say which ones hold them with --choices: {_named(values)}."
        )
    others = {name: column for name, column in values.items() if name not in choices}
    others = others if _lengths(others, (label,)) else values  # whose texts are read
    words = _words(values) if labelled and asked.answers in (None, "spans") else None
    if labelled and not words and asked.answers in (None, "spans"):
        _refuse_numbers(where, values, asked)
    writes = asked.answers == "text" and label is None  # any other text may be the one to write
    if labelled and not words and not writes and text is None and pair is None:
        text, pair = _pair(others, label)
    guessed = ""
    if text is None and words:
        text = words
    elif text is None:
        text, guessed = _text(where, others, (label, pair))
        assumed += [guessed] if guessed else []
    if labelled and label is None:
        wanted = "spans" if words else asked.answers
        label, how = _label(where, values, (text, pair), wanted)
        assumed += [how] if how else []
    identity = _identity(values, (text, pair, label))
    if identity is None:
        assumed += _unused_identity(values, (text, pair, label))
    if label is None or not labelled:
        return Roles(text, None, identity, tuple(assumed))
    assumed += [
        f"column {name!r} says which annotations were accepted; all rows are read, but"
        f" `where: {{{name}: accept}}` in the source leaves out the others"
        for name, column in values.items()
        if name != label and _are_decisions(name, column) and set(column) != {"accept"}
    ]
    answers = asked.answers or kind_of(values[label])
    if answers is None:
        answers = "text" if may_be("text", values[label]) else "label"
        if answers == "text":
            assumed.append(
                f"the texts in {label!r} are to be written; `--answers label` makes each a class"
            )
    if answers == "label" and asked.answers is None:
        answers, how = _several(label, values[label])
        assumed += [how] if how else []
    if answers in ("label", "label_set", "text") and asked.answers in (None, "label_set"):
        _refuse_written_lists(where, label, values[label])
    if answers == "number" and asked.answers is None:
        assumed.append("the answers are numbers; `--answers label` makes each a class")
    if answers == "spans" and asked.text_pair is None:
        pair = None  # its rows have one text
    if answers == "extract" and pair is None:
        raise ContractViolation(
            f"{where}: {label!r} has answers from a text. Say which column has that text with"
            f" --pair COLUMN, and which one the question with --text COLUMN: {_named(values)}."
        )
    if pair and asked.text_pair is None:
        assumed.append(f"{text!r} and {pair!r} are read as a pair; --text reads one column alone")
    others = _lengths(values, (text, label, identity))
    if guessed and not pair and others:
        assumed.append(f"--pair COLUMN reads a second text: {_named(others)}")
    separator = separator_of(values[label]) if answers == "label_set" else None
    if separator:
        assumed.append(f"the labels in {label!r} are separated by {separator!r}")
    group = pair if answers == "extract" else None  # a text's questions go to one split
    return Roles(text, label, identity, tuple(assumed), pair, group, answers, separator)


def _refuse_twice(where: str, options: Sequence[tuple[str, str | None]]) -> None:
    """Refuse a column that is named for two roles: a text would hold its own answer."""
    roles_of: dict[str, str] = {}
    for option, named in options:
        if named is not None and (other := roles_of.setdefault(named, option)) != option:
            raise ContractViolation(
                f"{where}: {other} and {option} both name {named!r}; expected a column for each."
            )


def _several(label: str, column: Sequence[Any]) -> tuple[str, str]:
    """Whether labels are sets of fewer names, written with a separator, and what to say of it."""
    separator = separator_of(column)
    different = {value.strip() for value in column if isinstance(value, str)}
    names = Counter(
        name.strip() for value in different for name in set(value.split(separator)) if name.strip()
    )
    shared = [name for name, times in names.items() if times > 1]
    if not shared or all(map(_is_number, names)):
        return "label", ""
    if len(names) < len(different) and 2 * len(shared) > len(names):
        empty = ", empty cells as sets of none" if "" in different else ""
        return "label_set", (
            f"the labels in {label!r} are read as sets{empty}; --answers label makes each cell one"
            " class"
        )
    how = f"labels in {label!r} contain {separator!r}; --answers label_set reads sets of them"
    return "label", how


def _choices(values: Mapping[str, list], taken: Sequence[str | None]) -> tuple[str, ...]:
    """The columns of choices, by their names: one with lists of texts, or two and more texts."""
    free = {name: column for name, column in values.items() if name not in taken}
    for name, column in free.items():
        if name.lower() in CHOICES and all(map(_are_texts, column)):
            return (name,)
    several = tuple(name for name in free if _CHOICE.fullmatch(name))
    return several if len(several) > 1 else ()


def _differ(values: Mapping[str, list], choices: Sequence[str]) -> bool:
    """Whether nearly all rows have different texts in columns of choices, as flags don't."""
    if len(choices) == 1:
        return True
    rows = zip(*(values[name] for name in choices), strict=True)
    filled = [[str(value) for value in row if value not in (None, "")] for row in rows]
    return nearly_all([len(set(row)) == len(row) for row in filled])


def _told_by_one(
    where: str, values: Mapping[str, list], asked: Asked, choices: Sequence[str]
) -> bool:
    """Whether one column alone may tell the right choice.

    Raises:
        ContractViolation: Its name says nothing, and another column is named as a label is.
    """
    able = _able(values, asked, choices)
    if len(able) != 1 or asked.label or able[0].lower() in (*LABELS, *RIGHT):
        return len(able) == 1
    taken = (asked.text, asked.text_pair, *choices)
    if named := [name for name in values if name.lower() in LABELS and name not in taken]:
        raise ContractViolation(
            f"{where}: {able[0]!r} may tell the right one of the choices in {_named(choices)}, or"
            f" {_named(named)} may be the label. Say --answers choice, or --answers label."
        )
    return True


def _are_texts(value: Any) -> bool:
    value = value.get("text") if isinstance(value, Mapping) else value
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _with_choices(where: str, values: Mapping[str, list], asked: Asked) -> Roles:
    """The roles where a row has choices: a text, and a column that tells the right one."""
    taken, label, how = asked.choices, asked.label, ""
    if label is None:
        label, how = _right(where, values, asked)
    _refuse_from_one(where, label, values[label])
    text, told = (asked.text, "") if asked.text else _text(where, values, (label, *taken))
    identity = _identity(values, (text, label, *taken))
    unused = () if identity else _unused_identity(values, (text, label, *taken))
    assumed = (*filter(None, (told, how)), *unused)
    return Roles(text, label, identity, assumed, answers="choice", choices=taken)


def _refuse_from_one(where: str, label: str, column: Sequence[Any]) -> None:
    """Refuse numbers of right choices that seem to be counted from 1, not from 0."""
    found = [str(value).strip() for value in column if value not in (None, "")]
    counted = "1" in found and "0" not in found and nearly_all(list(map(str.isdecimal, found)))
    if counted and len(found) >= FROM_ONE_ROWS:
        raise ContractViolation(
            f"{where}: expected the number of the right choice, from 0, in {label!r}; got 1 and"
            " more but never 0, as if counted from 1. Subtract 1, or write letters (A is the first"
            " choice); --answers label makes each number a class."
        )


def _size(values: Mapping[str, list], columns: Sequence[str], row: int) -> int:
    """How many choices a row has."""
    one = values[columns[0]][row]
    return len(one) if len(columns) == 1 and isinstance(one, list | Mapping) else len(columns)


def _able(values: Mapping[str, list], asked: Asked, choices: Sequence[str]) -> list[str]:
    """The columns that may tell the right choice, by number or letter: those named so, if any."""
    sizes = [_size(values, choices, row) for row in range(len(values[choices[0]]))]
    able = [
        name
        for name, column in values.items()
        if name not in (asked.text, *choices)
        and asked.label in (None, name)
        and nearly_all(list(map(is_choice, column, sizes)))
        and len({str(value) for value in column}) > 1
    ]
    return [name for name in able if name.lower() in (*LABELS, *RIGHT)] or able


def _right(where: str, values: Mapping[str, list], asked: Asked) -> tuple[str, str]:
    """The column that tells the right choice, and how it was found."""
    found = _able(values, asked, asked.choices)
    if len(found) != 1:
        raise ContractViolation(
            f"{where}: {len(found)} columns may tell the right choice, by its number from 0 or its"
            f" letter. Say which one is with --label COLUMN: {_named(found or values)}."
        )
    how = f"the right choice is told by column {found[0]!r}; --label selects another"
    return found[0], "" if found[0].lower() in (*LABELS, *RIGHT) else how


def headless(first: Sequence[str], records: Records, asked: Asked) -> bool:
    """Whether a table has no header: its first row looks like the others.

    Args:
        first: The cells of the first row.
        records: The rows after it, by column number.
        asked: What the user said; a column named by a cell of the first row makes it a header.
    """
    numbers = [str(number) for number in range(1, len(first) + 1)]
    names = {asked.text, asked.text_pair, asked.label, *asked.choices}.difference(numbers)
    if not names.isdisjoint(first):
        return False
    for number, cell in zip(numbers, first, strict=True):
        seen = {record.get(number) for record in records}
        # A cell without a name is no value: Excel writes an empty last column.
        if cell and cell in seen and len(seen) <= max(2, len(records) // ROWS_PER_LABEL):
            return True
    if any(cell.lower() in (*TEXTS, *LABELS) for cell in first):
        return False
    return any(len(cell) > LONGEST_NAME or _is_number(cell) for cell in first)


def _named(columns: Iterable[str]) -> str:
    return listed([repr(name[:LONGEST_NAME]) for name in columns], 20)


def _lengths(values: Mapping[str, list], taken: Iterable[str | None]) -> dict[str, float]:
    """Mean length of each column that looks like text, in characters."""
    lengths = {
        name: sum(map(len, texts)) / len(texts)
        for name, column in values.items()
        if name not in taken
        and (texts := [value for value in column if isinstance(value, str)])
        and 2 * len(texts) > len(column)
    }
    return {name: length for name, length in lengths.items() if length >= SHORTEST_TEXT}


def _pair(values: Mapping[str, list], label: str | None) -> tuple[str, str] | tuple[None, None]:
    """The longest pair of texts, by their names; without a header the only two, of like length."""
    lengths = _lengths(values, (label,))
    names = {name.lower(): name for name in lengths}
    pairs = [(names[a], names[b]) for a, b in PAIRS if a in names and b in names]
    alike: dict[str, list[str]] = {}  # names that differ in a number, or in a letter at the end
    for name in lengths:
        stem = re.sub(r"\d+|(?<![^_ ])[a-h]$", "#", name.lower())
        alike.setdefault(name if name.isdigit() else stem, []).append(name)
    pairs += [(min(group), max(group)) for group in alike.values() if len(group) == 2]
    if len(lengths) == 2 and all(map(str.isdigit, values)):
        if max(lengths.values()) <= 2 * min(lengths.values()):
            pairs.append((min(lengths), max(lengths)))
    return max(pairs, key=lambda pair: lengths[pair[0]] + lengths[pair[1]], default=(None, None))


def _words(values: Mapping[str, list]) -> str | None:
    """The column with lists of words, if another one has a tag for each."""
    lists = {n: c for n, c in values.items() if all(isinstance(value, list) for value in c)}
    tags = [name for name, column in lists.items() if are_tags(column)]

    words = [name for name in lists if name not in tags]
    return next((n for n in words if any(_one_each(lists[n], lists[tag]) for tag in tags)), None)


def _one_each(words: Sequence[list], tags: Sequence[list]) -> bool:
    """Whether nearly all lists have one tag for each word."""
    pairs = zip(words, tags, strict=True)
    return nearly_all([len(some) == len(others) for some, others in pairs])


def _are_decisions(name: str, column: Sequence[Any]) -> bool:
    """Whether a column says, as in Prodigy's files, what an annotator decided on a row."""
    return name == "answer" and all(value in DECISIONS for value in column)


def _refuse_written_lists(where: str, label: str, column: Sequence[Any]) -> None:
    """Refuse lists or objects that are written as text, as a table of them has."""
    texts = [value.strip() for value in column if isinstance(value, str) and value.strip()]
    if texts and nearly_all([text[0] + text[-1] in ("[]", "{}") for text in texts]):
        raise ContractViolation(
            f"{where}: {label!r} has lists or objects that are written as text. Write the rows as"
            " JSON lines, where they are values; --answers label or text takes them as they are."
        )


def _refuse_numbers(where: str, values: Mapping[str, list], asked: Asked) -> None:
    """Refuse words with a number in place of each tag, where there is no other text."""
    lists = {n: c for n, c in values.items() if all(isinstance(value, list) for value in c)}
    of_kind = {n: {type(part) for value in c for part in value} for n, c in lists.items()}
    if asked.text is None and _lengths(values, (asked.label,)):
        return
    for words, numbers in permutations(lists, 2):
        if (of_kind[words], of_kind[numbers]) != ({str}, {int}):
            continue
        named = asked.text in (None, words) and asked.label in (None, numbers)
        if named and _one_each(lists[words], lists[numbers]):
            raise ContractViolation(
                f"{where}: {numbers!r} has a number for each word of {words!r}. Write tags such as"
                " B-person and O in place of numbers, or write the source by hand, with"
                " `answers: spans` and the tags as `label_names`."
            )


def _text(where: str, values: Mapping[str, list], taken: Iterable[str | None]) -> tuple[str, str]:
    long = _lengths(values, taken)
    if not long:
        raise ContractViolation(
            f"{where}: no column looks like text. Columns: {_named(values)}. Name it with"
            f" --text COLUMN.{_nested(values)}"
        )
    if "text" in long:
        return "text", ""
    # A summary may have the better name, but the longest column holds the most text.
    most = max(long, key=long.__getitem__)
    named = [name for name in long if name.lower() in TEXTS]
    best = max(named, key=long.__getitem__) if named else most
    if len(long) == 1 or (named and best == most):
        return best, ""
    others = _named([name for name in long if name != best])
    return best, f"the text is taken from column {best!r}; --text selects another: {others}"


def _nested(values: Mapping[str, list]) -> str:
    """What to say of columns whose values are objects with fields of their own."""
    nested = [
        name for name, column in values.items() if any(isinstance(v, Mapping) for v in column)
    ]
    if not nested:
        return ""
    return f" Fields inside {_named(nested)} are not read; write them as fields of the row itself."


def _label(
    where: str, values: Mapping[str, list], taken: Sequence[str | None], wanted: str | None
) -> tuple[str, str]:
    others = [name for name in values if name not in taken]
    kinds = {name: kind_of(values[name]) for name in others}
    if wanted:
        kinds = {name: wanted if may_be(wanted, values[name]) else None for name in others}
    able = [name for name in others if kinds[name]]
    able = [name for name in able if not _are_decisions(name, values[name])] or able
    named = [name for name in able if name.lower() in (TARGETS if wanted == "text" else LABELS)]
    plain = [name for name in able if kinds[name] == "label"]
    groups = (
        [name for name in named if name in plain],
        named,
        [name for name in able if taken[1] and name.lower() in SCORES],
        plain,
        [name for name in able if kinds[name] != "number"],  # of which a table may have many
    )
    found = next(filter(None, groups), able)
    if len(found) == 1:
        known = found[0].lower() in (*LABELS, *SCORES, *(TARGETS if wanted == "text" else ()))
        why = "whose values repeat" if found == plain else "that fits"
        how = f"the label is taken from column {found[0]!r}, the only one {why}"
        return found[0], "" if known else how
    if not found:
        expected = f"answers of kind {wanted!r}" if wanted else "a few values that repeat"
        raise ContractViolation(
            f"{where}: no label column found: expected one with {expected}. Columns:"
            f" {_named(values)}. Say which one is with --label COLUMN."
            + ("" if wanted else " For texts that are to be written, add --answers text.")
            + _nested(values)
            if others
            else f"{where}: no label column found: there is only {_named(values)}. Text"
            " without labels goes to --corpus."
        )
    raise ContractViolation(
        f"{where}: {len(found)} columns may be the label: {_named(found)}. Say which one is"
        " with --label COLUMN."
    )


def _identity(values: Mapping[str, list], taken: Sequence[str | None]) -> str | None:
    for name, column in values.items():
        if name.lower() in IDS and name not in taken:
            plain = all(isinstance(v, str | int) and not isinstance(v, bool) for v in column)
            if plain and "" not in column and len(set(map(str, column))) == len(column):
                return name
    return None


def _unused_identity(values: Mapping[str, list], taken: Sequence[str | None]) -> list[str]:
    """What to say of a column that is named as an id but can't be one."""
    for name in values:
        if name in taken or name.lower() not in IDS:
            continue
        if name == "id":
            return [
                "the values of column 'id' repeat, and rows with a repeated id are quarantined;"
                " rename the column to keep them all"
            ]
        return [
            f"column {name!r} is not read as an id: its values repeat, are missing or are no names;"
            " rows are named by file and line"
        ]
    return []


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
