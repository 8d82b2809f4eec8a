"""Key-value(-predict) attention: one state is split into a key, a value and, where wanted, a part that predicts.

Letters: H features of one part, W positions of the window.
"""

import keras
from keras import ops

from keras_attention import alignments, scores
from keras_attention.checks.arguments import check_integer, check_positive_integer, check_rate, check_seed
from keras_attention.checks.shapes import check_known_width, check_not_ragged, check_rank
from keras_attention.layers.flow import build_part, four_steps
from keras_attention.ops.dtypes import as_floats, times
from keras_attention.ops.masks import as_mask, check_mask_types, check_padding_mask, zero_masked
from keras_attention.ops.positions import order_real_first, places_real_first, reordered, right_padded
from keras_attention.saving.initializers import fresh
from keras_attention.saving.lookup import config_of


def previous_windows(tensor, window):
    """The `window` positions before each one, zeros before the first: `(..., T, H)` -> `(..., T, window, H)`.

    `windows[t, w] = tensor[t - window + w]`, so the last of a window is the position right before t.

    Example:
        >>> previous_windows(ops.array([[[1.0], [2.0], [3.0]]]), 2)[..., 0]
        [[[0.0, 0.0], [0.0, 1.0], [1.0, 2.0]]]
    """
    T = ops.shape(tensor)[-2]
    leading = [(0, 0)] * (len(tensor.shape) - 2)
    padded = ops.pad(tensor, [*leading, (window, 0), (0, 0)])  # (..., window + T, H)
    positions = ops.expand_dims(ops.arange(T, dtype="int32"), -1) + ops.arange(window, dtype="int32")  # (T, window)
    return ops.take(padded, positions, axis=-2)


def check_own_rows(alignment):
    """Raises unless each query attends on its own: here each has a window of its own."""
    if keras.tree.flatten(alignment.initial_state((1, 1))):
        raise ValueError(
            f"In the alignment {type(alignment).__name__} the queries go on along one source, while here each query has its "
            'own window. Pass an alignment in which each query attends on its own, such as "softmax".'
        )


