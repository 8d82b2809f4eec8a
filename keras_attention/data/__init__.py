"""Data on TensorFlow: tokenisers, batches, packed rows, images, and data sets that register with TFDS on import."""

from keras_attention.data.batches.alignments import alignment_array
from keras_attention.data.batches.documents import evaluation_document_batches, training_document_batches
from keras_attention.data.batches.packing import pack
from keras_attention.data.batches.pairs import evaluation_batches, training_batches
from keras_attention.data.batches.points import point_batches, point_dataset
from keras_attention.data.builders.convex_hull import ConvexHull, convex_hulls
from keras_attention.data.builders.delaunay import Delaunay, delaunay_triangulations
from keras_attention.data.builders.localized_dates import LocalizedDates, LocalizedDatesConfig
from keras_attention.data.builders.parallel_text import ParallelText, load_parallel_text
from keras_attention.data.builders.point_sets import PointsConfig
from keras_attention.data.builders.sorting import Sorting, ascending_orders
from keras_attention.data.builders.translated_digits import TranslatedDigits, load_digits
from keras_attention.data.builders.tsp import PyVRP, Tsp, TspConfig, shortest_tours
from keras_attention.data.files.document_folders import Documents, load_documents
from keras_attention.data.files.idx_files import read_idx
from keras_attention.data.files.point_files import read_points, write_points
from keras_attention.data.files.word_alignments import read_gold_alignments, read_word_alignments, write_word_alignments
from keras_attention.data.tokenizers.characters import CharacterTokenizer
from keras_attention.data.tokenizers.documents import DocumentTokenizer
from keras_attention.data.tokenizers.subwords import SubwordTokenizer
from keras_attention.data.tokenizers.tokenizer import Tokenizer
from keras_attention.data.tokenizers.words import WordTokenizer

__all__ = [
    "CharacterTokenizer",
    "ConvexHull",
    "Delaunay",
    "DocumentTokenizer",
    "Documents",
    "LocalizedDates",
    "LocalizedDatesConfig",
    "ParallelText",
    "PointsConfig",
    "PyVRP",
    "Sorting",
    "SubwordTokenizer",
    "Tokenizer",
    "TranslatedDigits",
    "Tsp",
    "TspConfig",
    "WordTokenizer",
    "alignment_array",
    "ascending_orders",
    "convex_hulls",
    "delaunay_triangulations",
    "evaluation_batches",
    "evaluation_document_batches",
    "load_digits",
    "load_documents",
    "load_parallel_text",
    "pack",
    "point_batches",
    "point_dataset",
    "read_gold_alignments",
    "read_idx",
    "read_points",
    "read_word_alignments",
    "shortest_tours",
    "training_batches",
    "training_document_batches",
    "write_points",
    "write_word_alignments",
]
