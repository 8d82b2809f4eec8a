import threading

import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention.ops.choices import collect_choices, given_choice, is_collecting, record_choice
from keras_attention.ops.softmax import LOWEST

B, T, N = 2, 3, 17


def test_log_probabilities_are_summed_for_each_example():
    first, second = normal(B, T, seed=1), normal(B, seed=2)
    with collect_choices() as choices:
        record_choice(ops.convert_to_tensor(first), ops.convert_to_tensor(second))
        record_choice(ops.convert_to_tensor(second))
    np.testing.assert_allclose(choices.log_prob(B), first.sum(axis=1) + second, atol=FLOAT32)
    np.testing.assert_allclose(choices.entropy(B), second, atol=FLOAT32)


def test_axes_folded_into_the_batch_belong_to_their_example():
    log_prob = normal(B, N, T)
    with collect_choices() as choices:
        record_choice(ops.reshape(ops.convert_to_tensor(log_prob), (B * N, T)))
    np.testing.assert_allclose(choices.log_prob(B), log_prob.sum(axis=(1, 2)), atol=FLOAT32)


def test_half_precision_is_summed_in_float32():
    log_prob = ops.full((B, 1000), -8.125, dtype="float16")
    with collect_choices() as choices:
        record_choice(log_prob)
    assert to_numpy(choices.log_prob(B)).tolist() == [-8125.0] * B


def test_nothing_is_kept_without_a_collector_or_after_it():
    record_choice(ops.zeros((B,)))
    with collect_choices() as choices:
        assert is_collecting()
    record_choice(ops.zeros((B,)))
    assert not is_collecting()
    assert choices.log_prob(B) is None and choices.entropy(B) is None


def test_the_innermost_collector_gets_the_choice():
    with collect_choices() as outer:
        with collect_choices() as inner:
            record_choice(ops.ones((B,)))
        assert outer.log_prob(B) is None
        assert to_numpy(inner.log_prob(B)).tolist() == [1.0] * B


def test_a_collector_closes_after_an_error():
    with pytest.raises(RuntimeError), collect_choices():
        raise RuntimeError
    assert not is_collecting()


def test_a_collector_belongs_to_its_thread():
    with collect_choices() as choices:
        thread = threading.Thread(target=lambda: record_choice(ops.ones((B,))))
        thread.start()
        thread.join()
    assert choices.log_prob(B) is None


def test_a_query_with_nothing_to_attend_has_one_way_to_choose_nothing():
    scores, mask = ops.zeros((3, 1, 3)), ops.zeros((3, 1, 3), "bool")
    with collect_choices(numbers=ops.arange(3, dtype="int32")) as choices:
        selection = given_choice(scores, mask)
    assert choices.count == 3 and not to_numpy(selection).any()
    assert to_numpy(choices.log_prob(3)).tolist() == [0.0, np.float32(LOWEST), np.float32(LOWEST)]


def test_choices_of_an_unknown_number_of_positions_cannot_be_enumerated():
    layer = ops.zeros((2, 3, 5))
    with collect_choices(numbers=ops.zeros((2,), "int32")) as choices:
        assert given_choice(layer).shape == (2, 3, 5)
        assert choices.count == 5**3
        with pytest.raises(ValueError, match=r"Received scores of shape \(None, 3, None\)"):
            choices.next_choice(keras.KerasTensor((None, 3, None)))
