"""Hugging Face folders: what is written is read again, what does not fit is refused by name."""

from __future__ import annotations

import json
import re
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

from fourstage.errors import ContractViolation, RecipeError
from models.interchange import huggingface
from models.interchange.bert_as_unilm import as_unilm
from models.interchange.huggingface import read_checkpoint, write_checkpoint
from models.interchange.stage_folder import read_stage, write_stage
from models.stage_format import NETWORK
from models.tokenizers.wordpiece import WordPiece
from tests.models.odd_lines import byte_pairs

GOLDEN = Path(__file__).parents[2] / "parity" / "golden"
NAMES = sorted(path.name for path in GOLDEN.iterdir() if path.name.endswith("-large"))
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "good", "##s", "好", "书", "!")


def copy(tmp_path: Path, name: str = "bert-large") -> Path:
    folder = tmp_path / "theirs"
    folder.mkdir()
    for file in ("config.json", "model.safetensors"):
        shutil.copyfile(GOLDEN / name / file, folder / file)
    return folder


def configure(folder: Path, **changes) -> None:
    """Change settings; one that is to be ``...`` is left out."""
    path = folder / "config.json"
    config = json.loads(path.read_text("utf-8")) | changes
    config = {key: value for key, value in config.items() if value is not ...}
    path.write_text(json.dumps(config), "utf-8")


def tensors(folder: Path) -> dict[str, np.ndarray]:
    return load_file(folder / "model.safetensors")


