"""How noisy the gradient of a hard choice is under each baseline: python benchmarks/gradient_variance.py

A query chooses one of seven positions, twice in a chain, and a loss says how good that was. Many steps are taken from the
same weights, on the same examples, with the same number of samples. "variance" is the sum of the variances of all
gradients of the scores, over that without a baseline; "bias" is how far their mean lies from the exact gradient, over
the length of that, and "chance" how far it may lie by chance alone.
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from keras_attention.layers import HardAttention
from keras_attention.training import Enumeration, MovingAverage, ReinforceModel

B, S, D, M = 32, 7, 5, 4
RATE = 0.03  # what a weight loses in a step is so much of its gradient

CONTENDERS = {  # name -> what `selection`, `baseline` and `num_samples` are
    "none": ("reinforce", None, M),
    "moving_average": ("reinforce", MovingAverage(), M),
    "learned": ("reinforce", "learned", M),
    "leave_one_out": ("reinforce", "leave_one_out", M),
    "straight_through": ("straight_through", None, M),
    "gumbel_softmax": ("gumbel_softmax", None, M),
}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000, help="of each contender (default: %(default)s)")
    parser.add_argument("--smoke", action="store_true", help="a few steps, to see that everything runs")
    arguments = parser.parse_args(argv)
    steps = 3 if arguments.smoke else arguments.steps
    exact = gradients("reinforce", None, Enumeration(S * S), steps=1, warm_up=0)[0]
    print(f"{B} examples, {S} positions, two choices, {M} samples, {steps} steps")
    print(f"{'':20}{'variance':>10}{'bias':>10}{'chance':>10}")
    largest = None
    for name, (selection, baseline, num_samples) in CONTENDERS.items():
        found = gradients(selection, baseline, num_samples, steps, warm_up=0 if arguments.smoke else 200)
        variance = found.var(axis=0, ddof=1).sum()
        largest = largest or variance
        bias = np.linalg.norm(found.mean(axis=0) - exact) / np.linalg.norm(exact)
        chance = np.sqrt(variance / steps) / np.linalg.norm(exact)
        print(f"{name:20}{variance / largest:10.3f}{bias:10.3f}{chance:10.3f}")


def gradients(selection, baseline, num_samples, steps, warm_up):
    """Gradients `(steps, weights)` of the scores at the same weights, after steps in which the baseline settles."""
    keras.utils.set_random_seed(1)
    question, memory = keras.Input((1, D)), keras.Input((S, D))
    layers = [HardAttention("bilinear", selection, seed=seed) for seed in (1, 2)]
    first = layers[0](question, memory)
    read = keras.layers.Concatenate()([first, layers[1](first, memory)])
    model = ReinforceModel([question, memory], keras.layers.Dense(1)(read), baseline, num_samples)
    model.compile(keras.optimizers.SGD(RATE), "mean_squared_error")
    kernels = [layer.score.kernel for layer in layers]
    learning = {id(weight) for weight in model.baseline.weights}
    fixed = [weight for weight in model.trainable_weights if id(weight) not in learning]
    values = [weight.numpy() for weight in fixed]
    rng = np.random.default_rng(1)
    inputs = [rng.normal(size=(B, 1, D)).astype("float32"), rng.normal(size=(B, S, D)).astype("float32")]
    target = 1.0 + inputs[0][:, :, 0]
    found = []
    for step in range(warm_up + steps):
        for weight, value in zip(fixed, values, strict=True):
            weight.assign(value)
        before = [kernel.numpy() for kernel in kernels]
        model.train_on_batch(inputs, target)
        if step >= warm_up:
            changes = [(old - kernel.numpy()) / RATE for old, kernel in zip(before, kernels, strict=True)]
            found.append(np.concatenate([change.ravel() for change in changes]))
    return np.array(found)


if __name__ == "__main__":
    main()
