"""Make ``fasttext/numbers.npz``: hashes and vectors of gensim's fastText, for `test_fasttext.py`.

Run by hand, in an environment of its own (gensim is no dependency of ours):

    pip install gensim==4.4.0
    python tests/parity/make_fasttext_goldens.py

Its arrays: the words of a trained model, their own rows and the buckets' rows; words that it has
not seen; the vectors of both; and of all of them the n-grams with their hashes.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
from gensim.models import FastText
from gensim.models.fasttext_inner import compute_ngrams_bytes, ft_hash_bytes

FILE = Path(__file__).with_name("fasttext") / "numbers.npz"
SHORTEST, LONGEST, BUCKETS, WIDTH = 2, 4, 61, 5
ENGLISH = "where her a apple Apple naïve café Größe"
WORDS = f"{ENGLISH} 中文 苹果 语言模型 中 日本語 ひらがな привет हिन्दी 한국어 😀ok".split()
UNSEEN = "there pineapple naïveté größer 苹果树 汉 模型语言 カタカナ приветик नमस्ते 🙂".split()


def main() -> None:
    """Train, look up and write."""
    rng = np.random.default_rng(0)
    text = [[str(word) for word in rng.permutation(WORDS)] for _ in range(50)]
    made = FastText(
        text,
        vector_size=WIDTH,
        min_n=SHORTEST,
        max_n=LONGEST,
        bucket=BUCKETS,
        min_count=1,
        seed=1,
        workers=1,
    ).wv
    words = [*made.index_to_key, *UNSEEN]
    assert not set(UNSEEN) & set(made.index_to_key)
    ngrams = [compute_ngrams_bytes(word, SHORTEST, LONGEST) for word in words]
    FILE.parent.mkdir(exist_ok=True)
    np.savez_compressed(
        FILE,
        gensim=np.array(version("gensim")),
        sizes=np.array([SHORTEST, LONGEST, BUCKETS]),
        words=np.array(words),
        own_rows=made.vectors_vocab,
        bucket_rows=made.vectors_ngrams,
        vectors=np.stack([made[word] for word in words]),
        ngrams=np.array([ngram.decode() for each in ngrams for ngram in each]),
        hashes=np.array([ft_hash_bytes(ngram) for each in ngrams for ngram in each], np.uint32),
        number=np.array([len(each) for each in ngrams]),
    )


if __name__ == "__main__":
    main()
