"""What a new network starts from: two language models, an encoder, a file of word vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file
from scipy.special import log_softmax

from fourstage.errors import ContractViolation, RecipeError
from models.families.ernie_tsinghua import ErnieTsinghua
from models.families.recurrent import Recurrent
from models.families.seq2seq import Seq2Seq
from models.families.transe import TransE
from models.families.visualbert import Visualbert
from models.families.word2vec import Word2Vec
from models.objectives.causal_lm import CausalLM
from models.objectives.joint_lm import JointLM
from models.protocols import Context
from models.stage_format import NETWORK
from models.tokenizers.word import Word
from models.training.job import TrainingJob
from models.training.stage import Budget, Optimizer, Phase, StageSettings
from models.training.stage_model import StageModel
from models.training.starts import start_parts
from models.training.trained_stage import load_before, write_settings, write_weights
from models.weights import named_weights
from tests.models.memory_corpus import PlainTokenizer, random_captions, random_corpus

VOCABULARY_SIZE = 30
KINDS = ("position", "segment")
SIZE: dict[str, Any] = {"num_layers": 1, "embedding_dim": 5, "hidden_dim": 6}
DEEP = SIZE | {"num_layers": 2, "multi_layer_attention": True, "residual": True}
TOKENIZER = PlainTokenizer(VOCABULARY_SIZE)
CONTEXT = Context(TOKENIZER, 12)


def random(made: Any, seed: int) -> Any:
    """The network, none of whose weights is another's."""
    rng = np.random.default_rng(seed)
    for variable in made.trainable_variables:
        variable.assign(rng.normal(0, 0.5, variable.shape))
    return made


def recurrent(seed: int = 0, **changes: Any) -> Any:
    return random(Recurrent(vocabulary_size=VOCABULARY_SIZE, **SIZE | changes), seed)


def pair(**changes: Any) -> Any:
    made = Seq2Seq(vocabulary_size=VOCABULARY_SIZE, target_table=True, **DEEP | changes)
    return random(made, 9)


def job(family: str = "seq2seq", tokenizer: Any = TOKENIZER, **more: Any) -> TrainingJob:
    stage = StageSettings(
        kind="general",
        family=family,
        network=SIZE,
        phases=(Phase(12),),
        batch_size=2,
        budget=Budget("steps", 1),
        optimizer=Optimizer("adamw", {}),
    )
    return TrainingJob(stage, tokenizer, **more)


def finished(
    folder: Path, network: Any, tokenizer: Any = TOKENIZER, family: str = "recurrent"
) -> Path:
    """The folder of a stage with a network, as training leaves it."""
    folder.mkdir()
    of = job(family, tokenizer)
    write_weights(of, folder, network, {})
    write_settings(of, folder, precision="float32", tasks={}, history=[], metrics={})
    return folder


def values(made: Any) -> dict[str, np.ndarray]:
    return {name: np.array(variable.numpy()) for name, variable in named_weights(made).items()}


