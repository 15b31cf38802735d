"""Make ``regions/``: numbers of transformers' LXMERT and VisualBERT, for `test_regions.py`.

Run by hand, in an environment of its own, as `make_goldens.py` is:

    python tests/parity/make_region_goldens.py

A folder a draw: the checkpoint as transformers saves it, and ``numbers.npz`` with inputs, hidden
states of both streams, logits, the loss of masked tokens and its gradient on the table of tokens.
Everything is random, LayerNorms too (`make_goldens.py` says why).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers as hf

FOLDER = Path(__file__).with_name("regions")
DRAWS = {"large": 0.3, "small": 0.02}
SHARED: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "pad_token_id": 0,
}
LXMERT = SHARED | {
    "l_layers": 3,
    "r_layers": 2,
    "x_layers": 2,
    "visual_feat_dim": 12,
    "num_object_labels": 5,
    "num_attr_labels": 3,
    "num_qa_labels": 4,
}
VISUALBERT = SHARED | {"num_hidden_layers": 3, "visual_embedding_dim": 12}
TOKENS, REGIONS = 14, 7


def inputs() -> dict[str, np.ndarray]:
    """Four rows, whole, padded right and left, almost empty, each with another number of regions.

    A row without any is left out: there theirs attends to all that is masked, alike.
    """
    rng = np.random.default_rng(5)
    ids = rng.integers(5, SHARED["vocab_size"], (4, TOKENS))
    mask = np.ones((4, TOKENS), np.int64)
    mask[1, TOKENS - 5 :] = 0
    mask[2, :5] = 0
    mask[3, 2:] = 0
    ids[mask == 0] = 0
    segments = (np.arange(TOKENS) >= 6).astype(np.int64)[None].repeat(4, 0)
    corners = np.sort(rng.random((4, REGIONS, 2, 2)), axis=2)
    return {
        "token_ids": ids,
        "segment_ids": segments,
        "padding_mask": mask,
        "region_features": rng.normal(0, 1, (4, REGIONS, 12)).astype(np.float32),
        "region_boxes": corners.reshape(4, REGIONS, 4).astype(np.float32),
        "region_mask": (np.arange(REGIONS) < np.array([[7], [4], [1], [6]])).astype(np.int64),
        "mask_positions": np.array([[1, 5, 12], [2, 8, 0], [6, 13, 0], [1, 0, 0]]),
        "mask_labels": rng.integers(5, SHARED["vocab_size"], (4, 3)),
        "mask_weights": np.array([[1, 1, 1], [1, 1, 0], [1, 1, 0], [1, 0, 0]], np.float32),
    }


def run(network: Any, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What `LxmertModel` or `VisualBertModel` computes; the text's states come first."""
    result = network(**given(network, batch), output_hidden_states=True)
    if isinstance(network, hf.LxmertModel):
        sides = result.language_hidden_states, result.vision_hidden_states
        pooled = result.pooled_output
    else:
        states, pooled = result.hidden_states, result.pooler_output
        sides = [x[:, :TOKENS] for x in states], [x[:, TOKENS:] for x in states]
    found = {
        f"{side}_{number}": state.detach().numpy()
        for side, states in zip(("text", "regions"), sides, strict=True)
        for number, state in enumerate(states)
    }
    return found | {"pooled": pooled.detach().numpy()}


def given(network: Any, batch: dict[str, np.ndarray]) -> dict[str, Any]:
    """A batch under their names."""
    named = {
        "input_ids": "token_ids",
        "token_type_ids": "segment_ids",
        "attention_mask": "padding_mask",
        "visual_attention_mask": "region_mask",
    }
    if isinstance(network, hf.LxmertModel):
        named |= {"visual_feats": "region_features", "visual_pos": "region_boxes"}
    else:
        named["visual_embeds"] = "region_features"
    return {theirs: torch.tensor(batch[ours]) for theirs, ours in named.items()}


def main() -> None:
    """Write every folder anew."""
    for draw, deviation in DRAWS.items():
        lxmert = hf.LxmertForPreTraining(hf.LxmertConfig(**LXMERT))
        write(f"lxmert-{draw}", lxmert, lxmert.lxmert, TOKENS, deviation)
        visualbert = hf.VisualBertForPreTraining(hf.VisualBertConfig(**VISUALBERT))
        network, labelled = visualbert.visual_bert, TOKENS + REGIONS
        write(f"visualbert-{draw}", visualbert, network, labelled, deviation)


def write(name: str, model: Any, network: Any, labelled: int, deviation: float) -> None:
    """Write a folder; `labelled` is the number of places that have a label of theirs."""
    model.eval()
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for _, parameter in model.named_parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * deviation)
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    batch = inputs()
    arrays = batch | {f"their/{key}": value for key, value in run(network, batch).items()}
    labels = np.full((len(batch["token_ids"]), labelled), -100)
    for row, slot in zip(*np.nonzero(batch["mask_weights"]), strict=True):
        labels[row, batch["mask_positions"][row, slot]] = batch["mask_labels"][row, slot]
    result = model(**given(network, batch), labels=torch.tensor(labels))
    result.loss.backward()
    logits = result.prediction_logits.detach().numpy()
    where = batch["mask_positions"][:, :, None]
    arrays |= {
        "their/token_logits": np.take_along_axis(logits, where, axis=1),
        "their/loss": result.loss.detach().numpy(),
        "their/table_gradient": model.get_input_embeddings().weight.grad.numpy(),
        "versions": np.array([torch.__version__.split("+")[0], hf.__version__]),
    }
    np.savez_compressed(folder / "numbers.npz", **arrays)


if __name__ == "__main__":
    main()
