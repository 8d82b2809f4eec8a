import threading

import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from tolerances import FLOAT32

from keras_attention import alignments
from keras_attention.alignments import Reinforce
from keras_attention.alignments.estimators import Recorder, is_recording, record_choice
from keras_attention.ops import choices
from keras_attention.ops.softmax import LOWEST

B, T, N = 2, 3, 17


def test_log_probabilities_are_summed_for_each_example():
    first, second = normal(B, T, seed=1), normal(B, seed=2)
    with Recorder() as recorder:
        record_choice(ops.convert_to_tensor(first), ops.convert_to_tensor(second))
        record_choice(ops.convert_to_tensor(second))
    np.testing.assert_allclose(recorder.log_prob(B), first.sum(axis=1) + second, atol=FLOAT32)
    np.testing.assert_allclose(recorder.entropy(B), second, atol=FLOAT32)


def test_axes_folded_into_the_batch_belong_to_their_example():
    log_prob = normal(B, N, T)
    with Recorder() as recorder:
        record_choice(ops.reshape(ops.convert_to_tensor(log_prob), (B * N, T)))
    np.testing.assert_allclose(recorder.log_prob(B), log_prob.sum(axis=(1, 2)), atol=FLOAT32)


def test_half_precision_is_summed_in_float32():
    log_prob = ops.full((B, 1000), -8.125, dtype="float16")
    with Recorder() as recorder:
        record_choice(log_prob)
    assert to_numpy(recorder.log_prob(B)).tolist() == [-8125.0] * B


def test_nothing_is_kept_without_a_collector_or_after_it():
    record_choice(ops.zeros((B,)))
    with Recorder() as recorder:
        assert is_recording()
    record_choice(ops.zeros((B,)))
    assert not is_recording()
    assert recorder.log_prob(B) is None and recorder.entropy(B) is None


def test_the_innermost_collector_gets_the_choice():
    with Recorder() as outer:
        with Recorder() as inner:
            record_choice(ops.ones((B,)))
        assert outer.log_prob(B) is None
        assert to_numpy(inner.log_prob(B)).tolist() == [1.0] * B


def test_a_collector_closes_after_an_error():
    with pytest.raises(RuntimeError), Recorder():
        raise RuntimeError
    assert not is_recording()


def test_a_collector_belongs_to_its_thread():
    with Recorder() as recorder:
        thread = threading.Thread(target=lambda: record_choice(ops.ones((B,))))
        thread.start()
        thread.join()
    assert recorder.log_prob(B) is None


# === Enumeration ===


def numbered(numbers, scores, mask=None, alignment="softmax"):
    with Recorder(numbers=ops.convert_to_tensor(numbers, "int32")) as recorder:
        selection = Reinforce().weights(alignments.get(alignment), scores, mask, None)
    return recorder, selection


def test_the_numbers_of_two_choices_make_every_pair():
    with Recorder(numbers=ops.arange(15, dtype="int32")) as recorder:
        rows = [Reinforce().weights(alignments.get("softmax"), ops.zeros((15, 1, S)), None, None) for S in (3, 5)]
    first, second = (to_numpy(selection)[:, 0].argmax(axis=-1).tolist() for selection in rows)
    assert sorted(zip(first, second, strict=True)) == [(i, j) for i in range(3) for j in range(5)]
    assert recorder.count == 15


def test_a_query_with_nothing_to_attend_has_one_way_to_choose_nothing():
    recorder, selection = numbered([0, 1, 2], ops.zeros((3, 1, 3)), ops.zeros((3, 1, 3), "bool"))
    assert recorder.count == 3 and not to_numpy(selection).any()
    assert to_numpy(recorder.log_prob(3)).tolist() == [0.0, np.float32(LOWEST), np.float32(LOWEST)]


@pytest.mark.parametrize("name", ["sparsemax", "entmax"])
def test_the_probabilities_of_all_selections_of_a_sparse_alignment_sum_to_one(name):
    scores = np.broadcast_to(normal(1, 2, 3), (9, 2, 3))
    recorder, _ = numbered(range(9), ops.convert_to_tensor(scores), alignment=name)
    probabilities = np.exp(to_numpy(recorder.log_prob(9)))
    np.testing.assert_allclose(probabilities.sum(), 1.0, atol=FLOAT32)


def test_choices_of_an_unknown_number_of_positions_cannot_be_enumerated():
    recorder, selection = numbered([0, 0], ops.zeros((2, 3, 5)))
    assert selection.shape == (2, 3, 5)
    assert recorder.count == 5**3
    with pytest.raises(ValueError, match=r"Received scores of shape \(None, 3, None\)"):
        recorder.next_selection(alignments.get("softmax"), keras.KerasTensor((None, 3, None)))


def test_more_joint_choices_than_an_integer_counts_are_counted():
    recorder, selection = numbered([4, 3], ops.zeros((2, 1009, 5)))
    assert recorder.count == 5**1009
    assert to_numpy(selection)[:, :2].argmax(axis=-1).tolist() == [[4, 0], [3, 0]]


@pytest.mark.parametrize("name", ["sigmoid", "linear_chain", "monotonic", "dependency_tree"])
def test_an_alignment_whose_selections_have_no_numbers_cannot_be_enumerated(name):
    with pytest.raises(ValueError, match=rf"Enumeration needs .* Received {type(alignments.get(name)).__name__}\."):
        numbered([0, 0], ops.zeros((2, 3, 3)), alignment=name)


def test_the_names_of_version_0_1_stand_for_the_recorder():
    with choices.collect_choices() as recorder:
        choices.record_choice(ops.ones((B,)))
    assert isinstance(recorder, Recorder)
    assert to_numpy(recorder.log_prob(B)).tolist() == [1.0] * B
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = choices.nothing
