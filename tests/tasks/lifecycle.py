"""A small lifecycle made through the real store: its artifacts are the size of a thumbnail."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from tasks.store.artifacts import Artifact, Findings, Store

STAGES = ("general", "domain", "task", "finetune")
LABELS = ["alpha", "beta", "gamma"]

# The label is the number of words: one alpha, two beta, three gamma.
SAVED_MODEL = """
import json, sys
import tensorflow as tf
import tensorflow_text as text

class Model(tf.Module):
    def __init__(self):
        self.tokenizer = text.WhitespaceTokenizer()
        self.centres = tf.Variable([[1.0, 2.0, 3.0]])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def serve(self, texts):
        words = tf.cast(self.tokenizer.tokenize(texts).row_lengths(), tf.float32)
        return {"probabilities": tf.nn.softmax(-4.0 * tf.abs(words[:, None] - self.centres))}

tf.saved_model.save(Model(), sys.argv[1] + "/saved_model")
json.dump(["alpha", "beta", "gamma"], open(sys.argv[1] + "/labels.json", "w"))
json.dump({"answers": "label", "pairs": False}, open(sys.argv[1] + "/head.json", "w"))
"""


def make_saved_model(folder: Path) -> None:
    """Build a genuine SavedModel in a process of its own, so that the test's stays light."""
    done = subprocess.run(
        [sys.executable, "-c", SAVED_MODEL, str(folder)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]


def make_light_package(folder: Path) -> Path:
    """A package to register, whose graph nobody loads."""
    (folder / "saved_model").mkdir(parents=True)
    (folder / "saved_model" / "saved_model.pb").write_bytes(b"graph")
    (folder / "labels.json").write_text(json.dumps(LABELS))
    (folder / "head.json").write_text('{"answers": "label", "pairs": false}')
    return folder


class Lifecycle:
    """Artifacts of one lifecycle by name.

    Args:
        home: Home folder of the store.
        seed: Seed of the last stage; another one gives another version on the same foundations.
        package: Folder with ``saved_model``, ``labels.json`` and ``head.json``.
        correct: Share of gate rows the evaluation gets right.
        machine: Another one gives the same keys other weights.
    """

    def __init__(
        self,
        home: Path,
        seed: int = 1,
        package: Path | None = None,
        correct: float = 0.9,
        rows: int = 400,
        machine: int = 1,
    ):
        self.store = Store(home)
        self.made: dict[str, Artifact] = {}
        self._text("corpus", "corpus encyclopedia", "encyclopedia", "CC-BY-SA-4.0")
        self._text("corpus", "corpus trials", "trials", "CC0-1.0")
        self._text("dataset", "dataset relations", "relations", "CC-BY-4.0")
        for name in ("corpus encyclopedia", "corpus trials", "dataset relations"):
            self.make("contract", f"contract {name}", {"suite": "corpus"}, {"data": name}, _report)
        self.make(
            "tokenizer",
            "tokenizer",
            {"vocabulary_size": 100},
            {"encyclopedia": "corpus encyclopedia", "trials": "corpus trials"},
            _write("vocabulary.txt", "[PAD]\n[UNK]\nword\n"),
        )
        for name in ("corpus encyclopedia", "corpus trials", "dataset relations"):
            inputs = {"data": name, "tokenizer": "tokenizer", "contract": f"contract {name}"}
            self.make("tokens", f"tokens {name}", {}, inputs, _write("tokens.arrow", name))
        texts = ("corpus encyclopedia", "corpus trials", "dataset relations", "dataset relations")
        before = None
        for stage, text in zip(STAGES, texts, strict=True):
            inputs = {"tokens": f"tokens {text}", "tokenizer": "tokenizer"}
            if before:
                inputs["stage before"] = before
            settings = {
                "stage": stage,
                "name": stage,
                "seed": seed if stage == "finetune" else 0,
                "optimizer": {"adamw": {"peak_learning_rate": 5e-4}},
                "phases": [[64, 1.0, 8]],
            }
            self.make("stage", f"stage {stage}", settings, inputs, _train(stage, seed, machine))
            before = f"stage {stage}"
        if package:
            inputs = {"stage": "stage finetune", "tokenizer": "tokenizer"}
            self.make("package", "package", {}, inputs, _package(package))
        inputs = {"stage": "stage finetune", "rows": "tokens dataset relations"}
        self.make(
            "evaluation",
            "evaluation",
            {"metrics": ["accuracy"]},
            inputs,
            _evaluate(correct, rows, seed),
        )

    def __getitem__(self, name: str) -> Artifact:
        return self.made[name]

    def _text(self, kind: str, name: str, source: str, licence: str) -> None:
        described = {
            "name": source,
            "licence": licence,
            "language": "en",
            "origin": [{"url": f"https://example.org/{source}", "sha256": "ab" * 32}],
        }
        settings = {
            "source": {"name": source},
            "snapshot": ("cd" if kind == "corpus" else "ef") * 32,
        }
        write = _write("documents.arrow", f"{source} zqxcanary")
        notes = {"source": described}
        self.make(kind, name, settings, {}, lambda folder: replace(write(folder), notes=notes))

    def make(
        self,
        kind: str,
        name: str,
        settings: Mapping[str, Any],
        inputs: Mapping[str, str],
        work: Callable[[Path], Findings],
    ) -> None:
        """Make one more artifact, from some of those that are there."""
        parents = {role: self.made[parent] for role, parent in inputs.items()}
        preimage = {
            "kind": kind,
            "settings": dict(settings),
            "inputs": {role: parent.digest for role, parent in parents.items()},
            "code": "0" * 64,
            "versions": {"numpy": np.__version__},
        }
        git = {"commit": "1234567" * 5 + "12345", "dirty": False}

        def make(folder: Path) -> Findings:
            found = work(folder)
            return replace(found, notes={**found.notes, "git": git})

        self.made[name], _ = self.store.make(kind, name, preimage, make, parents)


def _write(name: str, text: str) -> Callable[[Path], Findings]:
    def work(folder: Path) -> Findings:
        (folder / name).write_text(text, encoding="utf-8")
        return Findings({"counts": {"read": 3, "kept": 3}})

    return work


def _report(folder: Path) -> Findings:
    (folder / "report.html").write_text("<p>green</p>")
    (folder / "report.md").write_text("green")
    (folder / "report.json").write_text("{}")
    return Findings({"verdict": "green", "reason": "", "rows": 3, "quarantined": 0})


def _train(stage: str, seed: int, machine: int) -> Callable[[Path], Findings]:
    def work(folder: Path) -> Findings:
        rng = np.random.default_rng([STAGES.index(stage), seed if stage == "finetune" else 0])
        weights = rng.normal(size=(4, 4)).astype(np.float32) * np.float32(machine)
        save_file({"embedding": weights}, folder / "network.safetensors")
        (folder / "heads").mkdir()
        save_file({"bias": weights[0]}, folder / "heads" / "masked_lm.safetensors")
        (folder / "config.json").write_text(json.dumps({"family": "bert"}))
        (folder / "notes").mkdir()
        (folder / "notes" / "history.json").write_text(json.dumps(history(20)))
        notes = {
            "stage": stage,
            "seconds": 2.0,
            "tokens_per_second": 10240.0,
            "metrics": {"heldout_loss/trials": 3.2},
        }
        return Findings({"steps": 20, "tokens": 20480, "passes": {"trials": 0.5}}, notes)

    return work


def history(steps: int) -> list[dict[str, float]]:
    """Rows as the training loop writes them."""
    rows = [
        {"step": step, "loss": 5.0 - step / 10, "learning_rate": step / 1000}
        for step in range(1, steps + 1)
    ]
    rows.append({"step": steps, "heldout_loss/trials": 3.2})
    return rows


def _package(package: Path) -> Callable[[Path], Findings]:
    def work(folder: Path) -> Findings:
        shutil.copytree(package, folder, dirs_exist_ok=True)
        return Findings({"labels": LABELS})

    return work


def _evaluate(correct: float, rows: int, seed: int) -> Callable[[Path], Findings]:
    def work(folder: Path) -> Findings:
        labels = np.random.default_rng(0).integers(0, 3, rows)
        wrong = np.random.default_rng(seed).random(rows) >= correct
        predictions = np.where(wrong, (labels + 1) % 3, labels)
        return write_predictions(folder, labels, predictions)

    return work


def write_predictions(folder: Path, labels: np.ndarray, predictions: np.ndarray) -> Findings:
    """Stored predictions as the evaluation step leaves them, and its facts."""
    facts = {
        "ids": [f"r{i}" for i in range(len(labels))],
        "labels": [LABELS[label] for label in labels],
        "predicted": [LABELS[label] for label in predictions],
    }
    (folder / "predictions.json").write_text(json.dumps(facts))
    accuracy = float((labels == predictions).mean())
    scores = {"metrics": {"accuracy": accuracy}, "baseline": {"accuracy": 0.5}}
    return Findings({"answers": "label", **scores})
