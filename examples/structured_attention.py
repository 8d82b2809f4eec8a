"""Softmax, sigmoids and a linear chain side by side, on a task whose answer is a stretch of neighbouring positions.

    pip install '.[plots]'                                         # in the project's folder
    python examples/structured_attention.py                        # half a minute on two cores
    python examples/structured_attention.py --smoke                # the same path in seconds, learning little

A strip of thirty fields is painted in three colours, a stretch of neighbouring fields in each, and on each field stands
a number. Paint flakes: of ten fields three show one of the wrong colours. The question is a colour; the answer is the
average of the numbers on its stretch. Each model sees the colours field by field and is the same but for its alignment:
softmax and sigmoids judge every field by itself, the chain by its neighbours, too.
"""

import time

from command_line import BEGAN, example_parser, jit_compile, run, set_up, strategy_scope

# isort: split

import keras
import numpy as np
import tensorflow as tf

from keras_attention import visualization
from keras_attention.alignments import Bernoulli, LinearChain
from keras_attention.layers import StructuredAttention

FIELDS, COLOURS, WIDTH, WRONG = 30, 3, 8, 0.3


def kinds():
    """The alignments by what they are called in the table and in the picture; the weights of each sum to one."""
    return {"softmax": "softmax", "sigmoid": Bernoulli(normalize="l1"), "linear chain": LinearChain(normalize="l1")}


def main(argv=None):
    parser = example_parser(__doc__, output="structured_attention", epochs=3, batch_size=64)
    arguments = set_up(parser, argv)
    train_size, test_size = (256, 70) if arguments.smoke else (20_000, 2000)
    epochs = 1 if arguments.smoke else arguments.epochs

    # === Data ===
    inputs, answers, _ = strips(train_size, seed=1)
    test_inputs, test_answers, stretches = strips(test_size, seed=2)

    pictures = [stretches / stretches.sum(axis=-1, keepdims=True)]
    print(f"{'':18}{'error':>10}{'weight on the stretch':>24}{'fields told right':>20}{'seconds':>10}")
    print(f"{'always zero':18}{np.sqrt(np.mean(test_answers**2)):10.3f}")
    for name, alignment in kinds().items():
        # === Model ===
        with strategy_scope(arguments):
            model, attention_weights = reader(alignment)
            model.compile(
                optimizer=keras.optimizers.Adam(1e-2),
                loss="mean_squared_error",
                metrics=[keras.metrics.RootMeanSquaredError(name="error")],
                jit_compile=jit_compile(arguments),
            )

        # === Train ===
        began = time.monotonic()
        model.fit(inputs, answers, batch_size=arguments.batch_size, epochs=epochs, verbose=0)
        seconds = time.monotonic() - began

        # === Use ===
        error = model.evaluate(test_inputs, test_answers, verbose=0, return_dict=True)["error"]
        weights = attention_weights.predict(test_inputs, verbose=0)[:, 0]  # (B, S)
        on_stretch = np.mean(np.sum(weights * stretches, axis=-1))
        told_right = np.mean((weights > weights.max(axis=-1, keepdims=True) / 2) == stretches)
        print(f"{name:18}{error:10.3f}{on_stretch:24.1%}{told_right:20.1%}{seconds:10.1f}")
        pictures.append(weights)

    # === Export ===
    model.export(arguments.output / "served", verbose=False)
    served = tf.saved_model.load(arguments.output / "served")
    difference = np.abs(served.serve(test_inputs).numpy() - model.predict(test_inputs, verbose=0)).max()

    rows = [str(row) for row in range(1, 9)]  # of the strips that are drawn
    panels = np.reshape([weights[: len(rows)] for weights in pictures], (2, 2, len(rows), FIELDS))
    titles = ["the stretch asked for", *kinds()]
    figure = visualization.plot_attention_grid(panels, rows, range(1, FIELDS + 1), titles=titles, vmax=0.15)
    figure.savefig(arguments.output / "attended.png", dpi=100)
    print(f"The SavedModel of the linear chain answers as the model does, within {difference:.0e}.")
    print(f"{time.monotonic() - BEGAN:.0f} s from the start. Everything lies in {arguments.output}.")


def strips(count, seed):
    """`({"asked": (B, 1), "shown": (B, S), "numbers": (B, S, 1)}, answers (B, 1), stretches (B, S))`."""
    rng = np.random.default_rng(seed)
    cuts = np.sort([rng.choice(np.arange(5, FIELDS - 4), 2, replace=False) for _ in range(count)], axis=1)
    order = rng.permuted(np.tile(np.arange(COLOURS), (count, 1)), axis=1)
    fields = np.arange(FIELDS)
    painted = np.take_along_axis(order, sum(fields >= cut[:, None] for cut in cuts.T).astype(int), axis=1)
    others = (painted + rng.integers(1, COLOURS, painted.shape)) % COLOURS
    shown = np.where(rng.random(painted.shape) < WRONG, others, painted)
    asked, numbers = rng.integers(COLOURS, size=(count, 1)), rng.normal(size=painted.shape).astype("float32")
    stretches = painted == asked
    answers = np.sum(numbers, axis=1, where=stretches, keepdims=True) / np.sum(stretches, axis=1, keepdims=True)
    return {"asked": asked, "shown": shown, "numbers": numbers[..., None]}, answers, stretches


def reader(alignment):
    """The model that answers, and one of the same layers that gives its attention weights `(B, 1, S)`."""
    asked, shown = keras.Input((1,), dtype="int32", name="asked"), keras.Input((FIELDS,), dtype="int32", name="shown")
    numbers = keras.Input((FIELDS, 1), name="numbers")
    query = keras.layers.Embedding(COLOURS, WIDTH, name="asked_colours")(asked)
    keys = keras.layers.Embedding(COLOURS, WIDTH, name="shown_colours")(shown)
    attention = StructuredAttention("bilinear", alignment)
    read, weights = attention(query, numbers, keys, return_attention_scores=True)
    answer = keras.layers.Dense(1, name="answer", dtype="float32")(keras.layers.Flatten()(read))
    inputs = {"asked": asked, "shown": shown, "numbers": numbers}
    return keras.Model(inputs, answer), keras.Model(inputs, weights)


if __name__ == "__main__":
    run(main)