def put(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    save_file(arrays, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize("name", NAMES)
def test_what_transformers_wrote_is_written_again_tensor_for_tensor(name, tmp_path):
    found = read_checkpoint(GOLDEN / name)
    assert found.notes == ("no tokenizer: no vocab.txt, no merges.txt and no tokenizer.json",)
    assert write_checkpoint(found, tmp_path / "ours") == ()
    theirs, ours = tensors(GOLDEN / name), tensors(tmp_path / "ours")
    assert set(ours) == set(theirs)
    for key, value in theirs.items():
        if name.startswith("roberta") and "position_embeddings" in key:
            # The row of padding and the one below it are read by no text.
            assert not ours[key][:2].any()
            assert np.array_equal(ours[key][2:], value[2:])
        else:
            assert np.array_equal(ours[key], value), key
    before, after = (
        json.loads((folder / "config.json").read_text("utf-8"))
        for folder in (GOLDEN / name, tmp_path / "ours")
    )
    assert {key: before[key] for key in after} == after


def test_a_network_is_saved_and_loaded(tmp_path):
    network = huggingface.read_checkpoint(GOLDEN / "electra-generator-large").build()
    huggingface.save_network(network, tmp_path / "ours")
    again = huggingface.read_checkpoint(tmp_path / "ours").build()
    assert again.get_config() == network.get_config()
    ids = np.array([[2, 7, 9, 3]], np.int32)
    one, two = (
        np.asarray(each({"token_ids": ids})["sequence_output"]) for each in (network, again)
    )
    assert np.array_equal(one, two)


def test_shards_are_read_and_written(tmp_path):
    found = read_checkpoint(GOLDEN / "bert-large")
    write_checkpoint(found, tmp_path / "ours", largest_file=20_000)
    files = sorted(path.name for path in (tmp_path / "ours").glob("*.safetensors"))
    assert len(files) > 3
    assert files[0] == f"model-00001-of-{len(files):05d}.safetensors"
    again = read_checkpoint(tmp_path / "ours")
    assert again.network.keys() == found.network.keys()
    assert all(np.array_equal(again.network[key], found.network[key]) for key in found.network)
    whole = (tmp_path / "ours" / files[1]).read_bytes()
    (tmp_path / "ours" / files[1]).unlink()
    with pytest.raises(ContractViolation, match=rf"{files[1]} is missing"):
        read_checkpoint(tmp_path / "ours")
    (tmp_path / "ours" / files[1]).write_bytes(whole)
    shutil.copyfile(tmp_path / "ours" / files[0], tmp_path / "ours" / files[2])
    with pytest.raises(ContractViolation, match=rf"{files[2]}: .* is in {files[0]} as well"):
        read_checkpoint(tmp_path / "ours")
    save_file({}, tmp_path / "ours" / files[2])
    with pytest.raises(ContractViolation, match=rf" is in none of them, listed in {files[2]}"):
        read_checkpoint(tmp_path / "ours")


def test_an_index_leads_to_no_other_folder(tmp_path):
    folder = tmp_path / "theirs"
    write_checkpoint(read_checkpoint(GOLDEN / "bert-large"), folder, largest_file=20_000)
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text("utf-8"))
    for name in ("../other/model.safetensors", 1):
        index["weight_map"] = dict.fromkeys(index["weight_map"], name)
        path.write_text(json.dumps(index), "utf-8")
        with pytest.raises(RecipeError, match="is not the name of a safetensors file"):
            read_checkpoint(folder)


def test_a_checkpoint_without_heads_pooler_or_prefix_is_read(tmp_path):
    folder = copy(tmp_path)
    bare = {
        key.removeprefix("bert.").replace("Norm.weight", "Norm.gamma"): value
        for key, value in tensors(folder).items()
        if key.startswith("bert.") and "pooler" not in key
    }
    put(folder, {**bare, "embeddings.position_ids": np.arange(40)[None]})
    configure(folder, architectures=["BertModel"])
    found, whole = read_checkpoint(folder), read_checkpoint(GOLDEN / "bert-large")
    assert found.heads == {}
    assert found.notes[-1] == "the checkpoint has no pooler; it is initialised randomly"
    assert found.network.keys() == whole.network.keys()
    for key, value in found.network.items():
        assert np.array_equal(value, whole.network[key]) or key.startswith("pooler/")
    assert 0.01 < found.network["pooler/kernel"].std() < 0.03


@pytest.mark.parametrize(
    ("labels", "changes", "said"),
    [
        (
            3,
            {"architectures": ["BertForTokenClassification"]},
            "BertForTokenClassification answers",
        ),
        (1, {"architectures": ["BertForMultipleChoice"]}, "BertForMultipleChoice answers"),
        (3, {"problem_type": "multi_label_classification"}, r"\(problem_type multi_label"),
        (2, {"problem_type": "regression"}, r"\(problem_type regression\)"),
        (1, {}, "it has one label, so its answer is a number"),
        (3, {}, None),
        (3, {"problem_type": "single_label_classification", "architectures": None}, None),
    ],
)
def test_a_head_that_answers_otherwise_is_not_taken_for_one_of_labels(
    labels, changes, said, tmp_path
):
    folder = copy(tmp_path)
    arrays = {key: value for key, value in tensors(folder).items() if key.startswith("bert.")}
    head = {"weight": np.ones((labels, 32), np.float32), "bias": np.zeros(labels, np.float32)}
    put(folder, {**arrays, **{f"classifier.{name}": value for name, value in head.items()}})
    names = {} if said and "Choice" in said else {str(i): f"l{i}" for i in range(labels)}
    named = {"architectures": ["BertForSequenceClassification"], "id2label": names or None}
    configure(folder, **named | changes)
    found = read_checkpoint(folder)
    if said is None:
        assert (set(found.heads), found.label_names) == (
            {"sequence_classification"},
            ("l0", "l1", "l2"),
        )
    else:
        assert (found.heads, found.label_names) == ({}, ())
        assert re.search(
            f"left out, .*{said}.*: classifier.bias, classifier.weight", found.notes[-1]
        )


@pytest.mark.parametrize("ids", [(1, 2), (0, 2, 5), (1, 2, 3)])
def test_names_that_are_not_numbered_as_the_outputs_are_refused(ids, tmp_path):
    folder = copy(tmp_path)
    arrays = {key: value for key, value in tensors(folder).items() if key.startswith("bert.")}
    labels = len(ids)
    head = {"weight": np.ones((labels, 32), np.float32), "bias": np.zeros(labels, np.float32)}
    put(folder, {**arrays, **{f"classifier.{name}": value for name, value in head.items()}})
    names = {str(i): f"l{i}" for i in ids}
    configure(folder, architectures=["BertForSequenceClassification"], id2label=names)
    said = f"id2label: expected the ids 0 to {labels - 1}, .* got {', '.join(names)}; number"
    with pytest.raises(RecipeError, match=said):
        read_checkpoint(folder)
    configure(folder, architectures=["BertForTokenClassification"])  # of which no head is read
    assert read_checkpoint(folder).label_names == ()


def test_half_precision_is_read_as_float32(tmp_path):
    folder = copy(tmp_path)
    put(folder, {key: value.astype(np.float16) for key, value in tensors(folder).items()})
    found = read_checkpoint(folder)
    assert {str(value.dtype) for value in found.network.values()} == {"float32"}


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_no_numbers_are_refused_by_tensor(value, tmp_path):
    folder = copy(tmp_path)
    arrays = tensors(folder)
    name = "bert.encoder.layer.0.output.dense.weight"
    arrays[name][1, :3] = value
    put(folder, arrays)
    with pytest.raises(ContractViolation, match=rf"3 of the [\d,]+ values of {name} are NaN"):
        read_checkpoint(folder)


def test_a_stage_of_ours_with_values_that_are_no_numbers_is_refused(tmp_path):
    write_stage(read_checkpoint(GOLDEN / "bert-large"), tmp_path / "ours")
    arrays = load_file(tmp_path / "ours" / NETWORK)
    arrays["pooler/kernel"][0] = np.nan
    save_file(arrays, tmp_path / "ours" / NETWORK)
    with pytest.raises(ContractViolation, match=rf"{NETWORK}: .* values of pooler/kernel are NaN"):
        read_stage(tmp_path / "ours")


@pytest.mark.parametrize(("kind", "said"), [("int8", "I8"), ("float64", "F64")])
def test_a_type_that_is_not_read_is_named(kind, said, tmp_path):
    folder = copy(tmp_path)
    put(folder, {key: value.astype(kind) for key, value in tensors(folder).items()})
    with pytest.raises(RecipeError, match=rf"_embeddings.weight \({said}\)"):
        read_checkpoint(folder)


def test_an_unknown_architecture_is_refused_by_name(tmp_path):
    folder = copy(tmp_path)
    configure(folder, model_type="bertt")
    with pytest.raises(RecipeError, match=r"'bertt' is not an architecture.*did you mean 'bert'"):
        read_checkpoint(folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"is_decoder": True}, "is_decoder: expected False, got True"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type: expected absolute"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings: expected True"),
        ({"hidden_act": "selu"}, "'selu' is not an activation"),
        (
            {"num_hidden_layers": 10**9},
            "num_hidden_layers: expected a whole number from 1 to 1,000",
        ),
        ({"hidden_size": "32"}, "hidden_size: expected a whole number"),
        ({"num_attention_heads": 5}, "not a multiple of the 5 heads"),
        ({"layer_norm_eps": float("nan")}, "layer_norm_eps: expected a number"),
        ({"type_vocab_size": 1}, "type_vocab_size: .* from 2 to 131,072, got 1; repeat the row"),
        ({"pad_token_id": 97}, "pad_token_id: expected an id"),
    ],
)
def test_a_setting_that_we_have_not_is_refused(changes, said, tmp_path):
    folder = copy(tmp_path)
    configure(folder, **changes)
    with pytest.raises(RecipeError, match=said):
        read_checkpoint(folder)


