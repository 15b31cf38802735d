"""A small project of one's own: text of made-up words that takes seconds to train on.

The canary is a word that every document and row holds and no message, log or page may.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

CANARY = "zqxcanary"
LABELS = {"weather": ("rain", "cloud", "storm"), "kitchen": ("spoon", "kettle", "oven")}
SYLLABLES = ("ba", "den", "ko", "lir", "mus", "na", "pel", "ro", "sti", "tan", "vu", "wes")
FIELDS = {"id": "id", "text": "text"}
# A network whose training is compiled in half the time of ``tiny``, and that learns these words.
SIZE = {"num_layers": 1, "hidden_dim": 32, "num_heads": 2, "intermediate_dim": 64}


# Two senses of a word of theirs.
SENSES = {
    "baba": {
        "weather": ["Baba rain cloud.", "A storm, baba and rain.", "Cloud baba storm."],
        "kitchen": ["The baba in the oven.", "Spoon, baba, kettle.", "Kettle baba spoon."],
    }
}


def words() -> list[str]:
    """144 words of two syllables."""
    return [first + second for first in SYLLABLES for second in SYLLABLES]


def document(seed: int, sentences: int = 6) -> dict[str, str]:
    """A text of short sentences."""
    rng = random.Random(seed)
    known = words()
    text = [" ".join(rng.choices(known, k=9)).capitalize() + "." for _ in range(sentences)]
    return {"id": f"d{seed}", "text": f"{' '.join(text)} {CANARY.capitalize()}."}


def row(seed: int) -> dict[str, str]:
    """A short text and which of two things it is about."""
    rng = random.Random(f"row {seed}")
    label = ("kitchen", "weather")[seed % 2]
    text = [*rng.choices(words(), k=8), rng.choice(LABELS[label]), CANARY]
    rng.shuffle(text)
    return {"id": f"r{seed}", "text": " ".join(text), "label": label}


def stages(**changes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The four stages, some seconds each.

    Args:
        **changes: Settings laid over a stage, by its name.
    """
    four: list[dict[str, Any]] = [
        {
            "stage": "general",
            "corpora": {"notes": 1.0},
            "objectives": {"masked_lm": {}},
            "sequence_length": 32,
            "batch_size": 8,
            "budget": {"steps": 30},
        },
        {"stage": "domain", "corpora": {"letters": 1.0}, "budget": {"steps": 20}},
        {"stage": "task", "budget": {"steps": 10}},
        {
            "stage": "finetune",
            "dataset": "rows",
            "head": {"sequence_classification": {}},
            "batch_size": 8,
            "budget": {"epochs": 2},
        },
    ]
    return [{**stage, **changes.get(stage["stage"], {})} for stage in four]


def recipe(name: str = "small", **changes: Any) -> dict[str, Any]:
    """A recipe on the project's text.

    Args:
        name: Its name, and its model's.
        **changes: Top-level keys in place of these; None leaves one out.
    """
    whole = {
        "name": name,
        "family": "bert",
        "size": "tiny",
        "tokenizer": {"vocabulary_size": 400},
        "seed": 17,
        "stages": stages(),
        "evaluate": {"metrics": ["accuracy"], "forgetting_on": ["notes"]},
        "promote": {"model": name, "require": {"accuracy": {"at_least": 0.01}}},
    } | changes
    return {key: value for key, value in whole.items() if value is not None}


class Project:
    """A project folder with sources, recipes and files.

    Args:
        folder: New.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("sources", "recipes", "data"):
            (folder / name).mkdir(parents=True)
        (folder / "fourstage.project").write_text("A project.\n")
        self.corpus("notes", map(document, range(300)))
        self.corpus("letters", map(document, range(1000, 1160)))
        self.dataset(
            "rows",
            train=map(row, range(120)),
            dev=map(row, range(200, 240)),
            test=map(row, range(300, 360)),
        )
        self.recipe(recipe())

    def recipe(self, values: Mapping[str, Any]) -> Path:
        """Write a recipe; its path."""
        path = self.folder / "recipes" / f"{values['name']}.yaml"
        path.write_text(yaml.safe_dump(dict(values), sort_keys=False), encoding="utf-8")
        return path

    def source(self, name: str, **settings: Any) -> None:
        """Write a source."""
        whole = {"name": name, "language": "en", "licence": "CC0-1.0"} | settings
        path = self.folder / "sources" / f"{name}.yaml"
        path.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")

    def corpus(self, name: str, documents: Iterable[Mapping[str, Any]]) -> Path:
        """Write documents and their source; the file."""
        self.source(name, files=[f"data/{name}.jsonl"], fields=FIELDS)
        return self.lines(f"{name}.jsonl", documents)

    def dataset(self, name: str, **splits: Iterable[Mapping[str, Any]]) -> None:
        """Write rows by split and their source."""
        files = {split: f"data/{name}-{split}.jsonl" for split in splits}
        self.source(name, files=files, fields={**FIELDS, "label": "label"})
        for split, rows in splits.items():
            self.lines(f"{name}-{split}.jsonl", rows)

    def contexts(self, name: str) -> None:
        """Write rows of a word in two sentences, and their source."""
        places = [text for senses in SENSES["baba"].values() for text in senses]
        marked = [text.replace("baba", "<< baba >>") for text in places if "baba" in text]
        pairs = [(i, j) for i in range(len(marked)) for j in range(i)]
        parts = {"train": pairs[:4], "dev": pairs[4::2], "test": pairs[5::2]}
        files = {split: f"data/{name}-{split}.jsonl" for split in parts}
        fields = {**FIELDS, "text_pair": "pair", "label": "label"}
        self.source(name, files=files, fields=fields, markings=["<<", ">>"])
        for split, some in parts.items():
            rows = [
                {
                    "id": f"{i}-{j}",
                    "text": marked[i],
                    "pair": marked[j],
                    "label": "same" if (i < 2) == (j < 2) else "different",
                }
                for i, j in some
            ]
            self.lines(f"{name}-{split}.jsonl", rows)

    def lines(self, name: str, records: Iterable[Mapping[str, Any]], mode: str = "w") -> Path:
        """Write JSON lines into the folder of data, or add them with ``mode="a"``."""
        path = self.folder / "data" / name
        with open(path, mode, encoding="utf-8") as stream:
            stream.writelines(json.dumps(dict(record)) + "\n" for record in records)
        return path
