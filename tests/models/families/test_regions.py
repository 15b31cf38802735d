"""Networks that see, against NumPy, against their blocks one by one, and against BERT."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from models import catalogue
from models.families.bert import Bert
from models.layers.attention import MultiHeadAttention, bias_from_padding
from models.protocols import Context
from models.weights import load_weights, named_weights
from tests.models.families.drawn import dense, draw_weights, norm
from tests.models.memory_corpus import PlainTokenizer

RNG = np.random.default_rng(6)
SIZE = {"vocabulary_size": 30, "hidden_dim": 12, "num_heads": 3, "intermediate_dim": 20}
SIZE |= {"num_layers": 4, "max_sequence_length": 9, "dropout": 0.0, "region_dim": 5}
MORE: dict[str, dict[str, Any]] = {
    "uniter": {},
    "unicoder_vl": {},
    "vl_bert": {"box_waves": 3},
    "vilbert": {
        "num_region_layers": 2,
        "region_hidden_dim": 8,
        "num_region_heads": 2,
        "region_intermediate_dim": 10,
    },
}
BOXES = np.sort(RNG.random((3, 4, 2, 2)), axis=2).reshape(3, 4, 4).astype(np.float32)
BATCH = {
    "token_ids": RNG.integers(0, 30, (3, 7)).astype(np.int32),
    "segment_ids": np.repeat([[0, 0, 0, 1, 1, 1, 1]], 3, axis=0).astype(np.int32),
    "padding_mask": (np.arange(7) < [[7], [5], [6]]).astype(np.int32),
    "region_features": RNG.normal(size=(3, 4, 5)).astype(np.float32),
    "region_boxes": BOXES,
    "region_mask": np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], np.int32),
    "masked_regions": np.array([[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]], np.int32),
}
TEXT = {key: BATCH[key] for key in ("token_ids", "segment_ids", "padding_mask")}
SEEN = BATCH["region_mask"].astype(bool)


def value(tensor: Any) -> np.ndarray:
    return keras.ops.convert_to_numpy(tensor)


def made(family: str) -> tuple[Any, dict[str, np.ndarray]]:
    """A network all of whose weights are drawn, and its weights."""
    network = catalogue.find("families", family)(**SIZE | ALL[family])
    return network, draw_weights(network, RNG)


def box_numbers(boxes: np.ndarray, sides: bool) -> np.ndarray:
    """Corners, width and height where wanted, area."""
    across, down = boxes[..., 2] - boxes[..., 0], boxes[..., 3] - boxes[..., 1]
    more = [across, down, across * down] if sides else [across * down]
    return np.concatenate([boxes, np.stack(more, axis=-1)], axis=-1)


def whole_pictures() -> tuple[np.ndarray, np.ndarray]:
    """The mean of each row's regions, (3, 1, E), and the box round all, (3, 1, 4)."""
    means = [BATCH["region_features"][row][SEEN[row]].sum(0) for row in range(3)]
    counts = np.maximum(SEEN.sum(1), 1)[:, None]
    box = np.tile(np.array([0, 0, 1, 1], np.float32), (3, 1, 1))
    return (np.array(means) / counts)[:, None], box


def test_uniter_reads_a_region_by_three_norms_and_adds_a_vector_where_one_is_hidden():
    network, w = made("uniter")
    seen = (
        BATCH["region_features"] + BATCH["masked_regions"][..., None] * w["region_mask/embeddings"]
    )
    place = "region_embedding"
    seen = norm(w, f"{place}/feature_embedding_norm", dense(w, f"{place}/feature_embedding", seen))
    where = dense(w, f"{place}/box_embedding", box_numbers(BOXES, sides=True))
    where = norm(w, f"{place}/box_embedding_norm", where)
    expected = norm(w, f"{place}/norm", seen + where + w["embeddings/segment/embeddings"][1])
    assert np.abs(value(network.embed(BATCH))[:, 7:] - expected).max() < 1e-5


def test_unicoder_vl_reads_a_region_by_one_norm():
    network, w = made("unicoder_vl")
    seen = dense(w, "region_embedding/feature_embedding", BATCH["region_features"])
    where = dense(w, "region_embedding/box_embedding", box_numbers(BOXES, sides=False))
    expected = norm(w, "region_embedding/norm", seen + where)
    assert np.abs(value(network.embed(BATCH))[:, 7:] - expected).max() < 1e-5


