"""Masks: what is masked has no influence, nothing attended gives zero, causal never looks ahead, masks travel."""

import keras
import numpy as np
import pytest
from contract.calls import accepts, built, call, gradients, random_factors, results, symbolic_arguments
from contract.cases import CAUSAL_CASES, LAYER_CASES, MASKED_CASES, POSITION_CASES, SIZES, WEIGHTS_CASES, each, shape_of
from tolerances import EXACT, FLOAT32

IMPLICIT_CASES = tuple(case for case in MASKED_CASES if case.masked_by and not case.vocabularies)
ROWS = {**SIZES, "B": 4}
CONTENTS = np.array([1e30, np.nan, np.inf, -np.inf], "float32")  # of the padding of each row


def each_mask(cases):
    return pytest.mark.parametrize(("case", "name"), [(case, name) for case in cases for name in case.masks], ids=str)


def each_explicit_mask(cases):
    """Ids mask themselves: an argument of a vocabulary has no content at its padding."""
    pairs = [(case, name) for case in cases for name in case.masks if name not in case.vocabularies]
    return pytest.mark.parametrize(("case", "name"), pairs, ids=str)


def one_mask(case, name, sizes=SIZES):
    """The padding mask called `name`; the other masks keep everything."""
    return {**case.full_masks(sizes), name: case.padding_masks(sizes)[name]}


# === Padding has no influence ===


@each_explicit_mask(MASKED_CASES)
def test_content_of_masked_positions_never_reaches_an_output(case, name):
    layer, arrays, masks = built(case), case.arrays(ROWS), one_mask(case, name, ROWS)
    expected = results(layer, case.masked(case.fill(arrays, name, masks[name], 0.0), masks))
    output = results(layer, case.masked(case.fill(arrays, name, masks[name], CONTENTS), masks))
    real = np.broadcast_to(case.real_positions(masks), output.shape)
    np.testing.assert_allclose(output[real], expected[real], atol=FLOAT32)


@each_explicit_mask(MASKED_CASES)
def test_content_of_masked_positions_never_reaches_a_gradient(case, name):
    layer, arrays, masks = built(case), case.arrays(ROWS), one_mask(case, name, ROWS)
    factors = random_factors(case, case.real_positions(masks), ROWS)
    filled = case.fill(arrays, name, masks[name], CONTENTS)
    inputs, weights = gradients(layer, case.masked(filled, masks), factors, **case.learning)
    for gradient in (*inputs.values(), *weights):
        assert np.isfinite(gradient).all()
    for gradient in case.positions(inputs, name, ~masks[name]):
        np.testing.assert_allclose(gradient, 0.0, atol=EXACT)


@each(MASKED_CASES)
def test_more_padding_changes_nothing(case):
    layer = built(case)
    arrays, masks = case.arrays(), case.padding_masks()
    longer_sizes = {**SIZES, "T": SIZES["T"] + 2, "S": SIZES["S"] + 3}
    longer = case.arrays(longer_sizes, seed=11)
    longer_masks = {name: np.zeros_like(mask) for name, mask in case.full_masks(longer_sizes).items()}
    for old, new in ((arrays, longer), (masks, longer_masks)):
        for name, array in old.items():
            new[name][tuple(slice(size) for size in array.shape)] = array
    expected = results(layer, case.masked(arrays, masks))
    output = results(layer, case.masked(longer, longer_masks))[tuple(slice(size) for size in expected.shape)]
    real = np.broadcast_to(case.real_positions(masks), expected.shape)
    np.testing.assert_allclose(output[real], expected[real], atol=FLOAT32)


# Where the T and the S positions of four rows stand: before, behind, between and around their padding.
PADDED_ROWS = {**ROWS, "T": 6, "S": 8}
SLOTS = {
    "T": np.array([[0, 1, 2], [3, 4, 5], [0, 2, 5], [1, 3, 4]]),
    "S": np.array([[0, 1, 2, 3, 4], [3, 4, 5, 6, 7], [0, 2, 3, 6, 7], [1, 2, 4, 5, 6]]),
}


def slots_of(case, row, axes):
    """Index of the real entries of a row of an array with these axes after the batch."""
    slots = {name: np.arange(SIZES[name]) if name in case.right_padded else SLOTS[name][row] for name in SLOTS}
    slots["P"] = np.append(0, slots["S"] + 1)
    return np.ix_(*(slots[axis] if axis in slots else np.arange(SIZES[axis]) for axis in axes))


def spread(case, axes, rows, padding):
    """`rows` of arrays with these axes after the batch, apart from each other and with `padding` around them."""
    result = np.full(shape_of("B" + axes, PADDED_ROWS), padding, rows.dtype)
    for row, array in enumerate(rows):
        result[row][slots_of(case, row, axes)] = array
    return result


