"""How often an example makes its choices in a step of training: M times at random, or each joint choice once."""

import keras
from keras import ops

from keras_attention.checks.arguments import check_positive_integer
from keras_attention.saving.lookup import config_of, described, from_config
from keras_attention.training.reinforce.credit import Credit, check_per_example, without_value


class MonteCarlo:
    """M samples of each example, `count` adjacent rows. An integer stands for it."""

    def __init__(self, count):
        self.count = check_positive_integer("num_samples", count)

    def numbers(self, rows):
        """Which joint choice each of `rows` rows makes: `None`, they are free."""
        return None

    def check(self, count):
        """Raises if a call made another number of joint choices than was announced. Here any is right."""

    def credit(self, log_prob, entropy, entropy_weight, baseline, predictions):
        return Credit(log_prob, entropy, entropy_weight, baseline, predictions, self.count)

    def shown(self, log_prob):
        """The row of each example that metrics see, `(B,)`: its first."""
        return ops.arange(0, ops.shape(log_prob)[0], self.count, dtype="int32")

    def config(self):
        """`num_samples` in the config of a model."""
        return self.count


@keras.saving.register_keras_serializable(package="keras_attention", name="AllChoices")  # its name in version 0.1
class Enumeration:
    """Every joint choice of an example, each weighted by its probability; for `num_samples` of `ReinforceModel`.

        loss = sum over z of p(z) · loss(z)

    The loss and its gradient are exact expectations: no variance, so that no baseline is asked. Time and memory are those
    of `count` samples. The alignments "softmax" ("sampled"), "sparsemax" and "entmax" with the estimator "reinforce" can be
    enumerated; with dropout each joint choice sees a mask of its own.

    Args:
        count: Integer, how many joint choices there are: the product of S over all queries of all hard layers, and heads.

    Raises:
        ValueError: While training, if there are more or fewer choices than `count`; the message has the right number.

    Example:
        Two queries that choose one of three positions each make nine joint choices:

        >>> Enumeration(9).count
        9

    References:
        Deng, Kim, Chiu, Guo and Rush, 2018, section 3, arXiv:1807.03756.
    """

    def __init__(self, count):
        self.count = check_positive_integer("count", count)

    def numbers(self, rows):
        """Which joint choice each of `rows` adjacent rows makes: `0, 1, ..., count - 1`, again and again."""
        return ops.arange(rows, dtype="int32") % self.count

    def check(self, count):
        if count == 1 < self.count:
            raise ValueError(
                f"Nothing can be enumerated: no choice was recorded. Received `num_samples=Enumeration({self.count})`. Give "
                'the model a hard layer with the estimator "reinforce", or leave `num_samples` out.'
            )
        if count != self.count:
            raise ValueError(
                f"`Enumeration` must be told how many joint choices there are: {count}. Received: {self.count}. Pass "
                f"`num_samples=Enumeration({count})`, or sample where they are too many."
            )

    def credit(self, log_prob, entropy, entropy_weight, baseline, predictions):
        return Expectation(log_prob, entropy, entropy_weight, self.count)

    def shown(self, log_prob):
        """The row of each example that metrics see, `(B,)`: its most probable joint choice."""
        best = ops.argmax(ops.reshape(log_prob, (-1, self.count)), axis=-1)
        return ops.arange(0, ops.shape(log_prob)[0], self.count, dtype="int32") + ops.cast(best, "int32")

    def config(self):
        """`num_samples` in the config of a model."""
        return config_of(self)

    def get_config(self):
        return {"count": self.count}

    def __repr__(self):
        return described(self)

    @classmethod
    def from_config(cls, config):
        return cls(**config)


class Expectation:
    """All joint choices of one training step, for its losses; takes the place of `Credit`.

    Args:
        log_prob, entropy: float32 `(B,)`, one for each example and joint choice.
        entropy_weight: Number; `entropy_weight · entropy` is taken off every element of every loss.
        count: Integer, joint choices of an example.
    """

    def __init__(self, log_prob, entropy, entropy_weight, count):
        self.count = count
        self.log_prob = log_prob
        self.weight = count * ops.exp(log_prob)  # Keras takes the mean over the choices
        self.bonus = entropy_weight * entropy
        self.measures = []

    def assign(self, losses, name):
        """`losses (B, ...)` of one output, weighted by the probabilities of their choices, and the objective."""
        check_per_example(losses, self.log_prob, name)
        shape = (-1,) + (1,) * (len(losses.shape) - 1)
        weight, bonus = ops.reshape(self.weight, shape), ops.reshape(self.bonus, shape)
        weighted = weight * ops.cast(losses, "float32")
        return ops.cast(weighted - without_value(weight * bonus), losses.dtype), weighted


AllChoices = Enumeration  # its name in version 0.1


def get(num_samples):
    """The object that an integer, an `Enumeration` or its config stands for."""
    if isinstance(num_samples, dict):
        num_samples = from_config(num_samples)
    return num_samples if isinstance(num_samples, Enumeration) else MonteCarlo(num_samples)
