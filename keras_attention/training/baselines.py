"""Baselines of REINFORCE: what a loss is compared with. They change the variance of the gradient, never its mean."""

import keras
from keras import ops

from keras_attention.checks.arguments import check_positive_integer, check_rate, refuse_autocast
from keras_attention.saving.dtype_policies import policy_at, with_policies_of_parts
from keras_attention.saving.lookup import from_config, get_by_name


class Baseline(keras.layers.Layer):
    """Base class of the baselines of `ReinforceModel`.

    A baseline may depend on anything but the choices that it judges: on the inputs, on earlier batches, on other samples.

    A subclass writes `values`.

    Methods:
        prepare(inputs, num_losses, num_samples): Makes the weights; once, with the model's symbolic inputs.
        predict(inputs): What is read off the inputs before the losses are known, `(B, ...)`, or `None`.
        values(losses, index, predictions): The baseline of the loss number `index` and the terms of its own training,
            float32 tensors that broadcast to `losses (B, ...)`; those of one example are `num_samples` adjacent rows.
        reads_choices: Boolean attribute. If true, predictions are not what `predict` gives, but those of the choices.
        update(measures): After all losses are computed: for each a pair, its mean and the mean of ones, which is zero where
            nothing counted.

    Example:
        >>> class Constant(Baseline):
        ...     def values(self, losses, index, predictions):
        ...         return 0.5, 0.0
    """

    reads_choices = False

    def __init__(self, **kwargs):
        refuse_autocast(self, kwargs)
        super().__init__(autocast=False, **kwargs)

    def prepare(self, inputs, num_losses, num_samples):
        self.built = True

    def predict(self, inputs):
        return None

    def values(self, losses, index, predictions):
        raise NotImplementedError(f"{type(self).__name__} must define `values(losses, index, predictions)`.")

    def update(self, measures):
        pass


@keras.saving.register_keras_serializable(package="keras_attention")
class NoBaseline(Baseline):
    """The loss itself is the credit, `baseline=None`: unbiased, with the largest variance.

    Example:
        >>> NoBaseline().values(ops.array([2.0, 3.0]), index=0, predictions=None)
        (0.0, 0.0)
    """

    def values(self, losses, index, predictions):
        return 0.0, 0.0


@keras.saving.register_keras_serializable(package="keras_attention")
class MovingAverage(Baseline):
    """The mean loss of past batches, one for each output.

    `total ← decay · total + (1 - decay) · mean loss`, `mass ← decay · mass + (1 - decay)`, `baseline = total / mass`

    Division by the mass corrects for the start at zero. A batch is judged by the batches before it; means are taken as
    Keras weighs and masks the losses, and all baselines of a step are read before any is updated.

    Args:
        decay: Float in [0, 1), how slowly it forgets.
        num_losses: Integer, how many losses there are, or `None`: one for each output of the model.

    Example:
        >>> baseline = MovingAverage(decay=0.9)
        >>> baseline.prepare(None, num_losses=1, num_samples=1)
        >>> baseline.update([(5.0, 1.0)])
        >>> baseline.update([(3.0, 1.0)])
        >>> baseline.values(ops.array([4.0]), index=0, predictions=None)[0]
        3.9474

    References:
        Williams, 1992, section 4; Xu et al., 2015, section 4.1, arXiv:1502.03044.
    """

    def __init__(self, decay=0.9, num_losses=None, **kwargs):
        super().__init__(**kwargs)
        self.decay = check_rate("decay", decay)
        self.num_losses = None if num_losses is None else check_positive_integer("num_losses", num_losses)

    def prepare(self, inputs, num_losses, num_samples):
        # Replicas keep the mean of their states.
        options = {"initializer": "zeros", "trainable": False, "dtype": "float32", "aggregation": "mean"}
        shape = (self.num_losses or num_losses,)
        self.total = self.add_weight(shape, name="total", **options)
        self.mass = self.add_weight(shape, name="mass", **options)
        self.built = True

    def values(self, losses, index, predictions):
        if index >= self.total.shape[0]:
            raise ValueError(
                f"The moving average keeps {self.total.shape[0]} baselines, one for each output. Received a loss number "
                f"{index + 1}. Pass `baseline=MovingAverage(num_losses=...)` with the number of losses."
            )
        mass = ops.convert_to_tensor(self.mass)[index]
        return ops.divide_no_nan(ops.convert_to_tensor(self.total)[index], mass), 0.0

    def update(self, measures):
        missing = self.total.shape[0] - len(measures)
        for variable, values in zip((self.total, self.mass), zip(*measures, strict=True), strict=True):
            values = ops.stack([ops.cast(value, "float32") for value in values] + [0.0] * missing)
            variable.assign(self.decay * variable + (1.0 - self.decay) * ops.stop_gradient(values))

    def get_config(self):
        return {**super().get_config(), "decay": self.decay, "num_losses": self.num_losses}


