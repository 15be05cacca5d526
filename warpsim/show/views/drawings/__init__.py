"""Figures: as text, as SVG, in the files that users keep."""
