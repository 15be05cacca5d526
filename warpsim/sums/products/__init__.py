"""Whole matrix products, tiled by one instruction, and the compiling of kernels ahead of time."""
