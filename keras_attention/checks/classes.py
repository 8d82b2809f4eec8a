"""Checks of classes and layers: where a method comes from, and whom a part belongs to."""


def comes_first(cls, name, other):
    """Whether `cls` has the attribute `name` from an earlier class than the attribute `other`.

    Whoever writes `name` anew, in a subclass or a mixin, does not mean the `other` that belongs to the old one.
    """
    place, place_of_other = (
        next(index for index, each in enumerate(cls.__mro__) if attribute in vars(each)) for attribute in (name, other)
    )
    return place < place_of_other


def check_unbuilt(part):
    """Raises where another layer has built this part of a layer, such as a score or an alignment."""
    if part.built:
        raise ValueError(
            f"A score, alignment or position scheme belongs to one attention layer. Received {part.name!r}, which is built "
            "already: Keras could not save what two layers share. Pass a new one to each layer."
        )
