import doctest

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention.training import SequenceAccuracy, SmoothedCrossentropy, TokenAccuracy, metrics

TARGETS = np.array([[3, 4, 0], [4, 0, 0], [3, 3, 3]])
# Right at: yes yes no, yes no no, yes no yes.
PREDICTED = np.array([[3, 4, 1], [4, 1, 1], [3, 1, 3]])
LOGITS = np.eye(5, dtype="float32")[PREDICTED]
REAL = (TARGETS != 0).astype("float32")


def result(metric, *arguments, **options):
    metric.update_state(*arguments, **options)
    return float(metric.result())


def echo_model():
    """Predicts its input, padding as 1, and carries the mask of padding to its output."""
    table = np.eye(5)
    table[0] = table[1]
    embedding = keras.layers.Embedding(5, 5, mask_zero=True)
    model = keras.Sequential([keras.Input((None,), dtype="int32"), embedding])
    embedding.set_weights([table])
    return model


def test_every_token_counts_without_mask_and_weights():
    assert result(TokenAccuracy(), TARGETS, LOGITS) == pytest.approx(5 / 9)
    assert result(SequenceAccuracy(), TARGETS, LOGITS) == 0.0


def test_tokens_of_weight_zero_do_not_count():
    assert result(TokenAccuracy(), TARGETS, LOGITS, sample_weight=REAL) == pytest.approx(5 / 6)
    assert result(SequenceAccuracy(), TARGETS, LOGITS, sample_weight=REAL) == pytest.approx(2 / 3)


def test_weight_of_each_example_holds_for_all_of_its_tokens():
    weight = np.array([1.0, 0.0, 2.0])
    assert result(TokenAccuracy(), TARGETS, LOGITS, sample_weight=weight) == pytest.approx((2 + 2 * 2) / (3 + 2 * 3))
    right = np.array([[3, 4, 0], [4, 0, 0], [1, 1, 1]])
    assert result(SequenceAccuracy(), right, np.eye(5)[TARGETS], sample_weight=weight) == pytest.approx(1 / 3)


def test_tokens_of_all_batches_count_alike():
    metric = TokenAccuracy()
    metric.update_state(TARGETS[:1], LOGITS[:1], sample_weight=REAL[:1])
    metric.update_state(TARGETS[1:], LOGITS[1:], sample_weight=REAL[1:])
    assert float(metric.result()) == pytest.approx(5 / 6)


def test_fully_padded_sequences_do_not_count():
    metric = SequenceAccuracy()
    metric.update_state(np.zeros((2, 3), "int32"), LOGITS[:2], sample_weight=np.zeros((2, 3)))
    assert float(metric.result()) == 0.0
    assert result(metric, TARGETS[:1], LOGITS[:1], sample_weight=REAL[:1]) == 1.0


@pytest.mark.parametrize("metric_class", [TokenAccuracy, SequenceAccuracy])
@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_empty_batches_change_nothing(metric_class, shape):
    metric = metric_class()
    metric.update_state(TARGETS[:1, :2], LOGITS[:1, :2])
    metric.update_state(np.zeros(shape, "int32"), np.zeros((*shape, 5), "float32"))
    assert float(metric.result()) == 1.0


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float32"])
def test_ids_of_every_type_are_compared(dtype):
    assert result(TokenAccuracy(), TARGETS.astype(dtype), LOGITS) == pytest.approx(5 / 9)


def test_leading_axes_are_batch():
    targets, logits = TARGETS[None, :, None], LOGITS[None, :, None]
    assert result(TokenAccuracy(), targets, logits) == pytest.approx(5 / 9)
    assert result(SequenceAccuracy(), targets[..., :1], logits[..., :1, :]) == 1.0


def test_compiled_metrics_leave_out_the_tokens_that_keras_masks():
    inputs = np.array([[3, 4, 0], [4, 0, 0], [3, 1, 3], [0, 0, 0]])
    targets = np.vstack([TARGETS, [[0, 0, 0]]])
    model = echo_model()
    model.compile(loss=SmoothedCrossentropy(0.0), metrics=[TokenAccuracy(), SequenceAccuracy()])
    values = model.evaluate(inputs, targets, batch_size=2, verbose=0, return_dict=True)
    assert values["token_accuracy"] == pytest.approx(5 / 6)
    assert values["sequence_accuracy"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("weight", [np.array([1.0, 0.0, 2.0]), np.array([[1.0] * 3, [0.0] * 3, [2.0] * 3])])
def test_weighted_metrics_join_mask_and_sample_weight(weight):
    inputs = np.array([[3, 4, 0], [4, 0, 0], [3, 1, 3]])
    model = echo_model()
    model.compile(loss=SmoothedCrossentropy(0.0), weighted_metrics=[TokenAccuracy(), SequenceAccuracy()])
    values = model.evaluate(inputs, TARGETS, sample_weight=weight, verbose=0, return_dict=True)
    assert values["token_accuracy"] == pytest.approx((2 + 2 * 2) / (2 + 2 * 3))
    assert values["sequence_accuracy"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("metric_class", [TokenAccuracy, SequenceAccuracy])
def test_config_round_trip_and_reset(metric_class):
    metric = metric_class(name="exact")
    config = keras.metrics.serialize(metric)
    assert config["registered_name"] == f"keras_attention>{metric_class.__name__}"
    restored = keras.metrics.deserialize(config)
    assert restored.get_config() == metric.get_config()
    restored.update_state(TARGETS[:1, :2], LOGITS[:1, :2])
    restored.reset_state()
    assert float(restored.result()) == 0.0


def test_compiled_metrics_are_saved_with_the_model(tmp_path):
    model = echo_model()
    model.compile(optimizer="sgd", loss=SmoothedCrossentropy(0.0), metrics=[SequenceAccuracy()])
    model.evaluate(TARGETS, TARGETS, verbose=0)
    model.save(tmp_path / "model.keras")
    model = keras.models.load_model(tmp_path / "model.keras")
    assert model.evaluate(TARGETS, TARGETS, verbose=0, return_dict=True)["sequence_accuracy"] == 1.0


def test_targets_of_another_shape_are_an_error():
    with pytest.raises(ValueError, match=r"y_true of shape \(3, 3, 1\) and y_pred of shape \(3, 3, 5\)"):
        TokenAccuracy().update_state(TARGETS[..., None], LOGITS)


def test_sequence_accuracy_needs_an_axis_of_tokens():
    with pytest.raises(ValueError, match=r"at least two axes. Received y_true of shape \(3,\). Use TokenAccuracy"):
        SequenceAccuracy().update_state(ops.convert_to_tensor(TARGETS[0]), LOGITS[0])


def test_the_example_of_the_manual_is_true():
    assert doctest.testmod(metrics).failed == 0
