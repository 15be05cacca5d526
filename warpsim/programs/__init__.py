"""Callers of launches: launches of users, warps held from Python, compilers, host programs of CUDA."""
