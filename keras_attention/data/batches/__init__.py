"""Batches for training and evaluation: pairs of texts, documents, points."""
