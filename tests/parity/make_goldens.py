"""Make ``golden/``, ``generation/`` and ``relative/``: numbers of Hugging Face transformers.

Run by hand, in an environment of its own (torch and transformers are no dependencies of ours):

    pip install torch==2.13.0 transformers==5.23.0 && python tests/parity/make_goldens.py

With names of cases, only their folders are written.

A folder a class and draw: the checkpoint as transformers saves it, and ``numbers.npz`` with inputs
and, for both GELUs, hidden states, logits, the loss and its gradient on the table of tokens.
``xlnet-*/longer.npz`` has a longer row, with its first GELU.

Everything is random, LayerNorm gains and biases and the padding row too: what starts at 0 or 1
would hide a swapped or a missing term. N(0, 0.3) is large enough to tell the two GELUs apart,
N(0, 0.02) small enough to tell two epsilons apart.

``unilm/`` is their BERT under UniLM's masks, given as four-dimensional ones, with its segments.
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
BANDED = Path(__file__).with_name("banded") / "gpt_neo.npz"
UNILM = Path(__file__).with_name("unilm")
WRITING = Path(__file__).with_name("encoder_decoders")
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
BART = {
    "vocab_size": 97,
    "d_model": 32,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 40,
    "dropout": 0.0,
    "forced_eos_token_id": None,
}
MARIAN = {key: value for key, value in BART.items() if key != "forced_eos_token_id"} | {
    "activation_function": "swish",
    "scale_embedding": True,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "forced_eos_token_id": None,
    "decoder_start_token_id": 1,
}
T5 = {
    "vocab_size": 97,
    "d_model": 32,
    "d_kv": 12,
    "d_ff": 64,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "dropout_rate": 0.0,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
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
    "roformer": ("RoFormerForMaskedLM", SIZE, "", ""),
    "gpt": ("OpenAIGPTLMHeadModel", GPT, "", ""),
    "gpt2": ("GPT2LMHeadModel", GPT | {"n_inner": 64}, "", ""),
}
CAUSAL = ("gpt", "gpt2")
NEO: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 32,
    "num_layers": 4,
    "num_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
    "attention_types": [[["global", "local"], 2]],
    "window_size": 5,
    "activation_function": "gelu_new",
    "bos_token_id": 0,
    "eos_token_id": 0,
}
# Name: (class, settings)
ENCODER_DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "bart": ("BartForConditionalGeneration", BART),
    "marian": ("MarianMTModel", MARIAN),
    "t5": ("T5ForConditionalGeneration", T5),
    "t5-v1.1": (
        "T5ForConditionalGeneration",
        T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    ),
}
# Deviations with which texts vary and some are stopped.
WRITES_AT = {"bart": 1.0, "marian": 0.3, "t5": 1.0, "t5-v1.1": 0.6}
# Their encoder counts positions from the row's first place, padding or not; so it is given every
# row without padding on the left.
COUNTS_PADDING = ("bart", "marian")
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


def targets(pad_id: int, begin_id: int) -> dict[str, np.ndarray]:
    """What a decoder reads and writes for the four rows; padded on the right."""
    rng = np.random.default_rng(9)
    lengths = np.array([9, 6, 9, 2])[:, None]
    mask = (np.arange(9) < lengths).astype(np.int64)
    labels = rng.integers(5, SIZE["vocab_size"], (4, 9)) * mask
    ids = np.concatenate([np.full((4, 1), begin_id), labels[:, :-1]], axis=1)
    ids[:, 1:][mask[:, 1:] == 0] = pad_id
    return {"target_ids": ids, "target_mask": mask, "target_labels": labels}


def write_text(model: Any, name: str, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What an encoder–decoder of theirs computes; states of the encoder come first."""
    real = batch["target_mask"].astype(bool)
    before = batch["padding_mask"].argmax(axis=1) * (name in COUNTS_PADDING)

    def moved(values: np.ndarray, places: np.ndarray) -> np.ndarray:
        return np.stack([np.roll(row, n, axis=0) for row, n in zip(values, places, strict=True)])

    given = {
        "input_ids": moved(batch["token_ids"], -before),
        "attention_mask": moved(batch["padding_mask"], -before),
        "decoder_input_ids": batch["target_ids"],
        "decoder_attention_mask": batch["target_mask"],
        "labels": np.where(real, batch["target_labels"], -100),
    }
    model.zero_grad()
    result = model(
        **{key: torch.tensor(value) for key, value in given.items()}, output_hidden_states=True
    )
    result.loss.backward()
    states = [moved(state.detach().numpy(), before) for state in result.encoder_hidden_states]
    states += [state.detach().numpy() for state in result.decoder_hidden_states]
    table = model.get_input_embeddings().weight
    return {
        **{f"hidden_{number}": state for number, state in enumerate(states)},
        "token_logits": result.logits.detach().numpy(),
        "loss": result.loss.detach().numpy(),
        "table_gradient": table.grad.numpy().copy(),
    }