def spread_rows(case, arrays, masks):
    """The call arguments with padding around the rows: 0 in ids, NaN elsewhere."""
    arguments = {}
    for name, array in arrays.items():
        if case.vocabularies.get(name) in SLOTS:  # positions of an axis, from 1 on
            array = np.append(np.zeros((4, 1), int), SLOTS[case.vocabularies[name]] + 1, axis=1)[
                np.arange(4)[:, None], array
            ]
            array = array.astype("int32")
        arguments[name] = spread(case, case.inputs[name][1:], array, 0 if name in case.vocabularies else np.nan)
    explicit = {name: mask for name, mask in masks.items() if name not in case.vocabularies}
    return {**arguments, **{name: spread(case, case.masks[name], mask, False) for name, mask in explicit.items()}}


@each((*MASKED_CASES, *POSITION_CASES))
def test_rows_with_padding_anywhere_are_the_rows_alone(case):
    layer, arrays, masks = built(case), case.arrays(ROWS), case.full_masks(ROWS)
    options = {"return_attention_scores": True} if case.weights else {}
    alone = keras.tree.flatten(results(layer, case.masked(arrays, masks), **options))
    padded = keras.tree.flatten(results(layer, spread_rows(case, arrays, masks), **options))
    axes = keras.tree.flatten((case.output, case.weights) if case.weights else case.output)
    for expected, output, letters in zip(alone, padded, axes, strict=True):
        for row in range(4):
            real = output[row][slots_of(case, row, letters[1:])]
            np.testing.assert_allclose(real, expected[row], atol=FLOAT32, err_msg=f"row {row}")


# === What a mask holds ===


@each_explicit_mask(MASKED_CASES)
def test_an_additive_mask_is_refused(case, name):
    masks = case.full_masks()
    masks[name] = np.where(masks[name], 0.0, -np.inf).astype("float32")
    with pytest.raises(TypeError, match=r"`\w*mask` must be boolean.* Received dtype float32 .*`mask == 0`"):
        results(built(case), case.masked(case.arrays(), masks))


@each(
    case for case in LAYER_CASES if set(case.masks) - set(case.vocabularies) and not issubclass(case.kind, keras.Model)
)
def test_an_input_of_floats_is_refused_as_a_mask(case):
    arguments = symbolic_arguments(case, SIZES)
    for name in set(case.masks) - set(case.vocabularies):
        arguments[name] = keras.Input(batch_shape=arguments[name].shape)
    with pytest.raises(TypeError, match=r'must be boolean.* Received dtype float32 .*`keras\.Input\(.*dtype="bool"\)`'):
        call(case.make(), arguments)


# === Nothing to attend ===


def nothing_in_first_row(case, name):
    masks = case.full_masks()
    masks[name][0] = False
    return masks


@each_mask(MASKED_CASES)
def test_fully_masked_row_is_finite_and_leaves_the_others_alone(case, name):
    layer, arrays, masks = built(case), case.arrays(), nothing_in_first_row(case, name)
    output = results(layer, case.masked(arrays, masks))
    assert np.isfinite(output).all()
    np.testing.assert_allclose(output[1:], results(layer, case.masked(arrays, case.full_masks()))[1:], atol=FLOAT32)
    if case.is_context:
        np.testing.assert_allclose(output[0], 0.0, atol=EXACT)
    inputs, weights = gradients(layer, case.masked(arrays, masks), random_factors(case), **case.learning)
    for gradient in (*inputs.values(), *weights):
        assert np.isfinite(gradient).all()


@each_mask(case for case in WEIGHTS_CASES if isinstance(case.weights, str))
@pytest.mark.parametrize("training", [True, False])
def test_weights_of_a_fully_masked_row_are_zero(case, name, training):
    arguments = case.masked(case.arrays(), nothing_in_first_row(case, name))
    _, weights = results(built(case), arguments, return_attention_scores=True, training=training)
    np.testing.assert_allclose(weights[0], 0.0, atol=EXACT)
    np.testing.assert_allclose(weights[1:].sum(axis=-1), 1.0, atol=FLOAT32)


@each_mask(WEIGHTS_CASES)
def test_masked_positions_have_weight_zero(case, name):
    masks = one_mask(case, name)
    _, weights = results(built(case), case.masked(case.arrays(), masks), return_attention_scores=True)
    axes = keras.tree.flatten(case.weights)
    for array, letters in zip(keras.tree.flatten(weights), axes, strict=True):
        if letters.endswith(case.masks[name]):
            mask = masks[name]
            mask = mask.reshape(SIZES["B"], *(1,) * (array.ndim - mask.ndim), *mask.shape[1:])
            assert not np.where(mask, 0.0, array).any()


