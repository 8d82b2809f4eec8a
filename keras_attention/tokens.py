"""The special token ids, in one place. Every vocabulary of the package starts with them."""

PAD = 0
START = 1
END = 2
UNKNOWN = 3
