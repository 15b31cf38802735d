"""run_mlm.py, then run_glue.py of transformers' examples, in so many seconds; and the judge.

``python transformers_time_to_quality.py SETTINGS``, JSON, with the files of
`benchmarks.time_to_quality`; needs torch and transformers. The loops are those of the examples'
Trainer with its defaults: texts with [CLS] and [SEP] concatenated and cut into blocks, shuffled;
15 % masked anew in each epoch by DataCollatorForLanguageModeling; BERT's dropout; fused AdamW
without weight decay; a rate that falls linearly to 0; gradients clipped at 1. Only the end differs:
a budget in seconds, of which the rate's schedule is a function.

Prints one JSON object: ``framed`` and ``bare``, nats a masked held-out token, ``nats`` a character;
of a training also ``seconds`` and ``tokens`` of pre-training, and ``said``, the labels predicted
for the dev rows after each epoch.
"""

import json
import sys
import time
from itertools import chain
from pathlib import Path

import numpy as np
import torch
import transformers

JUDGED_AT_ONCE = 64
EPOCHS, BATCH, LENGTH = 3, 32, 128  # of run_glue.py as its documentation runs it


def read(settings: dict, name: str) -> list[dict]:
    """The JSON objects of a file, one a line."""
    lines = Path(settings["data"], f"{name}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def updates(model, rate: float, warmup: float):
    """A function that makes an update at a share of the schedule."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0, fused=True)

    def update(share: float) -> None:
        rising = share / warmup if warmup else 1.0
        for group in optimizer.param_groups:
            group["lr"] = rate * min(rising, (1.0 - share) / (1.0 - warmup))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return update


def pretrain(settings: dict, tokenizer):
    """run_mlm.py: the network, the seconds taken and the tokens read."""
    length = settings["length"]
    texts = [each["text"] for each in read(settings, "text")]
    encoded = tokenizer(texts, return_special_tokens_mask=True)
    joined = {name: list(chain(*encoded[name])) for name in ("input_ids", "special_tokens_mask")}
    blocks = [
        {name: all_[start : start + length] for name, all_ in joined.items()}
        for start in range(0, len(joined["input_ids"]) - length + 1, length)
    ]
    transformers.set_seed(settings["seed"])
    began = time.perf_counter()
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **settings["size"]
    )
    model = transformers.BertForMaskedLM(config).train()
    batches = torch.utils.data.DataLoader(
        blocks,
        batch_size=settings["batch"],
        shuffle=True,
        collate_fn=transformers.DataCollatorForLanguageModeling(tokenizer),
    )
    update, tokens = updates(model, settings["rate"], settings["warmup"]), 0
    while True:
        for batch in batches:
            share = (time.perf_counter() - began) / settings["seconds"]
            if share >= 1.0:
                return model, time.perf_counter() - began, tokens
            model(**batch).loss.backward()
            update(share)
            tokens += batch["input_ids"].numel()


def finetune(settings: dict, tokenizer) -> list[list[str]]:
    """run_glue.py: the labels predicted for the dev rows after each epoch.

    Rows are padded to the longest of a batch, not to 128, which only saves time.
    """
    train, dev = read(settings, "train"), read(settings, "dev")
    names = sorted({row["label"] for row in train})
    transformers.set_seed(settings["seed"])
    model = transformers.BertForSequenceClassification.from_pretrained(
        settings["network"], num_labels=len(names)
    )
    update = updates(model, settings["finetune_rate"], settings["finetune_warmup"])

    def encoded(rows: list[dict]):
        texts = [row["text"] for row in rows]
        limits = {"truncation": True, "max_length": LENGTH, "padding": True}
        return tokenizer(texts, return_tensors="pt", **limits)

    said, step, steps = [], 0, EPOCHS * -(-len(train) // BATCH)
    for _ in range(EPOCHS):
        model.train()
        for chosen in torch.randperm(len(train)).split(BATCH):
            rows = [train[i] for i in chosen.tolist()]
            labels = torch.tensor([names.index(row["label"]) for row in rows])
            model(**encoded(rows), labels=labels).loss.backward()
            update(step / steps)
            step += 1
        model.eval()
        with torch.inference_mode():
            parts = [dev[start : start + BATCH] for start in range(0, len(dev), BATCH)]
            found = torch.cat([model(**encoded(part)).logits.argmax(-1) for part in parts])
        said.append([names[label] for label in found.tolist()])
    return said


@torch.inference_mode()
def nats(model, data: str) -> dict[str, float]:
    """Mean loss of a masked token in both forms of the windows, and a character's in the better.

    Ours are read between [CLS] and [SEP], most blocks of run_mlm.py are not.
    """
    held = {name: torch.tensor(array) for name, array in np.load(Path(data, "judge.npz")).items()}
    found = {}
    for form, cut in (("framed", 0), ("bare", 1)):
        ids, total = held["ids"][:, cut : held["ids"].shape[1] - cut], 0.0
        for rows in torch.arange(len(ids)).split(JUDGED_AT_ONCE):
            states = model.base_model(ids[rows], torch.ones_like(ids[rows])).last_hidden_state
            places = (held["positions"][rows].long() - cut)[:, :, None]
            logits = model.cls(states.gather(1, places.expand(-1, -1, states.shape[-1])))
            labels = held["labels"][rows].long().flatten()
            total += torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), labels, reduction="sum"
            ).item()
        found[form] = total / held["labels"].numel()
    return {**found, "nats": min(found.values()) * held["tokens_a_character"].item()}


def main() -> None:
    """Train as the settings say, or only judge ``network``; print what was found."""
    settings, found = json.loads(sys.argv[1]), {}
    if "rate" in settings:
        tokenizer = transformers.AutoTokenizer.from_pretrained(settings["tokenizer"])
        model, found["seconds"], found["tokens"] = pretrain(settings, tokenizer)
        model.save_pretrained(settings["network"])
        found["said"] = finetune(settings, tokenizer)
    model = transformers.AutoModelForMaskedLM.from_pretrained(settings["network"]).eval()
    print(json.dumps({**found, **nats(model, settings["data"])}))


if __name__ == "__main__":
    main()