# === Causal ===


def causal_call(case, layer, left_padding, changed=False, weights=False):
    """Outputs of self-attention under a causal mask; with `changed`, the last position holds something else."""
    sizes = {**SIZES, "S": SIZES["T"]} if len(case.causal) > 1 else SIZES
    arrays = case.arrays(sizes)
    for name in case.causal if changed else ():
        arrays[name][:, -1] = case.arrays(sizes, seed=11)[name][:, -1]
    masks = case.full_masks(sizes)
    for name, mask in masks.items():
        if left_padding and (case.masks[name] == "T" or len(case.causal) > 1):
            mask[:, 0] = False
    options = {"use_causal_mask": True} if accepts(layer, "use_causal_mask") else {}
    if weights:
        options["return_attention_scores"] = True
    return results(layer, case.masked(arrays, masks), **options)


@each(CAUSAL_CASES)
@pytest.mark.parametrize("left_padding", [False, True], ids=["full", "left_padding"])
def test_causal_attention_does_not_look_ahead(case, left_padding):
    layer = built(case, dropout=0.5)
    outputs = [causal_call(case, layer, left_padding, changed) for changed in (False, True)]
    np.testing.assert_allclose(outputs[0][:, :-1], outputs[1][:, :-1], atol=EXACT)
    assert np.abs(outputs[0][:, -1] - outputs[1][:, -1]).max() > FLOAT32


@each(case for case in CAUSAL_CASES if case.weights)
@pytest.mark.parametrize("left_padding", [False, True], ids=["full", "left_padding"])
def test_causal_weights_are_lower_triangular_and_agree_with_the_output(case, left_padding):
    layer = built(case, dropout=0.5)
    output = causal_call(case, layer, left_padding)
    same_output, weights = causal_call(case, layer, left_padding, weights=True)
    np.testing.assert_allclose(output, same_output, atol=FLOAT32)
    weights = weights["self"] if isinstance(weights, dict) else weights
    assert not np.triu(weights, 1).any()
    expected_first = 0.0 if left_padding else 1.0
    np.testing.assert_allclose(weights[..., 0, 0], expected_first, atol=FLOAT32)


# === Masks travel ===


def zeroed(arrays, argument, mask):
    """`arrays` with zeros in `argument` where it is masked, of which `keras.layers.Masking` makes that mask again."""
    return {**arrays, argument: np.where(mask[..., None], arrays[argument], 0.0).astype("float32")}


@each_mask(IMPLICIT_CASES)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside_attention_mask"])
def test_implicit_mask_is_the_explicit_mask(case, name, beside):
    layer, mask = built(case), case.padding_masks()[name]
    argument = case.argument_of(name)
    arrays = zeroed(case.arrays(), argument, mask)
    beside = beside and accepts(layer, "attention_mask")
    options = {"attention_mask": np.ones(shape_of(case.self_weights[-2:]), "bool")} if beside else {}
    expected = results(layer, {**arrays, name: mask, **options})
    np.testing.assert_allclose(results(layer, {**arrays, **options}, masking=argument), expected, atol=FLOAT32)
    if not case.without_gradient:  # a hard choice need not fall on what the mask drops
        assert np.abs(results(layer, arrays) - expected).max() > FLOAT32, "the mask changes nothing"


@each_mask(IMPLICIT_CASES)
def test_explicit_mask_comes_before_the_implicit_one(case, name):
    layer, argument = built(case), case.argument_of(name)
    arrays = zeroed(case.arrays(), argument, case.padding_masks()[name])
    output = results(layer, {**arrays, name: case.full_masks()[name]}, masking=argument)
    np.testing.assert_allclose(output, results(layer, arrays), atol=FLOAT32)


@each(case for case in LAYER_CASES if case.masked_by)
def test_mask_travels_to_the_output(case):
    if case.vocabularies:
        masks, options = case.padding_masks(), {}
        mask, arrays = masks[case.masked_by], case.masked(case.arrays(), masks)
    else:
        mask, options = np.ones(shape_of(case.inputs[case.masked_by][:-1]), "bool"), {"masking": case.masked_by}
        mask[0, -1] = mask[1, -2] = False
        arrays = zeroed(case.arrays(), case.masked_by, mask)
    np.testing.assert_array_equal(results(built(case), arrays, read_mask=True, **options), mask)


@each(case for case in LAYER_CASES if not case.masked_by)
def test_mask_is_consumed_on_purpose(case):
    arguments = case.masked(case.arrays(), case.padding_masks())
    options = {} if case.masks else {"masking": next(iter(case.inputs))}
    assert (results(built(case), arguments, read_mask=True, **options) == -1.0).all()
