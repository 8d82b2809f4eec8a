"""Pointer networks for geometry: convex hulls, Delaunay triangulations, tours and sorting, from data to SavedModel.

    pip install '.[plots,geometry]'                                # in the project's folder
    python examples/pointer_geometry.py                            # hulls of 5 points, minutes on two cores
    python examples/pointer_geometry.py --task tsp --points 10
    python examples/pointer_geometry.py --points 5-20 --test-points 10 20 50
    python examples/pointer_geometry.py --data FILE                # points and answers in the format of the paper's files
    python examples/pointer_geometry.py --evaluate FILE            # such a file, by the trained model
    python examples/pointer_geometry.py --smoke                    # the same path in seconds, learning little

The points of every example come sorted by x, so that the order of an answer is a rule about places: a hull and a tour
begin at the leftmost point, the corners of a triangle run from left to right.
"""

import pathlib
import time

from argument_types import positive_integer, positive_number
from command_line import BEGAN, example_parser, in_words, jit_compile, run, set_up, strategy_scope
from pointer_tasks import TASKS, load, numbers_of_points, print_measures, read, splits_of_file

# isort: split

import keras
import numpy as np
import tensorflow as tf

from keras_attention import data, serving, training, visualization
from keras_attention.models import PointerNetwork


def main(argv=None):
    parser = example_parser(__doc__, output="pointer", epochs=1, batch_size=128)
    add = parser.add_argument
    add("--task", choices=TASKS, default="hull", help="default: %(default)s")
    add("--points", type=numbers_of_points, default="5", help="how many, such as 10 or 5-20 (default: %(default)s)")
    add("--test-points", type=positive_integer, nargs="*", default=[], help="further tests, with as many points")
    add("--examples", type=positive_integer, default=500_000, help="for training (default: %(default)s)")
    add("--data", metavar="FILE", type=pathlib.Path, help="train on a file; of its examples a fifth is for the tests")
    add("--encoder", choices=("lstm", "transformer"), default="lstm", help="default: %(default)s")
    add("--num-layers", type=positive_integer, default=1, help="of the encoder (default: %(default)s)")
    add("--hidden-dim", type=positive_integer, default=128, help="default: %(default)s")
    add("--learning-rate", type=positive_number, default=3e-3, help="its peak (default: %(default)s)")
    add("--evaluate", metavar="FILE", type=pathlib.Path, help="answer the examples of a file with the trained model")
    arguments = set_up(parser, argv)
    task, output = TASKS[arguments.task], arguments.output / arguments.task
    if arguments.smoke:
        arguments.examples = 512
    if arguments.evaluate:
        with in_words():
            examples = read(task, arguments.evaluate)
        if not (output / "model.keras").exists():
            parser.error(f"--evaluate needs a trained model, and {output} has none: run without --evaluate first")
        with in_words():
            model = keras.saving.load_model(output / "model.keras")
        print_measures(task, model, examples, arguments.evaluate.name)
    else:
        train(task, arguments, output, parser)


def train(task, arguments, output, parser):
    output.mkdir(parents=True, exist_ok=True)

    # === Data ===
    with in_words():
        if arguments.data:
            splits, arguments.points = splits_of_file(task, arguments.data)
        else:
            splits = load(task, arguments.points, arguments.examples, output)
    if len(splits["train"]) * arguments.epochs < arguments.batch_size:
        parser.error(f"{len(splits['train'])} examples are no batch of {arguments.batch_size}; lower --batch-size")
    size = {"max_points": max(arguments.points), "drop_remainder": True}
    examples = splits["train"].repeat(arguments.epochs).shuffle(50_000, seed=1)
    batches = data.point_batches(examples, arguments.batch_size, **size)
    validation = data.point_batches(splits["validation"].take(2000), 500, max_points=max(arguments.points))

    # === Model ===
    steps = len(batches)
    with strategy_scope(arguments):
        model = PointerNetwork(
            task.feature_dim,
            encoder=arguments.encoder,
            hidden_dim=arguments.hidden_dim,
            num_layers=arguments.num_layers,
            constraint=task.constraint,
            seed=1,
        )
        learning_rate = keras.optimizers.schedules.CosineDecay(
            0.0, steps - steps // 20, warmup_target=arguments.learning_rate, warmup_steps=steps // 20
        )
        model.compile(
            optimizer=keras.optimizers.Adam(learning_rate, global_clipnorm=1.0),
            loss=training.SmoothedCrossentropy(label_smoothing=0.0),
            metrics=[training.SequenceAccuracy()],
            jit_compile=jit_compile(arguments),
        )
    print(f"{model.count_params():,} parameters, {len(splits['train']):,} examples, {steps:,} steps")

    # === Train ===
    parts = min(8, steps)  # validated so often
    model.fit(batches, epochs=parts, steps_per_epoch=steps // parts, validation_data=validation, shuffle=False)
    model.save(output / "model.keras")
    print(f"Trained after {time.monotonic() - BEGAN:.0f} s.")

    # === Use ===
    test = list(splits["test"].as_numpy_iterator())
    answers = print_measures(task, model, test, describe(arguments.points))
    for count in arguments.test_points:
        with in_words():
            more = load(task, range(count, count + 1), 1, output)
        print_measures(task, model, list(more["test"].as_numpy_iterator()), f"{count} points")
    draw(task, model, test, answers, output)

    # === Export ===
    version = serving.export(model, output / "served")
    served = tf.saved_model.load(version).signatures["point"]
    points = np.stack([example["points"] for example in test if len(example["points"]) == len(test[0]["points"])][:100])
    indices = served(points=points, lengths=np.full(len(points), points.shape[1], "int32"))["indices"].numpy()
    same = (indices == model.generate(points)).all(axis=1).sum()
    print(f"The SavedModel in {version} gives {same} of {len(points)} answers as the model does.")
    print(f"{time.monotonic() - BEGAN:.0f} s from the start. Everything lies in {output}.")


def draw(task, model, examples, answers, output):
    """Pictures of the first answers over the truth, and of what the model points at in the first one."""
    if task.plot is not None:
        task.plot(examples[:8], answers[:8]).savefig(output / "answers.png", dpi=150)
    first = {"source": examples[0]["points"][None], "target": answers[:1]}
    probabilities = model.alignment(first)[0]  # (T, S + 1)
    steps = [str(index) if index else "end" for index in answers[0]]
    choices = ["end", *range(1, probabilities.shape[1])]
    visualization.plot_attention(probabilities, steps, choices).savefig(output / "pointer.png", dpi=150)


def describe(points):
    return f"{points[0]} points" if len(points) == 1 else f"{points[0]} to {points[-1]} points"


if __name__ == "__main__":
    run(main)