def test_both_sides_are_the_language_models_weight_for_weight(tmp_path: Path):
    source, target = recurrent(1), recurrent(2)
    starts = {
        "encoder": finished(tmp_path / "source", source),
        "decoder": finished(tmp_path / "target", target),
    }
    made = pair()
    scorers = {"joint_lm": JointLM(CONTEXT).attach(made)}
    before, one, two = values(made), values(source), values(target)
    start_parts(job(starts=starts), made, scorers)
    after = values(made)
    cell = ("kernel", "recurrent_kernel", "bias")
    expected = {
        "embeddings/token/embeddings": one["embeddings/token/embeddings"],
        "target_embeddings/token/embeddings": two["embeddings/token/embeddings"],
        "output_table": two["output_table"],
        **{f"block_0/forward/{each}": one[f"block_0/forward/{each}"] for each in cell},
        **{f"decoder/block_2/{each}": two[f"block_0/forward/{each}"] for each in cell},
    }
    for name, value in after.items():
        np.testing.assert_array_equal(value, expected.get(name, before[name]), err_msg=name)
    table = values(scorers["joint_lm"])["source_table"]
    np.testing.assert_array_equal(table, one["output_table"])


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_joint_loss_is_that_of_each_language_model_on_its_own_text(tmp_path: Path, cell: str):
    source, target = recurrent(1, cell=cell), recurrent(2, cell=cell)
    starts = {
        "encoder": finished(tmp_path / "source", source),
        "decoder": finished(tmp_path / "target", target),
    }
    made = pair(cell=cell, input_feeding=True)  # so that the decoder's first cell reads more
    scorer = JointLM(CONTEXT).attach(made)
    start_parts(job(starts=starts), made, {"joint_lm": scorer})
    rng = np.random.default_rng(3)
    texts, targets = np.array([[6], [2]]), np.array([[5], [4]])
    mask, target_mask = np.arange(6) < texts, np.arange(5) < targets
    ids = rng.integers(5, VOCABULARY_SIZE, (2, 6)) * mask
    written = rng.integers(5, VOCABULARY_SIZE, (2, 6)) * (np.arange(6) <= targets)
    batch = {
        "token_ids": ids.astype("int32"),
        "padding_mask": mask.astype("int32"),
        "target_ids": written[:, :5].astype("int32"),
        "target_mask": target_mask.astype("int32"),
        "target_labels": written[:, 1:].astype("int32"),
        "target_weights": target_mask.astype("float32"),
    }
    scores, _ = StageModel(made, {"joint_lm": scorer}).outputs(batch)
    found = {name: [float(x) for x in pair] for name, pair in scores["joint_lm"].items()}

    def nats(network: Any, texts: list[list[int]]) -> tuple[float, int]:
        """Σ -log p of each token after the first, and how many there are."""
        total = count = 0
        for text in texts:
            hidden = network({"token_ids": np.array([text], "int32")})["sequence_output"][0]
            logits = np.asarray(hidden, np.float64) @ np.asarray(network.output_table).T
            log_p = log_softmax(logits, axis=-1)[np.arange(len(text) - 1), text[1:]]
            total, count = total - log_p.sum(), count + len(text) - 1
        return total, count

    of_source = nats(source, [ids[0].tolist(), ids[1, :2].tolist()])
    of_target = nats(target, [written[0].tolist(), written[1, :5].tolist()])
    assert found["source_loss"] == pytest.approx(of_source, rel=1e-5)
    assert found["target_loss"] == pytest.approx(of_target, rel=1e-5)
    loss, weight = found["loss"]
    means = of_source[0] / of_source[1] + of_target[0] / of_target[1]
    assert loss / weight == pytest.approx(means, rel=1e-5)


def test_an_encoder_that_reads_backwards_is_no_language_model():
    with pytest.raises(RecipeError, match=r"joint_lm: expected size\.direction forward, got both"):
        JointLM(CONTEXT).attach(pair(direction="both"))


def test_a_classifier_starts_as_the_encoder_of_an_autoencoder(tmp_path: Path):
    autoencoder, made = pair(num_layers=1, multi_layer_attention=False), recurrent(4)
    before, theirs = values(made), values(autoencoder)
    start_parts(job(starts={"encoder": finished(tmp_path / "a", autoencoder)}), made, {})
    for name, value in values(made).items():
        wanted = before[name] if name == "output_table" else theirs[name]
        np.testing.assert_array_equal(value, wanted, err_msg=name)


def test_a_language_model_of_another_vocabulary_is_refused(tmp_path: Path):
    other = PlainTokenizer(VOCABULARY_SIZE, digest="another")
    folder = finished(tmp_path / "other", recurrent(), other)
    with pytest.raises(RecipeError, match=r"starts_from\.decoder: trained with another vocabulary"):
        start_parts(job(starts={"decoder": folder}), pair(), {})


def test_other_shapes_are_refused_and_nothing_is_changed(tmp_path: Path):
    folder, made = finished(tmp_path / "wide", recurrent(hidden_dim=7)), pair()
    before = values(made)
    with pytest.raises(RecipeError, match=r"expected block_0/forward/kernel of shape \(5, 24\)"):
        start_parts(job(starts={"encoder": folder}), made, {})
    for name, value in values(made).items():
        np.testing.assert_array_equal(value, before[name])


def test_a_recurrent_language_model_sees_nothing_of_what_it_predicts():
    made = recurrent(num_layers=2)
    scorer = CausalLM(CONTEXT).attach(made)
    ids = np.random.default_rng(0).integers(5, VOCABULARY_SIZE, (1, 8)).astype("int32")

    def logits(tokens: np.ndarray) -> np.ndarray:
        hidden = made({"token_ids": tokens})["sequence_output"]
        return keras.ops.convert_to_numpy(scorer.logits(hidden))[0]

    turned = ids.copy()
    turned[0, 5] = ids[0, 5] % 20 + 6
    moved = np.abs(logits(turned) - logits(ids)).max(axis=-1) > 1e-6
    assert moved.tolist() == [False] * 5 + [True] * 3


