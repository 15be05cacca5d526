"""Mistakes planted in kernels, written down before ``--why`` tried its causes."""
