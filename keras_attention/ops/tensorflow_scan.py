"""`recursions.scan` on TensorFlow, where XLA cannot compile the gradient of `keras.ops.scan`.

In a graph entries are popped from lists and outputs pushed onto others. The gradient of a pop is a push and that of a push
a pop, so work grows with L in both directions; that of `inputs[index]` would be as long as the inputs, at every step.
"""

from keras_attention.ops.recursions import python_scan, tensors_of, with_tensors, zero_entry


def tensorflow_scan(step, state, inputs):
    """The state and the outputs after L steps; arguments as those of `recursions.scan`."""
    import tensorflow as tf

    if tf.executing_eagerly():
        return python_scan(step, state, inputs)
    entries = tensors_of(inputs)
    L = tf.shape(entries[0])[0]
    capacity = tf.maximum(L, 1)  # XLA has no lists of 0
    _, output = step(state, zero_entry(inputs))  # only its types and shapes are read
    examples = tensors_of(output)

    def body(now, remaining, found):
        remaining, entry = zip(*map(popped, remaining, entries), strict=True)
        after, output = step(with_tensors(state, now), with_tensors(inputs, entry))
        after = [tf.ensure_shape(tensor, like.shape) for tensor, like in zip(tensors_of(after), now, strict=True)]
        return after, list(remaining), list(map(pushed, found, tensors_of(output)))

    start = (
        tensors_of(state),
        [list_of_rows(tensor, capacity) for tensor in entries],
        [empty_list(example, capacity) for example in examples],
    )
    # XLA stores what the gradient needs only in loops with a known number of rounds.
    last, _, found = tf.while_loop(lambda *_: L > 0, body, start, maximum_iterations=capacity)
    rows = [stacked(handle, example, L) for handle, example in zip(found, examples, strict=True)]
    rows = [tf.ensure_shape(tensor, (entries[0].shape[0], *tensor.shape[1:])) for tensor in rows]
    return with_tensors(state, last), with_tensors(output, rows)


def list_of_rows(tensor, capacity):
    """The rows of a tensor, the first one last."""
    import tensorflow as tf

    L, *row = tf.unstack(tf.shape(tensor))
    nothing = tf.zeros([capacity - L, *row], tensor.dtype)
    last_first = tf.concat([nothing, tf.reverse(tensor, [0])], axis=0)
    return tf.raw_ops.TensorListFromTensor(tensor=last_first, element_shape=tf.shape(tensor)[1:])


def popped(handle, tensor):
    """A list of rows of `tensor` without its last one, and that row."""
    import tensorflow as tf

    handle, row = tf.raw_ops.TensorListPopBack(
        input_handle=handle, element_shape=tf.shape(tensor)[1:], element_dtype=tensor.dtype
    )
    return handle, tf.ensure_shape(row, tensor.shape[1:])


def empty_list(example, capacity):
    """A list with room for `capacity` tensors like `example`."""
    import tensorflow as tf

    return tf.raw_ops.EmptyTensorList(
        element_shape=tf.shape(example), max_num_elements=capacity, element_dtype=example.dtype
    )


def pushed(handle, tensor):
    import tensorflow as tf

    return tf.raw_ops.TensorListPushBack(input_handle=handle, tensor=tensor)


def stacked(handle, example, L):
    """The first L tensors of a list, `(L, ...)`."""
    import tensorflow as tf

    shape = tf.shape(example)
    rows = tf.raw_ops.TensorListStack(input_handle=handle, element_shape=shape, element_dtype=example.dtype)[:L]
    rows = tf.reshape(rows, tf.concat([[L], shape], axis=0))  # also those that no step has made
    return tf.ensure_shape(rows, (None, *example.shape))
