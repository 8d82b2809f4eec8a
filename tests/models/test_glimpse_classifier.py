import math

import keras
import numpy as np
import pytest
from keras import ops
from reference import glimpse_classifier
from reference.arrays import normal, to_numpy
from tolerances import EXACT, FLOAT32

from keras_attention.alignments.estimators import Recorder
from keras_attention.models import GlimpseClassifier
from keras_attention.models.glimpse_classifier import gaussian_log_prob
from keras_attention.training import MovingAverage, PerStepBaseline

B, H, W, C, T, V, D = 5, 7, 11, 3, 3, 19, 13


def make(**options):
    settings = {"num_glimpses": T, "glimpse_size": 2, "hidden_dim": D, "seed": 5, **options}
    return GlimpseClassifier(V, (H, W, C), **settings)


def compiled(model, optimizer=None):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer or keras.optimizers.SGD(0.1), loss, metrics=["accuracy"])
    return model


@pytest.fixture(scope="module")
def images():
    return normal(B, H, W, C)


@pytest.fixture(scope="module")
def labels():
    return np.arange(B, dtype="int32") * 3


# === Forward ===


def test_glimpses_equal_the_loop(images):
    model = make(num_scales=2, baseline=None)
    weights = {layer.name: [to_numpy(weight) for weight in layer.weights[:2]] for layer in model.layers}
    found = model.glimpses(images)
    for b in range(B):
        locations, logits = glimpse_classifier.look(images[b], weights, T, size=2, num_scales=2)
        np.testing.assert_allclose(found["locations"][b], locations, atol=FLOAT32)
        np.testing.assert_allclose(found["logits"][b], logits, atol=FLOAT32)
    np.testing.assert_allclose(model(images), found["logits"][:, -1], atol=FLOAT32)


def test_the_first_glimpse_is_at_the_center_and_the_others_are_not(images):
    locations = make().glimpses(images)["locations"]
    assert locations.shape == (B, T, 2)
    assert not locations[:, 0].any()
    assert np.abs(locations[:, 1:]).min() > 0 and np.abs(locations).max() <= 1


def test_a_single_image_is_not_taken_for_a_batch():
    model = GlimpseClassifier(V, (7, 7, 1), num_glimpses=2, glimpse_size=2, hidden_dim=D)
    images = normal(B, 7, 7)
    assert model(images).shape == (B, V)  # Keras adds the axis of one channel
    with pytest.raises(ValueError, match=r"batch of images, \(B, H, W, C\)\. Received shape \(7, 7, 1\)"):
        model(images[0][..., None])


def test_training_draws_locations_around_their_means(images):
    model, std = make(num_glimpses=2, location_std=0.2), 0.2
    with Recorder() as recorder:
        model(np.repeat(images[:1], 1009, axis=0), training=True)
    # log p = -z²/2 summed over two axes, and a constant: -z² has the mean -2.
    squares = -2 * (to_numpy(recorder.log_prob(1009)) + 2 * math.log(std) + math.log(2 * math.pi))
    assert squares.min() >= 0 and abs(squares.mean() - 2) < 5 * 2 / math.sqrt(1009)


def test_the_log_probability_of_a_location_by_hand():
    # z = (1, -2): -(1 + 4) / 2 - 2·log(0.5) - log(2π)
    found = gaussian_log_prob(ops.array([[0.75, -1.0]]), ops.array([[0.25, 0.0]]), 0.5)
    np.testing.assert_allclose(found, [-2.5 + 2 * math.log(2) - math.log(2 * math.pi)], atol=FLOAT32)


def test_every_location_but_the_first_is_a_choice_with_a_prediction(images):
    with Recorder() as recorder:
        make()(images, training=True)
    log_probs, predictions = (to_numpy(rows) for rows in recorder.predicted(B))
    assert log_probs.shape == predictions.shape == (B, T - 1)
    np.testing.assert_allclose(log_probs.sum(axis=1), recorder.log_prob(B), atol=FLOAT32)


def test_a_seed_repeats_the_paths(images):
    first, second = make(), make()
    second.set_weights(first.get_weights())
    draws = [[to_numpy(model(images, training=True)) for _ in range(2)] for model in (first, second)]
    np.testing.assert_allclose(draws[0], draws[1], atol=EXACT)
    assert (draws[0][0] != draws[0][1]).any()


def test_a_single_glimpse_needs_no_location_network(images, labels):
    model = compiled(make(num_glimpses=1))
    assert "next_location" not in {layer.name for layer in model.layers}
    assert np.isfinite(model.train_on_batch(images, labels)[0])
    assert model.glimpses(images)["locations"].shape == (B, 1, 2)


# === Training ===


