import doctest

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention.ops import LOWEST
from keras_attention.training import SmoothedCrossentropy, losses
from keras_attention.training.losses import smoothed_crossentropy


def reference(targets, logits, label_smoothing):
    """The formula, one token and one class at a time, in float64."""
    losses = np.zeros(targets.shape)
    for place in np.ndindex(targets.shape):
        row = [float(logit) for logit in logits[place] if logit > LOWEST / 2]
        total = np.log(np.sum(np.exp(row)))
        uniform = np.mean([total - logit for logit in row])
        losses[place] = (1 - label_smoothing) * (total - logits[place][targets[place]]) + label_smoothing * uniform
    return losses


def gradient(function, value):
    """Gradient of the sum of `function(value)` with the tool of the running backend."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        value = tf.constant(value)
        with tf.GradientTape() as tape:
            tape.watch(value)
            total = ops.sum(function(value))
        return tape.gradient(total, value).numpy()
    if keras.backend.backend() == "jax":
        import jax

        return np.asarray(jax.grad(lambda value: ops.sum(function(value)))(ops.convert_to_tensor(value)))
    value = ops.convert_to_tensor(value).detach().requires_grad_()
    ops.sum(function(value)).backward()
    return value.grad.cpu().numpy()


def padded_classifier():
    """Ids 1 and 2 have even logits over three classes, padding has very wrong ones; the mask of padding travels along."""
    embedding = keras.layers.Embedding(3, 3, mask_zero=True)
    model = keras.Sequential([keras.Input((None,), dtype="int32"), embedding])
    embedding.set_weights([np.array([[-20.0, 20.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])])
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss=SmoothedCrossentropy(0.0))
    return model


@pytest.mark.parametrize("masked", [LOWEST, -np.inf])
@pytest.mark.parametrize(("label_smoothing", "expected"), [(0.0, 1.3133), (0.1, 1.2633)])
def test_smoothing_spreads_over_unmasked_classes_only(masked, label_smoothing, expected):
    loss = smoothed_crossentropy(ops.array([0]), ops.array([[1.0, 2.0, masked]]), label_smoothing)
    np.testing.assert_allclose(ops.convert_to_numpy(loss), [expected], atol=5e-5)


@pytest.mark.parametrize("masked", [LOWEST, -np.inf])
@pytest.mark.parametrize(
    ("label_smoothing", "expected"), [(0.0, [-0.7311, 0.7311, 0.0]), (0.1, [-0.6811, 0.6811, 0.0])]
)
def test_gradient_is_softmax_minus_smoothed_target(masked, label_smoothing, expected):
    logits = np.array([[1.0, 2.0, masked]], "float32")
    result = gradient(lambda logits: smoothed_crossentropy(ops.array([0]), logits, label_smoothing), logits)
    np.testing.assert_allclose(result, [expected], atol=5e-5)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.3])
def test_values_equal_the_formula_for_each_token(label_smoothing):
    generator = np.random.default_rng(5)
    logits = generator.normal(scale=3.0, size=(2, 3, 7)).astype("float32")
    targets = generator.integers(0, 7, (2, 3))
    logits[generator.random(logits.shape) < 0.3] = LOWEST
    np.put_along_axis(logits, targets[..., None], 0.5, axis=-1)
    loss = SmoothedCrossentropy(label_smoothing, reduction="none")(targets, logits)
    np.testing.assert_allclose(ops.convert_to_numpy(loss), reference(targets, logits, label_smoothing), rtol=1e-5)


def test_large_vocabulary_equals_the_formula():
    generator = np.random.default_rng(7)
    logits = generator.normal(size=(2, 3, 50_021)).astype("float32")
    targets = generator.integers(0, 50_021, (2, 3))
    loss = smoothed_crossentropy(ops.convert_to_tensor(targets, "int32"), ops.convert_to_tensor(logits), 0.1)
    np.testing.assert_allclose(ops.convert_to_numpy(loss), reference(targets, logits, 0.1), rtol=1e-5)


def test_without_masked_classes_it_equals_keras_with_one_hot_targets():
    generator = np.random.default_rng(11)
    logits = generator.normal(size=(2, 3, 7)).astype("float32")
    targets = generator.integers(0, 7, (2, 3))
    peer = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2)
    expected = peer(np.eye(7, dtype="float32")[targets], logits)
    assert float(SmoothedCrossentropy(0.2)(targets, logits)) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_logits_give_a_float32_loss(dtype):
    logits = ops.cast(ops.array([[1.0, 2.0, LOWEST]]), dtype)
    loss = SmoothedCrossentropy(0.1)(ops.array([0]), logits)
    assert keras.backend.standardize_dtype(loss.dtype) == "float32"
    assert float(loss) == pytest.approx(1.2633, abs=5e-5)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("target", [2, 3, -1])
def test_a_weight_of_zero_silences_any_label(target, label_smoothing):
    loss = SmoothedCrossentropy(label_smoothing)
    targets, logits = np.array([[0, target]]), np.array([[[1.0, 2.0, LOWEST]] * 2], "float32")
    only_first = float(loss(targets, logits, sample_weight=np.array([[2.0, 0.0]])))
    assert only_first == pytest.approx(1.3133 - 0.5 * label_smoothing, abs=5e-5)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_a_label_whose_class_is_masked_is_huge_with_a_finite_gradient(label_smoothing):
    loss = SmoothedCrossentropy(label_smoothing)
    targets, logits = np.array([[0, 2]]), np.array([[[1.0, 2.0, LOWEST]] * 2], "float32")
    assert 1e29 < float(loss(targets, logits)) < np.inf
    assert np.isfinite(gradient(lambda logits: loss.call(ops.convert_to_tensor(targets), logits), logits)).all()


@pytest.mark.parametrize("label", [3, -1, 0.5, np.nan])
def test_a_known_label_outside_the_vocabulary_is_an_error(label):
    with pytest.raises(ValueError, match=rf"ids in \[0, 3\).*Received {label} at \(0, 1\) of labels of shape \(1, 2\)"):
        SmoothedCrossentropy()(np.array([[0, label]]), np.zeros((1, 2, 3), "float32"))


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="torch computes each step eagerly: values are known")
@pytest.mark.parametrize("label", [3, -1, 0.5])
def test_a_label_outside_the_vocabulary_makes_the_loss_of_a_compiled_step_nan_and_moves_no_weight(label):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(3, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(1.0), SmoothedCrossentropy(0.0))
    history = model.fit(np.ones((2, 1)), np.array([1, label]), verbose=0).history
    assert np.isnan(history["loss"][0])
    third = 1 / 6  # of two examples one has a gradient: 1/3 of a half
    np.testing.assert_allclose(model.get_weights()[0], [[-third, 2 * third, -third]], atol=1e-6)


def test_masked_tokens_may_have_any_label():
    model = padded_classifier()
    value = model.evaluate(np.array([[1, 2, 0, 0]]), np.array([[1, 2, -1, 7]]), verbose=0)
    assert value == pytest.approx(1.0986, abs=5e-5)


def test_a_tenth_is_smoothed_by_default():
    assert SmoothedCrossentropy().label_smoothing == 0.1


def test_the_repr_says_how_it_was_made():
    expected = "SmoothedCrossentropy(name='tokens', reduction='sum', label_smoothing=0.2)"
    assert repr(SmoothedCrossentropy(0.2, reduction="sum", name="tokens")) == expected


@pytest.mark.parametrize("masked", [LOWEST, -np.inf])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_row_without_any_class_gives_log_of_the_vocabulary_and_no_gradient(masked, label_smoothing):
    logits = np.full((2, 3), masked, "float32")
    targets = ops.array([0, 2])
    loss = smoothed_crossentropy(targets, ops.convert_to_tensor(logits), label_smoothing)
    np.testing.assert_allclose(ops.convert_to_numpy(loss), [np.log(3.0)] * 2, rtol=1e-6)
    result = gradient(lambda logits: smoothed_crossentropy(targets, logits, label_smoothing), logits)
    np.testing.assert_array_equal(result, np.zeros((2, 3)))


def test_large_logits_stay_exact():
    loss = smoothed_crossentropy(ops.array([0]), ops.array([[10_001.0, 10_002.0]]), 0.1)
    np.testing.assert_allclose(ops.convert_to_numpy(loss), [1.2633], atol=1e-3)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_empty_batches_give_no_losses(shape):
    loss = smoothed_crossentropy(ops.zeros(shape, "int32"), ops.zeros((*shape, 7)), 0.1)
    assert tuple(loss.shape) == shape


def test_masked_tokens_do_not_count():
    model = padded_classifier()
    targets = np.array([[1, 2, 0, 0]])
    assert model.evaluate(targets, targets, verbose=0) == pytest.approx(1.0986, abs=5e-5)
    assert model.evaluate(np.pad(targets, ((0, 0), (0, 10))), np.pad(targets, ((0, 0), (0, 10))), verbose=0) == (
        pytest.approx(1.0986, abs=5e-5)
    )


def test_fully_padded_batch_gives_zero():
    assert padded_classifier().evaluate(np.zeros((2, 5), "int32"), np.zeros((2, 5), "int32"), verbose=0) == 0.0


def test_training_changes_only_the_rows_of_real_tokens():
    model = padded_classifier()
    history = model.fit(np.array([[1, 2, 0, 0]]), np.array([[1, 2, 0, 0]]), verbose=0)
    assert history.history["loss"] == [pytest.approx(1.0986, abs=5e-5)]
    third = 1 / 6  # half of 1/3: the mean is over two tokens
    expected = [[-20.0, 20.0, 0.0], [-third, 2 * third, -third], [-third, -third, 2 * third]]
    np.testing.assert_allclose(model.get_weights()[0], expected, atol=1e-6)


def test_classifier_with_one_target_for_each_example_trains():
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(3, kernel_initializer="zeros")])
    model.compile(optimizer="sgd", loss=SmoothedCrossentropy(0.1))
    history = model.fit(np.ones((7, 5)), np.arange(7) % 3, verbose=0)
    assert history.history["loss"] == [pytest.approx(np.log(3.0), rel=1e-6)]


def test_weight_of_each_example_holds_for_all_of_its_tokens():
    logits = np.zeros((3, 3, 5), "float32")
    logits[0, :, 1] = 9.0
    targets = np.zeros((3, 3), "int32")
    loss = SmoothedCrossentropy(0.0)
    by_example = float(loss(targets, logits, sample_weight=np.array([0.0, 1.0, 2.0])))
    assert by_example == pytest.approx((0 + 3 + 6) * np.log(5.0) / 9, rel=1e-6)
    mean = SmoothedCrossentropy(reduction="mean_with_sample_weight")
    assert float(mean(targets, logits, sample_weight=np.array([0.0, 1.0, 2.0]))) == pytest.approx(np.log(5.0), rel=1e-6)


def test_a_compiled_model_takes_weights_of_examples_and_then_of_tokens():
    inputs = keras.Input((3,))
    logits = keras.layers.Reshape((3, 5))(keras.layers.Dense(15)(inputs))
    model = keras.Model(inputs, logits)
    model.compile("sgd", SmoothedCrossentropy(0.0))
    x, y, weights = np.ones((7, 3), "float32"), np.ones((7, 3), "int32"), np.arange(7.0, dtype="float32")
    values = [
        model.evaluate(x, y, sample_weight=each, batch_size=7, verbose=0)
        for each in (weights, np.repeat(weights[:, None], 3, axis=1), weights)
    ]
    np.testing.assert_allclose(values[1:], values[0], rtol=1e-6)


def test_config_round_trip():
    loss = SmoothedCrossentropy(0.1, reduction="sum", name="translation")
    config = keras.losses.serialize(loss)
    assert config["registered_name"] == "keras_attention>SmoothedCrossentropy"
    restored = keras.losses.deserialize(config)
    assert restored.get_config() == {"name": "translation", "reduction": "sum", "label_smoothing": 0.1}


def test_compiled_loss_is_saved_with_the_model(tmp_path):
    padded_classifier().save(tmp_path / "model.keras")
    model = keras.models.load_model(tmp_path / "model.keras")
    assert isinstance(model.loss, SmoothedCrossentropy)
    assert model.evaluate(np.array([[1, 2, 0]]), np.array([[1, 2, 0]]), verbose=0) == pytest.approx(1.0986, abs=5e-5)


@pytest.mark.parametrize("shape", [(2, 3, 1), (2, 3, 7), (2,), (2, 5)])
def test_targets_of_another_shape_are_an_error(shape):
    with pytest.raises(ValueError, match=r"one integer for each row of `y_pred`.*y_true\s+of shape \(2"):
        SmoothedCrossentropy(0.0)(np.zeros(shape, "int32"), np.zeros((2, 3, 7), "float32"))


@pytest.mark.parametrize("value", [-0.1, 1.0])
def test_smoothing_outside_the_unit_interval_is_an_error(value):
    with pytest.raises(ValueError, match=rf"`label_smoothing` must be a number in \[0, 1\). Received: {value}"):
        SmoothedCrossentropy(value)


def test_the_example_of_the_manual_is_true():
    assert doctest.testmod(losses).failed == 0


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_loss_of_logits_with_nan_or_inf_is_nan(value, label_smoothing):
    logits = np.array([[0.5, value, 1.0, LOWEST], [0.5, 2.0, 1.0, LOWEST]], "float32")
    loss = ops.convert_to_numpy(smoothed_crossentropy(np.array([0, 0]), logits, label_smoothing))
    assert np.isnan(loss).tolist() == [True, False]