def make_encoder_decoder(name: str) -> None:
    """Both draws of a case, and a network that writes."""
    class_name, settings = ENCODER_DECODERS[name]
    kind = getattr(hf, class_name)

    def drawn(deviation: float, axes: int = 1) -> Any:
        model = kind(kind.config_class(**settings, attn_implementation="eager")).eval()
        if not settings.get("tie_word_embeddings", True):  # theirs ties them all the same
            model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
        generator = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for _, parameter in model.named_parameters():
                if parameter.ndim >= axes and parameter.requires_grad:
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) * deviation)
            if name == "marian":
                bias = model.final_logits_bias
                bias.copy_(torch.randn(bias.shape, generator=generator) * deviation)
        return model

    for draw, deviation in DRAWS.items():
        folder, model = WRITING / f"{name}-{draw}", drawn(deviation)
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder)
        config, arrays = model.config, {}
        for length in LENGTHS:
            batch = inputs(length, config.pad_token_id)
            batch |= targets(config.pad_token_id, config.decoder_start_token_id)
            arrays |= {f"{length}/{key}": value for key, value in batch.items()}
            arrays |= {f"{length}/their/{k}": v for k, v in write_text(model, name, batch).items()}
        arrays["versions"] = np.array([torch.__version__.split("+")[0], hf.__version__])
        np.savez_compressed(folder / "numbers.npz", **arrays)
    shutil.rmtree(GENERATION / name, ignore_errors=True)
    model = drawn(WRITES_AT[name], axes=2)
    if model.lm_head.weight is not model.get_input_embeddings().weight:
        with torch.no_grad():  # no more certain than with a tied one
            model.lm_head.weight.mul_(model.config.d_model**-0.5)
    model.save_pretrained(GENERATION / name)
    np.savez_compressed(GENERATION / name / "generated.npz", **generated(model))


def generated(model: Any) -> dict[str, np.ndarray]:
    """What follows eight prompts of 3 to 10 tokens, padded on the left, by every search.

    An encoder's are padded on the right.

    The stop token is the one that greedy search writes in most texts, but not at once.
    """
    rng = np.random.default_rng(1)
    ids = rng.integers(5, SIZE["vocab_size"], (8, 10))
    apart = model.config.is_encoder_decoder
    mask = (np.arange(10) >= 10 - np.arange(3, 11)[:, None]).astype(np.int64)
    mask = mask[:, ::-1].copy() if apart else mask
    ids *= mask
    given: dict[str, Any] = {
        "input_ids": torch.tensor(ids),
        "attention_mask": torch.tensor(mask),
        "max_new_tokens": NEW_TOKENS,
        "do_sample": False,
        "pad_token_id": 0,
    }
    first = 1 if apart else 10  # theirs begins with the decoder's first token, or the prompt
    endless = model.generate(**given, eos_token_id=None)[:, first:].numpy()
    texts = [sum(token in text[2:] for text in endless) for token in range(SIZE["vocab_size"])]
    early = [sum(token in text[:2] for text in endless) for token in range(SIZE["vocab_size"])]
    stop = int(np.argmax(np.array(texts) - 2 * np.array(early)))
    found = {"ids": ids, "mask": mask, "stop": np.array(stop)}
    for name, settings in SEARCHES.items():
        tokens = model.generate(**given, **settings, eos_token_id=stop)[:, first:].numpy()
        padded = np.zeros((len(ids), NEW_TOKENS), np.int64)
        padded[:, : tokens.shape[1]] = tokens
        # Beam search fills up with the stop token if padding is 0.
        ended = np.cumsum(padded == stop, axis=1) - (padded == stop)
        found[name] = np.where(ended, 0, padded)
    return found


