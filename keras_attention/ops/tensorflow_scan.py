"""`recursions.scan` on TensorFlow, where XLA cannot compile the gradient of `keras.ops.scan`."""

from keras import ops


def tensorflow_scan(step, initial, inputs):
    """The states `(L, ...)` after each of L steps; arguments as those of `recursions.scan`.

    Inputs are popped from one list and states pushed onto another. The gradient of a pop is a push and that of a push a
    pop, so work grows with L in both directions; that of `inputs[index]` would be as long as the inputs, at every step.
    """
    import tensorflow as tf

    lists = tf.raw_ops
    initial, inputs = ops.convert_to_tensor(initial), ops.convert_to_tensor(inputs)
    L, entry_shape = tf.shape(inputs)[0], tf.shape(inputs)[1:]
    is_empty = tf.logical_or(L < 1, tf.size(initial) < 1)  # then no step is taken: few functions take nothing at all
    capacity = tf.maximum(L, 1)  # XLA has no lists of 0
    of_entry = {"element_shape": entry_shape, "element_dtype": inputs.dtype}
    of_state = {"element_shape": tf.shape(initial), "element_dtype": initial.dtype}

    def body(state, remaining, states):
        remaining, entry = lists.TensorListPopBack(input_handle=remaining, **of_entry)
        state = step(state, tf.ensure_shape(entry, inputs.shape[1:]))
        return state, remaining, lists.TensorListPushBack(input_handle=states, tensor=state)

    nothing = tf.zeros(tf.concat([[capacity - L], entry_shape], axis=0), inputs.dtype)
    last_first = tf.concat([nothing, tf.reverse(inputs, [0])], axis=0)
    remaining = lists.TensorListFromTensor(tensor=last_first, element_shape=entry_shape)
    states = lists.EmptyTensorList(max_num_elements=capacity, **of_state)
    # XLA stores what the gradient needs only in loops with a known number of rounds.
    start = initial, remaining, states
    *_, states = tf.while_loop(lambda *_: tf.logical_not(is_empty), body, start, maximum_iterations=capacity)
    states = lists.TensorListStack(input_handle=states, **of_state)[:L]
    states = tf.reshape(states, tf.concat([[L], tf.shape(initial)], axis=0))  # also those that no step has made
    return tf.ensure_shape(states, (inputs.shape[0], *initial.shape))
