"""Surveys files (format, language, size, columns, labels) and proposes a source that reads them.

It uses the readers of a run, so a run will find what the survey reports.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from corpora.answer_shapes import STRANGE, is_tagged, nearly_all
from corpora.answers import TRIMMED, names_in, texts_in
from corpora.archives import Content, contents
from corpora.cleaning import clean
from corpora.columns import Asked, Roles, headless, roles
from corpora.decoding import SAMPLE_BYTES, encoding_of, lines
from corpora.file_state import FileState
from corpora.files import ARCHIVES, FoundFile, find_files
from corpora.labels import check_kinds, check_names, visible
from corpora.profile import measure, script_share
from corpora.readers import Raw, format_by_name, reader, unknown_format
from corpora.readers.conll import DOCUMENT, cells_of, is_comment
from corpora.reading import read_documents, read_rows
from corpora.snapshot import Snapshot
from data_contracts.records import SPLITS, Rejected, Row
from data_contracts.sources import Fields, Source, parse_source
from data_contracts.suite import load_suite
from fourstage.errors import ContractViolation, listed

SAMPLE = 2000  # records from which columns, language and contract are inferred
MOST_CHARACTERS = 50_000_000  # to read; more text does not change the advice
CHARACTERS_PER_TOKEN = 3.6  # in a script with spaces, with a few thousand pieces
DECIDING = 200  # dev rows that tell a lead of about .07 in accuracy
MOST_SET_ASIDE = 0.3
JUDGING = 50  # rows each for dev and test where both are drawn: a lead of about .14
MOST_OF_BOTH = 0.2  # for each
MANY = 20  # files, or parts of one, from which on each is a document
MISSING = ("nan", "n/a", "na", "null", "none", "-")  # what labels that are none are written as
LANGUAGES = ("en", "ru", "ar", "el", "hi", "he", "th", "ko", "zh", "ja")
_SPLIT = re.compile(r"(?:^|[^a-z])(train(?:ing)?|dev|valid(?:ation)?|val|test)(?:[^a-z]|$)")
# How a source may write spans; the first is the default.
_SPELLINGS = (
    *({}, {"tag_scheme": "iob1"}, {"tag_scheme": "bioes"}, {"tag_scheme": "bilou"}),
    *({"tag_scheme": "bmes"}, {"span_ends": "inclusive"}),
)
_LAST_SPACED = "\u0530"  # before it are Latin, Greek and Cyrillic letters
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7a3]")


@dataclass(frozen=True)
class Survey:
    """What some files contain.

    Attributes:
        source: What the YAML of a source must say to read them.
        format: Name of the format.
        files: Number of files.
        records: Number of documents or rows.
        whole: Whether everything was read; the counts cover what was read.
        tokens: Approximate number of tokens, with a small vocabulary.
        characters: Total number of characters.
        median: Tokens of the median record.
        long: 90th percentile of the tokens per record, of an answer that is a text without these.
        long_answer: 90th percentile of the tokens of such an answer; 0 of other kinds.
        signs: Number of different Chinese, Japanese and Korean characters in rows with such answers
            and in these; 0 of other kinds.
        answers: Kind of answer; empty for text.
        labels: How often each label, type of span or number occurs.
        splits: Rows by split, if the names of the files tell.
        unread: Number of unreadable records by reason.
        breaking: Share of the records that break a promise of the default contract, by its id.
        assumed: What was guessed, in sentences.
    """

    source: Mapping[str, Any]
    format: str
    files: int
    records: int
    whole: bool
    tokens: int
    characters: int
    median: int
    long: int
    long_answer: int
    signs: int
    answers: str
    labels: Mapping[str, int]
    splits: Mapping[str, int]
    unread: Mapping[str, int]
    breaking: Mapping[str, float]
    assumed: tuple[str, ...]


def survey(
    name: str,
    patterns: Sequence[str],
    *,
    labelled: bool,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    answers: str | None = None,
    choices: Sequence[str] = (),
    language: str | None = None,
) -> Survey:
    """Survey some files.

    Args:
        name: Name of the proposed source.
        patterns: Files, folders or patterns; absolute.
        labelled: Whether they are rows with labels.
        text: The text column, if the user named it.
        pair: The column of the second text, if the user named it.
        label: The label column, if the user named it.
        answers: The kind of answer, if the user named it.
        choices: The columns of each row's choices, or one that holds a list of them.
        language: Language of the text, if the user named it.

    Raises:
        ContractViolation: They cannot be read, or have no text or no label.
        UnknownNameError: A column named by the user does not exist.
    """
    draft: dict[str, Any] = {"name": name, "language": language or "en", "licence": "not stated"}
    source = parse_source({**draft, "files": list(patterns)})
    found = find_files(source)
    assumed: list[str] = []
    files = _by_split(found) if labelled else None
    draft |= {"files": files or list(patterns)}
    source = parse_source({**draft, "fields": {"label": "label"} if files else {}})
    states = [_state(file) for file in find_files(source)]
    said, guessed = _shape(
        source, states, labelled, Asked(text, pair, label, answers, tuple(choices))
    )
    if said.get("columns") and said.get("format") != "conll":
        assumed.append(
            "the first row is data, not a header, so the columns were given names; if it is one,"
            " call its columns 'text' and 'label', or name one of them with --text or --label"
        )
    if said.get("encoding"):
        assumed.append(f"the encoding is {said['encoding'].upper()}")
    assumed += guessed
    draft |= said
    if labelled and "fields" not in said:
        folders = {Path(state.path).parent for state in states}
        raise ContractViolation(
            f"{_where(states)}: expected a table or JSON lines with a label column, got plain text."
            " Text without labels goes to --corpus."
            + (
                " Folders are not read as labels: write each file's text and label to a row of a"
                " table."
                if len(folders) > 1
                else ""
            )
        )
    if draft.get("answers") == "spans":
        written = _spelling(draft, states)
        assumed += [f"{key} is {value}, which fits most rows" for key, value in written.items()]
        draft |= written
    source = parse_source(draft)
    if source.answers == "spans":
        assumed += _cut_words(source, states)
    texts = [text for text, _ in islice(_texts(source, states), SAMPLE)]
    if language is None:
        draft["language"] = _language(texts)
        source = parse_source(draft)
        if draft["language"] == "en":
            assumed.append(
                "the language is assumed to be English, from its script; --language sets another"
            )
    if source.answers == "text":
        if (of_answers := _answer_language(source, states)) != source.language:
            draft["answer_language"] = of_answers
            source = parse_source(draft)
        else:
            assumed.append(
                f"the answers are taken to be in the language of the texts, {source.language!r};"
                " `answer_language` of the source sets another"
            )
    counted = _Counted(source, states)
    if not counted.records:
        why = "; ".join(f"{n} × {reason}" for reason, n in counted.unread.most_common(3))
        raise ContractViolation(
            f"{_where(states)}: not one {'row' if labelled else 'document'} can be read:"
            f" {why or 'there is none'}."
        )
    if labelled:
        if counted.splits and not counted.splits["train"]:
            why = "; ".join(f"{n} × {reason}" for reason, n in counted.unread.most_common(3))
            raise ContractViolation(
                f"{_where(states)}: not one training row can be read{f': {why}' if why else ''}."
            )
        check_kinds(name, counted.kinds, counted.first_of_kind)
        check_names(name, counted.labels)
        assumed += _doubts(counted)
        if (share := _set_aside(counted)) is not None:
            draft["set_aside"] = share
    median, long, long_answer = counted.lengths()
    with _first(states) as content:
        written = said.get("format") or format_by_name(content.name) or ""
    return Survey(
        draft,
        written,
        len(states),
        counted.records,
        counted.whole,
        counted.read,
        counted.characters,
        median,
        long,
        long_answer,
        len(counted.signs),
        source.answers if labelled else "",
        dict(counted.labels.most_common()),
        dict(counted.splits),
        dict(counted.unread),
        _breaking(source, texts),
        tuple(assumed),
    )


class _Counted:
    """Counts over the records of a source, up to `MOST_CHARACTERS`."""

    def __init__(self, source: Source, states: Sequence[FileState]):
        self.records = self.characters = self.read = 0
        self.whole = True
        self.tokens: list[int] = []
        self.answers: list[int] = []  # tokens of each answer that is a text
        self.signs: set[str] = set()  # of texts with such an answer
        self.labels: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.first_of_kind: dict[str, str] = {}
        self.splits: Counter[str] = Counter()
        self.trained: set[str] = set()  # names of labels in rows that may be training rows
        self.evaluated: set[str] = set()
        self.unread: Counter[str] = Counter()
        for text, row in _texts(source, states, self.unread):
            # A network reads the text once with each choice.
            parts = [f"{text}\n{choice}" for choice in row.choices or ()] if row else []
            read = list(map(num_tokens, parts or [text]))
            self.records += 1
            self.characters += sum(map(len, parts or [text]))
            written = texts_in(source.answers, row.label) if row else ()
            if written:
                self.answers.append(num_tokens(written[0]))
                self.signs.update(*map(_CJK.findall, (text, written[0])))
            self.read += sum(read) + sum(self.answers[-1:] if written else ())
            self.tokens.append(max(read))
            if row is not None:
                names = names_in(source.answers, row.label)
                self.labels.update(names or _as_name(source, row))
                (self.trained if row.split in (None, "train") else self.evaluated).update(names)
                self.kinds[row.label_type] += 1
                self.first_of_kind.setdefault(row.label_type, row.location)
                if row.split:
                    self.splits[row.split] += 1
            if self.characters > MOST_CHARACTERS:
                self.whole = False
                break

    def lengths(self) -> tuple[int, int, int]:
        """The median and the 90th percentile of the tokens per record, and that of the answers."""
        ordered, answers = sorted(self.tokens), sorted(self.answers) or [0]
        return ordered[len(ordered) // 2], _ninetieth(ordered), _ninetieth(answers)


def _ninetieth(ordered: Sequence[int]) -> int:
    """The 90th percentile."""
    return ordered[int(0.9 * (len(ordered) - 1))]


def _set_aside(counted: _Counted) -> float | None:
    """The share of the training rows that should become dev rows; None: the usual one.

    More where rows are few, so that they can decide; where test rows are drawn from them, too, not
    as many, for both leave fewer to learn from.
    """
    train = counted.splits["train"] or sum(counted.kinds.values())  # all, where no split is named
    if not counted.whole or "dev" in counted.splits:
        return None
    tested = "test" in counted.splits
    fewest, most = (DECIDING, MOST_SET_ASIDE) if tested else (JUDGING, MOST_OF_BOTH)
    share = round(min(fewest / train, most), 2)
    return share if share > Source.model_fields["set_aside"].default else None


def _doubts(counted: _Counted) -> Iterator[str]:
    """What to say of labels that may be none, and of those that no training row has."""
    missing = [
        f"`{visible(label)}` {rows:,}"
        for label, rows in counted.labels.most_common()
        if label.strip().casefold() in MISSING and label in counted.trained
    ]
    if missing:
        yield (
            f"labels that look like missing values are classes of their own: {', '.join(missing)};"
            " if they are none, empty their cells, and these rows are set aside"
        )
    if counted.whole and (unseen := sorted(counted.evaluated - counted.trained)):
        yield (
            "a run will stop: no training row has the label"
            f" {listed([f'`{visible(label)}`' for label in unseen], 20)}; correct the dev and test"
            " rows with it, or add training rows"
        )


def _as_name(source: Source, row: Row) -> tuple[str, ...]:
    """What to count a row under whose answer has no names."""
    match source.answers:
        case "extract":
            return ("no answer" if row.label == "[]" else "answered",)
        case "number" | "choice":
            return (row.label,)
    return ()


def num_tokens(text: str) -> int:
    """The approximate number of tokens of a text, with a small vocabulary."""
    characters = 0 if text.isascii() else len(_CJK.findall(text))
    return characters + round((len(text) - characters) / CHARACTERS_PER_TOKEN) + 1


def _texts(
    source: Source, states: Sequence[FileState], unread: Counter[str] | None = None
) -> Iterator[tuple[str, Row | None]]:
    """Each readable record: its text and, if it has a label, the row."""
    snapshot = Snapshot(source.name, tuple(states), "")
    items = (
        (item for _, item in read_rows(source, snapshot))
        if source.is_dataset
        else read_documents(source, snapshot)
    )
    for item in items:
        if isinstance(item, Rejected):
            if unread is not None:
                unread[item.reason] += 1
        else:
            row = item if isinstance(item, Row) else None
            pair = f"\n{row.text_pair}" if row and row.text_pair else ""
            yield item.text + pair, row


def _by_split(found: Sequence[FoundFile]) -> dict[str, list[str]] | None:
    """The files by the split that their names tell; None if they do not tell."""
    parts: dict[str, list[str]] = {}
    for file in found:
        names = [file.name]
        if file.name.lower().endswith(ARCHIVES):
            names = [content.name for content in contents(_state(file))]
        for name in names:
            told = _SPLIT.search(name.rpartition("/")[2].rpartition("!")[2].lower())
            if told is None:
                return None
            split = {"t": "train", "d": "dev", "v": "dev"}[told[1][0]]
            split = "test" if told[1] == "test" else split
            member = name[len(file.name) + 1 :]
            parts.setdefault(split, []).append(file.path + (f"!{member}" if member else ""))
    return {s: parts[s] for s in SPLITS if s in parts} if "train" in parts else None


def _shape(
    source: Source, states: Sequence[FileState], labelled: bool, asked: Asked
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What the source must say about its files and their columns, and what had to be guessed."""
    said: dict[str, Any] = {}
    with _first(states) as content:
        written, where = format_by_name(content.name), content.where
        head = content.stream.read(SAMPLE_BYTES)
    encoding = encoding_of(head)
    if encoding != "utf-8" and written != "parquet":
        said["encoding"] = encoding
        source = source.model_copy(update={"encoding": (encoding,)})
    if labelled and b"\0" not in head and written not in ("parquet", "jsonl"):
        columns, group = _tagged_words(source, states)
        if columns:
            usual = Asked("token", None, "tag", "spans")
            return said | {"columns": columns} | _fixed("conll", usual, group, asked), ()
    if labelled and written == "jsonl" and b'"paragraphs"' in head and b'"qas"' in head:
        usual = Asked("question", "context", "answers", "extract")
        return said | _fixed("squad", usual, {"id": "id", "group": "article"}, asked), ()
    if written == "jsonl" and head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        raise ContractViolation(
            f"{where}: expected one JSON object a line, got a JSON array. `jq -c '.[]' FILE` writes"
            " its elements as lines."
        )
    if written == "conll":
        raise ContractViolation(
            f"{where}: expected on each line a word and, in the last column, its tag, such as"
            " B-person, I-person or O; got something else."
        )
    if written is None:
        more = " Give the file one of these, or write the source by hand."
        raise ContractViolation(unknown_format(source, where, more))
    if written == "text":
        written = _of_text(source, states)
        if written == "text":
            document = _document(source, states)
            return said | ({"document": document} if document != "file" else {}), ()
        said["format"] = written
    read = import_module(f"corpora.readers.{written}")
    columns = []
    if hasattr(read, "columns"):
        with _first(states) as content:
            columns = read.columns(content, source)
    records: list[Mapping[str, Any]]
    if written in ("csv", "tsv"):
        numbers = [str(number) for number in range(1, len(columns) + 1)]
        numbered = source.model_copy(update={"columns": tuple(numbers), "fields": Fields(text="1")})
        with _first(states) as content:  # in other files, too, the first row may be a header
            records = _values(reader(written, "")(content, numbered))
        if headless(columns, records[1:], asked):
            chosen = roles(_where(states), records, labelled, asked)
            names = {getattr(chosen, role): role for role in ("text", "text_pair", "label")}
            said["columns"] = [names.get(number, f"column{number}") for number in numbers]
            new = dict(zip(numbers, said["columns"], strict=True))
            return said | _fields(replace(chosen, id=None), new), chosen.assumed
        records = [dict(zip(columns, r.values(), strict=True)) for r in records[1:]]
    elif columns:
        records = _of_columns(written, source, states, columns)
    else:
        records = _sample(written, source, states)
    if not records:
        expected = "one JSON object a line" if written == "jsonl" else "rows below a header"
        raise ContractViolation(
            f"{_where(states)}: expected {expected}, got no record that can be read as {written}."
        )
    chosen = roles(_where(states), records, labelled, asked)
    return said | _fields(chosen, {}), chosen.assumed


