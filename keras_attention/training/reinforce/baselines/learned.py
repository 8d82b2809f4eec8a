"""A network that predicts the loss of an example from the inputs, as a baseline."""

import keras
from keras import ops

from keras_attention.saving.dtype_policies import policy_at, with_policies_of_parts
from keras_attention.saving.lookup import from_config
from keras_attention.training.reinforce.baselines.baseline import Baseline, squared_errors


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
