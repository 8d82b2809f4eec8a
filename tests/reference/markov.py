"""A step function of a Markov chain."""

from keras import ops


def markov(table):
    """Step function, without a state, of the chain whose logits after each token are the rows of `table`."""
    table = ops.convert_to_tensor(table)

    def step(tokens, state):
        return ops.take(table, tokens, axis=0), state

    return step
