"""Which class of a hierarchy a method comes from."""


def comes_first(cls, name, other):
    """Whether `cls` has the attribute `name` from an earlier class than the attribute `other`.

    Whoever writes `name` anew, in a subclass or a mixin, does not mean the `other` that belongs to the old one.
    """
    place, place_of_other = (
        next(index for index, each in enumerate(cls.__mro__) if attribute in vars(each)) for attribute in (name, other)
    )
    return place < place_of_other
