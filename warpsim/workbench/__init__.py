"""Questions that running kernels and instructions answers."""
