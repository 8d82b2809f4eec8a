"""Recurrent model of visual attention: an image is classified by a few glimpses, whose places are chosen one by one."""

import math

import keras
from keras import ops

from keras_attention.alignments.estimators import record_choice
from keras_attention.checks.arguments import check_positive, check_positive_integer, check_seed
from keras_attention.layers import GlimpseSensor
from keras_attention.models.config import config_of_model
from keras_attention.saving.dtype_policies import default_policy, part_policy, policy_at, with_policies_of_parts
from keras_attention.saving.lookup import config_of
from keras_attention.saving.models import made_of_arguments
from keras_attention.training.reinforce import ReinforceModel, baselines

LOCATIONS = ("learned", "random")


@keras.saving.register_keras_serializable(package="keras_attention")
@made_of_arguments
class GlimpseClassifier(ReinforceModel):
    """Looks at an image through a small window, moves it T - 1 times, and says what it saw.

        what[t]       = relu(what_network(sensor(image, location[t])))
        where[t]      = relu(where_network(location[t]))
        glimpse[t]    = relu(glimpse_network([what[t], where[t]]))
        hidden[t]     = relu(core([glimpse[t], hidden[t - 1]]))                   hidden[0] = 0
        mean[t]       = tanh(location_network(hidden[t] / hidden_dim^(1/4)))
        location[t+1] ~ Normal(mean[t], location_std) in training,  mean[t] at inference,  location[1] = the center
        logits        = action_network(hidden[T])

    In the paper `glimpse` is g_t, `hidden` is h_t and `location[t + 1]` is l_t. All but the location network learn by
    the gradient of the loss. The location network learns by REINFORCE, under plain `compile` and `fit`: each location is
    credited with `loss - prediction[t]`, where `prediction[t]` is a linear function of hidden[t], the learned baseline.
    As in the paper neither gets a gradient into hidden.

    Where we differ: the paper rewards a right answer with 1 and a wrong one with 0; here the reward is minus the loss,
    so that the gradient is of the loss that `fit` reports. The paper does not say where it looks first; here it is
    the center, always. Means are kept within the image by tanh, samples may lie outside; the division keeps the steps of
    Adam from driving the mean to an edge early in training.

    Args:
        num_classes: Integer, number of classes.
        image_shape: Tuple `(H, W, C)`; height and width may be `None`, for images of any size.
        num_glimpses: Integer T.
        glimpse_size, num_scales: Integers, size of a glimpse in pixels and number of its scales, each twice as wide as the
            one before, as in `GlimpseSensor`.
        hidden_dim: Integer, units of glimpse and core; the networks of what and where have half as many each.
        location_std: Number above 0, standard deviation of a location in training; 1 is half of the image.
        locations: "learned"; or "random", uniform in the image, at inference too and from the first glimpse on: the
            policy to beat.
        baseline: "per_step", the learned baseline above; or another one of `ReinforceModel`.
        num_samples: Integer, paths drawn for each image in training, as in `ReinforceModel`.
        seed: Integer seed of the locations, or `None`.
        dtype: Name or policy of the layers, such as "mixed_bfloat16". Locations and logits are float32 in any case.
        name, trainable: As in `keras.Model`.

    Call arguments:
        inputs: Float tensor of shape `(B, H, W, C)`, of the order of one: divide bytes by 255.
        training: Boolean, whether locations are drawn.

    Returns:
        Float32 logits of shape `(B, num_classes)`.

    Raises:
        ValueError: If a size is not positive, a name is unknown or the image has another shape.
        TypeError: If a layer, a score or the like has another type.

    Example:
        >>> model = GlimpseClassifier(num_classes=10, image_shape=(28, 28, 1), num_glimpses=4)
        >>> model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        >>> images, labels = np.random.rand(7, 28, 28, 1), np.arange(7)
        >>> history = model.fit(images, labels, verbose=0)
        >>> model.glimpses(images)["locations"].shape
        (7, 4, 2)

    References:
        Mnih, Heess, Graves and Kavukcuoglu, 2014, sections 3 and 4, arXiv:1406.6247.
    """

    def __init__(
        self,
        num_classes,
        image_shape,
        num_glimpses=6,
        glimpse_size=8,
        num_scales=1,
        hidden_dim=256,
        location_std=0.15,
        locations="learned",
        baseline="per_step",
        num_samples=1,
        seed=None,
        dtype=None,
        name=None,
        trainable=True,
    ):
        baseline = baselines.get(baseline)
        dtype = keras.dtype_policies.get(dtype)
        config = {
            "num_classes": check_positive_integer("num_classes", num_classes),
            "image_shape": list(check_image_shape(image_shape)),
            "num_glimpses": check_positive_integer("num_glimpses", num_glimpses),
            "glimpse_size": check_positive_integer("glimpse_size", glimpse_size),
            "num_scales": check_positive_integer("num_scales", num_scales),
            "hidden_dim": check_positive_integer("hidden_dim", hidden_dim),
            "location_std": check_positive("location_std", location_std),
            "locations": locations,
            "baseline": config_of(baseline),
            "num_samples": check_positive_integer("num_samples", num_samples),
            "seed": check_seed(seed),
            "dtype": keras.saving.serialize_keras_object(dtype),
        }
        if locations not in LOCATIONS:
            raise ValueError(f"`locations` must be one of {LOCATIONS}. Received: {locations!r}.")
        networks = _Networks(config, dtype, predicts=baseline.reads_choices)
        images = keras.Input(config["image_shape"], dtype="float32", name="images")
        _, hidden = networks.look(images)
        logits = networks.action(hidden[-1])
        super().__init__(images, logits, baseline=baseline, num_samples=num_samples, name=name, trainable=trainable)
        self.dtype_policy = default_policy(dtype)  # `compile` reads it to scale the loss in float16
        self.supports_masking = True
        self.config = config
        self._networks = networks

    def call(self, inputs, training=None, mask=None):
        # Keras adds the axis of one channel where it is missing, and takes a single image (H, W, 1) for H images (W, 1).
        shape = tuple(inputs.shape)
        if len(shape) == 3 and shape[-1] == 1 != self.config["image_shape"][1]:
            raise ValueError(
                f"The inputs must be a batch of images, (B, H, W, C). Received shape {shape}. Wrap a single image in a batch: "
                "`images[None]`."
            )
        return super().call(inputs, training=training, mask=mask)

    def compute_mask(self, inputs, previous_mask=None):
        """None: an image has one row of logits."""
        return None

    # === Use ===

    def glimpses(self, images):
        """Where the model looks, and what it would say after each glimpse.

        Args:
            images: Array or tensor `(B, H, W, C)`, as in a call.

        Returns:
            Dictionary of NumPy arrays: "locations" `(B, T, 2)`, (y, x) from -1 to 1, as `visualization.plot_glimpses`
            draws them, and "logits" `(B, T, num_classes)`; the last ones are the model's. The action network is trained
            on the last glimpse only.
        """
        locations, hidden = self._networks.look(ops.convert_to_tensor(images, "float32"), training=False)
        logits = [self._networks.action(each) for each in hidden]
        return {
            "locations": ops.convert_to_numpy(ops.stack(locations, axis=1)),
            "logits": ops.convert_to_numpy(ops.stack(logits, axis=1)),
        }

    # === Config ===

    def get_config(self):
        return config_of_model(self, baseline=self.baseline)


