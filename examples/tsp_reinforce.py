"""Tours without a teacher: a pointer network learns the travelling salesman problem from the length of its own tours.

    pip install '.[plots,geometry]'                                # in the project's folder
    python examples/tsp_reinforce.py                               # 10 points, minutes on two cores
    python examples/tsp_reinforce.py --points 20 --steps 6000
    python examples/tsp_reinforce.py --smoke                       # the same path in seconds, learning little

The reward of a tour is minus its length. A tour has no beginning, so the samples of one instance start at different
points, and each is compared with the mean of the others: the baseline "leave_one_out". Shortest tours are computed for the
test alone.
"""

import functools
import time

from argument_types import positive_integer, positive_number
from command_line import BEGAN, example_parser, in_words, jit_compile, run, set_up, strategy_scope
from pointer_tasks import BEAM, TASKS, load

# isort: split

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_attention import data, evaluation, serving, training, visualization
from keras_attention.decoding import greedy_search, sample
from keras_attention.models import PointerNetwork


class Tours(keras.layers.Layer):
    """Points `(B·M, n, 2)`, M rows for each instance  ->  lengths and log-probabilities `(B·M,)` of tours through them.

    In training the tours are sampled, and row m of an instance starts at its point m; otherwise they are greedy and start
    at the first point. The search has no gradient: the log-probability of its tours is computed again, all steps at once.
    """

    def __init__(self, network, num_samples, **kwargs):
        super().__init__(**kwargs)
        self.network = network
        self.num_samples = num_samples
        self.seed_generator = keras.random.SeedGenerator(1)

    def call(self, points, training=None):
        rows, n = ops.shape(points)[0], points.shape[1]
        M = self.num_samples if training else 1
        instances = points[::M]  # the rows of an instance are equal: the encoder reads it once
        source = {"source": instances, "source_mask": ops.ones((rows // M, n), "bool")}
        state = self.network.initial_state(source)
        state = keras.tree.map_structure(lambda tensor: ops.repeat(tensor, M, axis=0), state)
        outside, start = ops.zeros((rows,), "int32"), ops.arange(rows, dtype="int32") % M % n + 1

        search = functools.partial(sample, seed=self.seed_generator.next()) if training else greedy_search
        _, begun = self.network.decode_step(outside, keras.tree.map_structure(ops.stop_gradient, state))
        others, _ = search(self.network.decode_step, begun, start, max_length=n - 1, end=0)
        tours = ops.concatenate([start[:, None], others], axis=1)  # (B·M, n)

        logits, _, _ = self.network.decode(ops.concatenate([outside[:, None], tours[:, :-1]], axis=1), state)
        log_probs = ops.take_along_axis(ops.log_softmax(logits), tours[..., None], axis=-1)[..., 0]  # (B·M, n)
        stops = ops.take_along_axis(points, tours[..., None] - 1, axis=1)  # (B·M, n, 2)
        steps = stops - ops.roll(stops, 1, axis=1)
        lengths = ops.sum(ops.sqrt(ops.sum(steps**2, axis=-1)), axis=-1)
        return lengths, ops.sum(log_probs[:, 1:], axis=-1)  # nobody chose the start


def length(no_label, tour_length):
    """The loss: the model's output is the length itself."""
    return tour_length


def main(argv=None):
    parser = example_parser(__doc__, output="tsp_reinforce", epochs=8, batch_size=64)
    add = parser.add_argument
    add("--points", type=positive_integer, default=10, help="of every instance (default: %(default)s)")
    add("--steps", type=positive_integer, default=2000, help="of training, in all epochs (default: %(default)s)")
    add("--samples", type=positive_integer, default=8, help="tours of an instance (default: %(default)s)")
    add("--learning-rate", type=positive_number, default=1e-3, help="its peak (default: %(default)s)")
    arguments = set_up(parser, argv)
    if arguments.smoke:
        arguments.epochs, arguments.steps, arguments.batch_size = 1, 3, 5
    if arguments.points < 3 or arguments.samples < 2:
        parser.error("--points must be 3 or more, and --samples 2 or more: each tour is compared with the others")
    if arguments.steps < arguments.epochs:
        parser.error(f"there must be a step in each of the {arguments.epochs} epochs; raise --steps")
    output, n = arguments.output / str(arguments.points), arguments.points

    # === Data ===
    batches = instances(arguments.batch_size, n)
    tests = {"order": "random", "validation_examples": 1, "test_examples": 17 if arguments.smoke else 1000}
    solver = None if n <= 12 else data.PyVRP(iterations=5 * n)  # up to 12 points the shortest tours are found
    with in_words():
        test = load(TASKS["tsp"], range(n, n + 1), 1, output, **tests, solver=solver)["test"]
    test = list(test.as_numpy_iterator())

    # === Model ===
    with strategy_scope(arguments):
        options = {"encoder": "transformer", "num_layers": 1 if arguments.smoke else 3, "score": "scaled_dot"}
        network = PointerNetwork(**options, tanh_clipping=10.0, constraint="permutation", seed=1)
        points = keras.Input((n, 2))
        lengths, log_probs = Tours(network, arguments.samples)(points)
        model = training.ReinforceModel(
            points, lengths, baseline="leave_one_out", num_samples=arguments.samples, log_probs=log_probs
        )
        warmup = arguments.steps // 20
        learning_rate = keras.optimizers.schedules.CosineDecay(
            0.0, arguments.steps - warmup, warmup_target=arguments.learning_rate, warmup_steps=warmup
        )
        optimizer = keras.optimizers.Adam(learning_rate, global_clipnorm=1.0)
        model.compile(optimizer, loss=length, jit_compile=jit_compile(arguments))

    # === Train ===
    references = np.stack([example["points"] for example in test])
    options = {"epochs": arguments.epochs, "steps_per_epoch": arguments.steps // arguments.epochs, "shuffle": False}
    # The loss is the mean length of sampled tours, the validation loss that of greedy ones.
    model.fit(batches, validation_data=(references, np.zeros(len(references))), **options)
    network.save(output / "model.keras")
    print(f"Trained after {time.monotonic() - BEGAN:.0f} s.")

    # === Use ===
    for name, sampler in (("greedy", "greedy"), ("beam 5", BEAM)):
        answers = network.generate(references, sampler=sampler)
        measures = evaluation.evaluate_tours(test, answers)
        print(f"{name}: " + ", ".join(f"{key} {value:.4f}" for key, value in measures.items()))
    # The model's tours start at the first point, and to its encoder the order of the points is no information.
    from_each = [model.predict(np.roll(references, turn, axis=1), verbose=0) for turn in range(n)]
    print(f"greedy from every point, the shortest: tour_length {np.min(from_each, axis=0).mean():.4f}")
    visualization.plot_polygons(test[:8], answers[:8]).savefig(output / "tours.png", dpi=150)

    # === Export ===
    version = serving.export(network, output / "served")
    served = tf.saved_model.load(version).signatures["point"]
    indices = served(points=references[:100], lengths=np.full(len(references[:100]), n, "int32"))["indices"].numpy()
    same = (indices == network.generate(references[:100])).all(axis=1).sum()
    print(f"The SavedModel in {version} gives {same} of {len(indices)} tours as the network does.")
    print(f"{time.monotonic() - BEGAN:.0f} s from the start. Everything lies in {output}.")


def instances(batch_size, n):
    """Batches of uniform points without end, `(points (B, n, 2), zeros (B,))`: nobody knows the labels."""

    def batch(number):
        return tf.random.stateless_uniform((batch_size, n, 2), seed=(1, number)), tf.zeros(batch_size)

    return tf.data.Dataset.counter().map(batch).prefetch(tf.data.AUTOTUNE)


if __name__ == "__main__":
    run(main)
