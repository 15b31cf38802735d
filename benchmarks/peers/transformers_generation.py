"""Generation by transformers' ``generate``, timed on request; needs torch and transformers.

``python transformers_generation.py FOLDER``: a Hugging Face folder of a GPT-2.
"""

import sys
import time

import numpy as np
import torch
import transformers

PROMPT, NEW = 32, 128  # as in benchmarks/generation.py


def main() -> None:
    """Answer ``B K N`` with milliseconds of N calls for B prompts with K beams, or with tokens."""
    model = transformers.GPT2LMHeadModel.from_pretrained(sys.argv[1]).eval()
    print("ready", flush=True)
    for line in sys.stdin:
        count, beams, asked = line.split()
        ids = np.random.default_rng(int(count)).integers(
            1, model.config.vocab_size, (int(count), PROMPT)
        )
        given = torch.tensor(ids)
        taken, found = [], given
        for _ in range(1 if asked == "tokens" else int(asked)):
            began = time.perf_counter()
            with torch.inference_mode():
                found = model.generate(
                    given,
                    attention_mask=torch.ones_like(given),
                    max_new_tokens=NEW,
                    min_new_tokens=NEW,
                    num_beams=int(beams),
                    do_sample=False,
                    eos_token_id=0,
                    pad_token_id=0,
                )
            taken.append(1000 * (time.perf_counter() - began))
        print(*(found[:, PROMPT:].flatten().tolist() if asked == "tokens" else taken), flush=True)


if __name__ == "__main__":
    main()
