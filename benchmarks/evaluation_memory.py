"""Held-out loss as more is remembered: ``python -m benchmarks.evaluation_memory TOKENS STAGE…``.

TOKENS is the folder of a tokenised corpus, STAGE those of stages with a causal LM, all in one
``$FOURSTAGE_HOME/store``. A network that remembers reads windows as long as those of its
training after 0, 32, 64… tokens of memory; one without memory reads longer windows instead. Prints
nats a token and their mean over the stages of each kind, and with ``--plot FILE`` draws them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from statistics import mean

from corpora.shards import TokenisedCorpus
from models.evaluation.heldout import heldout_losses
from models.saved_tokenizer import load_tokenizer
from models.stage_format import CONFIG
from models.training.trained_stage import config_of
from tasks.steps.tokens import DOCUMENTS, HELDOUT
from tasks.store.artifacts import tokenizer_in_store

SEEN = (32, 64, 96, 160, 288, 544)  # tokens that the last one of a window attends to
ALL = 1_000_000  # windows


def losses(stage: Path, tokens: TokenisedCorpus) -> dict[int, float]:
    """{tokens that the last one of a window attends to: nats a token}."""
    config = config_of(stage)
    folder = tokenizer_in_store(stage)
    assert folder is not None, f"{stage}: no tokenizer in the same store"
    tokenizer = load_tokenizer(folder)
    remembers = bool(config["network"]["memory_length"])
    found = {}
    for seen in SEEN:
        window = config["sequence_length"] if remembers else seen
        if seen < window:
            continue
        memory = seen - window
        with tempfile.TemporaryDirectory() as written:
            copy = Path(written)
            for path in stage.iterdir():
                (copy / path.name).symlink_to(path)
            lengths = {"memory_length": memory, "evaluation_memory_length": memory}
            changed = config | {"network": config["network"] | lengths}
            (copy / CONFIG).unlink()
            (copy / CONFIG).write_text(json.dumps(changed), "utf-8")
            measured = heldout_losses(
                copy,
                tokenizer,
                {"": tokens},
                objective="causal_lm",
                sequence_length=window,
                rows=ALL,
            )
        found[seen] = measured[""]["loss"]
    return found


def main() -> None:
    """Measure, print, and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokens", metavar="TOKENS", type=Path)
    parser.add_argument("stages", metavar="STAGE", type=Path, nargs="+")
    parser.add_argument("--plot", metavar="FILE", type=Path)
    options = parser.parse_args()
    tokens = TokenisedCorpus(options.tokens / DOCUMENTS, HELDOUT)
    kinds: dict[str, list[dict[int, float]]] = {}
    for stage in options.stages:
        remembered = config_of(stage)["network"]["memory_length"]
        kind = f"memory of {remembered} in training" if remembered else "no memory"
        kinds.setdefault(kind, []).append(losses(stage, tokens))
        print(kind, {seen: round(loss, 4) for seen, loss in kinds[kind][-1].items()}, flush=True)
    means = {
        kind: {seen: mean(each[seen] for each in found) for seen in found[0]}
        for kind, found in kinds.items()
    }
    for kind, mean_of in means.items():
        print(f"{kind:<28}" + "  ".join(f"{seen}: {loss:.3f}" for seen, loss in mean_of.items()))
    if options.plot:
        draw(means, options.plot)


def draw(means: dict[str, dict[int, float]], path: Path) -> None:
    """A line for each kind."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
    for kind, mean_of in means.items():
        axes.plot(list(mean_of), list(mean_of.values()), marker="o", label=kind)
    axes.set_xscale("log", base=2)
    axes.set_xticks(SEEN, [str(seen) for seen in SEEN])
    axes.set_xlabel("tokens that the last one of a window attends to, itself among them")
    axes.set_ylabel("held-out loss, nats a token")
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main()
