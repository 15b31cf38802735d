"""Make ``golden/``, ``generation/`` and ``relative/``: numbers of Hugging Face transformers.

Run by hand, in an environment of its own (torch and transformers are no dependencies of ours):

    pip install torch==2.13.0 transformers==5.23.0 && python tests/parity/make_goldens.py

With ``relative`` as argument only the last of them. A folder a class and draw: the checkpoint as
transformers saves it, and ``numbers.npz`` with inputs and, for both GELUs, hidden states, logits,
the loss and its gradient on the table of tokens.

Everything is random, LayerNorm gains and biases and the padding row too: what starts at 0 or 1
would hide a swapped or a missing term. N(0, 0.3) is large enough to tell the two GELUs apart,
N(0, 0.02) small enough to tell two epsilons apart.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers as hf

FOLDER = Path(__file__).with_name("golden")
GENERATION = Path(__file__).with_name("generation")
RELATIVE = Path(__file__).with_name("relative")
DRAWS = {"large": 0.3, "small": 0.02}
ACTIVATIONS = ("gelu", "gelu_new")
SIZE = {
    "vocab_size": 97,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
DISTILBERT = {
    "vocab_size": 97,
    "dim": 32,
    "n_layers": 3,
    "n_heads": 4,
    "hidden_dim": 64,
    "max_position_embeddings": 40,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}
GPT = {
    "vocab_size": 97,
    "n_embd": 32,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": 40,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "pad_token_id": 0,
}
ACTIVATION_KEYS = {"distilbert": "activation", "gpt2": "activation_function", "gpt": "afn"}
# Name: (class, settings, key of the second head's labels, of its logits)
CASES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "bert": ("BertForPreTraining", SIZE, "next_sentence_label", "seq_relationship_logits"),
    "roberta": (
        "RobertaForMaskedLM",
        SIZE | {"max_position_embeddings": 42, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
        "",
        "",
    ),
    "albert": (
        "AlbertForPreTraining",
        SIZE | {"embedding_size": 16, "num_hidden_groups": 2, "inner_group_num": 2},
        "sentence_order_label",
        "sop_logits",
    ),
    "electra-generator": ("ElectraForMaskedLM", SIZE | {"embedding_size": 16}, "", ""),
    "electra-discriminator": ("ElectraForPreTraining", SIZE | {"embedding_size": 16}, "", "logits"),
    "distilbert": ("DistilBertForMaskedLM", DISTILBERT, "", ""),
    "ernie": (
        "ErnieForPreTraining",
        SIZE | {"use_task_id": True},
        "next_sentence_label",
        "seq_relationship_logits",
    ),
    "gpt": ("OpenAIGPTLMHeadModel", GPT, "", ""),
    "gpt2": ("GPT2LMHeadModel", GPT | {"n_inner": 64}, "", ""),
}
CAUSAL = ("gpt", "gpt2")
XLNET = {
    "vocab_size": 97,
    "d_model": 32,
    "n_layer": 3,
    "n_head": 4,
    "d_inner": 64,
    "dropout": 0.0,
    "mem_len": 10,
    "pad_token_id": 0,
}
# Transformer-XL, which transformers no longer has, as a special case of its XLNet: one direction,
# no segments, one pair of biases in all layers. What is changed against the first case, by case.
TRANSFORMER_XL = XLNET | {
    "attn_type": "uni",
    "ff_activation": "relu",
    "layer_norm_eps": 1e-5,
    "bi_data": False,
}
READINGS = {"plain": {}, "same_length": {"same_length": True}, "clamped": {"clamp_len": 6}}
SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "beams": {"num_beams": 4},
    "short": {"num_beams": 4, "length_penalty": 0.0},
    "long": {"num_beams": 3, "length_penalty": 2.0, "min_new_tokens": 5},
    "no_repeat": {"num_beams": 4, "no_repeat_ngram_size": 2},
}
NEW_TOKENS = 16
LENGTHS = (14, 33)


def inputs(length: int, pad_id: int) -> dict[str, np.ndarray]:
    """Four rows: whole, padded on the right, padded on the left, almost nothing but padding."""
    rng = np.random.default_rng(length)
    ids = rng.integers(5, SIZE["vocab_size"], (4, length))
    mask = np.ones((4, length), np.int64)
    mask[1, length - 5 :] = 0
    mask[2, :5] = 0
    mask[3, 2:] = 0
    ids[mask == 0] = pad_id
    segments = (np.arange(length) >= 6).astype(np.int64)[None].repeat(4, 0)
    segments[3] = 0
    weights = np.array([[1, 1, 1], [1, 1, 0], [1, 1, 0], [1, 0, 0]], np.float32)
    return {
        "token_ids": ids,
        "segment_ids": segments,
        "padding_mask": mask,
        "task_ids": np.array([0, 2, 1, 2]),
        "mask_positions": np.array([[1, 5, 12], [2, 8, 0], [6, 13, 0], [1, 0, 0]]),
        "mask_labels": rng.integers(5, SIZE["vocab_size"], (4, 3)),
        "mask_weights": weights,
        "row_labels": np.array([0, 1, 1, 0]),
        "replaced": rng.integers(0, 2, (4, length)),
    }


def next_labels(batch: dict[str, np.ndarray]) -> np.ndarray:
    """The targets of causal_lm as theirs: (B, T), which they shift; none from padding."""
    real = batch["padding_mask"].astype(bool)
    after = np.concatenate([real[:, :1], real[:, 1:] & real[:, :-1]], axis=1)
    return np.where(after, batch["token_ids"], -100)


def labels(batch: dict[str, np.ndarray]) -> np.ndarray:
    """The targets of masked_lm as theirs: (B, T), -100 where nothing is predicted."""
    found = np.full(batch["token_ids"].shape, -100)
    for row, slot in zip(*np.nonzero(batch["mask_weights"]), strict=True):
        found[row, batch["mask_positions"][row, slot]] = batch["mask_labels"][row, slot]
    return found


def run(model: Any, name: str, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What their class computes."""
    _, _, label_key, logits_key = CASES[name]
    given = {
        "input_ids": batch["token_ids"],
        "attention_mask": batch["padding_mask"],
        "labels": batch["replaced"] if name == "electra-discriminator" else labels(batch),
    }
    if name in CAUSAL:
        given["labels"] = next_labels(batch)
        counted = np.cumsum(batch["padding_mask"], axis=1) - 1  # as their `generate` counts
        given["position_ids"] = np.maximum(counted, 0) * batch["padding_mask"]
    elif name not in ("roberta", "distilbert"):
        given["token_type_ids"] = batch["segment_ids"]
    if name == "ernie":
        length = batch["token_ids"].shape[1]
        given["task_type_ids"] = batch["task_ids"][:, None].repeat(length, 1)
    if label_key:
        given[label_key] = batch["row_labels"]
    given = {key: torch.tensor(value) for key, value in given.items()}
    if name == "electra-discriminator":
        given["labels"] = given["labels"].float()
    model.zero_grad()
    result = model(**given, output_hidden_states=True)
    result.loss.backward()
    table = model.get_input_embeddings().weight
    states = result.hidden_states
    found = {
        f"hidden_{number}": state.detach().numpy()
        for number, state in enumerate(states)
        # Of the longer batch the last ones are enough.
        if batch["token_ids"].shape[1] == LENGTHS[0] or number == len(states) - 1
    }
    found |= {"loss": result.loss.detach().numpy(), "table_gradient": table.grad.numpy().copy()}
    if name != "electra-discriminator":
        logits = getattr(result, "prediction_logits", None)
        logits = (result.logits if logits is None else logits).detach().numpy()
        where = batch["mask_positions"][:, :, None]
        found["token_logits"] = (
            logits[:, :-1] if name in CAUSAL else np.take_along_axis(logits, where, axis=1)
        )
    if logits_key:
        found["second_logits"] = getattr(result, logits_key).detach().numpy()
    return found