def _fields(chosen: Roles, new: Mapping[str, str]) -> dict[str, Any]:
    """What the source says of the columns, some of which have new names."""
    said: dict[str, Any] = {"fields": {}}
    for role in ("id", "text", "text_pair", "label", "group"):
        if (column := getattr(chosen, role)) is not None:  # a column may have no name
            said["fields"][role] = new.get(column, column)
    if chosen.choices:
        columns = [new.get(column, column) for column in chosen.choices]
        said["fields"]["choices"] = columns if len(columns) > 1 else columns[0]
    if chosen.answers != "label":
        said["answers"] = chosen.answers
    return said | ({"separator": chosen.separator} if chosen.separator else {})


def _fixed(format_: str, usual: Asked, more: Mapping[str, str], asked: Asked) -> dict[str, Any]:
    """What the source says of a format whose columns and kind of answer are known."""
    if asked.answers not in (None, usual.answers):
        raise ContractViolation(
            f"--answers {asked.answers}: files in format {format_} have answers of kind"
            f" {usual.answers}; leave --answers out."
        )
    roles_ = ("text", "text_pair", "label")
    fields = {role: getattr(asked, role) or getattr(usual, role) for role in roles_}
    fields = {role: column for role, column in fields.items() if column}
    return {"format": format_, "fields": {**fields, **more}, "answers": usual.answers}


