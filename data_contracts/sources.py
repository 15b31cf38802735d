"""Sources: where a corpus or a dataset comes from, how it is read, and what it promises.

A minimal source has a name, a language, a licence, files and fields::

    name: mine
    language: en
    licence: CC0-1.0
    files: [notes/*.jsonl]
    fields: {text: body}

With a ``label`` among its fields it is a dataset, else a corpus. `docs/tutorial.md` explains one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from data_contracts.records import SPLITS, Split
from fourstage.errors import RecipeError, UnknownNameError, did_you_mean, look_alikes
from fourstage.strict_yaml import kind_of, read_document

BUILT_IN = Path(__file__).parent / "sources"
ALL = "all"  # the key of `Source.patterns` if the files are not listed by split

_LONGEST_NAME = 80
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{_LONGEST_NAME - 1}}}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


_INSTEAD = "not supported yet; what is: whole texts, or pairs of them, with one label each"
_TAGGED = f"tagged words are {_INSTEAD}"
_QUESTIONS = f"questions answered from a text are {_INSTEAD}"
# Formats and fields that people try but that no reader or head supports.
NOT_YET = {
    **dict.fromkeys(("conll", "conllu", "conll2003", "iob", "bio", "brat"), _TAGGED),
    **dict.fromkeys(("tokens", "tags", "ner_tags", "pos_tags", "spans", "entities"), _TAGGED),
    **dict.fromkeys(("squad", "question", "context", "answer", "answers"), _QUESTIONS),
}


def _as_tuple(value: Any) -> Any:
    """Lists, the only sequences in YAML, as tuples, which a frozen source needs."""
    return tuple(value) if isinstance(value, list) else value


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("source", "{message}", {"message": message})


class OriginFile(_Strict):
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


class Origin(_Strict):
    """The public origin of the data: one file, or a repository at a commit.

    Attributes:
        url: The file, or a repository on GitHub.
        commit: The commit of the repository.
        path: The file in the repository; words or a pattern if nothing is fetched.
        sha256: Digest of the published bytes of that file.
        save_as: As in `OriginFile`.
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


class Fields(_Strict):
    """The column (or JSON key) of each role."""

    text: str = "text"
    text_pair: str | None = None
    label: str | None = None
    id: str | None = None
    group: str | None = None


class Source(_Strict):
    """A corpus or a dataset, as described by its YAML file.

    Attributes:
        name: The name of the YAML file, without suffix.
        description: One sentence for people.
        language: ``en``, ``zh``… (ISO 639, with a region if it matters).
        licence: Terms of the text: an SPDX name, or words.
        origin: Where it is published, one place or several, for ``fourstage fetch`` and lineage.
        fetch: ``none``: nothing can be fetched automatically.
        format: Name of a file in ``corpora/readers``; by default inferred from each file's suffix.
        encoding: Encoding of text files; the entries of a list are tried in order, file by file.
        files: Paths, folders, globs or addresses, as one list or by split.
            ``archive.zip!member.tsv`` selects members of an archive.
        fields: Role → column.
        contract: Name of the suite that the profile must fulfil, or several; empty for ``corpus``
            (in Chinese ``corpus_zh``) or ``dataset``.
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
    contract: tuple[str, ...] = Field(default=(), strict=False)
    document: (
        Literal["file", "line", "paragraphs", "heading", "module", "object", "passage", "session"]
        | None
    ) = None
    sentences: Literal["rules", "lines"] = "rules"
    columns: tuple[str, ...] = Field(default=(), strict=False)
    quotes: Literal["standard", "none"] | None = None
    packages: tuple[str, ...] = Field(default=(), strict=False)
    markings: tuple[str, ...] = Field(default=(), strict=False)
    rows_per_label: int | None = Field(default=None, ge=1)
    minimum_words: int = Field(default=0, ge=0)

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
        files = raw.get("files")
        if isinstance(files, str | list):
            raw["files"] = {ALL: files}
        if isinstance(raw.get("files"), dict):
            raw["files"] = {
                split: (patterns,) if isinstance(patterns, str) else _as_tuple(patterns)
                for split, patterns in raw["files"].items()
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
        if not _LANGUAGE.fullmatch(self.language):
            raise _wrong(f"language: expected a code such as en or zh, got {self.language[:60]!r}")
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
                    f"files{_split_suffix(split)}: expected paths or patterns, got an empty one"
                )
        if bool(self.files) == bool(self.packages):
            if self.files:
                raise _wrong("expected either 'files' or 'packages', got both")
            raise _wrong("files: expected a list of files, folders or patterns, got nothing")
        if self.format in NOT_YET:
            raise _wrong(f"format: {self.format}: {NOT_YET[self.format]}")
        if self.packages and self.format not in (None, "python_docs"):
            raise _wrong(f"format: expected python_docs with 'packages', got {self.format!r}")
        if not self.is_dataset and splits and splits != {ALL}:
            raise _wrong(
                "files: a corpus (no 'label' among its fields) is split by us; expected one list"
            )
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
            return ("dataset",)
        return ("corpus_zh",) if self.language == "zh" else ("corpus",)

    @property
    def project(self) -> Path | None:
        """The folder searched first for its relative files; None for a built-in source."""
        return self._project

    @property
    def patterns(self) -> dict[Split | None, tuple[str, ...]]:
        """Patterns by split, in the order train, dev, test; under None if Fourstage splits."""
        if ALL in self.files:
            return {None: self.files[ALL]}
        return {split: self.files[split] for split in SPLITS if split in self.files}

    def settings(self) -> dict[str, Any]:
        """The settings that, besides the files, determine the prepared text; plain JSON."""
        return self.model_dump(
            mode="json", exclude={"description", "origin", "fetch", "files", "contract", "licence"}
        )


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
            return read_source(path, project)
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
    if _has_half_character(raw):
        raise RecipeError(
            f"{where}: expected text, got half a surrogate pair (\\ud800 and its like)."
        )
    try:
        return Source.model_validate(dict(raw))
    except ValidationError as error:
        lines = dict.fromkeys(_explain(where, raw, one) for one in error.errors())
        raise RecipeError("\n".join(lines)) from None


def _has_half_character(value: Any) -> bool:
    """Whether a text in a plain value has half a surrogate pair, which file names cannot have."""
    if isinstance(value, str):
        return any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, Mapping):
        return any(_has_half_character(part) for pair in value.items() for part in pair)
    return isinstance(value, list | tuple) and any(map(_has_half_character, value))


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
        if key in NOT_YET:
            return f"{prefix}{key}: {NOT_YET[key]}."
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
    expected = _EXPECTED.get(kind)
    if expected is None:
        context = error.get("ctx") or {}
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
    "greater_than_equal": "a whole number of at least 1",
    "string_unicode": "text",
}


def _known_keys(path: tuple[Any, ...]) -> list[str]:
    model: type[BaseModel] = Source
    if path and path[0] == "fields":
        model = Fields
    elif path and path[0] == "origin":
        model = OriginFile if "files" in path else Origin
    return sorted(cast(Mapping[str, Any], model.model_fields))
