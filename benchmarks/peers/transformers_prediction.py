"""Classification by transformers' ``pipeline()``, timed on request; needs torch and transformers.

``python transformers_prediction.py FOLDER TEXTS``: a Hugging Face folder, a JSON file of texts.
"""

import json
import sys
import time

import transformers

COMPARED = 64


def main() -> None:
    """Answer ``B N`` with the milliseconds of N calls with B texts, ``scores`` with scores."""
    folder, path = sys.argv[1:3]
    with open(path, encoding="utf-8") as file:
        texts = json.load(file)
    classify = transformers.pipeline(
        "text-classification", model=folder, tokenizer=folder, truncation=True
    )
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "scores":
            print(*(found["score"] for found in classify(texts[:COMPARED])), flush=True)
            continue
        size, calls = map(int, line.split())
        taken = []
        for call in range(calls):
            start = call * size % max(1, len(texts) - size)
            began = time.perf_counter()
            classify(texts[start : start + size], batch_size=size)
            taken.append(1000 * (time.perf_counter() - began))
        print(*taken, flush=True)


if __name__ == "__main__":
    main()
