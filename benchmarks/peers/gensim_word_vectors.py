"""gensim's words a second on one core; needs gensim and nothing of Fourstage.

``python gensim_word_vectors.py IDS SYSTEMS``: (documents, words) ids as .npy, and JSON
``[[[objective, noise words, rate], …], rounds]``.
"""

import json
import sys
import time

import numpy as np
from gensim.models import Word2Vec


def main() -> None:
    """Print the words a second of each system as JSON."""
    texts = [[f"w{i}" for i in row] for row in np.load(sys.argv[1]).tolist()]
    systems, rounds = json.loads(sys.argv[2])
    number = sum(map(len, texts))
    speeds = []
    for objective, noise_words, rate in systems:
        seconds = []
        for _ in range(rounds):
            model = Word2Vec(
                vector_size=100,
                window=5,
                min_count=1,
                sg=int(objective == "skip_gram"),
                hs=int(noise_words == 0),
                negative=noise_words,
                sample=1e-3,
                alpha=rate,
                workers=1,
            )
            model.build_vocab(texts)
            began = time.process_time()
            model.train(texts, total_examples=len(texts), epochs=1)
            seconds.append(time.process_time() - began)
        speeds.append(round(number / min(seconds)))
    print(json.dumps(speeds))


if __name__ == "__main__":
    main()
