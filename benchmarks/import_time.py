"""Importing the package beside importing Keras, which it needs: what a script pays before its first line."""

from side_by_side import Comparison


def our_import():
    def work():
        import keras_attention  # noqa: F401

    return work


def keras_import():
    def work():
        import keras  # noqa: F401

    return work


COMPARISONS = [
    Comparison(
        "import in a new process",
        contenders={"keras_attention": our_import, "keras": keras_import},
        sizes={"default": {}, "smoke": {}},
        targets={"default": {"keras": 1.05}},
        fresh=True,
    )
]
