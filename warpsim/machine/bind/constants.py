"""The bits that a constant has in a register. Does not know which operands take which constants."""

from __future__ import annotations

import numpy as np

from ...base.environment import in_default_environment
from ...ptx.constants import Immediate


@in_default_environment
def constant_bits(constant: Immediate, bits: int) -> int:
    """Return the bits of a constant in a register: integers are cut, floats become f32 or f64 as it is
    wide.
    """
    own = 32 if constant.kind == "f32" else 64
    if constant.kind == "integer" or own == bits:
        return constant.value & (1 << bits) - 1
    with np.errstate(all="ignore"):
        value = np.array(constant.value, f"u{own // 8}").view(f"f{own // 8}").astype(f"f{bits // 8}")
    return int(value.view(f"u{bits // 8}"))
