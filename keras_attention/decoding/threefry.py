"""Random numbers as a function of a key and a counter: the cipher Threefry.

`keras.random` gives other numbers under XLA than without it on TensorFlow, and takes no tensor as a seed. A cipher is
integer arithmetic: it gives the same numbers on every backend, eagerly and compiled, and needs no state in a loop.
"""

from keras import ops

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def rotate_left(words, count):
    """int32 `words`, of which the upper `count` bits move to the lower end."""
    # A right shift of a signed word repeats its sign, which the mask removes.
    lower = ops.bitwise_and(ops.bitwise_right_shift(words, 32 - count), 2**count - 1)
    return ops.bitwise_or(ops.bitwise_left_shift(words, count), lower)


def threefry(key, counter):
    """Threefry-2x32 with 20 rounds: two random words for each pair of words of the counter.

    Args:
        key: Pair of int32 tensors.
        counter: Pair of int32 tensors; all four broadcast.

    Returns:
        Pair of int32 tensors, 64 random bits. Additions wrap around.

    References:
        Salmon, Moraes, Dror and Shaw, 2011, section 4.2, "Parallel random numbers: as easy as 1, 2, 3".
    """
    key = (*key, ops.bitwise_xor(ops.bitwise_xor(key[0], key[1]), PARITY))
    first, second = counter[0] + key[0], counter[1] + key[1]
    for injection in range(1, 6):
        for rotation in ROTATIONS[(injection - 1) % 2]:
            first = first + second
            second = ops.bitwise_xor(rotate_left(second, rotation), first)
        first = first + key[injection % 3]
        second = second + key[(injection + 1) % 3] + injection
    return first, second


def threefry_uniform(key, counter):
    """float32 numbers in [0, 1), multiples of 2^-24, one for each pair of words of the counter."""
    bits, _ = threefry(key, counter)
    return ops.cast(ops.bitwise_and(ops.bitwise_right_shift(bits, 8), 2**24 - 1), "float32") * 2.0**-24
