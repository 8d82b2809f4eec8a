"""Encoders and recurrent decoders by name, for models that take either a name or a layer."""

import keras
from keras import ops

from keras_attention.checks.shapes import sizes_differ
from keras_attention.layers import TransformerEncoderBlock
from keras_attention.layers.row_encoding import call_encoder
from keras_attention.ops.positions import order_real_first, places_real_first, reordered, right_padded
from keras_attention.ops.random import split_seed
from keras_attention.saving.lookup import config_of, from_config, get_by_name

HEADS = 8  # of the "transformer"


def get_encoder(encoder, hidden_dim, num_layers, dropout, seed, dtype):
    """The layers `(B, S, D)` -> `(B, S, E)`, one after the other, of "lstm", "transformer", a layer or its config."""
    makers = {
        "lstm": lambda: lstm_encoder(hidden_dim, num_layers, dtype),
        "transformer": lambda: transformer_encoder(hidden_dim, num_layers, dropout, seed, dtype),
    }
    layers = get_by_name(encoder, makers, keras.layers.Layer, "encoder")
    if not isinstance(layers, list):
        layers.supports_masking = True  # a `Sequential` says that it doesn't, and Keras warns of the mask it is given
        layers = [layers]
    return layers


def encode_elements(layers, elements, mask):
    """The memory `(B, S, E)` that the layers of an encoder, one after the other, make of `elements (B, S, D)`."""
    memory = elements
    for layer in layers:
        memory = call_encoder(layer, memory, mask, training=None)
    check_memory(memory, elements)
    return memory


def check_memory(memory, elements):
    """Raises unless an encoder made a tensor `memory (B, S, E)` of `elements (B, S, D)`."""
    shape = tuple(getattr(memory, "shape", ()))
    if len(shape) != 3 or sizes_differ(shape[1], elements.shape[1]):
        received = f"shape {shape}" if shape else type(memory).__name__
        raise ValueError(
            f"`encoder` must make one vector for each position, (B, S, D) -> (B, S, E). Received {received} of elements "
            f"of shape {tuple(elements.shape)}. Make a recurrent layer with `return_sequences=True` alone."
        )


def lstm_encoder(hidden_dim, num_layers, dtype):
    """A stack of LSTM layers. Without cuDNN, whose kernel takes no gaps in the mask and cannot be compiled by XLA."""
    options = {"return_sequences": True, "use_cudnn": False, "dtype": dtype}
    return [keras.layers.LSTM(hidden_dim, name=f"encoder_{index}", **options) for index in range(num_layers)]


def transformer_encoder(hidden_dim, num_layers, dropout, seed, dtype):
    """A stack of pre-LN blocks without positions, and the last normalization."""
    if hidden_dim % HEADS:
        raise ValueError(
            f'`hidden_dim` must be a multiple of {HEADS}, the heads of the encoder "transformer". Received: {hidden_dim}. '
            "Choose another width, or pass an encoder of your own, such as a `TransformerEncoderBlock`."
        )
    options = {"num_heads": HEADS, "intermediate_dim": 4 * hidden_dim, "dropout": dropout, "normalize_first": True}
    blocks = [
        TransformerEncoderBlock(seed=each, dtype=dtype, name=f"encoder_{index}", **options)
        for index, each in enumerate(split_seed(seed, num_layers))
    ]
    return [*blocks, keras.layers.LayerNormalization(epsilon=1e-6, dtype=dtype, name="encoder_norm")]


def get_decoder(decoder, hidden_dim, dtype):
    """The recurrent layer that "lstm", "gru", a layer or its config stands for."""
    options = {"return_sequences": True, "return_state": True, "use_cudnn": False, "dtype": dtype, "name": "recurrent"}
    makers = {
        "lstm": lambda: keras.layers.LSTM(hidden_dim, **options),
        "gru": lambda: keras.layers.GRU(hidden_dim, **options),
    }
    decoder = get_by_name(decoder, makers, keras.layers.RNN, "decoder")
    if not (decoder.return_sequences and decoder.return_state) or decoder.go_backwards:
        raise ValueError(
            "`decoder` must be a recurrent layer that reads forward and returns its outputs and its states. Received: "
            f"{decoder!r} with return_sequences={decoder.return_sequences}, return_state={decoder.return_state} and "
            f"go_backwards={decoder.go_backwards}. Make it with `return_sequences=True, return_state=True`."
        )
    return decoder


