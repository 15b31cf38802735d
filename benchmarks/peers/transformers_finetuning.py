"""Fine-tuning of Hugging Face's BERT as transformers' examples do, timed on request.

``python transformers_finetuning.py FOLDER eager|compile to-128|to-longest|grouped``; needs torch
and transformers. FOLDER has ``rows.npz`` of `benchmarks.finetuning_throughput`.
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers.trainer_pt_utils import LengthGroupedSampler

LENGTH, BATCH = 128, 32


class Training:
    """The rows, and a network from random weights for each request."""

    def __init__(self, folder: str, execution: str, padding: str):
        held = np.load(Path(folder) / "rows.npz")
        cls, sep, self.pad = held["special"].tolist()
        self.rows = [
            [cls, *ids.tolist(), sep]
            for ids in np.split(held["ids"], np.cumsum(held["lengths"])[:-1])
        ]
        self.labels = held["labels"]
        self.vocabulary = int(held["vocabulary"])
        self.execution, self.padding = execution, padding

    def batches(self, epoch: int):
        """Batches of an epoch: ids, mask, labels."""
        generator = torch.Generator().manual_seed(epoch)
        if self.padding == "grouped":
            order = list(
                LengthGroupedSampler(
                    BATCH, lengths=[len(row) for row in self.rows], generator=generator
                )
            )
        else:
            order = torch.randperm(len(self.rows), generator=generator).tolist()
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            rows = [self.rows[i] for i in chosen]
            width = LENGTH if self.padding == "to-128" else max(map(len, rows))
            ids = torch.tensor([row + [self.pad] * (width - len(row)) for row in rows])
            mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
            yield ids, mask, torch.tensor(self.labels[chosen])

    def epochs(self, count: int) -> tuple[float, float]:
        """Seconds of so many epochs, and seconds they would take without the first steps."""
        config = transformers.BertConfig(
            vocab_size=self.vocabulary,
            hidden_size=256,
            num_hidden_layers=4,
            num_attention_heads=4,
            intermediate_size=1024,
            max_position_embeddings=LENGTH,
            num_labels=int(self.labels.max()) + 1,
        )
        torch.manual_seed(0)
        torch.compiler.reset()
        began = time.perf_counter()
        model = transformers.BertForSequenceClassification(config).train()
        forward = torch.compile(model) if self.execution == "compile" else model
        # As transformers' Trainer does: no decay of biases and norms, linear decay, clipping at 1.
        plain = [p for n, p in model.named_parameters() if "bias" in n or "LayerNorm" in n]
        others = [p for n, p in model.named_parameters() if not ("bias" in n or "LayerNorm" in n)]
        groups = [{"params": others, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=3e-4, fused=True)
        steps = count * -(-len(self.rows) // BATCH)
        schedule = transformers.get_linear_schedule_with_warmup(optimizer, steps // 10, steps)
        taken, read = [], []
        for epoch in range(count):
            for ids, mask, labels in self.batches(epoch):
                started = time.perf_counter()
                loss = forward(input_ids=ids, attention_mask=mask, labels=labels).loss
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad(set_to_none=True)
                taken.append(time.perf_counter() - started)
                read.append(len(labels))
        whole = time.perf_counter() - began
        # A step that compiles takes many times as long as the others.
        usual = [n for n, seconds in enumerate(taken) if seconds < 10 * np.median(taken)]
        rows_per_second = sum(read[n] for n in usual) / sum(taken[n] for n in usual)
        return whole, sum(read) / rows_per_second


def main() -> None:
    """Answer each line ``E`` with the seconds of E epochs, and of those without compiling."""
    training = Training(*sys.argv[1:4])
    print("ready", flush=True)
    for line in sys.stdin:
        print(*training.epochs(int(line)), flush=True)


if __name__ == "__main__":
    main()
