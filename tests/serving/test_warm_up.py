import os
import re
import sys

import pytest
import tensorflow as tf

from keras_attention.serving import export, write_warm_up_requests


def test_requests_are_written_as_tf_serving_reads_them(model, tokenizer, tmp_path):
    apis = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2", reason="needs the extra `serving`")
    requests = [{"text": ["abc"]}, {"text": ["", "ga"]}]
    version = export(model, tmp_path, tokenizer, tokenizer, warm_up_requests=requests)
    records = tf.data.TFRecordDataset(os.path.join(version, "assets.extra", "tf_serving_warmup_requests"))
    logged = [apis.PredictionLog.FromString(record.numpy()).predict_log.request for record in records]
    assert [tf.make_ndarray(request.inputs["text"]).tolist() for request in logged] == [[b"abc"], [b"", b"ga"]]
    assert {request.model_spec.signature_name for request in logged} == {"serving_default"}


def test_numbers_take_the_type_of_the_signature(model, tmp_path):
    apis = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2", reason="needs the extra `serving`")
    version = export(model, tmp_path, warm_up_requests=[{"source": [[4, 5]]}])
    (record,) = tf.data.TFRecordDataset(os.path.join(version, "assets.extra", "tf_serving_warmup_requests"))
    inputs = apis.PredictionLog.FromString(record.numpy()).predict_log.request.inputs
    assert tf.make_ndarray(inputs["source"]).dtype == "int32"


@pytest.mark.parametrize("inputs", [{"texts": ["abc"]}, {}, {"text": [3]}, {"text": [["abc"]]}, {"text": "abc"}])
def test_request_that_would_fail_in_the_server_is_refused(exported, inputs):
    pytest.importorskip("tensorflow_serving", reason="needs the extra `serving`")
    rule = f"`serving_default` (text: string (None,)) must be able to answer a warm-up request. Received {inputs}."
    with pytest.raises(ValueError, match=re.escape(rule)):
        write_warm_up_requests(exported, [inputs])
    assert not os.path.exists(os.path.join(exported, "assets.extra"))


def test_request_with_a_bad_row_is_refused(model, tmp_path):
    pytest.importorskip("tensorflow_serving", reason="needs the extra `serving`")
    version = export(model, tmp_path, max_source_length=2)
    with pytest.raises(ValueError, match=r"It has a bad row: `source` must have a length of at most 2"):
        write_warm_up_requests(version, [{"source": [[4, 5, 6]]}])


def test_more_requests_than_tf_serving_reads_are_refused(exported):
    pytest.importorskip("tensorflow_serving", reason="needs the extra `serving`")
    with pytest.raises(ValueError, match=r"at most 1000 requests\. Received 1001"):
        write_warm_up_requests(exported, [{"text": ["abc"]}] * 1001)


def test_missing_package_is_named(exported, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_serving.apis", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[serving\]'"):
        write_warm_up_requests(exported, [])
