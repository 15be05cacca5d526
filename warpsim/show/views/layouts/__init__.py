"""Layouts of instructions as text, figures, CuTe notation and data."""
