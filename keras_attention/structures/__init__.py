"""Chains and dependency trees as functions: partition, marginals, the best structure, samples."""
