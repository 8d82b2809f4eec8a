"""Soft, sparse and hard attention side by side, on a task in which looking at the right place is the whole problem.

    pip install '.[plots]'                                         # in the project's folder
    python examples/hard_attention.py                              # a minute on two cores
    python examples/hard_attention.py --smoke                      # the same path in seconds, learning little

A memory holds seven cards, each with a name, which is a random direction, and a digit. The question is the name of one of
them, a little blurred; the answer is its digit. Each model is the same but for its alignment, and is told the digit only,
never the place.
"""

import time

from command_line import BEGAN, example_parser, jit_compile, run, set_up, strategy_scope

# isort: split

import keras
import numpy as np
import tensorflow as tf

from keras_attention import training, visualization
from keras_attention.alignments import Entmax, GumbelSoftmax, SampledCategorical, Sparsemax, StraightThrough
from keras_attention.layers import SoftAttention

CARDS, WIDTH, DIGITS = 7, 8, 10


def kinds():
    """The alignments by what they are called in the table and in the picture; the last three are hard."""
    return {
        "softmax": "softmax",
        "entmax": Entmax(),
        "sparsemax": Sparsemax(),
        "REINFORCE": SampledCategorical("reinforce", seed=1),
        "straight-through": SampledCategorical(StraightThrough(), seed=1),
        "Gumbel-softmax": SampledCategorical(GumbelSoftmax(), seed=1),
    }


def main(argv=None):
    parser = example_parser(__doc__, output="hard_attention", epochs=5, batch_size=64)
    arguments = set_up(parser, argv)
    train_size, test_size = (256, 70) if arguments.smoke else (20_000, 2000)
    epochs = 1 if arguments.smoke else arguments.epochs

    # === Data ===
    inputs, answers, _ = cards(train_size, seed=1)
    test_inputs, test_answers, places = cards(test_size, seed=2)

    pictures = []
    print(f"{'':18}{'right digit':>12}{'right place':>12}{'its weight':>12}{'seconds':>10}")
    for name, alignment in kinds().items():
        # === Model ===
        with strategy_scope(arguments):
            model, attention_weights = reader(alignment)
            model.compile(
                optimizer=keras.optimizers.Adam(1e-2),
                loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                metrics=["accuracy"],
                jit_compile=jit_compile(arguments),
            )

        # === Train ===
        began = time.monotonic()
        model.fit(inputs, answers, batch_size=arguments.batch_size, epochs=epochs, verbose=0)
        seconds = time.monotonic() - began

        # === Use ===
        accuracy = model.evaluate(test_inputs, test_answers, verbose=0, return_dict=True)["accuracy"]
        weights = attention_weights.predict(test_inputs, verbose=0)[:, 0]  # (B, S)
        looked_right = np.mean(weights.argmax(axis=-1) == places)
        on_place = np.mean(weights[np.arange(len(places)), places])
        print(f"{name:18}{accuracy:12.2%}{looked_right:12.2%}{on_place:12.3f}{seconds:10.1f}")
        pictures.append(weights[[np.flatnonzero(places == place)[0] for place in range(CARDS)]])

        # === Export ===
        if name == "REINFORCE":
            model.export(arguments.output / "served", verbose=False)
            served = tf.saved_model.load(arguments.output / "served")
            logits = served.serve(test_inputs).numpy()
            same = (logits.argmax(-1) == model.predict(test_inputs, verbose=0).argmax(-1)).sum()

    numbers = [str(place) for place in range(1, CARDS + 1)]  # of the card that is asked for, and of those attended
    panels = np.reshape(pictures, (2, 3, CARDS, CARDS))
    figure = visualization.plot_attention_grid(panels, numbers, numbers, titles=list(kinds()))
    figure.savefig(arguments.output / "attended.png", dpi=150)
    print(f"The SavedModel of REINFORCE gives {same} of {test_size} digits as the model does.")
    print(f"{time.monotonic() - BEGAN:.0f} s from the start. Everything lies in {arguments.output}.")


def cards(count, seed):
    """`({"question": (B, 1, D), "names": (B, S, D), "digits": (B, S)}, answers (B,), places (B,))`, places from 0."""
    rng = np.random.default_rng(seed)
    names = rng.normal(size=(count, CARDS, WIDTH)).astype("float32")
    names /= np.linalg.norm(names, axis=-1, keepdims=True)
    digits, places = rng.integers(DIGITS, size=(count, CARDS)), rng.integers(CARDS, size=count)
    rows = np.arange(count)
    question = names[rows, places] + 0.1 * rng.normal(size=(count, WIDTH)).astype("float32")
    return {"question": question[:, None], "names": names, "digits": digits}, digits[rows, places], places


def reader(alignment):
    """The model that answers, and one of the same layers that gives its attention weights `(B, 1, S)`.

    `ReinforceModel` trains what is chosen at random; to a model in which nothing is, it is an ordinary one.
    """
    question, names = keras.Input((1, WIDTH), name="question"), keras.Input((CARDS, WIDTH), name="names")
    digits = keras.Input((CARDS,), dtype="int32", name="digits")
    values = keras.layers.Embedding(DIGITS, DIGITS, name="values")(digits)
    read, weights = SoftAttention("bilinear", alignment)(question, values, names, return_attention_scores=True)
    logits = keras.layers.Dense(DIGITS, name="logits")(keras.layers.Flatten()(read))
    inputs = {"question": question, "names": names, "digits": digits}
    return training.ReinforceModel(inputs, logits), keras.Model(inputs, weights)


if __name__ == "__main__":
    run(main)
