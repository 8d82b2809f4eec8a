"""`recursions.scan` on TensorFlow, where XLA cannot compile the gradient of `keras.ops.scan`."""

from keras_attention.ops.recursions import python_scan, tensors_of, with_tensors, zero_entry


def tensorflow_scan(step, state, inputs):
    """The state and the outputs after L steps; arguments as those of `recursions.scan`.

    In a graph entries are popped from lists and outputs pushed onto others. The gradient of a pop is a push and that of a
    push a pop, so work grows with L in both directions; that of `inputs[index]` would be as long as the inputs, at every
    step.
    """
    import tensorflow as tf

    if tf.executing_eagerly():
        return python_scan(step, state, inputs)
    lists = tf.raw_ops
    entries = tensors_of(inputs)
    L = tf.shape(entries[0])[0]
    capacity = tf.maximum(L, 1)  # XLA has no lists of 0
    _, output = step(state, zero_entry(inputs))  # only its shapes are used
    shapes = [(tensor.shape, tf.shape(tensor), tensor.dtype) for tensor in tensors_of(output)]

    def filled(tensor):
        """The rows of a tensor as a list, the first one last."""
        nothing = tf.zeros(tf.concat([[capacity - L], tf.shape(tensor)[1:]], axis=0), tensor.dtype)
        last_first = tf.concat([nothing, tf.reverse(tensor, [0])], axis=0)
        return lists.TensorListFromTensor(tensor=last_first, element_shape=tf.shape(tensor)[1:])

    def popped(handle, tensor):
        handle, row = lists.TensorListPopBack(
            input_handle=handle, element_shape=tf.shape(tensor)[1:], element_dtype=tensor.dtype
        )
        return handle, tf.ensure_shape(row, tensor.shape[1:])

    def body(now, remaining, found):
        remaining, entry = zip(*map(popped, remaining, entries), strict=True)
        following, output = step(with_tensors(state, now), with_tensors(inputs, entry))
        following = [
            tf.ensure_shape(after, before.shape) for before, after in zip(now, tensors_of(following), strict=True)
        ]
        found = [
            lists.TensorListPushBack(input_handle=h, tensor=t) for h, t in zip(found, tensors_of(output), strict=True)
        ]
        return following, list(remaining), found

    empty = [
        lists.EmptyTensorList(element_shape=shape, max_num_elements=capacity, element_dtype=dtype)
        for _, shape, dtype in shapes
    ]
    # XLA stores what the gradient needs only in loops with a known number of rounds.
    start = tensors_of(state), [filled(tensor) for tensor in entries], empty
    last, _, found = tf.while_loop(lambda *_: L > 0, body, start, maximum_iterations=capacity)

    def stacked(handle, static, shape, dtype):
        rows = lists.TensorListStack(input_handle=handle, element_shape=shape, element_dtype=dtype)[:L]
        rows = tf.reshape(rows, tf.concat([[L], shape], axis=0))  # also those that no step has made
        return tf.ensure_shape(rows, (entries[0].shape[0], *static))

    rows = [stacked(handle, *one) for handle, one in zip(found, shapes, strict=True)]
    return with_tensors(state, last), with_tensors(output, rows)