@pytest.mark.parametrize("baseline", ["per_step", "moving_average"])
def test_the_location_network_learns_by_reinforce_alone(baseline, images, labels):
    model, twin = (make(baseline=baseline, num_glimpses=2) for _ in range(2))
    twin.set_weights(model.get_weights())
    sample = keras.Model(twin.input, [twin.get_layer("next_location").output, twin.output])
    with Recorder() as recorder:  # the twin draws what the model draws below
        location, logits = (to_numpy(each) for each in sample(images, training=True))
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(B), labels]
    baselines = to_numpy(recorder.predicted(B)[1])[:, 0] if baseline == "per_step" else 0.0
    mean = model.glimpses(images)["locations"][:, 1]
    # The gradient of log p is (location - mean) / std² by the mean, and that of the mean 1 - mean² by what tanh is of.
    slope = (location - mean) / 0.15**2 * (1 - mean**2) * (losses - baselines)[:, None]
    weights = model.get_layer("next_location").mean.trainable_weights
    kernel, bias = (to_numpy(weight) for weight in weights)
    compiled(model, keras.optimizers.SGD(1.0)).train_on_batch(images, labels)
    np.testing.assert_allclose(bias - to_numpy(weights[1]), slope.mean(axis=0), atol=1e-4, rtol=1e-4)
    assert np.abs(kernel - to_numpy(weights[0])).max() > FLOAT32


def test_a_place_where_the_classes_differ_is_found():
    labels = np.random.default_rng(7).integers(0, 2, 509).astype("int32")
    images = np.zeros((509, 11, 11, 1), "float32")
    images[:, 6:, 6:, 0] = np.where(labels, 1.0, -1.0)[:, None, None]  # out of the sight of the first glimpse
    model = GlimpseClassifier(2, (11, 11, 1), num_glimpses=2, glimpse_size=1, hidden_dim=16, location_std=0.3, seed=3)
    model.get_layer("next_location").mean.kernel.assign(np.zeros((16, 2)))  # at first it stays at the center
    compiled(model, keras.optimizers.Adam(0.01)).fit(images, labels, epochs=20, batch_size=101, verbose=0)
    locations = model.glimpses(images[:1])["locations"][0, 1]
    assert (locations > 0.2).all()
    assert model.evaluate(images, labels, verbose=0)[1] == 1.0


def test_metrics_see_one_of_several_samples(images, labels):
    model = compiled(make(num_glimpses=2, num_samples=3, baseline="leave_one_out"))
    history = model.fit(images, labels, epochs=2, batch_size=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()


# === Random locations ===


def test_random_locations_are_uniform_in_the_image_and_new_at_each_call():
    model, images = make(locations="random", num_glimpses=2), np.zeros((1009, H, W, C), "float32")
    first, second = (model.glimpses(images)["locations"] for _ in range(2))
    assert (first != second).all()
    assert -1 <= first.min() < -0.99 and 0.99 < first.max() <= 1
    # The mean of a uniform number in [-1, 1] has the deviation 1/√(3n).
    assert (np.abs(first.mean(axis=0)) < 5 / math.sqrt(3 * 1009)).all()


def test_a_model_with_random_locations_trains_without_a_location_network(images, labels):
    model = compiled(make(locations="random"))
    assert not [weight for weight in model.trainable_weights if "location" in weight.path]
    assert np.isfinite(model.train_on_batch(images, labels)[0])


# === Saving ===


def test_a_saved_model_comes_back_and_goes_on_training(images, labels, tmp_path):
    model = compiled(make(num_glimpses=2), keras.optimizers.Adam(0.01))
    model.train_on_batch(images, labels)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.glimpses(images)["locations"], model.glimpses(images)["locations"], atol=EXACT)
    before = to_numpy(loaded.get_layer("next_location").mean.kernel)
    loaded.train_on_batch(images, labels)
    assert int(loaded.optimizer.iterations) == 2
    assert (before != to_numpy(loaded.get_layer("next_location").mean.kernel)).any()


def test_a_baseline_may_be_an_object(tmp_path):
    model = make(baseline=MovingAverage(decay=0.5))
    config = GlimpseClassifier.from_config(model.get_config()).get_config()
    assert config["baseline"]["config"]["decay"] == 0.5
    assert isinstance(make().baseline, PerStepBaseline)


# === Errors ===


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"locations": "best"}, ValueError, r"`locations` must be one of \('learned', 'random'\). Received: 'best'"),
        ({"baseline": "best"}, ValueError, 'Unknown baseline: "best". Known: "by_choice"'),
        ({"num_glimpses": 0}, ValueError, "`num_glimpses` must be a positive integer. Received: 0"),
        ({"glimpse_size": 2.5}, ValueError, "`glimpse_size` must be a positive integer. Received: 2.5"),
        ({"location_std": 0.0}, ValueError, "`location_std` must be a positive number. Received: 0.0"),
    ],
)
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        make(**options)


@pytest.mark.parametrize(
    "shape, error, message",
    [
        ((28, 28), ValueError, r"`image_shape` must be \(H, W, C\), C known. Received: \(28, 28\)"),
        ((28, 28, None), ValueError, r"Received: \(28, 28, None\). Pass for example"),
        (28, ValueError, r"`image_shape` must be \(H, W, C\), C known. Received: 28"),
        ((0, 28, 1), ValueError, r"`image_shape\[0\]` must be a positive integer. Received: 0"),
    ],
)
def test_shapes_that_are_no_images(shape, error, message):
    with pytest.raises(error, match=message):
        GlimpseClassifier(10, shape)
