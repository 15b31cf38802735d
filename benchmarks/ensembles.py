"""A network and TF-IDF as two models: ``python -m benchmarks.ensembles TABLE… [--network NAME]``.

TABLE is the ``table.json`` of a comparison by a command in docs/results.md. The labels of its
recipe NAME, which has no wide part, are combined with those of a logistic regression on the cheap
baseline's n-grams, whose C is chosen on the dev rows: as the mean of both log probabilities, as
their weighted sum (`models.blend`), and by a logistic regression of both that learns on the dev
rows. Prints mean and standard deviation over the seeds, on the rows that the comparison judged.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np

from corpora.prepared import PreparedRow
from corpora.shards import TokenisedRows
from models.answers.label import Label
from models.blend import fitted
from models.evaluation.ngram_features import PARTS, Grams, stacked
from models.evaluation.predict import predict
from models.evaluation.resampling import scores
from models.saved_tokenizer import load_tokenizer
from tasks.steps.tokens import ROWS
from tasks.store.artifacts import Artifact, Store
from tasks.store.kept import kept_rows

COSTS = (1.0, 3.0, 10.0, 30.0)


def log_of(probabilities: np.ndarray) -> np.ndarray:
    """Logarithms; of a probability below 1e-6 that of 1e-6."""
    return np.log(np.maximum(probabilities, 1e-6))


def regression(cost: float) -> Any:
    """A multinomial logistic regression."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=cost, max_iter=1000)


def of_network(inputs: Mapping[str, Artifact], split: str, names: Sequence[str]) -> np.ndarray:
    """A finetuned stage's (rows, labels) log probabilities."""
    tokenizer = load_tokenizer(inputs["tokenizer"].folder)
    rows = TokenisedRows(inputs["rows"].path(ROWS), split)
    answers = predict(inputs["stage"].folder, tokenizer, rows)
    return log_of(np.array([[answer.details[name] for name in names] for answer in answers]))


def of_counts(
    rows: Mapping[str, list[PreparedRow]], asked: Sequence[str], baseline: Artifact
) -> dict[str, np.ndarray]:
    """{split: (rows, labels) log probabilities} of n-grams, by the baseline's choice of them."""
    facts, markings = baseline.facts, baseline.preimage["settings"]["markings"]
    grams = [Grams(of, markings) for of in PARTS[facts["features"]]]
    train = stacked([each.fit(columns(rows["train"])) for each in grams])
    features = {
        split: stacked([each.of(columns(rows[split])) for each in grams]) for split in asked
    }
    labels, dev = [row.label for row in rows["train"]], [row.label for row in rows["dev"]]
    models = [regression(cost).fit(train, labels) for cost in COSTS]
    best = max(
        models,
        key=lambda model: scores(
            Label(), dev, model.predict(features["dev"]).tolist(), [facts["metric"]]
        )[facts["metric"]],
    )
    return {split: log_of(best.predict_proba(each)) for split, each in features.items()}


def columns(rows: Sequence[PreparedRow]) -> list[list[str]]:
    """The rows' first texts, and where there are pairs their second."""
    texts = [[row.text for row in rows]]
    if rows[0].text_pair is not None:
        texts.append([row.text_pair or "" for row in rows])
    return texts


def compare(path: Path, network_name: str) -> None:
    """Print a line for each way."""
    table = json.loads(path.read_text("utf-8"))
    store, metric, split = Store(path.parents[2]), table["metrics"][0], table["split"]
    named = [each for each in table["recipes"] if each["name"].endswith(network_name)]
    if len(named) != 1:
        print(f"{path}: another comparison, without one recipe whose name ends in {network_name}")
        return

    def stored(kind: str, key: str) -> Artifact:
        found = store.find(kind, key)
        if not isinstance(found, Artifact):
            raise SystemExit(f"{path}: its {kind} {key[:12]} is gone; run the comparison again")
        return found

    def inputs_of(artifact: Artifact) -> dict[str, Artifact]:
        return {role: stored(of["kind"], of["key"]) for role, of in artifact.inputs.items()}

    keys = named[0]["evaluations"].values()
    runs = [inputs_of(stored("evaluation", key)) for key in keys]
    read = inputs_of(runs[0]["baseline"])
    rows: dict[str, list[PreparedRow]] = {}
    for row in kept_rows(read["data"].as_input(), read["contract"].as_input()):
        rows.setdefault(row.split, []).append(row)
    asked = ("dev", split)
    names = sorted({row.label for row in rows["train"]})
    labels = {of: [row.label for row in rows[of]] for of in asked}
    counts = of_counts(rows, asked, runs[0]["baseline"])

    def score(said: Sequence[str]) -> float:
        return scores(Label(), labels[split], said, [metric])[metric]

    def likeliest(logs: np.ndarray) -> list[str]:
        return [names[i] for i in logs.argmax(axis=1)]

    found: dict[str, list[float]] = {"logistic regression": [score(likeliest(counts[split]))]}
    for run in runs:
        network = {of: of_network(run, of, names) for of in asked}
        both = {of: np.hstack([network[of], counts[of]]) for of in asked}
        second = regression(1.0).fit(both["dev"], labels["dev"])
        found.setdefault("network", []).append(score(likeliest(network[split])))
        found.setdefault("mean", []).append(score(likeliest(network[split] + counts[split])))
        right = np.array([names.index(label) for label in labels["dev"]])
        a, b = fitted(network["dev"], counts["dev"], right)
        found.setdefault("weighted", []).append(
            score(likeliest(a * network[split] + b * counts[split]))
        )
        found.setdefault("stacked", []).append(score(second.predict(both[split]).tolist()))
    for way, values in found.items():
        spread = f" ± {stdev(values):.3f}" if len(values) > 1 else ""
        print(f"{table['dataset']}, {metric}, {way}: {mean(values):.3f}{spread}", flush=True)


def main() -> None:
    """Combine in each table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--network", default="-network", help="how the recipe's name ends")
    options = parser.parse_args()
    for table in options.tables:
        compare(table, options.network)


if __name__ == "__main__":
    main()
