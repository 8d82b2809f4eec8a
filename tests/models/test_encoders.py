import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention.models.encoders import Recurrence, check_memory, get_decoder, get_encoder

B, T, D, U, E = 2, 3, 7, 5, 11
RECURRENT = {"return_sequences": True, "return_state": True}
DECODERS = {
    "lstm": lambda: get_decoder("lstm", U, None),
    "gru": lambda: get_decoder("gru", U, None),
    "simple": lambda: keras.layers.SimpleRNN(U, **RECURRENT),
    "a_cell": lambda: keras.layers.RNN(keras.layers.LSTMCell(U), **RECURRENT),
    "stacked_cells": lambda: keras.layers.RNN([keras.layers.LSTMCell(E), keras.layers.GRUCell(U)], **RECURRENT),
}


def recurrence_and_states(name):
    recurrence = Recurrence(DECODERS[name]())
    sizes = keras.tree.flatten(recurrence.layer.state_size)
    return recurrence, [ops.convert_to_tensor(normal(B, size, seed=index)) for index, size in enumerate(sizes)]


# === Recurrences ===


@pytest.mark.parametrize("name", DECODERS)
def test_step_by_step_equals_all_at_once(name):
    recurrence, states = recurrence_and_states(name)
    inputs = ops.convert_to_tensor(normal(B, T, D))
    outputs, last = recurrence(inputs, states)
    assert tuple(outputs.shape) == (B, T, U)
    for step in range(T):
        output, states = recurrence(inputs[:, step : step + 1], states)
        np.testing.assert_allclose(to_numpy(output)[:, 0], to_numpy(outputs)[:, step], atol=FLOAT32)
    assert len(states) == len(last)
    for received, expected in zip(states, last, strict=True):
        np.testing.assert_allclose(to_numpy(received), to_numpy(expected), atol=FLOAT32)


def test_a_recurrence_may_run_over_no_steps():
    recurrence, states = recurrence_and_states("lstm")
    outputs, last = recurrence(ops.zeros((B, 0, D)), states)
    assert tuple(outputs.shape) == (B, 0, U) and len(last) == 2


@pytest.mark.parametrize("name", DECODERS)
def test_a_recurrence_may_run_over_no_rows(name):
    recurrence, states = recurrence_and_states(name)
    outputs, last = recurrence(ops.zeros((0, T, D)), [state[:0] for state in states])
    assert tuple(outputs.shape) == (0, T, U)
    assert [tuple(state.shape) for state in last] == [(0, state.shape[1]) for state in states]


def test_a_recurrence_computes_in_the_type_of_its_layer():
    layer = keras.layers.GRU(U, dtype="mixed_bfloat16", **RECURRENT)
    outputs, states = Recurrence(layer)(normal(B, T, D), [normal(B, U)])
    assert {keras.backend.standardize_dtype(tensor.dtype) for tensor in (outputs, *states)} == {"bfloat16"}


# === Encoders ===


def encoded(encoder, inputs, mask, num_layers=2):
    hidden = inputs
    for layer in get_encoder(encoder, 8, num_layers, 0.0, seed=3, dtype=None):
        hidden = layer(hidden) if isinstance(layer, keras.layers.LayerNormalization) else layer(hidden, mask=mask)
    return to_numpy(hidden)


@pytest.mark.parametrize("encoder", ["lstm", "transformer"])
def test_encoders_by_name_make_one_vector_for_each_position_and_see_no_padding(encoder):
    inputs, mask = normal(B, 4, 8), np.array([[True, False, True, True], [True, True, False, False]])
    keras.utils.set_random_seed(5)
    expected = encoded(encoder, inputs, mask)
    keras.utils.set_random_seed(5)
    received = encoded(encoder, np.where(mask[..., None], inputs, np.float32(7)), mask)
    assert received.shape == (B, 4, 8)
    np.testing.assert_allclose(received[mask], expected[mask], atol=FLOAT32)


def test_an_encoder_by_name_has_as_many_layers_as_asked_for():
    names = {kind: [layer.name for layer in get_encoder(kind, 8, 3, 0.1, 3, None)] for kind in ("lstm", "transformer")}
    assert names["lstm"] == ["encoder_0", "encoder_1", "encoder_2"]
    assert names["transformer"] == [*names["lstm"], "encoder_norm"]


def test_a_layer_and_its_config_are_encoders_of_one_layer():
    layer = keras.layers.Dense(E)
    assert get_encoder(layer, 8, 3, 0.0, None, None) == [layer]
    config = keras.saving.serialize_keras_object(layer)
    assert get_encoder(config, 8, 3, 0.0, None, None)[0].units == E


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        (np.zeros((2, 7)), r"\(B, S, D\) -> \(B, S, E\). Received shape \(2, 7\) of elements of shape \(2, 5, 3\)"),
        (np.zeros((2, 3, 7)), r"Received shape \(2, 3, 7\) of elements"),
        ([np.zeros((2, 5, 7)), np.zeros((2, 7))], "Received list of elements.*`return_sequences=True` alone"),
    ],
)
def test_an_encoder_that_does_not_keep_the_positions_is_named(memory, message):
    with pytest.raises(ValueError, match=message):
        check_memory(memory, np.zeros((2, 5, 3)))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: get_encoder("transformer", 12, 1, 0.0, None, None),
            ValueError,
            '`hidden_dim` must be a multiple of 8, the heads of the encoder "transformer". Received: 12',
        ),
        (lambda: get_encoder("gru", 8, 1, 0.0, None, None), ValueError, 'Unknown encoder: "gru". Known: "lstm", "tran'),
        (lambda: get_encoder(keras.layers.LSTM, 8, 1, 0.0, None, None), TypeError, "an instance of `Layer`"),
        (lambda: get_decoder("rnn", U, None), ValueError, 'Unknown decoder: "rnn". Known: "gru", "lstm"'),
        (lambda: get_decoder(keras.layers.Dense(U), U, None), TypeError, "an instance of `RNN`. Received: <Dense"),
        (
            lambda: get_decoder(keras.layers.Bidirectional(keras.layers.GRU(U, **RECURRENT)), U, None),
            TypeError,
            "an instance of `RNN`. Received: <Bidirectional",
        ),
        (
            lambda: get_decoder(keras.layers.GRU(U, return_sequences=True), U, None),
            ValueError,
            "return_sequences=True, return_state=False and go_backwards=False. Make it with",
        ),
        (lambda: get_decoder(keras.layers.GRU(U, return_state=True), U, None), ValueError, "return_sequences=False"),
        (
            lambda: get_decoder(keras.layers.GRU(U, go_backwards=True, **RECURRENT), U, None),
            ValueError,
            "that reads forward.* go_backwards=True",
        ),
    ],
)
def test_mistakes_are_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
