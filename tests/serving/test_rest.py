import json

import numpy as np
import pytest

from keras_attention.serving import rest_request, rest_response


def test_request_is_the_body_that_tf_serving_reads():
    body = json.dumps(rest_request({"text": ["3 mars", "三月".encode()]}), ensure_ascii=False)
    assert body == '{"signature_name": "serving_default", "inputs": {"text": ["3 mars", "三月"]}}'


def test_arrays_become_nested_lists():
    request = rest_request({"source": np.array([[4, 5], [6, 0]], "int32")}, signature_name="translate_ids")
    assert json.dumps(request) == '{"signature_name": "translate_ids", "inputs": {"source": [[4, 5], [6, 0]]}}'


def test_bytes_that_are_no_text_are_sent_in_base_64():
    assert rest_request({"image": [b"\xff\x00"]})["inputs"] == {"image": [{"b64": "/wA="}]}


def test_outputs_are_returned_by_name():
    assert rest_response({"outputs": {"text": ["2015-03-03"], "scores": [-0.5]}}) == {
        "text": ["2015-03-03"],
        "scores": [-0.5],
    }


def test_refusal_of_the_server_is_raised():
    with pytest.raises(ValueError, match="refused the request: Servable not found"):
        rest_response({"error": "Servable not found for request: Latest(dates)"})


def test_answer_to_another_kind_of_request_is_an_error():
    with pytest.raises(ValueError, match=r"must have `outputs`\. Received the keys \['predictions'\]"):
        rest_response({"predictions": []})
