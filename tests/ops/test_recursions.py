import keras
import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy
from reference.gradients import gradient
from tolerances import FLOAT32

from keras_attention.ops.recursions import python_scan, scan
from keras_attention.training import Recorder, record_choice

L, B, D = 5, 3, 7
ON_TENSORFLOW = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="the loop is TensorFlow's")
MIXING = 0.3 * normal(D, D, seed=1)


def arguments(length=L, batch=B):
    """`hidden (B, D)`, `shifts (L, B, D)` and `is_skipped (L, B, 1)`."""
    is_skipped = np.arange(length * batch).reshape(length, batch, 1) % 3 == 2
    return normal(batch, D), normal(length, batch, D, seed=2), is_skipped


def everything(scan, hidden, shifts, is_skipped, mixing=MIXING):
    """States, inputs and outputs are nests with floats, integers, booleans and `None`; `mixing` comes from outside."""

    def step(state, entry):
        (is_skipped, _), before = entry["rest"], state["hidden"]
        hidden = ops.tanh(ops.matmul(before, mixing)) * before + entry["shift"]
        hidden = ops.where(is_skipped, before, hidden)
        is_large = hidden > 0.5
        state = {"hidden": hidden, "count": state["count"] + ops.sum(ops.cast(is_large, "int32")), "none": None}
        return state, (before, [is_large, state["count"]], None, {"total": ops.sum(hidden, axis=-1)})

    start = {"hidden": hidden, "count": ops.cast(2, "int32"), "none": None}
    return scan(step, start, {"shift": shifts, "rest": (is_skipped, None)})


def loop(hidden, shifts, is_skipped):
    """The same in NumPy and float64, the outputs one after the other."""
    hidden, count, outputs = hidden.astype("float64"), 2, [[] for _ in range(4)]
    for shift, skipped in zip(shifts, is_skipped, strict=True):
        before, hidden = hidden, np.where(skipped, hidden, np.tanh(hidden @ MIXING) * hidden + shift)
        is_large = hidden > 0.5
        count += is_large.sum()
        for found, output in zip(outputs, (before, is_large, count, hidden.sum(axis=-1)), strict=True):
            found.append(output)
    return hidden, count, outputs


@pytest.mark.parametrize(("length", "batch"), [(L, B), (1, B), (0, B), (L, 0), (0, 0)])
def test_states_and_outputs_equal_the_loop(length, batch):
    state, (before, (is_large, counts), none, totals) = everything(scan, *arguments(length, batch))
    hidden, count, expected = loop(*arguments(length, batch))
    assert none is None and state["none"] is None
    np.testing.assert_allclose(to_numpy(state["hidden"]), hidden, atol=FLOAT32)
    assert int(state["count"]) == count
    shapes = [(length, batch, D), (length, batch, D), (length,), (length, batch)]
    types = ["float32", "bool", "int32", "float32"]
    found = [before, is_large, counts, totals["total"]]
    for tensor, value, shape, dtype in zip(found, expected, shapes, types, strict=True):
        assert tuple(tensor.shape) == shape and keras.backend.standardize_dtype(tensor.dtype) == dtype
        np.testing.assert_allclose(to_numpy(tensor), np.reshape(value, shape), atol=FLOAT32)


def total(scan, hidden, shifts, is_skipped, mixing):
    """A number that depends on the last state and on two of the outputs."""
    hidden, shifts, is_skipped, mixing = map(ops.convert_to_tensor, (hidden, shifts, is_skipped, mixing))
    state, (before, _, _, totals) = everything(scan, hidden, shifts, is_skipped, mixing)
    unused = 0.0 * (ops.sum(shifts) + ops.sum(mixing))  # torch wants to see what a gradient is taken by
    return sum((ops.sum(ops.sin(tensor)) for tensor in (state["hidden"], before, totals["total"])), unused)


def slopes(scan, hidden, shifts, is_skipped, mixing):
    """Gradients of the total by hidden state, inputs and the tensor from outside."""
    return [
        gradient(lambda hidden: total(scan, hidden, shifts, is_skipped, mixing), hidden),
        gradient(lambda shifts: total(scan, hidden, shifts, is_skipped, mixing), shifts),
        gradient(lambda mixing: total(scan, hidden, shifts, is_skipped, mixing), mixing),
    ]