def test_words_of_a_file_that_are_whole_tokens_have_its_vectors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    # PlainTokenizer's words are numbers: "7 8" is two tokens, "3" is a special one.
    file = tmp_path / "vectors.txt"
    rows = {"7": [1, 2, 3, 4, 5], "nobody": [9] * 5, "11": [5, 4, 3, 2, 1.5], "3": [8] * 5}
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in rows.items() if word != "nobody"]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    made = recurrent(4)
    table = np.array(made.token_embedding.embeddings.numpy())
    start_parts(job(starts={"embeddings": file}), made, {})
    table[7], table[11] = rows["7"], rows["11"]
    np.testing.assert_array_equal(made.token_embedding.embeddings, table)
    told = "starts_from.embeddings: 2 of 30 tokens have a vector among the 3 words there; the"
    assert told in "".join(capsys.readouterr())
    file.write_text("3 1 2 3 4 5\n", encoding="utf-8")
    with pytest.raises(
        RecipeError, match=r"embeddings: none of the 1 words of .*vectors\.txt is a"
    ):
        start_parts(job(starts={"embeddings": file}), made, {})
    file.write_text(lines[0] + "\n8 1 2\n", encoding="utf-8")
    with pytest.raises(ContractViolation, match=r"vectors\.txt:2: expected a word and 5 numbers"):
        start_parts(job(starts={"embeddings": file}), made, {})


def test_words_of_a_versions_vectors_are_found_by_another_tokenizer(tmp_path: Path):
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    words = Word((*special, "11", "13", "7"), False)
    theirs = random(Word2Vec(vocabulary_size=8, hidden_dim=5), 3)
    folder, made = finished(tmp_path / "version", theirs, words, "word2vec"), recurrent(4)
    with pytest.raises(RecipeError, match="trained with another vocabulary"):
        start_parts(job(starts={"embeddings": folder}), made, {})
    words.save(folder / "tokenizer")  # as the copy of a registered version has it
    table, given = (np.array(each.token_embedding.embeddings.numpy()) for each in (made, theirs))
    start_parts(job(starts={"embeddings": folder}), made, {})
    table[11], table[13], table[7] = given[5:]
    np.testing.assert_array_equal(made.token_embedding.embeddings, table)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"family": "recurrent"}), "utf-8")
    with pytest.raises(RecipeError, match="trained with another vocabulary"):
        start_parts(job(starts={"embeddings": folder}), made, {})


def test_a_table_of_entities_starts_from_a_stage_with_another_vocabulary(tmp_path: Path):
    graph = TransE(vocabulary_size=8, hidden_dim=6)
    folder = finished(tmp_path / "graph", graph, PlainTokenizer(8, digest="names"))
    size = {"num_layers": 2, "num_text_layers": 1, "hidden_dim": 8, "num_heads": 2}
    size |= {"intermediate_dim": 8, "vocabulary_size": VOCABULARY_SIZE, "entity_heads": 2}

    def made(rows: int, width: int = 6) -> Any:
        network = ErnieTsinghua(**size, num_entities=rows, entity_dim=width)
        start_parts(job("ernie_tsinghua", starts={"entities": folder}), network, {})
        return network

    table = values(made(10))["entities/embeddings"]
    np.testing.assert_array_equal(table[:8], values(graph)["token/embeddings"])
    assert table[8:].any(), "the rows of no entity are as they were made"
    for rows, width in ((7, 6), (10, 4)):
        with pytest.raises(RecipeError, match=r"starts_from.entities: .* got \(8, 6\); what it"):
            made(rows, width)
    with pytest.raises(RecipeError, match="trained with another vocabulary"):
        start_parts(job("recurrent", starts={"embeddings": folder}), recurrent(), {})


def test_rows_of_regions_are_the_texts_when_the_first_stage_with_pictures_begins(tmp_path: Path):
    size = {"num_layers": 1, "hidden_dim": 6, "num_heads": 2, "intermediate_dim": 8}
    size |= {"max_sequence_length": 12, "region_dim": 26}
    words = {"plain": (random_corpus(3, VOCABULARY_SIZE), 1.0)}
    captions = {"captions": (random_captions(3, VOCABULARY_SIZE, 26), 1.0)}
    began, initial = [], None
    for number, corpora in enumerate((words, words, captions, words, captions)):
        of = job("visualbert", corpora=corpora, initial=initial)
        network = Visualbert(vocabulary_size=VOCABULARY_SIZE, **size)
        if initial is not None:
            load_before(of, network, {})
        began.append(values(network))
        initial = tmp_path / str(number)
        initial.mkdir()
        write_weights(of, initial, random(network, number), {})
        write_settings(of, initial, precision="float32", tasks={}, history=[], metrics={})
    tables = [(f"region_{name}/embeddings", f"embeddings/{name}/embeddings") for name in KINDS]
    copied = [
        [np.array_equal(weights[own], weights[text]) for own, text in tables] for weights in began
    ]
    # New, after text, with pictures for the first time, and ever since as they were trained.
    assert copied == [[True] * 2, [False] * 2, [True] * 2, [False] * 2, [False] * 2]
    before = load_file(tmp_path / "1" / NETWORK)
    assert all(
        np.array_equal(array, before[name])
        for name, array in began[2].items()
        if name not in dict(tables)
    )