def test_vl_bert_gives_every_position_a_visual_feature():
    network, w = made("vl_bert")
    vectors = w["region_vectors/embeddings"]  # region, hidden region, [END], text alone
    hidden = np.pad(BATCH["masked_regions"], ((0, 0), (1, 0)))[..., None]  # not the whole picture
    mean, box = whole_pictures()
    seen = np.concatenate([mean, BATCH["region_features"]], axis=1)
    seen = seen + hidden * w["region_mask/embeddings"]
    boxes = np.concatenate([box, BOXES], axis=1)
    centred = np.concatenate([boxes[..., :2] + boxes[..., 2:], 0 * boxes[..., 2:]], axis=-1) / 2
    centred[..., 2:] = boxes[..., 2:] - boxes[..., :2]
    angles = 100 * centred[..., None] / 1000 ** (np.arange(3) / 3)  # (3, 5, 4, W)
    waves = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1).reshape(3, 5, 24)
    visual = dense(w, "region_embedding", np.concatenate([waves, seen], axis=-1))
    visual = np.maximum(visual, 0)
    token, position, segment = (
        w[f"embeddings/{name}/embeddings"] for name in ("token", "position", "segment")
    )
    ids, lengths = BATCH["token_ids"], BATCH["padding_mask"].sum(1)
    of_text = np.where(SEEN.any(1)[:, None, None], visual[:, :1], vectors[3])
    text = token[ids] + position[:7] + segment[BATCH["segment_ids"]]
    text = text + norm(w, "region_text_norm", of_text)
    regions = np.where(hidden, vectors[1], vectors[0]) + norm(w, "region_norm", visual)
    regions = regions + position[lengths][:, None] + segment[2]
    end = (vectors[2] + position[lengths + 1] + segment[2])[:, None]
    expected = norm(w, "embeddings/norm", np.concatenate([text, regions, end], axis=1))
    assert np.abs(value(network.embed(BATCH)) - expected).max() < 2e-5


def test_what_vl_bert_sees_fades_in_from_nothing():
    network = catalogue.find("families", "vl_bert")(**SIZE | MORE["vl_bert"])
    other = BATCH | {"region_features": BATCH["region_features"] + 1.0}
    one, two = (value(network(batch)["sequence_output"]) for batch in (BATCH, other))
    assert np.array_equal(one, two)
    for norm_layer in (network.region_text_norm, network.region_norm):
        norm_layer.gamma.assign(np.full(12, 0.1))
    one, two = (value(network(batch)["sequence_output"]) for batch in (BATCH, other))
    assert np.abs(one - two)[:2].max() > 1e-4


def test_vilbert_pairs_its_last_blocks_of_text_with_those_of_regions_and_multiplies():
    network, w = made("vilbert")
    mean, box = whole_pictures()
    features = np.concatenate([mean, BATCH["region_features"]], axis=1)
    boxes = box_numbers(np.concatenate([box, BOXES], axis=1), sides=False)
    there = np.concatenate([SEEN.any(1)[:, None], SEEN], axis=1)
    regions: Any = norm(
        w,
        "region_embedding/norm",
        dense(w, "region_embedding/feature_embedding", features)
        + dense(w, "region_embedding/box_embedding", boxes),
    ).astype(np.float32)
    biases = [bias_from_padding(mask) for mask in (BATCH["padding_mask"], there)]
    x: Any = network.embeddings(BATCH["token_ids"], BATCH["segment_ids"])
    for number in (0, 1):
        x = network.blocks[number](x, bias=biases[0])
    for number, pair in ((2, 0), (3, 1)):
        x, regions = network.cross_blocks[pair](x, regions, *biases)
        x, regions = network.blocks[number](x, regions, *biases)
    outputs = network(BATCH)
    real = BATCH["padding_mask"].astype(bool)
    real[2] = False  # it has no picture
    text = np.abs(value(outputs["sequence_output"]) - value(x))[real]
    assert text.max() < 1e-5
    assert outputs["region_output"].shape == (3, 4, 8)
    assert np.abs(value(outputs["region_output"]) - value(regions)[:, 1:])[SEEN].max() < 1e-5
    first = np.maximum(dense(w, "pooler", value(outputs["sequence_output"])[:, 0]), 0)
    seen = np.maximum(dense(w, "region_pooler", value(regions)[:, 0]), 0)
    expected = np.where(SEEN.any(1)[:, None], first * seen, first)
    assert np.abs(value(outputs["pooled_output"]) - expected).max() < 1e-5


def test_published_vilbert_pairs_layers_6_to_11_with_all_six_of_regions():
    base = catalogue.literals("families", "vilbert")["SIZES"]["base"]
    assert base["num_layers"] - base["num_region_layers"] == 6