@keras.saving.register_keras_serializable(package="keras_attention")
class LeaveOneOut(Baseline):
    """The mean loss of the other samples of the same example; needs `num_samples` of 2 or more.

    `baseline[m] = (sum over m' of loss[m'] - loss[m]) / (M - 1)`

    Example:
        >>> baseline = LeaveOneOut()
        >>> baseline.prepare(None, num_losses=1, num_samples=3)
        >>> baseline.values(ops.array([1.0, 2.0, 6.0]), index=0, predictions=None)[0]
        [4.0, 3.5, 1.5]

    References:
        Kool, van Hoof and Welling, 2019, "Buy 4 REINFORCE samples, get a baseline for free".
    """

    def prepare(self, inputs, num_losses, num_samples):
        if num_samples < 2:
            raise ValueError(
                'The baseline "leave_one_out" compares the samples of an example with each other. Received '
                f"num_samples={num_samples}. Pass `num_samples` of 2 or more, or take another baseline."
            )
        self.num_samples = num_samples
        self.built = True

    def values(self, losses, index, predictions):
        samples = ops.reshape(losses, (-1, self.num_samples, *ops.shape(losses)[1:]))
        others = (ops.sum(samples, axis=1, keepdims=True) - samples) / (self.num_samples - 1)
        return ops.reshape(others, ops.shape(losses)), 0.0


def squared_errors(losses, predictions):
    """`(losses - predictions)²`, up to 1e30: the square of what may not be chosen, a loss of -LOWEST, would overflow."""
    return ops.square(ops.clip(losses - predictions, -1e15, 1e15))


def default_network(inputs, num_losses, policy):
    """A perceptron with 32 hidden units on the means of the model's inputs over all axes but the batch and the last."""
    features = []
    for tensor in keras.tree.flatten(inputs):
        tensor = ops.cast(tensor, "float32")
        rank = len(tensor.shape)
        tensor = ops.expand_dims(tensor, -1) if rank == 1 else tensor
        features.append(ops.mean(tensor, axis=tuple(range(1, rank - 1))) if rank > 2 else tensor)
    if any(tensor.shape[-1] is None for tensor in features):
        raise ValueError(
            "The learned baseline reads inputs whose last axis is known. Received inputs of shapes "
            f"{[tuple(tensor.shape) for tensor in keras.tree.flatten(inputs)]}. Pass a network that reads yours: "
            "`baseline=LearnedBaseline(network)`."
        )
    features = ops.concatenate(features, axis=-1) if len(features) > 1 else features[0]
    hidden, output = (
        keras.layers.Dense(
            units, activation, kernel_initializer=initializer, dtype=policy_at(policy, name, "float32"), name=name
        )
        for name, units, activation, initializer in (
            ("baseline_hidden", 32, "tanh", "glorot_uniform"),
            ("baseline_output", num_losses, None, "zeros"),
        )
    )
    return keras.Model(inputs, output(hidden(features)))


