"""Make ``variants/``: numbers of transformers' classes, for `test_variants.py`.

Run by hand, in an environment of its own, as `make_goldens.py` is:

    python tests/parity/make_variant_goldens.py

A file a network and draw, with the weights, the inputs, hidden states of both sides, logits, the
loss and its gradient on the table of tokens. No class is exactly ours; each is made to be:

- ``transformer``: MarianMTModel with ReLU, whose table of positions has all sines first; the
  paper's takes its place.
- ``mass``: BartForConditionalGeneration with scaled embeddings. Its decoder counts positions from
  0; for each row the rows of its table change places, so that it finds the fragment's there. Only
  the decoder's view of the text is masked: the encoder has run before. Both are confirmed here by
  another way to the same numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers as hf

FOLDER = Path(__file__).with_name("variants")
DRAWS = {"large": 0.3, "small": 0.02}
VOCABULARY_SIZE, POSITIONS, WIDTH = 97, 40, 32
SETTINGS: dict[str, Any] = {
    "vocab_size": VOCABULARY_SIZE,
    "d_model": WIDTH,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": POSITIONS,
    "scale_embedding": True,
    "dropout": 0.0,
    "pad_token_id": 0,
    "eos_token_id": 3,
    "decoder_start_token_id": 3,
    "forced_eos_token_id": None,
    "attn_implementation": "eager",
}
MASK_ID = 4


def interleaved() -> torch.Tensor:
    """The table of Vaswani et al. 2017, 3.5, number by number."""
    table = np.zeros((POSITIONS, WIDTH))
    for position in range(POSITIONS):
        for pair in range(WIDTH // 2):
            angle = position / 10_000 ** (2 * pair / WIDTH)
            table[position, 2 * pair : 2 * pair + 2] = np.sin(angle), np.cos(angle)
    return torch.tensor(table, dtype=torch.float32)


def texts() -> dict[str, np.ndarray]:
    """Four texts with their targets, padded on the right."""
    rng = np.random.default_rng(5)
    text, target = np.array([13, 9, 4, 2])[:, None], np.array([8, 11, 1, 5])[:, None]
    mask, target_mask = np.arange(13) < text, np.arange(11) < target
    return {
        "token_ids": rng.integers(5, VOCABULARY_SIZE, mask.shape) * mask,
        "padding_mask": mask.astype(np.int64),
        "target_ids": rng.integers(5, VOCABULARY_SIZE, target_mask.shape) * target_mask,
        "target_mask": target_mask.astype(np.int64),
        "target_labels": rng.integers(5, VOCABULARY_SIZE, target_mask.shape) * target_mask,
    }


def fragments() -> dict[str, np.ndarray]:
    """Four texts, of each a fragment to write; some of its tokens are seen, or another is."""
    rng = np.random.default_rng(6)
    lengths, starts, sizes = (14, 11, 12, 5), (5, 1, 7, 2), (7, 5, 5, 2)
    names = ("token_ids", "padding_mask", "attended_mask")
    batch = {name: np.zeros((4, 14), np.int64) for name in names}
    of_target = ("target_ids", "target_mask", "target_labels", "target_positions")
    batch |= {name: np.zeros((4, 7), np.int64) for name in of_target}
    for row, (length, start, size) in enumerate(zip(lengths, starts, sizes, strict=True)):
        clean = rng.integers(5, VOCABULARY_SIZE, length)
        seen = clean.copy()
        seen[start : start + size] = MASK_ID
        if size > 4:
            seen[start + 1], seen[start + 3] = clean[start + 1], 5
        batch["token_ids"][row, :length] = seen
        batch["padding_mask"][row, :length] = 1
        batch["attended_mask"][row, :length] = seen != MASK_ID
        before = np.arange(start - 1, start + size - 1)
        batch["target_ids"][row, :size] = clean[before]
        batch["target_positions"][row, :size] = before
        batch["target_mask"][row, :size] = 1
        batch["target_labels"][row, :size] = clean[before + 1]
    return batch


def nats(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Summed over tokens."""
    return torch.nn.functional.cross_entropy(logits, labels, reduction="sum")


def numbers(result: Any, row: slice = slice(None)) -> dict[str, np.ndarray]:
    """Hidden states and logits."""
    found = {f"encoder_{n}": x for n, x in enumerate(result.encoder_hidden_states or ())}
    found |= {f"decoder_{n}": x for n, x in enumerate(result.decoder_hidden_states)}
    found["token_logits"] = result.logits
    return {name: value[row].detach().numpy() for name, value in found.items()}


