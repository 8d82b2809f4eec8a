"""Recursions over positions, one after the other, with gradients on every backend and under XLA."""

import keras
from keras import ops

from keras_attention.checks.shapes import sizes_differ


def scan(step, state, inputs):
    """Takes L steps, one for each entry of the inputs, and returns the last state and the outputs of all steps.

        state, outputs[0] = step(state, inputs[0])
        state, outputs[1] = step(state, inputs[1])
        ...

    State, inputs and outputs are tensors or nests of tensors: dicts, lists and tuples, in which `None` may stand. The step
    may read other tensors and weights, and they get their gradients. Work, that of gradients too, grows with L.

    Where we differ from `keras.ops.scan`: XLA compiles the gradient on TensorFlow, and L may be zero on torch.

    A step is a pure function of tensors. It may be called once more, for the shapes of its outputs. What it records has to
    leave it as an output: open a `Recorder` of choices inside the step and return their log-probabilities.

    Args:
        step: Function of a state and an entry that returns the next state, of the same structure, shapes and types, and an
            output.
        state: Nest of tensors, the state before the first step.
        inputs: Nest of tensors `(L, ...)`. An entry is the nest of their rows.

    Returns:
        The state after the last step, and the outputs as a nest of tensors `(L, ...)`.

    Raises:
        ValueError: If the inputs have no length or several ones, or the form of the state changes.

    Example:
        >>> def step(state, number):
        ...     return state * number, {"sum": state + number}
        >>> scan(step, ops.array(1.0), ops.array([2.0, 3.0, 5.0]))
        (30.0, {"sum": [3.0, 5.0, 11.0]})
    """
    state, inputs = as_tensors(state), as_tensors(inputs)
    check_lengths(inputs)

    def checked_step(state, entry):
        following, output = step(state, entry)
        following = as_tensors(following)
        check_same_form(state, following)
        return with_tensors(state, tensors_of(following)), as_tensors(output)

    if keras.backend.backend() == "jax":
        return ops.scan(checked_step, state, inputs)
    if keras.backend.backend() == "tensorflow":
        from keras_attention.ops.tensorflow_scan import tensorflow_scan

        return tensorflow_scan(checked_step, state, inputs)
    return python_scan(checked_step, state, inputs)


def python_scan(step, state, inputs):
    """`scan` as a loop in Python."""
    outputs = []
    for entry in zip(*map(ops.unstack, tensors_of(inputs)), strict=True):
        state, output = step(state, with_tensors(inputs, entry))
        outputs.append(output)
    if not outputs:
        _, output = step(state, zero_entry(inputs))
        return state, with_tensors(output, [ops.zeros((0, *one.shape), one.dtype) for one in tensors_of(output)])
    stacked = map(ops.stack, zip(*map(tensors_of, outputs), strict=True))
    return state, with_tensors(outputs[0], stacked)


# === Nests of tensors ===


def tensors_of(nest):
    """The tensors of a nest as a list."""
    return [leaf for leaf in keras.tree.flatten(nest) if leaf is not None]


def with_tensors(nest, tensors):
    """The nest with other tensors, which stand in the order of `tensors_of`."""
    tensors = iter(tensors)
    leaves = [None if leaf is None else next(tensors) for leaf in keras.tree.flatten(nest)]
    return keras.tree.pack_sequence_as(nest, leaves)


def as_tensors(nest):
    return with_tensors(nest, map(ops.convert_to_tensor, tensors_of(nest)))


def zero_entry(inputs):
    """An entry of zeros, for a step that only shows what an output looks like."""
    return with_tensors(inputs, [ops.zeros(ops.shape(tensor)[1:], tensor.dtype) for tensor in tensors_of(inputs)])


def form_of(nest):
    """The nest with types and shapes in place of its tensors."""
    forms = [(keras.backend.standardize_dtype(tensor.dtype), tuple(tensor.shape)) for tensor in tensors_of(nest)]
    return with_tensors(nest, forms)


# === Checks ===


def check_lengths(inputs):
    """Raises unless the inputs are tensors of one length."""
    shapes = [tensor.shape for tensor in tensors_of(inputs)]
    if not shapes or not all(map(len, shapes)) or any(sizes_differ(shapes[0][0], shape[0]) for shape in shapes):
        raise ValueError(
            f"The inputs of a scan must be tensors (L, ...) of one length. Received {form_of(inputs)}. Where a step needs no "
            "input, pass `keras.ops.arange(L)`."
        )


def check_same_form(state, following):
    """Raises unless the next state has the structure, types and shapes of the state, as far as shapes are known."""

    def known(nest):
        return [(path, leaf) for path, leaf in keras.tree.flatten_with_path(nest) if leaf is not None]

    before, after = known(state), known(following)
    if [path for path, _ in before] != [path for path, _ in after] or any(
        have_different_forms(first, second) for (_, first), (_, second) in zip(before, after, strict=True)
    ):
        raise ValueError(
            "A step of a scan must return a state of the structure, types and shapes that it received. Received "
            f"{form_of(state)}, returned {form_of(following)}. Cast or reshape it, or return it as an output."
        )


def have_different_forms(first, second):
    types = [keras.backend.standardize_dtype(tensor.dtype) for tensor in (first, second)]
    ranks = [len(tensor.shape) for tensor in (first, second)]
    return types[0] != types[1] or ranks[0] != ranks[1] or any(map(sizes_differ, first.shape, second.shape))