@pytest.mark.parametrize(("length", "batch"), [(L, B), (0, B)])
def test_gradients_equal_those_of_the_loop(length, batch):
    given = *arguments(length, batch), MIXING
    for found, expected in zip(slopes(scan, *given), slopes(python_scan, *given), strict=True):
        np.testing.assert_allclose(found, expected, atol=FLOAT32, rtol=FLOAT32)


# === Graphs of TensorFlow, which have a loop of their own ===


def derivatives(order):
    """Function of `given` that returns the gradients of the total, and from order 2 on those of a function of them."""
    import tensorflow as tf

    def first(*given):
        sources = given[0], given[1], given[3]  # not the boolean one
        with tf.GradientTape() as tape:
            tape.watch(sources)
            value = total(scan, *given)
        return tape.gradient(value, sources, unconnected_gradients="zero")

    def second(*given):
        sources = given[0], given[1], given[3]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            value = sum(tf.reduce_sum(tf.sin(slope)) for slope in first(*given))
        return tape.gradient(value, sources, unconnected_gradients="zero")

    return first if order == 1 else second


@ON_TENSORFLOW
@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "XLA"])
@pytest.mark.parametrize(("order", "batch"), [(1, None), (2, B)], ids=["all sizes unknown", "length unknown"])
def test_first_and_second_derivatives_equal_those_of_the_loop_in_graphs(order, batch, jit_compile):
    import tensorflow as tf

    shapes = [(batch, D), (None, batch, D), (None, batch, 1), (D, D)]
    types = ["float32", "float32", "bool", "float32"]
    signature = [tf.TensorSpec(shape, dtype) for shape, dtype in zip(shapes, types, strict=True)]
    compiled = tf.function(derivatives(order), jit_compile=jit_compile, input_signature=signature)
    for sizes in [(L, B), (0, B)] if batch else [(L, B), (0, B), (L, 0)]:
        given = [tf.constant(array) for array in (*arguments(*sizes), MIXING)]
        for found, expected in zip(compiled(*given), derivatives(order)(*given), strict=True):
            np.testing.assert_allclose(found, expected, atol=FLOAT32, rtol=1e-4)


# === Recorded choices ===


def log_probs_of_choices(scan, scores):
    """`(L, B)`; each choice depends on the one before."""

    def step(before, scores):
        logits = scores + ops.roll(before, 1, axis=-1)
        chosen = ops.one_hot(ops.argmax(logits, axis=-1), D, dtype=logits.dtype)
        with Recorder() as recorder:
            record_choice(ops.sum(chosen * ops.log_softmax(logits, axis=-1), axis=-1))
        return chosen + 0.1 * logits, recorder.log_prob(batch_size=B)

    return scan(step, ops.zeros((B, D)), scores)[1]


def test_choices_recorded_inside_a_step_leave_as_outputs():
    scores, factors = normal(L, B, D), ops.array(normal(L, B, seed=1))

    def value(scores, scan=scan):
        return ops.sum(log_probs_of_choices(scan, scores) * factors)

    expected = gradient(lambda scores: value(scores, python_scan), scores)
    np.testing.assert_allclose(gradient(value, scores), expected, atol=FLOAT32)
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        @tf.function(jit_compile=True)
        def compiled(scores):
            with tf.GradientTape() as tape:
                tape.watch(scores)
                total = value(scores)
            return tape.gradient(total, scores)

        np.testing.assert_allclose(compiled(tf.constant(scores)), expected, atol=FLOAT32)


# === Errors ===


def test_a_state_that_changes_its_form_is_refused():
    def refused(step, match):
        with pytest.raises(ValueError, match=match):
            scan(step, {"sum": ops.zeros((B,))}, ops.zeros((L, B)))

    refused(lambda state, entry: ({"sum": ops.zeros((D,))}, None), rf"float32.*\({B},\).*returned.*\({D},\)")
    refused(lambda state, entry: ({"sum": ops.zeros((B,), "int32")}, None), "structure, types and shapes.*int32")
    refused(lambda state, entry: (state["sum"], None), "'sum'.*returned \\('float32'")


def test_inputs_without_a_common_length_are_refused():
    for inputs in ([np.zeros((L, B)), np.zeros((B, L))], np.float32(3.0), ()):
        with pytest.raises(ValueError, match=r"must be tensors \(L, ...\) of one length"):
            scan(lambda state, entry: (state, None), np.float32(0.0), inputs)
