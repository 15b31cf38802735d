"""Prepares labelled rows: checks labels, splits without leaks, resolves overlap, profiles.

What happens to a row depends on later rows, so rows are spooled to disk once. Only their ids and
digests stay in memory.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow

from corpora.alike_rows import AlikeRows, group_index
from corpora.answer_counts import answer_counts, check_learnable
from corpora.answers import after_cleaning, names_in, num_in, texts_in, without_offsets
from corpora.arrow_files import TableWriter
from corpora.cleaning import clean
from corpora.evaluation_rows import EvaluationRows, Place
from corpora.identity import marked_form, normal_form, text_digest, text_key
from corpora.labels import check_kinds, check_names, check_seen
from corpora.pictures import KnownPicture, read_pictures
from corpora.prepared import GROUPS
from corpora.profile import measure
from corpora.reading import read_rows
from corpora.regions import NoRegionsError
from corpora.rejections import Counts, RejectionLog, nothing_left
from corpora.snapshot import Snapshot
from corpora.splits import position
from corpora.target_language import TrigramProfiles, are_told_apart
from corpora.targets import measure_targets
from corpora.training_rows import training_order
from data_contracts.records import SPLITS, Rejected, Row, Split
from data_contracts.sources import Source
from fourstage.digests import unfinished, write_atomically
from fourstage.errors import ContractViolation, RecipeError
from fourstage.label_order import in_order

Overlap = Literal["drop_from_train", "refuse", "report"]

# With `rows_per_label`, this many times as many rows are considered, because some are duplicates.
_CANDIDATES = 2
_SHOWN = 20

_ROW_FIELDS = [
    pyarrow.field("id", pyarrow.string(), nullable=False),
    pyarrow.field("text", pyarrow.string(), nullable=False),
    pyarrow.field("text_pair", pyarrow.string()),
    pyarrow.field("label", pyarrow.string(), nullable=False),
    pyarrow.field("split", pyarrow.string(), nullable=False),
    pyarrow.field("location", pyarrow.string(), nullable=False),
    pyarrow.field("choices", pyarrow.list_(pyarrow.string())),
    pyarrow.field("picture", pyarrow.string()),  # in the file of regions, if there is one
]
ROWS = pyarrow.schema(_ROW_FIELDS)
SPOOL = pyarrow.schema([*_ROW_FIELDS, pyarrow.field("measures", pyarrow.string())])


_OF_TARGETS = [
    pyarrow.field("target_chars", pyarrow.int64()),
    pyarrow.field("target_words", pyarrow.int64()),
    pyarrow.field("length_ratio", pyarrow.float64()),
    pyarrow.field("copy_rate", pyarrow.float64()),
    pyarrow.field("target_script_share", pyarrow.float64()),
    pyarrow.field("target_language_margin", pyarrow.float64()),
]


def dataset_profile(measures: list[pyarrow.Field], answers: str = "label") -> pyarrow.Schema:
    """The columns of a dataset's profile: those of every profile, then its own.

    Args:
        measures: Fields of every profile.
        answers: Kind of answer.
    """
    return pyarrow.schema(
        [
            *measures,
            pyarrow.field("label", pyarrow.string()),
            pyarrow.field("num_answers", pyarrow.int64()),
            pyarrow.field("number", pyarrow.float64()),
            pyarrow.field("text_pair_chars", pyarrow.int64()),
            pyarrow.field("duplicate_of_train", pyarrow.string()),
            pyarrow.field("contradictory", pyarrow.bool_()),
            *(_OF_TARGETS if answers == "text" else ()),
        ]
    )


@dataclass
class _Known:
    """What stays in memory of a row."""

    id: str
    location: str
    split: Split | None
    answer: str  # a label, number or choice as it is; of a longer answer its digest
    names: tuple[str, ...]  # in the answer: labels, or types of spans
    num_answers: int
    same: str  # digest of the text with markings: equal means a repeated row
    plain: str  # digest without markings: equal means a shared text
    key: str  # what rows of one group share: the source's group, or the text
    elsewhere: Place | None  # place of an evaluation row of another dataset that it gives away


class DatasetWriter:
    """The preparation of one dataset.

    Args:
        source: The dataset.
        folder: Where to write.
        overlap: What happens to training rows whose text also occurs in evaluation rows.
        measures: Fields of every profile.
        elsewhere: Evaluation rows of another dataset, which are treated as its own.
        training_rows: How many training rows to keep, and the seed that draws them; None: all.
    """

    def __init__(
        self,
        source: Source,
        folder: Path,
        overlap: Overlap,
        measures: list[pyarrow.Field],
        elsewhere: EvaluationRows | None = None,
        training_rows: tuple[int, int] | None = None,
    ):
        from scipy.cluster.hierarchy import DisjointSet

        self._source = source
        self._folder = folder
        self._overlap = overlap
        self._elsewhere = elsewhere
        self._training_rows = training_rows
        self._profile_schema = dataset_profile(measures, source.answers)
        self._rows: list[_Known] = []
        self._groups = DisjointSet()  # of the rows' keys
        self._alike = AlikeRows(largest=source.set_aside)
        self._kinds: Counter[str] = Counter()
        self._first_of_kind: dict[str, str] = {}
        self._cleaned_away: Counter[str] = Counter()
        # With `rows_per_label`: for each label, a heap of the rows with the least digests.
        self._candidates: defaultdict[str, list[tuple[int, int, str, str]]] = defaultdict(list)
        self._details: dict[str, Any] = {}

    def write(self, snapshot: Snapshot) -> Counts:
        """Write the rows, labels, profile, rejections and counts; and groups, if there are some.

        Raises:
            ContractViolation: Files, labels or overlap break a rule.
            RecipeError: There are not as many training rows as asked for, or more labels.
        """
        spool = unfinished(self._folder / "spool.arrow")
        try:
            with RejectionLog(self._folder) as ledger:
                self._pictures = read_pictures(self._source, snapshot, self._folder)
                with TableWriter(spool, SPOOL) as writer:
                    self._read(snapshot, ledger, writer)
                if not self._rows:
                    raise ContractViolation(nothing_left(self._source, snapshot, ledger))
                self._check_labels()
                self._join_alike(spool)
                gone = self._sample(ledger)
                # Overlap first: rows carved out afterwards must not contain test texts either.
                duplicates = self._settle_overlap(ledger, gone)
                splits = self._split(gone)
                if self._training_rows is not None:
                    self._draw(*self._training_rows, splits, gone, ledger)
                    duplicates = self._left(duplicates, splits, gone)
                labels = self._check_splits(splits, gone, ledger)
                kept = self._finish(spool, splits, gone, duplicates)
                if self._source.fields.group is not None:
                    self._write_groups(gone)
                ledger.counts.details = self._details
                ledger.finish(kept)
        finally:
            spool.unlink(missing_ok=True)
        write_atomically(
            self._folder / "labels.json", json.dumps(labels, ensure_ascii=False, indent=1) + "\n"
        )
        return ledger.counts

    def _read(self, snapshot: Snapshot, ledger: RejectionLog, spool: TableWriter) -> None:
        captions = self._source.has_captions
        ids: set[str] = set()
        taken: set[tuple[Split | None, str]] = set()
        for split, item in read_rows(self._source, snapshot):
            ledger.counts.read += 1
            if isinstance(item, Rejected):
                ledger.reject(item)
                continue
            if (split, item.id) in taken:
                ledger.reject(Rejected(item.id, item.location, "an id that was there before"))
                continue
            taken.add((split, item.id))
            # Train and test are often both numbered from 0; ids are unique in the whole dataset.
            identity = item.id if item.id not in ids else f"{split}:{item.id}"
            if identity in ids:
                ledger.reject(Rejected(item.id, item.location, "an id that was there before"))
                continue
            ids.add(identity)
            item = replace(item, id=identity)
            picture = self._picture(item)
            if isinstance(picture, Rejected):
                ledger.reject(picture)
                continue
            cleaned = self._cleaned(item, ledger)
            if cleaned is None:
                continue
            row, measures = cleaned
            text, pair = row.text, row.text_pair
            if row.choices:  # the same beginning with other choices is another text
                pair = "\n".join(row.choices)
            plain_normal = normal_form(text, self._source.markings)
            own = text_key(text, self._source.markings, plain_normal)
            plain = same = text_digest(text, own, pair)
            if self._source.markings:
                same = text_digest(text, marked_form(text, self._source.markings), pair)
            self._kinds[item.label_type] += 1
            self._first_of_kind.setdefault(item.label_type, item.location)
            key = plain if item.group is None else _named_group(item.group)
            self._groups.add(key)
            if picture is not None:
                # The same text about another picture is another row; rows of one picture, as rows
                # of one text, stay on one side of a split.
                plain, same = (f"{digest} {picture.digest}" for digest in (plain, same))
                self._groups.add(picture.digest)
                if captions:  # by what is true of many pictures, all would be on one side
                    key = picture.digest
                else:
                    self._groups.merge(key, picture.digest)
                row = replace(row, picture=picture.name)
            if self._source.rows_per_label and split in (None, "train"):
                beside = text_digest("", "", pair) + (f" {picture.digest}" if picture else "")
                self._offer(item.label, item.id, len(self._rows), plain_normal, beside)
            elif self._may_be_carved(split):
                self._alike.add(key, _all_of(plain_normal, pair))
            self._rows.append(self._known(row, split, same, plain, key))
            spool.add(
                {
                    "id": row.id,
                    "text": text,
                    "text_pair": row.text_pair,
                    "label": row.label,
                    "split": split or "",
                    "location": row.location,
                    "choices": row.choices,
                    "picture": row.picture,
                    "measures": json.dumps(measures),
                },
                len(text) + len(pair or "") + 512,
            )
        if self._cleaned_away:
            self._details["characters_removed"] = dict(sorted(self._cleaned_away.items()))
        if self._pictures is not None:
            self._details["pictures"] = self._pictures.counts

    def _may_be_carved(self, split: Split | None) -> bool:
        """Whether rows that are listed under a split are grouped by likeness, then divided."""
        makes_splits = not set(SPLITS) <= self._source.listed_splits
        chosen = self._source.has_captions or self._source.rows_per_label
        return makes_splits and not chosen and split in (None, "train")

    def _join_alike(self, spool: Path) -> None:
        """Merge the groups of rows with near-duplicate texts."""

        def again() -> Iterator[tuple[str, str]]:
            for known, row in zip(self._rows, _spooled(spool), strict=True):
                if self._may_be_carved(known.split):
                    pair = "\n".join(row["choices"]) if row["choices"] else row["text_pair"]
                    normal = normal_form(row["text"], self._source.markings)
                    yield known.key, _all_of(normal, pair)

        for first, *others in self._alike.groups(again):
            for other in others:
                self._groups.merge(first, other)

    def _picture(self, row: Row) -> KnownPicture | Rejected | None:
        """The picture that a row names; None if the source has none."""
        if self._pictures is None or row.picture is None:
            return None
        try:
            return self._pictures.named(row.picture)
        except NoRegionsError as error:
            return Rejected(row.id, row.location, error.reason, detail=error.detail)

    def _known(self, row: Row, split: Split | None, same: str, plain: str, key: str) -> _Known:
        kind = self._source.answers
        names = tuple(map(sys.intern, names_in(kind, row.label)))
        answer = without_offsets(kind, row.label, row.text)
        if kind not in ("label", "number", "choice"):
            answer = hashlib.sha256(answer.encode()).hexdigest()[:16]
        number = num_in(kind, row.label)
        elsewhere = None
        if self._elsewhere is not None and split in (None, "train"):
            targets, markings = texts_in(kind, row.label), self._source.markings
            elsewhere = self._elsewhere.given_away(row.text, row.text_pair, targets, markings)
        return _Known(
            row.id, row.location, split, answer, names, number, same, plain, key, elsewhere
        )

    def _cleaned(self, row: Row, ledger: RejectionLog) -> tuple[Row, dict[str, Any]] | None:
        """The row with cleaned texts, and what was measured of it."""
        cleaned = clean(row.text)
        pair = None if row.text_pair is None else clean(row.text_pair).text
        choices = row.choices and tuple(clean(choice).text for choice in row.choices)
        kind = self._source.answers
        before, after = (row.text, cleaned.text)
        if kind == "extract":
            before, after = (row.text_pair or "", pair or "")
        label = after_cleaning(kind, row.label, before, after)
        if label is None:
            ledger.reject(
                Rejected(row.id, row.location, "cleaning would move the offsets of its label")
            )
            return None
        for kind, count in cleaned.removed.items():
            self._cleaned_away[kind] += count
        if not cleaned.text or pair == "":
            ledger.remove(row.id, row.location, "empty")
            return None
        measures = measure(cleaned.text, self._source.language, cleaned.removed)
        if measures["num_words"] < self._source.minimum_words:
            ledger.remove(
                row.id, row.location, "shorter than minimum_words", str(measures["num_words"])
            )
            return None
        if targets := texts_in(self._source.answers, row.label):
            language = self._source.answer_language or self._source.language
            measures |= measure_targets(targets, cleaned.text, language)
        for what in sorted(set(row.mended)):
            ledger.mend(row.id, row.location, what)
        row = replace(row, text=cleaned.text, text_pair=pair, label=label, choices=choices)
        return row, measures

    def _check_labels(self) -> None:
        check_kinds(self._source.name, self._kinds, self._first_of_kind)
        check_names(self._source.name, Counter(name for row in self._rows for name in row.names))

    def _offer(self, label: str, identity: str, number: int, normal: str, beside: str) -> None:
        """Make a row a candidate if its id's digest is among the least of its label.

        Args:
            label: Its label.
            identity: Its id.
            number: Its number.
            normal: Normal form of its text.
            beside: Digest of its second text or choices, and of its picture.
        """
        assert self._source.rows_per_label is not None
        digest = int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8], "big")
        heap = self._candidates[label]
        heapq.heappush(heap, (-digest, number, normal, beside))
        if len(heap) > _CANDIDATES * self._source.rows_per_label:
            heapq.heappop(heap)  # the largest digest: they are negated

    def _sample(self, ledger: RejectionLog) -> set[int]:
        """Rows that `rows_per_label` removes: duplicates, and those beyond the least digests."""
        most = self._source.rows_per_label
        gone: set[int] = set()
        if most is None:
            return gone
        near = group_index()
        # For each text of `near`, the rows kept that are like it, by what is beside their text: a
        # premise with another hypothesis is another row.
        kept: list[dict[str, int]] = []
        chosen: set[int] = set()
        repeated: dict[int, int] = {}
        for label in sorted(self._candidates):
            taken = 0
            for _, number, normal, beside in sorted(self._candidates[label], reverse=True):
                if taken == most:
                    break
                match = near.match_or_add(normal)
                if match is None:
                    kept.append({})
                alike = kept[-1 if match is None else match]
                if beside in alike:
                    repeated[number] = alike[beside]
                else:
                    alike[beside] = number
                    chosen.add(number)
                    taken += 1
        for number, row in enumerate(self._rows):
            if row.split not in (None, "train") or number in chosen:
                continue
            gone.add(number)
            if number in repeated:
                other = self._rows[repeated[number]].id
                ledger.remove(row.id, row.location, "near duplicate", other)
            else:
                ledger.remove(row.id, row.location, "beyond rows_per_label")
        return gone

    def _split(self, gone: set[int]) -> list[Split]:
        """The split of every row: as listed; a split the source lacks is carved out of train."""
        listed = self._source.listed_splits
        missing: list[Split] = [split for split in ("test", "dev") if split not in listed]
        splits: list[Split] = []
        share = self._source.set_aside  # of the groups
        groups: dict[str, str] = {}
        for group in self._groups.subsets():
            # The smallest key names a group, whichever row came first.
            groups |= dict.fromkeys(group, min(group))
        for row in self._rows:
            split: Split = row.split or "train"
            if split == "train" and missing:
                place = position(groups[row.key], "split")
                for nth, carved in enumerate(missing):
                    if nth * share <= place < (nth + 1) * share:
                        split = carved
            splits.append(split)
        if missing:
            self._give_back(splits, gone, groups)
            self._fill(splits, gone, groups, missing)
            self._details["carved_from_train"] = sorted(missing)
        return splits

    def _give_back(self, splits: list[Split], gone: set[int], groups: dict[str, str]) -> None:
        """Return groups to train if carving took the last of a label, or all rows, from it."""
        while True:
            left = [
                row
                for number, row in enumerate(self._rows)
                if splits[number] == "train" and number not in gone
            ]
            train = {name for row in left for name in row.names}
            emptied = {
                groups[row.key]
                for number, row in enumerate(self._rows)
                if row.split in (None, "train")
                and number not in gone
                and not (left and train.issuperset(row.names))
            }
            if not emptied:
                return
            for number, row in enumerate(self._rows):
                if row.split in (None, "train") and groups[row.key] in emptied:
                    splits[number] = "train"

    def _fill(
        self, splits: list[Split], gone: set[int], groups: dict[str, str], missing: list[Split]
    ) -> None:
        """Carve one group into each split that is still empty, if train keeps all its labels.

        A tenth of a few groups is often none. The one with the lowest position is taken; dev, by
        which weights and models are chosen, comes first.
        """
        for split in sorted(missing):  # dev, test
            present = [number for number in range(len(self._rows)) if number not in gone]
            if any(splits[number] == split for number in present):
                continue
            train: defaultdict[str, set[str]] = defaultdict(set)  # names by group
            for number in present:
                if splits[number] == "train":
                    row = self._rows[number]
                    train[groups[row.key]].update(row.names)
            times = Counter(name for names in train.values() for name in names)
            spare = [g for g, names in train.items() if all(times[name] > 1 for name in names)]
            if len(train) < 2 or not spare:
                continue
            taken = min(spare, key=lambda group: (position(group, "split"), group))
            for number, row in enumerate(self._rows):
                if splits[number] == "train" and groups[row.key] == taken:
                    splits[number] = split

    def _settle_overlap(self, ledger: RejectionLog, gone: set[int]) -> dict[int, str]:
        """Apply the overlap policy.

        Returns:
            The overlap that remains: the id of a training row by the number of an evaluation row.
        """
        splits: list[Split] = [row.split or "train" for row in self._rows]
        present = [number for number in range(len(self._rows)) if number not in gone]
        texts: dict[Split, dict[str, int]] = {split: {} for split in SPLITS}
        for number in present:
            texts[splits[number]].setdefault(self._rows[number].plain, number)
        shared = {
            split: [
                number
                for number in present
                if splits[number] == "train" and self._rows[number].plain in texts[split]
            ]
            for split in ("dev", "test")
        }
        self._details |= {
            "rows": dict(Counter(splits[number] for number in present)),
            "distinct_texts": {split: len(texts[split]) for split in SPLITS},
            "train_rows_sharing_text_with": {split: len(rows) for split, rows in shared.items()},
            "test_rows_sharing_text_with_dev": sum(
                1
                for number in present
                if splits[number] == "test" and self._rows[number].plain in texts["dev"]
            ),
            "overlap": self._overlap,
        }
        given_away = [number for number in present if self._rows[number].elsewhere]
        if self._elsewhere is not None:
            self._details["train_rows_in_evaluation_elsewhere"] = len(given_away)
        overlapping = sorted({*shared["dev"], *shared["test"], *given_away})
        if overlapping and self._overlap == "refuse":
            raise ContractViolation(self._overlap_message(overlapping, texts))
        if self._overlap == "drop_from_train":
            for number in overlapping:
                gone.add(number)
                row = self._rows[number]
                split, other = self._evaluated_as(row, texts)
                ledger.remove(row.id, row.location, f"its text is in {split} too", other)
            return {}
        return {
            number: self._rows[texts["train"][self._rows[number].plain]].id
            for number in present
            if splits[number] != "train" and self._rows[number].plain in texts["train"]
        }

    def _draw(
        self, number: int, seed: int, splits: list[Split], gone: set[int], ledger: RejectionLog
    ) -> None:
        """Remove all training rows but those that are drawn."""
        train = [i for i in range(len(self._rows)) if splits[i] == "train" and i not in gone]
        rows = [self._rows[i] for i in train]
        order, least = training_order([row.id for row in rows], [row.names for row in rows], seed)
        if not least <= number <= len(train):
            every = f", and {least:,} are needed for every label to have one" if least else ""
            raise RecipeError(
                f"training_rows: source {self._source.name} has {len(train):,} training rows"
                f"{every}; expected a number from {max(least, 1):,} to {len(train):,}, got"
                f" {number:,}"
            )
        for place in sorted(order[number:]):
            gone.add(train[place])
            ledger.remove(rows[place].id, rows[place].location, "beyond training_rows")
        self._details["training_rows"] = {"drawn": number, "of": len(train), "seed": seed}

    def _left(
        self, duplicates: dict[int, str], splits: list[Split], gone: set[int]
    ) -> dict[int, str]:
        """The overlap that remains after rows have been drawn."""
        first: dict[str, str] = {}
        for number, row in enumerate(self._rows):
            if splits[number] == "train" and number not in gone:
                first.setdefault(row.plain, row.id)
        plain = {number: self._rows[number].plain for number in duplicates}
        return {number: first[text] for number, text in plain.items() if text in first}

    def _evaluated_as(self, row: _Known, texts: dict[Split, dict[str, int]]) -> Place:
        """Split and id of the evaluation row that has a training row's text."""
        for split in ("test", "dev"):
            if row.plain in texts[split]:
                return split, self._rows[texts[split][row.plain]].id
        assert row.elsewhere is not None, "it overlaps with one of them"
        return row.elsewhere

    def _overlap_message(self, overlapping: list[int], texts: dict[Split, dict[str, int]]) -> str:
        pairs = []
        for number in overlapping[:_SHOWN]:
            row = self._rows[number]
            pairs.append(f"{row.id} = {' '.join(self._evaluated_as(row, texts))}")
        more = f" and {len(overlapping) - _SHOWN:,} more" if len(overlapping) > _SHOWN else ""
        return (
            f"source {self._source.name}: {len(overlapping):,} training rows have a text of dev "
            "or test: "
            f"{', '.join(pairs)}{more}; take them out, or set `overlap: drop_from_train` or "
            "`report`."
        )

    def _check_splits(self, splits: list[Split], gone: set[int], ledger: RejectionLog) -> list[str]:
        """The labels of train, in order; every evaluation row has one of them."""
        present = [number for number in range(len(self._rows)) if number not in gone]
        train = [number for number in present if splits[number] == "train"]
        if not train:
            total = self._details["rows"].get("train", 0)
            raise ContractViolation(
                f"source {self._source.name}: no training row is left of {total:,}: "
                f"{ledger.summary() or 'none was read'}."
            )
        by_text: defaultdict[str, set[str]] = defaultdict(set)
        for number in present:
            by_text[self._rows[number].same].add(self._rows[number].answer)
        self._contradictory = {same for same, labels in by_text.items() if len(labels) > 1}
        contradictory = [
            self._rows[number].id
            for number in present
            if self._rows[number].same in self._contradictory
        ]
        self._details["contradictory"] = {
            "rows": len(contradictory),
            "ids": contradictory[:_SHOWN],
        }
        labels = in_order(name for number in train for name in self._rows[number].names)
        known = set(labels)
        unseen = [
            (name, splits[number], self._rows[number].id)
            for number in present
            for name in self._rows[number].names
            if name not in known
        ]
        check_seen(self._source.name, labels, unseen)
        by_split = {
            split: [self._rows[number] for number in present if splits[number] == split]
            for split in SPLITS
        }
        self._details |= answer_counts(self._source.answers, by_split)
        check_learnable(self._source, by_split["train"])
        return labels

    def _finish(
        self, spool: Path, splits: list[Split], gone: set[int], duplicates: dict[int, str]
    ) -> int:
        times = Counter(
            (splits[number], row.same)
            for number, row in enumerate(self._rows)
            if number not in gone
        )
        kept, kind = 0, self._source.answers
        profiles = self._languages(spool, splits, gone)
        with (
            TableWriter(self._folder / "rows.arrow", ROWS) as rows,
            TableWriter(self._folder / "profile.parquet", self._profile_schema) as profile,
        ):
            for number, row in enumerate(_spooled(spool)):
                if number in gone:
                    continue
                kept += 1
                known = self._rows[number]
                row["split"] = splits[number]
                measures = json.loads(row.pop("measures"))
                if targets := texts_in(kind, row["label"]):
                    counted = splits[number] == "train"
                    measures["target_language_margin"] = (
                        profiles.margin(row["text"], targets, counted) if profiles else 0.0
                    )
                rows.add(row, len(row["text"]) + 512)
                profile.add(
                    {
                        **measures,
                        "id": known.id,
                        "split": splits[number],
                        "digest": known.same,
                        "num_duplicates": times[splits[number], known.same] - 1,
                        "label": known.answer if kind == "label" else kind,
                        "num_answers": known.num_answers,
                        "number": float(known.answer) if kind == "number" else None,
                        "text_pair_chars": None
                        if row["text_pair"] is None
                        else len(row["text_pair"]),
                        "duplicate_of_train": duplicates.get(number),
                        "contradictory": known.same in self._contradictory,
                    }
                )
        self._details["splits"] = {
            split: sum(
                1
                for number in range(len(self._rows))
                if number not in gone and splits[number] == split
            )
            for split in SPLITS
        }
        return kept

    def _write_groups(self, gone: set[int]) -> None:
        """Write a digest of each row's group, by id."""
        groups = {
            row.id: row.key[-16:] for number, row in enumerate(self._rows) if number not in gone
        }
        write_atomically(self._folder / GROUPS, json.dumps(groups, indent=0) + "\n")

    def _languages(
        self, spool: Path, splits: list[Split], gone: set[int]
    ) -> TrigramProfiles | None:
        """Profiles of the training rows; None if nothing tells the language of a target."""
        if not are_told_apart(self._source.language, self._source.answer_language):
            return None
        return TrigramProfiles(
            (row["text"], texts_in(self._source.answers, row["label"]))
            for number, row in enumerate(_spooled(spool))
            if number not in gone and splits[number] == "train"
        )


def _named_group(group: str) -> str:
    """A group's name as a key that cannot equal the digest of a text."""
    return f"group {hashlib.sha256(group.encode()).hexdigest()}"


def _all_of(normal: str, pair: str | None) -> str:
    """A text's normal form and that of what is beside it."""
    return normal if pair is None else f"{normal} {normal_form(pair)}"


def _spooled(path: Path) -> Iterator[dict[str, Any]]:
    with pyarrow.memory_map(str(path)) as mapped:
        reader = pyarrow.ipc.open_file(mapped)
        for number in range(reader.num_record_batches):
            yield from reader.get_batch(number).to_pylist()
