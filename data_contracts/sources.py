"""Sources: where a corpus or a dataset comes from, how it is read, and what it promises.

A minimal source has a name, a language, a licence, files and fields::

    name: mine
    language: en
    licence: CC0-1.0
    files: [notes/*.jsonl]
    fields: {text: body}

With a ``label`` among its fields it is a dataset, else a corpus. `answers` says of which kind the
labels are. `docs/tutorial.md` explains one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, Field, PrivateAttr, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from data_contracts.records import SPLITS, Split
from data_contracts.strict import Strict
from fourstage.errors import RecipeError, UnknownNameError, did_you_mean, look_alikes
from fourstage.languages import main_language
from fourstage.strict_yaml import kind_of, limit_of, read_document

BUILT_IN = Path(__file__).parent / "sources"
ALL = "all"  # the key of `Source.patterns` if the files are not listed by split

_LONGEST_NAME = 80
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{_LONGEST_NAME - 1}}}")
_ANSWERS = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")


# Kinds of answer; a project's own is a file `answers/NAME.py` in its folder.
SEEN = ("label", "label_set", "number")  # whose heads have the pictures of rows beside their text
ANSWERS = ("label", "number", "label_set", "spans", "extract", "choice", "text")

_TAGS = "write the words (or the text) as 'text', the tags or spans as 'label', `answers: spans`"
_QUESTION = (
    "write the question as 'text', the context as 'text_pair', the answers as 'label', "
    "`answers: extract`"
)
# Words that people try, and what to write.
_INSTEAD = {
    **dict.fromkeys(("conll2002", "conll2003", "iob", "bio", "bioes"), "write `format: conll`"),
    **dict.fromkeys(("cmrc", "squad2", "squad_v2"), "write `format: squad`"),
    **dict.fromkeys(("conllu", "brat"), "not supported yet; tagged words are read as `conll`"),
    **dict.fromkeys(("tokens", "tags", "ner_tags", "pos_tags", "spans", "entities"), _TAGS),
    **dict.fromkeys(("question", "context", "answer", "answers"), _QUESTION),
}
_HALF = re.compile("[\ud800-\udfff]")
_COLUMN = re.compile(r"\{([^{}]+)\}")  # in a pattern of several columns


def _as_tuple(value: Any) -> Any:
    """Lists, the only sequences in YAML, as tuples, which a frozen source needs."""
    return tuple(value) if isinstance(value, list) else value


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("source", "{message}", {"message": message})


class OriginFile(Strict):
    """One file at an origin.

    Attributes:
        path: Its path in the repository.
        sha256: Digest of the published bytes.
        save_as: Its path in the cache, where `files` looks for it; by default the last part of
            `path`. A name in ``.gz`` compresses a file that is published uncompressed.
    """

    path: str
    sha256: str
    save_as: str | None = None

    @model_validator(mode="after")
    def _check(self) -> OriginFile:
        _check_digest(self.sha256)
        _check_save_as(self.save_as)
        return self


class Origin(Strict):
    """The public origin of the data: one file, or a repository at a commit.

    Attributes:
        url: The file, or a repository on GitHub.
        commit: The commit of the repository.
        path: The file in the repository; words or a pattern if nothing is fetched.
        sha256: Digest of the published bytes of that file.
        save_as: Its path in the cache, as for an entry of `files`.
        files: Several files of one repository, instead of `path` and `sha256`.
        note: What users must know: what was left out or changed.
    """

    url: str
    commit: str | None = None
    path: str | None = None
    sha256: str | None = None
    save_as: str | None = None
    files: tuple[OriginFile, ...] = Field(default=(), strict=False)
    note: str = ""

    @model_validator(mode="after")
    def _check(self) -> Origin:
        if not self.url.startswith(("https://", "http://", "file://")):
            raise _wrong(f"expected an address with https://, got {self.url[:60]!r}")
        if self.commit is not None and not _COMMIT.fullmatch(self.commit):
            raise _wrong(f"expected a commit of hexadecimal digits, got {self.commit[:60]!r}")
        if self.sha256 is not None:
            _check_digest(self.sha256)
        _check_save_as(self.save_as)
        if self.files and (self.path or self.sha256 or self.save_as):
            raise _wrong("expected either 'files', or 'path', 'sha256' and 'save_as'; got both")
        return self


def _check_digest(digest: str) -> None:
    if not _SHA256.fullmatch(digest):
        raise _wrong(f"expected a sha256 of 64 hexadecimal digits, got {digest[:70]!r}")


def _check_save_as(name: str | None) -> None:
    if name is not None and (name.startswith("/") or ".." in Path(name).parts or not name):
        raise _wrong(f"expected a relative path without '..', got {name[:60]!r}")


class Fields(Strict):
    """The column (or JSON key) of each role.

    Attributes:
        text: The text, or the first of a pair; ``"{title}. {body}"`` joins several columns.
        text_pair: The second of a pair; it may join columns, too.
        label: The answer, of the kind that the source's `answers` says.
        choices: The columns of the choices, or one that holds a list of them.
        id: The row's id.
        group: Rows with the same value stay on one side of a split.
        picture: The path or id of the row's picture among the source's `pictures`, or its end.
    """

    text: str = "text"
    text_pair: str | None = None
    label: str | None = None
    choices: str | tuple[str, ...] | None = None
    id: str | None = None
    group: str | None = None
    picture: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _settle(cls, raw: Any) -> Any:
        """Columns of a table without a header may be given by number."""
        if not isinstance(raw, dict):
            return raw
        numbers = {role: str(value) for role, value in raw.items() if type(value) is int}
        return {role: _as_tuple(value) for role, value in (raw | numbers).items()}

    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of each role that is named."""
        found: dict[str, tuple[str, ...]] = {}
        for role, value in self.model_dump().items():
            if isinstance(value, str):
                several = columns_in(value) if role in ("text", "text_pair") else ()
                found[role] = several or (value,)
            elif value is not None:
                found[role] = tuple(value)
        return found