def test_missing_unexpected_and_misshapen_tensors_are_named(tmp_path):
    folder = copy(tmp_path)
    arrays = tensors(folder)
    del arrays["bert.encoder.layer.1.output.dense.bias"]
    arrays["qa_outputs.weight"] = np.zeros((2, 32), np.float32)
    arrays["bert.embeddings.LayerNorm.bias"] = np.zeros(31, np.float32)
    put(folder, arrays)
    with pytest.raises(RecipeError) as refusal:
        read_checkpoint(folder)
    said = str(refusal.value)
    assert "1 missing: bert.encoder.layer.1.output.dense.bias" in said
    assert "1 unexpected: qa_outputs.weight" in said
    assert (
        "bert.embeddings.LayerNorm.bias is (31,) in the file, expected (32,) by the config" in said
    )


def test_a_second_output_matrix_is_refused(tmp_path):
    folder = copy(tmp_path)
    arrays = tensors(folder)
    arrays["cls.predictions.decoder.weight"] = arrays["bert.embeddings.word_embeddings.weight"] * 1
    put(folder, arrays)
    read_checkpoint(folder)  # a copy of the tied one is none
    arrays["cls.predictions.decoder.weight"][3, 3] += 1
    put(folder, arrays)
    with pytest.raises(RecipeError, match=r"decoder.weight and bert.embeddings.* differ"):
        read_checkpoint(folder)


