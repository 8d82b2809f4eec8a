import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention.layers import LearnedPositionEmbedding

B, T, D, LENGTH = 2, 5, 7, 11


@pytest.fixture
def layer():
    layer = LearnedPositionEmbedding(LENGTH)
    layer.build((B, T, D))
    layer.set_weights([normal(LENGTH, D, seed=1)])
    return layer


@pytest.fixture
def table():
    return normal(LENGTH, D, seed=1)


@pytest.mark.parametrize("shape", [(T, D), (B, T, D), (B, 3, T, D)])
def test_the_vector_of_each_position_is_added(shape, layer, table):
    inputs = normal(*shape)
    np.testing.assert_allclose(layer(inputs), inputs + table[:T], atol=EXACT)


@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize("start_index", [0, 3, LENGTH - T])
def test_positions_can_start_anywhere(start_index, as_tensor, layer, table):
    inputs = normal(B, T, D)
    start = ops.convert_to_tensor(start_index, "int32") if as_tensor else start_index
    np.testing.assert_allclose(
        layer(inputs, start_index=start), inputs + table[start_index : start_index + T], atol=EXACT
    )


def test_given_positions_replace_the_count(layer, table):
    inputs, positions = normal(B, T, D), np.array([[0, 1, 2, 0, 1], [7, 7, 3, 2, 10]])
    np.testing.assert_allclose(layer(inputs, positions=positions), inputs + table[positions], atol=EXACT)
    np.testing.assert_allclose(layer(inputs, positions=positions[1]), inputs + table[positions[1]], atol=EXACT)


@pytest.mark.parametrize("start_index", [0, 3])
def test_positions_count_the_real_tokens_of_each_row(start_index, layer, table):
    inputs, mask = normal(B, T, D), np.array([[False, False, True, True, True], [True, False, False, True, True]])
    output = to_numpy(layer(inputs, start_index=start_index, mask=mask))
    for row in range(B):
        expected = inputs[row][mask[row]] + table[start_index : start_index + 3]
        np.testing.assert_allclose(output[row][mask[row]], expected, atol=EXACT)


@pytest.mark.parametrize("start_index", [LENGTH - T + 1, LENGTH, -1])
def test_a_start_that_leads_past_the_length_is_an_error(start_index, layer):
    message = (
        rf"Positions must lie in \[0, max_length\), max_length=11\. Received inputs of shape \(2, 5, 7\) starting at "
        rf"{start_index}, up to position {start_index + T - 1}\. Cut the inputs, or make .* larger `max_length`"
    )
    with pytest.raises(ValueError, match=message):
        layer(normal(B, T, D), start_index=start_index)


def test_inputs_longer_than_the_table_are_an_error_also_in_a_graph(layer):
    with pytest.raises(ValueError, match=r"max_length=11.* shape \(2, 12, 7\) starting at 0, up to position 11"):
        layer(normal(B, LENGTH + 1, D))
    with pytest.raises(ValueError, match=r"max_length=11.* shape \(None, 12, 7\)"):
        layer(keras.Input((LENGTH + 1, D)))


def test_a_position_known_only_at_run_time_is_nan_past_the_length(layer, table):
    inputs = normal(B, T, D)
    output = to_numpy(layer(inputs, start_index=ops.convert_to_tensor(LENGTH - 2, "int32")))
    np.testing.assert_allclose(output[:, :2], inputs[:, :2] + table[-2:], atol=EXACT)
    assert np.isnan(output[:, 2:]).all()
    output = to_numpy(layer(inputs, positions=np.array([0, LENGTH, -1, 1000, 1])))
    np.testing.assert_array_equal(np.isnan(output).all(axis=(0, 2)), [False, True, True, True, False])


def test_an_unknown_length_works_in_a_graph(layer, table):
    inputs = keras.Input((None, D))
    model, array = keras.Model(inputs, layer(inputs)), normal(B, 3, D)
    np.testing.assert_allclose(model(array), array + table[:3], atol=FLOAT32)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_returns_the_compute_type(policy):
    output = LearnedPositionEmbedding(LENGTH, dtype=policy)(np.zeros((B, T, D), "float32"))
    assert keras.backend.standardize_dtype(output.dtype) == keras.DTypePolicy(policy).compute_dtype
    assert np.isfinite(to_numpy(ops.cast(output, "float32"))).all()


@pytest.mark.parametrize(
    ("max_length", "error", "message"),
    [
        (0, ValueError, r"`max_length` must be a positive integer. Received: 0\."),
        (None, ValueError, r"`max_length` must be a positive integer. Received: None of type NoneType\."),
    ],
)
def test_the_length_must_be_a_positive_integer(max_length, error, message):
    with pytest.raises(error, match=message):
        LearnedPositionEmbedding(max_length)