@keras.saving.register_keras_serializable(package="keras_attention")
class LearnedBaseline(Baseline):
    """A network predicts the loss of an example from the model's inputs.

    `baseline = network(inputs)`, trained beside the model on `(loss - baseline)²`

    The regression uses the model's optimizer; it is weighed and masked as the loss, but is not part of the reported one.
    Gradients cross in neither direction: the model gets none from the regression, the network none from the model.

    Args:
        network: Keras layer or model that is called with the model's inputs and returns one prediction for each loss,
            `(B, number of losses)`, or `(B,)` for one loss. `None`: 32 hidden units on the means of the inputs,
            for inputs of real numbers; for ids give a network with an embedding.

    Example:
        >>> baseline = LearnedBaseline()
        >>> baseline.prepare(keras.Input((3, 5)), num_losses=1, num_samples=1)
        >>> baseline.predict(ops.ones((2, 3, 5))).shape
        (2, 1)

    References:
        Mnih and Gregor, 2014, section 2.2.1, arXiv:1402.0030.
        Mnih, Heess, Graves and Kavukcuoglu, 2014, section 3, arXiv:1406.6247.
    """

    def __init__(self, network=None, **kwargs):
        super().__init__(**kwargs)
        if isinstance(network, dict):
            network = from_config(network)
        self.network = network

    def prepare(self, inputs, num_losses, num_samples):
        inputs = keras.tree.map_structure(  # apart from the model's own graph
            lambda tensor: keras.Input(batch_shape=tensor.shape, dtype=tensor.dtype, name=tensor.name), inputs
        )
        self.predictor = self.network or default_network(inputs, num_losses, self.dtype_policy)
        shape = tuple(self.predictor(inputs).shape)
        if len(shape) > 2 or (shape[1:] or (1,)) != (num_losses,):
            raise ValueError(
                "The network of a learned baseline must return one prediction for each loss, shape "
                f"{(None, num_losses)}. Received shape {shape}. End it with `keras.layers.Dense({num_losses})`."
            )
        self.built = True

    def predict(self, inputs):
        predictions = ops.cast(self.predictor(inputs), "float32")
        return ops.expand_dims(predictions, -1) if len(predictions.shape) == 1 else predictions

    def values(self, losses, index, predictions):
        if index >= predictions.shape[1]:
            raise ValueError(
                f"The learned baseline predicts {predictions.shape[1]} losses, one for each output. Received a loss number "
                f"{index + 1}. Add the losses of an output in one function, or take another baseline."
            )
        baseline = ops.reshape(predictions[:, index], (-1,) + (1,) * (len(losses.shape) - 1))
        return ops.stop_gradient(baseline), squared_errors(losses, baseline)

    def get_config(self):
        network = None if self.network is None else keras.saving.serialize_keras_object(self.network)
        return {**with_policies_of_parts(super().get_config(), self), "network": network}


@keras.saving.register_keras_serializable(package="keras_attention")
class ChoiceBaseline(Baseline):
    """Each choice is compared with a prediction of its own, made just before it by the layer that chooses.

    `gradient = gradient of loss + sum over choices c of (loss - prediction[c]) · gradient of log p(c)`

    A prediction may depend on the inputs and on all earlier choices, of which it knows how the example stands. It is
    trained beside the model on `(loss - prediction[c])²`, the mean over the choices, which is not part of the reported
    loss; the layer keeps the gradient of that out of the rest of the model. In the paper it is b_t.

    For models whose choices come with predictions, as those of `models.GlimpseClassifier` do (`ops.choices.record_choice`
    takes them). With several losses each choice has the one prediction, so that it learns their mean.

    Example:
        >>> losses, log_probs, predictions = ops.ones((2,)), ops.zeros((2, 3)), ops.zeros((2, 3))
        >>> ChoiceBaseline().values(losses, index=0, predictions=(log_probs, predictions))[1]
        [1.0, 1.0]

    References:
        Mnih, Heess, Graves and Kavukcuoglu, 2014, section 3, "variance reduction", arXiv:1406.6247.
    """

    reads_choices = True

    def values(self, losses, index, predictions):
        if predictions is None:
            raise ValueError(
                'The baseline "by_choice" compares each choice with the prediction that was recorded with it. Received '
                "choices without one. Take another baseline, or record the predictions: "
                "`record_choice(log_prob, prediction=prediction)`."
            )
        log_probs, predictions = predictions  # (B, n)
        axes = (-1,) + (1,) * (len(losses.shape) - 1) + (ops.shape(log_probs)[-1],)
        log_probs, predictions = ops.reshape(log_probs, axes), ops.reshape(predictions, axes)
        # (loss - prediction[c]) · log p(c), of which `loss · log p(c)` is what a baseline of zero leaves.
        control = -ops.sum(ops.stop_gradient(predictions) * log_probs, axis=-1)
        return 0.0, control + ops.mean(squared_errors(ops.expand_dims(losses, -1), predictions), axis=-1)


BASELINES = {
    "by_choice": ChoiceBaseline,
    "learned": LearnedBaseline,
    "leave_one_out": LeaveOneOut,
    "moving_average": MovingAverage,
}


def get_baseline(identifier):
    """The baseline that a name, a config or a `Baseline` stands for; `None` for none."""
    baseline = NoBaseline() if identifier is None else get_by_name(identifier, BASELINES, Baseline, "baseline")
    if baseline.built:
        raise ValueError(
            f"A baseline belongs to one model, whose losses it follows. Received {baseline.name!r}, which another model has. "
            "Pass a new one to each model."
        )
    return baseline