def generated(model: Any) -> dict[str, np.ndarray]:
    """What follows eight prompts of 3 to 10 tokens, padded on the left, by every search.

    The stop token is the one that greedy search writes in most texts, but not at once.
    """
    rng = np.random.default_rng(1)
    ids = rng.integers(5, SIZE["vocab_size"], (8, 10))
    mask = (np.arange(10) >= 10 - np.arange(3, 11)[:, None]).astype(np.int64)
    ids *= mask
    given: dict[str, Any] = {
        "input_ids": torch.tensor(ids),
        "attention_mask": torch.tensor(mask),
        "max_new_tokens": NEW_TOKENS,
        "do_sample": False,
        "pad_token_id": 0,
    }
    endless = model.generate(**given, eos_token_id=None)[:, 10:].numpy()
    texts = [sum(token in text[2:] for text in endless) for token in range(SIZE["vocab_size"])]
    early = [sum(token in text[:2] for text in endless) for token in range(SIZE["vocab_size"])]
    stop = int(np.argmax(np.array(texts) - 2 * np.array(early)))
    found = {"ids": ids, "mask": mask, "stop": np.array(stop)}
    for name, settings in SEARCHES.items():
        tokens = model.generate(**given, **settings, eos_token_id=stop)[:, 10:].numpy()
        padded = np.zeros((len(ids), NEW_TOKENS), np.int64)
        padded[:, : tokens.shape[1]] = tokens
        # Beam search fills up with the stop token if padding is 0.
        ended = np.cumsum(padded == stop, axis=1) - (padded == stop)
        found[name] = np.where(ended, 0, padded)
    return found


