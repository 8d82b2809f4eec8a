"""How to install the packages that only a part of this one needs: the extras of `setup.cfg`."""


def how_to_install(extra):
    """`"plots"`  ->  the sentence for a message that a package of this extra is missing."""
    return (
        f"Install it with `pip install '.[{extra}]'` in the project's folder, from which keras_attention was installed."
    )