@keras.saving.register_keras_serializable(package="keras_attention")
class KeyValueSplitAttention(keras.layers.Layer):
    """Attention of a sequence to the states right before each one, by parts of them that have a task each.

        key, value, predict = split(inputs)                                  num_parts=3; with 2, predict = value
        scores[t, s]        = score(key[t], key[s])                          for s = t - window, ..., t - 1
        context[t]          = sum over s of alignment(scores, mask)[t, s] · value[s]
        output[t]           = tanh(context[t] · context_kernel + predict[t] · state_kernel)

    A state that is used to find, to be read and to predict has three tasks at odds with each other; here each has a part
    of its own. A position never attends to itself. In the paper `inputs` are the outputs h_t of an LSTM, `window` is L,
    the parts are k_t, v_t and p_t, `context` is r_t, `output` is h*_t and the kernels are W^r and W^x; the score is the
    additive one with W^Y, W^h and w.

    The window counts real positions: padding is passed over, wherever it stands. Scores are computed within the windows
    only, so time and memory grow with T·window, not with T·T.

    Args:
        window: Integer, how many positions before its own each one attends to.
        num_parts: 2 (key and value) or 3 (key, value and predict).
        score: A name of `scores.get` or a `Score`.
        alignment: A name of `alignments.get` or an `Alignment`, in which each query attends on its own.
        dropout: Float in [0, 1), fraction of the weights dropped in training.
        seed: Integer seed of the dropout and of an alignment that is named and draws, or `None`.
        kernel_initializer: Initializer of both kernels.

    Call arguments:
        inputs: Float tensor of shape `(B, ..., T, num_parts·H)`. Every axis left of the last two is batch.
        mask: Boolean tensor `(B, ..., T)`, True = a real position. The implicit Keras mask is used when it is not given.
        return_attention_scores: Boolean. Also return the attention weights (the name is the one of Keras).
        training: Boolean, whether dropout is active.

    Returns:
        `output` of shape `(B, ..., T, H)`, or `(output, weights)` with the weights `(B, ..., T, window)` before dropout:
        `weights[t, w]` is the one of the real position that is `window - w` before t. A position with nothing to attend,
        such as the first, has zero weights and a zero context; a masked one is zero. The mask is passed on.

    Raises:
        ValueError: If the features cannot be split, the mask does not fit, a name is unknown or a size is not a positive
            integer.

    Example:
        >>> attention = KeyValueSplitAttention(window=5)
        >>> output, weights = attention(keras.ops.ones((2, 11, 21)), return_attention_scores=True)
        >>> output.shape, weights.shape
        ((2, 11, 7), (2, 11, 5))

    References:
        Daniluk, Rocktäschel, Welbl and Riedel, 2017, sections 2.2 and 2.3, arXiv:1702.04521.
    """

    def __init__(
        self,
        window,
        num_parts=3,
        score="additive",
        alignment="softmax",
        dropout=0.0,
        seed=None,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.window = check_positive_integer("window", window)
        words = "2 (key, value) or 3 (key, value, predict)"
        self.num_parts = check_integer("num_parts", num_parts, words, lambda number: number in (2, 3))
        self.score = scores.get(score)
        self.alignment = alignments.get(alignment, seed)
        check_own_rows(self.alignment)
        self.dropout = check_rate("dropout", dropout)
        self.seed = check_seed(seed)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.dropout_layer = keras.layers.Dropout(self.dropout, seed=self.seed, dtype=self.dtype_policy)

    def build(self, inputs_shape):
        H = self.part_width(inputs_shape)
        query_shape, window_shape = ((*inputs_shape[:-1], length, H) for length in (1, self.window))
        build_part(self.score, query_shape, window_shape)
        build_part(self.alignment, (*inputs_shape[:-1], 1, self.window))
        self.context_kernel, self.state_kernel = (
            self.add_weight(name=name, shape=(H, H), initializer=fresh(self.kernel_initializer))
            for name in ("context_kernel", "state_kernel")
        )
        self.built = True

    def call(self, inputs, mask=None, return_attention_scores=False, training=None):
        check_not_ragged(inputs=inputs)
        self.part_width(inputs.shape)
        inputs = as_floats(inputs, self.compute_dtype)
        mask = as_mask(mask)
        check_padding_mask("mask", mask, inputs.shape)
        if mask is None:
            output, weights = self._attend(inputs, ops.ones(ops.shape(inputs)[:-1], "bool"), training)
        else:
            mask = ops.broadcast_to(mask, ops.shape(inputs)[:-1])
            together = reordered(inputs, order_real_first(mask))
            outputs = self._attend(together, right_padded(mask), training)
            output, weights = (reordered(each, places_real_first(mask)) for each in outputs)
        return (output, weights) if return_attention_scores else output

    def _attend(self, inputs, mask, training):
        """Output `(..., T, H)` and weights `(..., T, window)` of inputs without padding between them."""
        mask = ops.expand_dims(mask, -1)  # (..., T, 1)
        key, value, *predict = ops.split(zero_masked(inputs, mask, axis=-1), self.num_parts, axis=-1)
        attended = previous_windows(mask, self.window)[..., 0]  # (..., T, window)
        prepared = self.score.prepare(key)
        memory = {"key": previous_windows(prepared, self.window), "value": previous_windows(value, self.window)}
        context, weights, _ = four_steps(
            ops.expand_dims(key, -2),  # (..., T, 1, H)
            memory,  # (..., T, window, H)
            ops.expand_dims(ops.logical_and(attended, mask), -2),  # (..., T, 1, window)
            score=self.score,
            alignment=self.alignment,
            dropout=self.dropout_layer,
            training=training,
        )
        (state,) = predict or (value,)
        context = ops.squeeze(context, -2)  # (..., T, H)
        output = ops.tanh(times(context, self.context_kernel) + times(state, self.state_kernel))
        return output, ops.squeeze(weights, -2)

    def part_width(self, inputs_shape):
        """Width H of one part, after checking that the features can be split."""
        check_rank("inputs", inputs_shape, 3, "(B, ..., T, num_parts·H)")
        check_known_width("inputs", inputs_shape)
        H, rest = divmod(inputs_shape[-1], self.num_parts)
        if rest:
            raise ValueError(
                f"The features of `inputs` are split into num_parts={self.num_parts} parts of one width and must be a "
                f"multiple of that. Received shape {tuple(inputs_shape)}. Project them first, for example with "
                f"`keras.layers.Dense({self.num_parts * (H + 1)})`."
            )
        return H

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape[:-1], self.part_width(inputs_shape))

    def compute_output_spec(self, inputs, mask=None, return_attention_scores=False, training=None):
        check_mask_types(mask=mask)
        output = keras.KerasTensor(self.compute_output_shape(inputs.shape), dtype=self.compute_dtype)
        weights = keras.KerasTensor((*inputs.shape[:-1], self.window), dtype=self.compute_dtype)
        return (output, weights) if return_attention_scores else output

    def compute_mask(self, inputs, previous_mask):
        return previous_mask

    def get_config(self):
        return {
            **super().get_config(),
            "window": self.window,
            "num_parts": self.num_parts,
            "score": config_of(self.score),
            "alignment": config_of(self.alignment),
            "dropout": self.dropout,
            "seed": self.seed,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
