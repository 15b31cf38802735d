"""What we write is what transformers loads: the same numbers, the same ids.

Needs torch and transformers, which are no dependencies of ours, in an environment of their own:

    pip install torch==2.13.0 transformers==5.23.0 pytest
    python -m pytest --noconftest tests/parity/test_export.py
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from models.interchange.huggingface import read_checkpoint, write_checkpoint
from tests.models.odd_lines import alphabet, byte_pairs, lines
from tests.parity.writing_heads import GENERATION, HEADS

torch = pytest.importorskip("torch", reason="torch is no dependency of ours")
hf = pytest.importorskip("transformers", reason="transformers is no dependency of ours")
pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).with_name("golden")
NAMES = sorted(path.name for path in GOLDEN.iterdir())


@pytest.mark.parametrize("shards", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_transformers_computes_the_same_from_what_we_write(name, shards, tmp_path):
    from tests.parity.make_goldens import CASES, LENGTHS, inputs, run

    case = name.rsplit("-", 1)[0]
    found = read_checkpoint(GOLDEN / name)
    write_checkpoint(found, tmp_path / "ours", 20_000 if shards else 5_000_000_000)
    kind = getattr(hf, CASES[case][0])
    model, told = kind.from_pretrained(
        tmp_path / "ours", output_loading_info=True, attn_implementation="eager"
    )
    assert not any(told[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    with np.load(GOLDEN / name / "numbers.npz") as numbers:
        for length in LENGTHS:
            batch = inputs(length, model.config.pad_token_id)
            real = batch["padding_mask"].astype(bool)
            for key, value in run(model.eval(), case, batch).items():
                expected = numbers[f"{length}/gelu/{key}"]
                if key.startswith("hidden"):
                    value, expected = value[real], expected[real]
                elif key == "token_logits":
                    used = batch["mask_weights"] > 0
                    value, expected = value[used], expected[used]
                assert np.allclose(value, expected, rtol=1e-5, atol=1e-6), (length, key)


@pytest.mark.parametrize(
    "name",
    [
        f"{case}-{draw}"
        for case in ("bart", "marian", "t5", "t5-v1.1")
        for draw in ("large", "small")
    ],
)
def test_transformers_writes_the_same_from_what_we_write(name, tmp_path):
    from tests.parity.make_goldens import ENCODER_DECODERS, WRITING, write_text

    case = name.rsplit("-", 1)[0]
    write_checkpoint(read_checkpoint(WRITING / name), tmp_path / "ours")
    model, told = getattr(hf, ENCODER_DECODERS[case][0]).from_pretrained(
        tmp_path / "ours", output_loading_info=True, attn_implementation="eager"
    )
    assert not any(told[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    names = ("token_ids", "padding_mask", "target_ids", "target_mask", "target_labels")
    with np.load(WRITING / name / "numbers.npz") as numbers:
        batch = {key: numbers[f"14/{key}"] for key in names}
        real, there = batch["padding_mask"].astype(bool), batch["target_mask"].astype(bool)
        for key, value in write_text(model.eval(), case, batch).items():
            expected = numbers[f"14/their/{key}"]
            if value.ndim == 3:
                kept = real if value.shape[1] == 14 else there
                value, expected = value[kept], expected[kept]
            assert np.allclose(value, expected, rtol=1e-5, atol=1e-6), key


@pytest.mark.parametrize("name", HEADS)
def test_transformers_writes_by_the_settings_of_the_head_that_we_write(name, tmp_path):
    """`test_generation` has our head write the same."""
    from tests.parity.make_writing_goldens import written

    expected = json.loads((GENERATION / name / "written.json").read_text("utf-8"))
    assert written(name, tmp_path / "ours") == expected


@pytest.mark.parametrize("draw", ["large", "small"])
def test_transformers_computes_both_streams_of_xlnet_from_what_we_write(draw, tmp_path):
    from tests.parity.make_goldens import RELATIVE, xlnet

    folder = RELATIVE / f"xlnet-{draw}"
    write_checkpoint(read_checkpoint(folder), tmp_path / "ours")
    model, told = hf.XLNetLMHeadModel.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(told[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    with np.load(folder / "numbers.npz") as numbers:
        batch = {key: numbers[key] for key in numbers if "/" not in key}
        for key, value in xlnet(model.eval(), batch).items():
            assert np.allclose(value, numbers[f"gelu/{key}"], rtol=1e-5, atol=1e-6), key


def test_transformers_classifies_as_our_head_does_with_padding_on_the_left(tmp_path):
    """Its summary is the last position, ours the last real token."""
    network = read_checkpoint(GOLDEN.with_name("relative") / "xlnet-large")
    rng = np.random.default_rng(0)
    shapes = {"pooler/kernel": (32, 32), "pooler/bias": (32,), "output/kernel": (32, 3)}
    head = {
        name: rng.normal(0, 0.3, shape).astype(np.float32)
        for name, shape in (shapes | {"output/bias": (3,)}).items()
    }
    written = replace(network, heads={"sequence_classification": head}, label_names=("a", "b", "c"))
    write_checkpoint(written, tmp_path / "ours")
    model = hf.XLNetForSequenceClassification.from_pretrained(tmp_path / "ours").eval()
    ids = rng.integers(5, 97, (3, 9))
    mask = (np.arange(9) >= np.array([[0], [3], [7]])).astype(np.int64)
    given = {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    theirs = model(**{key: torch.tensor(value) for key, value in given.items()}).logits
    plain = [
        model(input_ids=torch.tensor(ids[None, row, start:])).logits[0]
        for row, start in enumerate((0, 3, 7))
    ]
    assert np.allclose(theirs.detach().numpy(), torch.stack(plain).detach().numpy(), atol=1e-5)
    last = model.transformer(input_ids=torch.tensor(ids)).last_hidden_state[:, -1].detach().numpy()
    pooled = np.tanh(last @ head["pooler/kernel"] + head["pooler/bias"])
    ours = pooled @ head["output/kernel"] + head["output/bias"]
    assert np.allclose(ours[0], theirs[0].detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("lowercase", [True, False])
def test_their_tokenizer_reads_the_files_as_the_rust_package_does(lowercase, tmp_path):
    """`test_tokenizer_files.py` holds that package's ids against ours."""
    from tokenizers import Tokenizer

    found, tokenizer = read_checkpoint(GOLDEN / "bert-large"), alphabet(lowercase)
    size = tokenizer.vocabulary_size
    network = {**found.network, "embeddings/token/embeddings": np.zeros((size, 32), np.float32)}
    settings = {**found.settings, "vocabulary_size": size}
    written = replace(found, settings=settings, network=network, heads={}, tokenizer=tokenizer)
    write_checkpoint(written, tmp_path / "ours")
    theirs = hf.AutoTokenizer.from_pretrained(tmp_path / "ours")
    rust = Tokenizer.from_file(str(tmp_path / "ours" / "tokenizer.json"))
    assert theirs.mask_token_id == tokenizer.mask_id
    (tmp_path / "ours" / "tokenizer.json").unlink()  # from vocab.txt and the settings alone
    plain = hf.AutoTokenizer.from_pretrained(tmp_path / "ours")
    for text in lines():
        assert theirs(text)["input_ids"] == rust.encode(text).ids == plain(text)["input_ids"]