@pytest.mark.parametrize("family", MORE)
def test_without_regions_it_is_bert_with_the_texts_weights(family):
    network, w = made(family)
    names = [name for name in SIZE if name != "region_dim"]
    settings = {name: SIZE[name] for name in names} | {"activation": "gelu"}
    if family == "vl_bert":
        settings |= {"num_segments": 3, "max_sequence_length": SIZE["max_sequence_length"] + 2}
        seen = norm(w, "region_text_norm", w["region_vectors/embeddings"][3])
        w["embeddings/token/embeddings"] += seen
    bert = Bert(**settings)
    if family == "vilbert":  # whose poolers are as wide as regions
        w |= {name: value(v) for name, v in named_weights(bert).items() if "pooler" in name}
    load_weights(bert, {name: w[name] for name in named_weights(bert)})
    expected = bert(TEXT)
    masked = BATCH | {"region_mask": np.zeros_like(BATCH["region_mask"])}
    for given in (TEXT, masked):
        outputs = network(given)
        for key in ("sequence_output", *(["pooled_output"] if family != "vilbert" else [])):
            right = value(expected[key])
            assert np.abs(value(outputs[key]) - right).max() < 1e-6 * np.abs(right).max(), key
    alone, right = (value(each["sequence_output"])[2] for each in (network(BATCH), expected))
    assert np.abs(alone - right).max() < 1e-6 * np.abs(right).max()


ALL = MORE | {"lxmert": {"num_region_layers": 1, "num_cross_layers": 1}, "visualbert": {}}


@pytest.mark.parametrize("family", ALL)
def test_what_stands_in_place_of_regions_that_are_not_there_changes_nothing(family, monkeypatch):
    monkeypatch.setitem(MORE, family, ALL[family])
    network, _ = made(family)
    one = BATCH | {"region_mask": np.array([[1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]], np.int32)}
    there = one["region_mask"] > 0
    one["region_weights"] = (one["masked_regions"] * there).astype(np.float32)
    one["region_labels"] = np.abs(BATCH["region_features"])
    one["image_text_match_labels"] = np.array([1, 1, 1], np.int32)
    other = dict(one)
    for key in ("region_features", "region_boxes", "region_labels"):
        other[key] = np.where(there[..., None], one[key], np.float32(7.0))
    other["masked_regions"] = np.where(there, one["masked_regions"], 1).astype(np.int32)
    context = Context(PlainTokenizer(30), 7)
    objectives = {"region_class": {"groups": (3, 2)}, "region_regression": {}}
    scorers = {
        name: catalogue.find("objectives", name)(context, **settings).attach(network)
        for name, settings in (objectives | {"word_region_alignment": {}}).items()
    }
    first, second = network(one), network(other)
    real = BATCH["padding_mask"] > 0
    differs = value(first["sequence_output"])[0].std(axis=0).max()
    assert differs > 0.1, "else the test could not fail"
    for key, places in {"sequence_output": real, "region_output": there}.items():
        assert np.array_equal(value(first[key])[places], value(second[key])[places]), key
    assert np.array_equal(value(first["pooled_output"]), value(second["pooled_output"]))
    for name, scorer in scorers.items():
        (total, weight), (same, _) = (
            scorer(batch, outputs)[0]["loss"] for batch, outputs in ((one, first), (other, second))
        )
        assert float(total) == float(same) > 0
        assert float(weight) == (2 if name == "word_region_alignment" else there[0].sum() - 1)


@pytest.mark.parametrize("family", ALL)
def test_attention_to_regions_is_that_of_the_last_block_that_has_it(family: str, monkeypatch):
    """Against the scores that the network itself turns into weights."""
    found: list[tuple[Any, np.ndarray]] = []
    mixed = MultiHeadAttention._mix

    def listening(self, scores, seen, bias, past, training):
        found.append((self, value(scores if bias is None else scores + bias)))
        return mixed(self, scores, seen, bias, past, training)

    monkeypatch.setattr(MultiHeadAttention, "_mix", listening)
    network = made(family)[0]
    network(BATCH)
    sizes, first = BATCH["token_ids"].shape[1], 1 if family in ("vilbert", "vl_bert") else 0
    if family == "lxmert":
        wanted = next(s for a, s in found if a is network.blocks[-1].cross_attention)
    elif family == "vilbert":
        wanted = next(s for a, s in found if a is network.cross_blocks[-1].attention)
    else:
        wanted, first = found[-1][1][:, :, :sizes], first + sizes
    exact = np.exp(wanted - wanted.max(-1, keepdims=True))
    exact = (exact / exact.sum(-1, keepdims=True)).mean(1)[:, :, first : first + 4]
    seen = value(network.words_to_regions(BATCH))
    assert seen.shape == (3, sizes, 4)
    np.testing.assert_allclose(seen[:2], exact[:2], atol=1e-6)  # the third row sees no picture
    assert not seen[1, :, 2:].any()  # padding
    assert (seen[:2].sum(-1) < 1 + 1e-5).all()
