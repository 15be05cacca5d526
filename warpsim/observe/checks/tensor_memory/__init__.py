"""Tensor memory: accesses that nothing orders, columns that stay allocated, collector buffers."""
