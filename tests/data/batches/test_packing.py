import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_attention.data import pack

LENGTHS = np.clip(
    np.random.default_rng(0).lognormal(2.0, 0.7, 397).astype(int) - 2, 0, 31
)  # of words in a sentence, say


def sequences_of(lengths):
    """`[3, 0, 2]`  ->  `[[100, 101, 102], [], [300, 301]]`: every token tells its sequence and its place in it"""
    return [100 * (number + 1) + np.arange(n) for number, n in enumerate(lengths)]


def dataset_of(*sequences, dtype="int32"):
    return tf.data.Dataset.from_generator(
        lambda: (each.astype(dtype) for each in map(np.asarray, sequences)),
        output_signature=tf.TensorSpec((None,), dtype),
    )


def listed(rows):
    return [{name: each.tolist() for name, each in row.items()} for row in rows.as_numpy_iterator()]


def unpacked(row):
    """The sequences of a row, after checking that its segments count from 1 and its positions from 0."""
    ids, positions = np.asarray(row["segment_ids"]), np.asarray(row["positions"])
    count = ids.max()
    assert sorted({*ids} - {0}) == [*range(1, count + 1)]
    assert not positions[ids == 0].any()
    segments = [np.flatnonzero(ids == number) for number in range(1, count + 1)]
    assert [slot for slots in segments for slot in slots] == [
        *range((ids > 0).sum())
    ]  # side by side, padding at the end
    for slots in segments:
        np.testing.assert_array_equal(positions[slots], range(len(slots)))
    return segments


def test_rows_hold_tokens_segments_and_positions():
    assert listed(pack(dataset_of([4, 5, 6], [7, 8, 9, 3], [6, 4]), length=5)) == [
        {"token_ids": [7, 8, 9, 3, 0], "segment_ids": [1, 1, 1, 1, 0], "positions": [0, 1, 2, 3, 0]},
        {"token_ids": [4, 5, 6, 6, 4], "segment_ids": [1, 1, 1, 2, 2], "positions": [0, 1, 2, 0, 1]},
    ]


@pytest.fixture(scope="module", params=[1024, 7], ids="buffer_size={}".format)
def many_rows(request):
    return pack(dataset_of(*sequences_of(LENGTHS)), 31, request.param)


def test_every_sequence_comes_back_whole_and_once(many_rows):
    found = []
    for row in many_rows.as_numpy_iterator():
        assert all(each.shape == (31,) and each.dtype == "int32" for each in row.values())
        found += [row["token_ids"][slots].tolist() for slots in unpacked(row)]
        assert not row["token_ids"][row["segment_ids"] == 0].any()
    assert sorted(found) == [each.tolist() for each in sequences_of(LENGTHS) if len(each)]


def test_the_same_sequences_give_the_same_rows(many_rows):
    assert listed(many_rows) == listed(many_rows)


def test_rows_are_full_where_one_after_the_other_leaves_gaps():
    count, used = 1, 0
    for n in LENGTHS:
        count, used = (count, used + n) if used + n <= 31 else (count + 1, n)
    rows = listed(pack(dataset_of(*sequences_of(LENGTHS)), 31))
    assert LENGTHS.sum() / (31 * len(rows)) > 0.98 > 0.9 > LENGTHS.sum() / (31 * count)


def test_an_endless_data_set_gives_rows_without_end():
    numbers = tf.data.Dataset.counter(1).map(lambda n: tf.fill([n % 5], tf.cast(n, tf.int32)))
    rows = [*itertools.islice(pack(numbers, 7, buffer_size=11).as_numpy_iterator(), 53)]
    assert len(rows) == 53


