"""Share of tokens and of whole sequences that the largest logit gets right."""

import keras
from keras import ops

from keras_attention.training.losses import token_weights


def token_results(y_true, y_pred, sample_weight):
    """`(right, weights)`: boolean and float32, both of the shape of `y_true`."""
    targets = ops.convert_to_tensor(y_true)
    logits = ops.convert_to_tensor(y_pred)
    weights = token_weights(targets, y_pred, sample_weight)
    right = ops.cast(ops.argmax(logits, axis=-1), "int32") == ops.cast(targets, "int32")
    return right, weights


@keras.saving.register_keras_serializable(package="keras_attention")
class TokenAccuracy(keras.metrics.Mean):
    """Share of tokens whose largest logit is the target's.

    `accuracy = sum of weight over right tokens / sum of weight over all tokens`, where the weight is the sample weight,
    and 0 where Keras' mask of `y_pred` is False. Tokens of all batches count alike.

    Keras passes the mask under `metrics=` and under `weighted_metrics=`, the sample weight only under the latter. On JAX
    it loses the mask inside `fit` (not in `evaluate`) of all models but the sequence models and `ReinforceModel`: for others
    pass the padding as `sample_weight` to `weighted_metrics=`.

    Args:
        name: String.
        dtype: Type of the result.

    Call arguments:
        y_true: Integer tensor of shape `(...)`, such as `(B, T)`.
        y_pred: Float tensor of logits or probabilities of shape `(..., V)`.
        sample_weight: Float tensor `(B,)` or of the shape of `y_true`.

    Returns:
        Scalar in [0, 1]; 0 before the first token.

    Raises:
        ValueError: If the shapes don't match.

    Example:
        >>> accuracy = TokenAccuracy()
        >>> accuracy.update_state([[1, 0, 0]], [[[0.0, 5.0], [5.0, 0.0], [0.0, 5.0]]], sample_weight=[[1, 1, 0]])
        >>> float(accuracy.result())
        1.0
    """

    def __init__(self, name="token_accuracy", dtype=None):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        right, weights = token_results(y_true, y_pred, sample_weight)
        super().update_state(ops.ravel(right), ops.ravel(weights))


@keras.saving.register_keras_serializable(package="keras_attention")
class SequenceAccuracy(keras.metrics.Mean):
    """Share of sequences in which the largest logit is the target's at every token that counts.

    A token counts unless Keras' mask of `y_pred` is False or its sample weight is 0. A sequence has the weight of its
    heaviest token: 1 without sample weights, the example's weight where there is one for each example, and 0 when no
    token counts, so that padding in the batch's axis changes nothing.

    Keras passes the mask under `metrics=` and under `weighted_metrics=`, the sample weight only under the latter. On JAX
    it loses the mask inside `fit` (not in `evaluate`) of all models but the sequence models and `ReinforceModel`: for others
    pass the padding as `sample_weight` to `weighted_metrics=`.

    Args:
        name: String.
        dtype: Type of the result.

    Call arguments:
        y_true: Integer tensor of shape `(..., T)`.
        y_pred: Float tensor of logits or probabilities of shape `(..., T, V)`.
        sample_weight: Float tensor `(B,)` or of the shape of `y_true`; not negative.

    Returns:
        Scalar in [0, 1]; 0 before the first sequence.

    Raises:
        ValueError: If the shapes don't match or `y_true` has no axis T.

    Example:
        >>> accuracy = SequenceAccuracy()
        >>> logits = [[[0.0, 5.0], [5.0, 0.0]], [[0.0, 5.0], [0.0, 5.0]]]
        >>> accuracy.update_state([[1, 0], [1, 0]], logits)
        >>> float(accuracy.result())
        0.5
    """

    def __init__(self, name="sequence_accuracy", dtype=None):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        right, weights = token_results(y_true, y_pred, sample_weight)
        if len(right.shape) < 2:
            raise ValueError(
                "SequenceAccuracy needs sequences: `y_true` of shape `(..., T)` with at least two axes. Received y_true "
                f"of shape {tuple(right.shape)}. Use TokenAccuracy where each example has a single target."
            )
        sequence_right = ops.all(ops.logical_or(right, weights == 0.0), axis=-1)  # (...)
        sequence_weights = ops.max(weights, axis=-1, initial=0.0)  # (...)
        super().update_state(ops.ravel(sequence_right), ops.ravel(sequence_weights))
