"""Errors, the environment of computations, files: what every room may use."""
