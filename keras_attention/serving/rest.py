"""The bodies of TF Serving's REST interface, `POST /v1/models/NAME:predict`."""

import base64

import numpy as np


def rest_request(inputs, signature_name="serving_default"):
    """A dict that `json.dumps` turns into the body of a request.

    `{"text": ["3 March 2015"]}  ->  {"signature_name": "serving_default", "inputs": {"text": ["3 March 2015"]}}`

    Args:
        inputs: Dict `{input name: list, array or tensor}`, each with its batch axis. Bytes that are not UTF-8 are sent
            as `{"b64": ...}`.
        signature_name: String.
    """
    return {"signature_name": signature_name, "inputs": {name: jsonable(value) for name, value in inputs.items()}}


def rest_response(response):
    """The outputs `{output name: list}` of an answer that `json.loads` has read.

    `{"outputs": {"text": ["2015-03-03"], "scores": [-0.01]}}  ->  {"text": ["2015-03-03"], "scores": [-0.01]}`

    The reasons why rows have no answer are among the outputs, in `error`; the scores of these rows are NaN. A signature with
    one output only is answered by TF Serving, and here, without the output's name.

    Raises:
        ValueError: The server answered with an error, or the answer has no `outputs`.
    """
    if "error" in response:
        raise ValueError(f"TF Serving refused the request: {response['error']}")
    if "outputs" not in response:
        raise ValueError(
            f"An answer must have `outputs`. Received the keys {sorted(response)}. Send the body of `rest_request`."
        )
    return response["outputs"]


def jsonable(value):
    """Arrays and tensors as nested lists, bytes as strings."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"b64": base64.b64encode(value).decode()}
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    return jsonable(np.asarray(value).tolist())