class _Networks:
    """The layers, and how they look at images, as a function of tensors or of symbols."""

    def __init__(self, config, dtype, predicts):
        hidden_dim, seed = config["hidden_dim"], config["seed"]
        self.num_glimpses = config["num_glimpses"]
        self.sensor = GlimpseSensor(config["glimpse_size"], config["num_scales"], dtype=dtype, name="sensor")
        self.flatten = keras.layers.Flatten(dtype=dtype, name="flatten")
        self.what, self.where, self.glimpse, self.core = (
            keras.layers.Dense(units, "relu", dtype=policy_at(dtype, name), name=name)
            for name, units in (
                ("what", math.ceil(hidden_dim / 2)),
                ("where", math.ceil(hidden_dim / 2)),
                ("glimpse", hidden_dim),
                ("core", hidden_dim),
            )
        )
        if config["locations"] == "learned":
            self.first_location = _CenterLocation(dtype="float32", name="first_location")
            self.next_location = _LocationNetwork(
                config["location_std"], predicts, seed, dtype=part_policy("float32", dtype), name="next_location"
            )
        else:
            self.first_location = self.next_location = _RandomLocation(seed, dtype="float32", name="random_location")
        self.action = keras.layers.Dense(
            config["num_classes"], dtype=policy_at(dtype, "action", "float32"), name="action"
        )

    def look(self, images, training=None):
        """T locations `(B, 2)` and T states of the core `(B, D)`, as lists."""
        locations, states = [self.first_location(images)], []
        for _ in range(self.num_glimpses):
            location = locations[-1]
            what = self.what(self.flatten(self.sensor(images, location)))
            glimpse = self.glimpse(ops.concatenate([what, self.where(location)], axis=-1))  # (B, D)
            before = states[-1] if states else ops.zeros_like(glimpse)
            states.append(self.core(ops.concatenate([glimpse, before], axis=-1)))
            if len(states) < self.num_glimpses:
                locations.append(self.next_location(states[-1], training=training))
        return locations, states


