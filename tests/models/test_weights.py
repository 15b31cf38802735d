"""Weights on disk: stable bytes, readable names, refused where they do not fit."""

from __future__ import annotations

import errno
import resource

import keras
import numpy as np
import pytest

from models.families.bert import SIZES, Bert
from models.weights import load_weights, named_weights, save_weights


def network(**changes) -> Bert:
    return Bert(**({"vocabulary_size": 50, **SIZES["tiny"], "max_sequence_length": 16} | changes))


def test_the_same_weights_give_the_same_bytes(tmp_path):
    one, two = network(), network(dtype="mixed_bfloat16", name="another")
    load_weights(two, {k: v.numpy() for k, v in named_weights(one).items()})
    save_weights(one, tmp_path / "one")
    save_weights(two, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_a_full_disk_has_its_number_and_leaves_nothing(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match="too large") as full:
            save_weights(network(), tmp_path / "one")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert full.value.errno == errno.EFBIG
    assert list(tmp_path.iterdir()) == []


def test_names_do_not_depend_on_what_is_wrapped_round_the_network():
    class Wrapper(keras.Model):
        def __init__(self, inner):
            super().__init__(name="wrapper")
            self.inner = inner

        def call(self, x):
            return self.inner(x)

    plain, wrapped = network(), network()
    Wrapper(wrapped)({"token_ids": np.ones((1, 4), "int32")})
    assert list(named_weights(plain)) == list(named_weights(wrapped))


def test_another_size_is_refused_and_nothing_is_assigned(tmp_path):
    save_weights(network(vocabulary_size=60), tmp_path / "other")
    ours = network()
    before = ours.token_embedding.embeddings.numpy()
    with pytest.raises(ValueError, match=r"token/embeddings has shape \(60, 128\), expected \(50"):
        load_weights(ours, tmp_path / "other")
    assert (ours.token_embedding.embeddings.numpy() == before).all()
    with pytest.raises(ValueError, match=r"missing .*block_1"):
        load_weights(ours, {k: v for k, v in named_weights(ours).items() if "block_1" not in k})
