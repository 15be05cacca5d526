"""Mistakes in whole kernels that no code here was written for, judged by kinds and lines of verdicts.

``injected`` draws its mistakes from the library of ``warpsim diff``.
"""
