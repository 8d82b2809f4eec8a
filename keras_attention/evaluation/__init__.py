"""How good answers are: convex hulls, triangulations, tours, sequences, translations."""

from keras_attention.evaluation.polygons import area_coverage, evaluate_hulls, is_simple_polygon, same_polygon
from keras_attention.evaluation.sequences import evaluate_sequences
from keras_attention.evaluation.tours import evaluate_tours, is_tour, tour_length
from keras_attention.evaluation.translations import translate_texts
from keras_attention.evaluation.triangulations import evaluate_triangulations, same_triangulation, triangle_coverage

__all__ = [
    "area_coverage",
    "evaluate_hulls",
    "evaluate_sequences",
    "evaluate_tours",
    "evaluate_triangulations",
    "is_simple_polygon",
    "is_tour",
    "same_polygon",
    "same_triangulation",
    "tour_length",
    "translate_texts",
    "triangle_coverage",
]
