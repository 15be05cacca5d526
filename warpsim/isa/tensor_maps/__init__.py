"""Tensor maps: fields, limits, bytes, and where the elements of a box lie."""
