"""How many CTAs of a kernel a multiprocessor can have at a time, from the limits of the chip.

Registers are not counted: those of PTX are not those that ptxas allocates. Knows limits; does not know calls.
"""

from __future__ import annotations

from ..isa.architectures import ARCHITECTURES
from ..isa.warps import WARP
from .client_modules import Kernel

_RESERVED = 1024  # bytes of shared memory of a CTA that the system takes, from sm_80 on


def ctas_of_multiprocessor(kernel: Kernel, threads: int, dynamic_bytes: int) -> int:
    """Return the CTAs that a multiprocessor can have at a time; 0 where it cannot have any."""
    limits = ARCHITECTURES[kernel.image.chip].limits
    static = kernel.launchable._entry.static_shared_bytes
    if threads < 1 or threads > limits.threads or static + dynamic_bytes > limits.shared_bytes:
        return 0
    rounded = -(-threads // WARP) * WARP
    by_threads = limits.multiprocessor_threads // rounded
    by_shared = limits.multiprocessor_shared_kib * 1024 // (static + dynamic_bytes + _RESERVED)
    return min(by_threads, by_shared, limits.multiprocessor_ctas)
