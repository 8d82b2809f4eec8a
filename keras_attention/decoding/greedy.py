"""Greedy search: the most probable token at every step."""

from keras import ops

from keras_attention.decoding.loop import extend_until_end
from keras_attention.decoding.step import check_max_length
from keras_attention.decoding.symbols import check_symbols
from keras_attention.tokens import END, PAD


def greedy_search(step, state, start, max_length, end=END, pad=PAD):
    """Extends each sequence by its most probable token until it ends.

    `tokens[t] = argmax over v ≠ pad of p(v | start, tokens[:t])`, `score = sum over t of log p(tokens[t] | ...)`

    The sum runs up to and including the end symbol. `p` is the model's distribution as it is, with padding in it, while
    a sequence that has not ended never emits padding: the probability that a model wastes on padding lowers the score.
    Where `pad` equals `end`, as in a pointer network that ends with 0, nothing is excluded.

    All is one `keras.ops.while_loop` that writes into a preallocated tensor, and it stops as soon as every sequence has
    ended. It runs eagerly, in a graph and compiled (`jax.jit`, `jit_compile=True`), on any batch size, zero too.

    Args:
        step: Function `(tokens, state) -> (logits, state)` that takes the tokens emitted last, int32 `(B,)`, and returns
            logits `(B, V)` for the next ones. A sequence that has ended is given its end symbol once and then `pad`; its
            logits are ignored.
        state: Nest (tuples, lists, dicts) of tensors, batch first, and scalars; `()` if there is none. Structure, shapes
            and dtypes stay the same from step to step.
        start: Integer tensor `(B,)`, the start symbols.
        max_length: Integer, size L of the result; an integer scalar tensor where the backend allows a shape to depend
            on one (not while XLA or JAX compiles).
        end: Integer, the id that ends a sequence; or a list or tuple of integers, each of which ends it.
        pad: Integer, what fills the result after the end: an id, or a negative number. Sequences that have ended are given
            `end` instead of a negative one.

    Returns:
        `(tokens, scores)`: int32 `(B, L)` without the start symbol, the end symbol kept, `pad` after it; and float32
        `(B,)`. A sequence that does not end within L tokens has no end symbol. A sequence whose logits are no
        distribution at one of its steps (NaN or +inf among them, or all of them -inf) is padding with the score NaN.

    Raises:
        ValueError: If `start` is not `(B,)`, `max_length` is negative, `end` or `pad` are not integers, an id is
            outside the vocabulary of the logits, or `step` returns a wrong shape or structure.
        TypeError: If `start` or `max_length` are not integers, or `step` does not return a pair.

    Example:
        After the start symbol 1 comes 3 with probability 0.9, after 3 the end symbol 2 with probability 0.8.

        >>> table = ops.log([[0.25, 0.25, 0.25, 0.25], [0.02, 0.03, 0.05, 0.9], [0.25, 0.25, 0.25, 0.25],
        ...                  [0.05, 0.05, 0.8, 0.1]])
        >>> def step(tokens, state):
        ...     return ops.take(table, tokens, axis=0), state
        >>> tokens, scores = greedy_search(step, (), start=ops.array([1, 3]), max_length=3)
        >>> ops.convert_to_numpy(tokens).tolist()
        [[3, 2, 0], [2, 0, 0]]
        >>> [round(float(score), 4) for score in scores]  # log(0.9 · 0.8), log(0.8)
        [-0.3285, -0.2231]
    """
    start, symbols = check_symbols(start, end, pad)
    max_length = check_max_length(max_length)

    def most_probable(log_probabilities, index):
        return ops.argmax(log_probabilities, axis=-1)

    return extend_until_end(step, most_probable, state, start, max_length, symbols)
