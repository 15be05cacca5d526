"""The sum of a single element of D, compiled and, for few elements, with NumPy; integers throughout."""
