"""Layouts as data: extents and strides, from which index arrays, formulas, CuTe text and scripts come."""
