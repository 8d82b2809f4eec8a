"""How a message quotes the value it was given, and says where it stood."""

import contextlib

LONGEST = 80  # characters of a value in a message


def shortened(value, longest=LONGEST):
    """A value of any size as a message can hold it: `"[1, 2, 3 ... (50000000 characters) ... 6, 7]"`"""
    text = value if isinstance(value, str) else repr(value)
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]} ... ({len(text)} characters) ... {text[-(longest // 4) :]}"


@contextlib.contextmanager
def naming(place):
    """Puts the place in front of an error: `"there must be ..."`  ->  `"hulls.txt, line 3: there must be ..."`"""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error
