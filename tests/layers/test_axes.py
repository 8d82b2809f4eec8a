import numpy as np
import pytest
from keras import ops
from reference.arrays import normal, to_numpy

from keras_attention.layers.axes import (
    FoldedAxes,
    attention_axes,
    fold_attention_mask,
    fold_axes,
    folded_shape,
    unfold_axes,
)

SIZES = (2, 3, 5, 7, 11)
AXES = [(3,), (1,), (2,), (1, 2), (2, 3), (1, 3), (3, 1), (1, 2, 3)]


def test_no_axes_stand_for_all_but_the_first_and_the_last():
    assert attention_axes(None, 3) == (1,)
    assert attention_axes(None, 5) == (1, 2, 3)


def test_negative_axes_count_from_the_end():
    assert attention_axes((-2,), 4) == (2,)
    assert attention_axes((1, -2), 5) == (1, 3)


@pytest.mark.parametrize("axes", AXES)
def test_folding_puts_the_axes_side_by_side_before_the_features(axes):
    tensor = normal(*SIZES)
    folded = to_numpy(fold_axes(tensor, axes))
    others = [axis for axis in range(4) if axis not in axes]
    assert folded.shape == folded_shape(SIZES, axes)
    lengths = [SIZES[axis] for axis in axes]
    for index in np.ndindex(*SIZES[:-1]):
        position = np.ravel_multi_index([index[axis] for axis in axes], lengths)
        np.testing.assert_array_equal(folded[(*(index[axis] for axis in others), position)], tensor[index])


@pytest.mark.parametrize("axes", AXES)
def test_unfolding_undoes_folding(axes):
    tensor = normal(*SIZES)
    unfolded = unfold_axes(fold_axes(tensor, axes), axes, SIZES[:-1])
    np.testing.assert_array_equal(to_numpy(unfolded), tensor)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("trailing", [(), (13,), (13, 17)])
def test_what_follows_the_folded_axis_may_have_any_number_of_axes(axes, trailing):
    expected = normal(*SIZES[:-1], *trailing)
    flat = expected.reshape(*SIZES[:-1], -1)
    folded = to_numpy(fold_axes(flat, axes))
    folded = folded.reshape(*folded.shape[:-1], *trailing)
    np.testing.assert_array_equal(to_numpy(unfold_axes(folded, axes, SIZES[:-1])), expected)


def test_unknown_sizes_stay_unknown():
    assert folded_shape((None, 3, None, 7), (1, 2)) == (None, None, 7)
    assert folded_shape((None, 3, None, 7), (1,)) == (None, None, 3, 7)
    assert folded_shape((2, 3, 5, 7), (1, 2)) == (2, 15, 7)


@pytest.mark.parametrize("axes", AXES)
def test_a_padding_mask_folds_like_its_tensor(axes):
    tensor = normal(*SIZES)
    mask = tensor[..., 0] > 0
    tensor, mask = ops.convert_to_tensor(tensor), ops.convert_to_tensor(mask)
    masks = FoldedAxes(axes, tensor, tensor, tensor).fold_masks(None, query_mask=mask, value_mask=None)
    np.testing.assert_array_equal(to_numpy(masks["query_mask"]), to_numpy(fold_axes(tensor, axes))[..., 0] > 0)
    assert masks["value_mask"] is masks["attention_mask"] is None


@pytest.mark.parametrize("leading", [(), (2,), (2, 17), (2, 1)])
def test_an_attention_mask_folds_queries_and_keys(leading):
    mask = normal(*leading, 3, 5, 7, 11) > 0
    folded = to_numpy(fold_attention_mask("attention_mask", mask, (3, 5), (7, 11)))
    np.testing.assert_array_equal(folded, mask.reshape(*leading, 15, 77))


def test_an_attention_mask_broadcasts_before_it_folds():
    mask = normal(2, 3, 1, 1, 11) > 0
    folded = to_numpy(fold_attention_mask("attention_mask", mask, (3, 5), (7, 11)))
    np.testing.assert_array_equal(folded, np.broadcast_to(mask, (2, 3, 5, 7, 11)).reshape(2, 15, 77))


def test_an_attention_mask_of_one_axis_stays_as_it_is():
    mask = normal(2, 3, 5) > 0
    assert fold_attention_mask("attention_mask", mask, (3,), (5,)) is mask