def test_a_pickle_is_refused_by_name_and_not_opened(tmp_path):
    folder = copy(tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(RecipeError, match=r"pytorch_model.bin is a pickle and is never read"):
        read_checkpoint(folder)


@pytest.mark.parametrize(
    "raw",
    [
        struct.pack("<Q", 1 << 62) + b"{}",
        struct.pack("<Q", 60) + b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4000000]}}',
        b"",
        b"PK\x03\x04",
    ],
)
def test_a_file_that_lies_is_named(raw, tmp_path):
    folder = copy(tmp_path)
    (folder / "model.safetensors").write_bytes(raw)
    with pytest.raises(ContractViolation, match=r"model.safetensors: not a safetensors file"):
        read_checkpoint(folder)


def test_nothing_is_written_over_files_or_left_half_written(tmp_path):
    found = read_checkpoint(GOLDEN / "bert-large")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine", "utf-8")
    with pytest.raises(RecipeError, match="expected a new or empty folder"):
        write_checkpoint(found, tmp_path / "full")
    del found.network["pooler/kernel"]  # type: ignore[attr-defined]
    with pytest.raises(RecipeError, match="network/pooler/kernel: missing"):
        write_checkpoint(found, tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full"]


def test_a_bert_that_nobody_else_has_is_refused_there_and_as_a_unilm(tmp_path):
    found = read_checkpoint(GOLDEN / "bert-small")
    ours = replace(found, settings={**found.settings, "norm_first": True})
    with pytest.raises(RecipeError, match="norm_first: their bert supports only False"):
        write_checkpoint(ours, tmp_path / "ours")
    with pytest.raises(RecipeError, match="norm_first: our unilm supports only False"):
        as_unilm(ours)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"embedding_size": 16}, "embedding_size: expected 32, as wide as the blocks, got 16"),
        ({"rotary_value": True}, "rotary_value: expected False, got True"),
    ],
)
def test_a_roformer_unlike_ours_is_refused(tmp_path, changes, said):
    folder = copy(tmp_path, "roformer-large")
    configure(folder, **changes)
    with pytest.raises(RecipeError, match=said):
        read_checkpoint(folder)


def test_an_ernie_without_tasks_is_written_and_read_again(tmp_path):
    found = read_checkpoint(GOLDEN / "ernie-large")
    network = {name: array for name, array in found.network.items() if "/task/" not in name}
    ours = replace(found, settings={**found.settings, "num_tasks": 0}, network=network)
    assert write_checkpoint(ours, tmp_path / "ours") == ()
    again = read_checkpoint(tmp_path / "ours")
    assert again.settings == ours.settings
    assert again.network.keys() == network.keys()


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("t5-large", {"decoder_start_token_id": 1}, "expected 0, the id of padding, got 1; our t5"),
        ("t5-large", {"pad_token_id": 5}, "expected 5, the id of padding, got 0; our t5"),
        ("bart-large", {"decoder_start_token_id": 0}, "expected 2, as eos_token_id, got 0; our"),
        ("bart-large", {"eos_token_id": 0, "decoder_start_token_id": ...}, "expected 0, .* got 2;"),
    ],
)
def test_a_target_that_begins_unlike_ours_is_refused(tmp_path, name, changes, said):
    folder = copy(tmp_path, f"../encoder_decoders/{name}")
    configure(folder, **changes)
    with pytest.raises(RecipeError, match=f"decoder_start_token_id: {said}"):
        read_checkpoint(folder)