def test_their_tokenizer_reads_byte_level_bpe_as_the_rust_package_does(tmp_path):
    """With our frame: RoBERTa's own class would put another one round two texts."""
    from tokenizers import Tokenizer

    found, tokenizer = read_checkpoint(GOLDEN / "roberta-large"), byte_pairs()
    size = tokenizer.vocabulary_size
    table = np.zeros((size, found.settings["hidden_dim"]), np.float32)
    network = {**found.network, "embeddings/token/embeddings": table}
    settings = {**found.settings, "vocabulary_size": size}
    written = replace(found, settings=settings, network=network, heads={}, tokenizer=tokenizer)
    write_checkpoint(written, tmp_path / "ours")
    theirs = hf.AutoTokenizer.from_pretrained(tmp_path / "ours")
    rust = Tokenizer.from_file(str(tmp_path / "ours" / "tokenizer.json"))
    assert (theirs.pad_token_id, theirs.mask_token_id) == (1, tokenizer.mask_id)
    (a,), (b,) = (rust.encode(text, add_special_tokens=False).ids for text in "ab")
    assert theirs("a", "b")["input_ids"] == [0, a, 2, b, 2]
    for text in lines():
        assert theirs(text)["input_ids"] == rust.encode(text).ids


@pytest.mark.parametrize("draw", ["large", "small"])
@pytest.mark.parametrize(
    ("family", "kind"), [("lxmert", "LxmertModel"), ("visualbert", "VisualBertModel")]
)
def test_transformers_sees_the_same_with_what_we_write(family, kind, draw, tmp_path):
    from tests.parity.make_region_goldens import FOLDER, run

    folder = FOLDER / f"{family}-{draw}"
    write_checkpoint(read_checkpoint(folder), tmp_path / "ours")
    theirs = getattr(hf, kind)
    model, told = theirs.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(told[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    with np.load(folder / "numbers.npz") as numbers:
        batch = {key: numbers[key] for key in numbers if "/" not in key}
        for key, value in run(model.eval(), batch).items():
            assert np.allclose(value, numbers[f"their/{key}"], rtol=1e-5, atol=1e-6), key
