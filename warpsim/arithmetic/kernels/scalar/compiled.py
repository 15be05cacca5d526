"""The scalar kernels, compiled when first called; those that ``uncompiled`` has too, and binary64's."""

from .binary64 import ROUNDINGS, multiply_add_chain
from .fused import fused_sum
from .groups import scaled_groups
from .integer import integer_sum

__all__ = ["ROUNDINGS", "fused_sum", "integer_sum", "multiply_add_chain", "scaled_groups"]