@pytest.mark.parametrize("name", ["bart-large", "marian-large"])
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"decoder_attention_heads": 2}, "decoder_attention_heads: expected 4, .* got 2; our"),
        ({"decoder_attention_heads": ...}, "decoder_attention_heads: expected 4, .* got 16; our"),
        ({"encoder_attention_heads": ...}, "decoder_attention_heads: expected 16, .* got 4; our"),
        ({"decoder_ffn_dim": ...}, "decoder_ffn_dim: expected 64, as encoder_ffn_dim, got 4096;"),
    ],
)
def test_a_decoder_of_another_shape_is_refused_where_it_is_by_default_too(
    tmp_path, name, changes, said
):
    folder = copy(tmp_path, f"../encoder_decoders/{name}")
    configure(folder, **changes)
    with pytest.raises(RecipeError, match=said):
        read_checkpoint(folder)


@pytest.mark.parametrize("name", ["t5-large", "bart-large"])
def test_a_target_begins_as_ours_where_nothing_is_said(tmp_path, name):
    folder = copy(tmp_path, f"../encoder_decoders/{name}")
    configure(folder, decoder_start_token_id=...)
    assert read_checkpoint(folder).family == name.split("-")[0]


@pytest.mark.parametrize(
    "settings",
    [
        *({"summary": "mean"}, {"summary": "both"}, {"wide": True}, {"symmetric": True}),
        *({"shared_tokens": True}, {"summary": "network"}),
    ],
)
def test_a_head_that_reads_a_row_otherwise_than_theirs_is_left_out(settings, tmp_path):
    stage, network = tmp_path / "stage", read_checkpoint(GOLDEN / "bert-large")
    width = network.settings["hidden_dim"]
    zeros = {"output/kernel": np.zeros((width, 2)), "output/bias": np.zeros(2)}
    head = {name: value.astype(np.float32) for name, value in zeros.items()}
    heads = {"sequence_classification": head}
    write_stage(replace(network, heads=heads, label_names=("a", "b")), stage)
    configure(stage, head={"sequence_classification": settings})
    notes = write_checkpoint(read_stage(stage), tmp_path / "theirs")
    config = json.loads((tmp_path / "theirs" / "config.json").read_text("utf-8"))
    if settings == {"summary": "network"}:
        assert (config["architectures"], notes) == (["BertForSequenceClassification"], ())
    else:
        assert config["architectures"] == ["BertModel"]
        assert notes == ("left out, BertModel has no counterpart: head sequence_classification",)
        assert not [key for key in tensors(tmp_path / "theirs") if "classifier" in key]


def test_a_head_computed_otherwise_there_is_refused(tmp_path):
    found = read_checkpoint(GOLDEN / "electra-generator-large")
    settings = {**found.settings, "activation": "gelu_tanh", "head_activation": None}
    ours = huggingface.PretrainedNetwork(found.family, settings, found.network, found.heads)
    with pytest.raises(RecipeError, match="supports only gelu in the masked-token head"):
        write_checkpoint(ours, tmp_path / "ours")


@pytest.mark.parametrize("lowercase", [True, False])
def test_a_tokenizer_goes_both_ways(lowercase, tmp_path):
    pieces = [*WORDS, *(f"w{i}" for i in range(97 - len(WORDS)))]
    tokenizer = WordPiece(pieces, lowercase)
    found = read_checkpoint(GOLDEN / "bert-large")
    ours = huggingface.PretrainedNetwork(
        found.family, found.settings, found.network, found.heads, tokenizer
    )
    write_checkpoint(ours, tmp_path / "ours")
    for removed in ("", "tokenizer.json", "vocab.txt"):
        if removed:
            shutil.copytree(tmp_path / "ours", tmp_path / removed)
            (tmp_path / removed / removed).unlink()
        again = read_checkpoint(tmp_path / (removed or "ours")).tokenizer
        assert again.digest == tokenizer.digest


