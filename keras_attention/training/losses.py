"""Cross-entropy of integer targets, with or without smoothed labels."""

import keras
from keras import ops

from keras_attention.ops.shapes import check_rate, sizes_differ
from keras_attention.ops.softmax import LOWEST, mask_scores


def smoothed_crossentropy(targets, logits, label_smoothing=0.0):
    """Cross-entropy of each token, of which a share is spread evenly over the classes that may be chosen.

    `loss = (1 - label_smoothing) · crossentropy[target] + label_smoothing · mean over allowed c of crossentropy[c]`
    with `crossentropy[c] = logsumexp(logits) - logits[c]`.

    Args:
        targets: Integer tensor `(...)`.
        logits: Float tensor `(..., V)`; a class that holds LOWEST (or -inf) is masked.
        label_smoothing: Share in [0, 1).

    Returns:
        float32 tensor `(...)`. No tensor of one-hot targets is made.
    """
    logits = ops.cast(logits, "float32")
    allowed = logits > LOWEST / 2
    logits = mask_scores(logits, allowed)
    in_vocabulary = ops.logical_and(targets >= 0, targets < ops.shape(logits)[-1])
    targets = ops.where(in_vocabulary, targets, 0)
    loss = crossentropy = ops.sparse_categorical_crossentropy(targets, logits, from_logits=True)
    if label_smoothing:
        count = ops.sum(ops.cast(allowed, "float32"), axis=-1)
        mean = ops.sum(ops.where(allowed, logits, 0.0), axis=-1) / ops.maximum(count, 1.0)
        uniform = ops.where(count > 0, ops.logsumexp(logits, axis=-1) - mean, crossentropy)
        loss = (1.0 - label_smoothing) * crossentropy + label_smoothing * uniform
    return ops.where(in_vocabulary, loss, -LOWEST)


def check_targets(targets, logits):
    """Raises unless `targets (...)` has one id for each row of `logits (..., V)`."""
    target_shape, logits_shape = tuple(targets.shape), tuple(logits.shape)
    same_rank = len(target_shape) == len(logits_shape) - 1
    if not same_rank or any(map(sizes_differ, target_shape, logits_shape)):
        raise ValueError(
            "`y_true` must hold one integer for each row of `y_pred`: shapes `(...)` and `(..., V)`. Received y_true "
            f"of shape {target_shape} and y_pred of shape {logits_shape}. Pass ids, not one-hot vectors, without a "
            "last axis of size one."
        )


def spread_weights(sample_weight, targets):
    """One weight for each token: `(B,)` or `(B, T)` -> the shape of `targets`. `None` stays `None`.

    Keras itself aligns `(B,)` with the last axis, the tokens, and is silently wrong where B = T.
    """
    if sample_weight is None:
        return None
    sample_weight = ops.convert_to_tensor(sample_weight, dtype="float32")
    if len(targets.shape) == 2 and getattr(sample_weight.shape, "rank", 0) is None:
        # TensorFlow forgets the rank once a compiled model has met weights of examples and weights of tokens.
        sample_weight = ops.reshape(sample_weight, (ops.shape(targets)[0], -1))  # (B, 1) or (B, T)
    for axis in range(len(sample_weight.shape), len(targets.shape)):
        sample_weight = ops.expand_dims(sample_weight, axis)
    # A copy, since Keras multiplies it in place on torch, which fails on a broadcast view.
    return ops.copy(ops.broadcast_to(sample_weight, ops.shape(targets)))


@keras.saving.register_keras_serializable(package="keras_attention")
class SmoothedCrossentropy(keras.losses.Loss):
    """Cross-entropy between integer targets and logits, with label smoothing.

    `loss = (1 - label_smoothing) · crossentropy[target] + label_smoothing · mean over allowed c of crossentropy[c]`
    with `crossentropy[c] = logsumexp(logits) - logits[c]`.

    A class whose logit is the package's LOWEST constant (or -inf) is masked, as are padded positions of a pointer: it
    gets no share of the smoothing. The paper spreads over all classes, which with masked classes costs millions.

    The loss is one value for each token, so that Keras leaves out masked tokens, applies sample weights and averages
    over replicas by itself. A batch without a single real token gives 0. Keras averages over the real tokens of each
    replica: where replicas hold different numbers of them, the loss differs a little from that of one device, unless
    the logits carry no mask and `sample_weight` says what counts.

    A target that can't be chosen, because its class is masked or its id is outside 0 ... V-1, costs about -LOWEST:
    too much to be overlooked, yet finite with a finite gradient, so that a weight of zero silences it. (A compiled step
    can't raise for a value.) Where every class is masked the loss is log V.

    Args:
        label_smoothing: Number in [0, 1), share of each target that is spread over all allowed classes. 0.1 in the
            paper.
        reduction: As in `keras.losses.Loss`.
        name: String.

    Call arguments:
        y_true: Integer tensor of shape `(...)`, such as `(B, T)`; ids are exact up to 2^24.
        y_pred: Float tensor of logits of shape `(..., V)`.
        sample_weight: Float tensor `(B,)`, a weight for each example, or of the shape of `y_true`, one for each token.

    Returns:
        float32 scalar, or `(...)` with `reduction="none"`. All is computed in float32 without one-hot targets.

    Raises:
        ValueError: If the shapes don't match, or `label_smoothing` is outside [0, 1).

    Example:
        >>> loss = SmoothedCrossentropy(label_smoothing=0.1)
        >>> value = loss(keras.ops.array([[0, 1]]), keras.ops.array([[[1.0, 2.0], [1.0, 2.0]]]))
        >>> round(float(value), 4)
        0.8133

    References:
        Vaswani et al., 2017, section 5.4, arXiv:1706.03762; Szegedy et al., 2016, section 7, arXiv:1512.00567.
    """

    def __init__(self, label_smoothing=0.0, reduction="sum_over_batch_size", name="smoothed_crossentropy"):
        super().__init__(name=name, reduction=reduction, dtype="float32")
        self.label_smoothing = check_rate("label_smoothing", label_smoothing)

    def __call__(self, y_true, y_pred, sample_weight=None):
        y_true = ops.convert_to_tensor(y_true)
        return super().__call__(y_true, y_pred, spread_weights(sample_weight, y_true))

    def call(self, y_true, y_pred):
        check_targets(y_true, y_pred)
        return smoothed_crossentropy(ops.cast(y_true, "int32"), y_pred, self.label_smoothing)

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}