def columns_in(pattern: str) -> tuple[str, ...]:
    """The columns in a pattern such as ``"{title}. {body}"``; none in the name of one column."""
    return tuple(_COLUMN.findall(pattern))


def filled(pattern: str, values: Mapping[str, str]) -> str:
    """A pattern with the values of its columns."""
    return _COLUMN.sub(lambda match: values[match[1]], pattern)


class Join(Strict):
    """Another table, whose columns are added to the records with the same value in one column.

    Attributes:
        by: The column. A text file without columns is a list of its values, one per line.
        files: Its files, written as the source's. Listed by split, they decide the split of a
            record.
    """

    by: str
    files: Mapping[str, tuple[str, ...]] = Field(strict=False)

    @model_validator(mode="before")
    @classmethod
    def _settle(cls, raw: Any) -> Any:
        return raw | {"files": _by_split(raw.get("files"))} if isinstance(raw, dict) else raw

    @property
    def patterns(self) -> dict[Split | None, tuple[str, ...]]:
        """Patterns by split; under None if they are not listed by split."""
        return _patterns(self.files)


class Pictures(Strict):
    """The pictures that rows name.

    Attributes:
        files: PNG and JPEG files, or files of region features (`corpora.region_readers`), folders
            or archives of them; written as the source's.
        most_regions: Regions that are kept of a picture: the largest, of features the first.
        region_dim: Numbers of a region in files of features; left out where the files are pictures.
        object_classes: Number of classes of objects from which the detector chose one for each
            region, if the files of features say which; left out, none are read.
        attribute_classes: The same for attributes, such as colours.
    """

    files: tuple[str, ...] = Field(strict=False, min_length=1)
    most_regions: int = Field(default=36, ge=1, le=1000)
    region_dim: int | None = Field(default=None, ge=1, le=65536)
    object_classes: int | None = Field(default=None, ge=2, le=65536)
    attribute_classes: int | None = Field(default=None, ge=2, le=65536)

    @model_validator(mode="before")
    @classmethod
    def _settle(cls, raw: Any) -> Any:
        raw = raw if isinstance(raw, dict) else {"files": raw}
        files = raw.get("files")
        return raw | ({"files": [files]} if isinstance(files, str) else {})

    @property
    def classes(self) -> tuple[int, ...]:
        """Numbers of classes that a detector tells of each region: of objects, then attributes."""
        return tuple(filter(None, (self.object_classes, self.attribute_classes)))