def banded() -> dict[str, np.ndarray]:
    """GPT-Neo with alternating dense and banded layers, its weights under the names of our gpt3.

    It does not divide scores by the root of a head's width and has no bias of query, key and value:
    here query kernels are that much larger, and the biases 0.
    """
    model = hf.GPTNeoForCausalLM(hf.GPTNeoConfig(**NEO, attn_implementation="eager")).eval()
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for _, parameter in model.named_parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * DRAWS["large"])
    theirs = {name: value.detach().numpy() for name, value in model.named_parameters()}
    width = NEO["hidden_size"]
    found = {
        "embeddings/token/embeddings": theirs["transformer.wte.weight"],
        "embeddings/position/embeddings": theirs["transformer.wpe.weight"],
        "final_norm/gamma": theirs["transformer.ln_f.weight"],
        "final_norm/beta": theirs["transformer.ln_f.bias"],
    }
    root = np.float32((width // NEO["num_heads"]) ** 0.5)
    for number in range(NEO["num_layers"]):
        here, block = f"transformer.h.{number}.", f"block_{number}/"
        for own, name in (("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj")):
            kernel = theirs[f"{here}attn.attention.{name}.weight"].T
            found[f"{block}attention/{own}/kernel"] = kernel * (root if own == "query" else 1)
            found[f"{block}attention/{own}/bias"] = np.zeros(width, np.float32)
        for own, name in (
            ("attention/output", "attn.attention.out_proj"),
            ("intermediate", "mlp.c_fc"),
            ("output", "mlp.c_proj"),
        ):
            found[f"{block}{own}/kernel"] = theirs[f"{here}{name}.weight"].T
            found[f"{block}{own}/bias"] = theirs[f"{here}{name}.bias"]
        for own, name in (("attention_norm", "ln_1"), ("output_norm", "ln_2")):
            found[f"{block}{own}/gamma"] = theirs[f"{here}{name}.weight"]
            found[f"{block}{own}/beta"] = theirs[f"{here}{name}.bias"]
    arrays = {f"weights/{name}": value for name, value in found.items()}
    batch = inputs(LENGTHS[1], 0)
    counted = np.cumsum(batch["padding_mask"], axis=1) - 1
    with torch.no_grad():
        result = model(
            input_ids=torch.tensor(batch["token_ids"]),
            attention_mask=torch.tensor(batch["padding_mask"]),
            position_ids=torch.tensor(np.maximum(counted, 0) * batch["padding_mask"]),
            output_hidden_states=True,
        )
    arrays |= {key: batch[key] for key in ("token_ids", "padding_mask")}
    arrays |= {f"hidden_{n}": state.numpy() for n, state in enumerate(result.hidden_states)}
    arrays["logits"] = result.logits.numpy()
    arrays["versions"] = np.array([torch.__version__.split("+")[0], hf.__version__])
    return arrays


# Each mode's rows of the table of segments, and whether a token of segment `one` at place i sees a
# token of segment `other` at place j.
MODES: dict[str, tuple[tuple[int, int], Any]] = {
    "bidirectional": ((0, 1), lambda i, j, one, other: np.True_),
    "left_to_right": ((2, 2), lambda i, j, one, other: j <= i),
    "right_to_left": ((3, 3), lambda i, j, one, other: j >= i),
    "sequence_to_sequence": ((4, 5), lambda i, j, one, other: not other or (one and j <= i)),
}


def under_mask(model: Any, mode: str, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What their BERT computes where each token sees what the mode shows it."""
    rows, sees = MODES[mode]
    segments, real = batch["segment_ids"], batch["padding_mask"]
    size, length = real.shape
    mask = np.full((size, 1, length, length), np.finfo(np.float32).min, np.float32)
    for row, i, j in np.ndindex(size, length, length):
        if real[row, j] and sees(i, j, segments[row, i], segments[row, j]):
            mask[row, 0, i, j] = 0.0
    positions = np.maximum(np.cumsum(real, axis=1) - 1, 0) * real
    given = {
        "input_ids": batch["token_ids"],
        "attention_mask": mask,
        "token_type_ids": np.array(rows)[segments],
        "position_ids": positions,
        "labels": labels(batch),
    }
    model.zero_grad()
    result = model(
        **{key: torch.tensor(value) for key, value in given.items()}, output_hidden_states=True
    )
    result.loss.backward()
    logits = result.logits.detach().numpy()
    states = {f"hidden_{i}": x.detach().numpy() for i, x in enumerate(result.hidden_states)}
    return states | {
        "loss": result.loss.detach().numpy(),
        "table_gradient": model.get_input_embeddings().weight.grad.numpy().copy(),
        "token_logits": np.take_along_axis(logits, batch["mask_positions"][:, :, None], axis=1),
    }


def write_unilm() -> None:
    """Write ``unilm/`` anew."""
    shutil.rmtree(UNILM, ignore_errors=True)
    for draw, deviation in DRAWS.items():
        config = hf.BertConfig(**SIZE, type_vocab_size=6, attn_implementation="eager")
        model = hf.BertForMaskedLM(config).eval()
        generator = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for _, parameter in model.named_parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * deviation)
        model.save_pretrained(UNILM / draw)
        arrays: dict[str, np.ndarray] = {}
        for length in LENGTHS:
            batch = inputs(length, 0)
            arrays |= {f"{length}/{key}": value for key, value in batch.items()}
            for mode in MODES:
                found = under_mask(model, mode, batch)
                arrays |= {f"{length}/{mode}/{key}": value for key, value in found.items()}
        arrays["versions"] = np.array([torch.__version__.split("+")[0], hf.__version__])
        np.savez_compressed(UNILM / draw / "numbers.npz", **arrays)


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
    half, last = length // 2, length - 1
    at = np.array(
        [[1, half - 2, last - 1], [2, last - 5, 0], [half - 1, last, last - 4], [1, 0, 0]]
    )
    weights = np.array([[1, 1, 1], [1, 1, 0], [1, 1, 1], [1, 0, 0]], np.float32)
    for row, order in enumerate(([2, 1, 3], [1, 2], [3, 1, 2], [1])):
        for slot, place in enumerate(order):
            places[row, at[row, slot]] = place
    assert mask[np.arange(4)[:, None], at][weights > 0].all()
    return {"factorisation": places, "query_positions": at, "query_weights": weights}


def xlnet(model: Any, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What their XLNet computes of a row, after another one if there is one, in both streams."""
    ids = torch.tensor(batch["token_ids"])
    length = ids.shape[1]
    places, at = batch["factorisation"], batch["query_positions"]
    asked = np.zeros(places.shape, bool)
    asked[np.nonzero(batch["query_weights"])[0], at[batch["query_weights"] > 0]] = True
    hidden = places[:, None] > places[:, :, None]
    hidden |= (places[:, None] == places[:, :, None]) & asked[:, :, None]
    chosen = np.take_along_axis(batch["token_ids"], at, axis=1)
    labels_of = np.where(batch["query_weights"] > 0, chosen, -100)
    before = None
    if "before" in batch:
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
        **({"memory": by_row(before)} if before else {}),
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


def longer(model: Any) -> dict[str, np.ndarray]:
    """A longer row than XLNet's memory, after another one and alone."""
    batch = inputs(LENGTHS[1], 0)
    batch |= factorised(LENGTHS[1], batch["padding_mask"])
    alone = {f"alone/{key}": value for key, value in xlnet(model, batch).items()}
    before = {"before": np.random.default_rng(4).integers(5, SIZE["vocab_size"], (4, 10))}
    after = {f"after/{key}": value for key, value in xlnet(model, batch | before).items()}
    return {**batch, **before, **alone, **after}


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
            if activation == ACTIVATIONS[0]:
                np.savez_compressed(folder / "longer.npz", **longer(model), versions=versions)
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


def main(wanted: list[str]) -> None:
    """Write the folders of these cases anew, by default of all."""
    if not wanted or "banded" in wanted:
        BANDED.parent.mkdir(exist_ok=True)
        np.savez_compressed(BANDED, **banded())
    if not wanted or "unilm" in wanted:
        write_unilm()
    if not wanted or "relative" in wanted:
        relative()
    for name in wanted or ENCODER_DECODERS:
        if name in ENCODER_DECODERS:
            make_encoder_decoder(name)
    for name in CAUSAL:
        if wanted and name not in wanted:
            continue
        class_name, settings, _, _ = CASES[name]
        kind = getattr(hf, class_name)
        model = kind(kind.config_class(**settings, attn_implementation="eager")).eval()
        generator = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for _, parameter in model.named_parameters():
                if parameter.ndim == 2:  # so large that texts vary and do not repeat a token
                    parameter.copy_(torch.randn(parameter.shape, generator=generator))
        shutil.rmtree(GENERATION / name, ignore_errors=True)
        model.save_pretrained(GENERATION / name)
        np.savez_compressed(GENERATION / name / "generated.npz", **generated(model))
    for name, (class_name, settings, _, _) in CASES.items():
        if wanted and name not in wanted:
            continue
        kind = getattr(hf, class_name)
        key = ACTIVATION_KEYS.get(name, "hidden_act")
        for draw, deviation in DRAWS.items():
            folder = FOLDER / f"{name}-{draw}"
            shutil.rmtree(folder, ignore_errors=True)
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
                        if not parameter.requires_grad:  # RoFormer's table of sines
                            continue
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
    main(sys.argv[1:])
