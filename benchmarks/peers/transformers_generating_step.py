"""One training step of Hugging Face's GPT-2 or T5, timed on request; needs torch, transformers.

``python transformers_generating_step.py gpt2|t5 eager|compile DROPOUT``.
"""

import resource
import sys
import time

import numpy as np
import torch
import transformers

VOCABULARY, ROWS, LENGTH, TARGET = 32_000, 32, 128, 32


def step_of(kind: str, execution: str, dropout: float):
    """A function that makes one update."""
    torch.manual_seed(0)
    ids = torch.tensor(np.random.default_rng(0).integers(8, VOCABULARY, (ROWS, LENGTH)))
    if kind == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=VOCABULARY,
            n_positions=LENGTH,
            n_embd=256,
            n_layer=4,
            n_head=4,
            n_inner=1024,
            resid_pdrop=dropout,
            embd_pdrop=dropout,
            attn_pdrop=dropout,
            use_cache=False,
        )
        model, labels = transformers.GPT2LMHeadModel(config), ids
    else:
        config = transformers.T5Config(
            vocab_size=VOCABULARY,
            d_model=256,
            d_kv=64,
            d_ff=1024,
            num_layers=4,
            num_heads=4,
            dropout_rate=dropout,
            decoder_start_token_id=0,
            use_cache=False,
        )
        model, labels = (
            transformers.T5ForConditionalGeneration(config),
            ids[:, :TARGET].contiguous(),
        )
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    mask = torch.ones_like(ids)

    def loss() -> torch.Tensor:
        return model(input_ids=ids, attention_mask=mask, labels=labels).loss

    if execution == "compile":
        loss = torch.compile(loss)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def main() -> None:
    """Answer each line ``N`` with the seconds of N steps; then MB at first, and at most."""
    step = step_of(*sys.argv[1:3], float(sys.argv[3]))
    at_first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print("ready", flush=True)
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            started = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - started)
        at_most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(*seconds, at_first, at_most, flush=True)


if __name__ == "__main__":
    main()
