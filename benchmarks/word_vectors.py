"""Words a second of word2vec and fastText on one core, beside gensim.

``python -m benchmarks.word_vectors [--peer PYTHON] [--json]``. Two million made-up words by Zipf's
law, a vocabulary of 20,000, 100 dimensions, windows of 5, 5 noise words or hierarchical softmax,
thinning out at 1e-3; fastText with n-grams of 3 to 6 characters in 200,000 buckets. Seconds are
those of the processor, so that other work on the machine counts less; the best of three. Ours count
the words and write the stage in that time, too; gensim's are those of its training alone, and those
with its vocabulary, which it makes of words where ours counts numbers. PYTHON is an interpreter
that has gensim (``benchmarks/peers/gensim_word_vectors.py``).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

PEER = Path(__file__).parent / "peers" / "gensim_word_vectors.py"
VOCABULARY, DOCUMENTS, LENGTH, ROUNDS = 20_000, 4000, 500, 3
FIRST = 5  # the special tokens come before
SYSTEMS = (
    ("word2vec", "skip_gram", 5, 0.025),
    ("word2vec", "cbow", 5, 0.05),
    ("word2vec", "skip_gram", 0, 0.025),
    ("word2vec", "cbow", 0, 0.05),
    ("fasttext", "skip_gram", 5, 0.025),
    ("fasttext", "cbow", 5, 0.05),
)
WIDTH, BUCKETS = 100, 200_000


class Corpus:
    """Made-up documents in memory."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        weights = 1.0 / np.arange(1, VOCABULARY + 1)
        drawn = rng.choice(VOCABULARY, (DOCUMENTS, LENGTH), p=weights / weights.sum())
        self.ids = (drawn + FIRST).astype(np.int32)
        self.lengths = np.full(DOCUMENTS, LENGTH, np.int64)
        self.num_tokens = DOCUMENTS * LENGTH

    def __len__(self) -> int:
        return DOCUMENTS

    def document(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids, lengths of sentences, unit starts."""
        return self.ids[i], self.lengths[:1], np.ones(LENGTH, bool)


def name_of(family: str, objective: str, noise_words: int) -> str:
    """A system's name in the table."""
    return f"{family} {objective}, {f'{noise_words} noise words' if noise_words else 'tree'}"


def ours(corpus: Corpus) -> dict[str, int]:
    """Words a second of each system."""
    from fourstage.recipe.defaults import STAGES
    from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece
    from models.training.job import TrainingJob
    from models.training.stage import Budget, Optimizer, Phase, StageSettings
    from models.training.trainer import train

    words = [f"w{i}" for i in range(VOCABULARY)]
    tokenizer = WordPiece([*SPECIAL_TOKENS, *words], lowercase=True)
    found = {}
    for family, objective, noise_words, rate in SYSTEMS:
        asked = {"noise_words": noise_words, "learning_rate": rate}
        stage = StageSettings(
            kind="general",
            family=family,
            network={"hidden_dim": WIDTH} | ({"buckets": BUCKETS} if family == "fasttext" else {}),
            phases=(Phase(LENGTH),),
            batch_size=32,
            budget=Budget("epochs", 1),
            optimizer=Optimizer("adamw", STAGES["general"].adamw),
            objectives={objective: asked},
        )
        job = TrainingJob(stage, tokenizer, {"made up": (corpus, 1.0)})
        seconds = []
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as folder:
                began = time.process_time()
                train(job, Path(folder) / "stage")
                seconds.append(time.process_time() - began)
        found[name_of(family, objective, noise_words)] = round(corpus.num_tokens / min(seconds))
    return found


def peers(corpus: Corpus, python: str) -> dict[str, tuple[int, int]]:
    """The same of gensim: of its training, and with the vocabulary that it makes before."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ids.npy"
        np.save(path, corpus.ids)
        asked = json.dumps([SYSTEMS, ROUNDS, WIDTH, BUCKETS])
        said = subprocess.run(
            [python, str(PEER), str(path), asked], check=True, capture_output=True, text=True
        )
    speeds = json.loads(said.stdout)
    names = (name_of(*system[:3]) for system in SYSTEMS)
    return dict(zip(names, speeds, strict=True))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", metavar="PYTHON")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    corpus = Corpus()
    found = {"fourstage": ours(corpus)}
    if options.peer:
        found["gensim"] = peers(corpus, options.peer)
    if options.json:
        print(json.dumps(found))
        return
    for name, speed in found["fourstage"].items():
        line = f"{name:<34} {speed:>9,} words/s"
        if options.peer:
            for peer, of in zip(found["gensim"][name], ("trains", "and counts"), strict=True):
                line += f"   gensim {of} {peer:>9,}   {speed / peer:.2f} x"
        print(line)


if __name__ == "__main__":
    main()
