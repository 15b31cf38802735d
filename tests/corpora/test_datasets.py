"""Labelled rows: labels, splits, overlap (faults S13–S17, S23)."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpora.identity import normal_form, text_digest
from corpora.prepared import GROUPS, prepared_groups
from corpora.splits import position
from fourstage.errors import ContractViolation
from tests.corpora.conftest import Prepare
from tests.corpora.made_up import rows, write


def test_a_label_that_only_test_has_is_refused_by_id(tmp_path: Path, dataset: Prepare):
    train = write(tmp_path / "t.jsonl", rows(200))
    unseen = rows(60, 9)
    unseen[4]["label"] = "neutral"
    with pytest.raises(ContractViolation) as caught:
        dataset(train, write(tmp_path / "e.jsonl", unseen))
    assert "label `neutral`, split test, id r9-4" in str(caught.value)
    assert "Labels of train: `neg`, `pos`" in str(caught.value)
    assert "zqxcanary" not in str(caught.value)


def test_a_type_of_span_is_refused_where_no_training_row_has_a_span(
    tmp_path: Path, dataset: Prepare
):
    train = write(tmp_path / "t.jsonl", [row | {"label": []} for row in rows(200)])
    test = write(tmp_path / "e.jsonl", [row | {"label": [[0, 2, "PER"]]} for row in rows(60, 9)])
    with pytest.raises(ContractViolation, match=r"label `PER`.*Labels of train: none\. Correct"):
        dataset(train, test, answers="spans")


def test_the_same_text_with_two_labels_is_marked(tmp_path: Path, dataset: Prepare):
    records = rows(200) + [
        {"id": f"x-{label}", "text": "exactly this film was long", "label": label}
        for label in ("pos", "neg")
    ]
    train = write(tmp_path / "t.jsonl", records)
    prepared = dataset(train, write(tmp_path / "e.jsonl", rows(60, 9)))
    marked = {row["id"] for row in prepared.profile() if row["contradictory"]}
    assert marked == {"x-pos", "x-neg"}
    details = prepared.counts.details["contradictory"]
    assert details == {"rows": 2, "ids": ["x-pos", "x-neg"]}
    assert len({row["split"] for row in prepared.table() if row["id"] in marked}) == 1


def test_labels_that_differ_by_case_blank_or_width_are_refused(tmp_path: Path, dataset: Prepare):
    records = rows(200)
    for seed, label in ((7, "pos "), (8, "Pos"), (6, "ｐｏｓ")):
        for record in rows(3, seed):
            records.append(record | {"label": label if record["label"] == "pos" else "neg"})
    with pytest.raises(ContractViolation) as caught:
        dataset(write(tmp_path / "t.jsonl", records), write(tmp_path / "e.jsonl", rows(60, 9)))
    assert "5 labels" in str(caught.value)
    for shown in ("`pos`", "`pos␠`", "`Pos`", "`ｐｏｓ`"):
        assert shown in str(caught.value)
    assert "`neg`" not in str(caught.value)


def test_labels_of_several_types_are_refused_with_their_counts(tmp_path: Path, dataset: Prepare):
    records = [record | {"label": [1, "1", 1.0, 0][i % 4]} for i, record in enumerate(rows(200))]
    with pytest.raises(ContractViolation) as caught:
        dataset(write(tmp_path / "t.jsonl", records), write(tmp_path / "e.jsonl", rows(60, 9)))
    assert "integer (100 rows, first at t.jsonl:1)" in str(caught.value)
    assert "float (50 rows" in str(caught.value)
    assert "text (110 rows" in str(caught.value)


def test_labels_of_one_type_are_kept_as_text_in_the_order_of_their_values(
    tmp_path: Path, dataset: Prepare
):
    records = [record | {"label": i % 12} for i, record in enumerate(rows(240))]
    assert dataset(write(tmp_path / "t.jsonl", records)).labels() == [str(i) for i in range(12)]


def test_overlap_is_dropped_reported_or_refused(tmp_path: Path, dataset: Prepare):
    train, test = rows(200), rows(60, 9)
    train[3] = train[3] | {"text": test[5]["text"].upper() + "!!"}
    paths = write(tmp_path / "t.jsonl", train), write(tmp_path / "e.jsonl", test)
    prepared = dataset(*paths)
    assert prepared.counts.removed == {"its text is in test too": 1}
    assert prepared.rejected()[0]["id"] == "r2-3"
    assert prepared.rejected()[0]["detail"] == "r9-5"
    assert not [row for row in prepared.profile() if row["duplicate_of_train"]]
    prepared = dataset(*paths, overlap="report")
    marked = {row["id"]: row["duplicate_of_train"] for row in prepared.profile()}
    assert {row: other for row, other in marked.items() if other} == {"r9-5": "r2-3"}
    with pytest.raises(ContractViolation, match="r2-3 = test r9-5"):
        dataset(*paths, overlap="refuse")
    sharing = prepared.counts.details["train_rows_sharing_text_with"]
    assert sharing == {"dev": 0, "test": 1}


def test_a_text_of_dev_is_taken_from_train_too(tmp_path: Path, dataset: Prepare):
    train, dev, test = rows(200), rows(60, 9), rows(60, 10)
    train[3] = train[3] | {"text": dev[5]["text"]}
    files = [
        write(tmp_path / f"{name}.jsonl", of)
        for name, of in (("t", train), ("e", test), ("d", dev))
    ]
    prepared = dataset(*files)
    assert prepared.counts.removed == {"its text is in dev too": 1}
    assert (prepared.rejected()[0]["id"], prepared.rejected()[0]["detail"]) == ("r2-3", "r9-5")
    with pytest.raises(ContractViolation, match="r2-3 = dev r9-5"):
        dataset(*files, overlap="refuse")


def test_a_text_in_train_and_test_is_reported_whatever_is_marked(tmp_path: Path, dataset: Prepare):
    train, test = rows(100), rows(30, 9)
    words = test[5]["text"].split()
    test[5] = test[5] | {"text": " ".join(["<<", words[0], ">>", *words[1:]])}
    train[3] = train[3] | {"text": " ".join([*words[:-1], "<<", words[-1], ">>"])}
    paths = write(tmp_path / "t.jsonl", train), write(tmp_path / "e.jsonl", test)
    prepared = dataset(*paths, overlap="report", markings=["<<", ">>"])
    found = {row["id"]: row["duplicate_of_train"] for row in prepared.profile()}
    assert {row: other for row, other in found.items() if other} == {"r9-5": "r2-3"}


def test_missing_splits_are_carved_out_of_train_by_hash(tmp_path: Path, dataset: Prepare):
    records = rows(600)
    first = dataset(write(tmp_path / "t.jsonl", records))
    assert first.counts.details["carved_from_train"] == ["dev", "test"]
    splits = first.counts.details["splits"]
    assert 35 <= splits["dev"] <= 90
    assert 35 <= splits["test"] <= 90
    # Shuffled and with a hundred rows more, every text stays on its side.
    second = dataset(write(tmp_path / "u.jsonl", [*reversed(records), *rows(100, 11)]))
    before = {row["text"]: row["split"] for row in first.table()}
    after = {row["text"]: row["split"] for row in second.table()}
    assert {text: after[text] for text in before} == before
    # A listed test split stays as it is; only dev is carved.
    third = dataset(tmp_path / "t.jsonl", write(tmp_path / "e.jsonl", rows(60, 9)))
    assert third.counts.details["carved_from_train"] == ["dev"]
    assert third.counts.details["splits"]["test"] == 60


def test_few_rows_have_dev_and_test_rows_and_more_stay_where_they_were(
    tmp_path: Path, dataset: Prepare
):
    """By hash alone, about one file of 20 rows in eight has no dev row."""
    filled = 0
    for seed in range(25):
        records = rows(16 + seed, 100 + seed)
        prepared = dataset(write(tmp_path / "t.jsonl", records))
        found = {row["id"]: row["split"] for row in prepared.table()}
        assert {"train", "dev", "test"} == set(found.values())
        places = {
            record["id"]: position(
                text_digest(record["text"], normal_form(record["text"])), "split"
            )
            for record in records
        }
        by_hash = {
            row: "test" if place < 0.1 else "dev" if place < 0.2 else "train"
            for row, place in places.items()
        }
        lacking = sorted({"dev", "test"} - set(by_hash.values()))
        filled += bool(lacking)
        train = sorted((row for row in by_hash if by_hash[row] == "train"), key=places.__getitem__)
        assert found == by_hash | dict(zip(train, lacking, strict=False))
    assert 0 < filled < 15


def test_the_last_group_of_train_or_of_a_label_is_not_carved(tmp_path: Path, dataset: Prepare):
    for count in (1, 2, 3, 5):
        for seed in range(4):
            records = rows(count, 200 + seed)
            splits = dataset(write(tmp_path / "t.jsonl", records)).counts.details["splits"]
            # Of two labels one row each stays.
            assert (splits["dev"] + splits["test"] > 0) == (count > 2)
    alike = [record | {"text": "one text for all"} for record in rows(8)]
    splits = dataset(write(tmp_path / "t.jsonl", alike)).counts.details["splits"]
    assert splits == {"train": 8, "dev": 0, "test": 0}


def test_a_larger_share_is_set_aside_on_request_and_keeps_what_was_there(
    tmp_path: Path, dataset: Prepare
):
    train, test = write(tmp_path / "t.jsonl", rows(600)), write(tmp_path / "e.jsonl", rows(60, 9))
    usual, more = dataset(train, test), dataset(train, test, set_aside=0.3)
    assert 150 <= more.counts.details["splits"]["dev"] <= 210
    assert more.counts.details["splits"]["test"] == 60
    dev = [{row["id"] for row in each.table() if row["split"] == "dev"} for each in (usual, more)]
    assert dev[0] < dev[1]


def test_copies_near_copies_and_groups_stay_on_one_side(tmp_path: Path, dataset: Prepare):
    records: list[dict[str, Any]] = []
    for i, record in enumerate(rows(300)):
        records.append(record | {"g": f"g{i}"})
        records.append(record | {"id": f"copy{i}", "text": record["text"].upper(), "g": f"g{i}"})
        near = record["text"].rsplit(" ", 1)[0] + " indeed"
        records.append(record | {"id": f"near{i}", "text": near, "g": f"g{i % 100}"})
    fields = {"text": "text", "label": "label", "group": "g"}
    prepared = dataset(write(tmp_path / "t.jsonl", records), fields=fields)
    splits = {row["id"]: row["split"] for row in prepared.table()}
    sides: defaultdict[str, set[str]] = defaultdict(set)
    for record in records:
        sides[record["g"]].add(splits[record["id"]])
        sides["text " + record["text"].lower()].add(splits[record["id"]])
    assert all(len(side) == 1 for side in sides.values())
    assert set(splits.values()) == {"train", "dev", "test"}
    named = {record["id"]: record["g"] for record in records}
    groups = prepared_groups(prepared.folder)
    assert list(groups) == [row["id"] for row in prepared.table()]
    pairs = {(named[row], group) for row, group in groups.items()}
    assert len(pairs) == len({group for _, group in pairs}) == len({named[row] for row in groups})


def test_texts_that_a_third_is_like_stay_on_its_side(tmp_path: Path, dataset: Prepare):
    records = []
    for i in range(80):
        words = [f"w{i}x{number}" for number in range(142)]
        for nth, start in enumerate((0, 42, 21)):  # the last is like both before
            text = " ".join(words[start : start + 100])
            records.append({"id": f"{i}-{nth}", "text": text, "label": "ab"[i % 2]})
    prepared = dataset(write(tmp_path / "t.jsonl", records))
    sides: defaultdict[str, set[str]] = defaultdict(set)
    for row in prepared.table():
        sides[row["id"].split("-")[0]].add(row["split"])
    parted = [text for text, of in sides.items() if len(of) > 1]
    assert len(parted) <= 2  # a signature is an estimate
    assert {split for of in sides.values() for split in of} == {"train", "dev", "test"}


def test_a_row_with_an_empty_group_is_quarantined_as_one_without(tmp_path: Path, dataset: Prepare):
    records = [row | {"g": f"g{i}"} for i, row in enumerate(rows(40))]
    records[3]["g"] = ""
    del records[4]["g"]
    fields = {"text": "text", "label": "label", "group": "g"}
    prepared = dataset(write(tmp_path / "t.jsonl", records), fields=fields)
    assert prepared.counts.quarantined == {"no group in 'g'": 2}


def test_without_groups_there_is_no_file_of_them(tmp_path: Path, dataset: Prepare):
    prepared = dataset(write(tmp_path / "t.jsonl", rows(60)))
    assert not (prepared.folder / GROUPS).exists()
    assert prepared_groups(prepared.folder) == {}


def test_rows_of_one_sentence_stay_together_whatever_is_marked(tmp_path: Path, dataset: Prepare):
    records = []
    for i, record in enumerate(rows(200)):
        words = record["text"].split()
        for j in range(3):
            marked = [*words[:j], "<<", words[j], ">>", *words[j + 1 :]]
            records.append(record | {"id": f"{i}-{j}", "text": " ".join(marked)})
    path = write(tmp_path / "t.jsonl", records)
    prepared = dataset(path, markings=["<<", ">>"])
    sides: defaultdict[str, set[str]] = defaultdict(set)
    for row in prepared.table():
        sides[row["id"].split("-")[0]].add(row["split"])
    assert all(len(side) == 1 for side in sides.values())
    assert prepared.counts.details["distinct_texts"]["train"] == 200
    assert not any(row["contradictory"] for row in prepared.profile())


def test_a_rare_label_is_never_carved_away(tmp_path: Path, dataset: Prepare):
    for seed in range(12):
        records = [*rows(60), {"id": "rare", "text": f"a rare bird {seed}", "label": "rare"}]
        prepared = dataset(write(tmp_path / "t.jsonl", records))
        assert prepared.labels() == ["neg", "pos", "rare"]


def test_rows_per_label_draws_the_same_distinct_rows(tmp_path: Path, dataset: Prepare):
    path = write(tmp_path / "t.jsonl", rows(400))
    prepared = dataset(path, rows_per_label=50)
    assert prepared.counts.kept == 100
    assert prepared.counts.removed == {"beyond rows_per_label": 300}
    chosen = {row["id"] for row in prepared.table()}
    write(path, list(reversed(rows(400))))
    assert {row["id"] for row in dataset(path, rows_per_label=50).table()} == chosen


def test_rows_per_label_keeps_a_text_with_other_second_texts(tmp_path: Path, dataset: Prepare):
    """Each premise comes with a hypothesis for each label."""
    premises = [row["text"] for row in rows(60)]
    records = [
        {"id": f"{number} {label}", "text": premise, "other": f"{said} {number}", "label": label}
        for number, premise in enumerate(premises)
        for label, said in (("no", "it is not"), ("yes", "it is"), ("maybe", "it may be"))
    ]
    again = [record | {"id": f"{record['id']} again"} for record in records if record["id"] < "3"]
    path = write(tmp_path / "t.jsonl", records + again)
    fields = {"id": "id", "text": "text", "text_pair": "other", "label": "label"}
    prepared = dataset(path, fields=fields, rows_per_label=60)
    assert prepared.labels() == ["maybe", "no", "yes"]
    assert Counter(row["label"] for row in prepared.table()) == dict.fromkeys(prepared.labels(), 60)
    different = {(row["text"], row["text_pair"]) for row in prepared.table()}
    assert len(different) == prepared.counts.kept


def test_rows_per_label_leaves_the_rows_of_other_splits(tmp_path: Path, dataset: Prepare):
    test = rows(60, 9)
    paths = write(tmp_path / "t.jsonl", rows(400)), write(tmp_path / "e.jsonl", test)
    prepared = dataset(*paths, rows_per_label=50)
    left = {row["id"] for row in prepared.table() if row["split"] == "test"}
    assert left == {row["id"] for row in test}
    assert prepared.counts.kept == 160


def test_ids_numbered_anew_in_each_split_are_told_apart(tmp_path: Path, dataset: Prepare):
    train = [record | {"id": i} for i, record in enumerate(rows(100))]
    test = [record | {"id": i} for i, record in enumerate(rows(50, 9))]
    prepared = dataset(write(tmp_path / "t.jsonl", train), write(tmp_path / "e.jsonl", test))
    ids = [row["id"] for row in prepared.table()]
    assert len(ids) == len(set(ids)) == 150
    assert "test:7" in ids


def test_a_second_row_with_an_id_is_quarantined_by_id(tmp_path: Path, dataset: Prepare):
    train = rows(100)
    twice = rows(1, 11)[0] | {"id": train[7]["id"]}
    prepared = dataset(write(tmp_path / "t.jsonl", [*train, twice]))
    (rejected,) = prepared.rejected()
    assert rejected["id"] == "r2-7"
    assert rejected["location"] == "t.jsonl:101"
    assert rejected["reason"] == "an id that was there before"
    (kept,) = (row for row in prepared.table() if row["id"] == "r2-7")
    assert kept["text"] == train[7]["text"]


def test_answers_of_a_projects_own_kind_are_kept_as_json(tmp_path: Path, dataset: Prepare):
    text = "👩‍👩‍👧说𠮷野家第{}号店开业"
    records = [
        {"id": f"n{i}", "text": text.format(i), "label": {"company": {"𠮷野家": [[6, 8]]}}}
        for i in range(1, 121)
    ]
    records.append({"id": "moved", "text": "e\u0301 " + text, "label": {"company": {}}})
    prepared = dataset(write(tmp_path / "n.jsonl", records), language="zh", answers="mine")
    assert prepared.labels() == []
    for row in prepared.table():
        [[start, end]] = json.loads(row["label"])["company"]["𠮷野家"]
        assert row["text"][start : end + 1] == "𠮷野家"
    assert prepared.counts.quarantined == {"cleaning would move the offsets of its label": 1}
    with pytest.raises(ContractViolation, match="121 × a list or a mapping instead of one label"):
        dataset(tmp_path / "n.jsonl", language="zh")


def test_spans_follow_their_text_through_cleaning(tmp_path: Path, dataset: Prepare):
    texts = ["  Ada  met\u200b Cafe\u0301 Bob", "Ada met\r\n\n\nBob", "\ufeffAda\u00a0Bob"]
    records = [
        {
            "text": f"{text} {i}",
            "label": [
                [text.index(name), text.index(name) + 3, "person"] for name in ("Bob", "Ada")
            ],
        }
        for i, text in enumerate(texts * 20)
    ]
    prepared = dataset(write(tmp_path / "t.jsonl", records), answers="spans")
    assert prepared.counts.kept == 60
    for row in prepared.table():
        names = [row["text"][start:end] for start, end, _ in json.loads(row["label"])]
        assert names == ["Ada", "Bob"]
    assert prepared.labels() == ["person"]
    assert sum(n["person"] for n in prepared.counts.details["labels"].values()) == 120
    assert {row["label"] for row in prepared.profile()} == {"spans"}
    assert {row["num_answers"] for row in prepared.profile()} == {2}


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_lists_of_words_and_tags_are_spans_in_any_table(
    tmp_path: Path, dataset: Prepare, suffix: str
):
    records = [{"tokens": ["Ada", "sings", str(i)], "ner_tags": [1, 0, 0]} for i in range(30)]
    path = tmp_path / f"t.{suffix}"
    if suffix == "jsonl":
        write(path, records)
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), path)
    fields = {"text": "tokens", "label": "ner_tags"}
    prepared = dataset(path, fields=fields, answers="spans", label_names=["O", "B-person"])
    assert {row["label"] for row in prepared.table()} == {'[[0, 3, "person"]]'}
    assert prepared.counts.kept == 30


def test_answers_at_other_offsets_do_not_contradict(tmp_path: Path, dataset: Prepare):
    fill = [{"text": f"Ada {i} sings", "label": [[0, 3, "person"]]} for i in range(30)]
    same = [("so: ADA sings", 4, "person"), ("So Ada sings!", 3, "person")]
    other = [("Oslo sings", 0, "place"), ("oslo sings.", 0, "person")]
    records = [
        {"id": text, "text": text, "label": [[start, start + len(text.split()[start > 0]), kind]]}
        for text, start, kind in same + other
    ]
    fill.append({"text": "Bergen sings", "label": [[0, 6, "place"]]})
    prepared = dataset(write(tmp_path / "t.jsonl", fill + records), answers="spans")
    marked = {row["id"] for row in prepared.profile() if row["contradictory"]}
    assert marked == {"Oslo sings", "oslo sings."}


def test_a_type_that_only_test_has_is_refused_as_a_label_is(tmp_path: Path, dataset: Prepare):
    train = [{"text": f"Ada {i}", "label": [[0, 3, "person"]]} for i in range(20)]
    test = [{"id": "x", "text": "Oslo shines", "label": [[0, 4, "place"]]}]
    paths = write(tmp_path / "t.jsonl", train), write(tmp_path / "e.jsonl", test)
    with pytest.raises(ContractViolation, match="label `place`, split test, id x"):
        dataset(*paths, answers="spans")


def test_numbers_are_counted_and_all_equal_ones_refused(tmp_path: Path, dataset: Prepare):
    train = [{"text": f"row {i}", "label": str(i % 3)} for i in range(90)]
    test = write(tmp_path / "e.jsonl", [{"text": "one", "label": 4.5}])
    prepared = dataset(write(tmp_path / "t.jsonl", train), test, answers="number")
    assert prepared.counts.details["answers"]["test"] == {
        "minimum": 4.5,
        "maximum": 4.5,
        "mean": 4.5,
    }
    assert {row["number"] for row in prepared.profile()} == {0.0, 1.0, 2.0, 4.5}
    assert prepared.labels() == []
    same = [record | {"label": "5.000"} for record in train]
    with pytest.raises(ContractViolation, match="training rows have the same number"):
        dataset(write(tmp_path / "s.jsonl", same), answers="number")


def test_rows_with_nothing_to_find_in_any_of_them_are_refused(tmp_path: Path, dataset: Prepare):
    train = write(tmp_path / "t.jsonl", [{"text": f"row {i}", "label": []} for i in range(9)])
    for kind, what in (("spans", "span"), ("label_set", "label")):
        with pytest.raises(ContractViolation, match=f"training rows has a {what}"):
            dataset(train, answers=kind)


def test_choices_make_texts_different_and_are_cleaned(tmp_path: Path, dataset: Prepare):
    records = [
        {"text": "He sat", "label": i % 2, "choices": [f"down\u200b {i}.", f"up {i}."]}
        for i in range(80)
    ]
    fields = {"text": "text", "label": "label", "choices": "choices"}
    records.append({"text": "He sat", "label": 0, "choices": ["down", "\u200b", "up"]})
    prepared = dataset(write(tmp_path / "t.jsonl", records), fields=fields, answers="choice")
    assert prepared.counts.details["distinct_texts"]["train"] == 80
    assert prepared.counts.quarantined == {"an empty choice": 1}
    table = {row["location"]: row for row in prepared.table()}
    assert table["t.jsonl:4"]["choices"] == ["down 3.", "up 3."]
    assert table["t.jsonl:4"]["text_pair"] is None
    assert sum(sum(n.values()) for n in prepared.counts.details["answers"].values()) == 80


def test_the_last_columns_of_choices_may_be_empty_but_none_between(
    tmp_path: Path, dataset: Prepare
):
    lines = [
        f"He sat {i},down {i},up {i},{('still', '', 'here', ' ')[i % 4]},{i % 2}" for i in range(80)
    ]
    lines += ["He left,now,,later,0", "She left,now,,,0", "She ran,off, ,away,2"]
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["text,a,b,c,label", *lines]) + "\n", "utf-8")
    fields = {"text": "text", "label": "label", "choices": ["a", "b", "c"]}
    prepared = dataset(file, fields=fields, answers="choice")
    assert prepared.counts.quarantined == {"an empty choice": 2, "fewer than two choices": 1}
    sizes = Counter(len(row["choices"]) for row in prepared.table())
    assert sizes == {2: 40, 3: 40}


def test_a_rare_type_is_never_carved_away(tmp_path: Path, dataset: Prepare):
    records = [{"text": f"Ada number {i}", "label": [[0, 3, f"t{i // 2}"]]} for i in range(100)]
    assert len(dataset(write(tmp_path / "t.jsonl", records), answers="spans").labels()) == 50


def test_pairs_are_compared_whole(tmp_path: Path, dataset: Prepare):
    records = [
        {"text": "The same premise.", "text_b": f"Hypothesis {i}.", "label": str(i % 2)}
        for i in range(80)
    ]
    fields = {"text": "text", "text_pair": "text_b", "label": "label"}
    prepared = dataset(write(tmp_path / "t.jsonl", records), fields=fields)
    assert not any(row["contradictory"] for row in prepared.profile())
    assert {row["text_pair_chars"] for row in prepared.profile()} == {13, 14}
    assert prepared.counts.details["distinct_texts"]["train"] == 80


def test_rows_without_text_or_label_are_set_aside(tmp_path: Path, dataset: Prepare):
    records = [
        *rows(50),
        {"id": "a", "text": " \u200b ", "label": "pos"},
        {"id": "b", "text": "fine", "label": ""},
        {"id": "c", "text": "fine", "label": None},
        {"id": "d", "text": "fine"},
    ]
    prepared = dataset(write(tmp_path / "t.jsonl", records))
    assert prepared.counts.removed == {"empty": 1}
    assert prepared.counts.quarantined == {"no label": 2, "no field 'label'": 1}


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        ("x" * 5000, "a label of more than 100 characters"),
        ("pos\nitive", "a label with a line end or another control character"),
        ("pos\u202eitive", "a label with a line end or another control character"),
    ],
)
def test_a_label_that_is_no_name_is_set_aside_by_its_place_alone(
    tmp_path: Path, dataset: Prepare, label: str, reason: str
):
    prepared = dataset(write(tmp_path / "t.jsonl", [*rows(50), {"text": "a", "label": label}]))
    (rejected,) = prepared.rejected()
    assert (rejected["location"], rejected["reason"]) == ("t.jsonl:51", reason)
    assert rejected["detail"] == f"{len(label):,} characters"
    assert prepared.labels() == ["neg", "pos"]


ROWS = st.lists(
    st.fixed_dictionaries(
        {"text": st.sampled_from(["a b", "A  b", "c d e", "", "\u200b", "e f g h"])},
        optional={
            "label": st.sampled_from(["x", "y", "z", "", None, 1]),
            "id": st.integers(0, 8),
        },
    ),
    max_size=14,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, ROWS, st.sampled_from(["drop_from_train", "report", "refuse"]))
def test_read_is_kept_and_quarantined_and_removed(
    tmp_path: Path, dataset: Prepare, train: list, test: list, overlap: str
):
    paths = write(tmp_path / "t.jsonl", train), write(tmp_path / "e.jsonl", test)
    try:
        prepared = dataset(*paths, overlap=overlap)
    except ContractViolation:
        return
    counts = json.loads((prepared.folder / "counts.json").read_text())
    gone = sum(counts["quarantined"].values()) + sum(counts["removed"].values())
    assert counts["read"] == len(train) + len(test) == counts["kept"] + gone
    table, profile = prepared.table(), prepared.profile()
    assert len(table) == len(profile) == counts["kept"]
    assert len(prepared.rejected()) == gone
    assert len({row["id"] for row in table}) == len(table)
    assert {row["label"] for row in table} <= set(prepared.labels())