class Source(Strict):
    """A corpus or a dataset, as described by its YAML file.

    Attributes:
        name: The name of the YAML file, without suffix.
        description: One sentence for people.
        language: ``en``, ``zh``… (ISO 639, with a region if it matters).
        licence: Terms of the text: an SPDX name, or words.
        origin: Where it is published, one place or several, for ``fourstage fetch`` and lineage.
        fetch: ``none``: nothing can be fetched automatically.
        format: Reader of the files; by default inferred from each file's suffix.
        encoding: Encoding of text files; the entries of a list are tried in order, file by file.
        files: Paths, folders, globs or addresses, as one list or by split.
            ``archive.zip!member.tsv`` selects members of an archive.
        fields: The column (or JSON key) of each role.
        answers: Kind of answer: ``label``, ``number``, ``label_set``, ``spans``, ``extract``,
            ``choice``, ``text``, or a project's own.
        answer_language: Language of answers that are texts; by default the source's own.
        label_names: Name of each label in the files, as a mapping, or as a list of the names of
            0, 1, 2…; for tags, the names with their prefixes; for a ``text``, what to write.
        separator: What stands between the labels of a ``label_set`` that is one text.
        tag_scheme: Meaning of the prefixes of tags; by default ``iob2``.
        span_ends: ``inclusive``: the end of a span is its last character, not the one after it.
        join: Tables whose columns are added to the records.
        where: Column → value, or list of values: other records are left out. Compared as text,
            regardless of case.
        contract: Name of the suite that the profile must fulfil, or several. By default a corpus
            has ``corpus`` (in Chinese ``corpus_zh``) and labelled rows have ``dataset``; other
            answers, and captions of which `where` lets one label through, have ``answers``, texts
            ``targets`` as well.
        document: What counts as one document of a text file; empty for the reader's default.
        sentences: How text is split into sentences: by the ``rules`` of its language, or one per
            line with ``lines`` (utterances of a dialogue, verses, text that is already split).
        columns: Names of the columns of a table without a header line.
        quotes: Meaning of ``"`` in a table: ``standard`` quotes, or ``none`` for a plain character;
            by default standard in CSV, none in TSV.
        packages: For ``python_docs``: distributions, or ``stdlib``.
        markings: Strings that are ignored when texts are compared, such as entity markers.
        rows_per_label: Keep at most this many rows per label, chosen by the digest of their ids.
        minimum_words: Shorter texts are removed (counted in characters in unspaced scripts).
        set_aside: Share of the training rows that becomes the rows of each split that is not
            listed (dev, test), at most .3. Rows of one text or group stay together, so the share
            is met only approximately.
        pictures: The pictures that rows name; their regions are stored beside the rows.
    """

    name: str
    description: str = ""
    language: str
    licence: str
    origin: tuple[Origin, ...] = Field(default=(), strict=False)
    fetch: Literal["none"] | None = None
    format: str | None = None
    encoding: tuple[str, ...] = Field(default=("utf-8",), strict=False)
    files: Mapping[str, tuple[str, ...]] = Field(default_factory=dict, strict=False)
    fields: Fields = Field(default_factory=Fields)
    answers: str = "label"
    answer_language: str | None = None
    label_names: Mapping[str, str] = Field(default_factory=dict)
    separator: str | None = None
    tag_scheme: Literal["iob1", "iob2", "bioes", "bilou", "bmes"] | None = None
    span_ends: Literal["inclusive", "exclusive"] | None = None
    join: tuple[Join, ...] = Field(default=(), strict=False)
    where: Mapping[str, tuple[str, ...]] = Field(default_factory=dict, strict=False)
    contract: tuple[str, ...] = Field(default=(), strict=False)
    document: (
        Literal[
            "file",
            "line",
            "paragraphs",
            "heading",
            "module",
            "object",
            "passage",
            "session",
            "triple",
        ]
        | None
    ) = None
    sentences: Literal["rules", "lines"] = "rules"
    columns: tuple[str, ...] = Field(default=(), strict=False)
    quotes: Literal["standard", "none"] | None = None
    packages: tuple[str, ...] = Field(default=(), strict=False)
    markings: tuple[str, ...] = Field(default=(), strict=False)
    rows_per_label: int | None = Field(default=None, ge=1)
    minimum_words: int = Field(default=0, ge=0)
    set_aside: float = Field(default=0.1, gt=0, le=0.3, allow_inf_nan=False)
    pictures: Pictures | None = None

    _project: Path | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _settle(cls, raw: Any) -> Any:
        """Turn single values into lists, and files into a mapping from split to patterns."""
        if not isinstance(raw, dict):
            return raw
        raw = dict(raw)
        for key in ("encoding", "columns", "packages", "markings", "contract"):
            if isinstance(raw.get(key), str):
                raw[key] = [raw[key]]
        if isinstance(raw.get("origin"), dict):
            raw["origin"] = [raw["origin"]]
        if isinstance(raw.get("join"), dict):
            raw["join"] = [raw["join"]]
        if "files" in raw:
            raw["files"] = _by_split(raw["files"])
        names = raw.get("label_names")
        if isinstance(names, list):
            raw["label_names"] = {str(number): name for number, name in enumerate(names)}
        if isinstance(raw.get("where"), dict):
            raw["where"] = {
                column: tuple(map(_as_text, value if isinstance(value, list) else [value]))
                for column, value in raw["where"].items()
            }
        return raw

    @model_validator(mode="after")
    def _check(self) -> Source:
        if len(self.name) > _LONGEST_NAME:
            raise _wrong(
                f"name: expected at most {_LONGEST_NAME} characters (it names files), "
                f"got {len(self.name):,}"
            )
        if not _NAME.fullmatch(self.name):
            raise _wrong(
                "name: expected letters, digits, '-' and '_' (it names files), "
                f"got {self.name[:60]!r}{look_alikes(self.name)}"
            )
        for key, code in (("language", self.language), ("answer_language", self.answer_language)):
            if code is not None and not _LANGUAGE.fullmatch(code):
                raise _wrong(f"{key}: expected a code such as en or zh, got {code[:60]!r}")
        if not self.licence.strip():
            raise _wrong(
                "licence: expected an SPDX name or words such as 'not stated', got nothing"
            )
        splits = set(self.files)
        if splits and splits != {ALL}:
            for split in sorted(splits - set(SPLITS)):
                raise _wrong(
                    f"files.{split[:40]}: expected a list of files, or the splits train, dev and "
                    f"test{did_you_mean(split, SPLITS).rstrip('.')}"
                )
            if "train" not in splits:
                raise _wrong("files: expected at least the split 'train'")
        for split, patterns in self.files.items():
            if not patterns or any(not pattern.strip() or "\0" in pattern for pattern in patterns):
                raise _wrong(
                    f"files{_split_suffix(split)}: expected paths or patterns, one or more,"
                    " none empty"
                )
        if bool(self.files) == bool(self.packages):
            if self.files:
                raise _wrong("expected either 'files' or 'packages', got both")
            raise _wrong("files: expected a list of files, folders or patterns, got nothing")
        if self.format in _INSTEAD:
            raise _wrong(f"format: {self.format}: {_INSTEAD[self.format]}")
        if self.packages and self.format not in (None, "python_docs"):
            raise _wrong(f"format: expected python_docs with 'packages', got {self.format!r}")
        if not self.is_dataset and splits and splits != {ALL}:
            raise _wrong(
                "files: a corpus (no 'label' among its fields) is split by us; expected one list"
            )
        self._check_answers()
        self._check_pictures()
        self._check_join()
        self._check_set_aside()
        if not self.encoding:
            raise _wrong("encoding: expected a name such as utf-8, got an empty list")
        for encoding in self.encoding:
            _check_encoding(encoding)
        if self.fetch == "none" or not self.origin:
            return self
        for origin in self.origin:
            if origin.sha256 is None and not origin.files:
                raise _wrong(
                    "origin: expected the sha256 of what is published (or 'fetch: none' where it "
                    "cannot be fetched)"
                )
        return self

    def _check_answers(self) -> None:
        """Check that the keys fit the kind of answer."""
        fields, kind = self.fields, self.answers
        if not _ANSWERS.fullmatch(kind):
            raise _wrong(f"answers: expected one of {', '.join(ANSWERS)}, got {kind[:40]!r}")
        if not self.is_dataset and kind != "label":
            raise _wrong(f"answers: {kind}: expected 'fields' to name the column as 'label'")
        of = {
            "fields.choices": (bool(fields.choices), ("choice",)),
            "rows_per_label": (self.rows_per_label is not None, ("label",)),
            "label_names": (bool(self.label_names), ("label", "label_set", "spans", "text")),
            "answer_language": (self.answer_language is not None, ("text",)),
            "separator": (self.separator is not None, ("label_set",)),
            "tag_scheme": (self.tag_scheme is not None, ("spans",)),
            "span_ends": (self.span_ends is not None, ("spans",)),
        }
        for key, (given, kinds) in of.items():
            if given and kind not in kinds:
                raise _wrong(f"{key}: only with `answers: {' | '.join(kinds)}`, got {kind!r}")
        if kind == "extract" and fields.text_pair is None:
            raise _wrong("fields.text_pair: expected the column of the context of `extract`")
        if kind == "choice" and not fields.choices:
            raise _wrong("fields.choices: expected the columns of the choices, got nothing")
        if kind in ("spans", "choice") and fields.text_pair is not None:
            raise _wrong(f"fields.text_pair: a row of {kind!r} has one text; leave it out")
        pointed = {"spans": fields.text, "extract": fields.text_pair}.get(kind)
        if pointed and columns_in(pointed):
            raise _wrong(f"fields: the text that {kind!r} point into must be one column")

    def _check_pictures(self) -> None:
        """Check that rows name the pictures that there are."""
        if (self.pictures is None) != (self.fields.picture is None):
            raise _wrong(
                "pictures: expected 'pictures' with the files and 'picture' among the fields with "
                "the column that names one; got only one of them"
            )
        if self.pictures and not (self.is_dataset and self.answers in SEEN):
            raise _wrong(
                f"pictures: only with labelled rows and `answers: {' | '.join(SEEN)}`, got "
                f"{self.answers!r}"
            )
        if self.pictures:
            self._check_classes(self.pictures)

    def _check_classes(self, pictures: Pictures) -> None:
        """Check that only a detector tells classes, and attributes only of objects."""
        if pictures.object_classes and not pictures.region_dim:
            raise _wrong(
                "pictures.object_classes: only with region_dim, which says that the files are a"
                " detector's; regions that are found in pictures have no such classes"
            )
        if pictures.attribute_classes and not pictures.object_classes:
            raise _wrong("pictures.attribute_classes: only beside object_classes; say both")

    def _check_join(self) -> None:
        """Check that at most one list of files decides the splits."""
        by_split = [join for join in self.join if set(join.files) != {ALL}]
        for join in by_split:
            for split in sorted(set(join.files) - set(SPLITS)):
                raise _wrong(
                    f"join.files.{split[:40]}: expected a list of files, or the splits train, dev "
                    f"and test{did_you_mean(split, SPLITS).rstrip('.')}"
                )
            if "train" not in join.files:
                raise _wrong("join.files: expected at least the split 'train'")
        if self.format == "parallel":  # line n of a split belongs to line n of the same split
            if any(set(join.files) != set(self.files) for join in self.join):
                raise _wrong("join.files: expected the splits of 'files', for parallel text")
            return
        if len(by_split) + (set(self.files) != {ALL}) > 1:
            raise _wrong("join.files: the splits are listed twice; list them in one place")

    def _check_set_aside(self) -> None:
        """Check that a split is made of what is set aside."""
        if "set_aside" not in self.model_fields_set:
            return
        if not self.is_dataset:
            raise _wrong("set_aside: only with labelled rows; a corpus has its own held-out share")
        if self.listed_splits.issuperset(SPLITS):
            raise _wrong("set_aside: train, dev and test are all listed; leave it out")

    @property
    def is_dataset(self) -> bool:
        """Whether its rows have labels."""
        return self.fields.label is not None

    @property
    def suites(self) -> tuple[str, ...]:
        """Names of the suites that its profile must fulfil."""
        if self.contract:
            return self.contract
        if self.is_dataset:
            of_texts = ("targets",) if self.answers == "text" else ()
            several = self.answers == "label" and not self.has_captions
            return ("dataset",) if several else ("answers", *of_texts)
        return ("corpus_zh",) if main_language(self.language) == "zh" else ("corpus",)

    @property
    def project(self) -> Path | None:
        """The folder searched first for its relative files; None for a built-in source."""
        return self._project

    @property
    def patterns(self) -> dict[Split | None, tuple[str, ...]]:
        """Patterns by split, in the order train, dev, test; under None if Fourstage splits."""
        return _patterns(self.files)

    def columns_named(self) -> list[tuple[str, str]]:
        """Every column that the source names, after the key that names it."""
        fields = self.fields.columns().items()
        return [
            *((f"fields.{role}", column) for role, columns in fields for column in columns),
            *(("where", column) for column in self.where),
            *(("join.by", join.by) for join in self.join),
        ]

    def columns_needed(self) -> list[tuple[str, str]]:
        """Those that each of its files must have; others may come from a joined table."""
        return [("join.by", self.join[0].by)] if self.join else self.columns_named()

    @property
    def listed_splits(self) -> frozenset[Split]:
        """The splits that the source lists; the others are carved out of train."""
        listed = (self.patterns, *(join.patterns for join in self.join))
        return frozenset(split for patterns in listed for split in patterns if split)

    @property
    def has_captions(self) -> bool:
        """Whether its rows say what is true of their pictures: `where` lets one label through."""
        chosen = self.where.get(self.fields.label or "", ())
        return self.pictures is not None and self.answers == "label" and len(chosen) == 1

    def settings(self) -> dict[str, Any]:
        """The settings that, besides the files, determine the prepared text; plain JSON."""
        return self.model_dump(
            mode="json",
            exclude={
                **dict.fromkeys(
                    ("description", "origin", "fetch", "files", "contract", "licence"), True
                ),
                "join": {"__all__": {"files"}},
                **({"pictures": {"files"}} if self.pictures else {}),
            },
        )


