"""The tasks of pointer networks: their examples, made by a data set of the package or read from a file, and their measures."""

import argparse
import dataclasses
from collections.abc import Callable

import numpy as np
from argument_types import positive_integer
from quiet import data_in

from keras_attention import data, evaluation, visualization
from keras_attention.decoding import BeamSearch

BEAM = BeamSearch(beam_width=5, length_penalty=0.0)


@dataclasses.dataclass(frozen=True)
class Task:
    """What is asked of the points: data, what an answer may be, how it is judged and drawn, how a file writes it."""

    builder: type
    config: type
    constraint: str
    evaluate: Callable
    plot: Callable | None
    is_closed: bool = True
    feature_dim: int = 2
    order: str = "sorted"


TASKS = {
    "hull": Task(data.ConvexHull, data.PointsConfig, "polygon", evaluation.evaluate_hulls, visualization.plot_polygons),
    "delaunay": Task(
        data.Delaunay,
        data.PointsConfig,
        "triangles",
        evaluation.evaluate_triangulations,
        visualization.plot_triangulations,
        is_closed=False,
    ),
    "tsp": Task(data.Tsp, data.TspConfig, "permutation", evaluation.evaluate_tours, visualization.plot_polygons),
    "sort": Task(
        data.Sorting,
        data.PointsConfig,
        "permutation",
        evaluation.evaluate_sequences,
        plot=None,
        is_closed=False,
        feature_dim=1,
        order="random",
    ),
}


def numbers_of_points(text):
    """`"10"`  ->  `range(10, 11)`, `"5-20"`  ->  `range(5, 21)`"""
    numbers = [positive_integer(number) for number in text.split("-")]
    if len(numbers) > 2 or numbers[0] > numbers[-1]:
        raise argparse.ArgumentTypeError(f"must be a number or two in increasing order, such as 5-20. Received: {text}")
    return range(numbers[0], numbers[-1] + 1)


def load(task, points, train_examples, output, **others):
    """The splits of the task's data set, prepared under `output`, each a `tf.data.Dataset`; `others` are its settings."""
    tests = min(max(train_examples // 4, 64), 10_000) if train_examples > 1 else 2000  # with 1 it is for tests alone
    settings = {
        "points": points,
        "order": task.order,
        "train_examples": train_examples,
        "validation_examples": tests,
        "test_examples": tests,
    }
    if task.builder is data.Tsp and max(points) > 12:
        settings["solver"] = data.PyVRP(iterations=2 * max(points))
    name = f"{points[0]}-{points[-1]}-{train_examples}"
    with data_in(output / "data"):
        builder = task.builder(config=task.config(name=name, **settings | others), data_dir=output / "data")
        builder.download_and_prepare()
    return builder.as_dataset()


def read(task, path):
    """The examples of a file, which must have one."""
    examples = data.read_points(path, closed=task.is_closed, width=task.feature_dim)
    if not examples:
        raise ValueError(f"{path} has no example.")
    return examples


def splits_of_file(task, path):
    """The splits of a file, of whose examples every tenth validates and every tenth tests, and the numbers of points."""
    examples = read(task, path)
    for number, example in enumerate(examples, start=1):
        if not is_answer(task, example):
            raise ValueError(
                f"{path}, example {number}: {example['indices'].tolist()} is no answer that --task asks for, one of the "
                f"kind {task.constraint!r}."
            )
    examples = [in_order(task, example) for example in examples]
    if len(examples) < 10:
        raise ValueError(f"{path} must have 10 examples or more. Received {len(examples)}.")
    parts = {"test": examples[::10], "validation": examples[1::10]}
    parts["train"] = [example for number, example in enumerate(examples) if number % 10 > 1]
    sizes = [len(example["points"]) for example in examples]
    return {name: data.point_dataset(part) for name, part in parts.items()}, range(min(sizes), max(sizes) + 1)


def is_answer(task, example):
    """Whether the model can be asked to write this answer."""
    count, indices = len(example["points"]), example["indices"]
    if task.constraint == "triangles":
        return len(indices) % 3 == 0
    is_complete = task.constraint != "permutation" or len(indices) == count
    return is_complete and len(set(indices.tolist())) == len(indices)


def in_order(task, example):
    """The example as the task's data set writes it: points sorted, the answer from the lowest position on."""
    points, indices = example["points"], example["indices"]
    if task.order == "sorted":
        order = np.lexsort(points.T[::-1])
        points, indices = points[order], np.argsort(order)[indices - 1] + 1
    if task.is_closed:
        x, y = points[indices - 1].T
        if np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) < 0:  # clockwise
            indices = indices[::-1]
        indices = np.roll(indices, -indices.argmin())
    elif task.constraint == "triangles":
        indices = np.sort(indices.reshape(-1, 3), axis=1).ravel()
    return {"points": points, "indices": indices}


def answer(model, sources, sampler):
    """Answers for a list of sources, all padded to the largest, so that one search is compiled."""
    source = model.check_source(sources)
    parts = range(0, len(sources), 500)
    batches = [{name: array[start : start + 500] for name, array in source.items()} for start in parts]
    return np.concatenate([model.generate(batch, sampler=sampler) for batch in batches])


def print_measures(task, model, examples, name):
    """Prints what the answers of greedy and of beam search are worth; returns the latter.

    The points are sorted for a model that was trained so, and its answers count in the order of the examples again.
    """
    orders = [np.arange(len(example["points"])) for example in examples]
    if task.order == "sorted":
        orders = [np.lexsort(example["points"].T[::-1]) for example in examples]
    sources = [example["points"][order] for example, order in zip(examples, orders, strict=True)]
    for search, sampler in (("greedy", "greedy"), ("beam 5", BEAM)):
        found = answer(model, sources, sampler)
        answers = [np.append(order + 1, 0)[indices - 1] for order, indices in zip(orders, found, strict=True)]
        measures = ", ".join(f"{key} {value:.4f}" for key, value in task.evaluate(examples, answers).items())
        print(f"{name}, {search}: {measures}; {len(examples)} examples")
    return np.array(answers)
