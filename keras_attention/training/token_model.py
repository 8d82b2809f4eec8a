"""Training and evaluation of models with an answer for each token, where Keras' own do not suffice."""

import inspect

import keras
from keras import ops

from keras_attention.saving.models import SeededModel
from keras_attention.training.token_means import TokenMean, over_replicas, wrapped


class TokenModel(SeededModel):
    """Base class of the models that Keras trains on one label, and one loss, for each token.

    - The loss of a batch is the mean over its real tokens, on whichever replica of a `MirroredStrategy` they are; the loss
      that `fit` and `evaluate` report is the mean over the real tokens of all batches of any sizes. (Keras takes the
      mean over the replicas, and that over the examples of batches.) With several outputs batches count by their examples,
      since each output has tokens of its own.
    - Metrics leave out masked tokens on every backend. (On JAX Keras loses masks between the loss and the metrics of `fit`.)
    - `class_weight` is refused for outputs of tokens. (Keras weighs whole examples by the argmax over time.)
    - Boolean inputs can be shared among replicas, if they are arrays or a `tf.data.Dataset`. (Keras averages a batch over the
      replicas to learn its shapes, and nothing averages booleans.)
    - On torch `jit_compile=True` is refused.
    """

    # === Compiling ===

    def compile(self, optimizer="rmsprop", loss=None, *args, **kwargs):
        self._report = _Report()
        super().compile(optimizer, self.wrapped_loss(loss), *args, **kwargs)
        check_jit_compile(self.jit_compile)

    def compile_from_config(self, config):
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.optimizer is not None:
            self.optimizer.build(self.trainable_variables)

    def wrapped_loss(self, loss):
        """The losses of `compile` as they are used: on one device as they are."""
        return loss if number_of_replicas(self) == 1 else wrapped(loss, TokenMean)

    # === A step ===

    def check_labels(self, x, y=None, sample_weight=None):
        """Raises for labels that no loss can use, where they are arrays."""

    def objective(self, x, y, y_pred, sample_weight, training):
        """The loss of a batch, Keras' `compute_loss`."""
        return super().compute_loss(x, y, y_pred, sample_weight, training)

    def shown(self, y_pred):
        """The outputs that metrics see."""
        return y_pred

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = self.objective(x, y, y_pred, sample_weight, training)
        if self.compiled:
            self._report.count(loss, y_pred, number_of_replicas(self))
            self._report.metrics_are_updated = training and keras.backend.backend() == "jax"
            if self._report.metrics_are_updated:  # here the outputs still have their masks
                super().compute_metrics(x, y, self.shown(y_pred), sample_weight)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        if self.compiled and self._report.metrics_are_updated:
            self._report.metrics_are_updated = False
            return self.get_metrics_result()
        return super().compute_metrics(x, y, self.shown(y_pred), sample_weight)

    @property
    def metrics(self):
        if not self.compiled:
            return super().metrics
        _, *others = super().metrics  # the first is Keras' mean of the loss
        return [self._report.loss, *others]

    # === Data ===

    def fit(self, *args, **kwargs):
        call = self._checked(super().fit, args, kwargs)
        return super().fit(*call.args, **call.kwargs)

    def evaluate(self, *args, **kwargs):
        call = self._checked(super().evaluate, args, kwargs)
        return super().evaluate(*call.args, **call.kwargs)

    def train_on_batch(self, *args, **kwargs):
        call = self._checked(super().train_on_batch, args, kwargs)
        return super().train_on_batch(*call.args, **call.kwargs)

    def test_on_batch(self, *args, **kwargs):
        call = self._checked(super().test_on_batch, args, kwargs)
        return super().test_on_batch(*call.args, **call.kwargs)

    def _checked(self, method, args, kwargs):
        """The arguments of a call, after checking them."""
        call = inspect.signature(method).bind(*args, **kwargs)
        if call.arguments.get("class_weight") is not None:
            check_class_weight(self.outputs)
        self.check_labels(*(call.arguments.get(name) for name in ("x", "y", "sample_weight")))
        if isinstance(call.arguments.get("validation_data"), list | tuple):
            self.check_labels(*call.arguments["validation_data"])
        if number_of_replicas(self) > 1:
            for name in {"x", "validation_data"} & set(call.arguments):
                call.arguments[name] = without_booleans(call.arguments[name])
        return call


class _Report:
    """The numbers that `fit` and `evaluate` report. A plain object, which Keras neither tracks nor saves."""

    def __init__(self):
        self.loss = keras.metrics.Mean(name="loss")
        self.number_of_tokens = _NumberOfTokens()
        self.metrics_are_updated = False

    def count(self, loss, y_pred, replicas):
        """Adds the loss of a batch, or of one replica's part of it, with the weight of the batch's tokens."""
        first, *others = keras.tree.flatten(y_pred)
        count = ops.cast(ops.shape(first)[0], "float32") if others else self.number_of_tokens(first)
        # The losses of the replicas are parts of one sum, and all have the batch's number of tokens.
        self.loss.update_state(loss * replicas, sample_weight=over_replicas(count) / replicas)


class _NumberOfTokens(keras.layers.Layer):
    """How many tokens of an output `(B, ..., V)` its mask leaves; all, without one. A layer, since Keras gives it the mask."""

    def __init__(self):
        super().__init__(autocast=False, name="number_of_tokens")
        self.supports_masking = True
        self.built = True

    def call(self, inputs, mask=None):
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[: max(1, len(inputs.shape) - 1)], "bool")
        return ops.sum(ops.cast(mask, "float32"))

    def compute_mask(self, inputs, previous_mask):
        return None


def number_of_replicas(model):
    """How many replicas train a model; only TensorFlow has some."""
    strategy = getattr(model, "distribute_strategy", None)
    return 1 if strategy is None else strategy.num_replicas_in_sync


def check_jit_compile(jit_compile):
    """Raises on torch, whose compiler fails on these models or takes minutes."""
    if keras.backend.backend() == "torch" and jit_compile:
        raise ValueError(
            "`torch.compile` takes minutes to compile the training of these models, where it does not fail. Received "
            "jit_compile=True on the torch backend. Leave `jit_compile` out, or train on TensorFlow or JAX, which read the "
            "same weights."
        )


def check_class_weight(outputs):
    """Raises if an output `(B, T, V)` has more than one label for each example."""
    shapes = [tuple(tensor.shape) for tensor in outputs]
    if any(len(shape) > 2 for shape in shapes):
        raise ValueError(
            "`class_weight` weighs examples that have one label each. Received it for a model with labels of tokens, output "
            f"shapes {shapes}. Weigh the tokens: `sample_weight=np.take(weights, labels)`, with one weight for each class, of "
            "the shape of the labels."
        )


def without_booleans(data):
    """Arrays, a `tf.data.Dataset` or nests of them with 0 and 1 in place of booleans; other data as it is."""

    def without(leaf):
        if hasattr(leaf, "element_spec"):  # a data set
            return leaf.map(lambda *batch: keras.tree.map_structure(without, batch if len(batch) > 1 else batch[0]))
        is_boolean = hasattr(leaf, "dtype") and keras.backend.standardize_dtype(leaf.dtype) == "bool"
        return ops.cast(leaf, "int32") if is_boolean else leaf

    return keras.tree.map_structure(without, data)
