"""Make ``bert.npz``: BERT's numbers from Hugging Face transformers, for `test_parity_bert.py`.

Run by hand, in an environment of its own (torch and transformers are no dependencies of ours):

    pip install torch==2.13.0 transformers numpy && python tests/parity/make_bert.py

Everything is random, LayerNorm gains and biases and the padding row too: what starts at 0 or 1
would hide a swapped or a missing term. Values are N(0, 0.3), large enough to tell the two GELUs
apart.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
import transformers

SIZE = {
    "vocabulary_size": 97,
    "hidden_dim": 32,
    "num_heads": 4,
    "num_layers": 3,
    "intermediate_dim": 64,
    "max_sequence_length": 40,
}
ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_new"}  # our name: theirs

# Theirs → ours; the kernels of dense layers are transposed.
TOP = {
    "bert.embeddings.word_embeddings": "network/embeddings/token",
    "bert.embeddings.position_embeddings": "network/embeddings/position",
    "bert.embeddings.token_type_embeddings": "network/embeddings/segment",
    "bert.embeddings.LayerNorm": "network/embeddings/norm",
    "bert.pooler.dense": "network/pooler",
    "cls.predictions.transform.dense": "masked_lm/transform",
    "cls.predictions.transform.LayerNorm": "masked_lm/norm",
    "cls.seq_relationship": "next_sentence/output",
}
IN_BLOCK = {
    "attention.self.query": "attention/query",
    "attention.self.key": "attention/key",
    "attention.self.value": "attention/value",
    "attention.output.dense": "attention/output",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "intermediate",
    "output.dense": "output",
    "output.LayerNorm": "output_norm",
}


def our_name(name: str) -> str:
    """Our name of one of their parameters."""
    if name == "cls.predictions.bias":
        return "masked_lm/output_bias"
    module, kind = name.rsplit(".", 1)
    if module.startswith("bert.encoder.layer."):
        number, rest = module.removeprefix("bert.encoder.layer.").split(".", 1)
        ours = f"network/block_{number}/{IN_BLOCK[rest]}"
    else:
        ours = TOP[module]
    if "norm" in ours.rsplit("/", 1)[-1]:
        kinds = {"weight": "gamma", "bias": "beta"}
    elif module.endswith("_embeddings"):
        kinds = {"weight": "embeddings"}
    else:
        kinds = {"weight": "kernel", "bias": "bias"}
    return f"{ours}/{kinds[kind]}"


def main() -> None:
    """Write the golden file beside this script."""
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    batch, length = 4, 14
    ids = rng.integers(5, SIZE["vocabulary_size"], (batch, length))
    mask = np.ones((batch, length), np.int64)
    mask[1, 9:] = 0  # right padding
    mask[2, :5] = 0  # left padding
    mask[3, 2:] = 0  # almost nothing but padding
    ids[mask == 0] = 0
    segments = (np.arange(length) >= 6).astype(np.int64)[None].repeat(batch, 0)
    segments[3] = 0
    positions = np.array([[1, 5, 12], [2, 8, 0], [6, 13, 0], [1, 0, 0]])
    weights = np.array([[1, 1, 1], [1, 1, 0], [1, 1, 0], [1, 0, 0]], np.float32)
    labels = rng.integers(5, SIZE["vocabulary_size"], positions.shape)
    next_sentence = np.array([0, 1, 1, 0])
    their_labels = np.full((batch, length), -100)
    for row in range(batch):
        for slot in range(positions.shape[1]):
            if weights[row, slot]:
                their_labels[row, positions[row, slot]] = labels[row, slot]

    arrays: dict[str, np.ndarray] = {}
    for ours, theirs in ACTIVATIONS.items():
        config = transformers.BertConfig(
            vocab_size=SIZE["vocabulary_size"],
            hidden_size=SIZE["hidden_dim"],
            num_hidden_layers=SIZE["num_layers"],
            num_attention_heads=SIZE["num_heads"],
            intermediate_size=SIZE["intermediate_dim"],
            max_position_embeddings=SIZE["max_sequence_length"],
            type_vocab_size=2,
            layer_norm_eps=1e-12,
            hidden_act=theirs,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            attn_implementation="eager",
        )
        model = transformers.BertForPreTraining(config).eval()
        generator = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
                if name.endswith("LayerNorm.weight"):
                    parameter.add_(1.0)
        result = model(
            input_ids=torch.tensor(ids),
            attention_mask=torch.tensor(mask),
            token_type_ids=torch.tensor(segments),
            labels=torch.tensor(their_labels),
            next_sentence_label=torch.tensor(next_sentence),
            output_hidden_states=True,
        )
        result.loss.backward()
        table = model.bert.embeddings.word_embeddings.weight
        assert model.cls.predictions.decoder.weight is table
        for number, state in enumerate(result.hidden_states):
            arrays[f"{ours}/hidden_{number}"] = state.detach().numpy()
        with torch.no_grad():
            arrays[f"{ours}/pooled"] = model.bert.pooler(result.hidden_states[-1]).numpy()
        logits = result.prediction_logits.detach().numpy()
        arrays[f"{ours}/token_logits"] = np.take_along_axis(logits, positions[:, :, None], axis=1)
        arrays[f"{ours}/next_sentence_logits"] = result.seq_relationship_logits.detach().numpy()
        arrays[f"{ours}/loss"] = result.loss.detach().numpy()
        arrays[f"{ours}/table_gradient"] = table.grad.numpy()

    # The same weights for both activations.
    for name, parameter in model.named_parameters():
        value = parameter.detach().numpy()
        name = our_name(name)
        arrays[f"weights/{name}"] = value.T if name.endswith("/kernel") else value
    arrays |= {
        "token_ids": ids.astype(np.int32),
        "segment_ids": segments.astype(np.int32),
        "padding_mask": mask.astype(np.int32),
        "mask_positions": positions.astype(np.int32),
        "mask_labels": labels.astype(np.int32),
        "mask_weights": weights,
        "next_sentence_labels": next_sentence.astype(np.int32),
        "about": np.array(
            json.dumps(
                {
                    "size": SIZE,
                    "torch": torch.__version__.split("+")[0],
                    "transformers": transformers.__version__,
                }
            )
        ),
    }
    np.savez_compressed(Path(__file__).with_name("bert.npz"), **arrays)


if __name__ == "__main__":
    main()
