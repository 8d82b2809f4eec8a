"""What `fit` and `evaluate` of the models of tokens report, weigh and refuse."""

import keras
import numpy as np
import pytest

from keras_attention.models import Transformer
from keras_attention.training import ReinforceModel, SmoothedCrossentropy, TokenAccuracy
from keras_attention.training.token_means import TokenMean
from keras_attention.training.token_model import TokenModel, without_booleans

BACKEND = keras.backend.backend()
# Row 1 of the table votes for class 0 with log-odds 2, row 2 for none; 0 is padding, which votes wrongly.
TABLE = np.array([[-20.0, 20.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
IDS = np.array([[1, 0, 0, 0], [2, 2, 2, 2], [1, 1, 0, 0]])
LABELS = np.array([[0, 0, 0, 0], [1, 1, 1, 0], [0, 2, 0, 0]])
VOTE, NONE, AGAINST = np.log(1 + 2 * np.exp(-2)), np.log(3), 2 + np.log(1 + 2 * np.exp(-2))
# By token: VOTE; NONE four times; VOTE, AGAINST. Right (the largest logit, the first of equals): 1, 1 of 4, 1 of 2.


def parts():
    ids = keras.Input((None,), dtype="int32")
    return ids, keras.layers.Embedding(3, 3, mask_zero=True, weights=[TABLE])(ids)


def token_model(kind=TokenModel, loss="sparse", **options):
    model = kind(*parts())
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True) if loss == "sparse" else loss
    model.compile(keras.optimizers.SGD(0.0), loss, run_eagerly=BACKEND != "jax", **options)
    return model


def reinforce_model(*arguments):
    return ReinforceModel(*arguments, num_samples=2)


KINDS = pytest.mark.parametrize("kind", [TokenModel, reinforce_model])


# === Reported numbers ===


@KINDS
@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_the_reported_loss_is_the_mean_over_tokens_for_every_batch_size(kind, batch_size):
    model = token_model(kind)
    expected = (2 * VOTE + 4 * NONE + AGAINST) / 7
    assert model.evaluate(IDS, LABELS, batch_size=batch_size, verbose=0) == pytest.approx(expected, rel=1e-5)
    history = model.fit(IDS, LABELS, batch_size=batch_size, verbose=0).history
    assert history["loss"] == [pytest.approx(expected, rel=1e-5)]


def test_weighted_tokens_give_one_loss_for_every_batch_size():
    model, weights = token_model(), np.array([[2.0] * 4, [0.5] * 4, [3.0, 0.0, 5.0, 5.0]])
    expected = (2 * VOTE + 4 * 0.5 * NONE + 3 * VOTE) / 7
    for batch_size in (1, 3):
        value = model.evaluate(IDS, LABELS, sample_weight=weights, batch_size=batch_size, verbose=0)
        assert value == pytest.approx(expected, rel=1e-5)


@KINDS
def test_metrics_of_fit_leave_out_masked_tokens(kind):
    model = token_model(kind, metrics=[TokenAccuracy()])
    assert model.fit(IDS, LABELS, verbose=0).history["token_accuracy"] == [pytest.approx(3 / 7)]
    assert model.evaluate(IDS, LABELS, verbose=0, return_dict=True)["token_accuracy"] == pytest.approx(3 / 7)


@KINDS
def test_weighted_metrics_of_fit_join_mask_and_sample_weight(kind):
    model, weights = token_model(kind, weighted_metrics=[TokenAccuracy()]), np.array([2.0, 1.0, 0.0])
    history = model.fit(IDS, LABELS, sample_weight=np.repeat(weights[:, None], 4, axis=1), verbose=0).history
    assert history["token_accuracy"] == [pytest.approx((2 + 1) / (2 + 4))]


def test_metrics_start_anew_with_each_epoch_and_come_behind_the_loss():
    model = token_model(metrics=[TokenAccuracy()])
    history = model.fit(IDS, LABELS, epochs=2, verbose=0).history
    assert list(history) == ["loss", "token_accuracy"]
    assert history["loss"][0] == pytest.approx(history["loss"][1])
    assert model.evaluate(IDS, LABELS, verbose=0) == [
        pytest.approx(history["loss"][0]),
        pytest.approx(history["token_accuracy"][0]),
    ]


def test_a_metric_of_a_subclass_is_counted_once():
    class Counting(TokenModel):
        def compute_metrics(self, x, y, y_pred, sample_weight=None):
            results = super().compute_metrics(x, y, y_pred, sample_weight)
            self.steps.update_state(1.0)
            return {**results, "steps": self.steps.result()}

    model = Counting(*parts())
    model.steps = keras.metrics.Sum(name="steps")
    model.compile("sgd", SmoothedCrossentropy(), metrics=[TokenAccuracy()], run_eagerly=BACKEND != "jax")
    assert model.fit(IDS, LABELS, batch_size=1, verbose=0).history["steps"] == [3.0]


# === class_weight ===


@KINDS
def test_class_weight_is_refused_for_tokens_with_the_way_to_weigh_them(kind):
    model = token_model(kind)
    for call in (model.fit, model.train_on_batch):
        with pytest.raises(ValueError, match=r"sample_weight=np.take\(weights, labels\)"):
            call(IDS, LABELS, class_weight={1: 0.0})


def test_the_way_to_weigh_tokens_weighs_them():
    weights = np.take(np.array([1.0, 0.0, 5.0]), LABELS)
    value = token_model().evaluate(IDS, LABELS, sample_weight=weights, verbose=0)
    assert value == pytest.approx((2 * VOTE + NONE + 5 * AGAINST) / 7, rel=1e-5)


def test_class_weight_stays_where_an_example_has_one_label():
    inputs = keras.Input((1,))
    model = ReinforceModel(inputs, keras.layers.Dense(3, kernel_initializer="zeros")(inputs))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.0), loss, run_eagerly=True)
    history = model.fit(np.ones((2, 1)), np.array([0, 1]), class_weight={0: 1.0, 1: 4.0}, verbose=0).history
    assert history["loss"] == [pytest.approx(2.5 * NONE, rel=1e-5)]


# === What else is refused or mended ===


@pytest.mark.skipif(BACKEND != "torch", reason="XLA compiles these models")
@KINDS
def test_torch_refuses_to_compile_the_steps(kind):
    with pytest.raises(ValueError, match="jit_compile=True on the torch backend"):
        kind(*parts()).compile("sgd", "mse", jit_compile=True)


def test_booleans_become_integers_and_all_else_stays():
    nest = {"mask": np.array([True, False]), "points": np.ones((2, 3), "float32")}
    result, other = without_booleans((nest, None))
    assert keras.ops.convert_to_numpy(result["mask"]).tolist() == [1, 0]
    assert result["points"] is nest["points"] and other is None


@pytest.mark.skipif(BACKEND != "tensorflow", reason="only TensorFlow has replicas")
def test_booleans_of_a_data_set_become_integers():
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensors(({"mask": np.array([[True, False]])}, np.array([5])))
    inputs, label = without_booleans((dataset, None))[0].get_single_element()
    assert inputs["mask"].numpy().tolist() == [[1, 0]] and label.numpy().tolist() == [5]


def test_a_compiled_model_is_saved_with_its_loss_and_without_what_it_reports(tmp_path):
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 6, "intermediate_dim": 7}
    model = Transformer(5, **sizes)
    model.compile("sgd", TokenMean(keras.losses.SparseCategoricalCrossentropy(from_logits=True)))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.loss.loss_object.get_config()["from_logits"] is True
    for expected, result in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(expected, result)
