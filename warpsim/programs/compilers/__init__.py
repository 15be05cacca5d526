"""Kernels of Python compilers, run here: functions of Triton and of Numba.

Knows how those compilers turn arguments into a kernel's parameters; they make the PTX themselves. They are
imported when a kernel is compiled, and need no GPU.
"""