def _by_split(files: Any) -> Any:
    """Files as a mapping from split, or `ALL`, to patterns."""
    if isinstance(files, str | list):
        files = {ALL: files}
    if not isinstance(files, dict):
        return files
    return {
        split: (patterns,) if isinstance(patterns, str) else _as_tuple(patterns)
        for split, patterns in files.items()
    }


def _patterns(files: Mapping[str, tuple[str, ...]]) -> dict[Split | None, tuple[str, ...]]:
    if ALL in files:
        return {None: files[ALL]}
    return {split: files[split] for split in SPLITS if split in files}


def _as_text(value: Any) -> Any:
    """A value of YAML as it is written in a table."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _split_suffix(split: str) -> str:
    return "" if split == ALL else f".{split}"


def _check_encoding(name: str) -> None:
    import codecs

    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError) as error:
        raise _wrong(
            f"encoding: {name[:40]!r} is not an encoding; utf-8 and gb18030 are"
        ) from error
    # rot13, base64, zip… are codecs, too; `idna` and the escapes do not encode text files.
    if not getattr(codec, "_is_text_encoding", True) or codec.name in (
        "idna",
        "punycode",
        "unicode_escape",
        "raw_unicode_escape",
        "raw-unicode-escape",
        "unicode-escape",
        "undefined",
        "mbcs",
        "oem",
    ):
        raise _wrong(f"encoding: {name[:40]!r} is not an encoding of text files; utf-8 is")


def source_names(folders: Sequence[Path] = ()) -> list[str]:
    """Names of all sources, in `sources/` of the project folders and built-in, sorted."""
    return sorted({path.stem for folder, _ in _places(folders) for path in folder.glob("*.yaml")})


def load_source(name: str, folders: Sequence[Path] = ()) -> Source:
    """The source with a name, from the first folder that has it, fully checked.

    Args:
        name: File name without ``.yaml``.
        folders: Project folders; `sources/` in each is searched before the built-in ones.

    Raises:
        UnknownNameError: No folder has it.
        RecipeError: Its YAML is not a valid source; the message names file, key, expected and got.
    """
    for folder, project in _places(folders):
        path = folder / f"{name}.yaml"
        # A name with a path separator could reach files outside the folder.
        if _NAME.fullmatch(name) and path.is_file():
            source = read_source(path, project)
            own = [file.stem for folder in folders for file in folder.glob("answers/*.py")]
            if source.answers not in (*ANSWERS, *own):
                where = f"sources/{path.name}: answers"
                raise UnknownNameError(where, source.answers, "a kind of answer", [*ANSWERS, *own])
            return source
    raise UnknownNameError(
        "source",
        name,
        "a source",
        source_names(folders),
        "Your own source is a file sources/NAME.yaml next to your recipes.",
    )


def read_source(path: Path, project: Path | None = None) -> Source:
    """The source in one YAML file.

    Args:
        path: The file.
        project: Folder searched first for its relative files.

    Raises:
        RecipeError: It is not a valid source.
    """
    where = f"sources/{path.name}"
    facts = read_document(path, where).value
    if not isinstance(facts, dict):
        raise RecipeError(f"{where}: expected a mapping of keys to values, got {kind_of(facts)}.")
    source = parse_source(facts, where)
    if source.name != path.stem:
        raise RecipeError(
            f"{where}: name: expected the file's own, {path.stem!r}, got {source.name!r}."
        )
    source._project = project
    return source


def parse_source(raw: Mapping[str, Any], where: str = "source") -> Source:
    """The source that a plain mapping describes.

    Raises:
        RecipeError: It is not valid; the message lists every error, one per line.
    """
    if has_half_character(raw):
        raise RecipeError(
            f"{where}: expected text, got half a surrogate pair (\\ud800 and its like)."
        )
    try:
        return Source.model_validate(dict(raw))
    except ValidationError as error:
        lines = dict.fromkeys(_explain(where, raw, one) for one in error.errors())
        raise RecipeError("\n".join(lines)) from None


def has_half_character(value: Any) -> bool:
    """Whether a text in a plain value has half a surrogate pair, which no file can have."""
    if isinstance(value, str):
        return not value.isascii() and bool(_HALF.search(value))
    if isinstance(value, Mapping):
        return any(has_half_character(part) for pair in value.items() for part in pair)
    return isinstance(value, list | tuple) and any(map(has_half_character, value))


def _places(folders: Iterable[Path]) -> list[tuple[Path, Path | None]]:
    return [*((folder / "sources", folder) for folder in folders), (BUILT_IN, None)]


def _explain(where: str, raw: Mapping[str, Any], error: ErrorDetails) -> str:
    """The message for one error: file: key: expected, got, nearest name."""
    loc = [part for part in error["loc"] if part != ALL]
    if (
        loc[:1] == ["origin"]
        and len(loc) > 1
        and loc[1] == 0
        and isinstance(raw.get("origin"), dict)
    ):
        loc = ["origin", *loc[2:]]
    place = ""
    for part in loc:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else f"{part}"
    place = place[:120]
    prefix = f"{where}: {place}: " if place else f"{where}: "
    kind = error["type"]
    if kind == "extra_forbidden":
        known = _known_keys(tuple(loc[:-1]))
        key = str(loc[-1])
        if key in _INSTEAD:
            return f"{prefix}{_INSTEAD[key]}."
        return str(UnknownNameError(prefix.removesuffix(": "), key, "a key here", known))
    if kind == "missing":
        example = {
            "name": "the file's own name",
            "language": "a code such as en or zh",
            "licence": "an SPDX name, or words such as 'not stated'",
        }.get(str(loc[-1]), "a value")
        return f"{prefix}expected {example}, got nothing; add it."
    if kind == "source":
        return f"{prefix}{error['msg']}."
    context = error.get("ctx") or {}
    expected = limit_of(kind, context) or _EXPECTED.get(kind)
    if expected is None:
        expected = str(context.get("expected") or error["msg"])
    got, read_so = error["input"], ""
    if isinstance(got, bool):
        read_so = " (YAML reads yes, no, on and off so: quote a word you mean)"
    return f"{prefix}expected {expected}, got {kind_of(got)}{read_so}."


_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "tuple_type": "a list",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "dict_type": "a mapping",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_unicode": "text",
}


def _known_keys(path: tuple[Any, ...]) -> list[str]:
    model: type[BaseModel] = Source
    if path and path[0] == "fields":
        model = Fields
    elif path and path[0] == "join":
        model = Join
    elif path and path[0] == "pictures":
        model = Pictures
    elif path and path[0] == "origin":
        model = OriginFile if "files" in path else Origin
    return sorted(cast(Mapping[str, Any], model.model_fields))
