"""Mistakes planted in kernels: by ``--why``'s own list, and in kernels that no code here was written for."""
