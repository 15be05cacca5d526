"""Tensor memory: accesses of tcgen05 that nothing orders, and columns that stay allocated."""