def of_transformer(model: Any, batch: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """All rows at once."""
    real = batch["target_mask"].bool()
    result = model(
        input_ids=batch["token_ids"],
        attention_mask=batch["padding_mask"],
        decoder_input_ids=batch["target_ids"],
        decoder_attention_mask=batch["target_mask"],
        output_hidden_states=True,
    )
    loss = nats(result.logits[real], batch["target_labels"][real]) / real.sum()
    loss.backward()
    return {**numbers(result), "loss": loss.detach().numpy()}


def of_mass(model: Any, batch: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """Row by row, without padding, each with a table of its own."""
    decoder = model.model.decoder
    offset, table = decoder.embed_positions.offset, decoder.embed_positions.weight.detach().clone()
    rows = []
    total = batch["target_mask"].sum()
    for row in range(len(batch["token_ids"])):
        length, size = (int(batch[key][row].sum()) for key in ("padding_mask", "target_mask"))
        ids = batch["token_ids"][row : row + 1, :length]
        attended_mask = batch["attended_mask"][row : row + 1, :length]
        read = batch["target_ids"][row : row + 1, :size]
        places = batch["target_positions"][row, :size]
        moved = table.clone()
        moved[offset : offset + size] = table[offset + places]
        encoded = model.model.encoder(input_ids=ids, output_hidden_states=True)
        with torch.no_grad():
            decoder.embed_positions.weight.copy_(moved)
        result = model(
            attention_mask=attended_mask,
            encoder_outputs=encoded,
            decoder_input_ids=read,
            output_hidden_states=True,
        )
        loss = nats(result.logits[0], batch["target_labels"][row, :size]) / total
        loss.backward()
        with torch.no_grad():
            decoder.embed_positions.weight.copy_(table)
            # The same by another way: vectors and an additive mask in place of ids and a table.
            vectors = model.get_input_embeddings().weight[read] * WIDTH**0.5
            vectors = vectors + table[offset + places] - table[offset : offset + size]
            hidden = (attended_mask[:, None, None] == 0).float().expand(1, 1, size, length) * -1e9
            again = decoder(
                inputs_embeds=vectors,
                encoder_hidden_states=encoded.last_hidden_state,
                encoder_attention_mask=hidden,
            ).last_hidden_state
            error = (again - result.decoder_hidden_states[-1]).abs().max().item()
            assert error < 5e-6, f"two ways of moving positions differ by {error}"
        rows.append((loss.detach().numpy(), numbers(result)))
    found: dict[str, np.ndarray] = {}
    for name in rows[0][1]:
        longest = max(values[name].shape[1] for _, values in rows)
        padded = [
            np.pad(values[name], ((0, 0), (0, longest - values[name].shape[1]), (0, 0)))
            for _, values in rows
        ]
        found[name] = np.concatenate(padded)
    return found | {"loss": np.sum([loss for loss, _ in rows])}


def weights(model: Any) -> dict[str, np.ndarray]:
    """Each once; tied ones go by ``shared``."""
    tied = ("embed_tokens.weight", "lm_head.weight", "final_logits_bias")
    return {
        name.removeprefix("model."): value.detach().numpy().copy()
        for name, value in model.state_dict().items()
        if not name.endswith(tied)
    }


def main() -> None:
    """Write every file anew."""
    FOLDER.mkdir(exist_ok=True)
    cases: dict[str, Any] = {
        "transformer": (hf.MarianMTModel, "relu", texts(), of_transformer),
        "mass": (hf.BartForConditionalGeneration, "gelu", fragments(), of_mass),
    }
    for name, (kind, activation, batch, run) in cases.items():
        more = {"decoder_vocab_size": VOCABULARY_SIZE} if name == "transformer" else {}
        for draw, deviation in DRAWS.items():
            config = kind.config_class(**SETTINGS, **more, activation_function=activation)
            model = kind(config).eval()
            generator = torch.Generator().manual_seed(7)
            with torch.no_grad():
                for parameter_name, parameter in model.named_parameters():
                    drawn = torch.randn(parameter.shape, generator=generator) * deviation
                    sinusoids = name == "transformer" and "embed_positions" in parameter_name
                    parameter.copy_(interleaved() if sinusoids else drawn)
            found = run(model, {key: torch.tensor(value) for key, value in batch.items()})
            found["table_gradient"] = model.get_input_embeddings().weight.grad.numpy().copy()
            np.savez_compressed(
                FOLDER / f"{name}-{draw}.npz",
                versions=np.array([torch.__version__.split("+")[0], hf.__version__]),
                **{f"batch/{key}": value for key, value in batch.items()},
                **{f"weights/{key}": value for key, value in weights(model).items()},
                **{f"found/{key}": value for key, value in found.items()},
            )


if __name__ == "__main__":
    main()
