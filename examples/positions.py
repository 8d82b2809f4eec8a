"""Position schemes side by side, on texts that are longer than those of training.

    pip install '.[plots]'                                         # in the project's folder
    python examples/positions.py                                   # eight schemes, five minutes on two cores
    python examples/positions.py --schemes rotary alibi            # some of them
    python examples/positions.py --smoke                           # the same path in seconds, learning little

At every step one of eight letters gets a number and one of them is asked for; the answer is the number that it got last.
So a model must look for the letter, and among all places where it stands for the nearest: by what it holds, and by where it
stands. Each model is the same causal block but for its positions, and reads texts of 32 steps in training, of 256 afterwards.
"""

import time

from command_line import BEGAN, example_parser, jit_compile, run, set_up, strategy_scope

# isort: split

import keras
import numpy as np
import tensorflow as tf

from keras_attention.layers import LearnedPositionEmbedding, SinusoidalPositionEncoding, TransformerEncoderBlock
from keras_attention.positions import ShawRelative, T5Bias
from keras_attention.visualization.figures import new_figure

LETTERS, NUMBERS, WIDTH = 8, 10, 32
NONE_YET = NUMBERS  # the answer for a letter that has no number
LENGTHS = (8, 16, 32, 64, 128, 256)
TRAINED = 32


def schemes():
    """Each scheme by its name: what is added to the embeddings, and what acts inside attention."""
    return {
        "nothing": (None, None),
        "sinusoidal": (SinusoidalPositionEncoding(), None),
        "learned": (LearnedPositionEmbedding(max_length=LENGTHS[-1]), None),
        "rotary": (None, "rotary"),
        "t5": (None, T5Bias(bidirectional=False)),
        "alibi": (None, "alibi"),
        "shaw": (None, ShawRelative(max_distance=16)),
        "transformer_xl": (None, "transformer_xl"),
    }


def main(argv=None):
    parser = example_parser(__doc__, output="positions", epochs=3, batch_size=64)
    parser.add_argument("--schemes", nargs="+", choices=schemes(), help="which to compare (default: all)")
    parser.add_argument("--learning-rate", type=float, default=5e-3, help="default: %(default)s")
    arguments = set_up(parser, argv)
    train_size, test_size = (256, 10) if arguments.smoke else (20_000, 200)
    names = arguments.schemes or (["sinusoidal", "alibi"] if arguments.smoke else list(schemes()))
    epochs = 1 if arguments.smoke else arguments.epochs

    # === Data ===
    examples = tf.data.Dataset.from_tensor_slices(texts(train_size, TRAINED, seed=1))
    batches = examples.shuffle(train_size, seed=1).batch(arguments.batch_size).prefetch(tf.data.AUTOTUNE)
    test_inputs, test_answers = texts(test_size, LENGTHS[-1], seed=2)

    curves = {}
    print(f"{'right after steps':18}" + "".join(f"{length:>8}" for length in LENGTHS) + f"{'seconds':>10}")
    for name in names:
        # === Model ===
        keras.utils.set_random_seed(1)
        with strategy_scope(arguments):
            model = reader(*schemes()[name])
            rate = keras.optimizers.schedules.CosineDecay(arguments.learning_rate, epochs * len(batches))
            model.compile(
                optimizer=keras.optimizers.Adam(rate),
                loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                jit_compile=jit_compile(arguments),
            )

        # === Train ===
        began = time.monotonic()
        model.fit(batches, epochs=epochs, shuffle=False, verbose=0)
        seconds = time.monotonic() - began

        # === Use ===
        # A step sees nothing after it, so that one long text holds all shorter ones. Of 64: the mean of the steps 33 to 64.
        right = model.predict(test_inputs, batch_size=arguments.batch_size, verbose=0).argmax(-1) == test_answers
        curves[name] = [right[:, length // 2 : length].mean() for length in LENGTHS]
        print(f"{name:18}" + "".join(f"{share:8.1%}" for share in curves[name]) + f"{seconds:10.1f}", flush=True)

    # === Export ===
    model.export(arguments.output / "served", verbose=False)
    served = tf.saved_model.load(arguments.output / "served")
    few = {each: values[:10] for each, values in test_inputs.items()}
    difference = np.abs(served.serve(few).numpy() - model.predict(few, verbose=0)).max()

    picture(curves).savefig(arguments.output / "lengths.png", dpi=150)
    print(f"The SavedModel of {name} answers as the model does, within {difference:.0e}.")
    print(f"{time.monotonic() - BEGAN:.0f} s from the start. Everything lies in {arguments.output}.")


def texts(count, length, seed):
    """`({"letter": (B, T), "number": (B, T), "asked": (B, T)}, answers (B, T))`, all integers from 0."""
    rng = np.random.default_rng(seed)
    letter, number, asked = (rng.integers(kinds, size=(count, length)) for kinds in (LETTERS, NUMBERS, LETTERS))
    latest, answers, rows = np.full((count, LETTERS), NONE_YET), np.empty_like(asked), np.arange(count)
    for step in range(length):
        latest[rows, letter[:, step]] = number[:, step]
        answers[:, step] = latest[rows, asked[:, step]]
    return {"letter": letter, "number": number, "asked": asked}, answers


def reader(position_encoding, position):
    """A causal model of one block: logits `(B, T, NUMBERS + 1)` of the answer at every step."""
    sizes = {"letter": LETTERS, "number": NUMBERS, "asked": LETTERS}
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in sizes}
    embedded = [keras.layers.Embedding(sizes[name], WIDTH, name=f"{name}s")(ids) for name, ids in inputs.items()]
    hidden = keras.layers.Add()(embedded)
    if position_encoding is not None:
        hidden = position_encoding(hidden)
    block = TransformerEncoderBlock(4, 2 * WIDTH, normalize_first=True, position=position, name="block")
    hidden = keras.layers.LayerNormalization(epsilon=1e-6)(block(hidden, use_causal_mask=True))
    return keras.Model(inputs, keras.layers.Dense(NUMBERS + 1, dtype="float32", name="logits")(hidden))


def picture(curves):
    """Accuracy against length, a line for each scheme; the lengths of training lie left of the dotted line."""
    figure = new_figure(6.4, 4.0)
    axes = figure.add_subplot(xscale="log", xlabel="steps of the text", ylabel="right answers", ylim=(0, 1.02))
    for (name, shares), marker in zip(curves.items(), "os^vD<>P", strict=False):
        axes.plot(LENGTHS, shares, marker=marker, label=name)
    axes.axvline(TRAINED, color="0.4", linestyle=":")
    axes.set_xticks(LENGTHS, LENGTHS, minor=False)
    axes.minorticks_off()
    figure.legend(loc="outside right upper")
    return figure


if __name__ == "__main__":
    run(main)
