"""Data sets of the package for TensorFlow Datasets; importing a builder registers it."""