def spelled(name: str, **changes) -> huggingface.PretrainedNetwork:
    """A network that transformers wrote, its table as large as a tokenizer's vocabulary."""
    found, tokenizer = read_checkpoint(GOLDEN.parent / name), byte_pairs()
    size = tokenizer.vocabulary_size
    rows = {
        path: np.zeros((size, *value.shape[1:]), np.float32)
        for path, value in found.network.items()
        if len(value) == found.settings["vocabulary_size"]
    }
    return replace(
        found,
        settings={**found.settings, "vocabulary_size": size},
        network={**found.network, **rows},
        tokenizer=tokenizer,
        pad_id=tokenizer.pad_id,
        **changes,
    )


@pytest.mark.parametrize("name", ["gpt-large", "gpt2-large"])
@pytest.mark.parametrize("writes", [False, True])
def test_their_decoder_begins_and_ends_a_text_as_ours_does(name, writes, tmp_path):
    ours = spelled(f"golden/{name}")
    ours = replace(ours, heads={**ours.heads, **({"sequence_to_sequence": {}} if writes else {})})
    tokenizer = ours.tokenizer
    write_checkpoint(ours, tmp_path / "ours")
    config = json.loads((tmp_path / "ours" / "config.json").read_text("utf-8"))
    ids = tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id
    assert tuple(config[f"{key}_token_id"] for key in ("bos", "eos", "pad")) == ids
    theirs = Tokenizer.from_file(str(tmp_path / "ours" / "tokenizer.json"))
    (the,) = tokenizer.encode(["the"])
    # A text that is to be continued has no end yet; one that is answered has.
    end = [tokenizer.sep_id] if writes else []
    assert theirs.encode("the").ids == [tokenizer.cls_id, *the, *end]
    assert theirs.encode("the", "the").ids == [tokenizer.cls_id, *the, tokenizer.sep_id, *the, *end]
    assert read_checkpoint(tmp_path / "ours").pad_id == tokenizer.pad_id


@pytest.mark.parametrize("begin", ["pad", "sep"])
def test_their_target_begins_as_ours_does(begin, tmp_path):
    ours = spelled("generation/marian", heads={"sequence_to_sequence": {}})
    ours = replace(ours, settings={**ours.settings, "begins_with": begin})
    write_checkpoint(ours, tmp_path / "ours")
    config = json.loads((tmp_path / "ours" / "config.json").read_text("utf-8"))
    assert config["decoder_start_token_id"] == getattr(ours.tokenizer, f"{begin}_id")
    assert read_checkpoint(tmp_path / "ours").settings["begins_with"] == begin


@pytest.mark.parametrize(
    ("name", "more"), [("golden/gpt2-large", 0), ("generation/marian", 0), ("generation/bart", 1)]
)
@pytest.mark.parametrize("beams", [1, 4])
def test_a_head_that_writes_says_how_for_their_generate(name, more, beams, tmp_path):
    """`tests/parity/test_export` lets theirs write by it."""
    head = {"target_length": 9, "beams": beams, "length_penalty": 0.6, "prefix": "in short:"}
    head |= {"min_tokens": 3, "no_repeat_ngram": 2} if beams > 1 else {}
    kind = {"sequence_to_sequence": head}
    ours = spelled(name, heads={"sequence_to_sequence": {}}, head_settings=kind, sequence_length=32)
    notes = write_checkpoint(ours, tmp_path / "ours")
    tokenizer = ours.tokenizer
    said, frame = (
        json.loads((tmp_path / "ours" / file).read_text("utf-8"))
        for file in ("generation_config.json", "tokenizer_config.json")
    )
    assert (said["max_new_tokens"], said["do_sample"]) == (9 + more, False)
    assert (said["eos_token_id"], said["pad_token_id"]) == (tokenizer.sep_id, tokenizer.pad_id)
    assert (said.get("forced_bos_token_id") == tokenizer.cls_id) == bool(more)
    never = {*tokenizer.special_ids} - {tokenizer.sep_id}
    assert said["bad_words_ids"] == [[each] for each in sorted(never)]
    searched = {"num_beams": 4, "length_penalty": 0.6, "no_repeat_ngram_size": 2}
    searched |= {"min_new_tokens": 3 + more}
    assert {key: said.get(key) for key in searched} == (
        searched if beams > 1 else dict.fromkeys(searched)
    )
    assert frame["model_max_length"] == 32 - 9  # what a text has beside its target
    assert frame["padding_side"] == ("left" if "gpt2" in name else "right")
    assert (
        notes[-1] == "theirs does not put 'in short:' before a text (head's prefix); do it yourself"
    )
    assert any("their length_penalty 0.6 counts" in note for note in notes) == (more * beams == 4)


