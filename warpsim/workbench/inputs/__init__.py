"""Registers, matrices and tensors as users bring them: printed text, logs, files of libraries."""
