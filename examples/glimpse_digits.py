"""Handwritten digits read in a few glimpses, where to look being learned by REINFORCE: data, model, training, paths, export.

pip install '.[plots,images]'                                  # in the project's folder
python examples/glimpse_digits.py                              # scikit-learn's digits, a minute on two cores
python examples/glimpse_digits.py --data FOLDER                # the files of MNIST
python examples/glimpse_digits.py --data FOLDER --translated   # somewhere in 60 by 60 pixels
python examples/glimpse_digits.py --random-glimpses            # the control: the same model looks anywhere
python examples/glimpse_digits.py --smoke                      # the same path in seconds, learning little
"""

import pathlib
import time

from argument_types import natural_number, positive_integer, positive_number
from command_line import BEGAN, example_parser, in_words, jit_compile, run, set_up, strategy_scope
from quiet import data_in

# isort: split

import keras
import tensorflow as tf

from keras_attention import visualization
from keras_attention.data import TranslatedDigits, load_digits
from keras_attention.models import GlimpseClassifier

SHOWN = 8  # paths in the picture


def main(argv=None):
    parser = example_parser(__doc__, output="glimpses", epochs=60, batch_size=64)
    add = parser.add_argument
    add("--data", metavar="FOLDER", type=pathlib.Path, help="with MNIST's files (default: scikit-learn's digits)")
    add("--translated", action="store_true", help="each digit at a random place of a larger image")
    add("--random-glimpses", action="store_true", help="look anywhere, in training and in the test")
    add("--num-glimpses", type=positive_integer, default=6, help="default: %(default)s")
    add("--glimpse-size", type=positive_integer, help="pixels (default: 4, with --data 8, and 12 if translated)")
    add("--num-scales", type=positive_integer, help="patches of a glimpse (default: 1, and 3 if translated)")
    add("--copies", type=positive_integer, default=5, help="places of each digit if translated (default: %(default)s)")
    add("--shift", type=natural_number, help="most pixels an image is moved in training (default: a 14th of its width)")
    add("--hidden-dim", type=positive_integer, default=256, help="default: %(default)s")
    add("--learning-rate", type=positive_number, default=1e-3, help="at its start (default: %(default)s)")
    add("--location-std", type=positive_number, default=0.15, help="of locations in training (default: %(default)s)")
    add("--num-samples", type=positive_integer, default=1, help="paths for each image (default: %(default)s)")
    arguments = set_up(parser, argv)
    if arguments.smoke:
        arguments.epochs, arguments.num_glimpses, arguments.hidden_dim, arguments.copies = 1, 3, 32, 1
    output = arguments.output

    # === Data ===
    with in_words():
        (images, labels), (test_images, test_labels) = load(arguments)
    if arguments.batch_size > len(images):
        parser.error(f"--batch-size must be at most {len(images)}, the number of images to train on")
    if arguments.shift is None:
        arguments.shift = images.shape[1] // 14
    batches = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(images), seed=1)
    batches = batches.map(lambda image, label: (shifted(image, arguments.shift), label), tf.data.AUTOTUNE)
    batches = batches.batch(arguments.batch_size, drop_remainder=True).map(scale).prefetch(2)
    test = tf.data.Dataset.from_tensor_slices((test_images, test_labels)).batch(500).map(scale)

    # === Model ===
    with strategy_scope(arguments):
        model = GlimpseClassifier(
            num_classes=10,
            image_shape=images.shape[1:],
            num_glimpses=arguments.num_glimpses,
            glimpse_size=arguments.glimpse_size or default_size(arguments),
            num_scales=arguments.num_scales or (3 if arguments.translated else 1),
            hidden_dim=arguments.hidden_dim,
            location_std=arguments.location_std,
            locations="random" if arguments.random_glimpses else "learned",
            num_samples=arguments.num_samples,
            seed=1,
        )
        steps = arguments.epochs * len(batches)
        model.compile(
            optimizer=keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(arguments.learning_rate, steps)),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
            jit_compile=jit_compile(arguments),
        )
    height, width = images.shape[1:3]
    print(f"{model.count_params():,} parameters, {len(images):,} images of {height} by {width} pixels")

    # === Train ===
    model.fit(batches, epochs=arguments.epochs, validation_data=test, validation_freq=5, shuffle=False, verbose=2)
    model.save(output / "model.keras")
    _, accuracy = model.evaluate(test, verbose=0)
    print(f"Test error: {100 * (1 - accuracy):.2f} % of {len(test_images)} images, {time.monotonic() - BEGAN:.0f} s.")

    # === Use ===
    shown = test_images[:SHOWN].astype("float32") / 255
    found = model.glimpses(shown)
    answers = found["logits"][:, -1].argmax(axis=1)
    figure = visualization.plot_glimpses_grid(
        shown,
        found["locations"],
        model.config["glimpse_size"],
        model.config["num_scales"],
        titles=[f"{label} read as {answer}" for label, answer in zip(test_labels, answers, strict=False)],
    )
    figure.savefig(output / "paths.png", dpi=150)

    # === Export ===
    model.export(output / "served", verbose=False)
    served = tf.saved_model.load(output / "served")
    same = (served.serve(shown).numpy().argmax(axis=1) == answers).sum()
    print(f"The SavedModel gives {same} of {len(shown)} answers as the model does. Everything lies in {output}.")


def load(arguments):
    """Images, uint8 `(N, H, W, 1)`, and labels for training and for the test."""
    if arguments.translated:
        canvas = 60 if arguments.data else 20
        with data_in(arguments.output / "data"):
            builder = TranslatedDigits(arguments.data, canvas, arguments.copies, data_dir=arguments.output / "data")
            builder.download_and_prepare()
        digits = builder.as_dataset(batch_size=-1, as_supervised=True)
        digits = {split: tuple(tensor.numpy() for tensor in tensors) for split, tensors in digits.items()}
    else:
        digits = {split: (images[..., None], labels) for split, (images, labels) in load_digits(arguments.data).items()}
    if arguments.smoke:
        digits = {split: (images[:256], labels[:256]) for split, (images, labels) in digits.items()}
    return digits["train"], digits["test"]


def shifted(image, most):
    """The image, moved by up to `most` pixels along both axes; black moves in."""
    return tf.image.random_crop(tf.pad(image, [[most, most], [most, most], [0, 0]]), image.shape, seed=1)


def scale(images, labels):
    """Bytes as numbers from 0 to 1."""
    return tf.cast(images, "float32") / 255, labels


def default_size(arguments):
    if arguments.data is None:
        return 4
    return 12 if arguments.translated else 8


if __name__ == "__main__":
    run(main)
