"""Cross-entropy of integer targets with smoothed labels."""

import keras
import numpy as np
from keras import ops

from keras_attention.checks.arguments import check_rate
from keras_attention.checks.shapes import sizes_differ
from keras_attention.ops.known_values import known_values
from keras_attention.ops.softmax import is_masked, mask_scores
from keras_attention.saving.lookup import described
from keras_attention.training.token_means import MEANS, reduced


def smoothed_crossentropy(targets, logits, label_smoothing):
    """Cross-entropy of each token, of which a share is spread evenly over the classes that may be chosen.

    `loss = (1 - label_smoothing) · crossentropy[target] + label_smoothing · mean over allowed c of crossentropy[c]`
    with `crossentropy[c] = logsumexp(logits) - logits[c]`.

    Args:
        targets: Integer tensor `(...)`.
        logits: Float tensor `(..., V)`; a class that holds LOWEST (or -inf, or -65504 of a `Pointer` in float16) is masked.
        label_smoothing: Share in [0, 1).

    Returns:
        float32 tensor `(...)`, NaN where a target is outside 0 ... V-1. No tensor of one-hot targets is made.
    """
    logits = ops.cast(logits, "float32")
    allowed = ops.logical_not(is_masked(logits))
    logits = mask_scores(logits, allowed)
    in_vocabulary = ops.logical_and(targets >= 0, targets < ops.shape(logits)[-1])
    targets = ops.where(in_vocabulary, targets, 0)
    loss = crossentropy = ops.sparse_categorical_crossentropy(targets, logits, from_logits=True)
    if label_smoothing:
        count = ops.sum(ops.cast(allowed, "float32"), axis=-1)
        mean = ops.sum(ops.where(allowed, logits, 0.0), axis=-1) / ops.maximum(count, 1.0)
        uniform = ops.where(count > 0, ops.logsumexp(logits, axis=-1) - mean, crossentropy)
        loss = (1.0 - label_smoothing) * crossentropy + label_smoothing * uniform
    return ops.where(in_vocabulary, loss, float("nan"))


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


class _TokenWeights(keras.losses.Loss):
    """Weight of each token: the mask Keras keeps on `y_pred` times the sample weight, in the shape of `y_true`.

    Among the public names of Keras only a loss reads that mask, so the weights are a loss of one, not reduced.
    """

    def __init__(self):
        super().__init__(name="token_weights", reduction="none", dtype="float32")

    def call(self, y_true, y_pred):
        return ops.ones_like(y_true)


def token_weights(targets, logits, sample_weight):
    """float32 weights of the shape of `targets`, after checking shapes; 0 where Keras' mask of `logits` is False."""
    check_targets(targets, ops.convert_to_tensor(logits))
    return _TokenWeights()(targets, logits, spread_weights(sample_weight, targets))


def check_labels(labels, weights, vocabulary_size):
    """Raises if a label whose weight is not zero is outside the vocabulary; all arrays, of one shape."""
    known = (labels >= 0) & (labels < vocabulary_size) & (labels == np.floor(labels))
    wrong = ~known & (weights != 0)
    if wrong.any():
        place = tuple(int(index) for index in np.argwhere(wrong)[0])
        raise ValueError(
            f"Labels must be whole ids in [0, {vocabulary_size}), the classes of the logits. Received {labels[place]} at "
            f"{place} of labels of shape {labels.shape}. Tokenise with the tokeniser that the model was made for, and give "
            "labels that must not count a `sample_weight` of 0."
        )


@keras.saving.register_keras_serializable(package="keras_attention")
class SmoothedCrossentropy(keras.losses.Loss):
    """Cross-entropy between integer targets and logits, with label smoothing: 0.1 unless told otherwise, as in the paper.

    `loss = (1 - label_smoothing) · crossentropy[target] + label_smoothing · mean over allowed c of crossentropy[c]`
    with `crossentropy[c] = logsumexp(logits) - logits[c]`.

    A class whose logit is the package's LOWEST constant (or -inf) is masked, as are padded positions of a pointer: it
    gets no share of the smoothing. The paper spreads over all classes, which with masked classes costs millions.

    The loss is one value for each token, so that Keras leaves out masked tokens and applies sample weights by itself; the
    reduction is the mean over the real tokens of the whole batch, on however many replicas of a `MirroredStrategy` they
    are. (On JAX with `keras.distribution` a batch is one array anyway.) A batch without a real token gives 0.

    What `fit` and `evaluate` report is the mean over all real tokens for the models of this package. For other models
    Keras takes the mean of the batches' losses, each weighted by its number of examples.

    A label that is no whole number in 0 ... V-1 is an error where its value is known: eagerly, and in arrays given to `fit`
    and `evaluate` of a sequence model. A compiled step can't raise for a value; there the loss is NaN, which
    `keras.callbacks.TerminateOnNaN` notices, and the label moves no weight. Masked tokens and those of weight zero may have
    any label.

    A target whose class is masked costs about -LOWEST: too much to be overlooked, yet finite with a finite gradient.
    Where every class is masked the loss is log V.

    Args:
        label_smoothing: Number in [0, 1), share of each target that is spread over all allowed classes. The
            paper's 0.1 costs likelihood and gains BLEU; where the best answer is certain, as for a pointer or a date, pass 0.0.
        reduction: As in `keras.losses.Loss`.
        name: String.

    Call arguments:
        y_true: Integer tensor of shape `(...)`, such as `(B, T)`; ids are exact up to 2^24.
        y_pred: Float tensor of logits of shape `(..., V)`.
        sample_weight: Float tensor `(B,)`, a weight for each example, or of the shape of `y_true`, one for each token.

    Returns:
        float32 scalar, or `(...)` with `reduction="none"`. All is computed in float32 without one-hot targets.

    Raises:
        ValueError: If the shapes don't match, a label is outside the vocabulary, or `label_smoothing` is outside [0, 1).

    Example:
        >>> loss = SmoothedCrossentropy(label_smoothing=0.1)
        >>> value = loss(keras.ops.array([[0, 1]]), keras.ops.array([[[1.0, 2.0], [1.0, 2.0]]]))
        >>> round(float(value), 4)
        0.8133

    References:
        Vaswani et al., 2017, section 5.4, arXiv:1706.03762; Szegedy et al., 2016, section 7, arXiv:1512.00567.
    """

    def __init__(self, label_smoothing=0.1, reduction="sum_over_batch_size", name="smoothed_crossentropy"):
        super().__init__(name=name, reduction=reduction, dtype="float32")
        self.label_smoothing = check_rate("label_smoothing", label_smoothing)

    def __call__(self, y_true, y_pred, sample_weight=None):
        y_true = ops.convert_to_tensor(y_true)
        weights = token_weights(y_true, y_pred, sample_weight)
        labels, known_weights = known_values(y_true), known_values(weights)
        if labels is not None and known_weights is not None:
            check_labels(labels, known_weights, np.shape(y_pred)[-1])
        y_true = ops.where(
            weights == 0.0, 0, y_true
        )  # tokens that do not count may have any label, and NaN times 0 is NaN
        sample_weight = spread_weights(sample_weight, y_true)
        if self.reduction in MEANS:
            return reduced(self, y_true, y_pred, sample_weight)
        return super().__call__(y_true, y_pred, sample_weight)

    def call(self, y_true, y_pred):
        check_targets(y_true, y_pred)
        ids = ops.cast(y_true, "int32")
        is_whole = ops.equal(ops.cast(ids, y_true.dtype), y_true)
        return smoothed_crossentropy(ops.where(is_whole, ids, -1), y_pred, self.label_smoothing)

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}

    def __repr__(self):
        return described(self)