@keras.saving.register_keras_serializable(package="keras_attention")
class _CenterLocation(keras.layers.Layer):
    """The center of each image, `(B, H, W, C)` -> zeros `(B, 2)`."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, images):
        return ops.zeros((ops.shape(images)[0], 2), self.compute_dtype)

    def compute_output_shape(self, images_shape):
        return (images_shape[0], 2)

    def compute_mask(self, images, previous_mask):
        return None


@keras.saving.register_keras_serializable(package="keras_attention")
class _RandomLocation(keras.layers.Layer):
    """A location anywhere in the image with equal probability, in training and at inference, whatever the input says."""

    def __init__(self, seed, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, inputs):
        shape = (ops.shape(inputs)[0], 2)
        return keras.random.uniform(shape, -1.0, 1.0, dtype=self.compute_dtype, seed=self.seed_generator)

    def compute_output_shape(self, inputs_shape):
        return (inputs_shape[0], 2)

    def compute_mask(self, inputs, previous_mask):
        return None

    def get_config(self):
        return {**super().get_config(), "seed": self.seed}


def gaussian_log_prob(sample, mean, std):
    """Log-density of a sample `(B, n)` of a normal distribution with independent axes: `(B,)`."""
    log_density = -0.5 * ops.square((sample - mean) / std) - math.log(std) - 0.5 * math.log(2 * math.pi)
    return ops.sum(log_density, axis=-1)


@keras.saving.register_keras_serializable(package="keras_attention")
class _LocationNetwork(keras.layers.Layer):
    """The next location `(B, 2)` for a state of the core `(B, D)`: drawn in training and then recorded, else the mean.

    Args:
        std: Number above 0.
        predicts: Boolean, whether a location is recorded with a prediction of the loss.
        seed: Integer or `None`.
    """

    def __init__(self, std, predicts, seed, **kwargs):
        super().__init__(**kwargs)
        self.std = std
        self.predicts = predicts
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, hidden_shape):
        self.mean = self._dense("mean", 2, "tanh")
        self.mean.build(hidden_shape)
        self.prediction = None
        if self.predicts:
            self.prediction = self._dense("prediction", 1)
            self.prediction.build(hidden_shape)
        self.built = True

    def _dense(self, name, units, activation=None):
        policy = policy_at(self.dtype_policy, f"{self.path}/{name}")
        return keras.layers.Dense(units, activation, dtype=policy, name=name)

    def call(self, hidden, training=None):
        hidden = ops.stop_gradient(hidden)
        # Adam moves every weight of a wide core by the same step, whatever the noise. Undivided the mean would be at an
        # edge, where tanh has no gradient, before the predictions of the loss are worth anything.
        mean = self.mean(hidden / hidden.shape[-1] ** 0.25)
        if not training:
            return mean
        noise = keras.random.normal(ops.shape(mean), dtype=mean.dtype, seed=self.seed_generator)
        location = ops.stop_gradient(mean + self.std * noise)
        prediction = None if self.prediction is None else self.prediction(hidden)[:, 0]
        record_choice(gaussian_log_prob(location, mean, self.std), prediction=prediction)
        return location

    def compute_output_shape(self, hidden_shape):
        return (hidden_shape[0], 2)

    def get_config(self):
        config = with_policies_of_parts(super().get_config(), self)
        return {**config, "std": self.std, "predicts": self.predicts, "seed": self.seed}


def check_image_shape(shape):
    """`shape` as a tuple, after checking that it is `(H, W, C)` with a known C."""
    values = tuple(shape) if isinstance(shape, list | tuple) else None
    if values is None or len(values) != 3 or values[2] is None:
        raise ValueError(
            f"`image_shape` must be (H, W, C), C known. Received: {shape!r}. Pass for example (28, 28, 1) or (None, None, 3)."
        )
    names = ("image_shape[0]", "image_shape[1]", "image_shape[2]")
    return tuple(
        size if size is None else check_positive_integer(name, size) for name, size in zip(names, values, strict=True)
    )