def test_inputs_and_labels_are_packed_together():
    sequences = dataset_of([4, 5, 6, 2], [], [7, 2], [8, 9, 2])
    examples = sequences.filter(lambda ids: tf.size(ids) > 0).map(lambda ids: (ids[:-1], ids[1:]))
    rows = [*pack(examples, 4).as_numpy_iterator()]
    assert [inputs["token_ids"].tolist() for inputs, _ in rows] == [[4, 5, 6, 7], [8, 9, 0, 0]]
    assert [labels.tolist() for _, labels in rows] == [[5, 6, 2, 2], [9, 2, 0, 0]]
    assert rows[0][0]["positions"].tolist() == [0, 1, 2, 0]


def test_entries_keep_their_names_and_types():
    examples = tf.data.Dataset.from_tensor_slices(
        (
            {"ids": tf.constant([[4, 5], [6, 7]], tf.int64), "kind": [[1, 1], [2, 2]]},
            [[3, 3], [4, 4]],
            [[0.5, 1.0], [1.0, 0.25]],
        )
    )
    rows = pack(examples, 5)  # sequences whose length is known
    inputs, labels, weights = next(rows.as_numpy_iterator())
    assert {name: each.tolist() for name, each in inputs.items()} == {
        "ids": [4, 5, 6, 7, 0],
        "kind": [1, 1, 2, 2, 0],
        "segment_ids": [1, 1, 2, 2, 0],
        "positions": [0, 1, 0, 1, 0],
    }
    assert labels.tolist() == [3, 3, 4, 4, 0]
    assert weights.tolist() == [0.5, 1.0, 1.0, 0.25, 0.0]
    row = rows.element_spec[0]["ids"]
    assert (row.shape, row.dtype) == ((5,), tf.int64)


def test_nothing_gives_no_row():
    assert listed(pack(dataset_of([], []), 5)) == []


def test_the_rows_of_a_ragged_tensor_are_sequences():
    dataset = tf.data.Dataset.from_tensor_slices({"ids": tf.ragged.constant([[4, 5], [6]])})
    assert [row["ids"] for row in listed(pack(dataset, 2))] == [[4, 5], [6, 0]]


def test_a_sequence_longer_than_a_row_is_an_error_that_names_its_length():
    message = r"must fit into a row of `length`=3 tokens\. Cut or split longer ones\. Received a sequence of:\] \[4\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        listed(pack(dataset_of([1, 2], [1, 2, 3, 4]), 3))


def test_the_tensors_of_a_sequence_have_one_length():
    examples = dataset_of([1, 2, 3]).map(lambda ids: (ids, ids[1:]))
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"All tensors of a sequence must have one length.* \[3 2\]"
    ):
        list(pack(examples, 5))


@pytest.mark.parametrize(
    "dataset",
    [
        [[1, 2]],
        tf.data.Dataset.from_tensors([[1, 2]]),
        tf.data.Dataset.from_tensors(1),
        tf.data.Dataset.from_tensors(["a"]),
        tf.data.Dataset.from_tensors(tf.ragged.constant([[1], [2, 3]])),
        tf.data.Dataset.from_tensors({"ids": [1, 2], "label": 1}),
    ],
    ids=["list", "batch", "scalar", "strings", "ragged", "label"],
)
def test_elements_are_sequences_of_numbers(dataset):
    with pytest.raises(
        TypeError, match=r"must be a `tf.data.Dataset` of integer tensors of shape \(n,\).* Received \w+ with"
    ):
        pack(dataset, 5)


def test_names_that_pack_makes_are_taken():
    dataset = tf.data.Dataset.from_tensors({"ids": [1, 2], "positions": [0, 1]})
    with pytest.raises(
        ValueError, match=r"`pack` makes 'segment_ids' and 'positions' itself\. Received elements \{'ids'"
    ):
        pack(dataset, 5)


@pytest.mark.parametrize("sizes", [{"length": 0}, {"length": 5, "buffer_size": 2.5}])
def test_sizes_are_positive_integers(sizes):
    with pytest.raises(ValueError, match=r"must be a positive integer\. Received: (0|2\.5)"):
        pack(dataset_of([1]), **sizes)
