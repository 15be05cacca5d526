"""Work that programs take from a counter, and a lock around what they share, in Triton."""

import triton
import triton.language as tl


@triton.jit
def locked_rows(values, total, lock, rows, WIDTH: tl.constexpr):
    """total += the sum of all rows; who holds the lock adds, the others wait for it."""
    place = tl.arange(0, WIDTH)
    partial = tl.zeros((WIDTH,), tl.int32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        partial += tl.load(values + row * WIDTH + place)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total + place, tl.load(total + place) + partial)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)
