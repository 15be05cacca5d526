"""y = a x + y in Numba: arrays are structs of seven parameters."""

from numba import cuda


def axpy(out, a, x, y):
    """out = a x + y, a thread for each element."""
    place = cuda.grid(1)
    if place < out.size:
        out[place] = a * x[place] + y[place]
