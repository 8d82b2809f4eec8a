"""A loss as the mean over all tokens of a batch, whichever replica holds them.

Keras divides the losses of a replica by the number of its own tokens and then takes the mean over the replicas: with one real
token on one of them and four on the other that one token counts as much as the four. Here each replica divides by the number
of all tokens. On JAX a batch is one array, however many devices share it, and Keras' mean is right.
"""

import keras
from keras import ops

MEANS = ("sum_over_batch_size", "mean", "mean_with_sample_weight")


def over_replicas(tensor):
    """The sum of `tensor` over all replicas of a step."""
    if keras.backend.backend() != "tensorflow":
        return tensor
    from keras_attention.training.tensorflow_replicas import tensorflow_replica_sum

    return tensorflow_replica_sum(tensor)


def reduced(loss, y_true, y_pred, sample_weight=None):
    """`loss(y_true, y_pred, sample_weight)` with one normaliser over all replicas.

    `sum over the replica's tokens of weight · loss / number of real tokens of all replicas`

    The sum over the replicas, which the optimizer takes of the gradients, is the mean. With the reduction
    "mean_with_sample_weight" the normaliser is the sum of all weights, as in Keras; "sum" and "none" stay.

    Args:
        loss: A `keras.losses.Loss`.
        y_true, y_pred, sample_weight: As its call takes them; the mask that Keras keeps on `y_pred` is used.
    """
    if loss.reduction not in MEANS:
        return loss(y_true, y_pred, copied(sample_weight))
    losses = []

    def call(y_true, y_pred):
        losses.append(loss.call(y_true, y_pred))
        return losses[-1]

    total = replaced(loss, call, "sum")(y_true, y_pred, copied(sample_weight))
    if not losses:  # a loss with a `__call__` of its own, which reduces as it likes
        return loss(y_true, y_pred, copied(sample_weight))
    weights = copied(sample_weight) if loss.reduction == "mean_with_sample_weight" else None
    count = replaced(loss, lambda *_: ops.ones_like(losses[-1]), "sum")(y_true, y_pred, weights)
    # A replica without an example keeps an empty tensor, which Keras does not reduce.
    return ops.divide_no_nan(ops.sum(total), over_replicas(ops.sum(count)))


def copied(sample_weight):
    """A copy: Keras multiplies the weights by the mask in place on torch, and one step uses them several times."""
    return None if sample_weight is None else ops.copy(ops.convert_to_tensor(sample_weight))


def loss_object(loss):
    """The `keras.losses.Loss` of a name, a function or a `Loss`."""
    function = keras.losses.get(loss)
    if isinstance(function, keras.losses.Loss):
        return function
    name = loss if isinstance(loss, str) else getattr(function, "__name__", "loss")
    # Keras' wrapper of functions, which makes ranks equal, has no public name of its own; this class is one.
    wrapper = keras.losses.MeanSquaredError(name=name.strip("<>"))  # "<lambda>" is no name for TensorFlow
    wrapper.fn = function
    return wrapper


def replaced(loss, call, reduction=None):
    """A copy of the object `loss` whose `call` is another function; how it treats weights and masks stays."""
    other = object.__new__(type(loss))  # copy.copy would write a Keras object to a file and read it
    vars(other).update(vars(loss), call=call)
    if reduction is not None:
        other.reduction = reduction
    return other


@keras.saving.register_keras_serializable(package="keras_attention")
class TokenMean(keras.losses.Loss):
    """Any loss with one normaliser over all replicas. `SequenceModel.compile` makes it; users need not.

    Args:
        loss: A name, a function or a `keras.losses.Loss`.
    """

    def __init__(self, loss):
        self.loss = loss
        self.loss_object = loss_object(loss)
        super().__init__(self.loss_object.name, self.loss_object.reduction, self.loss_object.dtype)

    def __call__(self, y_true, y_pred, sample_weight=None):
        return reduced(self.loss_object, y_true, y_pred, sample_weight)

    def call(self, y_true, y_pred):
        return self.loss_object.call(y_true, y_pred)

    def get_config(self):
        return {"loss": keras.saving.serialize_keras_object(self.loss)}

    def __repr__(self):
        return f"{type(self).__name__}({self.loss!r})"

    @classmethod
    def from_config(cls, config):
        return cls(keras.saving.deserialize_keras_object(config["loss"]))


def wrapped(loss, wrapper):
    """A compiled loss, alone or in a list or dictionary, in the class `wrapper`; `None` and wrapped losses stay."""
    return keras.tree.map_structure(
        lambda leaf: leaf if leaf is None or isinstance(leaf, wrapper) else wrapper(leaf), loss
    )
