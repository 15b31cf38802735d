"""One masked-LM training step of Hugging Face's BERT, timed on request; needs torch, transformers.

``python transformers_masked_lm.py eager|compile float32|bfloat16 published|gathered DROPOUT``.
``published``: logits at every position, as the class computes them. ``gathered``: the head at the
masked positions only.
"""

import contextlib
import sys
import time

import numpy as np
import torch
import transformers

VOCABULARY, ROWS, LENGTH = 8192, 32, 128


def step_of(execution: str, precision: str, head: str, dropout: float):
    """A function that makes one update."""
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    torch.manual_seed(0)
    model = transformers.BertForMaskedLM(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    rng = np.random.default_rng(0)
    ids = torch.tensor(rng.integers(5, VOCABULARY, (ROWS, LENGTH)))
    chosen = torch.tensor(np.argsort(rng.random((ROWS, LENGTH)), axis=1)[:, :20])
    labels = torch.full((ROWS, LENGTH), -100).scatter(1, chosen, ids.gather(1, chosen))
    targets = ids.gather(1, chosen)
    mask = torch.ones_like(ids)

    def loss() -> torch.Tensor:
        if head == "published":
            return model(input_ids=ids, attention_mask=mask, labels=labels).loss
        states = model.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        picked = states.gather(1, chosen[:, :, None].expand(-1, -1, states.shape[-1]))
        logits = model.cls(picked)
        return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())

    if execution == "compile":
        loss = torch.compile(loss)
    cast = (
        torch.autocast("cpu", dtype=torch.bfloat16)
        if precision == "bfloat16"
        else contextlib.nullcontext()
    )

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with cast:
            value = loss()
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def main() -> None:
    """Answer each line ``N`` with the seconds of N steps, one number each."""
    step = step_of(*sys.argv[1:4], float(sys.argv[4]))
    for _ in range(3):
        step()
    print("ready", flush=True)
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            started = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - started)
        print(*seconds, flush=True)


if __name__ == "__main__":
    main()