def _tagged_words(source: Source, states: Sequence[FileState]) -> tuple[list[str], dict[str, str]]:
    """The columns of a file with tagged words, and that it has documents; none of another file."""
    found: list[str] = []
    group: dict[str, str] = {}
    with _first(states) as content:
        for item in islice(lines(content, source), SAMPLE):
            line = "" if isinstance(item, Rejected) else item[1].strip()
            if line.startswith(DOCUMENT):
                group = {"group": "document"}
            elif line:
                found.append(line)
    widths = Counter(len(cells_of(line)) for line in found)
    width = widths.most_common(1)[0][0] if found else 0
    rows = [cells_of(line) for line in found if not is_comment(line, width, -1)]
    if width < 2 or not is_tagged([cells[-1] for cells in rows]):
        return [], {}
    columns = [*(f"column{n}" for n in range(1, width)), "tag"]
    columns[int(width > 2 and _are_numbers(rows, width))] = "token"
    return columns, group


def _are_numbers(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether the first cells of tagged words are their numbers in each sentence, as in CoNLL-U."""
    cells = [row[0] for row in rows if len(row) == width]
    return set(cells) >= {"1", "2"} and nearly_all([cell.isdecimal() for cell in cells])


def _spelling(draft: Mapping[str, Any], states: Sequence[FileState]) -> Mapping[str, str]:
    """What the source must say of the tags or the ends of spans for most rows to be readable.

    A row with a span that cuts a word, or ends with a blank, is as bad as one that can't be read:
    its ends were read wrongly. A few illegal tags do not make IOB2 IOB1, in which other spans
    begin.
    """

    def read(said: Mapping[str, str]) -> tuple[int, int, int]:
        """The number of rows that can't be read, of those that have spans, and of odd spans'."""
        unread: Counter[str] = Counter()
        rows = islice(_texts(parse_source({**draft, **said}), states, unread), SAMPLE)
        found = [row for _, row in rows if row is not None and row.label != "[]"]
        odd = sum(TRIMMED in row.mended or bool(_cutting(row)) for row in found)
        return unread.total(), len(found), odd

    unread, spans, _ = read(_SPELLINGS[0])
    best = min(_SPELLINGS, key=lambda said: sum(read(said)[::2]))
    usual = best.get("tag_scheme") == "iob1" and STRANGE * unread <= unread + spans
    return _SPELLINGS[0] if usual else best


def _cut_words(source: Source, states: Sequence[FileState]) -> Iterator[str]:
    """What to say of spans that begin or end within a word, if they are many."""
    rows = [row for _, row in islice(_texts(source, states), SAMPLE) if row is not None]
    spans = sum(len(json.loads(row.label)) for row in rows)
    if (cut := sum(len(_cutting(row)) for row in rows)) and STRANGE * cut > spans:
        yield (
            f"{cut:,} of {spans:,} spans begin or end within a word, where no tag does; offsets"
            " count characters from 0, not bytes or UTF-16 units, and `span_ends` of the source"
            " says what an end is"
        )


def _cutting(row: Row) -> list[tuple[int, int]]:
    """The spans of a row that begin or end within a word, where blanks stand between words."""
    text = row.text

    def cuts(place: int) -> bool:
        around = text[max(place - 1, 0) : place + 1]
        return len(around) == 2 and all(c.isalnum() and c < _LAST_SPACED for c in around)

    spans = json.loads(row.label)
    return [(start, end) for start, end, _ in spans if (start and cuts(start)) or cuts(end)]


def _sample(written: str, source: Source, states: Sequence[FileState]) -> list[Mapping[str, Any]]:
    """Values of the first records."""
    read = reader(written, f"source {source.name}")
    return _values(
        item for state in states for content in contents(state) for item in read(content, source)
    )


def _values(items: Iterable[Raw | Rejected]) -> list[Mapping[str, Any]]:
    return [item.values for item in islice(items, SAMPLE) if isinstance(item, Raw)]


def _of_columns(
    written: str, source: Source, states: Sequence[FileState], columns: Sequence[str]
) -> list[Mapping[str, Any]]:
    """The same for a format that returns only the columns requested."""
    records: list[dict[str, Any]] = []
    for column in columns:
        asked = source.model_copy(update={"fields": Fields(text=column)})
        for number, values in enumerate(_sample(written, asked, states)):
            if number == len(records):
                records.append({})
            records[number] |= values
    return list(records)


def _of_text(source: Source, states: Sequence[FileState]) -> str:
    """The format of a file whose name says text; JSON lines and tables are often named so."""
    with _first(states) as content:
        first = next(lines(content, source), None)
    if first is None or isinstance(first, Rejected):
        return "text"
    if first[1].lstrip().startswith("{"):
        try:
            json.loads(first[1])
        except ValueError:
            return "text"
        return "jsonl"
    return "tsv" if source.is_dataset and "\t" in first[1] else "text"


def _document(source: Source, states: Sequence[FileState]) -> str:
    """What counts as one document of text files: the largest part of which there are many."""
    if len(states) >= MANY or any(state.name.lower().endswith(ARCHIVES) for state in states):
        return "file"
    for document in ("paragraphs", "line"):
        asked = source.model_copy(update={"document": document})
        if len(_sample("text", asked, states)) >= MANY:
            return document
    return "file"


def _language(texts: Sequence[str]) -> str:
    """The first language whose script most letters belong to."""
    text = "".join(text[:2000] for text in texts)[:200_000]
    shares = {language: script_share(text, language) for language in LANGUAGES}
    if shares["ja"] > shares["zh"] + 0.1:  # kana among the Chinese characters
        return "ja"
    return max((x for x in LANGUAGES if x != "ja"), key=shares.__getitem__)


def _answer_language(source: Source, states: Sequence[FileState]) -> str:
    """The language of answers that are texts: that of the texts unless their script differs."""
    rows = [row for _, row in islice(_texts(source, states), SAMPLE) if row]
    answers = [text for row in rows for text in texts_in("text", row.label)]
    text = "".join(answers)[:200_000]
    if script_share(text, source.language) > 0.5:
        return source.language
    return _language(answers)


def _breaking(source: Source, texts: Sequence[str]) -> dict[str, float]:
    """Share of the texts that break each row promise of the source's contract, if any do."""
    measured = []
    for text in texts:
        cleaned = clean(text)
        measured.append(measure(cleaned.text, source.language, cleaned.removed))
    found = {}
    suite, *_ = source.suites  # a proposed source has no other, but that of its targets
    for promise in load_suite(suite).expectations:
        column = promise.kwargs.get("column")
        if promise.level != "row" or promise.severity != "critical" or column not in measured[0]:
            continue
        low, high = promise.kwargs.get("min_value"), promise.kwargs.get("max_value")
        broken = sum(
            (low is not None and m[column] < low) or (high is not None and m[column] > high)
            for m in measured
        )
        if broken:
            found[promise.id] = broken / len(measured)
    return found


def _state(file: FoundFile) -> FileState:
    """The current state of a file, without its digest, which only a run needs."""
    stat = os.stat(file.path)
    times = stat.st_mtime_ns, stat.st_ino
    return FileState(file.split, file.path, stat.st_size, *times, "", file.name, file.members)


@contextmanager
def _first(states: Sequence[FileState]) -> Iterator[Content]:
    """The first file, or the first member of the first archive."""
    members = contents(states[0])  # keep a reference: the file closes with the generator
    yield next(members)


def _where(states: Sequence[FileState]) -> str:
    first = Path(states[0].path).name
    return first if len(states) == 1 else f"{first} and {len(states) - 1} more files"
