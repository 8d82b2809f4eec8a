"""How good answers are: convex hulls, triangulations, tours, sequences, translations, word alignments."""

from keras_attention.evaluation.attention_links import links_by_argmax, links_by_threshold, links_of_words
from keras_attention.evaluation.polygons import area_coverage, evaluate_hulls, is_simple_polygon, same_polygon
from keras_attention.evaluation.sequences import evaluate_sequences
from keras_attention.evaluation.symmetrization import grow_diag_final_and, symmetrize
from keras_attention.evaluation.tours import evaluate_tours, is_tour, tour_length
from keras_attention.evaluation.translations import translate_texts
from keras_attention.evaluation.triangulations import evaluate_triangulations, same_triangulation, triangle_coverage
from keras_attention.evaluation.word_alignments import evaluate_word_alignments

__all__ = [
    "area_coverage",
    "evaluate_hulls",
    "evaluate_sequences",
    "evaluate_tours",
    "evaluate_triangulations",
    "evaluate_word_alignments",
    "grow_diag_final_and",
    "is_simple_polygon",
    "is_tour",
    "links_by_argmax",
    "links_by_threshold",
    "links_of_words",
    "same_polygon",
    "same_triangulation",
    "symmetrize",
    "tour_length",
    "translate_texts",
    "triangle_coverage",
]