@keras.saving.register_keras_serializable(package="keras_attention")
class RealFirst(keras.layers.Layer):
    """Moves the real positions of each row together: `inputs (B, S, D)`, `real (B, S)` -> both, padding at the end.

    So a row is encoded as it is alone, wherever its padding stands, also by a layer that knows no mask.
    """

    def __init__(self, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True

    def call(self, inputs, real):
        return reordered(inputs, order_real_first(real)), right_padded(real)

    def compute_output_spec(self, inputs, real):
        return tuple(keras.KerasTensor(tensor.shape, tensor.dtype) for tensor in (inputs, real))

    def compute_mask(self, inputs, previous_mask):
        """None: the mask is an output."""
        return None


@keras.saving.register_keras_serializable(package="keras_attention")
class RealInPlace(RealFirst):
    """Undoes `RealFirst`: `inputs (B, S, E)` of the moved positions, the mask `real (B, S)` of their places."""

    def call(self, inputs, real):
        return reordered(inputs, places_real_first(real))

    def compute_output_spec(self, inputs, real):
        return keras.KerasTensor(inputs.shape, inputs.dtype)


@keras.saving.register_keras_serializable(package="keras_attention")
class Recurrence(keras.layers.Layer):
    """A recurrent layer over any number of steps and rows; Keras' own cannot run over zero steps.

    `inputs (B, T, D)`, list of states `(B, U)` -> outputs `(B, T, U)`, list of the states after the last step. The states
    of stacked cells are one list, too.
    """

    def __init__(self, layer, **kwargs):
        layer = from_config(layer) if isinstance(layer, dict) else layer
        super().__init__(**{"dtype": layer.dtype_policy, **kwargs})
        self.layer = layer

    def build(self, inputs_shape, states_shape):
        self.layer.build(inputs_shape)
        self.built = True

    def call(self, inputs, states):
        return on_a_row(self._run, inputs, states)

    def _run(self, inputs, states):
        B, T, D = ops.shape(inputs)
        if not isinstance(T, int) or T == 0:
            longer = ops.concatenate([inputs, ops.zeros((B, 1, D), inputs.dtype)], axis=1)
            inputs = longer[:, : 1 if isinstance(T, int) else ops.maximum(T, 1)]
        states = pack(self.layer.state_size, iter(states))
        outputs, *states = self.layer(inputs, initial_state=states)
        return outputs[:, :T], keras.tree.flatten(states)

    def compute_output_spec(self, inputs, states):
        # Written out: JAX has no slice to a length that is unknown.
        outputs_shape, *_ = self.layer.compute_output_shape(inputs.shape)
        outputs = keras.KerasTensor(outputs_shape, dtype=self.compute_dtype)
        return outputs, [keras.KerasTensor(state.shape, dtype=self.compute_dtype) for state in states]

    def get_config(self):
        return {**super().get_config(), "layer": config_of(self.layer)}


def pack(sizes, states):
    """The iterator `states` in the structure of `sizes`, in plain lists: JAX does not take the lists that Keras tracks."""
    return [pack(each, states) for each in sizes] if isinstance(sizes, list | tuple) else next(states)


def on_a_row(function, *inputs):
    """`function(*inputs)` of nests of tensors, batch first. Without rows: its answer for a row of zeros, without that row.

    Keras' recurrent cells fail on TensorFlow where it is known that there is no row.
    """
    if keras.tree.flatten(inputs)[0].shape[0] != 0:
        return function(*inputs)
    row = keras.tree.map_structure(lambda tensor: ops.zeros((1, *ops.shape(tensor)[1:]), tensor.dtype), inputs)
    return keras.tree.map_structure(lambda tensor: tensor[:0], function(*row))
