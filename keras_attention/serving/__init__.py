"""Models as TF Serving loads them: versions of a SavedModel with named signatures."""

from keras_attention.serving.export import export
from keras_attention.serving.export_classifier import export_classifier
from keras_attention.serving.rest import rest_request, rest_response
from keras_attention.serving.warm_up import write_warm_up_requests

__all__ = ["export", "export_classifier", "rest_request", "rest_response", "write_warm_up_requests"]
