"""Wrong graphs, lists of entities and pictures: named with ids, or set aside and counted."""

from __future__ import annotations

import io
import json
import random

import numpy as np
from PIL import Image

from tests.faults.desk import LABELLED, Desk, lines, on_dataset, rows, whole
from tests.flows.own_project import SIZE, words

NAMES = {f"{number:04d}": word for number, word in enumerate(words()[:40], 1)}  # by entity
RELATIONS = ("_part_of", "_near")


def triples(**changed: str) -> bytes:
    """Lines of 300 triples; those at a place, such as ``line_7``, in place of what is there."""
    rng = random.Random(5)
    drawn = {
        (rng.choice([*NAMES]), rng.choice(RELATIONS), rng.choice([*NAMES])) for _ in range(400)
    }
    found = ["\t".join(triple) for triple in sorted(drawn)][:300]
    for place, line in changed.items():
        found[int(place.removeprefix("line_")) - 1] = line
    return "\n".join(found).encode()


def knowing(desk: Desk, graph: bytes, entities: dict[str, str]) -> dict:
    """A recipe of a graph, and of a text whose names are linked with a list of entities."""
    for name, content in (
        ("triples.tsv", graph),
        ("ids.txt", "\n".join(NAMES).encode()),
        ("relations.txt", "\n".join(RELATIONS).encode()),
        ("entities.tsv", "".join(f"{i}\t{name}\n" for i, name in entities.items()).encode()),
    ):
        desk.data(name).write_bytes(content)
    lists = {"head": "ids", "relation": "relations", "tail": "ids"}
    desk.project.source(
        "triples",
        files=["data/triples.tsv"],
        columns=[*lists],
        join=[{"by": column, "files": f"data/{name}.txt"} for column, name in lists.items()],
        fields={"text": "{head} {relation} {tail}", "label": "relation"},
    )
    few = {"stage": "general", "budget": {"steps": 2}, "batch_size": 4}
    graph_stage = few | {
        "name": "graph",
        "family": "transe",
        "size": {"hidden_dim": 8},
        "tokenizer": {"scheme": "name", "vocabulary_size": 64, "minimum_count": 1},
        "corpora": {"triples": 1.0},
        "objectives": {"transe": {}},
    }
    size = {**SIZE, "num_layers": 2, "num_text_layers": 1, "num_entities": 64, "entity_dim": 8}
    text = few | {
        "name": "text",
        "family": "ernie_tsinghua",
        "size": size,
        "starts_from": {"entities": "graph"},
        "corpora": {"notes": 1.0},
        "objectives": {"masked_lm": {}, "entity_denoising": {}},
        "sequence_length": 32,
    }
    recipe = whole([graph_stage, text]) | {"family": "ernie_tsinghua", "size": size}
    return recipe | {"units": {"entities": "data/entities.tsv"}}


def test_triples_of_unknown_relations_and_of_ids_without_their_zeros_are_set_aside(desk: Desk):
    wrong = {f"line_{place}": "0001\t_besides\t0002" for place in range(5, 60, 6)}
    answer = desk.runs(knowing(desk, triples(**wrong, line_3="1\t_near\t0002"), NAMES))
    desk.holds(
        answer, 3, r"triples: the contract .* is broken",
        r"no record to join by 'relation': data/triples\.tsv:5, data/triples\.tsv:11",
        r"no record to join by 'head': data/triples\.tsv:3",
    )  # fmt: skip


def test_a_list_of_entities_of_another_graph_is_refused(desk: Desk):
    short = {number.lstrip("0"): name for number, name in NAMES.items()}
    answer = desk.runs(knowing(desk, triples(), short))
    desk.holds(
        answer, 3, r"entities\.tsv: the graph has the entity 00\d\d, the list \d+; expected ids as",
        "leading zeros",
    )  # fmt: skip
    other = {f"Q{number}": name for number, name in NAMES.items()}
    answer = desk.runs(knowing(desk, triples(), other))
    desk.holds(
        answer, 3, r"entities\.tsv: 40 of 40 ids are no entities of the graph.*: Q0001, Q0002",
    )  # fmt: skip


def test_captions_without_a_whole_picture_are_set_aside_by_their_lines_and_ids(desk: Desk):
    folder = desk.data("pictures")
    folder.mkdir(exist_ok=True)
    captions = rows(60)
    for number, each in enumerate(captions):
        pixels = np.full((24, 24, 3), 255, np.uint8)
        pixels[4:12, 2 : 6 + number % 12] = (number * 4, 0, 120)
        stream = io.BytesIO()
        Image.fromarray(pixels).save(stream, "PNG")
        each["image"] = f"{number}.png"
        (folder / each["image"]).write_bytes(stream.getvalue())
    (folder / "7.png").write_bytes((folder / "7.png").read_bytes()[:60])
    (folder / "9.png").unlink()
    answer = desk.on_rows(
        lines(captions[:40]),
        lines(captions[40:]),
        recipe=on_dataset(),
        fields=LABELLED | {"picture": "image"},
        pictures="data/pictures",
    )
    desk.holds(
        answer, 3, r"dataset rows .*pictures: 59 read, 1 without regions: not a whole PNG or JPEG",
        r"a picture that is missing: data/train\.jsonl:10\n",
        r"not a whole PNG or JPEG picture: data/train\.jsonl:8\n",
    )  # fmt: skip
    rejected = [json.loads(line) for line in open(desk.newest("dataset rows") / "rejected.jsonl")]
    assert {each["id"] for each in rejected} == {"r7", "r9"}
    report = desk.newest("contract rows") / "report.md"
    assert "| without regions: not a whole PNG or JPEG picture | 1 |" in report.read_text("utf-8")