def test_a_network_that_nothing_writes_with_has_no_settings_of_generation(tmp_path):
    write_checkpoint(spelled("golden/gpt2-large"), tmp_path / "ours")
    assert not (tmp_path / "ours" / "generation_config.json").exists()


def test_a_tokenizer_of_another_size_is_refused(tmp_path):
    folder = copy(tmp_path)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", "utf-8")
    with pytest.raises(RecipeError, match=r"has 11 pieces, the network 97 rows.*lines 12 to 97 m"):
        read_checkpoint(folder)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([*WORDS, WORDS[6], WORDS[7]], r"vocab\.txt: .* again in line 12 \(as 7\), 13 \(as 8\)"),
        (
            [word for word in WORDS if word != "[SEP]"],
            r"vocab\.txt: none of its 10 lines is \[SEP\]",
        ),
        ([*WORDS, *(f"w{i}" for i in range(88))], r"vocab\.txt: lines 98 to 99 too many"),
    ],
)
def test_a_vocabulary_with_wrong_lines_is_refused_by_file_and_line(tmp_path, lines, said):
    folder = copy(tmp_path)
    (folder / "vocab.txt").write_text("\n".join(lines) + "\n", "utf-8")
    with pytest.raises(RecipeError, match=said):
        read_checkpoint(folder)


def test_two_vocabularies_that_differ_are_refused(tmp_path):
    pieces = [*WORDS, *(f"w{i}" for i in range(97 - len(WORDS)))]
    found = read_checkpoint(GOLDEN / "bert-large")
    ours = huggingface.PretrainedNetwork(
        found.family, found.settings, found.network, {}, WordPiece(pieces, True)
    )
    write_checkpoint(ours, tmp_path / "ours")
    (tmp_path / "ours" / "vocab.txt").write_text("\n".join(reversed(pieces)) + "\n", "utf-8")
    with pytest.raises(ContractViolation, match="have different tokens"):
        read_checkpoint(tmp_path / "ours")


def test_another_scheme_is_no_tokenizer_of_ours(tmp_path):
    folder = copy(tmp_path)
    (folder / "tokenizer.json").write_text('{"model": {"type": "BPE"}}', "utf-8")
    found = read_checkpoint(folder)
    assert found.tokenizer is None
    assert found.notes == (
        "no tokenizer: tokenizer.json: BPE;"
        " only WordPiece, BPE of bytes or within words, and unigram are supported yet",
    )


def test_a_generator_beside_the_discriminator_is_left_out_and_said(tmp_path):
    found = read_checkpoint(GOLDEN / "electra-discriminator-large")
    head = {**found.heads["replaced_token_detection"], "generator/x/kernel": np.zeros((2, 2))}
    ours = huggingface.PretrainedNetwork(
        found.family, found.settings, found.network, {"replaced_token_detection": head}
    )
    assert write_checkpoint(ours, tmp_path / "ours") == (
        "left out, ElectraForPreTraining has no counterpart: replaced_token_detection/generator",
    )
    assert set(tensors(tmp_path / "ours")) == set(tensors(GOLDEN / "electra-discriminator-large"))
