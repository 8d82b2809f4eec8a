"""Batches for training and evaluation: pairs of texts, documents, points; packed rows of sequences."""
