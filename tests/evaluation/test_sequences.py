import numpy as np
import pytest
from keras import ops

from keras_attention.evaluation.sequences import compared, evaluate_sequences, mean

EXAMPLES = [
    {"points": [[0.7], [0.2], [0.5]], "indices": [2, 3, 1]},
    {"points": [[0.3]], "indices": [1]},
    {"points": [[0.9], [0.1]], "indices": [2, 1]},
]


def test_accuracy_is_the_share_of_equal_sequences():
    answers = np.int32([[2, 3, 1, 0], [1, 0, 0, 0], [1, 2, 0, 0]])
    assert evaluate_sequences(EXAMPLES, answers) == {"accuracy": pytest.approx(2 / 3)}


def test_rotated_sequence_is_another_one():
    assert evaluate_sequences(EXAMPLES[:1], [[3, 1, 2, 0]]) == {"accuracy": 0.0}


def test_shorter_and_longer_answers_are_wrong():
    assert evaluate_sequences(EXAMPLES[:1] * 3, [[2, 3, 0, 0], [2, 3, 1, 1], [0, 2, 3, 1]]) == {"accuracy": 0.0}


def test_answers_may_have_different_lengths():
    answers = [np.int64([2, 3, 1]), np.int32([1, 0, 0, 0, 0]), [2, 1, 0]]
    assert evaluate_sequences(EXAMPLES, answers) == {"accuracy": 1.0}


def test_tensors_and_iterators_are_taken():
    examples = ({name: ops.array(value) for name, value in example.items()} for example in EXAMPLES)
    answers = ops.array([[2, 3, 1, 0], [1, 0, 0, 0], [2, 1, 0, 0]])
    assert evaluate_sequences(examples, answers) == {"accuracy": 1.0}


def test_mean_is_that_of_the_numbers():
    assert mean([0.25, np.nan, 0.75]) == 0.5
    assert np.isnan(mean([]))
    assert np.isnan(mean([np.nan]))


def test_index_beyond_the_points_of_its_example_raises():
    with pytest.raises(ValueError, match=r"from 1 to 2, the number of points\. Received 3 among \[3, 1\]"):
        compared(EXAMPLES, [[2, 3, 1], [1, 0, 0], [3, 1, 0]])


def test_reference_beyond_the_points_raises():
    with pytest.raises(ValueError, match=r"Received 4 among \[4\]"):
        compared([{"points": [[0.5]], "indices": [4]}], [[1]])


def test_each_example_needs_an_answer():
    with pytest.raises(ValueError, match=r"as many answers\. Received 3 examples and 2 answers"):
        compared(EXAMPLES, [[2, 3, 1], [1, 0, 0]])


def test_no_example_raises():
    with pytest.raises(ValueError, match=r"Received 0 examples and 0 answers"):
        compared([], np.zeros((0, 5), "int32"))