def randomise(model: Any, deviation: float) -> None:
    """Draw every weight anew, the same for every class."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for _, parameter in model.named_parameters():
            drawn = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(drawn * deviation)


def factorised(length: int, mask: np.ndarray) -> dict[str, np.ndarray]:
    """Places of three tokens a row that are predicted in some order, and their slots."""
    places = np.zeros((4, length), np.int64)
    at = np.array([[1, 5, 12], [2, 8, 0], [6, 13, 9], [1, 0, 0]])
    weights = np.array([[1, 1, 1], [1, 1, 0], [1, 1, 1], [1, 0, 0]], np.float32)
    for row, order in enumerate(([2, 1, 3], [1, 2], [3, 1, 2], [1])):
        for slot, place in enumerate(order):
            places[row, at[row, slot]] = place
    assert mask[np.arange(4)[:, None], at][weights > 0].all()
    return {"factorisation": places, "query_positions": at, "query_weights": weights}


def xlnet(model: Any, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What their XLNet computes of a row after another one, in both streams."""
    ids = torch.tensor(batch["token_ids"])
    length = ids.shape[1]
    places, at = batch["factorisation"], batch["query_positions"]
    asked = np.zeros(places.shape, bool)
    asked[np.nonzero(batch["query_weights"])[0], at[batch["query_weights"] > 0]] = True
    hidden = places[:, None] > places[:, :, None]
    hidden |= (places[:, None] == places[:, :, None]) & asked[:, :, None]
    chosen = np.take_along_axis(batch["token_ids"], at, axis=1)
    labels_of = np.where(batch["query_weights"] > 0, chosen, -100)
    with torch.no_grad():
        before = model(torch.tensor(batch["before"])).mems
    model.zero_grad()
    result = model(
        ids,
        attention_mask=torch.tensor(batch["padding_mask"]).float(),
        token_type_ids=torch.tensor(batch["segment_ids"]),
        perm_mask=torch.tensor(hidden).float(),
        target_mapping=torch.nn.functional.one_hot(torch.tensor(at), length).float(),
        mems=before,
        labels=torch.tensor(labels_of),
        output_hidden_states=True,
    )
    result.loss.backward()
    streams = [state.detach().numpy() for state in result.hidden_states]
    return {
        **{f"hidden_{number}": state for number, state in enumerate(streams[::2])},
        "query": streams[-1],
        "memory": by_row(before),
        "memory_after": by_row(result.mems),
        "logits": result.logits.detach().numpy(),
        "loss": result.loss.detach().numpy(),
        "table_gradient": model.get_input_embeddings().weight.grad.numpy().copy(),
    }


def by_row(memory: Any) -> np.ndarray:
    """Their memory, (P, B, D) a layer, as ours, (B, L, P, D)."""
    return np.stack([each.detach().numpy() for each in memory]).transpose(2, 0, 1, 3)


