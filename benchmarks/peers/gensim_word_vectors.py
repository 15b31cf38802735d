"""gensim's words a second on one core; needs gensim and nothing of Fourstage.

``python gensim_word_vectors.py IDS SYSTEMS``: (documents, words) ids as .npy, and JSON
``[[[family, objective, noise words, rate], …], rounds, width, buckets of fastText]``.
"""

import json
import sys
import time

import numpy as np
from gensim.models import FastText, Word2Vec


def main() -> None:
    """Print the words a second of each system as JSON: of training, and with what comes before."""
    texts = [[f"w{i}" for i in row] for row in np.load(sys.argv[1]).tolist()]
    systems, rounds, width, buckets = json.loads(sys.argv[2])
    number = sum(map(len, texts))
    speeds = []
    for family, objective, noise_words, rate in systems:
        fasttext = family == "fasttext"
        seconds, whole = [], []
        for _ in range(rounds):
            started = time.process_time()
            model = (FastText if fasttext else Word2Vec)(
                vector_size=width,
                window=5,
                min_count=1,
                sg=int(objective == "skip_gram"),
                hs=int(noise_words == 0),
                negative=noise_words,
                sample=1e-3,
                alpha=rate,
                workers=1,
                **({"bucket": buckets, "min_n": 3, "max_n": 6} if fasttext else {}),
            )
            model.build_vocab(texts)
            began = time.process_time()
            model.train(texts, total_examples=len(texts), epochs=1)
            seconds.append(time.process_time() - began)
            whole.append(time.process_time() - started)
        speeds.append([round(number / min(each)) for each in (seconds, whole)])
    print(json.dumps(speeds))


if __name__ == "__main__":
    main()
