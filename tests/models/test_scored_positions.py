"""Which positions a network is asked for, and where scorers find theirs among them."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from models.scored_positions import where_read


class Asked:
    """A network, or a scorer, that says a thing."""

    def __init__(self, **said):
        self.__dict__.update(said)


NETWORK = Asked(reads_positions=True, row_summary="first")
ONE, TWO, POOLED, ALL = Asked(reads=("one",)), Asked(reads=("two", "one")), Asked(reads=()), Asked()
BATCH = {
    "token_ids": np.zeros((2, 10), np.int32),
    "one": np.array([[3, 9, 0], [5, 5, 1]], np.int32),
    "two": np.array([[7, 8, 0], [2, 4, 6]], np.int32),
}


def arrays(batch):
    return {name: np.asarray(value) for name, value in batch.items()}


def test_positions_stand_behind_the_first_one_each_scorers_in_a_row():
    found = arrays(where_read(NETWORK, [ONE, TWO, POOLED], BATCH))
    assert found["read_positions"].tolist() == [[0, 3, 9, 0, 7, 8, 0], [0, 5, 5, 1, 2, 4, 6]]
    for name in ("one", "two"):
        read = np.take_along_axis(found["read_positions"], found[name], axis=1)
        assert read.tolist() == BATCH[name].tolist()


def test_as_many_as_a_batch_has():
    kind = {name: tf.TensorSpec((2, None), tf.int32) for name in BATCH}
    traced = tf.function(lambda batch: where_read(NETWORK, [TWO], batch), input_signature=[kind])
    found, expected = arrays(traced(BATCH)), arrays(where_read(NETWORK, [TWO], BATCH))
    assert {name: value.tolist() for name, value in found.items()} == {
        name: value.tolist() for name, value in expected.items()
    }


def test_what_is_not_in_the_batch_is_not_read():
    found = arrays(where_read(NETWORK, [TWO], {"token_ids": BATCH["token_ids"]}))
    assert found["read_positions"].tolist() == [[0], [0]]


def test_the_batch_stays_where_someone_reads_all_or_the_network_gives_all():
    assert where_read(NETWORK, [ONE, ALL], BATCH) == BATCH
    assert where_read(Asked(), [ONE], BATCH) == BATCH
    average = Asked(reads_positions=True, row_summary="mean")
    assert where_read(average, [ONE], BATCH) == BATCH


def test_a_network_that_sums_rows_up_at_their_end_is_read_there_first():
    causal = Asked(reads_positions=True, row_summary="last")
    mask = np.array([[1] * 7 + [0] * 3, [1] * 10], np.int32)
    found = arrays(where_read(causal, [ONE, POOLED], BATCH | {"padding_mask": mask}))
    assert found["read_positions"].tolist() == [[6, 3, 9, 0], [9, 5, 5, 1]]
    assert arrays(where_read(causal, [POOLED], BATCH))["read_positions"].tolist() == [[9], [9]]