def transformer_xl(model: Any, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What Transformer-XL computes of a row after another one, and its loss with tied output.

    Padding counts as tokens: their class fails where one direction meets a mask of several rows.
    """
    table = model.get_input_embeddings().weight
    scale = table.shape[1] ** 0.5
    with torch.no_grad():
        before = model(inputs_embeds=scale * table[torch.tensor(batch["before"])]).mems
    model.zero_grad()
    ids = torch.tensor(batch["token_ids"])
    result = model(
        inputs_embeds=scale * table[ids],
        mems=before,
        output_hidden_states=True,
    )
    logits = result.last_hidden_state @ table.T
    after = ids[:, 1:].reshape(-1)
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].reshape(len(after), -1), after)
    loss.backward()
    states = [state.detach().numpy() for state in result.hidden_states]
    return {
        **{f"hidden_{number}": state for number, state in enumerate(states)},
        "memory": by_row(before),
        "memory_after": by_row(result.mems),
        "logits": logits.detach().numpy(),
        "loss": loss.detach().numpy(),
        "table_gradient": table.grad.numpy().copy(),
    }


def relative() -> None:
    """Write ``relative/`` anew."""
    shutil.rmtree(RELATIVE, ignore_errors=True)
    versions = np.array([torch.__version__.split("+")[0], hf.__version__])
    batch = inputs(LENGTHS[0], 0)
    batch |= factorised(LENGTHS[0], batch["padding_mask"])
    batch["before"] = np.random.default_rng(3).integers(5, SIZE["vocab_size"], (4, 10))
    for draw, deviation in DRAWS.items():
        arrays = {**batch, "versions": versions}
        folder = RELATIVE / f"xlnet-{draw}"
        for activation in ACTIVATIONS:
            config = hf.XLNetConfig(**XLNET, ff_activation=activation)
            model = hf.XLNetLMHeadModel(config).eval()
            randomise(model, deviation)
            if activation == ACTIVATIONS[0]:
                model.save_pretrained(folder)
            arrays |= {f"{activation}/{k}": v for k, v in xlnet(model, batch).items()}
        np.savez_compressed(folder / "numbers.npz", **arrays)
        arrays = {**batch, "versions": versions}
        folder = RELATIVE / f"transformer-xl-{draw}"
        for reading, changes in READINGS.items():
            model = hf.XLNetModel(hf.XLNetConfig(**(TRANSFORMER_XL | changes))).eval()
            randomise(model, deviation)
            with torch.no_grad():
                for layer in model.layer[1:]:
                    for name in ("r_w_bias", "r_r_bias"):
                        getattr(layer.rel_attn, name).copy_(getattr(model.layer[0].rel_attn, name))
            if reading == "plain":
                model.save_pretrained(folder)
            arrays |= {f"{reading}/{k}": v for k, v in transformer_xl(model, batch).items()}
        np.savez_compressed(folder / "numbers.npz", **arrays)


def main() -> None:
    """Write every folder anew, or those of one kind."""
    if sys.argv[1:] == ["relative"]:
        relative()
        return
    relative()
    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.rmtree(GENERATION, ignore_errors=True)
    for name in CAUSAL:
        class_name, settings, _, _ = CASES[name]
        kind = getattr(hf, class_name)
        model = kind(kind.config_class(**settings, attn_implementation="eager")).eval()
        generator = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for _, parameter in model.named_parameters():
                if parameter.ndim == 2:  # so large that texts vary and do not repeat a token
                    parameter.copy_(torch.randn(parameter.shape, generator=generator))
        model.save_pretrained(GENERATION / name)
        np.savez_compressed(GENERATION / name / "generated.npz", **generated(model))
    for name, (class_name, settings, _, _) in CASES.items():
        kind = getattr(hf, class_name)
        key = ACTIVATION_KEYS.get(name, "hidden_act")
        for draw, deviation in DRAWS.items():
            folder = FOLDER / f"{name}-{draw}"
            arrays: dict[str, np.ndarray] = {}
            # Their GPT calls the tanh variant ``gelu``, and has no other.
            for activation in ACTIVATIONS[: 1 if name == "gpt" else None]:
                config = kind.config_class(
                    **settings, **{key: activation}, attn_implementation="eager"
                )
                model = kind(config).eval()
                generator = torch.Generator().manual_seed(7)
                with torch.no_grad():
                    for _, parameter in model.named_parameters():
                        drawn = torch.randn(parameter.shape, generator=generator)
                        parameter.copy_(drawn * deviation)
                if activation == ACTIVATIONS[0]:
                    model.save_pretrained(folder)
                for length in LENGTHS:
                    batch = inputs(length, config.pad_token_id or 0)
                    found = run(model, name, batch)
                    arrays |= {f"{length}/{key}": value for key, value in batch.items()}
                    arrays |= {f"{length}/{activation}/{k}": v for k, v in found.items()}
            arrays["versions"] = np.array([torch.__version__.split("+")[0], hf.__version__])
            np.savez_compressed(folder / "numbers.npz", **arrays)


if __name__ == "__main__":
    main()
