"""An attention as a template: an unbuilt layer of which a block or a model makes its attentions, each a copy."""

import keras

from keras_attention import positions
from keras_attention.layers.multi_head_attention import MultiHeadAttention
from keras_attention.saving.lookup import copy_of, from_config

# Options that compare the positions of query and key, which are of one sequence: `None` in an attention to another one.
WITHIN_A_SEQUENCE = ("sliding_window", "position")


def get_template(attention, **shorthands):
    """The template `attention`, or that of its config; `None` stays.

    Args:
        attention: A `MultiHeadAttention`, its config, or `None`.
        shorthands: Argument -> (its value, its default), of those that stand for options of the attention.

    Raises:
        TypeError: If it is something else.
        ValueError: If a shorthand is given beside a template that says something else.
    """
    if attention is None:
        return None
    template = from_config(attention) if isinstance(attention, dict) else attention
    if not isinstance(template, MultiHeadAttention):
        raise TypeError(
            f"`attention` must be a `MultiHeadAttention`, of which copies are made. Received: {attention!r} of type "
            f"{type(attention).__name__}. Pass for example `MultiHeadAttention(num_heads=8, key_dim=64)`."
        )
    for name, (value, default) in shorthands.items():
        option = name.removeprefix("attention_")
        if value not in (default, getattr(template, option)):
            raise ValueError(
                f"`{name}` must be left out beside `attention`, which says it itself. Received {name}={value!r} and an "
                f"attention with {option}={getattr(template, option)!r}. Make the attention with the {option} that it should "
                "have."
            )
    # A file would hold the weights of a template that is built, for which there is no place when it is read.
    return copy_of_attention(template, seed=template.seed) if template.built else template


def get_position(position, template):
    """The position scheme `position` of a self-attention, which may stand beside a template that has none; `None` stays.

    Raises:
        ValueError: If the template has one.
    """
    if None not in (position, template) and template.position is not None:
        raise ValueError(
            "`position` must be left out beside an `attention` that has one itself. Received "
            f"position={position!r} and an attention with position={template.position!r}."
        )
    return positions.get(position)


def copy_of_attention(template, index=0, **changes):
    """An unbuilt attention like the template but for `changes`; its score, its alignment and other parts are copies, too.

    What draws by a seed draws other numbers in copies of another `index`.
    """
    layers = {name: getattr(template, name, None) for name in template.get_config()}
    parts = {name: copy_of(part, index) for name, part in layers.items() if isinstance(part, keras.layers.Layer)}
    return copy_of(template, index, **{**parts, **changes})


def check_output_width(attention, query_shape, memory_shape):
    """Raises unless the output of an attention is as wide as its query, to which a block adds it."""
    output_shape = tuple(attention.compute_output_shape(query_shape, memory_shape))
    if output_shape != tuple(query_shape):
        raise ValueError(
            f"The output of `attention` must have the shape of the query, here {tuple(query_shape)}. Received an attention "
            f"with outputs of shape {output_shape}. Make it without `output_shape`."
        )
