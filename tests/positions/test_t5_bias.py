"""The relative bias of T5: its buckets are the published ones, and a table has a number for each."""

import keras
import numpy as np
import pytest
from reference.arrays import normal, to_numpy
from reference.position_schemes import t5_bucket
from tolerances import EXACT

from keras_attention.layers import MultiHeadAttention
from keras_attention.positions import T5Bias
from keras_attention.positions.t5_bias import distance_buckets

# As `relative_position_bucket` of Mesh TensorFlow and Hugging Face gives them: (distance, both sides, one side).
PUBLISHED = (
    *((-1000, 15, 31), (-128, 15, 31), (-127, 15, 31), (-91, 15, 29), (-90, 14, 29), (-64, 14, 26), (-63, 13, 26)),
    *((-46, 13, 24), (-45, 12, 23), (-32, 12, 21), (-31, 11, 21), (-20, 10, 17), (-16, 10, 16), (-15, 9, 15)),
    *((-12, 9, 12), (-11, 8, 11), (-8, 8, 8), (-7, 7, 7), (-1, 1, 1), (0, 0, 0), (1, 17, 0), (7, 23, 0)),
    *((8, 24, 0), (11, 24, 0), (12, 25, 0), (16, 26, 0), (23, 27, 0), (64, 30, 0), (127, 31, 0), (1000, 31, 0)),
)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_of_the_default_are_the_published_ones(bidirectional):
    distances, *buckets = np.transpose(PUBLISHED)
    expected = buckets[0 if bidirectional else 1]
    np.testing.assert_array_equal(distance_buckets(distances, bidirectional=bidirectional), expected)


@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (64, 256), (4, 2), (6, 7), (20, 1000)])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_follow_the_formula(num_buckets, max_distance, bidirectional):
    max_distance = max_distance if bidirectional else 2 * max_distance
    distances = np.arange(-3 * max_distance, 3 * max_distance)
    expected = [t5_bucket(distance, num_buckets, max_distance, bidirectional) for distance in distances.tolist()]
    np.testing.assert_array_equal(distance_buckets(distances, num_buckets, max_distance, bidirectional), expected)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_bias_is_the_number_of_the_head_and_bucket(bidirectional):
    scheme = T5Bias(num_buckets=8, max_distance=13, bidirectional=bidirectional)
    scheme.build((None, 3, None, 5))
    table = normal(8, 3)
    scheme.set_weights([table])
    query_positions = np.array([[0, 5000], [3, 20]], "int32")
    key_positions = np.array([[0, 4, 4990, 5000, 5001], [3, 5, 0, 40, 6]], "int32")
    bias = to_numpy(scheme.bias(*map(keras.ops.convert_to_tensor, (query_positions, key_positions))))
    assert bias.shape == (2, 3, 2, 5)
    for b, n, t, s in np.ndindex(bias.shape):
        bucket = t5_bucket(int(key_positions[b, s] - query_positions[b, t]), 8, 13, bidirectional)
        np.testing.assert_allclose(bias[b, n, t, s], table[bucket, n], atol=EXACT)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_buckets": 7}, r"`num_buckets` must be an even integer of 4 or more\. Received: 7"),
        ({"num_buckets": 2}, r"`num_buckets` must be an even integer of 4 or more\. Received: 2"),
        ({"num_buckets": 1, "bidirectional": False}, r"`num_buckets` must be an integer of 2 or more\. Received: 1"),
        ({"max_distance": 8}, r"`max_distance` must be an integer above 8, .*Received: 8"),
        ({"max_distance": 16, "bidirectional": False}, r"`max_distance` must be an integer above 16, .*Received: 16"),
    ],
)
def test_buckets_that_cannot_be_divided_are_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        T5Bias(**options)


def test_attentions_share_a_table():
    table, inputs = T5Bias(), normal(2, 5, 7)
    first, second = (MultiHeadAttention(3, 5, position=table) for _ in range(2))
    for layer in (first, second):
        layer(inputs, inputs)
    assert first.position.embeddings is second.position.embeddings


def test_attentions_with_another_number_of_heads_share_no_table():
    table = T5Bias(name="table")
    MultiHeadAttention(3, 5, position=table).build((2, 5, 7), (2, 5, 7))
    with pytest.raises(ValueError, match=r"equally many heads\. Received 'table', which was built for 3, .* with 2\."):
        MultiHeadAttention(2, 5, position=table).build((2, 5, 7), (2, 5, 7))
