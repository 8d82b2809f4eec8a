"""Requests that TF Serving runs on a version before it opens it, so that no user waits for the first, slow run."""

import os

import tensorflow as tf

from keras_attention.extras import how_to_install

MOST_REQUESTS = 1000  # TF Serving refuses a version with more.


def write_warm_up_requests(version_path, requests):
    """Write `requests` to `assets.extra/tf_serving_warmup_requests` of a SavedModel.

    Every request is run here once before anything is written: TF Serving refuses to load a version that fails on one
    of them. Choose one request for each batch size and each usual length.

    Args:
        version_path: Folder of the SavedModel.
        requests: List of dicts `{input name: value}` for `serving_default`, each value with its batch axis.

    Raises:
        ImportError: The package tensorflow-serving-api is missing.
        ValueError: A request whose names, types or shapes are not those of `serving_default`, or one with a bad row.

    Example:
        >>> write_warm_up_requests("dates/1", [{"text": ["3 March 2015"]}, {"text": ["3 March 2015"] * 32}])
    """
    try:
        from tensorflow_serving.apis import predict_pb2, prediction_log_pb2
    except ImportError as error:
        raise ImportError(
            f"Warm-up requests need tensorflow-serving-api, which is not installed. {how_to_install('serving')}"
        ) from error
    if len(requests) > MOST_REQUESTS:
        raise ValueError(f"`requests` must hold at most {MOST_REQUESTS} requests. Received {len(requests)}.")
    signature = tf.saved_model.load(version_path).signatures["serving_default"]
    records = []
    for inputs in requests:
        request = predict_pb2.PredictRequest()
        request.model_spec.signature_name = "serving_default"
        for name, tensor in answered_inputs(signature, inputs).items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(tensor))
        log = prediction_log_pb2.PredictionLog(predict_log=prediction_log_pb2.PredictLog(request=request))
        records.append(log.SerializeToString())
    folder = os.path.join(version_path, "assets.extra")
    os.makedirs(folder, exist_ok=True)
    with tf.io.TFRecordWriter(os.path.join(folder, "tf_serving_warmup_requests")) as writer:
        for record in records:
            writer.write(record)


def answered_inputs(signature, inputs):
    """`inputs` as tensors of the signature's types and shapes, once the signature has answered them."""
    specs = signature.structured_input_signature[1]
    expected = ", ".join(f"{name}: {spec.dtype.name} {spec.shape}" for name, spec in specs.items())
    rule = f"`serving_default` ({expected}) must be able to answer a warm-up request. Received {inputs}."
    if set(inputs) != set(specs):
        raise ValueError(rule)
    try:
        tensors = {
            name: tf.ensure_shape(tf.constant(inputs[name], spec.dtype), spec.shape) for name, spec in specs.items()
        }
        outputs = signature(**tensors)
    except (TypeError, ValueError, tf.errors.OpError) as error:
        raise ValueError(f"{rule} TensorFlow says: {error}") from error
    reasons = [reason.decode() for reason in outputs["error"].numpy() if reason] if "error" in outputs else []
    if reasons:  # a bad row is answered without running the model
        raise ValueError(f"{rule} It has a bad row: {reasons[0]}")
    return tensors
